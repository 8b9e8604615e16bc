//! Fast evaluation of seccomp programs in user space.
//!
//! [`Code`] is a program decoded once, to be run millions of times: what lies between two branches is one
//! node, long lists of comparisons are looked up in tables, nothing is allocated while it runs, and each
//! run notes what it reached in a [`Seen`]. It is never the last word: whatever is found with it is put to
//! the reference interpreter ([`tamis_bpf::interp`]), which is also what it is tested against.
#![forbid(unsafe_code)]

mod chain;
mod code;
mod decode;

pub use code::{Code, Seen};
