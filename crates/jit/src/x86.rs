//! The x86-64 instructions that are emitted, and their bytes.
//!
//! [`Inst`] has exactly the forms that some template uses, so what a model of the machine must know is what is listed
//! here. Each form takes its shortest encoding. Jumps have none: their length depends on distances, which
//! the [`Assembler`](crate::assembler::Assembler) knows. See volume 2 of Intel's manual for the encodings.

/// A general register, by its number in encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reg {
    Rax = 0,
    Rcx = 1,
    Rdx = 2,
    Rsp = 4,
    Rsi = 6,
    Rdi = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
}

/// The operand size of an operation. One of 32 bits sets the upper half of its destination to 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 32 bits.
    Half,
    /// 64 bits.
    Full,
}

/// An operation of two operands: `destination = destination op source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    /// The sum.
    Add,
    /// The bits of either.
    Or,
    /// The common bits.
    And,
    /// The difference.
    Sub,
    /// The bits of one.
    Xor,
    /// The flags of the difference; the destination stays.
    Cmp,
    /// The flags of the common bits; the destination stays.
    Test,
    /// The source.
    Mov,
}

/// A shift; by more than the operand size less one it uses the low bits of the distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    /// To higher bits.
    Left,
    /// To lower bits, filled with 0.
    Right,
}

/// The condition of a jump; comparisons are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Condition {
    /// Below.
    Below = 2,
    /// Above or equal.
    AboveEqual = 3,
    /// Equal, or 0.
    Equal = 4,
    /// Not equal, or not 0.
    NotEqual = 5,
    /// Below or equal.
    BelowEqual = 6,
    /// Above.
    Above = 7,
    /// The highest bit is 1.
    Sign = 8,
    /// The highest bit is 0.
    NotSign = 9,
}

/// An address: the sum of one or two registers and a displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mem {
    /// The register.
    base: Reg,
    /// The other one, which can't be RSP.
    index: Option<Reg>,
    /// Bytes to add.
    disp: i32,
}

/// A machine instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inst {
    /// An operation on two registers.
    Binary(Binary, Width, Reg, Reg),
    /// An operation on a register and a constant, sign-extended. Moves have a form of their own.
    BinaryImm(Binary, Width, Reg, i32),
    /// `and` of the low byte of RAX and a constant, for its zero flag.
    TestLowByte(u8),
    /// `mov` of a constant; the upper half becomes 0.
    Set(Reg, u32),
    /// A load of 32 bits; the upper half becomes 0.
    Load(Reg, Mem),
    /// A load of 16 bits; the others become 0.
    LoadHalf(Reg, Mem),
    /// A load of 8 bits; the others become 0.
    LoadByte(Reg, Mem),
    /// The address itself.
    Address(Width, Reg, Mem),
    /// The flags of the common bits of 32 bits in memory and a constant.
    TestMem(Mem, u32),
    /// The bytes of the low half in opposite order; the upper half becomes 0.
    SwapBytes(Reg),
    /// The two low bytes in opposite order; the others stay.
    SwapLowBytes(Reg),
    /// A store of 32 bits.
    Store(Mem, Reg),
    /// A shift by a constant.
    Shift(Shift, Width, Reg, u8),
    /// A shift by the low bits of CL.
    ShiftByCl(Shift, Width, Reg),
    /// Two's complement.
    Neg(Width, Reg),
    /// The low half of the product.
    Multiply(Width, Reg, Reg),
    /// The low half of the product with a constant, sign-extended.
    MultiplyImm(Width, Reg, i32),
    /// RAX = RDX:RAX / operand, RDX = the remainder, unsigned.
    Divide(Width, Reg),
    /// The end of the function.
    Return,
}

impl Condition {
    /// The opposite condition.
    #[must_use]
    pub(crate) const fn inverted(self) -> Condition {
        match self {
            Condition::Below => Condition::AboveEqual,
            Condition::AboveEqual => Condition::Below,
            Condition::Equal => Condition::NotEqual,
            Condition::NotEqual => Condition::Equal,
            Condition::BelowEqual => Condition::Above,
            Condition::Above => Condition::BelowEqual,
            Condition::Sign => Condition::NotSign,
            Condition::NotSign => Condition::Sign,
        }
    }
}

impl Mem {
    /// A register and a displacement.
    pub(crate) const fn at(base: Reg, disp: i32) -> Mem {
        Mem {
            base,
            index: None,
            disp,
        }
    }

