//! The meaning of extended instructions, as terms of SMT-LIB over the registers and the memory of the machine.

use tamis_ebpf_vm::check::Access;
use tamis_ebpf_vm::insn::Address;
use tamis_ebpf_vm::{AluOp, Atomic, Cond, Op, Place, Reg, Size, Source, Swap, Width};
use tamis_jit::template::Template;

use super::extended_model::{extended, field, low, number, reversed, stored};

/// The machine's registers of r0 to r9, by their numbers.
pub(super) const MACHINE: [usize; 10] = [0, 7, 6, 8, 9, 12, 3, 13, 14, 15];
/// The registers that every template preserves: the pointers to stack, state, context and frame.
pub(super) const KEPT: [usize; 4] = [4, 5, 10, 11];
pub(super) const FRAMES: usize = 4;
pub(super) const STACK_BYTES: usize = FRAMES * 512;
pub(super) const CONTEXT_BYTES: usize = 200;

pub(super) struct Case {
    pub(super) op: Op,
    pub(super) access: Access,
    pub(super) template: Template,
    /// The constant that is left open.
    pub(super) constant: Option<i32>,
    pub(super) assumption: String,
}

/// The successor of an instruction under a condition, with its changes.
pub(super) struct Way {
    pub(super) condition: String,
    pub(super) exit: usize,
    pub(super) registers: Vec<(Reg, String)>,
    pub(super) memory: String,
}

pub(super) fn reg(number: u8) -> Reg {
    Reg::new(number).expect("it is one")
}

/// The value of a register, as a term.
pub(super) fn value(reg: Reg) -> String {
    match MACHINE.get(reg.index()) {
        Some(machine) => format!("r{machine}"),
        None => field(2),
    }
}

pub(super) fn bits(width: Width) -> usize {
    width.size().bytes() * 8
}

/// A term of the width in a whole register.
fn whole(width: Width, term: &str) -> String {
    extended(false, bits(width), 64, term)
}

/// The right-hand side, of the width.
fn source(case: &Case, width: Width, source: Source) -> String {
    match source {
        Source::Reg(reg) => low(bits(width), &value(reg)),
        Source::Imm(k) if case.constant == Some(k) => extended(true, 32, bits(width), "k"),
        Source::Imm(k) => number(i64::from(k) as u64, bits(width)),
    }
}

fn arithmetic(width: Width, alu: AluOp, a: &str, b: &str) -> String {
    let bits = bits(width);
    let zero = number(0, bits);
    let of = |function: &str| format!("({function} {a} {b})");
    // The quotient and the remainder by -1 for every dividend, in terms without a division.
    let by_minus_one = |result: &str, other: &str| {
        format!("(ite (= {b} {}) {result} {other})", number(u64::MAX, bits))
    };
    let by_zero = |result: &str, other: &str| format!("(ite (= {b} {zero}) {result} {other})");
    let shift = |function: &str| {
        format!(
            "({function} {a} (bvand {b} {}))",
            number(bits as u64 - 1, bits)
        )
    };
    match alu {
        AluOp::Add => of("bvadd"),
        AluOp::Sub => of("bvsub"),
        AluOp::Mul => of("bvmul"),
        AluOp::Div => by_zero(&zero, &of("bvudiv")),
        AluOp::SDiv => by_zero(&zero, &by_minus_one(&format!("(bvneg {a})"), &of("bvsdiv"))),
        AluOp::Mod => by_zero(a, &of("bvurem")),
        AluOp::SMod => by_zero(a, &by_minus_one(&zero, &of("bvsrem"))),
        AluOp::And => of("bvand"),
        AluOp::Or => of("bvor"),
        AluOp::Xor => of("bvxor"),
        AluOp::Lsh => shift("bvshl"),
        AluOp::Rsh => shift("bvlshr"),
        AluOp::Arsh => shift("bvashr"),
        AluOp::Mov => b.to_owned(),
    }
}

