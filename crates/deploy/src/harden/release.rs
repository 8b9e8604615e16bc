//! The systemd below a root: its release and privileges.
//!
//! [`systemd`](crate::systemd) finds the release. An image has no running systemd; its manager is assumed to have
//! all privileges.

use std::fs;
use std::path::Path;

use tamis_abi::{Arch, KernelVersion};
use tamis_policy::systemd::{SystemdOptions, SystemdVersion};

use super::credentials::Credentials;
use crate::root::Root;
use crate::systemd;

/// The release of the running kernel.
const RUNNING_KERNEL: &str = "/proc/sys/kernel/osrelease";

/// The systemd that starts a service.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Its version, if known.
    pub version: Option<SystemdVersion>,
    /// The running kernel, unless the service is that of an image.
    pub kernel: Option<KernelVersion>,
}

impl Release {
    /// The systemd below a root.
    pub fn below(root: &Root) -> Release {
        let text = match root.is_own() {
            true => fs::read_to_string(RUNNING_KERNEL).unwrap_or_default(),
            false => String::new(),
        };
        Release {
            version: version(root),
            kernel: text.trim().parse().ok(),
        }
    }

    /// The version, or the newest supported one.
    pub fn assumed(&self) -> SystemdVersion {
        self.version.unwrap_or_else(SystemdVersion::newest)
    }

    /// The options for parsing a unit.
    pub(super) fn options(&self, native: Arch) -> SystemdOptions {
        SystemdOptions {
            version: self.assumed(),
            kernel: self.kernel,
            ..SystemdOptions::new(native)
        }
    }

    /// The text for reports.
    pub(super) fn text(&self) -> String {
        match self.version {
            Some(version) => version.to_string(),
            None => format!("{} (the newest known)", self.assumed()),
        }
    }
}

/// The version of systemd below the root or, for an image without systemd, of this machine, which runs the image's
/// services.
fn version(root: &Root) -> Option<SystemdVersion> {
    match systemd::versions(root) {
        found if found.is_empty() => systemd::installed(),
        found => systemd::only(&found),
    }
}

/// The credentials of the manager: those of this machine's process 1, or all privileges for an image.
pub(super) fn credentials(root: &Root) -> Credentials {
    let status = match root.is_own() {
        true => fs::read_to_string(Path::new("/proc/1/status")).unwrap_or_default(),
        false => String::new(),
    };
    Credentials::of_status(&status).unwrap_or(Credentials::MANAGER)
}
