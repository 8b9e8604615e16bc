//! The architectures that programs are built for, packed for and tested on, with the names that others give them.

use anyhow::{Result, bail};

/// An architecture of machines that run tamis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Arch {
    /// All of them.
    pub(crate) const ALL: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

    /// The architecture of this machine.
    ///
    /// # Errors
    /// If it is another one.
    pub(crate) fn host() -> Result<Arch> {
        Arch::by_name(std::env::consts::ARCH)
    }

    /// The architecture that Linux and RPM call so.
    ///
    /// # Errors
    /// If it isn't one of these.
    pub(crate) fn by_name(name: &str) -> Result<Arch> {
        let found = Arch::ALL.into_iter().find(|arch| arch.name() == name);
        match found {
            Some(arch) => Ok(arch),
            None => bail!("`{name}` is not an architecture of these: x86_64, aarch64"),
        }
    }

    /// The name that Linux, Rust and RPM have.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
        }
    }

    /// The name that Debian has.
    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Arch::X86_64 => "amd64",
            Arch::Aarch64 => "arm64",
        }
    }

    /// Rust's target for static programs: linked with musl they need no library of the machine.
    pub(crate) const fn static_target(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64-unknown-linux-musl",
            Arch::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Rust's target for libraries that programs of a distribution load.
    pub(crate) const fn shared_target(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64-unknown-linux-gnu",
            Arch::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }
}
