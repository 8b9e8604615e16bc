//! Every template of machine code has the effect of its instruction, for all values of registers, slots, words and
//! constants: Z3 finds no counterexample. constants: Z3 finds no other case.
//!
//! A constant stands in the code as it is. Such places are found by comparison, and the constant is left open there:
//! one proof holds for all constants with the same code around them. Constants that have code of their own, such as
//! powers of two of a division, are proved one by one.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use tamis_bpf::{AluOp, Insn, Op, Operand, Test};
use tamis_certificate::smt::{self, PLACES};
use tamis_jit::Options;
use tamis_jit::template::{Layout, Template};
use tamis_testkit::rng::Rng;
use tamis_testkit::smt::ask_z3;

use super::model::{self, Code, Exit, Machine, Outcome, hex32};

/// A question for Z3: the code, the meaning of its constants, and the instruction.
#[derive(Clone, Debug)]
struct Case {
    op: Op,
    template: Template,
    /// Offsets of instructions with the terms for their constants.
    constants: Vec<(usize, String)>,
    /// The assumption about the constant `k` of the instruction.
    assumption: String,
}

/// The seed of hardened code.
pub(super) const SEED: u64 = 7;

/// Every instruction, with this constant where it takes one. Offsets and slots are all those that exist.
fn instructions(k: u32) -> Vec<Op> {
    let mut ops = vec![
        Op::LoadImm(k),
        Op::LoadXImm(k),
        Op::RetImm(k),
        Op::LoadLen,
        Op::LoadXLen,
        Op::Neg,
        Op::Tax,
        Op::Txa,
        Op::RetA,
    ];
    ops.extend((0..16).map(|word| Op::LoadData(4 * word)));
    for slot in 0..16 {
        let accesses = [Op::LoadMem, Op::LoadXMem, Op::Store, Op::StoreX];
        ops.extend(accesses.map(|access| access(slot)));
    }
    for operand in [Operand::K(k), Operand::X] {
        ops.extend(AluOp::ALL.map(|alu| Op::Alu(alu, operand)));
        ops.extend(Test::ALL.map(|test| Op::Branch {
            test,
            operand,
            jt: 0,
            jf: 0,
        }));
    }
    ops.retain(|op| match op {
        Op::Alu(AluOp::Div, Operand::K(k)) => *k != 0,
        Op::Alu(AluOp::Lsh | AluOp::Rsh, Operand::K(k)) => *k < 32,
        _ => true,
    });
    ops
}

/// Whether the meaning of an instruction has a constant, which is not an offset or slot.
fn has_constant(op: Op) -> bool {
    matches!(
        op,
        Op::LoadImm(_)
            | Op::LoadXImm(_)
            | Op::RetImm(_)
            | Op::Alu(_, Operand::K(_))
            | Op::Branch {
                operand: Operand::K(_),
                ..
            }
    )
}

/// Constants of all lengths, with all their neighbours.
pub(super) fn constants() -> Vec<u32> {
    let mut rng = Rng::new(1);
    let powers = (0..32).map(|bit| 1_u32 << bit);
    let near = powers.flat_map(|power| [power.wrapping_sub(1), power, power + 1, !power]);
    let random = (0..200).map(|_| rng.next_u32() >> rng.range(0..=31));
    near.chain(random).chain(0..300).collect()
}

pub(super) fn layouts() -> Vec<Layout> {
    let mut layouts = Vec::new();
    for is_no_first in [false, true] {
        // The first exit next to the code, in reach of a byte, and out of it.
        for (to_first, to_second) in [(0, 3), (0, 300), (20, 5), (90, 90), (300, 300)] {
            layouts.push(Layout {
                to_first,
                to_second,
                is_no_first,
            });
        }
    }
    layouts
}

/// All cases that differ in anything but constants that are left open.
///
/// How an instruction leaves its code doesn't depend on its constant, so all distances are tried with some of them.
fn cases(options: &Options) -> Vec<Case> {
    const WITH_ALL_DISTANCES: [u32; 4] = [0, 5, 0x90, 0x1234_5678];
    let layouts = layouts();
    let mut found = BTreeMap::new();
    let mut note = |op, layout| {
        let (case, skeleton) = case(op, options, layout);
        found.entry((Insn::from(op).code, skeleton)).or_insert(case);
    };
    for k in WITH_ALL_DISTANCES {
        for op in instructions(k) {
            layouts.iter().for_each(|layout| note(op, *layout));
        }
    }
    for k in constants() {
        let ops = instructions(k).into_iter();
        ops.filter(|op| has_constant(*op))
            .for_each(|op| note(op, layouts[0]));
    }
    found.into_values().collect()
}

