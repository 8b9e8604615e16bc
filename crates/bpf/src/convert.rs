//! The conversion of a classic program to extended BPF, as the kernel does it.
//!
//! The kernel does not run classic BPF: `bpf_convert_filter` in `net/core/filter.c` translates every instruction to
//! one or more extended ones, without optimisation. [`expand`] is that translation of one instruction. The lengths
//! that limits and costs are counted in ([`ebpf_len`](crate::ebpf_len)) are the lengths of its results, and
//! [`convert`] joins them to a program.
//!
//! Fields that an instruction does not use are 0 here; the kernel leaves the values of the classic instruction there.
//! Constant blinding (`bpf_jit_harden`) and additions of a just-in-time compiler come later and are not part of it.

mod packet;

use std::error::Error;
use std::fmt;

use crate::extended::{Insn, code};
use crate::insn::{AluOp, Op, Operand, Operation, Test};
use crate::program::{Pc, Program};
use crate::validate::DATA_SIZE_BYTES;

pub use packet::{context, convert_packet, expand_packet, helper};

/// The registers of a converted program that hold the state of the classic machine.
pub mod register {
    /// A, which is also the register of the return value.
    pub const A: u8 = 0;
    /// The context at entry, and the first argument of calls.
    pub const ARG1: u8 = 1;
    /// For constants that do not fit in a comparison, and the second argument of calls.
    pub const TMP: u8 = 2;
    /// The third argument of calls.
    pub const ARG3: u8 = 3;
    /// The fourth argument of calls.
    pub const ARG4: u8 = 4;
    /// The context.
    pub const CTX: u8 = 6;
    /// X.
    pub const X: u8 = 7;
    /// The address of a packet's bytes.
    pub const DATA: u8 = 8;
    /// How many of them lie there.
    pub const HEAD_LEN: u8 = 9;
    /// The frame, above the scratch memory.
    pub const FRAME: u8 = 10;
}

/// An extended instruction, and for jumps between classic instructions the distance in these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The instruction. Its displacement is that of a jump inside the expansion, or 0 if there is a `skip`.
    pub insn: Insn,
    /// How many classic instructions to skip.
    pub skip: Option<u32>,
}

/// A program whose converted form has a jump of more than 2^15 instructions. At most 4096 classic instructions can't
/// make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpTooFar {
    /// The classic jump.
    pub pc: Pc,
}

impl fmt::Display for JumpTooFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JumpTooFar { pc: Pc(pc) } = self;
        write!(
            f,
            "the jump at {pc} is too far for extended BPF, whose displacements have 16 bits"
        )
    }
}

impl Error for JumpTooFar {}

/// The kernel's first instructions of every program: A and X are 0, and the context is in a register that calls
/// preserve.
pub const PROLOGUE: [Insn; 3] = [
    alu32(code::XOR, register::A, register::A),
    alu32(code::XOR, register::X, register::X),
    mov64(register::CTX, register::ARG1),
];

/// The converted program.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::{Op, Program, convert::convert};
/// let program = Program::new(vec![Op::RetImm(7).into()], Endian::Little).unwrap();
/// let converted = convert(&program).unwrap();
/// assert_eq!(converted.iter().map(|insn| insn.code).collect::<Vec<u8>>(), [0xac, 0xac, 0xbf, 0xb4, 0x95]);
/// ```
///
/// # Errors
/// [`JumpTooFar`], only for programs that are not [installable](Program::is_installable).
pub fn convert(program: &Program) -> Result<Vec<Insn>, JumpTooFar> {
    joined(PROLOGUE.to_vec(), program.ops(), |op, mut emit| {
        expand(op, &mut emit);
    })
}

