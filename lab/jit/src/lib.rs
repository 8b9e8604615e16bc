//! BPF programs as x86-64 machine code.
//!
//! [`Seccomp`] is a compiled program of seccomp, [`Socket`] one of a socket, [`Extended`] a checked extended one. The
//! code is written backwards (`assembler`), from one template for each instruction (`classic`, `extended::emit`), in
//! memory that is executable and not writable ([`mod@memory`]); all `unsafe` is there. A test proves the effect of
//! every template with Z3, for all values.
//!
//! On other machines than x86-64 with Linux the crate compiles, and every compilation is refused with
//! [`Unavailable::Host`].
#![deny(unsafe_code)]
#![cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(
        dead_code,
        unreachable_code,
        unused_imports,
        unused_variables,
        reason = "no code is executed here"
    )
)]

use std::fmt;

use tamis_bpf::{Pc, Program};

mod ahead;
mod assembler;
mod blind;
mod classic;
mod extended;
pub mod memory;
mod program;
mod ranges;
mod reduce;
mod seccomp;
mod socket;
pub mod template;
mod x86;

pub use extended::Extended;
pub use memory::{Unavailable, probe};
pub use program::Entry;
pub use seccomp::{Filters, Seccomp};
pub use socket::Socket;

/// How programs are compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// With a seed, which should be random, no constant of the program appears in the code: an attacker who chooses
    /// constants must not choose instructions. Costs time in every evaluation.
    pub harden: Option<u64>,
}

/// The reason why a program was not compiled.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The program has more instructions than the kernel accepts.
    TooLong {
        /// The length.
        len_insns: usize,
    },
    /// An entry is behind the last instruction.
    EntryOutside {
        /// Where it is.
        pc: Pc,
    },
    /// The program is for machines that are big-endian.
    OtherByteOrder,
    /// There is no executable memory.
    Unavailable(Unavailable),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLong { len_insns } => write!(
                f,
                "the program has {len_insns} instructions; a filter has at most {}",
                Program::MAX_INSNS
            ),
            Error::EntryOutside { pc } => {
                write!(f, "there is no instruction {} to begin with", pc.0)
            }
            Error::OtherByteOrder => f.write_str(
                "the program is for big-endian machines, machine code for little-endian",
            ),
            Error::Unavailable(reason) => reason.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unavailable(reason) => Some(reason),
            _ => None,
        }
    }
}
