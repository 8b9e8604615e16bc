//! Extended BPF in user space: checker, interpreters, and programs from objects of clang.
//!
//! Instructions and their text form are those of [`tamis_ebpf`], which this crate gives on.
//!
//! | module | function |
//! |---|---|
//! | [`elf`] | programs from objects of clang |
//! | [`convert`] | the memory on which converted classic programs run |
//! | [`direct`] | classic programs as somebody would write them |
//! | [`memory`] | the memory and helpers of an evaluation |
//! | [`interp`] | the reference interpreter, which trusts nothing |
//! | [`socket`] | what programs of sockets are given |
//! | [`check`] | which programs are safe, and why others aren't |
//! | [`threaded`] | the fast interpreter of safe programs |
#![forbid(unsafe_code)]

pub mod check;
pub mod convert;
pub mod direct;
pub mod elf;
pub mod interp;
pub mod memory;
pub mod socket;
pub mod threaded;

pub use tamis_ebpf::{
    AluOp, Atomic, Bits, Cond, Encoded, Insn, InvalidProgram, Op, Pc, Place, Program, Reason, Reg,
    Size, Source, Swap, Width, decode, insn, program, semantics, text,
};
