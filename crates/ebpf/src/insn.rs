//! Decoded instructions.
//!
//! An [`Op`] has only the relevant fields of an instruction: the kernel's verifier rejects instructions with unused
//! fields other than 0, and so does decoding. So a decoded instruction is encoded to the same bytes.

use std::fmt;

/// A register, 0 to 10. Number 0 has results, 1 to 5 arguments, 6 to 9 survive calls, 10 is the frame and is never
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(u8);

/// How many of a register's bits an operation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// The lower 32; arithmetic clears the upper ones of its result.
    W32,
    /// All 64.
    W64,
}

/// The size of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// One byte.
    B,
    /// Two bytes.
    H,
    /// Four bytes.
    W,
    /// Eight bytes.
    D,
}

/// The right-hand side of arithmetic or of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The constant, sign-extended to 64 bits where the operation has so many.
    Imm(i32),
    /// A register.
    Reg(Reg),
}

/// Arithmetic on a register. All operations wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AluOp {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication.
    Mul,
    /// Unsigned division; by 0 it gives 0.
    Div,
    /// Signed division, rounded towards 0; by 0 it gives 0, the least number by -1 gives itself.
    SDiv,
    /// Unsigned remainder; by 0 it gives the dividend.
    Mod,
    /// Signed remainder with the sign of the dividend; by 0 it gives the dividend.
    SMod,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Exclusive or.
    Xor,
    /// Shift to the left. Shifts use the lower five bits of the distance, or six with 64 bits.
    Lsh,
    /// Logical shift to the right.
    Rsh,
    /// Arithmetic shift to the right.
    Arsh,
    /// The operand.
    Mov,
}

/// A number of bits of a partial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bits {
    /// Eight.
    B8,
    /// Sixteen.
    B16,
    /// Thirty-two.
    B32,
    /// Sixty-four.
    B64,
}

/// A change of the order of bytes. The bits above those that it is for become 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Swap {
    /// From or to little endian: reverses on machines of the other order.
    Little,
    /// From or to big endian.
    Big,
    /// Always reverses.
    Always,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cond {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater, unsigned.
    Gt,
    /// Greater or equal, unsigned.
    Ge,
    /// Less, unsigned.
    Lt,
    /// Less or equal, unsigned.
    Le,
    /// Greater, signed.
    SGt,
    /// Greater or equal, signed.
    SGe,
    /// Less, signed.
    SLt,
    /// Less or equal, signed.
    SLe,
    /// A common bit is set.
    Set,
}

/// The effect of an atomic operation on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atomic {
    /// Adds the register; the old value goes to the register if it is a fetch.
    Add {
        /// Whether the register gets the old value.
        fetch: bool,
    },
    /// Bitwise or; as `Add`.
    Or {
        /// Whether the register gets the old value.
        fetch: bool,
    },
    /// Bitwise and; as `Add`.
    And {
        /// Whether the register gets the old value.
        fetch: bool,
    },
    /// Exclusive or; as `Add`.
    Xor {
        /// Whether the register gets the old value.
        fetch: bool,
    },
    /// Exchanges memory and register.
    Exchange,
    /// Stores the register if r0 has the memory's value; r0 gets the old value in any case.
    CompareExchange,
}

/// Where a load from the packet reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// At this offset.
    Absolute(i32),
    /// At the sum of the lower half of a register and this offset.
    Indirect(Reg, i32),
}

/// A memory operand: the address is the sum of a register and a displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The register.
    pub base: Reg,
    /// The displacement in bytes.
    pub offset: i16,
}

/// An instruction. Distances are in instructions as they are stored, from the one that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `dst = dst op source`.
    Alu(Width, AluOp, Reg, Source),
    /// `dst = -dst`.
    Neg(Width, Reg),
    /// `dst = ` the lower bits of `src`, sign-extended to the width.
    MoveSigned(Width, Bits, Reg, Reg),
    /// Changes the order of the lower bytes of a register.
    Swap(Swap, Bits, Reg),
    /// `dst = *(size *)address`, zero-extended.
    Load(Size, Reg, Address),
    /// `dst = *(size *)address`, sign-extended; not for eight bytes.
    LoadSigned(Size, Reg, Address),
    /// `r0 = ` a number in network byte order in the packet of the context in r6. Outside the packet it ends the
    /// program with 0. Registers 1 to 5 are lost. Not for eight bytes.
    LoadPacket(Size, Place),
    /// `*(size *)address = ` the constant, sign-extended.
    StoreImm(Size, Address, i32),
    /// `*(size *)address = src`.
    Store(Size, Address, Reg),
    /// An atomic operation on memory.
    Atomic(Width, Atomic, Address, Reg),
    /// `dst = ` a constant of 64 bits; takes two places.
    LoadImm64(Reg, u64),
    /// Jumps.
    Jump(i16),
    /// Jumps; `gotol`.
    JumpFar(i32),
    /// Jumps if the comparison of a register with the source holds.
    Branch(Width, Cond, Reg, Source, i16),
    /// Calls the helper with this number, with arguments in r1 to r5 and the result in r0.
    CallHelper(i32),
    /// Calls a function of the program.
    CallLocal(i32),
    /// Returns from the function, or from the program with the value of r0.
    Exit,
}

impl Reg {
    /// The register with a number up to 10; `None` for others.
    pub const fn new(number: u8) -> Option<Reg> {
        if number <= 10 {
            Some(Reg(number))
        } else {
            None
        }
    }

