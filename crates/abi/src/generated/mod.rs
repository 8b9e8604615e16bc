//! Tables written by `cargo xtask codegen`; `crates/abi/data/README.md` names their sources.

#[rustfmt::skip]
pub(crate) mod constants;
#[rustfmt::skip]
pub(crate) mod signatures;
#[rustfmt::skip]
pub(crate) mod syscalls;
#[rustfmt::skip]
pub(crate) mod widths;
