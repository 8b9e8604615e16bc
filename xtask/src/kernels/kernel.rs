//! The kernels of the lab: those that Debian builds for virtual machines of clouds, one of each release.

use anyhow::{Context, Result};

use crate::arch::Arch;

/// A kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    /// The name on the command line.
    pub(super) name: &'static str,
    pub(super) arch: Arch,
    /// Debian's release that has it.
    pub(super) release: &'static str,
}

/// All kernels, by architecture the oldest first. `newest` is the present kernel of Debian's unstable release.
pub(super) const KERNELS: [Kernel; 7] = [
    kernel("x86_64-5.10", Arch::X86_64, "bullseye"),
    kernel("x86_64-6.1", Arch::X86_64, "bookworm"),
    kernel("x86_64-6.12", Arch::X86_64, "trixie"),
    kernel("x86_64-newest", Arch::X86_64, "sid"),
    kernel("aarch64-6.1", Arch::Aarch64, "bookworm"),
    kernel("aarch64-6.12", Arch::Aarch64, "trixie"),
    kernel("aarch64-newest", Arch::Aarch64, "sid"),
];

const fn kernel(name: &'static str, arch: Arch, release: &'static str) -> Kernel {
    Kernel {
        name,
        arch,
        release,
    }
}

/// The kernel of that name.
///
/// # Errors
/// If there is none.
pub(super) fn by_name(name: &str) -> Result<&'static Kernel> {
    let found = KERNELS.iter().find(|kernel| kernel.name == name);
    found.with_context(|| {
        let names: Vec<_> = KERNELS.iter().map(|kernel| kernel.name).collect();
        format!("there is no kernel `{name}`; kernels: {}", names.join(", "))
    })
}
