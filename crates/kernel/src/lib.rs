//! The running kernel: what it can, installing filters, running commands under them.
//!
//! | module | what it does |
//! |---|---|
//! | [`mod@probe`] | tells what this kernel and this process can, as plain data |
//! | [`mod@install`] | puts a program on the calling thread or on all threads, with precise errors |
//! | [`mod@run`] | runs a command under filters and explains which call got it killed |
//! | [`mod@dump`] | reads the filters of a running process |
//! | [`mod@differential`] | puts programs and calls to the kernel, to compare what it answers |
//! | [`mod@measure`] | times system calls under filters |
//!
//! These stand on three primitives, of which other systems can be made:
//!
//! | module | what it does |
//! |---|---|
//! | [`mod@spawn`] | starts a child under filters |
//! | [`mod@tracee`] | traces tasks: stops, registers, system calls |
//! | [`mod@listener`] | answers the calls that a filter hands to user space |
//!
//! All `unsafe` is in the private module `sys`: thin wrappers over single system calls, and the code
//! that a child runs between `fork` and `exec`. Everything above it is safe Rust.
#![deny(unsafe_code)]

pub mod differential;
pub mod dump;
mod ended;
pub mod errno;
pub mod flags;
pub mod install;
pub mod listener;
pub mod measure;
pub mod probe;
pub mod run;
pub mod spawn;
mod status;
mod sys;
pub mod tracee;

pub use dump::{DumpError, dump};
pub use ended::Ended;
pub use errno::Errno;
pub use flags::{Flag, Flags};
pub use install::{Install, InstallError, Installed, install};
pub use measure::{MeasureError, Measured, measure};
pub use probe::{Probe, probe};
pub use run::{Command, Killed, Report, RunError, run, supervise};

/// The byte order of this machine, in which the kernel lays out what a filter sees.
pub const NATIVE_ENDIAN: tamis_abi::Endian = tamis_abi::host::TARGET.endian;
