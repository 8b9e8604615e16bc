//! The templates for sockets only have the effects of their instructions, for all packets of all lengths, ancillary
//! values, registers and offsets; and they read only inside of the packet.
//!
//! An offset is in the code as a displacement or a constant, itself or as the end of the loaded bytes. It is left open
//! there, so that one proof holds for all offsets of an area with the same code around them.

use std::collections::BTreeMap;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};
use tamis_bpf::packet::{Ancillary, Extra, Load, Op, Size};
use tamis_bpf::{Insn, Operand};
use tamis_certificate::smt;
use tamis_jit::Options;
use tamis_jit::template::{Facts, Layout, Loading, Template};
use tamis_testkit::seeds;

use super::model::{Code, Exit, Machine, Outcome, extended, hex32, hex64, is_outside, packet_byte};
use super::templates::{SEED, ask, constants, layouts, leaves};

/// An instruction and its code, with the meaning of its constants.
#[derive(Debug)]
struct Case {
    op: Op,
    loading: Loading,
    facts: Facts,
    template: Template,
    constants: Vec<(usize, String)>,
    displacements: Vec<(usize, String)>,
    /// The assumption about the constant `k` of the instruction.
    assumption: String,
}

/// Offsets of every area, at its borders, and where encodings change.
fn offsets() -> Vec<u32> {
    let borders = [
        0x7fff_fffc_u32,
        0x8000_0000,
        0xffe0_0000,
        0xfff0_0000,
        0xffff_f000,
    ];
    let around = borders
        .iter()
        .flat_map(|border| (0..6).map(move |step| border - 3 + step));
    let areas = (0..40).flat_map(|near| [near, 0xffe0_0000 + near * 3, 0xfff0_0000 + near * 5]);
    let all = constants().into_iter().step_by(9);
    let all = all.chain(around).chain(areas);
    let mut all: Vec<u32> = all.filter(|k| Ancillary::at(*k).is_none()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn instructions() -> Vec<Op> {
    let mut ops = vec![Op::LoadLen, Op::LoadXLen, Op::Extra(Extra::Mod(Operand::X))];
    let moduli = constants().into_iter().filter(|k| *k != 0).step_by(40);
    ops.extend(moduli.map(|k| Op::Extra(Extra::Mod(Operand::K(k)))));
    for k in offsets() {
        let is_legal = k < Ancillary::FIRST_OFFSET;
        // With short displacements one size will do: the size and the length of a displacement don't meet.
        let sizes = match is_short(k) {
            true => &[Size::Word][..],
            false => &Size::ALL,
        };
        for size in sizes.iter().copied() {
            ops.push(Op::LoadData(Load::Indexed(size, k)));
            ops.extend(is_legal.then_some(Op::LoadData(Load::Absolute(size, k))));
        }
        ops.extend(is_legal.then_some(Op::Extra(Extra::LoadXHeaderLen(k))));
    }
    let ancillary = Ancillary::ALL.map(|one| Op::LoadData(Load::Ancillary(Size::Half, one)));
    ops.extend(ancillary);
    ops
}

/// Whether an offset is near the beginning of an area, but not at it.
fn is_short(k: u32) -> bool {
    (0..0x90).contains(&(k & 0x000f_ffff))
}

fn facts() -> [Facts; 4] {
    let small_x = Facts {
        x_max: 60,
        ..Facts::NOTHING
    };
    let long_packet = Facts {
        readable_bytes: 40,
        ..Facts::NOTHING
    };
    let long_behind_x = Facts {
        x_readable_bytes: 40,
        ..small_x
    };
    [Facts::NOTHING, small_x, long_packet, long_behind_x]
}

/// More than most loads need, and less than others.
const ASKED_BYTES: u32 = 0x1_0000;

/// The variants of an instruction's load with separate code.
fn loadings(op: Op, facts: Facts, options: &Options) -> Vec<Loading> {
    let is_one_byte = place(op).is_none_or(|(_, bytes)| bytes == 1);
    let can_ask = options.harden.is_none()
        && match op {
            Op::LoadData(Load::Absolute(_, k)) => {
                k < 0x8000_0000 || (0xffe0_0000..0xfff0_0000).contains(&k)
            }
            Op::LoadData(Load::Indexed(_, k)) => k < own_max(facts),
            _ => false,
        };
    let mut all = Vec::new();
    for is_unturned in [false, true] {
        for asked_bytes in [0, ASKED_BYTES] {
            // A byte is the same either way.
            if !(is_unturned && is_one_byte) && (asked_bytes == 0 || can_ask) {
                all.push(Loading {
                    is_unturned,
                    asked_bytes,
                });
            }
        }
    }
    all
}

fn cases(options: &Options, layout: Layout) -> Vec<Case> {
    let mut found = BTreeMap::new();
    for op in instructions() {
        let is_word = place(op).is_none_or(|(_, bytes)| bytes == 4);
        for facts in facts() {
            // Blinding is the same for all sizes, and so is the way from an offset to a place.
            let is_same = options.harden.is_some() || is_in_any_area(op, facts);
            if is_same && !is_word {
                continue;
            }
            for loading in loadings(op, facts, options) {
                let template = Template::socket(op, loading, facts, options, layout);
                let (case, skeleton) = case(op, loading, facts, template, options);
                found.entry(skeleton).or_insert(case);
            }
        }
    }
    found.into_values().collect()
}

/// The first offset that isn't counted from the start of the packet for some X.
fn own_max(facts: Facts) -> u32 {
    0x7fff_ffff - facts.x_max.min(0x7fff_ffff)
}

/// Whether a load's place follows from more than its offset.
fn is_in_any_area(op: Op, facts: Facts) -> bool {
    match op {
        Op::LoadData(Load::Indexed(_, k)) => k >= own_max(facts),
        _ => place(op).is_some_and(|(k, _)| k >= 0xfff0_0000),
    }
}

/// The offset in an instruction, and the size of its load.
fn place(op: Op) -> Option<(u32, u32)> {
    match op {
        Op::LoadData(Load::Absolute(size, k) | Load::Indexed(size, k)) => Some((k, size.bytes())),
        Op::Extra(Extra::LoadXHeaderLen(k)) => Some((k, 1)),
        _ => None,
    }
}

/// The common part of all cases of a code: the kind of the instruction and of its load, the facts, the code without the
/// offsets that are left open, and the assumptions about them.
type Skeleton = (u16, Loading, Option<u32>, Vec<u8>, String);

fn case(
    op: Op,
    loading: Loading,
    facts: Facts,
    template: Template,
    options: &Options,
) -> (Case, Skeleton) {
    let insn = Insn::from(op);
    let mut code = template.code[..template.next].to_vec();
    let mut case = Case {
        op,
        loading,
        facts,
        template,
        constants: Vec::new(),
        displacements: Vec::new(),
        assumption: format!("(= k {})", hex32(insn.k)),
    };
    let mut relies_on_x = false;
    if let Some((k, size)) = place(op) {
        let is_indexed = matches!(op, Op::LoadData(Load::Indexed(..)));
        let own_max = own_max(facts);
        // The first offset of the area, and the offset in it: as few bits as it has, which is easier to prove.
        let (first, start, is_there) = match k {
            _ if is_indexed && k < own_max => (0, "k", format!("(bvult k {})", hex32(own_max))),
            _ if is_indexed => (0, "k", "true".to_owned()),
            0..0x8000_0000 => (0, "k", "(bvult k #x80000000)".to_owned()),
            0x8000_0000..0xffe0_0000 => (0, "k", format!("(= k {})", hex32(k))),
            0xffe0_0000..0xfff0_0000 => (0xffe0_0000, NEAR, "(= k (concat #xffe n))".to_owned()),
            _ => (0xfff0_0000, NEAR, "(= k (concat #xfff n))".to_owned()),
        };
        let end = format!("(bvadd {start} {})", hex32(size));
        let ends = [
            (k - first, start.to_owned()),
            (k - first + size, end.clone()),
        ];
        let is_own = if is_indexed {
            k < own_max
        } else {
            first != 0xfff0_0000
        };
        // A displacement of 0 doesn't stand in the code.
        let is_written = k != first || is_indexed && !is_own;
        if is_written && leave_open(&mut case, &mut code, &ends, options) {
            case.assumption = format!(
                "(and {is_there} {})",
                covered(&case, is_own.then_some(k - first + size), &end)
            );
        }
        relies_on_x = is_indexed && is_own;
    }
    let known = relies_on_x.then_some(facts.x_max);
    let skeleton = (insn.code, loading, known, code, case.assumption.clone());
    (case, skeleton)
}

/// The facts about the end of the loaded bytes, if it is counted from the start of the packet or from X: it is within
/// the bytes that were found readable or that the code tests, or beyond the latter.
fn covered(case: &Case, own_end: Option<u32>, end: &str) -> String {
    let readable_bytes = match case.op {
        Op::LoadData(Load::Indexed(..)) => case.facts.x_readable_bytes,
        _ => case.facts.readable_bytes,
    };
    let asked_bytes = case.loading.asked_bytes;
    let bounds = [readable_bytes, asked_bytes].into_iter();
    let covers = |bound: &u32| own_end.is_some_and(|end| end <= *bound);
    match bounds.filter(covers).min() {
        Some(bound) => format!("(bvule {end} {})", hex32(bound)),
        None => format!("(bvuge {end} {})", hex32(asked_bytes)),
    }
}

/// The offset in an area, of 20 bits, as a term of 32.
const NEAR: &str = "(concat #x000 n)";

/// Finds the numbers in the code that are one of the ends of the loaded bytes; returns whether there are any.
fn leave_open(case: &mut Case, code: &mut [u8], ends: &[(u32, String)], options: &Options) -> bool {
    let bytes = code.to_vec();
    let mut decoder = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE);
    let mut hidden: Option<(usize, usize, u32)> = None;
    while decoder.can_decode() {
        let insn = decoder.decode();
        let (ip, places) = (insn.ip() as usize, decoder.get_constant_offsets(&insn));
        let find = |value: u32| ends.iter().find(|(end, _)| *end == value);
        let is_address = insn.memory_base() == Register::RDI
            || insn.mnemonic() == Mnemonic::Lea && insn.memory_base() == Register::RCX
            || insn.mnemonic() == Mnemonic::Lea
                && insn.op0_register() == Register::R11
                && insn.memory_base() == Register::R11;
        if let Some((_, term)) = find(insn.memory_displacement64() as u32)
            && places.has_displacement()
            && is_address
            && matches!(insn.memory_index(), Register::None | Register::RCX)
        {
            let first = ip + places.displacement_offset();
            code[first..first + places.displacement_size()].fill(0);
            case.displacements.push((ip, term.clone()));
        }
        let is_bound = insn.mnemonic() == Mnemonic::Cmp && insn.op0_register() == Register::ESI;
        let is_hidden = options.harden.is_some() && insn.op_kind(1) == OpKind::Immediate32;
        if is_bound && let Some((_, term)) = find(insn.immediate(1) as u32) {
            let first = ip + places.immediate_offset();
            code[first..first + places.immediate_size()].fill(0);
            case.constants.push((ip, term.clone()));
        } else if is_hidden && insn.mnemonic() == Mnemonic::Mov {
            hidden = Some((ip, ip + places.immediate_offset(), insn.immediate(1) as u32));
        } else if is_hidden
            && insn.mnemonic() == Mnemonic::Xor
            && let Some((before, at, value)) = hidden.take()
            && let Some((_, term)) = find(value ^ insn.immediate(1) as u32)
        {
            let here = ip + places.immediate_offset();
            code[at..at + 4].fill(0);
            code[here..here + 4].fill(0);
            case.constants.push((before, format!("(bvxor {term} r)")));
            case.constants.push((ip, "r".to_owned()));
        }
    }
    !case.constants.is_empty() || !case.displacements.is_empty()
}

/// The questions whether some state and packet make the code differ from the instruction, one for each way through the
/// code.
fn questions(case: &Case) -> Vec<String> {
    let code = Code {
        bytes: &case.template.code,
        constants: &case.constants,
        displacements: &case.displacements,
        ends: [case.template.next, case.template.no],
        has_packet: true,
    };
    let outcomes = code
        .outcomes()
        .unwrap_or_else(|unknown| panic!("{unknown}: {case:x?}"));
    let Facts {
        x_max,
        readable_bytes,
        x_readable_bytes,
        ..
    } = case.facts;
    let known = [
        format!("(bvule r6 {})", hex64(0x7fff_ffff)),
        format!("(bvuge r6 {})", hex64(u64::from(readable_bytes))),
        is_behind_x(x_readable_bytes),
        format!("(bvule {} {})", Machine::start().low(1), hex32(x_max)),
        "(= ((_ extract 63 32) r1) #x00000000)".to_owned(),
        case.assumption.clone(),
    ];
    let known = format!("(push)\n(assert (and {}))\n", known.join(" "));
    outcomes
        .iter()
        .map(|outcome| {
            let right = right(case, outcome);
            let wrong = format!("(assert (and {} (not {right})))", outcome.condition);
            format!("{known}{wrong}\n(check-sat-using (then simplify qfbv))\n(pop)\n")
        })
        .collect()
}

/// Whether so many bytes from X on are in the packet, if it is any.
fn is_behind_x(bytes: u32) -> String {
    let x = extended(&Machine::start().low(1));
    match bytes {
        0 => "true".to_owned(),
        _ => format!("(bvuge r6 (bvadd {x} {}))", hex64(u64::from(bytes))),
    }
}

/// The meaning of an instruction: the condition that the program continues, and then A and X; otherwise the return
/// value.
struct Meaning {
    goes_on: String,
    ret: String,
    a: String,
    x: String,
}

/// Whether the code has the effect of the instruction.
fn right(case: &Case, outcome: &Outcome) -> String {
    let start = Machine::start();
    let meaning = meaning(&outcome.machine, case, start.low(0), start.low(1));
    let Meaning {
        goes_on,
        ret: expected,
        a,
        x,
    } = meaning;
    match outcome.exit {
        Exit::At(at) if at == case.template.next => {
            let mut places = vec![a, x];
            places.extend((0..16).map(|slot| start.slot(slot).to_owned()));
            format!("(and {goes_on} {})", leaves(&outcome.machine, &places))
        }
        Exit::Return => {
            assert_eq!(outcome.machine.loaded_from(), None);
            let ret = outcome.machine.low(0);
            format!("(and (not {goes_on}) (= {ret} {expected}))")
        }
        Exit::At(_) | Exit::Fault => "false".to_owned(),
    }
}

fn meaning(machine: &Machine, case: &Case, a: String, x: String) -> Meaning {
    let Case { op, loading, .. } = *case;
    let Loading {
        is_unturned,
        asked_bytes,
    } = loading;
    let always = "true".to_owned();
    let of_a = |(goes_on, value), x: String| Meaning {
        goes_on,
        ret: hex32(0),
        a: value,
        x,
    };
    let of_x = |(goes_on, value), a: String| Meaning {
        goes_on,
        ret: hex32(0),
        a,
        x: value,
    };
    match op {
        Op::LoadLen => of_a((always, Machine::start().low(9)), x),
        Op::LoadXLen => of_x((always, Machine::start().low(9)), a),
        Op::LoadData(Load::Absolute(size, _)) => {
            let (is_inside, value) = load(machine, size, is_unturned, "k");
            let asked = hex64(u64::from(asked_bytes));
            of_a((format!("(and {is_inside} (bvuge r6 {asked}))"), value), x)
        }
        Op::LoadData(Load::Indexed(size, _)) => {
            let offset = format!("(bvadd {x} k)");
            let (is_inside, value) = load(machine, size, is_unturned, &offset);
            let is_asked = is_behind_x(asked_bytes);
            of_a((format!("(and {is_inside} {is_asked})"), value), x)
        }
        Op::LoadData(Load::Ancillary(_, Ancillary::XorX)) => {
            of_a((always, format!("(bvxor {a} {x})")), x)
        }
        Op::LoadData(Load::Ancillary(_, ancillary)) => {
            let number = ancillary as usize;
            let is_known = format!("(= ((_ extract {number} {number}) d16) #b1)");
            let of_a = of_a((is_known, format!("d{number}")), x);
            match ancillary.is_of_device() {
                true => Meaning { ret: a, ..of_a },
                false => of_a,
            }
        }
        Op::Extra(Extra::Mod(operand)) => {
            let divisor = smt::operand_term(operand, &[a.clone(), x.clone()], "k");
            let is_not_zero = format!("(distinct {divisor} {})", hex32(0));
            of_a((is_not_zero, format!("(bvurem {a} {divisor})")), x)
        }
        Op::Extra(Extra::LoadXHeaderLen(_)) => {
            let (is_inside, byte) = load(machine, Size::Byte, true, "k");
            let words = format!("(bvand {byte} #x0000000f)");
            of_x((is_inside, format!("(bvmul #x00000004 {words})")), a)
        }
        other => panic!("sockets share {other:?} with seccomp"),
    }
}

/// Whether an offset is inside of the packet, and the value there, in network byte order unless it stays as it is.
///
/// If the code has loaded anything, it must be from there: then the value is expressed by the code's load, and Z3
/// compares places instead of bytes.
fn load(machine: &Machine, size: Size, is_unturned: bool, offset: &str) -> (String, String) {
    let from = |area: &str| extended(&format!("(bvsub {offset} {area})"));
    let network = format!("(bvadd {} {})", from("#xfff00000"), extended("d17"));
    let start = format!(
        "(ite (bvuge {offset} #xfff00000) {network} (ite (bvuge {offset} #xffe00000) {} {}))",
        from("#xffe00000"),
        extended(offset)
    );
    let bytes = u64::from(size.bytes());
    let loaded_from = machine.loaded_from().unwrap_or(&start);
    let is_inside = format!(
        "(and (or (bvult {offset} #x80000000) (bvuge {offset} #xffe00000)) (not {}) (= {start} {loaded_from}))",
        is_outside(&start, bytes)
    );
    let mut parts: Vec<String> = (0..bytes).map(|at| packet_byte(loaded_from, at)).collect();
    if is_unturned {
        parts.reverse();
    }
    let parts = parts.join(" ");
    let value = match size {
        Size::Byte => format!("((_ zero_extend 24) {parts})"),
        Size::Half => format!("((_ zero_extend 16) (concat {parts}))"),
        Size::Word => format!("(concat {parts})"),
    };
    (is_inside, value)
}

#[test]
fn all_are_proved() {
    assert_proved(&Options::default());
}

#[test]
fn all_hardened_ones_are_proved() {
    let harden = Some(SEED);
    assert_proved(&Options { harden });
}

fn assert_proved(options: &Options) {
    let all = cases(options, layouts()[0]).into_iter();
    let cases: Vec<Case> = all.step_by(seeds::every(5)).collect();
    let with_case = |case| {
        let questions = questions(case).into_iter();
        questions.map(move |question| (case, question))
    };
    let (asked, questions): (Vec<&Case>, Vec<String>) = cases.iter().flat_map(with_case).unzip();
    let Some(answers) = ask(&questions) else {
        return;
    };
    for (case, answer) in asked.iter().zip(&answers) {
        assert_eq!(answer, "unsat", "{case:x?}");
    }
    let open = cases
        .iter()
        .filter(|case| !case.constants.is_empty() || !case.displacements.is_empty());
    println!(
        "{options:?}: {} pieces of code proved, {} of them for all offsets",
        cases.len(),
        open.count()
    );
}

#[test]
fn code_that_reads_a_byte_too_many_is_refuted() {
    let op = Op::LoadData(Load::Absolute(Size::Half, 12));
    let code = |facts| {
        Template::socket(
            op,
            Loading::default(),
            facts,
            &Options::default(),
            layouts()[0],
        )
    };
    let mut wrong_bound = code(Facts::NOTHING);
    // The bound in `cmp esi, 14`.
    assert_eq!(wrong_bound.code[2], 14);
    wrong_bound.code[2] = 13;
    // Code for packets with 14 readable bytes, without any facts.
    let unchecked = code(Facts {
        readable_bytes: 14,
        ..Facts::NOTHING
    });
    for template in [wrong_bound, unchecked] {
        let (mut case, _) = case(
            op,
            Loading::default(),
            Facts::NOTHING,
            template,
            &Options::default(),
        );
        case.constants.clear();
        case.displacements.clear();
        case.assumption = format!("(= k {})", hex32(12));
        if let Some(answers) = ask(&questions(&case)) {
            assert!(answers.iter().any(|answer| answer == "sat"), "{answers:?}");
        }
    }
}
