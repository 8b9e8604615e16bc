//! The machine that this code was compiled for: the one place that asks.
//!
//! What is compiled and proved never depends on it: pure crates don't use this module, `cargo xtask tidy` holds
//! that. Whoever wants a default for the user's own machine asks here and passes it on.

use crate::arch::{Arch, Endian};
use crate::target::Target;

/// What this code was compiled for.
pub const TARGET: Target<'static> = Target {
    arch: std::env::consts::ARCH,
    endian: if cfg!(target_endian = "big") {
        Endian::Big
    } else {
        Endian::Little
    },
    pointer_bits: usize::BITS,
};

/// The architecture of this program; `None` if filters can't tell it.
pub fn arch() -> Option<Arch> {
    TARGET.native_arch()
}
