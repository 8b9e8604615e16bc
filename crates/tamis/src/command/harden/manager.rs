//! systemd below a root: the privileges of the running one.
//!
//! Which release it is says [`systemd`](crate::cli::systemd). An image has no running systemd: its manager is taken for one
//! with all privileges.

use std::fs;
use std::path::Path;

use tamis_abi::{Arch, KernelVersion};
use tamis_policy::systemd::{SystemdOptions, SystemdVersion};

use super::Args;
use super::credentials::Credentials;
use crate::cli::load::LoadArgs;
use crate::cli::root::Root;
use crate::cli::{Failure, systemd};

/// The release of the running kernel.
const RUNNING_KERNEL: &str = "/proc/sys/kernel/osrelease";

/// The systemd that makes the filters of a service.
pub(super) struct Release {
    /// Which it is, if that can be found.
    pub(super) version: Option<SystemdVersion>,
    /// The kernel that runs it, if it runs.
    pub(super) kernel: Option<KernelVersion>,
}

impl Release {
    /// That of a service below a root.
    pub(super) fn of(root: &Root) -> Release {
        let text = match root.is_own() {
            true => fs::read_to_string(RUNNING_KERNEL).unwrap_or_default(),
            false => String::new(),
        };
        Release {
            version: version(root),
            kernel: text.trim().parse().ok(),
        }
    }

    /// How to load a unit that it reads.
    pub(super) fn load_args(&self, args: &Args) -> Result<LoadArgs, Failure> {
        LoadArgs::of_systemd(args.arch, args.strict, self.assumed(), self.kernel)
    }

    /// The version, or the newest known.
    fn assumed(&self) -> SystemdVersion {
        self.version.unwrap_or_else(SystemdVersion::newest)
    }

    /// The options of reading a unit as it does.
    pub(super) fn options(&self, native: Arch) -> SystemdOptions {
        SystemdOptions {
            version: self.assumed(),
            kernel: self.kernel,
            ..SystemdOptions::new(native)
        }
    }

    /// What a report says.
    pub(super) fn text(&self) -> String {
        match self.version {
            Some(version) => version.to_string(),
            None => format!("{} (the newest known)", self.assumed()),
        }
    }
}

/// The release of systemd, if it can be found: below the root, or the machine's for an image without systemd, whose services the
/// machine's runs.
fn version(root: &Root) -> Option<SystemdVersion> {
    match systemd::versions(root) {
        found if found.is_empty() => systemd::installed(),
        found => systemd::only(&found),
    }
}

/// The credentials of the manager: those of the machine's first process, or all of them for an image.
pub(super) fn credentials(root: &Root) -> Credentials {
    let status = match root.is_own() {
        true => fs::read_to_string(Path::new("/proc/1/status")).unwrap_or_default(),
        false => String::new(),
    };
    Credentials::of_status(&status).unwrap_or(Credentials::MANAGER)
}
