//! The kernel's checker: the instruction lists that it accepts as seccomp filters.
//!
//! Three functions of the kernel decide: `bpf_check_classic` and `check_load_and_stores` in `net/core/filter.c`,
//! and `seccomp_check_filter` in `kernel/seccomp.c`, which further restricts codes and loads. This module has the
//! same answer and names the violated rule. Problems are reported in the order of the program, not of the kernel's
//! passes.
//!
//! The kernel's limit of 4096 instructions is checked by
//! [`Program::is_installable`](crate::Program::is_installable): longer lists are useful as input.
//!
//! Sockets accept more than seccomp; the difference is a `Machine`, and [`packet::Program`](crate::packet::Program) is
//! checked by the same code.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;

use tamis_abi::Word;

use crate::insn::{AluOp, Insn, Op, Operand, Operation};
use crate::program::{Pc, Program};

/// The number of scratch memory slots, `BPF_MEMWORDS`.
pub const SLOTS: u32 = 16;

/// The size of `struct seccomp_data`, the value of `ld len`.
pub const DATA_SIZE_BYTES: u32 = Word::COUNT as u32 * 4;

/// The reason why the kernel rejects a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidProgram {
    /// The invalid instruction; 0 for an error of the whole list.
    pub pc: Pc,
    /// The error.
    pub reason: Reason,
}

/// An error of an instruction or of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There are no instructions.
    Empty,
    /// There are more than [`Program::MAX_INPUT_INSNS`] instructions.
    TooLong {
        /// The length.
        len_insns: usize,
    },
    /// The code is not an instruction, or one that seccomp rejects.
    IllegalCode(u16),
    /// The code is not an instruction of a socket's filter.
    IllegalSocketCode(u16),
    /// There are more than [`Program::MAX_INSNS`] instructions in a socket's filter.
    TooLongForSocket {
        /// The length.
        len_insns: usize,
    },
    /// A load of a word that does not start at 0, 4, … 60.
    DataOffset(u32),
    /// A load or store of a scratch slot from 16 on.
    Slot(u32),
    /// A load from the offsets of values beside the packet that is none of them.
    UnknownAncillary(u32),
    /// A division by the constant 0.
    DivisionByZero,
    /// A remainder of a division by the constant 0.
    RemainderByZero,
    /// A shift by a constant of 32 or more.
    Shift(u32),
    /// A jump past the last instruction.
    JumpOutside {
        /// The target; at least the length of the program.
        target: u64,
    },
    /// A jump whose distance is negative if it is taken for a signed number.
    JumpBack {
        /// The distance without its sign.
        back: u32,
    },
    /// The last instruction is not a return.
    LastNotReturn,
    /// A load of a scratch slot that may not have been written.
    UnwrittenSlot(u32),
}

impl Reason {
    /// The violated rule, as a sentence without a full stop.
    pub const fn rule(self) -> &'static str {
        match self {
            Reason::Empty => "a filter has at least one instruction",
            Reason::TooLong { .. } => "tamis reads programs of at most 2^20 instructions",
            Reason::IllegalCode(code) => rule_for_code(code),
            Reason::IllegalSocketCode(_) => {
                "the 16-bit code must be exactly that of an instruction of classic BPF"
            }
            Reason::TooLongForSocket { .. } => "a socket takes at most 4096 instructions",
            Reason::DataOffset(_) => {
                "a filter reads 16 words, at the byte offsets 0, 4, and so on up to 60"
            }
            Reason::Slot(_) => "the scratch memory has the slots 0 to 15",
            Reason::UnknownAncillary(_) => {
                "offsets from 0xfffff000 on are values beside the packet: 16, each 4 apart"
            }
            Reason::DivisionByZero | Reason::RemainderByZero => {
                "the kernel rejects a division by the constant 0"
            }
            Reason::Shift(_) => "the kernel rejects a shift by a constant of 32 or more",
            Reason::JumpOutside { .. } => "both targets of a jump must be inside the program",
            Reason::JumpBack { .. } => "jumps lead forwards only: a distance has no sign",
            Reason::LastNotReturn => "the last instruction is `ret #k` or `ret a`",
            Reason::UnwrittenSlot(_) => {
                "a scratch slot is written on every path before it is read; code behind a `ret` \
                 counts as following it"
            }
        }
    }
}