    /// Two registers and a displacement.
    pub(crate) const fn sum(base: Reg, index: Reg, disp: i32) -> Mem {
        Mem {
            base,
            index: Some(index),
            disp,
        }
    }

    /// The bit of the index in the REX prefix.
    const fn index_high(self) -> u8 {
        match self.index {
            Some(index) => index.high(),
            None => 0,
        }
    }
}

impl Reg {
    /// The bits of ModRM, SIB or the opcode.
    const fn low(self) -> u8 {
        self as u8 & 7
    }

    /// The bit in the REX prefix.
    const fn high(self) -> u8 {
        self as u8 >> 3
    }
}

impl Binary {
    /// The opcode of `op r/m, r`.
    const fn opcode(self) -> u8 {
        match self {
            Binary::Add => 0x01,
            Binary::Or => 0x09,
            Binary::And => 0x21,
            Binary::Sub => 0x29,
            Binary::Xor => 0x31,
            Binary::Cmp => 0x39,
            Binary::Test => 0x85,
            Binary::Mov => 0x89,
        }
    }
}

/// Up to eight bytes, the first in the lowest bits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bytes {
    pub(crate) value: u64,
    pub(crate) len: u32,
}

impl Bytes {
    const fn new() -> Bytes {
        Bytes { value: 0, len: 0 }
    }

    #[inline(always)]
    const fn byte(self, byte: u8) -> Bytes {
        Bytes {
            value: self.value | (byte as u64) << (8 * self.len),
            len: self.len + 1,
        }
    }

    #[inline(always)]
    const fn word(self, word: u32) -> Bytes {
        Bytes {
            value: self.value | (word as u64) << (8 * self.len),
            len: self.len + 4,
        }
    }

    /// A constant in a byte if its sign extension has that value, else in four.
    #[inline(always)]
    const fn signed(self, value: i32) -> Bytes {
        if is_byte(value) {
            self.byte(value as u8)
        } else {
            self.word(value as u32)
        }
    }

    /// REX, if it says anything; `reg` are its bits for the register and the index.
    #[inline(always)]
    const fn rex(self, width: Width, reg: u8, base: u8) -> Bytes {
        let wide = matches!(width, Width::Full) as u8;
        let bits = wide << 3 | reg | base;
        if bits == 0 {
            self
        } else {
            self.byte(0x40 | bits)
        }
    }

    /// ModRM of two registers.
    #[inline(always)]
    const fn registers(self, reg: u8, base: Reg) -> Bytes {
        self.byte(0xc0 | reg << 3 | base.low())
    }

    /// REX for a register and an address, if it says anything.
    #[inline(always)]
    const fn rex_mem(self, width: Width, reg: u8, mem: Mem) -> Bytes {
        self.rex(width, reg << 2 | mem.index_high() << 1, mem.base.high())
    }

    /// ModRM and SIB of an address, without the displacement.
    #[inline(always)]
    const fn address(self, reg: u8, mem: Mem) -> Bytes {
        let mode: u8 = match mem.disp {
            0 => 0x00,
            disp if is_byte(disp) => 0x40,
            _ => 0x80,
        };
        let modrm = mode | reg << 3;
        match (mem.index, mem.base) {
            (Some(index), base) => self.byte(modrm | 4).byte(index.low() << 3 | base.low()),
            (None, Reg::Rsp) => self.byte(modrm | 4).byte(0x24),
            (None, base) => self.byte(modrm | base.low()),
        }
    }

    /// The displacement of an address.
    #[inline(always)]
    const fn displacement(self, mem: Mem) -> Bytes {
        match mem.disp {
            0 => self,
            disp => self.signed(disp),
        }
    }
}

/// An instruction in two parts: first prefixes, opcode and operands, then displacement and constant.
#[derive(Clone, Copy)]
pub(crate) struct Encoded {
    pub(crate) head: Bytes,
    pub(crate) tail: Bytes,
}

/// Whether the sign extension of the low byte is the value.
const fn is_byte(value: i32) -> bool {
    value == value as i8 as i32
}

