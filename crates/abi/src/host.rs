//! The target machine of this code: the only place that determines it.
//!
//! Compilation and proof never depend on it: pure crates don't use this module, which `cargo xtask tidy` checks.
//! Callers with a default for the user's own machine pass it on from here.

use crate::arch::{Arch, Endian};
use crate::target::Target;

/// The target of this code.
pub const TARGET: Target<'static> = Target {
    arch: std::env::consts::ARCH,
    endian: if cfg!(target_endian = "big") {
        Endian::Big
    } else {
        Endian::Little
    },
    pointer_bits: usize::BITS,
};

/// The architecture of this program; `None` if filters can't distinguish it.
pub fn arch() -> Option<Arch> {
    TARGET.native_arch()
}
