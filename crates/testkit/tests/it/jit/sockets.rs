//! The templates that only sockets have do what their instructions mean, for all packets of all lengths, values beside
//! them, and registers; and what they read is inside of the packet.

use tamis_bpf::packet::{Ancillary, Extra, Load, Op, Size};
use tamis_bpf::{Insn, Operand};
use tamis_jit::Options;
use tamis_jit::template::{Facts, Layout, Template};
use tamis_testkit::smt;

use super::model::{Code, Exit, Machine, Outcome, extended, hex32, hex64, is_outside, packet_byte};
use super::templates::{SEED, ask, constants, layouts, leaves};

/// An instruction and its code.
#[derive(Debug)]
struct Case {
    op: Op,
    facts: Facts,
    template: Template,
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
    let moduli = constants().into_iter().filter(|k| *k != 0).step_by(9);
    ops.extend(moduli.map(|k| Op::Extra(Extra::Mod(Operand::K(k)))));
    for k in offsets() {
        let is_legal = k < Ancillary::FIRST_OFFSET;
        for size in Size::ALL {
            ops.push(Op::LoadData(Load::Indexed(size, k)));
            ops.extend(is_legal.then_some(Op::LoadData(Load::Absolute(size, k))));
        }
        ops.extend(is_legal.then_some(Op::Extra(Extra::LoadXHeaderLen(k))));
    }
    let ancillary = Ancillary::ALL.map(|one| Op::LoadData(Load::Ancillary(Size::Half, one)));
    ops.extend(ancillary);
    ops
}

fn facts() -> [Facts; 3] {
    let small_x = Facts {
        x_max: 60,
        ..Facts::NOTHING
    };
    let long_packet = Facts {
        readable_bytes: 40,
        ..Facts::NOTHING
    };
    [Facts::NOTHING, small_x, long_packet]
}

fn cases(options: &Options, layout: Layout) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for op in instructions() {
        let first = cases.len();
        for facts in facts() {
            let template = Template::socket(op, facts, options, layout);
            // Code that relies on nothing is right whatever is known.
            let is_known = |case: &Case| case.template == template;
            if !cases[first..].iter().any(is_known) {
                cases.push(Case {
                    op,
                    facts,
                    template,
                });
            }
        }
    }
    cases
}

/// The question whether some state and packet make the code differ from the instruction.
fn question(case: &Case) -> String {
    let code = Code {
        bytes: &case.template.code,
        constants: &[],
        ends: [case.template.next, case.template.no],
        has_packet: true,
    };
    let outcomes = code
        .outcomes()
        .unwrap_or_else(|unknown| panic!("{unknown}: {case:x?}"));
    let wrong: Vec<String> = outcomes
        .iter()
        .map(|outcome| {
            let right = right(case, outcome);
            format!("(and {} (not {right}))", outcome.condition)
        })
        .collect();
    let Facts {
        x_max,
        readable_bytes,
        ..
    } = case.facts;
    format!(
        "(push)\n(assert (bvule r6 {}))\n(assert (bvuge r6 {}))\n(assert (bvule {} {}))\n\
         (assert (or false {}))\n(check-sat)\n(pop)\n",
        hex64(0x7fff_ffff),
        hex64(u64::from(readable_bytes)),
        Machine::start().low(1),
        hex32(x_max),
        wrong.join(" ")
    )
}

/// What an instruction gives: the condition that it goes on, and then A and X.
struct Meaning {
    goes_on: String,
    a: String,
    x: String,
}

/// Whether what the code does is what the instruction does.
fn right(case: &Case, outcome: &Outcome) -> String {
    let start = Machine::start();
    let Meaning { goes_on, a, x } = meaning(case.op, start.low(0), start.low(1));
    match outcome.exit {
        Exit::At(at) if at == case.template.next => {
            let mut places = vec![a, x];
            places.extend((0..16).map(|slot| start.slot(slot).to_owned()));
            format!("(and {goes_on} {})", leaves(&outcome.machine, &places))
        }
        Exit::Return => {
            let ret = outcome.machine.low(0);
            format!("(and (not {goes_on}) (= {ret} {}))", hex32(0))
        }
        Exit::At(_) | Exit::Fault => "false".to_owned(),
    }
}