/// The instructions before the program and the expansions of its instructions, with the distances of jumps between
/// these.
fn joined<O>(
    mut insns: Vec<Insn>,
    ops: impl Iterator<Item = O>,
    expand: impl Fn(O, &mut dyn FnMut(Step)),
) -> Result<Vec<Insn>, JumpTooFar> {
    let mut starts = Vec::new();
    // The place of a jump, its classic instruction and the classic target.
    let mut jumps = Vec::new();
    for (pc, op) in ops.enumerate() {
        starts.push(insns.len());
        expand(op, &mut |step| {
            if let Some(skip) = step.skip {
                jumps.push((insns.len(), pc, pc + 1 + skip as usize));
            }
            insns.push(step.insn);
        });
    }
    for (at, pc, target) in jumps {
        let distance = starts[target] - at - 1;
        insns[at].offset = i16::try_from(distance).map_err(|_| JumpTooFar { pc: Pc(pc) })?;
    }
    Ok(insns)
}

/// Gives `emit` the extended instructions of one classic instruction, in order.
pub fn expand(op: Op, emit: &mut impl FnMut(Step)) {
    let length = |reg| mov32(reg, DATA_SIZE_BYTES);
    match common(op, length, emit) {
        None => {}
        Some(Own::Load(offset)) => emit(plain(load(
            code::W,
            register::A,
            register::CTX,
            offset as i16,
        ))),
        Some(Own::Extra(extra)) => match extra {},
    }
}

/// An instruction that the machines of seccomp and of sockets don't have in common.
enum Own<L, E> {
    Load(L),
    Extra(E),
}

/// Expands an instruction, unless it is one that the machine expands itself. `length` moves the length of the input to
/// a register.
fn common<L, E>(
    op: Operation<L, E>,
    length: impl Fn(u8) -> Insn,
    emit: &mut impl FnMut(Step),
) -> Option<Own<L, E>> {
    match op {
        Operation::LoadData(load) => return Some(Own::Load(load)),
        Operation::Extra(extra) => return Some(Own::Extra(extra)),
        Operation::LoadImm(k) => emit(plain(mov32(register::A, k))),
        Operation::LoadXImm(k) => emit(plain(mov32(register::X, k))),
        Operation::LoadLen => emit(plain(length(register::A))),
        Operation::LoadXLen => emit(plain(length(register::X))),
        Operation::LoadMem(slot) => emit(plain(load_slot(register::A, slot))),
        Operation::LoadXMem(slot) => emit(plain(load_slot(register::X, slot))),
        Operation::Store(slot) => emit(plain(store_slot(register::A, slot))),
        Operation::StoreX(slot) => emit(plain(store_slot(register::X, slot))),
        Operation::Alu(alu, operand) => alu32_operand(alu_bits(alu), operand, emit),
        Operation::Neg => emit(plain(alu32_imm(NEG, register::A, 0))),
        Operation::Tax => emit(plain(mov64(register::X, register::A))),
        Operation::Txa => emit(plain(mov64(register::A, register::X))),
        Operation::RetA => emit(plain(EXIT)),
        Operation::RetImm(k) => {
            emit(plain(mov32(register::A, k)));
            emit(plain(EXIT));
        }
        Operation::Jump(skip) => emit(jump(skip)),
        Operation::Branch {
            test,
            operand,
            jt,
            jf,
        } => branch(test, operand, [jt, jf].map(u32::from), emit),
    }
    None
}

/// Arithmetic; a division by X, or its remainder, follows a test for 0.
fn alu32_operand(bits: u8, operand: Operand, emit: &mut impl FnMut(Step)) {
    match operand {
        Operand::X => {
            if matches!(bits, DIV | MOD) {
                for insn in ENDS_IF_X_IS_ZERO {
                    emit(plain(insn));
                }
            }
            emit(plain(alu32(bits, register::A, register::X)));
        }
        constant => emit(plain(alu32_imm(bits, register::A, constant.value(0)))),
    }
}

