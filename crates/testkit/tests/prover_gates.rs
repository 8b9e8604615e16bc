//! The prover where diagrams don't do: circuits of gates and a SAT solver.

use std::time::Instant;

use tamis_abi::Endian;
use tamis_bpf::{AluOp, Insn, Op, Operand, Program, Test};
use tamis_prover::{Answer, LimitReached, Limits, Method, Subject, decide};
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::mutant::mutant;
use tamis_testkit::generate::program;
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::rng::Rng;

/// No diagram has a single node: gates decide everything.
const GATES_ONLY: Limits = Limits {
    max_nodes: 2,
    max_steps: 1,
    max_states: 1,
    max_paths: 1,
    max_gates: 200_000,
    max_conflicts: 5_000,
};

fn little(program: &Program) -> Subject<'_> {
    let endian = Endian::Little;
    Subject::Program { program, endian }
}

const A0: Op = Op::LoadData(16);
const A1: Op = Op::LoadData(24);
const A2: Op = Op::LoadData(32);

fn alu(op: AluOp) -> Op {
    Op::Alu(op, Operand::X)
}

fn alu_k(op: AluOp, k: u32) -> Op {
    Op::Alu(op, Operand::K(k))
}

/// Returns 1 if the test holds, else 2.
fn tell(test: Test, operand: Operand) -> [Op; 3] {
    let branch = Op::Branch {
        test,
        operand,
        jt: 0,
        jf: 1,
    };
    [branch, Op::RetImm(1), Op::RetImm(2)]
}

fn program_of(parts: &[&[Op]]) -> Program {
    let insns = parts.concat().into_iter().map(Insn::from).collect();
    Program::new(insns).expect("a valid program")
}

fn decided(name: &str, left: &[&[Op]], right: &[&[Op]]) -> Answer {
    let (left, right) = (program_of(left), program_of(right));
    let start = Instant::now();
    let answer = decide(&little(&left), &little(&right), &Limits::default());
    println!("{name}: {answer:?}, {:?}", start.elapsed());
    answer
}

/// Two ways to compute the same from two arguments.
#[test]
fn arithmetic_on_two_words() {
    let x_is_a1 = [A1, Op::Tax];
    let x_is_a0 = [A0, Op::Tax];
    let equal = |k| tell(Test::Eq, Operand::K(k));
    let cases: [(&str, [&[Op]; 3], [&[Op]; 3]); 7] = [
        (
            "commuted product",
            [&x_is_a1, &[A0, alu(AluOp::Mul)], &[Op::RetA]],
            [&x_is_a0, &[A1, alu(AluOp::Mul)], &[Op::RetA]],
        ),
        (
            "sum of two arguments",
            [&x_is_a1, &[A0, alu(AluOp::Add)], &equal(7)],
            [
                &x_is_a1,
                &[Op::LoadImm(7), alu(AluOp::Sub), Op::Tax, A0],
                &tell(Test::Eq, Operand::X),
            ],
        ),
        (
            "shift by an argument",
            [&x_is_a1, &[A0, alu(AluOp::Lsh)], &[Op::RetA]],
            [
                &[A1, alu_k(AluOp::And, 31), Op::Tax],
                &[A0, alu(AluOp::Lsh)],
                &[Op::RetA],
            ],
        ),
        (
            "quotient by ten",
            [&[A0], &[alu_k(AluOp::Div, 10)], &[Op::RetA]],
            [
                &[A0],
                &[alu_k(AluOp::Rsh, 1), alu_k(AluOp::Div, 5)],
                &[Op::RetA],
            ],
        ),
        (
            "a whole word",
            [&[A0], &[Op::Neg], &[Op::RetA]],
            [
                &[A0],
                &[alu_k(AluOp::Xor, u32::MAX), alu_k(AluOp::Add, 1)],
                &[Op::RetA],
            ],
        ),
        (
            "exclusive or of two arguments",
            [&x_is_a1, &[A0, alu(AluOp::Xor)], &equal(0)],
            [&x_is_a1, &[A0], &tell(Test::Eq, Operand::X)],
        ),
        (
            "greater by borrow",
            [&x_is_a1, &[A0], &tell(Test::Ge, Operand::X)],
            [
                &x_is_a0,
                &[A1],
                &[
                    Op::Branch {
                        test: Test::Gt,
                        operand: Operand::X,
                        jt: 1,
                        jf: 0,
                    },
                    Op::RetImm(1),
                    Op::RetImm(2),
                ],
            ],
        ),
    ];
    for (name, left, right) in cases {
        let answer = decided(name, &left, &right);
        assert!(matches!(answer, Answer::Equal(_)), "{name}");
    }
}

