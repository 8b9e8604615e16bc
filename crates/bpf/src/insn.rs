//! Instructions: the kernel's `struct sock_filter` and its decoded form.
//!
//! The kernel compares the whole 16-bit code with a list of legal ones
//! (`chk_code_allowed` in `net/core/filter.c`) and seccomp narrows that list further
//! (`seccomp_check_filter`); [`Insn::op`] knows exactly the codes that survive both. Fields that an
//! instruction doesn't use (`jt` of a load, `k` of `tax`) are ignored by the kernel and by `op`.
//!
//! The machines of seccomp and of sockets differ in their sources of loads, and sockets have two more instructions:
//! [`Operation`] leaves these two open, [`Op`] is that of seccomp, and [`packet::Op`](crate::packet::Op) that of
//! sockets.

use std::convert::Infallible;

use tamis_abi::Word;

/// One instruction as the kernel takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Insn {
    /// Class, size, mode, operation and operand source.
    pub code: u16,
    /// Instructions to skip if the test holds.
    pub jt: u8,
    /// Instructions to skip if it doesn't.
    pub jf: u8,
    /// The constant, offset, slot or jump distance.
    pub k: u32,
}

/// The right-hand side of an arithmetic instruction or a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The constant in the instruction.
    K(u32),
    /// The index register.
    X,
    /// A word of a run-time variable: the constant that binding puts into the instruction. Instructions of
    /// a [`Program`](crate::Program) never have it, those of a [`Template`](crate::Template) may.
    Variable(Word),
}

/// Arithmetic on A. All operations wrap modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AluOp {
    /// A + operand.
    Add,
    /// A - operand.
    Sub,
    /// A * operand.
    Mul,
    /// A / operand, unsigned; by X = 0 it ends the program with 0, which is `KILL_THREAD`.
    Div,
    /// A & operand.
    And,
    /// A | operand.
    Or,
    /// A ^ operand.
    Xor,
    /// A << (operand & 31).
    Lsh,
    /// A >> (operand & 31), logical.
    Rsh,
}

impl Operand {
    /// The value in a program, where the index register holds `x`.
    ///
    /// # Panics
    /// If it is a variable, which instructions of a [`Program`](crate::Program) never have.
    pub const fn value(self, x: u32) -> u32 {
        match self {
            Operand::K(k) => k,
            Operand::X => x,
            Operand::Variable(_) => panic!("programs have no variables"),
        }
    }
}

/// A test of A against an operand; comparisons are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// A == operand.
    Eq,
    /// A > operand.
    Gt,
    /// A >= operand.
    Ge,
    /// A & operand != 0.
    Set,
}

impl AluOp {
    /// All operations.
    pub const ALL: [AluOp; 9] = [
        AluOp::Add,
        AluOp::Sub,
        AluOp::Mul,
        AluOp::Div,
        AluOp::And,
        AluOp::Or,
        AluOp::Xor,
        AluOp::Lsh,
        AluOp::Rsh,
    ];
}

impl Test {
    /// All tests.
    pub const ALL: [Test; 4] = [Test::Eq, Test::Gt, Test::Ge, Test::Set];

    /// Whether the test holds.
    pub const fn holds(self, a: u32, operand: u32) -> bool {
        match self {
            Test::Eq => a == operand,
            Test::Gt => a > operand,
            Test::Ge => a >= operand,
            Test::Set => a & operand != 0,
        }
    }
}

/// A legal instruction of a seccomp filter: its loads have a byte offset in `seccomp_data`.
pub type Op = Operation<u32, Infallible>;

/// A legal instruction, decoded. Offsets, slots and constants are as written: the validator checks their ranges.
///
/// `L` is the source of a load from the input, `E` are the instructions that the other machine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation<L, E> {
    /// A = the loaded value: for seccomp, the word at this byte offset of `seccomp_data`.
    LoadData(L),
    /// A = k.
    LoadImm(u32),
    /// A = M\[slot\].
    LoadMem(u32),
    /// A = the length of the input: 64 for seccomp, the size of `seccomp_data`.
    LoadLen,
    /// X = k.
    LoadXImm(u32),
    /// X = M\[slot\].
    LoadXMem(u32),
    /// X = the length of the input.
    LoadXLen,
    /// M\[slot\] = A.
    Store(u32),
    /// M\[slot\] = X.
    StoreX(u32),
    /// A = A op operand.
    Alu(AluOp, Operand),
    /// A = -A.
    Neg,
    /// Skip this many instructions.
    Jump(u32),
    /// Skip `jt` instructions if the test of A holds, else `jf`.
    Branch {
        /// The comparison.
        test: Test,
        /// Its right-hand side.
        operand: Operand,
        /// The distance if it holds.
        jt: u8,
        /// The distance if it doesn't.
        jf: u8,
    },
    /// End with this value.
    RetImm(u32),
    /// End with the value of A.
    RetA,
    /// X = A.
    Tax,
    /// A = X.
    Txa,
    /// An instruction of this machine only.
    Extra(E),
}

