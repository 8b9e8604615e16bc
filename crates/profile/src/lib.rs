//! Profiles: the frequencies of a program's system calls and their arguments.
//!
//! Filters are optimised for a [`Profile`]: counts per architecture and number, and for calls with recorded arguments
//! the count of each value. It comes from a recording or from another tool's table ([`read`]); several can be merged
//! into one ([`Fleet`] detects runs that are in several), and [`Profile::to_json`] prints it. [`Profile::builtin`] is a
//! profile of ordinary programs, for callers without one.
//!
//! This crate is independent of filters and policies, and does no I/O.
#![forbid(unsafe_code)]

mod arguments;
#[cfg(feature = "formats")]
mod audit;
#[cfg(feature = "formats")]
mod audit_log;
mod builtin;
pub mod code;
#[cfg(feature = "formats")]
mod collect;
#[cfg(feature = "formats")]
mod fleet;
#[cfg(feature = "formats")]
mod frequency;
pub mod interest;
#[cfg(feature = "formats")]
mod json;
#[cfg(feature = "formats")]
mod perf;
#[cfg(feature = "formats")]
mod perf_log;
mod profile;
#[cfg(feature = "formats")]
mod read;
#[cfg(feature = "formats")]
pub mod rows;
mod runs;
#[cfg(feature = "formats")]
mod strace;
#[cfg(feature = "formats")]
mod trace;

#[cfg(feature = "formats")]
pub use audit::{Records, records};
#[cfg(feature = "formats")]
pub use audit_log::Record;
#[cfg(feature = "formats")]
pub use fleet::{Fleet, Overlap};
pub use profile::{Args, Call, Coverage, Profile, Times};
#[cfg(feature = "formats")]
pub use read::{Format, Reading, policy_refusal, read};
pub use runs::{Origin, RunId, Runs};