/// Where the quotient isn't 0 the dividend isn't the smaller; by zero the machine stops.
#[test]
fn a_quotient_and_a_comparison() {
    let x_is_a1 = [A1, Op::Tax];
    let not_by_zero = [
        Op::Txa,
        Op::Branch {
            test: Test::Eq,
            operand: Operand::K(0),
            jt: 0,
            jf: 1,
        },
        Op::RetImm(0),
    ];
    let quotient = [A0, alu(AluOp::Div)];
    let is_zero = tell(Test::Eq, Operand::K(0));
    let swapped = [
        Op::Branch {
            test: Test::Ge,
            operand: Operand::X,
            jt: 1,
            jf: 0,
        },
        Op::RetImm(1),
        Op::RetImm(2),
    ];
    let answer = decided(
        "quotient is zero",
        &[&x_is_a1, &quotient, &is_zero],
        &[&x_is_a1, &not_by_zero, &[A0], &swapped],
    );
    assert_eq!(answer, Answer::Equal(Method::Gates));
}

#[test]
fn differences_that_only_arithmetic_reaches() {
    let x_is_a1 = [A1, Op::Tax];
    let product = [A0, alu(AluOp::Mul)];
    let never = [Op::RetImm(2)];
    let answer = decided(
        "a product that is hit",
        &[&x_is_a1, &product, &tell(Test::Eq, Operand::K(0xdead_beef))],
        &[&never],
    );
    assert!(matches!(
        answer,
        Answer::Different {
            left: 1,
            right: 2,
            ..
        }
    ));
}

#[test]
fn what_is_too_hard_is_unknown_and_names_the_limit() {
    let products = |first: Op, second: Op, third: Op| {
        program_of(&[&[
            first,
            Op::Tax,
            second,
            alu(AluOp::Mul),
            Op::Tax,
            third,
            alu(AluOp::Mul),
            Op::RetA,
        ]])
    };
    let (left, right) = (products(A0, A1, A2), products(A1, A2, A0));
    let limits = |max_gates| Limits {
        max_gates,
        max_conflicts: 300,
        max_nodes: 10_000,
        ..Limits::default()
    };
    let answer = |max_gates| decide(&little(&left), &little(&right), &limits(max_gates));
    assert_eq!(answer(1_000_000), Answer::Unknown(LimitReached::Conflicts));
    assert_eq!(answer(1_000), Answer::Unknown(LimitReached::Gates));
}

/// What became of a number of comparisons.
#[derive(Debug, Default)]
struct Tally {
    equal: u32,
    different: u32,
    unknown: u32,
}

/// Decides with gates, with diagrams, and looks for inputs that contradict the answer.
fn judge(
    left: &Subject,
    right: &Subject,
    near: impl Fn(&mut Rng) -> tamis_abi::SeccompData,
    rng: &mut Rng,
    tally: &mut Tally,
) {
    let limits = Limits {
        max_nodes: 20_000,
        max_steps: 200_000,
        ..GATES_ONLY
    };
    let limits = Limits {
        max_states: 2_000,
        max_paths: 1_000,
        ..limits
    };
    let by_gates = decide(left, right, &GATES_ONLY);
    let by_both = decide(left, right, &limits);
    match by_gates {
        Answer::Equal(_) => {
            tally.equal += 1;
            assert!(
                !matches!(by_both, Answer::Different { .. }),
                "{left:?} {right:?}"
            );
            for _ in 0..200 {
                let data = near(rng);
                assert_eq!(left.answer(&data), right.answer(&data), "{data:x?}");
            }
        }
        Answer::Different { .. } => {
            tally.different += 1;
            assert!(!matches!(by_both, Answer::Equal(_)), "{left:?} {right:?}");
        }
        Answer::Unknown(_) => tally.unknown += 1,
    }
}

#[test]
fn gates_diagrams_and_interpreter_agree_on_random_mutants() {
    let mut tally = Tally::default();
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let body_insns = rng.range(3..=20) as usize;
        let left = program::program(&mut rng, body_insns);
        let right = mutant(&mut rng, &left).expect("some change is legal");
        let near = Neighbourhood::of(&[&left, &right], endian);
        let subject = |program| Subject::Program { program, endian };
        let draw = |rng: &mut Rng| near.draw(rng);
        judge(
            &subject(&left),
            &subject(&right),
            draw,
            &mut rng,
            &mut tally,
        );
    }
    println!("{tally:?}");
    assert!(tally.equal > 50 && tally.different > 20, "{tally:?}");
}

#[test]
fn gates_diagrams_and_evaluator_agree_on_random_rulesets() {
    let mut tally = Tally::default();
    for seed in 0..80 {
        let mut rng = Rng::new(seed);
        let left = ruleset(&mut rng, Size::SMALL, Endian::Little);
        let mut sections = left.sections().to_vec();
        let section = rng.index(sections.len());
        let rules = &mut sections[section].rules;
        if !rules.is_empty() {
            rules.remove(rng.index(rules.len()));
        }
        let right = tamis_rules::Ruleset::new(sections, left.bad_arch).expect("as before");
        let draw = |rng: &mut Rng| call(rng, &left);
        judge(
            &Subject::Ruleset(&left),
            &Subject::Ruleset(&right),
            draw,
            &mut rng,
            &mut tally,
        );
    }
    println!("{tally:?}");
    assert!(tally.equal > 10 && tally.different > 20, "{tally:?}");
}
