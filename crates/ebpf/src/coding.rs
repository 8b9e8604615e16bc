//! The encoding of instructions.
//!
//! One table for arithmetic and one for comparisons serve both directions. Decoding is strict: fields that the kernel's
//! verifier reserves must be 0.

use tamis_bpf::extended::{Insn, code};

use crate::insn::{Address, AluOp, Atomic, Bits, Cond, Op, Place, Reg, Size, Source, Swap, Width};

/// An operation's bits, and the displacement that selects its signed variant.
const ALU_OPS: [(u8, i16, AluOp); 14] = [
    (0x00, 0, AluOp::Add),
    (0x10, 0, AluOp::Sub),
    (0x20, 0, AluOp::Mul),
    (0x30, 0, AluOp::Div),
    (0x30, 1, AluOp::SDiv),
    (0x40, 0, AluOp::Or),
    (0x50, 0, AluOp::And),
    (0x60, 0, AluOp::Lsh),
    (0x70, 0, AluOp::Rsh),
    (0x90, 0, AluOp::Mod),
    (0x90, 1, AluOp::SMod),
    (0xa0, 0, AluOp::Xor),
    (0xb0, 0, AluOp::Mov),
    (0xc0, 0, AluOp::Arsh),
];

const CONDS: [(u8, Cond); 11] = [
    (0x10, Cond::Eq),
    (0x20, Cond::Gt),
    (0x30, Cond::Ge),
    (0x40, Cond::Set),
    (0x50, Cond::Ne),
    (0x60, Cond::SGt),
    (0x70, Cond::SGe),
    (0xa0, Cond::Lt),
    (0xb0, Cond::Le),
    (0xc0, Cond::SLt),
    (0xd0, Cond::SLe),
];

const ATOMICS: [(i32, Atomic); 10] = [
    (0x00, Atomic::Add { fetch: false }),
    (0x01, Atomic::Add { fetch: true }),
    (0x40, Atomic::Or { fetch: false }),
    (0x41, Atomic::Or { fetch: true }),
    (0x50, Atomic::And { fetch: false }),
    (0x51, Atomic::And { fetch: true }),
    (0xa0, Atomic::Xor { fetch: false }),
    (0xa1, Atomic::Xor { fetch: true }),
    (0xe1, Atomic::Exchange),
    (0xf1, Atomic::CompareExchange),
];

const SIZES: [(u8, Size); 4] = [
    (code::B, Size::B),
    (code::H, Size::H),
    (code::W, Size::W),
    (code::DW, Size::D),
];

const NEG: u8 = 0x80;
/// The source field of a call of a function of the program.
const LOCAL: u8 = 1;

/// The instruction at the beginning of a list; `None` if it is none of the instruction set, or the list is empty or
/// ends inside a wide instruction.
///
/// ```
/// use tamis_ebpf::{Insn, Op, decode};
/// let insn = Insn { code: 0x95, ..Insn::default() };
/// assert_eq!(decode(&[insn]), Some(Op::Exit));
/// assert_eq!(decode(&[Insn { imm: 1, ..insn }]), None);
/// ```
pub fn decode(insns: &[Insn]) -> Option<Op> {
    let insn = *insns.first()?;
    let op = match insn.code & code::CLASS {
        code::ALU => arithmetic(insn, Width::W32)?,
        code::ALU64 => arithmetic(insn, Width::W64)?,
        code::JMP => jump(insn, Width::W64)?,
        code::JMP32 => jump(insn, Width::W32)?,
        code::LD => load_without_base(insn, insns.get(1).copied())?,
        _ => memory(insn)?,
    };
    // Whatever a reserved field has, encoding the operation makes it 0.
    let encoded = Encoded::from(op);
    insns.starts_with(encoded.insns()).then_some(op)
}

/// The stored form of an operation: one instruction, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    insns: [Insn; 2],
    len: usize,
}

impl Encoded {
    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns[..self.len]
    }
}

fn source(insn: Insn) -> Option<Source> {
    Some(if insn.code & code::SOURCE_X == 0 {
        Source::Imm(insn.imm)
    } else {
        Source::Reg(Reg::new(insn.src)?)
    })
}

