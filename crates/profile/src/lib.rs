//! How often a program makes which system calls, with which arguments.
//!
//! A [`Profile`] is what a filter is optimised for: counts per architecture and number, and for calls
//! whose arguments were seen, how often each value occurred. It comes from a recording or from another
//! tool's table, and several of them merge into one.
//!
//! This crate knows nothing of filters and policies, and does no I/O.
#![forbid(unsafe_code)]

mod profile;

pub use profile::{Args, Call, Profile};