/// The rule for a rejected code, with the most similar valid instruction.
const fn rule_for_code(code: u16) -> &'static str {
    match code {
        0x28 | 0x30 | 0x40 | 0x48 | 0x50 | 0xb1 => {
            "seccomp loads whole words of its data only: `ld [k]`"
        }
        0x94 | 0x9c => "classic BPF has a remainder operation, but seccomp rejects it",
        0x0e => "`ret x` does not exist in Linux; use `txa` and `ret a`",
        _ => "the 16-bit code must be exactly that of an instruction allowed by seccomp",
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Empty => f.write_str("the program is empty"),
            Reason::TooLong { len_insns } => {
                write!(f, "the program has {len_insns} instructions")
            }
            Reason::TooLongForSocket { len_insns } => {
                write!(f, "the program has {len_insns} instructions")
            }
            Reason::IllegalCode(code) | Reason::IllegalSocketCode(code) => {
                write!(f, "code {code:#06x} is not allowed in a filter")
            }
            Reason::DataOffset(offset) => write!(f, "load from illegal offset {offset}"),
            Reason::Slot(slot) => write!(f, "scratch slot {slot} does not exist"),
            Reason::UnknownAncillary(offset) => {
                write!(f, "load from offset {offset:#x}, which has no meaning")
            }
            Reason::DivisionByZero => f.write_str("division by the constant 0"),
            Reason::RemainderByZero => f.write_str("remainder of a division by the constant 0"),
            Reason::Shift(distance) => write!(f, "shift by {distance}"),
            Reason::JumpOutside { target } => {
                write!(f, "jump to instruction {target}, behind the last one")
            }
            Reason::JumpBack { back } => {
                let instructions = if *back == 1 {
                    "instruction"
                } else {
                    "instructions"
                };
                write!(f, "jump back by {back} {instructions}")
            }
            Reason::LastNotReturn => f.write_str("the last instruction is not a return"),
            Reason::UnwrittenSlot(slot) => {
                write!(f, "scratch slot {slot} may be read before it is written")
            }
        }
    }
}

impl fmt::Display for InvalidProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvalidProgram { pc, reason } = self;
        write!(f, "instruction {}: {reason}; {}", pc.0, reason.rule())
    }
}

impl Error for InvalidProgram {}

/// The instructions that a machine accepts in addition to the common ones.
pub(crate) trait Machine {
    /// The source of its loads from the input.
    type Load;
    /// Its own instructions.
    type Extra;

    /// The decoded instruction, if it has the code.
    fn op(insn: Insn) -> Option<Operation<Self::Load, Self::Extra>>;

    /// The reason for a code that it doesn't have.
    fn illegal(code: u16) -> Reason;

    /// Checks a load from the input.
    fn check_load(load: &Self::Load) -> Result<(), Reason>;

    /// Checks an instruction of its own.
    fn check_extra(extra: &Self::Extra) -> Result<(), Reason>;
}

/// The machine of seccomp.
pub(crate) struct Seccomp;

impl Machine for Seccomp {
    type Load = u32;
    type Extra = Infallible;

    fn op(insn: Insn) -> Option<Op> {
        insn.op()
    }

    fn illegal(code: u16) -> Reason {
        Reason::IllegalCode(code)
    }

    fn check_load(offset: &u32) -> Result<(), Reason> {
        if !offset.is_multiple_of(4) || *offset >= DATA_SIZE_BYTES {
            Err(Reason::DataOffset(*offset))
        } else {
            Ok(())
        }
    }

    fn check_extra(extra: &Infallible) -> Result<(), Reason> {
        match *extra {}
    }
}

/// All errors of a list, in the order of the program; empty if the kernel would accept it (except for its limit of
/// 4096 instructions). Linear.
///
/// As in the kernel, slots are checked only if there are no other errors: otherwise there is no valid control flow.
pub fn problems(insns: &[Insn]) -> Vec<InvalidProgram> {
    let len_insns = insns.len();
    if len_insns > Program::MAX_INPUT_INSNS {
        return of_list(Reason::TooLong { len_insns });
    }
    problems_of::<Seccomp>(insns)
}