    /// The register of results, and of the first operand of a comparing exchange.
    pub const R0: Reg = Reg(0);
    /// The first argument; the context at entry.
    pub const R1: Reg = Reg(1);
    /// The context of loads from the packet.
    pub const R6: Reg = Reg(6);
    /// The end of the frame.
    pub const FRAME: Reg = Reg(10);

    /// All registers.
    pub const ALL: [Reg; 11] = {
        let mut all = [Reg(0); 11];
        let mut number = 0;
        while number < 11 {
            all[number] = Reg(number as u8);
            number += 1;
        }
        all
    };

    /// The number, 0 to 10.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Reg {
    /// `r10`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl Width {
    /// Both.
    pub const ALL: [Width; 2] = [Width::W32, Width::W64];

    /// The size of a value.
    pub const fn size(self) -> Size {
        match self {
            Width::W32 => Size::W,
            Width::W64 => Size::D,
        }
    }
}

impl Size {
    /// All, ascending.
    pub const ALL: [Size; 4] = [Size::B, Size::H, Size::W, Size::D];

    /// The number of bytes: 1, 2, 4 or 8.
    pub const fn bytes(self) -> usize {
        match self {
            Size::B => 1,
            Size::H => 2,
            Size::W => 4,
            Size::D => 8,
        }
    }

    /// The number of bits.
    pub const fn bits(self) -> Bits {
        match self {
            Size::B => Bits::B8,
            Size::H => Bits::B16,
            Size::W => Bits::B32,
            Size::D => Bits::B64,
        }
    }
}

impl Address {
    /// The displacement as it is added to the register.
    pub const fn displacement(self) -> u64 {
        self.offset as i64 as u64
    }
}

impl AluOp {
    /// All operations.
    pub const ALL: [AluOp; 14] = [
        AluOp::Add,
        AluOp::Sub,
        AluOp::Mul,
        AluOp::Div,
        AluOp::SDiv,
        AluOp::Mod,
        AluOp::SMod,
        AluOp::And,
        AluOp::Or,
        AluOp::Xor,
        AluOp::Lsh,
        AluOp::Rsh,
        AluOp::Arsh,
        AluOp::Mov,
    ];
}

impl Cond {
    /// All comparisons.
    pub const ALL: [Cond; 11] = [
        Cond::Eq,
        Cond::Ne,
        Cond::Gt,
        Cond::Ge,
        Cond::Lt,
        Cond::Le,
        Cond::SGt,
        Cond::SGe,
        Cond::SLt,
        Cond::SLe,
        Cond::Set,
    ];
}

impl Atomic {
    /// All operations.
    pub const ALL: [Atomic; 10] = [
        Atomic::Add { fetch: false },
        Atomic::Add { fetch: true },
        Atomic::Or { fetch: false },
        Atomic::Or { fetch: true },
        Atomic::And { fetch: false },
        Atomic::And { fetch: true },
        Atomic::Xor { fetch: false },
        Atomic::Xor { fetch: true },
        Atomic::Exchange,
        Atomic::CompareExchange,
    ];

    /// The value that memory gets. All values have the width's bits; `expected` is that of r0.
    pub const fn applied(self, width: Width, old: u64, operand: u64, expected: u64) -> u64 {
        match self {
            Atomic::Add { .. } => crate::semantics::arithmetic(width, AluOp::Add, old, operand),
            Atomic::Or { .. } => old | operand,
            Atomic::And { .. } => old & operand,
            Atomic::Xor { .. } => old ^ operand,
            Atomic::CompareExchange if old != expected => old,
            Atomic::Exchange | Atomic::CompareExchange => operand,
        }
    }

    /// Whether the register operand gets the old value.
    pub const fn fetches_to_source(self) -> bool {
        match self {
            Atomic::Add { fetch }
            | Atomic::Or { fetch }
            | Atomic::And { fetch }
            | Atomic::Xor { fetch } => fetch,
            Atomic::Exchange => true,
            Atomic::CompareExchange => false,
        }
    }
}

impl Bits {
    /// 8, 16, 32 or 64.
    pub const fn count(self) -> u32 {
        match self {
            Bits::B8 => 8,
            Bits::B16 => 16,
            Bits::B32 => 32,
            Bits::B64 => 64,
        }
    }
}

impl Op {
    /// How many places of the program it takes: 2 for [`LoadImm64`](Op::LoadImm64), else 1.
    pub const fn places(self) -> usize {
        match self {
            Op::LoadImm64(..) => 2,
            _ => 1,
        }
    }

    /// The distance of a jump or branch; `None` for other instructions, also calls.
    pub const fn skip(self) -> Option<i32> {
        match self {
            Op::Jump(skip) | Op::Branch(.., skip) => Some(skip as i32),
            Op::JumpFar(skip) => Some(skip),
            _ => None,
        }
    }

    /// The register that an instruction names as its result. Calls and loads from the packet write r0 without naming
    /// it, and so does a comparing exchange.
    pub const fn destination(self) -> Option<Reg> {
        match self {
            Op::Alu(_, _, dst, _)
            | Op::Neg(_, dst)
            | Op::MoveSigned(_, _, dst, _)
            | Op::Swap(_, _, dst)
            | Op::Load(_, dst, _)
            | Op::LoadSigned(_, dst, _)
            | Op::LoadImm64(dst, _) => Some(dst),
            Op::Atomic(_, atomic, _, src) if atomic.fetches_to_source() => Some(src),
            _ => None,
        }
    }

    /// Whether the next instruction may follow, if this one doesn't end the program.
    pub const fn falls_through(self) -> bool {
        !matches!(self, Op::Jump(_) | Op::JumpFar(_) | Op::Exit)
    }
}
