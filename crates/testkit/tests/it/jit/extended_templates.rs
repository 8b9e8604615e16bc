//! The templates of extended instructions do what the instructions mean, for all values of registers and memory: Z3 finds
//! no other case. Constants are left open where they stand in the code as they are; those with code of their own are
//! proved one by one. Addresses in the stack that a program computes lead into the stack whatever they are.
//!
//! Calls of functions and helpers, and `exit`, have no template here: they are tested by running them.

use tamis_ebpf_vm::check::Access;
use tamis_ebpf_vm::insn::Address;
use tamis_ebpf_vm::{AluOp, Atomic, Bits, Cond, Op, Place, Reg, Size, Source, Swap, Width};
use tamis_jit::Options;
use tamis_jit::template::{Layout, Template};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::smt::ask_z3;

use super::extended_meaning::{
    CONTEXT_BYTES, Case, FRAMES, KEPT, MACHINE, STACK_BYTES, Way, bits, place, promise, reg, value,
    ways, zero_end,
};
use super::extended_model::{Code, Exit, Machine, Outcome, declarations, field, low, number};

fn layout(to_second: usize) -> Layout {
    Layout {
        to_first: 3,
        to_second,
        is_no_first: true,
    }
}

fn template(op: Op, access: Access, options: &Options, layout: Layout) -> Template {
    Template::extended(op, access, (FRAMES, CONTEXT_BYTES), options, layout)
}

/// Whether the code left the instruction this way.
fn is_right(case: &Case, outcome: &Outcome, way: &Way, is_end: bool) -> String {
    let place = place(case);
    let mut accessed = outcome.machine.accesses.iter();
    let is_sized = accessed.all(|(_, bytes)| place.as_ref().is_some_and(|(_, most)| bytes == most));
    if outcome.exit != Exit::At(way.exit) || !is_sized {
        return "false".to_owned();
    }
    let start = Machine::start();
    let mut equal = String::from("(and true");
    let mut compare = |left: &str, right: &str| {
        if left != right {
            equal.push_str(&format!(" (= {left} {right})"));
        }
    };
    compare(&outcome.machine.memory, &way.memory);
    for (address, _) in &outcome.machine.accesses {
        let (place, _) = place.as_ref().expect("there is one");
        compare(address, place);
    }
    for kept in KEPT {
        compare(&outcome.machine.registers[kept], &start.registers[kept]);
    }
    for (index, machine) in MACHINE.iter().enumerate().filter(|_| !is_end) {
        let mut changed = way.registers.iter().rev();
        let changed = changed.find(|(reg, _)| reg.index() == index);
        let expected = changed.map_or(start.registers[*machine].as_str(), |(_, term)| term);
        compare(&outcome.machine.registers[*machine], expected);
    }
    equal + ")"
}

/// The questions for Z3, which must all be refuted.
///
/// # Errors
/// The instruction outside of the machine's model.
fn questions(case: &Case) -> Result<Vec<String>, String> {
    let zero = zero_end(case);
    let code = Code {
        bytes: &case.template.code,
        constant: case.constant,
        ends: &[case.template.next, case.template.no, zero],
    };
    let outcomes = code.outcomes()?;
    let ways = ways(case);
    let wrong = |outcome: &Outcome| {
        let wrong = ways.iter().map(|way| {
            let is_right = is_right(case, outcome, way, way.exit == zero);
            format!("(and {} (not {is_right}))", way.condition)
        });
        let wrong = wrong.collect::<Vec<_>>().join(" ");
        format!("(and {} (or false {wrong}))", outcome.condition)
    };
    let wrong = outcomes.iter().map(wrong).collect::<Vec<_>>().join(" ");
    let ask = |assumed: &str, claim: &str| {
        format!("(push)\n(assert {assumed})\n(assert {claim})\n(check-sat)\n(pop)\n")
    };
    let promised = match case.op {
        Op::Load(size, _, at)
        | Op::LoadSigned(size, _, at)
        | Op::Store(size, at, _)
        | Op::StoreImm(size, at, _) => promise(case.access, at, size),
        Op::Atomic(width, _, at, _) => promise(case.access, at, width.size()),
        // The host passes shorter packets only.
        _ => format!("(bvult {} {})", field(4), number(1 << 31, 64)),
    };
    let wrong = format!("(or false {wrong})");
    let assumed = format!("(and {} {promised})", case.assumption);
    // A product with an operand that is known to be one of two is easier for each of them.
    let mut questions: Vec<String> = match case.op {
        Op::Alu(width, AluOp::SDiv | AluOp::SMod, _, Source::Reg(src)) => {
            let by = low(bits(width), &value(src));
            let [zero, minus_one] = [0, u64::MAX].map(|value| number(value, bits(width)));
            let cases = [
                format!("(= {by} {zero})"),
                format!("(= {by} {minus_one})"),
                format!("(distinct {by} {zero} {minus_one})"),
            ];
            let assumed = cases.iter().map(|case| format!("(and {assumed} {case})"));
            assumed.map(|assumed| ask(&assumed, &wrong)).collect()
        }
        _ => vec![ask(&assumed, &wrong)],
    };
    let computed =
        matches!(case.op, Op::Load(_, _, at) | Op::Store(_, at, _) if at.base != Reg::FRAME);
    if computed && matches!(case.access, Access::Stack | Access::Varying) {
        for outcome in &outcomes {
            for (place, bytes) in &outcome.machine.accesses {
                let outside = |base: &str, len: usize| {
                    let last = number((len - bytes) as u64, 64);
                    format!("(bvugt (bvsub {place} {base}) {last})")
                };
                let is_outside = format!(
                    "(and {} {})",
                    outside(&field(1), STACK_BYTES + 8),
                    outside("r10", CONTEXT_BYTES)
                );
                let is_outside = format!("(and {} {is_outside})", outcome.condition);
                questions.push(ask("true", &is_outside));
            }
        }
    }
    Ok(questions)
}