fn meaning(op: Op, a: String, x: String) -> Meaning {
    let always = "true".to_owned();
    let of_a = |(goes_on, value), x: String| Meaning {
        goes_on,
        a: value,
        x,
    };
    let of_x = |(goes_on, value), a: String| Meaning {
        goes_on,
        a,
        x: value,
    };
    match op {
        Op::LoadLen => of_a((always, Machine::start().low(9)), x),
        Op::LoadXLen => of_x((always, Machine::start().low(9)), a),
        Op::LoadData(Load::Absolute(size, k)) => of_a(load(size, &hex32(k)), x),
        Op::LoadData(Load::Indexed(size, k)) => {
            of_a(load(size, &format!("(bvadd {x} {})", hex32(k))), x)
        }
        Op::LoadData(Load::Ancillary(_, Ancillary::XorX)) => {
            of_a((always, format!("(bvxor {a} {x})")), x)
        }
        Op::LoadData(Load::Ancillary(_, ancillary)) => {
            let number = ancillary as usize;
            let is_known = format!("(= ((_ extract {number} {number}) d16) #b1)");
            of_a((is_known, format!("d{number}")), x)
        }
        Op::Extra(Extra::Mod(operand)) => {
            let k = match operand {
                Operand::K(k) => hex32(k),
                _ => hex32(0),
            };
            let divisor = smt::operand_term(operand, &[a.clone(), x.clone()], &k);
            let is_not_zero = format!("(distinct {divisor} {})", hex32(0));
            of_a((is_not_zero, format!("(bvurem {a} {divisor})")), x)
        }
        Op::Extra(Extra::LoadXHeaderLen(k)) => {
            let (is_inside, byte) = load(Size::Byte, &hex32(k));
            let words = format!("(bvand {byte} #x0000000f)");
            of_x((is_inside, format!("(bvmul #x00000004 {words})")), a)
        }
        other => panic!("sockets share {other:?} with seccomp"),
    }
}

/// Whether an offset is inside of the packet, and what lies there, in network byte order.
fn load(size: Size, offset: &str) -> (String, String) {
    let from = |area: &str| extended(&format!("(bvsub {offset} {area})"));
    let network = format!("(bvadd {} {})", from("#xfff00000"), extended("d17"));
    let start = format!(
        "(ite (bvuge {offset} #xfff00000) {network} (ite (bvuge {offset} #xffe00000) {} {}))",
        from("#xffe00000"),
        extended(offset)
    );
    let bytes = u64::from(size.bytes());
    let is_inside = format!(
        "(and (or (bvult {offset} #x80000000) (bvuge {offset} #xffe00000)) (not {}))",
        is_outside(&start, bytes)
    );
    let parts: Vec<String> = (0..bytes).map(|at| packet_byte(&start, at)).collect();
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
    for harden in [None, Some(SEED)] {
        let cases = cases(&Options { harden }, layouts()[0]);
        let questions: Vec<String> = cases.iter().map(question).collect();
        let Some(answers) = ask(&questions) else {
            return;
        };
        for (case, answer) in cases.iter().zip(&answers) {
            assert_eq!(answer, "unsat", "{case:x?}");
        }
        println!("harden {harden:?}: {} pieces of code proved", cases.len());
    }
}

#[test]
fn code_that_reads_a_byte_too_many_is_refuted() {
    let op = Op::LoadData(Load::Absolute(Size::Half, 12));
    let code = |facts| Template::socket(op, facts, &Options::default(), layouts()[0]);
    let mut wrong_bound = code(Facts::NOTHING);
    // The bound in `cmp esi, 14`.
    assert_eq!(wrong_bound.code[2], 14);
    wrong_bound.code[2] = 13;
    // Code for packets of which 14 bytes were found readable, where nothing is known.
    let unchecked = code(Facts {
        readable_bytes: 14,
        ..Facts::NOTHING
    });
    let questions = [wrong_bound, unchecked].map(|template| {
        question(&Case {
            op,
            facts: Facts::NOTHING,
            template,
        })
    });
    if let Some(answers) = ask(&questions) {
        assert_eq!(answers, ["sat", "sat"]);
    }
}
