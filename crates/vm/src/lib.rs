//! Fast evaluation of classic BPF in user space.
//!
//! [`Code`] is a seccomp program decoded once, to be run millions of times with a record of its coverage: the code
//! between two branches is one node, and long lists of comparisons are table lookups. [`threaded`] is faster without a
//! record of the coverage, and runs socket filters too. Neither is trusted: results are confirmed by the reference
//! interpreter ([`tamis_bpf::interp`]), and both are tested against it.
#![forbid(unsafe_code)]

pub mod cache;
mod chain;
mod code;
mod decode;
mod evaluator;
pub mod threaded;

pub use code::{Code, Seen};
pub use evaluator::Evaluator;
