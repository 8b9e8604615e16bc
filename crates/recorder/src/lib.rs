//! What programs call, recorded while they run.
//!
//! [`ebpf::Recorder`] counts the calls of chosen tasks and of all that they start, by programs of its own at the kernel's
//! tracepoints: no task is stopped, and none can notice. [`caught::Counting`] counts those of a command that a platform
//! runs, which takes no privileges and more time. [`view`] shows calls while they are made. A [`Recording`] is what was counted so far, in form of a
//! [`Profile`](tamis_profile::Profile), and what couldn't be counted.
//!
//! Not included are the policy that is made of a recording, and the commands that start programs.
#![forbid(unsafe_code)]

pub mod caught;
pub mod ebpf;
mod recording;
pub mod view;

pub use recording::{Lost, Recording, Signalled};