impl<L, E> Operation<L, E> {
    /// A branch on a comparison of A with a constant, with the distances if it holds and if it doesn't.
    ///
    /// ```
    /// use tamis_bpf::{Op, Operand, Test};
    /// let (test, operand) = (Test::Eq, Operand::K(39));
    /// assert_eq!(Op::branch(test, 39, 0, 1), Op::Branch { test, operand, jt: 0, jf: 1 });
    /// ```
    pub const fn branch(test: Test, k: u32, jt: u8, jf: u8) -> Operation<L, E> {
        Operation::Branch {
            test,
            operand: Operand::K(k),
            jt,
            jf,
        }
    }

    /// Whether it is a branch with two targets. The test of a branch with equal targets decides nothing, so such a
    /// branch is a jump, and has no outcomes.
    ///
    /// ```
    /// use tamis_bpf::{Op, Test};
    /// assert!(Op::branch(Test::Eq, 39, 0, 1).is_fork());
    /// assert!(!Op::branch(Test::Eq, 39, 1, 1).is_fork());
    /// ```
    pub const fn is_fork(&self) -> bool {
        matches!(self, Operation::Branch { jt, jf, .. } if *jt != *jf)
    }

    /// The same with other distances where it jumps or branches; a branch takes their low eight bits.
    #[must_use]
    pub fn with_skips(self, skip: impl Fn(usize) -> usize) -> Operation<L, E> {
        match self {
            Operation::Jump(distance) => Operation::Jump(skip(distance as usize) as u32),
            Operation::Branch {
                test,
                operand,
                jt,
                jf,
            } => Operation::Branch {
                test,
                operand,
                jt: skip(usize::from(jt)) as u8,
                jf: skip(usize::from(jf)) as u8,
            },
            other => other,
        }
    }
}

/// Codes of `include/uapi/linux/bpf_common.h` and `filter.h`, combined as the checker lists them.
mod code {
    pub(super) const LD_W_ABS: u16 = 0x20;
    pub(super) const LD_IMM: u16 = 0x00;
    pub(super) const LD_MEM: u16 = 0x60;
    pub(super) const LD_LEN: u16 = 0x80;
    pub(super) const LDX_IMM: u16 = 0x01;
    pub(super) const LDX_MEM: u16 = 0x61;
    pub(super) const LDX_LEN: u16 = 0x81;
    pub(super) const ST: u16 = 0x02;
    pub(super) const STX: u16 = 0x03;
    pub(super) const ALU: u16 = 0x04;
    pub(super) const NEG: u16 = 0x84;
    pub(super) const JMP: u16 = 0x05;
    pub(super) const RET_K: u16 = 0x06;
    pub(super) const RET_A: u16 = 0x16;
    pub(super) const TAX: u16 = 0x07;
    pub(super) const TXA: u16 = 0x87;
    /// Operand source X, for `ALU` and `JMP`.
    pub(super) const SOURCE_X: u16 = 0x08;
}

const ALU_OPS: [(u16, AluOp); 9] = [
    (0x00, AluOp::Add),
    (0x10, AluOp::Sub),
    (0x20, AluOp::Mul),
    (0x30, AluOp::Div),
    (0x40, AluOp::Or),
    (0x50, AluOp::And),
    (0x60, AluOp::Lsh),
    (0x70, AluOp::Rsh),
    (0xa0, AluOp::Xor),
];

const TESTS: [(u16, Test); 4] = [
    (0x10, Test::Eq),
    (0x20, Test::Gt),
    (0x30, Test::Ge),
    (0x40, Test::Set),
];

impl Insn {
    /// The size of an instruction in a raw program.
    pub const SIZE_BYTES: usize = 8;

    /// The decoded instruction; `None` if seccomp refuses the code.
    #[inline]
    pub fn op(self) -> Option<Op> {
        if self.code == code::LD_W_ABS {
            Some(Op::LoadData(self.k))
        } else {
            self.common_op()
        }
    }

    /// The decoded instruction, if both machines have it with the same meaning.
    #[inline]
    pub(crate) fn common_op<L, E>(self) -> Option<Operation<L, E>> {
        let k = self.k;
        Some(match self.code {
            code::LD_IMM => Operation::LoadImm(k),
            code::LD_MEM => Operation::LoadMem(k),
            code::LD_LEN => Operation::LoadLen,
            code::LDX_IMM => Operation::LoadXImm(k),
            code::LDX_MEM => Operation::LoadXMem(k),
            code::LDX_LEN => Operation::LoadXLen,
            code::ST => Operation::Store(k),
            code::STX => Operation::StoreX(k),
            code::NEG => Operation::Neg,
            code::JMP => Operation::Jump(k),
            code::RET_K => Operation::RetImm(k),
            code::RET_A => Operation::RetA,
            code::TAX => Operation::Tax,
            code::TXA => Operation::Txa,
            other => return self.op_with_operand(other),
        })
    }