/// An error of the whole list.
pub(crate) fn of_list(reason: Reason) -> Vec<InvalidProgram> {
    vec![InvalidProgram { pc: Pc(0), reason }]
}

/// The same for any machine and length.
pub(crate) fn problems_of<M: Machine>(insns: &[Insn]) -> Vec<InvalidProgram> {
    let len_insns = insns.len();
    let Some(last) = insns.last() else {
        return of_list(Reason::Empty);
    };
    let mut ops = Vec::with_capacity(len_insns);
    let mut found = Vec::new();
    for (pc, insn) in insns.iter().enumerate() {
        let behind = (len_insns - pc - 1) as u64;
        let checked = M::op(*insn)
            .ok_or_else(|| M::illegal(insn.code))
            .and_then(|op| check_op::<M>(&op, pc as u64, behind).map(|()| op));
        match checked {
            Ok(op) => ops.push(op),
            Err(reason) => found.push(InvalidProgram { pc: Pc(pc), reason }),
        }
    }
    if let Some(op) = M::op(*last)
        && !matches!(op, Operation::RetImm(_) | Operation::RetA)
    {
        found.push(InvalidProgram {
            pc: Pc(len_insns - 1),
            reason: Reason::LastNotReturn,
        });
    }
    if found.is_empty() {
        found = unwritten_slots(&ops);
    }
    found
}

/// Checks one instruction with `behind` instructions after it.
fn check_op<M: Machine>(
    op: &Operation<M::Load, M::Extra>,
    pc: u64,
    behind: u64,
) -> Result<(), Reason> {
    let jump = |skip: u64| match i32::try_from(skip) {
        _ if skip < behind => Ok(()),
        Ok(_) => Err(Reason::JumpOutside {
            target: pc + 1 + skip,
        }),
        Err(_) => Err(Reason::JumpBack {
            back: (skip as u32).wrapping_neg(),
        }),
    };
    match op {
        Operation::LoadData(load) => M::check_load(load),
        Operation::LoadMem(slot)
        | Operation::LoadXMem(slot)
        | Operation::Store(slot)
        | Operation::StoreX(slot)
            if *slot >= SLOTS =>
        {
            Err(Reason::Slot(*slot))
        }
        Operation::Alu(AluOp::Div, Operand::K(0)) => Err(Reason::DivisionByZero),
        Operation::Alu(AluOp::Lsh | AluOp::Rsh, Operand::K(distance)) if *distance >= 32 => {
            Err(Reason::Shift(*distance))
        }
        Operation::Jump(skip) => jump(u64::from(*skip)),
        Operation::Branch { jt, jf, .. } => {
            jump(u64::from(*jt)).and_then(|()| jump(u64::from(*jf)))
        }
        Operation::Extra(extra) => M::check_extra(extra),
        _ => Ok(()),
    }
}