fn arithmetic(insn: Insn, width: Width) -> Option<Op> {
    let dst = Reg::new(insn.dst)?;
    let operation = insn.code & code::OPERATION;
    if operation == code::END {
        let bits = match insn.imm {
            16 => Bits::B16,
            32 => Bits::B32,
            64 => Bits::B64,
            _ => return None,
        };
        let swap = match (width, insn.code & code::SOURCE_X != 0) {
            (Width::W32, false) => Swap::Little,
            (Width::W32, true) => Swap::Big,
            (Width::W64, _) => Swap::Always,
        };
        return Some(Op::Swap(swap, bits, dst));
    }
    if operation == NEG {
        return Some(Op::Neg(width, dst));
    }
    let source = source(insn)?;
    if let (code::MOV, Source::Reg(src), 8 | 16 | 32) = (operation, source, insn.offset) {
        let bits = match insn.offset {
            8 => Bits::B8,
            16 => Bits::B16,
            // A move of 32 bits has nothing to extend.
            _ if width == Width::W32 => return None,
            _ => Bits::B32,
        };
        return Some(Op::MoveSigned(width, bits, dst, src));
    }
    let mut known = ALU_OPS.into_iter();
    let (.., alu) =
        known.find(|(bits, variant, _)| (*bits, *variant) == (operation, insn.offset))?;
    if let Source::Imm(distance) = source {
        let bits = width.size().bits().count();
        let is_shift = matches!(alu, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh);
        let is_division = matches!(alu, AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod);
        // The kernel refuses a constant that makes no sense there.
        if is_shift && !(0..bits as i32).contains(&distance) || is_division && distance == 0 {
            return None;
        }
    }
    Some(Op::Alu(width, alu, dst, source))
}

fn jump(insn: Insn, width: Width) -> Option<Op> {
    match (insn.code & code::OPERATION, width) {
        (code::JA, Width::W64) => return Some(Op::Jump(insn.offset)),
        (code::JA, Width::W32) => return Some(Op::JumpFar(insn.imm)),
        (code::CALL, Width::W64) if insn.src == LOCAL => return Some(Op::CallLocal(insn.imm)),
        (code::CALL, Width::W64) => return Some(Op::CallHelper(insn.imm)),
        (code::EXIT, Width::W64) => return Some(Op::Exit),
        _ => {}
    }
    let operation = insn.code & code::OPERATION;
    let (_, cond) = CONDS.into_iter().find(|(bits, _)| *bits == operation)?;
    let dst = Reg::new(insn.dst)?;
    Some(Op::Branch(width, cond, dst, source(insn)?, insn.offset))
}

fn size(insn: Insn) -> Option<Size> {
    let bits = insn.code & code::SIZE;
    SIZES
        .into_iter()
        .find(|(known, _)| *known == bits)
        .map(|(_, size)| size)
}

fn load_without_base(insn: Insn, next: Option<Insn>) -> Option<Op> {
    let size = size(insn)?;
    match (insn.code & code::MODE, size) {
        // A source field that isn't 0 means the address of a map.
        (code::IMM, Size::D) => {
            let upper = u64::from(next?.imm as u32) << 32;
            let value = upper | u64::from(insn.imm as u32);
            Some(Op::LoadImm64(Reg::new(insn.dst)?, value))
        }
        (_, Size::D) => None,
        (code::ABS, _) => Some(Op::LoadPacket(size, Place::Absolute(insn.imm))),
        (code::IND, _) => {
            let place = Place::Indirect(Reg::new(insn.src)?, insn.imm);
            Some(Op::LoadPacket(size, place))
        }
        _ => None,
    }
}

fn memory(insn: Insn) -> Option<Op> {
    let size = size(insn)?;
    let (dst, src) = (Reg::new(insn.dst)?, Reg::new(insn.src)?);
    let at = |base| Address {
        base,
        offset: insn.offset,
    };
    Some(match (insn.code & code::CLASS, insn.code & code::MODE) {
        (code::LDX, code::MEM) => Op::Load(size, dst, at(src)),
        (code::LDX, code::MEMSX) if size != Size::D => Op::LoadSigned(size, dst, at(src)),
        (code::ST, code::MEM) => Op::StoreImm(size, at(dst), insn.imm),
        (code::STX, code::MEM) => Op::Store(size, at(dst), src),
        (code::STX, code::ATOMIC) => {
            let width = match size {
                Size::W => Width::W32,
                Size::D => Width::W64,
                Size::B | Size::H => return None,
            };
            let (_, atomic) = ATOMICS.into_iter().find(|(bits, _)| *bits == insn.imm)?;
            Op::Atomic(width, atomic, at(dst), src)
        }
        _ => return None,
    })
}

