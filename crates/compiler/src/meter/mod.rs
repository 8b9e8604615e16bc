//! The cost of filters: runs a workload through a program or a stack, and counts.
//!
//! A [`Workload`] is a set of calls with frequencies: those of a profile, those of ordinary programs if there is no
//! profile, every known call once, or given ones. [`measure`] runs all of them through the programs with the
//! reference interpreter, so that the figures hold for programs of any origin, and returns a [`Cost`]: executed
//! instructions, before and after the kernel's conversion, numbers that the kernel answers from its bitmap, and
//! mispredicted branches. [`measure_numbers`], [`measure_archs`] and [`measure_branches`] return the same by number,
//! by architecture and by branch. [`price`] converts these figures to nanoseconds.
//!
//! This crate measures no times; `tamis bench` measures real calls. The compiler has its own cost model of decisions
//! for layout, before there is a program.

mod arguments;
mod measure;
pub mod price;
mod workload;

pub use measure::{
    Cost, Executed, NumberCost, measure, measure_archs, measure_branches, measure_numbers,
};
pub use workload::{Sample, Workload};
