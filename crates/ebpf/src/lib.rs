//! Extended BPF in user space: the instruction set of `include/uapi/linux/bpf.h`, versions 1 to 4, without maps.
//!
//! [`Insn`] is one encoded instruction, [`Op`] a decoded one, [`Program`] a list whose jumps and calls stay inside it.
//!
//! | module | function |
//! |---|---|
//! | [`text`], [`elf`] | programs from text and from objects of clang, and as text |
//! | [`convert`] | what the kernel makes of classic programs |
//! | [`direct`] | classic programs as somebody would write them |
//! | [`semantics`], [`memory`] | what operations give, and the memory and helpers of an evaluation |
//! | [`interp`] | the reference interpreter, which trusts nothing |
//! | [`socket`] | what programs of sockets are given |
//! | [`check`] | which programs are safe, and why others aren't |
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