fn holds(cond: Cond, width: Width, a: &str, b: &str) -> String {
    let of = |function: &str| format!("({function} {a} {b})");
    match cond {
        Cond::Eq => of("="),
        Cond::Ne => of("distinct"),
        Cond::Gt => of("bvugt"),
        Cond::Ge => of("bvuge"),
        Cond::Lt => of("bvult"),
        Cond::Le => of("bvule"),
        Cond::SGt => of("bvsgt"),
        Cond::SGe => of("bvsge"),
        Cond::SLt => of("bvslt"),
        Cond::SLe => of("bvsle"),
        Cond::Set => format!("(distinct {} {})", of("bvand"), number(0, bits(width))),
    }
}

/// The address of an access as the program sees it.
fn address(at: Address) -> String {
    format!(
        "(bvadd {} {})",
        value(at.base),
        number(at.displacement(), 64)
    )
}

/// The real address of an access, where the checker was right.
fn real(access: Access, at: Address) -> String {
    let offset = extended(false, 32, 64, &low(32, &address(at)));
    let in_stack = format!("(bvadd {} {offset})", field(1));
    match access {
        Access::Context(offset) => format!("(bvadd r10 {})", number(offset as u64, 64)),
        Access::Stack if at.base == Reg::FRAME => {
            format!("(bvadd r11 {})", number(at.displacement(), 64))
        }
        Access::Stack => in_stack,
        _ => format!("(ite {} (bvadd r10 {offset}) {in_stack})", is_context(at)),
    }
}

fn is_context(at: Address) -> String {
    format!("(= ((_ extract 63 32) {}) {})", address(at), number(1, 32))
}

/// The checker's guarantee for an access.
pub(super) fn promise(access: Access, at: Address, size: Size) -> String {
    let offset = low(32, &address(at));
    let inside = |bytes: usize| {
        let last = number((bytes - size.bytes()) as u64, 32);
        format!("(bvule {offset} {last})")
    };
    match access {
        Access::Stack if at.base != Reg::FRAME => inside(STACK_BYTES),
        Access::Varying => format!(
            "(ite {} {} {})",
            is_context(at),
            inside(CONTEXT_BYTES),
            inside(STACK_BYTES)
        ),
        _ => "true".to_owned(),
    }
}

fn atomic_changes(width: Width, atomic: Atomic, src: Reg) -> (Vec<(Reg, String)>, String) {
    let (bits, bytes) = (bits(width), width.size().bytes());
    let old = low(bits, "m");
    let operand = low(bits, &value(src));
    let new = match atomic {
        Atomic::Add { .. } => format!("(bvadd {old} {operand})"),
        Atomic::Or { .. } => format!("(bvor {old} {operand})"),
        Atomic::And { .. } => format!("(bvand {old} {operand})"),
        Atomic::Xor { .. } => format!("(bvxor {old} {operand})"),
        Atomic::Exchange => operand,
        Atomic::CompareExchange => {
            format!(
                "(ite (= {old} {}) {operand} {old})",
                low(bits, &value(Reg::R0))
            )
        }
    };
    let mut registers = Vec::new();
    if atomic.fetches_to_source() {
        registers.push((src, whole(width, &old)));
    }
    if atomic == Atomic::CompareExchange {
        registers.push((Reg::R0, whole(width, &old)));
    }
    (registers, stored("m", bytes, &new))
}

