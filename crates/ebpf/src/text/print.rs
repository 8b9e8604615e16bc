//! Instructions to text.

use std::fmt;

use crate::insn::{Address, AluOp, Atomic, Bits, Cond, Op, Place, Reg, Size, Source, Swap, Width};

/// A register as an operation of a width names it: `w1` or `r1`.
struct Named(Width, Reg);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named(width, reg) = self;
        match width {
            Width::W32 => write!(f, "w{}", reg.number()),
            Width::W64 => write!(f, "r{}", reg.number()),
        }
    }
}

/// A source in an operation of a width.
struct Operand(Width, Source);

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Source::Imm(imm) => write!(f, "{imm}"),
            Source::Reg(reg) => Named(self.0, reg).fmt(f),
        }
    }
}

impl fmt::Display for Address {
    /// `r10 - 8`, without parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { base, offset } = self;
        let sign = if *offset < 0 { '-' } else { '+' };
        write!(f, "{base} {sign} {}", offset.unsigned_abs())
    }
}

/// The operator of arithmetic, without the `=` that follows.
pub(super) const ALU: [(&str, AluOp); 14] = [
    ("+", AluOp::Add),
    ("-", AluOp::Sub),
    ("*", AluOp::Mul),
    ("/", AluOp::Div),
    ("s/", AluOp::SDiv),
    ("%", AluOp::Mod),
    ("s%", AluOp::SMod),
    ("&", AluOp::And),
    ("|", AluOp::Or),
    ("^", AluOp::Xor),
    ("<<", AluOp::Lsh),
    (">>", AluOp::Rsh),
    ("s>>", AluOp::Arsh),
    ("", AluOp::Mov),
];

/// The operators of comparisons.
pub(super) const CONDS: [(&str, Cond); 11] = [
    ("==", Cond::Eq),
    ("!=", Cond::Ne),
    (">", Cond::Gt),
    (">=", Cond::Ge),
    ("<", Cond::Lt),
    ("<=", Cond::Le),
    ("s>", Cond::SGt),
    ("s>=", Cond::SGe),
    ("s<", Cond::SLt),
    ("s<=", Cond::SLe),
    ("&", Cond::Set),
];

/// The names of swaps, which the number of bits follows.
pub(super) const SWAPS: [(&str, Swap); 3] = [
    ("le", Swap::Little),
    ("be", Swap::Big),
    ("bswap", Swap::Always),
];

/// The names of types in memory.
pub(super) const TYPES: [(&str, Size, bool); 7] = [
    ("u8", Size::B, false),
    ("u16", Size::H, false),
    ("u32", Size::W, false),
    ("u64", Size::D, false),
    ("s8", Size::B, true),
    ("s16", Size::H, true),
    ("s32", Size::W, true),
];

/// The names of functions that give the old value, without width.
pub(super) const FETCHES: [(&str, Atomic); 4] = [
    ("atomic_fetch_add", Atomic::Add { fetch: true }),
    ("atomic_fetch_or", Atomic::Or { fetch: true }),
    ("atomic_fetch_and", Atomic::And { fetch: true }),
    ("atomic_fetch_xor", Atomic::Xor { fetch: true }),
];

/// The names of exchanges.
pub(super) const EXCHANGES: [(&str, Width, Atomic); 4] = [
    ("xchg_64", Width::W64, Atomic::Exchange),
    ("xchg32_32", Width::W32, Atomic::Exchange),
    ("cmpxchg_64", Width::W64, Atomic::CompareExchange),
    ("cmpxchg32_32", Width::W32, Atomic::CompareExchange),
];

/// The spelling of a value; the tables have all values.
fn spelling<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    let found = table.iter().find(|(_, known)| known == value);
    found.map_or("", |(spelling, _)| spelling)
}

fn type_of(size: Size, is_signed: bool) -> &'static str {
    let found = TYPES
        .iter()
        .find(|(_, of, signed)| (*of, *signed) == (size, is_signed));
    found.map_or("", |(name, ..)| name)
}