/// The case of an instruction, and its code without the constants that are left open.
fn case(op: Op, options: &Options, layout: Layout) -> (Case, (Vec<u8>, String)) {
    let template = Template::seccomp(op, options, layout);
    let k = Insn::from(op).k;
    let length = template.next.min(template.no);
    let mut skeleton = template.code[..length].to_vec();
    let mut constants = Vec::new();
    let mut assumption = match has_constant(op) {
        true => format!("(= k {})", hex32(k)),
        false => "true".to_owned(),
    };
    let mut random = None;
    let mut decoder = Decoder::with_ip(64, &template.code[..length], 0, DecoderOptions::NONE);
    let mut insns = Vec::new();
    while decoder.can_decode() {
        let insn = decoder.decode();
        let places = decoder.get_constant_offsets(&insn);
        let operand = insn.op_count().saturating_sub(1);
        let is_constant = matches!(
            insn.try_op_kind(operand),
            Ok(OpKind::Immediate8 | OpKind::Immediate32 | OpKind::Immediate8to32)
        );
        if is_constant {
            let first = insn.ip() as usize + places.immediate_offset();
            let value = insn.immediate(operand) as u32;
            insns.push((insn, first..first + places.immediate_size(), value));
            if options.harden.is_some() && insn.mnemonic() == Mnemonic::Xor {
                random = Some(value);
            }
        }
    }
    for (insn, place, value) in insns {
        let (term, known) = match (random, place.len()) {
            (Some(random), 4) if value == random && insn.mnemonic() == Mnemonic::Xor => {
                ("r", "true")
            }
            (Some(random), 4) if value == k ^ random => ("(bvxor k r)", "true"),
            (None, 4) if value == k => ("k", "true"),
            (None, 1) if value == k && insn.mnemonic() == Mnemonic::Test => {
                ("k", "(bvule k #x000000ff)")
            }
            (None, 1) if value == k => ("k", "(= k ((_ sign_extend 24) ((_ extract 7 0) k)))"),
            _ => continue,
        };
        skeleton[place].fill(0);
        constants.push((insn.ip() as usize, term.to_owned()));
        assumption = known.to_owned();
    }
    let limit = match op {
        Op::Alu(AluOp::Div, Operand::K(_)) => "(distinct k #x00000000)",
        Op::Alu(AluOp::Lsh | AluOp::Rsh, Operand::K(_)) => "(bvult k #x00000020)",
        _ => "true",
    };
    let assumption = format!("(and {assumption} {limit})");
    let case = Case {
        op,
        template,
        constants,
        assumption: assumption.clone(),
    };
    (case, (skeleton, assumption))
}

/// The question whether some state makes the code differ from the instruction.
///
/// # Errors
/// The instruction outside of the machine's model.
fn question(case: &Case) -> Result<String, String> {
    let code = Code {
        bytes: &case.template.code,
        constants: &case.constants,
        displacements: &[],
        ends: [case.template.next, case.template.no],
        has_packet: false,
    };
    let wrong: Vec<String> = code
        .outcomes()?
        .iter()
        .map(|outcome| {
            let right = right(case, outcome);
            format!("(and {} (not {right}))", outcome.condition)
        })
        .collect();
    Ok(format!(
        "(push)\n(assert {})\n(assert (or false {}))\n(check-sat)\n(pop)\n",
        case.assumption,
        wrong.join(" ")
    ))
}

