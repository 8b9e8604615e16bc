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
mod audit;
mod audit_log;
mod builtin;
pub mod code;
mod collect;
mod fleet;
mod frequency;
pub mod interest;
mod json;
mod perf;
mod perf_log;
mod profile;
mod read;
pub mod rows;
mod runs;
mod strace;
mod trace;

pub use audit::{Records, records};
pub use audit_log::Record;
pub use fleet::{Fleet, Overlap};
pub use profile::{Args, Call, Coverage, Profile, Times};
pub use read::{Format, Reading, policy_refusal, read};
pub use runs::{Origin, RunId, Runs};