/// A conditional jump for one side if the other side is the next instruction, else one more for the other side. No
/// test of extended BPF jumps if all bits are clear.
fn branch(test: Test, operand: Operand, [jt, jf]: [u32; 2], emit: &mut impl FnMut(Step)) {
    let (bits, inverse) = match test {
        Test::Eq => (code::JEQ, Some(code::JNE)),
        Test::Gt => (code::JGT, Some(code::JLE)),
        Test::Ge => (code::JGE, Some(code::JLT)),
        Test::Set => (code::JSET, None),
    };
    let mut compare = Insn {
        code: code::JMP,
        dst: register::A,
        ..Insn::default()
    };
    match operand {
        Operand::X => {
            compare.code |= code::SOURCE_X;
            compare.src = register::X;
        }
        // The constant of a comparison with 64 bits is sign-extended, that of a move with 32 bits isn't.
        Operand::K(k) if k >= 1 << 31 => {
            emit(plain(mov32(register::TMP, k)));
            compare.code |= code::SOURCE_X;
            compare.src = register::TMP;
        }
        Operand::K(k) => compare.imm = k as i32,
        Operand::Variable(_) => {}
    }
    let mut compare_and_skip = |bits, skip| {
        compare.code |= bits;
        emit(Step {
            insn: compare,
            skip: Some(skip),
        });
    };
    match inverse {
        _ if jf == 0 => compare_and_skip(bits, jt),
        Some(inverse) if jt == 0 => compare_and_skip(inverse, jf),
        _ => {
            compare_and_skip(bits, jt);
            emit(jump(jf));
        }
    }
}

const EXIT: Insn = Insn {
    code: code::JMP | code::EXIT,
    dst: 0,
    src: 0,
    offset: 0,
    imm: 0,
};

const NEG: u8 = 0x80;
const DIV: u8 = 0x30;
const MOD: u8 = 0x90;

/// The instructions before a division by X: return 0 if X is 0.
const ENDS_IF_X_IS_ZERO: [Insn; 4] = [
    alu32(code::MOV, register::X, register::X),
    Insn {
        code: code::JMP | code::JNE,
        dst: register::X,
        src: 0,
        offset: 2,
        imm: 0,
    },
    alu32(code::XOR, register::A, register::A),
    EXIT,
];

/// The operation's bits, which classic and extended BPF have in common.
const fn alu_bits(alu: AluOp) -> u8 {
    match alu {
        AluOp::Add => code::ADD,
        AluOp::Sub => code::SUB,
        AluOp::Mul => 0x20,
        AluOp::Div => DIV,
        AluOp::Or => 0x40,
        AluOp::And => code::AND,
        AluOp::Lsh => code::LSH,
        AluOp::Rsh => 0x70,
        AluOp::Xor => code::XOR,
    }
}

/// The scratch slots lie below the frame, the first one highest.
const fn frame_offset(slot: u32) -> i16 {
    -(slot as i16 * 4 + 4)
}

const fn plain(insn: Insn) -> Step {
    Step { insn, skip: None }
}

const fn jump(skip: u32) -> Step {
    let insn = Insn {
        code: code::JMP | code::JA,
        ..EXIT
    };
    Step {
        insn,
        skip: Some(skip),
    }
}

const fn alu32(bits: u8, dst: u8, src: u8) -> Insn {
    Insn {
        code: code::ALU | bits | code::SOURCE_X,
        dst,
        src,
        offset: 0,
        imm: 0,
    }
}

const fn alu32_imm(bits: u8, dst: u8, imm: u32) -> Insn {
    Insn {
        code: code::ALU | bits,
        dst,
        src: 0,
        offset: 0,
        imm: imm as i32,
    }
}

const fn mov32(dst: u8, imm: u32) -> Insn {
    alu32_imm(code::MOV, dst, imm)
}

const fn mov64(dst: u8, src: u8) -> Insn {
    Insn {
        code: code::ALU64 | code::MOV | code::SOURCE_X,
        dst,
        src,
        offset: 0,
        imm: 0,
    }
}

/// A load of this size from memory.
const fn load(size: u8, dst: u8, base: u8, offset: i16) -> Insn {
    Insn {
        code: code::LDX | code::MEM | size,
        dst,
        src: base,
        offset,
        imm: 0,
    }
}

const fn load_slot(dst: u8, slot: u32) -> Insn {
    load(code::W, dst, register::FRAME, frame_offset(slot))
}

const fn store_slot(src: u8, slot: u32) -> Insn {
    Insn {
        code: code::STX | code::MEM | code::W,
        dst: register::FRAME,
        src,
        offset: frame_offset(slot),
        imm: 0,
    }
}
