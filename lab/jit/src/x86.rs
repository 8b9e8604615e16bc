//! The x86-64 instructions that are emitted, and their bytes.
//!
//! [`Inst`] has exactly the forms that some template uses, so a model of the machine needs only those. Each form has
//! its shortest encoding. Jumps have none: their length depends on distances, which are in the
//! [`Assembler`](crate::assembler::Assembler). See volume 2 of Intel's manual for the encodings.

use tamis_ebpf_vm::Size;

/// A general register, by its number in encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reg {
    Rax = 0,
    Rcx = 1,
    Rdx = 2,
    Rbx = 3,
    Rsp = 4,
    Rbp = 5,
    Rsi = 6,
    Rdi = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
    R12 = 12,
    R13 = 13,
    R14 = 14,
    R15 = 15,
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
    /// To lower bits, filled with the sign.
    RightSigned,
}

/// The condition of a jump; comparisons are unsigned unless stated otherwise.
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
    /// Less, signed.
    Less = 12,
    /// Greater or equal, signed.
    GreaterEqual = 13,
    /// Less or equal, signed.
    LessEqual = 14,
    /// Greater, signed.
    Greater = 15,
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
    /// A load of 64 bits.
    LoadFull(Reg, Mem),
    /// A load of at most 32 bits, sign-extended to 64.
    LoadSigned(Size, Reg, Mem),
    /// The lower 8 or 16 bits of a register; the others become 0.
    ZeroExtend(Size, Reg, Reg),
    /// The lower bits of a register, at most 32, sign-extended.
    SignExtend(Size, Width, Reg, Reg),
    /// `mov` of a constant of 64 bits.
    SetFull(Reg, u64),
    /// Exchanges both registers.
    Exchange(Width, Reg, Reg),
    /// The sum of a register and 64 bits in memory.
    AddFrom(Reg, Mem),
    /// Adds a constant to 32 bits in memory.
    AddTo(Mem, i32),
    /// The address itself.
    Address(Width, Reg, Mem),
    /// The flags of the common bits of 32 bits in memory and a constant.
    TestMem(Mem, u32),
    /// The bytes of the low half in opposite order; the upper half becomes 0.
    SwapBytes(Reg),
    /// The two low bytes in opposite order; the others stay.
    SwapLowBytes(Reg),
    /// The bytes of a register in opposite order.
    SwapBytesFull(Reg),
    /// A store of 32 bits.
    Store(Mem, Reg),
    /// A store of the lower bytes of a register.
    StoreSized(Size, Mem, Reg),
    /// A store of a constant, sign-extended.
    StoreImm(Size, Mem, i32),
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
    /// RAX = RDX:RAX / operand, RDX = the remainder, signed.
    DivideSigned(Width, Reg),
    /// RDX = copies of the sign of RAX.
    SignOfDividend(Width),
    /// Puts a register on the machine's stack.
    Push(Reg),
    /// Takes a register from the machine's stack.
    Pop(Reg),
    /// Calls the function whose address is in memory.
    CallFrom(Mem),
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
            Condition::Less => Condition::GreaterEqual,
            Condition::GreaterEqual => Condition::Less,
            Condition::LessEqual => Condition::Greater,
            Condition::Greater => Condition::LessEqual,
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

    /// Whether there must be a displacement: without one RBP and R13 mean something else.
    const fn needs_displacement(self) -> bool {
        matches!(self.base, Reg::Rbp | Reg::R13)
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

    /// Whether the low byte has a number without a REX prefix.
    const fn has_plain_byte(self) -> bool {
        (self as u8) < 4
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
struct Bytes {
    value: u64,
    len: u32,
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

    /// REX, if needed; `reg` are its bits for the register and the index.
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

    /// REX for a register and an address, if needed.
    #[inline(always)]
    const fn rex_mem(self, width: Width, reg: u8, mem: Mem) -> Bytes {
        self.rex(width, reg << 2 | mem.index_high() << 1, mem.base.high())
    }

    /// ModRM and SIB of an address, without the displacement.
    #[inline(always)]
    const fn address(self, reg: u8, mem: Mem) -> Bytes {
        let mode: u8 = match mem.disp {
            0 if !mem.needs_displacement() => 0x00,
            disp if is_byte(disp) => 0x40,
            _ => 0x80,
        };
        let modrm = mode | reg << 3;
        match (mem.index, mem.base) {
            (Some(index), base) => self.byte(modrm | 4).byte(index.low() << 3 | base.low()),
            (None, Reg::Rsp | Reg::R12) => self.byte(modrm | 4).byte(0x24),
            (None, base) => self.byte(modrm | base.low()),
        }
    }

    /// The displacement of an address.
    #[inline(always)]
    const fn displacement(self, mem: Mem) -> Bytes {
        match mem.disp {
            0 if !mem.needs_displacement() => self,
            disp => self.signed(disp),
        }
    }
}

/// The bytes of an instruction, the first in the lowest bits: at most fifteen.
#[derive(Clone, Copy)]
pub(crate) struct Encoded {
    pub(crate) value: u128,
    pub(crate) len: usize,
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
        let (full, half) = (Width::Full, Width::Half);
        let (head, tail) = match self {
            Inst::Binary(op, width, dst, src) => (two(op.opcode(), width, src, dst), none),
            Inst::BinaryImm(op, width, dst, imm) => binary_imm(op, width, dst, imm),
            Inst::TestLowByte(imm) => (none.byte(0xa8), none.byte(imm)),
            Inst::Set(dst, imm) => (named(half, 0xb8, dst), none.word(imm)),
            Inst::SetFull(dst, imm) => (named(full, 0xb8, dst), Bytes { value: imm, len: 8 }),
            Inst::Load(dst, mem) => memory(0x8b, half, dst, mem),
            Inst::LoadHalf(dst, mem) => extending(0xb7, dst, mem),
            Inst::LoadByte(dst, mem) => extending(0xb6, dst, mem),
            Inst::LoadFull(dst, mem) => memory(0x8b, full, dst, mem),
            Inst::LoadSigned(size, dst, mem) => load_signed(size, dst, mem),
            Inst::ZeroExtend(size, dst, src) => zero_extend(size, dst, src),
            Inst::SignExtend(size, width, dst, src) => sign_extend(size, width, dst, src),
            Inst::Exchange(width, one, other) => (two(0x87, width, other, one), none),
            Inst::AddFrom(dst, mem) => memory(0x03, full, dst, mem),
            Inst::AddTo(mem, imm) => {
                let opcode = if is_byte(imm) { 0x83 } else { 0x81 };
                let head = none.rex_mem(half, 0, mem).byte(opcode);
                (head.address(0, mem), none.displacement(mem).signed(imm))
            }
            Inst::Address(width, dst, mem) => memory(0x8d, width, dst, mem),
            Inst::Store(mem, src) => memory(0x89, half, src, mem),
            Inst::StoreSized(size, mem, src) => store_sized(size, mem, src),
            Inst::StoreImm(size, mem, imm) => store_imm(size, mem, imm),
            Inst::TestMem(mem, imm) => {
                let head = none.rex_mem(half, 0, mem).byte(0xf7);
                (head.address(0, mem), none.displacement(mem).word(imm))
            }
            Inst::SwapBytes(dst) => (swap_bytes(half, dst), none),
            Inst::SwapBytesFull(dst) => (swap_bytes(full, dst), none),
            Inst::SwapLowBytes(dst) => {
                let head = none.byte(0x66).rex(half, 0, dst.high());
                (head.byte(0xc1).registers(0, dst), none.byte(8))
            }
            Inst::Shift(shift, width, dst, count) => {
                (unary(0xc1, width, shift.extension(), dst), none.byte(count))
            }
            Inst::ShiftByCl(shift, width, dst) => {
                (unary(0xd3, width, shift.extension(), dst), none)
            }
            Inst::Neg(width, dst) => (unary(0xf7, width, 3, dst), none),
            Inst::Multiply(width, dst, src) => {
                let head = none.rex(width, dst.high() << 2, src.high()).byte(0x0f);
                (head.byte(0xaf).registers(dst.low(), src), none)
            }
            Inst::MultiplyImm(width, dst, imm) => {
                let head = none.rex(width, dst.high() << 2, dst.high());
                let head = head.byte(if is_byte(imm) { 0x6b } else { 0x69 });
                (head.registers(dst.low(), dst), none.signed(imm))
            }
            Inst::Divide(width, by) => (unary(0xf7, width, 6, by), none),
            Inst::DivideSigned(width, by) => (unary(0xf7, width, 7, by), none),
            Inst::SignOfDividend(width) => (none.rex(width, 0, 0).byte(0x99), none),
            Inst::Push(reg) => (named(half, 0x50, reg), none),
            Inst::Pop(reg) => (named(half, 0x58, reg), none),
            Inst::CallFrom(mem) => {
                let head = none.rex_mem(half, 0, mem).byte(0xff);
                (head.address(2, mem), none.displacement(mem))
            }
            Inst::Return => (none.byte(0xc3), none),
        };
        Encoded {
            value: head.value as u128 | (tail.value as u128) << (8 * head.len),
            len: (head.len + tail.len) as usize,
        }
    }
}

/// An instruction of one register, whose opcode is completed in ModRM.
#[inline(always)]
const fn unary(opcode: u8, width: Width, extension: u8, reg: Reg) -> Bytes {
    let head = Bytes::new().rex(width, 0, reg.high());
    head.byte(opcode).registers(extension, reg)
}

/// An instruction of two registers; ModRM can also encode the second as memory.
#[inline(always)]
const fn two(opcode: u8, width: Width, reg: Reg, base: Reg) -> Bytes {
    let head = Bytes::new().rex(width, reg.high() << 2, base.high());
    head.byte(opcode).registers(reg.low(), base)
}

/// An instruction with the register in its opcode.
#[inline(always)]
const fn named(width: Width, opcode: u8, reg: Reg) -> Bytes {
    let head = Bytes::new().rex(width, 0, reg.high());
    head.byte(opcode | reg.low())
}

#[inline(always)]
const fn swap_bytes(width: Width, reg: Reg) -> Bytes {
    let head = Bytes::new().rex(width, 0, reg.high()).byte(0x0f);
    head.byte(0xc8 | reg.low())
}

impl Shift {
    const fn extension(self) -> u8 {
        match self {
            Shift::Left => 4,
            Shift::Right => 5,
            Shift::RightSigned => 7,
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

/// The prefix for 16 bits, then REX, which names the low byte of a register that has none without it.
#[inline(always)]
const fn sized(size: Size, reg: u8, base: u8, is_plain_byte: bool) -> Bytes {
    let none = Bytes::new();
    let bits = reg | base;
    match size {
        Size::H => none.byte(0x66).rex(Width::Half, reg, base),
        Size::D => none.rex(Width::Full, reg, base),
        Size::B if bits == 0 && !is_plain_byte => none.byte(0x40),
        Size::B | Size::W => none.rex(Width::Half, reg, base),
    }
}

#[inline(always)]
const fn store_sized(size: Size, mem: Mem, src: Reg) -> (Bytes, Bytes) {
    let opcode = if matches!(size, Size::B) { 0x88 } else { 0x89 };
    let reg = src.high() << 2 | mem.index_high() << 1;
    let head = sized(size, reg, mem.base.high(), src.has_plain_byte());
    let head = head.byte(opcode).address(src.low(), mem);
    (head, Bytes::new().displacement(mem))
}

#[inline(always)]
const fn store_imm(size: Size, mem: Mem, imm: i32) -> (Bytes, Bytes) {
    let opcode = if matches!(size, Size::B) { 0xc6 } else { 0xc7 };
    let head = sized(size, mem.index_high() << 1, mem.base.high(), true);
    let tail = Bytes::new().displacement(mem);
    let tail = match size {
        Size::B => tail.byte(imm as u8),
        Size::H => tail.byte(imm as u8).byte((imm >> 8) as u8),
        Size::W | Size::D => tail.word(imm as u32),
    };
    (head.byte(opcode).address(0, mem), tail)
}

#[inline(always)]
const fn load_signed(size: Size, dst: Reg, mem: Mem) -> (Bytes, Bytes) {
    let head = Bytes::new().rex_mem(Width::Full, dst.high(), mem);
    let head = match size {
        Size::B => head.byte(0x0f).byte(0xbe),
        Size::H => head.byte(0x0f).byte(0xbf),
        Size::W | Size::D => head.byte(0x63),
    };
    (head.address(dst.low(), mem), Bytes::new().displacement(mem))
}

#[inline(always)]
const fn zero_extend(size: Size, dst: Reg, src: Reg) -> (Bytes, Bytes) {
    let is_byte = matches!(size, Size::B);
    let plain = !is_byte || src.has_plain_byte();
    let head = sized(
        if is_byte { Size::B } else { Size::W },
        dst.high() << 2,
        src.high(),
        plain,
    );
    let head = head.byte(0x0f).byte(if is_byte { 0xb6 } else { 0xb7 });
    (head.registers(dst.low(), src), Bytes::new())
}

#[inline(always)]
const fn sign_extend(size: Size, width: Width, dst: Reg, src: Reg) -> (Bytes, Bytes) {
    let head = match (width, size) {
        (Width::Full, _) => sized(Size::D, dst.high() << 2, src.high(), true),
        (_, Size::B) => sized(Size::B, dst.high() << 2, src.high(), src.has_plain_byte()),
        _ => sized(Size::W, dst.high() << 2, src.high(), true),
    };
    let head = match size {
        Size::B => head.byte(0x0f).byte(0xbe),
        Size::H => head.byte(0x0f).byte(0xbf),
        Size::W | Size::D => head.byte(0x63),
    };
    (head.registers(dst.low(), src), Bytes::new())
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
