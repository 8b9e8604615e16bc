//! The checker: whether a program is safe to run.
//!
//! It follows every path through a program with the known state of registers and stack, like the kernel's verifier. An
//! accepted program never faults in the [interpreter](crate::interp): registers and bytes of the stack are written
//! before they are read, addresses come from the context and the frames by additions with known bounds, every access is
//! inside, helpers get valid arguments, and the program ends. A refusal has the instruction, the rule and the path to
//! it.
//!
//! Loops are followed round by round, so they are accepted if the numbers that end them are known and the
//! [limit](Options::max_steps) is not reached. It is stricter than the kernel in some rules: pointers are neither
//! compared nor returned, each access to the stack is aligned, and the stack is written before it is read.

use std::error;
use std::fmt;

use crate::insn::Reg;
use crate::memory::Helpers;
use crate::program::{Pc, Program};

mod access;
mod layout;
mod range;
mod state;
pub(crate) mod structure;
mod walk;

pub use access::{Access, Accesses};
pub use layout::{Field, Layout};

/// How strict the checker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most instructions that are followed, over all ways.
    pub max_steps: usize,
    /// Whether code is permitted that nothing reaches. The kernel's verifier refuses it; many classic filters have some.
    pub permits_unreachable: bool,
}

impl Default for Options {
    /// 100,000 instructions and no code that nothing reaches.
    fn default() -> Options {
        Options {
            max_steps: 100_000,
            permits_unreachable: false,
        }
    }
}

/// A program that passed the check, with a context of a layout and helpers with some signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    program: Program,
    accesses: Accesses,
}

impl Checked {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The memory accesses of its instructions.
    pub fn accesses(&self) -> &Accesses {
        &self.accesses
    }
}

/// The reason why a program isn't accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The instruction.
    pub pc: Pc,
    /// The violated rule.
    pub rule: Rule,
    /// The instructions before it in the order of their execution; empty if the rule is not about a way.
    pub path: Vec<Pc>,
}

/// A rule that a program breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Every instruction must be reachable, if requested.
    Unreachable,
    /// Jumps stay in their function, and no function runs into the next one.
    LeavesFunction,
    /// A register has a value before it is read.
    UnsetRegister(Reg),
    /// Bytes of the stack are written before they are read.
    UnsetStack,
    /// An access to the stack lies in the frame.
    OutsideStack,
    /// An access to the stack is aligned to its size, and of one byte if its place isn't known.
    MisalignedStack,
    /// A pointer on the stack is read as it was stored.
    PartOfPointer,
    /// An access to the context lies at a known place in a field that permits it.
    OutsideContext,
    /// The address of an access is a pointer.
    NumberAsAddress,
    /// Pointers are moved, stored on the stack, and added to.
    PointerAsNumber,
    /// A number that is added to a pointer has known bounds.
    UnboundedOffset,
    /// Loads from the packet need the context in r6, and are in the program itself, not in its functions.
    PacketNeedsContext,
    /// A helper is registered.
    UnknownHelper(i32),
    /// A helper must get a valid argument.
    HelperArgument(Reg),
    /// Calls are at most seven deep.
    TooManyFrames,
    /// Functions that call themselves, or each other, are at most seven calls deep, too.
    Recursion,
    /// The program ends: the same state comes again.
    EndlessLoop,
    /// The check ends within its limit.
    TooComplex,
    /// The value of r0 at an end is a number.
    ReturnsPointer,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Unreachable => "nothing leads to this instruction",
            Rule::LeavesFunction => "this leads from one function into another",
            Rule::UnsetRegister(reg) => return write!(f, "{reg} has no value"),
            Rule::UnsetStack => "bytes of the stack are read that are not written yet",
            Rule::OutsideStack => "the access does not lie in the frame of 512 bytes",
            Rule::MisalignedStack => "the access to the stack is not aligned to its size",
            Rule::PartOfPointer => "a part of a pointer is read",
            Rule::OutsideContext => "the context has no field that permits this access",
            Rule::NumberAsAddress => "the address is not a pointer",
            Rule::PointerAsNumber => "a pointer is used as a number",
            Rule::UnboundedOffset => "the offset that is added to a pointer has no bounds",
            Rule::PacketNeedsContext => {
                "a load from the packet needs the context in r6, and can't be in a function"
            }
            Rule::UnknownHelper(number) => return write!(f, "there is no helper {number}"),
            Rule::HelperArgument(reg) => {
                return write!(f, "the helper can't take what {reg} has");
            }
            Rule::TooManyFrames => "calls are nested more than seven deep",
            Rule::Recursion => "recursion: calls are nested more than seven deep",
            Rule::EndlessLoop => "the program may not end: it comes here again with the same state",
            Rule::TooComplex => "the limit of the check is reached",
            Rule::ReturnsPointer => "the result is a pointer",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal {
            pc: Pc(pc), rule, ..
        } = self;
        write!(f, "instruction {pc}: {rule}")
    }
}

impl error::Error for Refusal {}

impl Refusal {
    /// A refusal that isn't about a way.
    const fn at(pc: Pc, rule: Rule) -> Refusal {
        Refusal {
            pc,
            rule,
            path: Vec::new(),
        }
    }
}

/// Checks a program for a context and with the helpers' signatures.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_ebpf_vm::check::{Layout, Options, Rule, check};
/// use tamis_ebpf_vm::memory::Helpers;
/// use tamis_ebpf_vm::{Op, Program};
/// let program = Program::from_ops(&[Op::Exit], Endian::Little).unwrap();
/// let refusal = check(program, &Layout::none(), &Helpers::none(), &Options::default()).unwrap_err();
/// assert_eq!(refusal.to_string(), "instruction 0: r0 has no value");
/// ```
///
/// # Errors
/// The first refusal.
pub fn check(
    program: Program,
    layout: &Layout,
    helpers: &Helpers<'_>,
    options: &Options,
) -> Result<Checked, Refusal> {
    let structure = structure::find(&program, options)?;
    let walked = walk::walk(&program, &structure, layout, helpers, options)?;
    Ok(Checked {
        program,
        accesses: walked.accesses,
    })
}

#[cfg(test)]
mod tests;