/// Whether the instruction takes the same path and leaves the same state as the code.
fn right(case: &Case, outcome: &Outcome) -> String {
    let start = Machine::start();
    let mut places: Vec<String> = vec![start.low(0), start.low(1)];
    places.extend((0..16).map(|slot| start.slot(slot).to_owned()));
    assert_eq!(places.len(), PLACES);
    let exit = match outcome.exit {
        Exit::At(at) if at == case.template.next => Way::Next,
        Exit::At(_) => Way::No,
        Exit::Return => Way::Return,
        Exit::Fault => return "false".to_owned(),
    };
    let returns = |value: &str| match exit {
        Way::Return => format!("(= {} {value})", outcome.machine.low(0)),
        _ => "false".to_owned(),
    };
    let zero = hex32(0);
    match case.op {
        Op::RetImm(_) => returns("k"),
        Op::RetA => returns(&places[0]),
        Op::Branch { test, operand, .. } => {
            let operand = smt::operand_term(operand, &places, "k");
            let holds = smt::test_term(test, &places[0], &operand);
            let goes = match exit {
                Way::Next => holds,
                Way::No => format!("(not {holds})"),
                Way::Return => return "false".to_owned(),
            };
            format!("(and {goes} {})", leaves(&outcome.machine, &places))
        }
        Op::Alu(AluOp::Div, operand) => {
            let divisor = smt::operand_term(operand, &places, "k");
            let is_zero = format!("(= {divisor} {zero})");
            if exit == Way::Return {
                return format!("(and {is_zero} {})", returns(&zero));
            }
            places[0] = format!("(bvudiv {} {divisor})", places[0]);
            let leaves = leaves(&outcome.machine, &places);
            format!("(and (not {is_zero}) {} {leaves})", exit == Way::Next)
        }
        op => {
            smt::transfer(op, &mut places, "k");
            let leaves = leaves(&outcome.machine, &places);
            format!("(and {} {leaves})", exit == Way::Next)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Next,
    No,
    Return,
}

/// Whether the machine holds A, X (with zeros above it) and the scratch memory, and has preserved the other state.
pub(super) fn leaves(machine: &Machine, places: &[String]) -> String {
    let mut equal = format!(
        "(and {} {}",
        machine.preserves(),
        machine.x_fills_register()
    );
    for (index, place) in places.iter().enumerate() {
        let there = match index {
            0 | 1 => machine.low(index),
            slot => machine.slot(slot - 2).to_owned(),
        };
        if there != *place {
            equal.push_str(&format!(" (= {there} {place})"));
        }
    }
    equal + ")"
}

/// Z3's answers to the questions of all cases; `None` if there is no Z3.
fn answers(cases: &[Case]) -> Option<Vec<String>> {
    let questions = cases.iter().map(|case| {
        let question = question(case);
        question.unwrap_or_else(|unknown| panic!("{unknown}: {case:x?}"))
    });
    ask(&questions.collect::<Vec<_>>())
}

/// Z3's answers; `None` if there is no Z3.
pub(super) fn ask(questions: &[String]) -> Option<Vec<String>> {
    let mut script = format!("(set-logic QF_UFBV)\n{}", model::declarations());
    script.push_str("(declare-const k (_ BitVec 32))\n(declare-const r (_ BitVec 32))\n");
    script.push_str("(declare-const n (_ BitVec 20))\n");
    questions
        .iter()
        .for_each(|question| script.push_str(question));
    let answers = ask_z3(&script);
    assert_eq!(answers.len(), questions.len(), "{:?}", answers.first());
    Some(answers)
}

#[test]
fn all_are_proved() {
    for harden in [None, Some(SEED)] {
        let cases = cases(&Options { harden });
        let Some(answers) = answers(&cases) else {
            return;
        };
        for (case, answer) in cases.iter().zip(&answers) {
            assert_eq!(answer, "unsat", "{case:x?}");
        }
        let open = cases.iter().filter(|case| !case.constants.is_empty());
        let codes: BTreeSet<u16> = cases.iter().map(|case| Insn::from(case.op).code).collect();
        println!(
            "harden {harden:?}: {} instructions, {} pieces of code proved, {} of them for all constants",
            codes.len(),
            cases.len(),
            open.count()
        );
        assert_eq!(
            codes.len(),
            40,
            "every instruction but `ja`, which has no code"
        );
    }
}

/// The code with one change, as by a bug in the emitter.
fn damaged(op: Op, change: impl Fn(&mut Vec<u8>)) -> Case {
    let layout = Layout {
        to_first: 0,
        to_second: 3,
        is_no_first: false,
    };
    let (mut case, _) = case(op, &Options::default(), layout);
    change(&mut case.template.code);
    case
}

#[test]
fn wrong_ones_are_refuted() {
    let test = |test| Op::Branch {
        test,
        operand: Operand::K(0x1234_5678),
        jt: 0,
        jf: 0,
    };
    let flip = |at: usize, bits: u8| move |code: &mut Vec<u8>| code[at] ^= bits;
    let cases = [
        // `sub` instead of `add`.
        damaged(Op::Alu(AluOp::Add, Operand::X), flip(0, 0x28)),
        // The neighbouring slot or word.
        damaged(Op::Store(3), flip(3, 4)),
        damaged(Op::LoadData(16), flip(2, 4)),
        // The opposite condition, and the one that differs for equal operands only.
        damaged(test(Test::Eq), flip(5, 1)),
        damaged(test(Test::Ge), flip(5, 0x05)),
        // The dividend becomes 0, not its upper half.
        damaged(Op::Alu(AluOp::Div, Operand::X), flip(5, 0x12)),
        // No jump for a divisor of 0: the division faults.
        damaged(Op::Alu(AluOp::Div, Operand::X), |code| {
            code[2..4].fill(0x90);
        }),
        // An arithmetic shift has its own opcode; this one shifts left.
        damaged(Op::Alu(AluOp::Rsh, Operand::X), flip(1, 0x08)),
        // X is loaded instead of A.
        damaged(Op::LoadMem(2), flip(1, 0x08)),
        damaged(Op::Tax, flip(1, 0x09)),
    ];
    let known: Vec<Case> = cases
        .into_iter()
        .filter(|case| question(case).is_ok())
        .collect();
    let Some(answers) = answers(&known) else {
        return;
    };
    for (case, answer) in known.iter().zip(&answers) {
        assert_eq!(answer, "sat", "{case:x?}");
    }
    assert!(known.len() >= 8, "the model reads nearly all of them");
}