/// A case whose constant, if it has one, is left open together with all constants that have the same code around them.
fn case(
    with: &dyn Fn(i32) -> Op,
    k: Option<i32>,
    access: Access,
    options: &Options,
    layout: Layout,
) -> Case {
    let op = with(k.unwrap_or_default());
    let is_byte = |k: i32| i32::from(k as i8) == k;
    let constant = k.filter(|k| *k != 0 && options.harden.is_none());
    let assumption = match constant {
        None => "true",
        Some(k) if is_byte(k) && k > 0 => "(and (bvsgt k #x00000000) (bvsle k #x0000007f))",
        Some(k) if is_byte(k) => "(and (bvslt k #x00000000) (bvsge k #xffffff80))",
        Some(k) if k > 0 => "(bvsgt k #x0000007f)",
        Some(_) => "(bvslt k #xffffff80)",
    };
    let mut case = Case {
        op,
        access,
        template: template(op, access, options, layout),
        constant,
        assumption: assumption.to_owned(),
    };
    // Other constants of the class must have the same code but for themselves; else this one is proved alone.
    if let Some(k) = constant {
        let mut rng = Rng::new(u64::from(k as u32));
        let others = (0..24).map(|_| match is_byte(k) {
            true => rng.range(1..=127) as i32 * k.signum(),
            false => (rng.range(128..=0x7fff_ffff) as i32) * k.signum(),
        });
        let bytes = k.to_le_bytes();
        let is_same = |other: i32| {
            let theirs = template(with(other), access, options, layout).code;
            let others = other.to_le_bytes();
            theirs.len() == case.template.code.len()
                && std::iter::zip(&theirs, &case.template.code).all(|(theirs, ours)| {
                    theirs == ours || bytes.contains(ours) && others.contains(theirs)
                })
        };
        if !others.into_iter().all(is_same) {
            case.constant = None;
            case.assumption = "true".to_owned();
        }
    }
    case
}

const PAIRS: [(u8, u8); 8] = [
    (0, 1),
    (1, 0),
    (2, 2),
    (5, 9),
    (9, 4),
    (7, 5),
    (3, 6),
    (6, 8),
];
const CONSTANTS: [i32; 7] = [0, 0x57, -0x35, 0x1234_5679, -0x1234_5679, i32::MIN, 1];

fn push(cases: &mut Vec<Case>, op: Op, access: Access, options: &Options) {
    cases.push(case(&|_| op, None, access, options, layout(5)));
}

fn computing(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for width in Width::ALL {
        for alu in AluOp::ALL {
            arithmetic(&mut cases, width, alu, options);
        }
    }
    for op in moves() {
        push(&mut cases, op, Access::Nothing, options);
    }
    cases
}

