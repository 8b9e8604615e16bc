//! The running kernel: its features, installing filters, running commands under them.
//!
//! | module | function |
//! |---|---|
//! | [`mod@probe`] | detects the features of this kernel and process, as plain data |
//! | [`mod@install`] | installs a program on the calling thread or on all threads, with precise errors |
//! | [`mod@run`] | runs a command under filters and reports the call for which it was killed |
//! | [`mod@execute`] | makes this process a program under filters |
//! | [`mod@dump`] | reads the filters of a running process |
//! | [`mod@differential`] | compares programs and calls in the kernel with tamis |
//! | [`mod@measure`] | times system calls under filters |
//! | [`mod@bpf`] | checks extended programs with the kernel's verifier, and runs them once |
//! | [`mod@interrupt`] | records the signals by which a user ends programs |
//!
//! These use primitives, with which other systems can be built:
//!
//! | module | function |
//! |---|---|
//! | [`mod@spawn`] | starts a child under filters |
//! | [`mod@tracee`] | traces tasks: stops, registers, system calls |
//! | [`mod@listener`] | replies to the calls that a filter passes to user space |
//! | [`mod@search`] | finds the file of a program |
//! | [`mod@memory`] | reads and writes the memory of other processes |
//! | [`mod@affinity`] | reads and sets the CPUs of threads |
//! | [`mod@poll`] | waits for one of several descriptors |
//!
//! All but [`mod@probe`], [`mod@install`] and [`mod@listener`] are there with the feature `commands`, the default.
//!
//! All `unsafe` is in the private module `sys`: thin wrappers of single system calls, and the code that a child
//! runs between `fork` and `exec`. All other code is safe Rust.
#![deny(unsafe_code)]

#[cfg(feature = "commands")]
pub mod affinity;
#[cfg(feature = "commands")]
pub mod bpf;
#[cfg(feature = "commands")]
pub mod differential;
#[cfg(feature = "commands")]
pub mod dump;
#[cfg(feature = "commands")]
mod ended;
pub mod errno;
#[cfg(feature = "commands")]
pub mod execute;
pub mod flags;
pub mod install;
#[cfg(feature = "commands")]
pub mod interrupt;
pub mod listener;
#[cfg(feature = "commands")]
pub mod measure;
#[cfg(feature = "commands")]
pub mod memory;
#[cfg(feature = "commands")]
pub mod poll;
pub mod probe;
#[cfg(feature = "commands")]
pub mod run;
#[cfg(feature = "commands")]
pub mod search;
#[cfg(feature = "commands")]
pub mod spawn;
mod status;
mod sys;
#[cfg(feature = "commands")]
pub mod tracee;

#[cfg(feature = "commands")]
pub use dump::{DumpError, dump};
#[cfg(feature = "commands")]
pub use ended::Ended;
pub use errno::Errno;
pub use flags::{Flag, Flags};
pub use install::{Install, InstallError, Installed, install};
#[cfg(feature = "commands")]
pub use measure::{MeasureError, Measured, measure};
pub use probe::{Probe, probe};
#[cfg(feature = "commands")]
pub use run::{Command, Killed, RunError, RunResult, run, supervise};
pub use status::{Status, lives};

/// The byte order of this machine, in particular of `struct seccomp_data`.
pub const NATIVE_ENDIAN: tamis_abi::Endian = tamis_abi::host::TARGET.endian;
