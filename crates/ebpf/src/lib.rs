//! Extended BPF as data: the instruction set of `include/uapi/linux/bpf.h`, versions 1 to 4, without maps.
//!
//! [`Insn`] is one encoded instruction, [`Op`] a decoded one, [`Program`] a list whose jumps and calls stay inside it.
//!
//! | module | function |
//! |---|---|
//! | [`text`] | programs from text, and as text |
//! | [`convert`] | the kernel's translation of classic programs |
//! | [`semantics`] | the results of operations |
//!
//! Nothing here runs a program: the laboratory's `tamis-ebpf-vm` has checker, interpreters and the reader of objects.
#![forbid(unsafe_code)]

pub mod code;
mod coding;
pub mod convert;
pub mod insn;
pub mod program;
pub mod semantics;
pub mod text;

pub use coding::{Encoded, decode};
pub use insn::{AluOp, Atomic, Bits, Cond, Op, Place, Reg, Size, Source, Swap, Width};
pub use program::{InvalidProgram, Pc, Program, Reason};
pub use tamis_bpf::extended::Insn;
