//! The kernel's checker.

use crate::insn::Insn;
use crate::program::Pc;

/// Why the kernel refuses a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidProgram {
    /// The offending instruction.
    pub pc: Pc,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There are no instructions.
    Empty,
}

pub(crate) fn check(insns: &[Insn]) -> Result<(), InvalidProgram> {
    if insns.is_empty() {
        return Err(InvalidProgram {
            pc: Pc(0),
            reason: Reason::Empty,
        });
    }
    Ok(())
}