/// The meaning of the instruction.
pub(super) fn ways(case: &Case) -> Vec<Way> {
    let next = case.template.no;
    let way = |registers: Vec<(Reg, String)>, memory: String| {
        vec![Way {
            condition: "true".to_owned(),
            exit: next,
            registers,
            memory,
        }]
    };
    let same = || "m".to_owned();
    let set = |dst: Reg, term: String| way(vec![(dst, term)], same());
    match case.op {
        Op::Alu(width, alu, dst, from) => {
            let (a, b) = (low(bits(width), &value(dst)), source(case, width, from));
            set(dst, whole(width, &arithmetic(width, alu, &a, &b)))
        }
        Op::Neg(width, dst) => set(
            dst,
            whole(width, &format!("(bvneg {})", low(bits(width), &value(dst)))),
        ),
        Op::MoveSigned(width, part, dst, src) => {
            let part_bits = part.count() as usize;
            let signed = extended(true, part_bits, bits(width), &low(part_bits, &value(src)));
            set(dst, whole(width, &signed))
        }
        Op::Swap(swap, part, dst) => {
            let part_bits = part.count() as usize;
            let part = low(part_bits, &value(dst));
            let turned = match swap {
                Swap::Little => part,
                _ => reversed(part_bits / 8, &part),
            };
            set(dst, extended(false, part_bits, 64, &turned))
        }
        Op::Load(size, dst, _) => {
            let number = low(size.bytes() * 8, "m");
            set(dst, extended(false, size.bytes() * 8, 64, &number))
        }
        Op::LoadSigned(size, dst, _) => {
            let number = low(size.bytes() * 8, "m");
            set(dst, extended(true, size.bytes() * 8, 64, &number))
        }
        Op::StoreImm(size, _, imm) => {
            let number = source(case, Width::W64, Source::Imm(imm));
            way(vec![], stored("m", size.bytes(), &number))
        }
        Op::Store(size, _, src) => way(vec![], stored("m", size.bytes(), &value(src))),
        Op::Atomic(width, atomic, _, src) => {
            let (registers, memory) = atomic_changes(width, atomic, src);
            way(registers, memory)
        }
        Op::LoadImm64(dst, constant) => set(dst, number(constant, 64)),
        Op::Branch(..) => branch_ways(case),
        Op::LoadPacket(size, place) => packet_ways(case, size, place),
        other => panic!("no meaning here for {other:?}"),
    }
}

fn branch_ways(case: &Case) -> Vec<Way> {
    let Op::Branch(width, cond, dst, from, _) = case.op else {
        unreachable!("the caller passes branches");
    };
    let (a, b) = (low(bits(width), &value(dst)), source(case, width, from));
    let holds = holds(cond, width, &a, &b);
    let to = |condition, exit| Way {
        condition,
        exit,
        registers: vec![],
        memory: "m".to_owned(),
    };
    vec![
        to(format!("(not {holds})"), case.template.no),
        to(holds, case.template.next),
    ]
}

/// The offset of a load from the packet, 32 bits.
fn packet_offset(place: Place) -> String {
    match place {
        Place::Absolute(offset) => number(offset as u64, 32),
        Place::Indirect(reg, offset) => {
            let offset = number(offset as u64, 32);
            format!("(bvadd {} {offset})", low(32, &value(reg)))
        }
    }
}

fn packet_ways(case: &Case, size: Size, place: Place) -> Vec<Way> {
    let offset = packet_offset(place);
    let wide = extended(false, 32, 64, &offset);
    let bytes = size.bytes();
    let end = format!("(bvadd {wide} {})", number(bytes as u64, 64));
    let is_inside = format!(
        "(and (bvsge {offset} {}) (bvule {end} {}))",
        number(0, 32),
        field(4)
    );
    let number = reversed(bytes, &low(bytes * 8, "m"));
    let to = |condition, exit, result| Way {
        condition,
        exit,
        registers: vec![(Reg::R0, result)],
        memory: "m".to_owned(),
    };
    vec![
        to(
            format!("(not {is_inside})"),
            zero_end(case),
            "r0".to_owned(),
        ),
        to(
            is_inside,
            case.template.no,
            extended(false, bytes * 8, 64, &number),
        ),
    ]
}

/// Where the instruction accesses memory, and how many bytes.
pub(super) fn place(case: &Case) -> Option<(String, usize)> {
    match case.op {
        Op::Load(size, _, at)
        | Op::LoadSigned(size, _, at)
        | Op::Store(size, at, _)
        | Op::StoreImm(size, at, _) => Some((real(case.access, at), size.bytes())),
        Op::Atomic(width, _, at, _) => Some((real(case.access, at), width.size().bytes())),
        Op::LoadPacket(size, place) => {
            let offset = extended(false, 32, 64, &packet_offset(place));
            Some((format!("(bvadd {} {offset})", field(3)), size.bytes()))
        }
        _ => None,
    }
}

/// Where programs end with 0: `xor` and `ret`.
pub(super) fn zero_end(case: &Case) -> usize {
    case.template.code.len() - 3
}
