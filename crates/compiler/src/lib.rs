//! From what a policy means to the program that the kernel runs.
#![forbid(unsafe_code)]

pub mod cost;
pub mod dag;
mod diagram;
mod direct;
pub mod emit;
mod formula;
pub mod layout;
pub mod linearise;
mod outcome;
pub mod tree;