fn signed_type(bits: Bits) -> &'static str {
    match bits {
        Bits::B8 => "s8",
        Bits::B16 => "s16",
        Bits::B32 => "s32",
        Bits::B64 => "s64",
    }
}

impl fmt::Display for Op {
    /// One line without its end, such as `r0 = *(u32 *)(r1 + 4)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Alu(width, alu, dst, source) => {
                let (dst, source) = (Named(width, dst), Operand(width, source));
                write!(f, "{dst} {}= {source}", spelling(&ALU, &alu))
            }
            Op::Neg(width, dst) => write!(f, "{0} = -{0}", Named(width, dst)),
            Op::MoveSigned(width, bits, dst, src) => {
                let (dst, src) = (Named(width, dst), Named(width, src));
                write!(f, "{dst} = ({}){src}", signed_type(bits))
            }
            Op::Swap(swap, bits, dst) => {
                let name = spelling(&SWAPS, &swap);
                write!(f, "{dst} = {name}{} {dst}", bits.count())
            }
            Op::Load(size, dst, at) => write!(f, "{dst} = *({} *)({at})", type_of(size, false)),
            Op::LoadSigned(size, dst, at) => {
                write!(f, "{dst} = *({} *)({at})", type_of(size, true))
            }
            Op::LoadPacket(size, place) => {
                write!(f, "r0 = *({} *)skb[", type_of(size, false))?;
                match place {
                    Place::Absolute(offset) => write!(f, "{offset}]"),
                    Place::Indirect(reg, 0) => write!(f, "{reg}]"),
                    Place::Indirect(reg, offset) => {
                        let sign = if offset < 0 { '-' } else { '+' };
                        write!(f, "{reg} {sign} {}]", offset.unsigned_abs())
                    }
                }
            }
            Op::StoreImm(size, at, imm) => write!(f, "*({} *)({at}) = {imm}", type_of(size, false)),
            Op::Store(size, at, src) => write!(f, "*({} *)({at}) = {src}", type_of(size, false)),
            Op::Atomic(width, atomic, at, src) => write_atomic(f, width, atomic, at, src),
            Op::LoadImm64(dst, value) => write!(f, "{dst} = {value:#x} ll"),
            Op::Jump(skip) => write!(f, "goto {skip:+}"),
            Op::JumpFar(skip) => write!(f, "gotol {skip:+}"),
            Op::Branch(width, cond, dst, source, skip) => {
                let (dst, source) = (Named(width, dst), Operand(width, source));
                let cond = spelling(&CONDS, &cond);
                write!(f, "if {dst} {cond} {source} goto {skip:+}")
            }
            Op::CallHelper(number) => write!(f, "call {number}"),
            Op::CallLocal(skip) => write!(f, "call pc{skip:+}"),
            Op::Exit => f.write_str("exit"),
        }
    }
}

fn write_atomic(
    f: &mut fmt::Formatter<'_>,
    width: Width,
    atomic: Atomic,
    at: Address,
    src: Reg,
) -> fmt::Result {
    let of = type_of(width.size(), false);
    let src = Named(width, src);
    if let Some((name, ..)) = EXCHANGES
        .iter()
        .find(|(_, w, a)| (*w, *a) == (width, atomic))
    {
        return match atomic {
            Atomic::CompareExchange => {
                let r0 = Named(width, Reg::R0);
                write!(f, "{r0} = {name}({at}, {r0}, {src})")
            }
            _ => write!(f, "{src} = {name}({at}, {src})"),
        };
    }
    match atomic {
        Atomic::Add { fetch: false } => write!(f, "lock *({of} *)({at}) += {src}"),
        Atomic::Or { fetch: false } => write!(f, "lock *({of} *)({at}) |= {src}"),
        Atomic::And { fetch: false } => write!(f, "lock *({of} *)({at}) &= {src}"),
        Atomic::Xor { fetch: false } => write!(f, "lock *({of} *)({at}) ^= {src}"),
        other => write!(
            f,
            "{src} = {}(({of} *)({at}), {src})",
            spelling(&FETCHES, &other)
        ),
    }
}
