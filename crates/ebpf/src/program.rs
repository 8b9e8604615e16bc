//! Programs: lists of instructions that every engine can follow.
//!
//! A program holds instructions of the set only, its jumps and calls lead to instructions of it, and it doesn't run
//! past its end. Whether it is safe to run - memory, registers, termination - is another question, which a checker
//! answers.

use std::error;
use std::fmt;

use tamis_abi::Endian;
pub use tamis_bpf::Pc;
use tamis_bpf::extended::Insn;

use crate::coding::{Encoded, decode};
use crate::insn::{AluOp, Op, Reg, Source};

/// A valid list of instructions, for machines of one byte order.
///
/// Places are counted in stored instructions, as displacements are: a wide one takes two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    insns: Vec<Insn>,
    /// The decoded instructions; `None` at the second half of a wide one.
    ops: Vec<Option<Op>>,
    endian: Endian,
}

/// The reason why a list is not a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidProgram {
    /// The instruction; 0 for an error of the whole list.
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
    /// There are more than [`Program::MAX_INSNS`].
    TooLong {
        /// The length.
        len_insns: usize,
    },
    /// The instruction is none of the set, or a field that it doesn't use isn't 0.
    UnknownInstruction(Insn),
    /// A shift by a constant that the operands' width doesn't have.
    Shift {
        /// The constant.
        distance: i32,
        /// The width.
        width_bits: u32,
    },
    /// A division by the constant 0, or its remainder.
    DivisionByZero,
    /// A jump or call that leads outside.
    TargetOutside {
        /// Where it leads.
        target: i64,
    },
    /// A jump or call that leads to the second half of a wide instruction.
    TargetInside {
        /// The second half.
        target: Pc,
    },
    /// The program continues behind the last instruction.
    RunsPastEnd,
    /// The register of the frame would be written.
    WritesFrame,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Empty => f.write_str("the program is empty"),
            Reason::TooLong { len_insns } => write!(
                f,
                "the program has {len_insns} instructions, more than {}",
                Program::MAX_INSNS
            ),
            Reason::UnknownInstruction(insn) => {
                let bytes = insn.to_bytes(Endian::Little);
                f.write_str("not an instruction:")?;
                bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
            Reason::Shift {
                distance,
                width_bits,
            } => write!(
                f,
                "shift of {width_bits} bits by {distance}; the kernel takes constants of 0 to {}",
                width_bits - 1
            ),
            Reason::DivisionByZero => f.write_str("division by the constant 0"),
            Reason::TargetOutside { target } => {
                write!(f, "jump to instruction {target}, outside the program")
            }
            Reason::TargetInside { target: Pc(target) } => write!(
                f,
                "jump to instruction {target}, the second half of a wide instruction"
            ),
            Reason::RunsPastEnd => f.write_str("the program runs past its end"),
            Reason::WritesFrame => f.write_str("r10 can't be written"),
        }
    }
}

impl fmt::Display for InvalidProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvalidProgram { pc: Pc(pc), reason } = self;
        write!(f, "instruction {pc}: {reason}")
    }
}

impl error::Error for InvalidProgram {}

impl Program {
    /// The most instructions of a program, the kernel's `BPF_COMPLEXITY_LIMIT_INSNS`.
    pub const MAX_INSNS: usize = 1_000_000;

    /// Checks a list and decodes it.
    ///
    /// # Errors
    /// The first mistake.
    pub fn new(insns: Vec<Insn>, endian: Endian) -> Result<Program, InvalidProgram> {
        let whole = |reason| InvalidProgram { pc: Pc(0), reason };
        let len_insns = insns.len();
        if len_insns == 0 {
            return Err(whole(Reason::Empty));
        }
        if len_insns > Program::MAX_INSNS {
            return Err(whole(Reason::TooLong { len_insns }));
        }
        let mut ops = Vec::with_capacity(len_insns);
        while ops.len() < len_insns {
            let pc = ops.len();
            let op = decode(&insns[pc..]).ok_or_else(|| InvalidProgram {
                pc: Pc(pc),
                reason: refusal(insns[pc]),
            })?;
            ops.push(Some(op));
            ops.resize(pc + op.places(), None);
        }
        let program = Program { insns, ops, endian };
        for (pc, op) in program.ops() {
            let at = |reason| InvalidProgram { pc, reason };
            program.check_op(pc, op).map_err(at)?;
        }
        Ok(program)
    }

    /// Encodes a list and checks it.
    ///
    /// # Errors
    /// The first mistake.
    pub fn from_ops(ops: &[Op], endian: Endian) -> Result<Program, InvalidProgram> {
        let insns = ops
            .iter()
            .flat_map(|op| Encoded::from(*op).insns().to_vec());
        Program::new(insns.collect(), endian)
    }

    fn check_op(&self, pc: Pc, op: Op) -> Result<(), Reason> {
        let skip = match op {
            Op::CallLocal(skip) => Some(skip),
            other => other.skip(),
        };
        if let Some(skip) = skip {
            let target = pc.0 as i64 + 1 + i64::from(skip);
            let place = usize::try_from(target).ok();
            match place.and_then(|place| self.ops.get(place)) {
                None => return Err(Reason::TargetOutside { target }),
                Some(None) => {
                    let target = Pc(target as usize);
                    return Err(Reason::TargetInside { target });
                }
                Some(Some(_)) => {}
            }
        }
        if op.falls_through() && pc.0 + op.places() == self.len() {
            return Err(Reason::RunsPastEnd);
        }
        match op.destination() {
            Some(Reg::FRAME) => Err(Reason::WritesFrame),
            _ => Ok(()),
        }
    }