fn arithmetic(cases: &mut Vec<Case>, width: Width, alu: AluOp, options: &Options) {
    let is_shift = matches!(alu, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh);
    let is_division = matches!(alu, AluOp::Div | AluOp::Mod | AluOp::SDiv | AluOp::SMod);
    for (dst, src) in PAIRS {
        let op = Op::Alu(width, alu, reg(dst), Source::Reg(reg(src)));
        push(cases, op, Access::Nothing, options);
    }
    for (dst, _) in PAIRS.into_iter().take(3) {
        let with = |k| Op::Alu(width, alu, reg(dst), Source::Imm(k));
        for k in CONSTANTS.into_iter().filter(|_| !is_shift) {
            let mut case = case(&with, Some(k), Access::Nothing, options, layout(5));
            if is_division {
                // Division by an open constant is that by a register.
                case.constant = None;
                case.assumption = "true".to_owned();
            }
            cases.push(case);
        }
        for k in (0..bits(width) as i32).filter(|k| is_shift && k % 7 < 2) {
            push(cases, with(k), Access::Nothing, options);
        }
    }
}

/// Instructions without a constant that is left open.
fn moves() -> Vec<Op> {
    let mut ops = Vec::new();
    for width in Width::ALL {
        for (dst, src) in PAIRS {
            ops.push(Op::Neg(width, reg(dst)));
            let parts = [Bits::B8, Bits::B16, Bits::B32].into_iter();
            let parts = parts.filter(|part| (part.count() as usize) < bits(width));
            ops.extend(parts.map(|part| Op::MoveSigned(width, part, reg(dst), reg(src))));
        }
    }
    for dst in (0..10).map(reg) {
        for part in [Bits::B16, Bits::B32, Bits::B64] {
            let swaps = [Swap::Little, Swap::Big, Swap::Always];
            ops.extend(swaps.map(|swap| Op::Swap(swap, part, dst)));
        }
        let constants = [0, 1, 1 << 31, 1 << 32, u64::MAX, 0x0123_4567_89ab_cdef];
        ops.extend(constants.map(|constant| Op::LoadImm64(dst, constant)));
        let frame = Source::Reg(Reg::FRAME);
        ops.push(Op::Alu(Width::W64, AluOp::Mov, dst, frame));
    }
    ops
}

fn branching(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for width in Width::ALL {
        for cond in Cond::ALL {
            for (index, (dst, src)) in PAIRS.into_iter().enumerate() {
                let with = |k| {
                    Op::Branch(
                        width,
                        cond,
                        reg(dst),
                        if k == 0 {
                            Source::Reg(reg(src))
                        } else {
                            Source::Imm(k)
                        },
                        0,
                    )
                };
                let layout = layout(if index % 2 == 0 { 5 } else { 300 });
                for k in CONSTANTS {
                    cases.push(case(&with, Some(k), Access::Nothing, options, layout));
                }
            }
        }
    }
    cases
}

fn accessing(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in Size::ALL {
        for (index, (first, second)) in PAIRS.into_iter().enumerate() {
            for (base, offset, access) in [
                (second, 0, Access::Context(0)),
                (second, -3, Access::Context(192)),
                (10, -8, Access::Stack),
                (10, -512, Access::Stack),
                (second, 0, Access::Stack),
                (second, -128, Access::Stack),
                (second, i16::MAX, Access::Stack),
                (second, i16::MIN, Access::Varying),
                (second, 7, Access::Varying),
            ] {
                // Two instructions in one, proved for a few registers.
                if access == Access::Varying && index > 1 {
                    continue;
                }
                let base = reg(base);
                let ops = accesses(size, Address { base, offset }, reg(first));
                let ops = ops.into_iter();
                let is_distinct = access == Access::Stack && first != second;
                for op in ops.filter(|op| is_distinct || !matches!(op, Op::Atomic(..))) {
                    push(&mut cases, op, access, options);
                }
                for k in [0x57, -0x1234_5679] {
                    let with = |k| Op::StoreImm(size, Address { base, offset }, k);
                    cases.push(case(&with, Some(k), access, options, layout(5)));
                }
            }
        }
        let (base, offset) = (reg(3), -16);
        let store = Op::Store(size, Address { base, offset }, Reg::FRAME);
        push(&mut cases, store, Access::Stack, options);
    }
    for op in packet_loads() {
        push(&mut cases, op, Access::Nothing, options);
    }
    cases
}

/// All accesses of a size between a place and a register.
fn accesses(size: Size, at: Address, other: Reg) -> Vec<Op> {
    let mut ops = vec![Op::Load(size, other, at), Op::Store(size, at, other)];
    if size != Size::D {
        ops.push(Op::LoadSigned(size, other, at));
    }
    let width = Width::ALL.into_iter().find(|width| width.size() == size);
    let atomics = width.into_iter();
    ops.extend(
        atomics.flat_map(|width| Atomic::ALL.map(|atomic| Op::Atomic(width, atomic, at, other))),
    );
    ops
}

