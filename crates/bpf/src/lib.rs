//! The machine that runs seccomp filters: classic BPF as Linux accepts it from seccomp.
//!
//! [`Insn`] is one instruction as the kernel takes it, [`Op`] the same decoded, [`Program`] a list
//! that the kernel's checker would accept. See `docs/decisions` for why a program is valid by type.
#![forbid(unsafe_code)]

pub mod cfg;
pub mod insn;
pub mod program;
pub mod validate;

pub use insn::{AluOp, Insn, Op, Operand, Test};
pub use program::{Pc, Program};
pub use validate::{InvalidProgram, Reason};
