//! Extended BPF in user space: the instruction set of `include/uapi/linux/bpf.h`, versions 1 to 4, without maps.
//!
//! [`Insn`] is one encoded instruction, [`Op`] a decoded one, [`Program`] a list whose jumps and calls stay inside it.
//!
//! | module | function |
//! |---|---|
//! | [`text`], [`elf`] | programs from text and from objects of clang, and as text |
//! | [`convert`] | the kernel's translation of classic programs |
//! | [`direct`] | classic programs as handwritten ones |
//! | [`semantics`], [`memory`] | the results of operations, and the memory and helpers of an evaluation |
//! | [`interp`] | the reference interpreter, which assumes nothing |
//! | [`socket`] | the context and helpers of socket programs |
//! | [`check`] | whether a program is safe, with the reason |
//! | [`threaded`] | the fast interpreter of safe programs |
#![forbid(unsafe_code)]

pub mod check;
mod coding;
pub mod convert;
pub mod direct;
pub mod elf;
pub mod insn;
pub mod interp;
pub mod memory;
pub mod program;
pub mod semantics;
pub mod socket;
pub mod text;
pub mod threaded;

pub use coding::{Encoded, decode};
pub use insn::{AluOp, Atomic, Bits, Cond, Op, Place, Reg, Size, Source, Swap, Width};
pub use program::{InvalidProgram, Pc, Program, Reason};
pub use tamis_bpf::extended::Insn;
