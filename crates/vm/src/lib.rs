//! Fast evaluation of seccomp programs in user space.
//!
//! [`Code`] is a program decoded once, to be run millions of times: the code between two branches is one node, long
//! lists of comparisons are table lookups, running allocates nothing, and each run records its coverage in a
//! [`Seen`]. It is not trusted: its results are confirmed by the reference interpreter ([`tamis_bpf::interp`]),
//! against which it is also tested.
#![forbid(unsafe_code)]

mod chain;
mod code;
mod decode;

pub use code::{Code, Seen};