fn packet_loads() -> Vec<Op> {
    let mut ops = Vec::new();
    for size in [Size::B, Size::H, Size::W] {
        for offset in [0, 1, 127, 128, -1, i32::MAX, i32::MIN] {
            ops.push(Op::LoadPacket(size, Place::Absolute(offset)));
            let indirect = [0, 3, 7].map(|index| Place::Indirect(reg(index), offset));
            ops.extend(indirect.map(|place| Op::LoadPacket(size, place)));
        }
    }
    ops
}

/// Z3's answers, for each case those to its questions; `None` if there is no Z3.
fn answers(cases: &[Case]) -> Option<Vec<Vec<String>>> {
    let mut script = format!(
        "(set-logic QF_UFBV)\n{}(declare-const k (_ BitVec 32))\n",
        declarations()
    );
    let mut counts = Vec::new();
    for case in cases {
        let asked = questions(case)
            .unwrap_or_else(|unknown| panic!("{unknown}: {:x?}\n{:x?}", case.op, case.template));
        counts.push(asked.len());
        asked.iter().for_each(|question| script.push_str(question));
    }
    let mut answers = ask_z3(&script).into_iter();
    let of_case = |count: usize| answers.by_ref().take(count).collect();
    Some(counts.into_iter().map(of_case).collect())
}

fn prove(name: &str, cases_with: fn(&Options) -> Vec<Case>) {
    for harden in [None, Some(7)] {
        let all = cases_with(&Options { harden }).into_iter();
        let cases: Vec<Case> = all.step_by(seeds::every(5)).collect();
        let Some(answers) = answers(&cases) else {
            return;
        };
        for (case, answers) in cases.iter().zip(&answers) {
            let is_proved = !answers.is_empty() && answers.iter().all(|answer| answer == "unsat");
            assert!(
                is_proved,
                "{answers:?}: {:x?} {:?}\n{:x?}",
                case.op, case.access, case.template
            );
        }
        let open = cases.iter().filter(|case| case.constant.is_some()).count();
        println!(
            "{name}, harden {harden:?}: {} proved, {open} of them for all constants",
            cases.len()
        );
    }
}

#[test]
fn computing_is_proved() {
    prove("computing", computing);
}

#[test]
fn branching_is_proved() {
    prove("branching", branching);
}

#[test]
fn accesses_are_proved() {
    prove("accesses", accessing);
}

/// Code with one changed bit is refuted or not understood, unless the bit makes no difference.
#[test]
fn damaged_code_is_refuted() {
    let options = Options::default();
    let source = Source::Reg(reg(2));
    let at = Address {
        base: reg(3),
        offset: 8,
    };
    let ops = [
        (
            Op::Alu(Width::W64, AluOp::Add, reg(1), source),
            Access::Nothing,
        ),
        (
            Op::Alu(Width::W32, AluOp::Rsh, reg(1), source),
            Access::Nothing,
        ),
        (
            Op::Branch(Width::W64, Cond::SGt, reg(1), source, 0),
            Access::Nothing,
        ),
        (Op::Load(Size::H, reg(1), at), Access::Stack),
        (Op::Swap(Swap::Big, Bits::B16, reg(4)), Access::Nothing),
    ];
    let mut counts = [0; 3];
    for (op, access) in ops {
        let whole = case(&|_| op, None, access, &options, layout(5));
        // Up to the bytes between the code and its nearer exit.
        let len = whole.template.no.min(whole.template.next) - layout(5).to_first;
        let damaged = (0..8 * len).map(|bit| {
            let mut case = case(&|_| op, None, access, &options, layout(5));
            case.template.code[bit / 8] ^= 1 << (bit % 8);
            case
        });
        let (known, unknown): (Vec<Case>, Vec<Case>) =
            damaged.partition(|case| questions(case).is_ok());
        let Some(answers) = answers(&known) else {
            return;
        };
        counts[2] += unknown.len();
        for answers in answers {
            let is_refuted = answers.iter().any(|answer| answer == "sat");
            counts[usize::from(is_refuted)] += 1;
        }
    }
    let [same, refuted, unknown] = counts;
    println!("{refuted} refuted, {unknown} not understood, {same} without a difference");
    assert!(refuted > 60 && same * 10 < refuted);
}
