//! How often a program makes which system calls, with which arguments.
//!
//! A [`Profile`] is what a filter is optimised for: counts per architecture and number, and for calls
//! whose arguments were seen, how often each value occurred. It comes from a recording or from another
//! tool's table ([`read`]), several of them merge into one, and [`Profile::to_json`] writes it down.
//! [`Profile::builtin`] is one of ordinary programs, for callers that have none.
//!
//! This crate knows nothing of filters and policies, and does no I/O.
#![forbid(unsafe_code)]

mod arguments;
mod builtin;
mod collect;
mod frequency;
mod json;
mod perf;
mod profile;
mod read;
mod strace;

pub use profile::{Args, Call, Profile};
pub use read::{Format, Reading, read};