/// The bits of a value that the table has.
fn bits_of<B: Copy, T: Copy + PartialEq, const N: usize>(table: &[(B, T); N], value: T) -> B {
    let mut entries = table.iter();
    let found = entries.find(|(_, known)| *known == value);
    found.expect("the table has all values").0
}

impl From<Op> for Encoded {
    fn from(op: Op) -> Encoded {
        let one = |insn| Encoded {
            insns: [insn, Insn::default()],
            len: 1,
        };
        let plain = |code, imm| Insn {
            code,
            imm,
            ..Insn::default()
        };
        match op {
            Op::Alu(..) | Op::Neg(..) | Op::MoveSigned(..) | Op::Swap(..) => one(encode_alu(op)),
            Op::Load(..)
            | Op::LoadSigned(..)
            | Op::LoadPacket(..)
            | Op::StoreImm(..)
            | Op::Store(..)
            | Op::Atomic(..) => one(encode_memory(op)),
            Op::LoadImm64(dst, value) => Encoded {
                insns: [
                    Insn {
                        dst: dst.number(),
                        ..plain(code::LD | code::IMM | code::DW, value as i32)
                    },
                    plain(0, (value >> 32) as i32),
                ],
                len: 2,
            },
            Op::Jump(offset) => one(Insn {
                offset,
                ..plain(code::JMP | code::JA, 0)
            }),
            Op::JumpFar(imm) => one(plain(code::JMP32 | code::JA, imm)),
            Op::Branch(width, cond, dst, source, offset) => {
                let class = match width {
                    Width::W32 => code::JMP32,
                    Width::W64 => code::JMP,
                };
                let insn = with_source(class | bits_of(&CONDS, cond), dst, source);
                one(Insn { offset, ..insn })
            }
            Op::CallHelper(number) => one(plain(code::JMP | code::CALL, number)),
            Op::CallLocal(skip) => one(Insn {
                src: LOCAL,
                ..plain(code::JMP | code::CALL, skip)
            }),
            Op::Exit => one(plain(code::JMP | code::EXIT, 0)),
        }
    }
}

fn with_source(code: u8, dst: Reg, source: Source) -> Insn {
    let (x, src, imm) = match source {
        Source::Imm(imm) => (0, 0, imm),
        Source::Reg(src) => (code::SOURCE_X, src.number(), 0),
    };
    Insn {
        code: code | x,
        dst: dst.number(),
        src,
        offset: 0,
        imm,
    }
}

const fn class_of(width: Width) -> u8 {
    match width {
        Width::W32 => code::ALU,
        Width::W64 => code::ALU64,
    }
}

/// # Panics
/// If it is not arithmetic.
fn encode_alu(op: Op) -> Insn {
    match op {
        Op::Alu(width, alu, dst, source) => {
            let mut known = ALU_OPS.iter();
            let found = known.find(|(.., known)| *known == alu);
            let (bits, offset, _) = *found.expect("the table has all operations");
            let insn = with_source(class_of(width) | bits, dst, source);
            Insn { offset, ..insn }
        }
        Op::Neg(width, dst) => with_source(class_of(width) | NEG, dst, Source::Imm(0)),
        Op::MoveSigned(width, bits, dst, src) => {
            let insn = with_source(class_of(width) | code::MOV, dst, Source::Reg(src));
            let offset = bits.count() as i16;
            Insn { offset, ..insn }
        }
        Op::Swap(swap, bits, dst) => {
            let variant = match swap {
                Swap::Little => code::ALU,
                Swap::Big => code::ALU | code::SOURCE_X,
                Swap::Always => code::ALU64,
            };
            Insn {
                code: variant | code::END,
                dst: dst.number(),
                imm: bits.count() as i32,
                ..Insn::default()
            }
        }
        _ => unreachable!("the caller passes arithmetic"),
    }
}

