//! What filters cost: a workload run through a program or a stack, and counted.
//!
//! A [`Workload`] says which calls are made and how often each is: those of a profile, those of ordinary programs if
//! there is no profile, every known call once, or given ones. [`measure`] runs all of them through the programs with
//! the reference interpreter, so that the figures hold for programs of any origin, and gives a [`Cost`]: executed
//! instructions, those that the kernel makes of them, numbers that the kernel's bitmap answers, mispredicted
//! branches. [`measure_numbers`], [`measure_archs`] and [`measure_branches`] give the same by number, by architecture
//! and by branch. [`price`] has what that takes in nanoseconds.
//!
//! Nothing is timed here; how long real calls take is for `tamis bench` to say. How layout weighs decisions before
//! there is a program is the compiler's.
#![forbid(unsafe_code)]

mod arguments;
mod measure;
pub mod price;
mod workload;

pub use measure::{
    Cost, Executed, NumberCost, measure, measure_archs, measure_branches, measure_numbers,
};
pub use workload::{Sample, Workload};
