//! Programs of sockets: instruction lists that `bpf_check_classic` accepts.

use super::{Ancillary, Extra, Load, Op, op};
use crate::insn::{Insn, Operand};
use crate::program::Pc;
use crate::validate::{self, InvalidProgram, Machine, Reason};

/// A non-empty list of instructions that passes the check of the kernel for filters of sockets, at most
/// [`MAX_INSNS`](Self::MAX_INSNS) of them.
///
/// Packets are in network byte order on every machine, so unlike a filter of seccomp it has no byte order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    insns: Vec<Insn>,
}

/// The machine of sockets.
pub(crate) struct Sockets;

impl Machine for Sockets {
    type Load = Load;
    type Extra = Extra;

    fn op(insn: Insn) -> Option<Op> {
        op(insn)
    }

    fn illegal(code: u16) -> Reason {
        match code {
            // The kernel has no such return for any filter.
            0x0e => Reason::IllegalCode(code),
            _ => Reason::IllegalSocketCode(code),
        }
    }

    fn check_load(load: &Load) -> Result<(), Reason> {
        match load {
            Load::Absolute(_, offset) if *offset >= Ancillary::FIRST_OFFSET => {
                Err(Reason::UnknownAncillary(*offset))
            }
            _ => Ok(()),
        }
    }

    fn check_extra(extra: &Extra) -> Result<(), Reason> {
        match extra {
            Extra::Mod(Operand::K(0)) => Err(Reason::RemainderByZero),
            _ => Ok(()),
        }
    }
}

impl Program {
    /// The most instructions, `BPF_MAXINSNS`.
    pub const MAX_INSNS: usize = crate::Program::MAX_INSNS;

    /// Checks a list and converts it to a program.
    ///
    /// # Errors
    /// The first reason for which the kernel would reject it.
    pub fn new(insns: Vec<Insn>) -> Result<Program, InvalidProgram> {
        match problems(&insns).into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(Program { insns }),
        }
    }

    /// The same for decoded instructions.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_ops(ops: &[Op]) -> Result<Program, InvalidProgram> {
        Program::new(ops.iter().map(|op| Insn::from(*op)).collect())
    }

    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// The count of instructions; at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a program is never empty")]
    pub fn len(&self) -> usize {
        self.insns.len()
    }

    /// The decoded instruction at `pc`.
    ///
    /// # Panics
    /// If `pc` is outside the program.
    #[inline]
    pub fn op(&self, pc: Pc) -> Op {
        op(self.insns[pc.0]).expect("a program holds legal instructions only")
    }

    /// The decoded instructions in order.
    pub fn ops(&self) -> impl Iterator<Item = Op> {
        (0..self.len()).map(|pc| self.op(Pc(pc)))
    }

    /// The first instruction that loads an ancillary value for which `is_known` is false. `#xor_x` is computed from the
    /// registers, so it is always known.
    pub fn unanswered(&self, is_known: impl Fn(Ancillary) -> bool) -> Option<(Pc, Ancillary)> {
        self.ops().enumerate().find_map(|(pc, op)| match op {
            Op::LoadData(Load::Ancillary(_, asked))
                if asked != Ancillary::XorX && !is_known(asked) =>
            {
                Some((Pc(pc), asked))
            }
            _ => None,
        })
    }
}

/// All errors of a list, in the order of the program; empty if a socket would accept it. Linear.
pub fn problems(insns: &[Insn]) -> Vec<InvalidProgram> {
    if insns.len() > Program::MAX_INSNS {
        return validate::of_list(Reason::TooLongForSocket {
            len_insns: insns.len(),
        });
    }
    validate::problems_of::<Sockets>(insns)
}
