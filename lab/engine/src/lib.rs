//! Evaluators of classic BPF: filters of seccomp and of sockets, run in user space.
//!
//! [`Evaluator`] evaluates calls like a task's stack of filters, [`PacketEvaluator`] packets like a socket's filter.
//! [`ExtendedEvaluator`] runs extended programs on packets. All run on one of the [`Engine`]s, which differ in the
//! costs of preparing a program and of an evaluation; [`Engine::Auto`] selects one by the number of evaluations and
//! reports the reason ([`Choice`]). All return the same values: those of the reference interpreter.
//!
//! The engines themselves are in `tamis-bpf` (reference), `tamis-vm` (threaded) and `tamis-jit`; those for extended programs in `tamis-ebpf`.
#![forbid(unsafe_code)]

mod choice;
mod extended;
mod packet;
mod seccomp;

use std::error;
use std::fmt;

use tamis_bpf::packet::Ancillary;
use tamis_bpf::{Pc, Program};

pub use choice::{Choice, Engine, Reason};
pub use extended::{ExtendedEvaluator, Runner};
pub use packet::PacketEvaluator;
pub use seccomp::Evaluator;

/// How programs are prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The engine.
    pub engine: Engine,
    /// The expected number of evaluations, from which [`Engine::Auto`] selects; `None` means many.
    pub evaluations: Option<u64>,
    /// Whether answers that a call's architecture and number decide are kept in a table, which takes as long to make as
    /// some ten thousand evaluations. Packets have no such table, nor has [`Engine::Reference`].
    pub is_cached: bool,
    /// With a seed, which should be random, machine code has no constants of the program, which an attacker may have
    /// chosen.
    pub harden: Option<u64>,
}

/// The reason why a program can't be evaluated.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A program has more instructions than the kernel takes.
    TooLong {
        /// The program, counted from the oldest of a stack.
        filter: usize,
        /// Its length.
        len_insns: usize,
    },
    /// An instruction loads an ancillary value that the packets lack.
    Unanswered {
        /// The instruction.
        pc: Pc,
        /// The value.
        ancillary: Ancillary,
    },
    /// The requested engine isn't available.
    Jit(tamis_jit::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLong { filter, len_insns } => write!(
                f,
                "program {filter} has {len_insns} instructions; evaluators take at most {}, as the kernel does",
                Program::MAX_INSNS
            ),
            Error::Unanswered { pc, ancillary } => write!(
                f,
                "instruction {} loads `#{}`, which isn't known of these packets",
                pc.0,
                ancillary.name()
            ),
            Error::Jit(error) => error.fmt(f),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Jit(error) => Some(error),
            _ => None,
        }
    }
}
