//! The machine that runs seccomp filters: classic BPF as accepted by seccomp in Linux.
//!
//! [`Insn`] is one encoded instruction, [`Op`] a decoded one, [`Program`] a list that the kernel's checker
//! ([`validate`]) would accept. [`interp`] evaluates a program; [`cache`], [`convert`], [`ebpf_len`] and [`stack`]
//! model the kernel's treatment of it; [`asm`] and [`disasm`] are its text forms. See `docs/decisions` for why a
//! program is valid by type.
#![forbid(unsafe_code)]

pub mod asm;
pub mod cache;
pub mod cfg;
pub mod code;
pub mod convert;
pub mod coverage;
pub mod disasm;
pub mod ebpf_len;
pub mod extended;
pub mod facts;
pub mod forms;
pub mod harmless;
pub mod insn;
pub mod interp;
pub mod live;
pub mod packet;
pub mod program;
pub mod stack;
pub mod template;
pub mod validate;

pub use insn::{AluOp, Insn, Op, Operand, Operation, Test};
pub use program::{Pc, Program};
pub use stack::{MixedEndian, Stack};
pub use template::{Patch, Template};
pub use validate::{InvalidProgram, Reason};