    /// The byte order of its machines.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// The instructions as they are stored.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// The count of stored instructions; at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a program is never empty")]
    pub fn len(&self) -> usize {
        self.insns.len()
    }

    /// The instruction at a place; `None` outside the program and in the second half of a wide instruction.
    pub fn op(&self, pc: Pc) -> Option<Op> {
        self.ops.get(pc.0).copied().flatten()
    }

    /// The instructions with their places, in order.
    pub fn ops(&self) -> impl Iterator<Item = (Pc, Op)> {
        let places = self.ops.iter().enumerate();
        places.filter_map(|(pc, op)| op.map(|op| (Pc(pc), op)))
    }

    /// The raw form, `struct bpf_insn[]` in the byte order of its machines.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.insns.iter().map(|insn| insn.to_bytes(self.endian));
        bytes.flatten().collect()
    }
}

/// The reason why an instruction doesn't decode: a constant that its operation doesn't take, or anything else.
fn refusal(insn: Insn) -> Reason {
    match decode(&[Insn { imm: 1, ..insn }]) {
        Some(Op::Alu(width, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, _, Source::Imm(_))) => {
            Reason::Shift {
                distance: insn.imm,
                width_bits: width.size().bits().count(),
            }
        }
        Some(Op::Alu(_, _, _, Source::Imm(_))) => Reason::DivisionByZero,
        _ => Reason::UnknownInstruction(insn),
    }
}

/// The instruction that a jump, branch or call at `pc` leads to.
///
/// # Panics
/// Outside of programs: inside them no target is negative.
pub fn target(pc: Pc, skip: i32) -> Pc {
    let target = pc.0 as i64 + 1 + i64::from(skip);
    Pc(usize::try_from(target).expect("targets are inside the program"))
}

/// Splits raw bytes into instructions without checking them; `None` if the length is not a multiple of eight.
pub fn insns_from_bytes(bytes: &[u8], endian: Endian) -> Option<Vec<Insn>> {
    let (chunks, rest) = bytes.as_chunks::<{ Insn::SIZE_BYTES }>();
    let insns = chunks.iter().map(|raw| Insn::from_bytes(*raw, endian));
    rest.is_empty().then(|| insns.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insn::Width;

    const MOVE: Op = Op::Alu(Width::W64, AluOp::Mov, Reg::R0, Source::Imm(0));

    fn reason(ops: &[Op]) -> Option<(usize, Reason)> {
        let error = Program::from_ops(ops, Endian::Little).err()?;
        Some((error.pc.0, error.reason))
    }

    #[test]
    fn jumps_stay_inside_and_do_not_split_a_wide_instruction() {
        let wide = Op::LoadImm64(Reg::R0, 1);
        assert_eq!(reason(&[wide, Op::Exit]), None);
        let into = Reason::TargetInside { target: Pc(2) };
        assert_eq!(reason(&[Op::Jump(1), wide, Op::Exit]), Some((0, into)));
        let outside = |target| Reason::TargetOutside { target };
        assert_eq!(reason(&[Op::JumpFar(-2), Op::Exit]), Some((0, outside(-1))));
        assert_eq!(
            reason(&[MOVE, Op::Exit, Op::CallLocal(7), Op::Exit]),
            Some((2, outside(10)))
        );
        assert_eq!(
            reason(&[Op::JumpFar(i32::MAX), Op::Exit]),
            Some((0, outside(1 << 31)))
        );
    }

    #[test]
    fn the_end_is_not_passed_and_the_frame_is_not_written() {
        assert_eq!(reason(&[]), Some((0, Reason::Empty)));
        assert_eq!(reason(&[MOVE]), Some((0, Reason::RunsPastEnd)));
        assert_eq!(reason(&[MOVE, Op::Jump(-2)]), None);
        let write = Op::Neg(Width::W64, Reg::FRAME);
        assert_eq!(reason(&[write, Op::Exit]), Some((0, Reason::WritesFrame)));
        let half = Encoded::from(Op::LoadImm64(Reg::R0, 1)).insns()[..1].to_vec();
        let error = Program::new(half.clone(), Endian::Little).unwrap_err();
        assert_eq!(error.reason, Reason::UnknownInstruction(half[0]));
    }

    #[test]
    fn constants_that_an_operation_refuses_are_named_by_their_rule() {
        let alu = |width, alu, k| {
            let reason = reason(&[Op::Alu(width, alu, Reg::R0, Source::Imm(k)), Op::Exit]);
            reason.map(|(_, reason)| reason)
        };
        let shift = |distance, width_bits| {
            Some(Reason::Shift {
                distance,
                width_bits,
            })
        };
        assert_eq!(alu(Width::W32, AluOp::Lsh, 31), None);
        assert_eq!(alu(Width::W32, AluOp::Lsh, 32), shift(32, 32));
        assert_eq!(alu(Width::W64, AluOp::Arsh, -1), shift(-1, 64));
        for op in [AluOp::Div, AluOp::Mod, AluOp::SDiv, AluOp::SMod] {
            assert_eq!(alu(Width::W64, op, 0), Some(Reason::DivisionByZero));
        }
    }

    #[test]
    fn raw_bytes_are_read_back() {
        for endian in [Endian::Little, Endian::Big] {
            let program = Program::from_ops(&[Op::LoadImm64(Reg::R0, 1 << 33), Op::Exit], endian);
            let program = program.unwrap();
            let bytes = program.to_bytes();
            assert_eq!(insns_from_bytes(&bytes, endian).unwrap(), program.insns());
            assert_eq!(insns_from_bytes(&bytes[1..], endian), None);
        }
    }
}