    /// Decodes the codes made of an operation, a class and an operand source.
    #[inline]
    fn op_with_operand<L, E>(self, full: u16) -> Option<Operation<L, E>> {
        let operand = self.operand();
        let (operation, class) = (full & !0x0f, full & 0x07);
        if class == code::ALU {
            let (_, alu) = ALU_OPS.into_iter().find(|(bits, _)| *bits == operation)?;
            Some(Operation::Alu(alu, operand))
        } else if class == code::JMP {
            let (_, test) = TESTS.into_iter().find(|(bits, _)| *bits == operation)?;
            Some(Operation::Branch {
                test,
                operand,
                jt: self.jt,
                jf: self.jf,
            })
        } else {
            None
        }
    }

    /// The operand that the source bit of the code selects.
    pub(crate) const fn operand(self) -> Operand {
        if self.code & code::SOURCE_X == 0 {
            Operand::K(self.k)
        } else {
            Operand::X
        }
    }

    /// An instruction without jumps.
    pub(crate) const fn plain(code: u16, k: u32) -> Insn {
        Insn {
            code,
            jt: 0,
            jf: 0,
            k,
        }
    }

    /// The instruction with this code for the constant, and the code's other form for X.
    pub(crate) const fn with_operand(base: u16, operand: Operand) -> Insn {
        match operand {
            Operand::K(k) => Insn::plain(base, k),
            Operand::X => Insn::plain(base | code::SOURCE_X, 0),
            // A value that is bound later is 0 until then.
            Operand::Variable(_) => Insn::plain(base, 0),
        }
    }
}

impl From<Op> for Insn {
    /// The instruction with all unused fields zero.
    fn from(op: Op) -> Insn {
        op.encode(
            |offset| Insn::plain(code::LD_W_ABS, offset),
            |never| match never {},
        )
    }
}

impl<L, E> Operation<L, E> {
    /// The instruction with all unused fields zero, given those of loads and of the machine's own instructions.
    pub(crate) fn encode(self, load: impl Fn(L) -> Insn, extra: impl Fn(E) -> Insn) -> Insn {
        match self {
            Operation::LoadData(place) => load(place),
            Operation::LoadImm(k) => Insn::plain(code::LD_IMM, k),
            Operation::LoadMem(slot) => Insn::plain(code::LD_MEM, slot),
            Operation::LoadLen => Insn::plain(code::LD_LEN, 0),
            Operation::LoadXImm(k) => Insn::plain(code::LDX_IMM, k),
            Operation::LoadXMem(slot) => Insn::plain(code::LDX_MEM, slot),
            Operation::LoadXLen => Insn::plain(code::LDX_LEN, 0),
            Operation::Store(slot) => Insn::plain(code::ST, slot),
            Operation::StoreX(slot) => Insn::plain(code::STX, slot),
            Operation::Alu(alu, operand) => {
                Insn::with_operand(code::ALU | bits_of(&ALU_OPS, alu), operand)
            }
            Operation::Neg => Insn::plain(code::NEG, 0),
            Operation::Jump(skip) => Insn::plain(code::JMP, skip),
            Operation::Branch {
                test,
                operand,
                jt,
                jf,
            } => Insn {
                jt,
                jf,
                ..Insn::with_operand(code::JMP | bits_of(&TESTS, test), operand)
            },
            Operation::RetImm(k) => Insn::plain(code::RET_K, k),
            Operation::RetA => Insn::plain(code::RET_A, 0),
            Operation::Tax => Insn::plain(code::TAX, 0),
            Operation::Txa => Insn::plain(code::TXA, 0),
            Operation::Extra(own) => extra(own),
        }
    }
}

/// The code bits of an operation; every operation is in its table.
fn bits_of<T: Copy + PartialEq, const N: usize>(table: &[(u16, T); N], operation: T) -> u16 {
    table
        .iter()
        .find(|(_, known)| *known == operation)
        .map_or(0, |(bits, _)| *bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_legal_code_survives_decoding_and_encoding() {
        let mut legal = 0;
        for code in 0..=u16::MAX {
            let insn = Insn {
                code,
                jt: 3,
                jf: 4,
                k: 5,
            };
            if let Some(op) = insn.op() {
                legal += 1;
                assert_eq!(Insn::from(op).code, code);
                assert_eq!(Insn::from(op).op(), Some(op));
            }
        }
        // 7 loads, 2 stores, 9 ALU with 2 sources, neg, ja, 4 tests with 2 sources, 2 ret, tax, txa.
        assert_eq!(legal, 7 + 2 + 18 + 1 + 1 + 8 + 2 + 2);
    }
}
