//! Recording the calls of programs while they run.
//!
//! [`ebpf::Recorder`] counts the calls of chosen tasks and their descendants with its own programs at the kernel's
//! tracepoints: no task is stopped or can detect it. [`caught::Counting`] counts the calls of a command that a platform
//! runs, without privileges but slower. [`view`] shows calls as they are made. A [`Recording`] has the counts so far as
//! a [`Profile`](tamis_profile::Profile), and the number of events that couldn't be counted.
//!
//! Policies made from recordings, and commands that start programs, are in other crates.
#![forbid(unsafe_code)]

pub mod caught;
pub mod ebpf;
mod recording;
pub mod view;

pub use recording::{LostEvents, Recording, Signalled};