/// # Panics
/// If it is not an access to memory.
fn encode_memory(op: Op) -> Insn {
    let plain = |class, size, dst: u8, src: u8, offset| Insn {
        code: class | bits_of(&SIZES, size),
        dst,
        src,
        offset,
        imm: 0,
    };
    match op {
        Op::Load(size, dst, Address { base, offset }) => {
            let class = code::LDX | code::MEM;
            plain(class, size, dst.number(), base.number(), offset)
        }
        Op::LoadSigned(size, dst, Address { base, offset }) => {
            let class = code::LDX | code::MEMSX;
            plain(class, size, dst.number(), base.number(), offset)
        }
        Op::LoadPacket(size, Place::Absolute(imm)) => Insn {
            imm,
            ..plain(code::LD | code::ABS, size, 0, 0, 0)
        },
        Op::LoadPacket(size, Place::Indirect(src, imm)) => Insn {
            imm,
            ..plain(code::LD | code::IND, size, 0, src.number(), 0)
        },
        Op::StoreImm(size, Address { base, offset }, imm) => Insn {
            imm,
            ..plain(code::ST | code::MEM, size, base.number(), 0, offset)
        },
        Op::Store(size, Address { base, offset }, src) => {
            let class = code::STX | code::MEM;
            plain(class, size, base.number(), src.number(), offset)
        }
        Op::Atomic(width, atomic, Address { base, offset }, src) => Insn {
            imm: bits_of(&ATOMICS, atomic),
            ..plain(
                code::STX | code::ATOMIC,
                width.size(),
                base.number(),
                src.number(),
                offset,
            )
        },
        _ => unreachable!("the caller passes accesses to memory"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Fields that select variants, and one value more for each.
    const OFFSETS: [i16; 7] = [0, 1, 2, 8, 16, 32, -3];
    const IMMS: [i32; 17] = [
        0, 1, 2, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1, 0xf1, 16, 32, 31, 63, -1, 0x60,
    ];

    #[test]
    fn what_decodes_is_encoded_to_the_same_instructions() {
        let mut codes = BTreeSet::new();
        for code in 0..=u8::MAX {
            for (offset, imm) in OFFSETS.into_iter().flat_map(|o| IMMS.map(|i| (o, i))) {
                for (dst, src) in [(0, 0), (10, 0), (0, 10), (3, 1), (11, 0), (0, 11)] {
                    let insn = Insn {
                        code,
                        dst,
                        src,
                        offset,
                        imm,
                    };
                    let upper = Insn {
                        imm: 7,
                        ..Insn::default()
                    };
                    if let Some(op) = decode(&[insn, upper]) {
                        codes.insert(code);
                        let all = [insn, upper];
                        assert_eq!(Encoded::from(op).insns(), &all[..op.places()], "{op:?}");
                    }
                }
            }
        }
        // Per width: 12 operations with 2 sources, neg; three swaps; 11 comparisons with 2 sources and 2 widths, two
        // jumps, call, exit; loads of 4 sizes and 3 signed, of packets 3 and 3, stores 4 and 4, atomics 2, the wide
        // constant.
        let (alu, swaps, jumps) = (2 * (12 * 2 + 1), 3, 2 * 11 * 2 + 4);
        assert_eq!(codes.len(), alu + swaps + jumps + 7 + 6 + 8 + 2 + 1);
    }

    #[test]
    fn half_a_wide_instruction_is_none() {
        let wide = Encoded::from(Op::LoadImm64(Reg::R1, 1 << 40));
        assert_eq!(decode(&wide.insns()[..1]), None);
        assert_eq!(decode(wide.insns()), Some(Op::LoadImm64(Reg::R1, 1 << 40)));
        // The address of a map.
        let [first, second] = [wide.insns()[0], wide.insns()[1]];
        assert_eq!(decode(&[Insn { src: 1, ..first }, second]), None);
        assert_eq!(decode(&[first, Insn { code: 1, ..second }]), None);
    }

    #[test]
    fn constants_without_sense_are_refused() {
        let alu = |width, alu, k| {
            decode(Encoded::from(Op::Alu(width, alu, Reg::R0, Source::Imm(k))).insns())
        };
        assert_eq!(alu(Width::W32, AluOp::Lsh, 32), None);
        assert!(alu(Width::W64, AluOp::Lsh, 32).is_some());
        assert_eq!(alu(Width::W64, AluOp::Rsh, 64), None);
        assert_eq!(alu(Width::W64, AluOp::Mod, 0), None);
        let frame = Op::Alu(Width::W64, AluOp::Mov, Reg::FRAME, Source::Imm(1));
        assert!(
            decode(Encoded::from(frame).insns()).is_some(),
            "whether it may be written is not coding"
        );
    }
}