/// Reads of slots that some path has not written, computed as in the kernel: one pass over the list that keeps, for
/// each instruction, the slots written on every path to it.
///
/// After a jump only its targets count, so dead code there may read anything; after a return the kernel continues
/// as if it were executed, and so does this.
fn unwritten_slots<L, E>(ops: &[Operation<L, E>]) -> Vec<InvalidProgram> {
    const ALL: u16 = u16::MAX;
    let mut written_before = vec![ALL; ops.len()];
    let mut written = 0;
    let mut found = Vec::new();
    for (pc, op) in ops.iter().enumerate() {
        written &= written_before[pc];
        match *op {
            Operation::Store(slot) | Operation::StoreX(slot) => written |= 1 << slot,
            Operation::LoadMem(slot) | Operation::LoadXMem(slot) if written & (1 << slot) == 0 => {
                found.push(InvalidProgram {
                    pc: Pc(pc),
                    reason: Reason::UnwrittenSlot(slot),
                });
            }
            Operation::Jump(skip) => {
                written_before[pc + 1 + skip as usize] &= written;
                written = ALL;
            }
            Operation::Branch { jt, jf, .. } => {
                for skip in [jt, jf] {
                    written_before[pc + 1 + usize::from(skip)] &= written;
                }
                written = ALL;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insn::Test;

    const RET: Op = Op::RetImm(0);

    fn verdict(ops: &[Op]) -> Vec<(usize, Reason)> {
        let insns: Vec<Insn> = ops.iter().copied().map(Insn::from).collect();
        let problems = problems(&insns).into_iter();
        problems.map(|found| (found.pc.0, found.reason)).collect()
    }

    fn branch(jt: u8, jf: u8) -> Op {
        Op::Branch {
            test: Test::Eq,
            operand: Operand::X,
            jt,
            jf,
        }
    }

    #[test]
    fn the_shortest_programs_are_one_return() {
        assert_eq!(verdict(&[RET]), []);
        assert_eq!(verdict(&[Op::RetA]), []);
        assert_eq!(verdict(&[]), [(0, Reason::Empty)]);
        assert_eq!(verdict(&[Op::Tax]), [(0, Reason::LastNotReturn)]);
    }

    #[test]
    fn data_words_start_at_multiples_of_four_below_64() {
        for offset in 0..80 {
            let legal = offset % 4 == 0 && offset <= 60;
            assert_eq!(
                verdict(&[Op::LoadData(offset), RET]).is_empty(),
                legal,
                "{offset}"
            );
        }
    }

    #[test]
    fn constants_out_of_range_are_reported_each_at_its_place() {
        let bad = [
            Op::Alu(AluOp::Div, Operand::K(0)),
            Op::Alu(AluOp::Lsh, Operand::K(32)),
            Op::Store(16),
            Op::LoadXMem(16),
            RET,
        ];
        let expected = [
            (0, Reason::DivisionByZero),
            (1, Reason::Shift(32)),
            (2, Reason::Slot(16)),
            (3, Reason::Slot(16)),
        ];
        assert_eq!(verdict(&bad), expected);
        let good = [
            Op::Alu(AluOp::Div, Operand::K(1)),
            Op::Alu(AluOp::Rsh, Operand::K(31)),
            Op::Store(15),
            Op::LoadXMem(15),
            RET,
        ];
        assert_eq!(verdict(&good), []);
    }

    #[test]
    fn jumps_end_inside() {
        assert_eq!(verdict(&[Op::Jump(0), RET]), []);
        let outside = |target| [(0, Reason::JumpOutside { target })];
        assert_eq!(verdict(&[Op::Jump(1), RET]), outside(2));
        let back = |back| [(0, Reason::JumpBack { back })];
        assert_eq!(verdict(&[Op::Jump(u32::MAX), RET]), back(1));
        assert_eq!(verdict(&[Op::Jump(1 << 31), RET]), back(1 << 31));
        assert_eq!(verdict(&[Op::Jump(i32::MAX as u32), RET]), outside(1 << 31));
        assert_eq!(verdict(&[branch(0, 0), RET]), []);
        assert_eq!(verdict(&[branch(1, 0), RET]), outside(2));
        assert_eq!(verdict(&[branch(0, 9), RET]), outside(10));
    }

    #[test]
    fn a_slot_must_be_written_on_both_sides_of_a_branch() {
        let one_side = [branch(0, 1), Op::Store(3), Op::LoadMem(3), RET];
        assert_eq!(verdict(&one_side), [(2, Reason::UnwrittenSlot(3))]);
        let both = [
            branch(0, 2),
            Op::Store(3),
            Op::Jump(1),
            Op::StoreX(3),
            Op::LoadMem(3),
            RET,
        ];
        assert_eq!(verdict(&both), []);
    }

    #[test]
    fn dead_code_may_read_any_slot_behind_a_jump_but_not_behind_a_return() {
        assert_eq!(verdict(&[Op::Jump(1), Op::LoadMem(0), RET]), []);
        let behind_return = [RET, Op::LoadMem(0), RET];
        assert_eq!(verdict(&behind_return), [(1, Reason::UnwrittenSlot(0))]);
    }

    #[test]
    fn every_reason_reads_as_a_fragment_and_a_rule() {
        let found = InvalidProgram {
            pc: Pc(7),
            reason: Reason::IllegalCode(0x94),
        };
        let text = found.to_string();
        assert!(
            text.starts_with("instruction 7: code 0x0094 is not allowed"),
            "{text}"
        );
        assert!(text.ends_with("seccomp rejects it"), "{text}");
    }
}