impl Inst {
    /// The bytes of the instruction.
    #[inline(always)]
    pub(crate) const fn encode(self) -> Encoded {
        let none = Bytes::new();
        let (head, tail) = match self {
            Inst::Binary(op, width, dst, src) => {
                let head = none
                    .rex(width, src.high() << 2, dst.high())
                    .byte(op.opcode());
                (head.registers(src.low(), dst), none)
            }
            Inst::BinaryImm(op, width, dst, imm) => binary_imm(op, width, dst, imm),
            Inst::TestLowByte(imm) => (none.byte(0xa8), none.byte(imm)),
            Inst::Set(dst, imm) => {
                let head = none.rex(Width::Half, 0, dst.high());
                (head.byte(0xb8 | dst.low()), none.word(imm))
            }
            Inst::Load(dst, mem) => memory(0x8b, Width::Half, dst, mem),
            Inst::LoadHalf(dst, mem) => extending(0xb7, dst, mem),
            Inst::LoadByte(dst, mem) => extending(0xb6, dst, mem),
            Inst::Address(width, dst, mem) => memory(0x8d, width, dst, mem),
            Inst::Store(mem, src) => memory(0x89, Width::Half, src, mem),
            Inst::TestMem(mem, imm) => {
                let head = none.rex_mem(Width::Half, 0, mem).byte(0xf7);
                (head.address(0, mem), none.displacement(mem).word(imm))
            }
            Inst::SwapBytes(dst) => {
                let head = none.rex(Width::Half, 0, dst.high()).byte(0x0f);
                (head.byte(0xc8 | dst.low()), none)
            }
            Inst::SwapLowBytes(dst) => {
                let head = none.byte(0x66).rex(Width::Half, 0, dst.high());
                (head.byte(0xc1).registers(0, dst), none.byte(8))
            }
            Inst::Shift(shift, width, dst, count) => {
                let head = none.rex(width, 0, dst.high()).byte(0xc1);
                (head.registers(shift.extension(), dst), none.byte(count))
            }
            Inst::ShiftByCl(shift, width, dst) => {
                let head = none.rex(width, 0, dst.high()).byte(0xd3);
                (head.registers(shift.extension(), dst), none)
            }
            Inst::Neg(width, dst) => {
                let head = none.rex(width, 0, dst.high()).byte(0xf7);
                (head.registers(3, dst), none)
            }
            Inst::Multiply(width, dst, src) => {
                let head = none.rex(width, dst.high() << 2, src.high()).byte(0x0f);
                (head.byte(0xaf).registers(dst.low(), src), none)
            }
            Inst::MultiplyImm(width, dst, imm) => {
                let head = none.rex(width, dst.high() << 2, dst.high());
                let head = head.byte(if is_byte(imm) { 0x6b } else { 0x69 });
                (head.registers(dst.low(), dst), none.signed(imm))
            }
            Inst::Divide(width, by) => {
                let head = none.rex(width, 0, by.high()).byte(0xf7);
                (head.registers(6, by), none)
            }
            Inst::Return => (none.byte(0xc3), none),
        };
        Encoded { head, tail }
    }
}

impl Shift {
    const fn extension(self) -> u8 {
        match self {
            Shift::Left => 4,
            Shift::Right => 5,
        }
    }
}

#[inline(always)]
const fn memory(opcode: u8, width: Width, reg: Reg, mem: Mem) -> (Bytes, Bytes) {
    let head = Bytes::new().rex_mem(width, reg.high(), mem);
    let head = head.byte(opcode).address(reg.low(), mem);
    (head, Bytes::new().displacement(mem))
}

/// Loads of less than 32 bits.
#[inline(always)]
const fn extending(opcode: u8, reg: Reg, mem: Mem) -> (Bytes, Bytes) {
    let head = Bytes::new().rex_mem(Width::Half, reg.high(), mem);
    let head = head.byte(0x0f).byte(opcode).address(reg.low(), mem);
    (head, Bytes::new().displacement(mem))
}

#[inline(always)]
const fn binary_imm(op: Binary, width: Width, dst: Reg, imm: i32) -> (Bytes, Bytes) {
    let none = Bytes::new();
    let head = none.rex(width, 0, dst.high());
    let opcode = op.opcode();
    match op {
        // `test` has no form with a byte that is extended.
        Binary::Test if matches!(dst, Reg::Rax) => (head.byte(0xa9), none.word(imm as u32)),
        Binary::Test => (head.byte(0xf7).registers(0, dst), none.word(imm as u32)),
        Binary::Mov => (head.byte(0xc7).registers(0, dst), none.word(imm as u32)),
        _ if is_byte(imm) => {
            let head = head.byte(0x83).registers(opcode >> 3, dst);
            (head, none.byte(imm as u8))
        }
        _ if matches!(dst, Reg::Rax) => (head.byte(opcode | 0x04), none.word(imm as u32)),
        _ => {
            let head = head.byte(0x81).registers(opcode >> 3, dst);
            (head, none.word(imm as u32))
        }
    }
}
