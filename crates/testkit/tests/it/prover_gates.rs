//! The prover on inputs for which diagrams fail: circuits of gates and a SAT solver.

use std::time::Instant;

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::{Program, asm};
use tamis_diag::Sources;
use tamis_prover::{Answer, LimitReached, Limits, Method, Scope, Subject, decide, prove};
use tamis_rules::Ruleset;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::mutant::mutant;
use tamis_testkit::generate::program;
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::tally::Tally;

/// A limit that no diagram meets, so that gates decide everything.
const GATES_ONLY: Limits = Limits {
    max_nodes: 2,
    max_steps: 1,
    max_states: 1,
    max_paths: 1,
    max_gates: 200_000,
    max_conflicts: 5_000,
};

const WITH_DIAGRAMS: Limits = Limits {
    max_nodes: 20_000,
    max_steps: 200_000,
    max_states: 2_000,
    max_paths: 1_000,
    ..GATES_ONLY
};

fn little(program: &Program) -> Subject<'_> {
    Subject::Program(program)
}

/// A program of instructions separated by bars.
fn program_of(text: &str) -> Program {
    let text = text.replace('|', "\n");
    let source = Sources::new().add("test", text.clone());
    let assembly = asm::assemble(&text, source, Endian::Little).expect("it assembles");
    assembly.into_program().expect("a valid program")
}

fn decided(name: &str, left: &str, right: &str, limits: &Limits) -> Answer {
    let (left, right) = (program_of(left), program_of(right));
    let start = Instant::now();
    let answer = decide(&little(&left), &little(&right), limits);
    println!("{name}: {answer:?}, {:?}", start.elapsed());
    answer
}

/// A limit at which diagrams of two words are abandoned at once.
const FEW_NODES: Limits = Limits {
    max_nodes: 20_000,
    max_steps: 200_000,
    max_states: 1_000,
    max_paths: 1_000,
    max_gates: 1_000_000,
    max_conflicts: 50_000,
};

/// A name, and two equivalent computations on two arguments.
const EQUAL_PAIRS: [[&str; 3]; 8] = [
    [
        "commuted product",
        "ld [arg1.low] | tax | ld [arg0.low] | mul x | ret a",
        "ld [arg0.low] | tax | ld [arg1.low] | mul x | ret a",
    ],
    [
        "sum of two arguments",
        "ld [arg1.low] | tax | ld [arg0.low] | add x | jne #7, no | ret #1 | no: ret #2",
        "ld [arg1.low] | tax | ld #7 | sub x | tax | ld [arg0.low] | jne x, no | ret #1 | no: ret #2",
    ],
    [
        "shift by an argument",
        "ld [arg1.low] | tax | ld [arg0.low] | lsh x | ret a",
        "ld [arg1.low] | and #31 | tax | ld [arg0.low] | lsh x | ret a",
    ],
    [
        "quotient by ten",
        "ld [arg0.low] | div #10 | ret a",
        "ld [arg0.low] | rsh #1 | div #5 | ret a",
    ],
    [
        "a whole word",
        "ld [arg0.low] | neg | ret a",
        "ld [arg0.low] | xor #0xffffffff | add #1 | ret a",
    ],
    [
        "exclusive or of two arguments",
        "ld [arg1.low] | tax | ld [arg0.low] | xor x | jne #0, no | ret #1 | no: ret #2",
        "ld [arg1.low] | tax | ld [arg0.low] | jne x, no | ret #1 | no: ret #2",
    ],
    [
        "comparison from the other side",
        "ld [arg1.low] | tax | ld [arg0.low] | jge x, yes | ret #2 | yes: ret #1",
        "ld [arg0.low] | tax | ld [arg1.low] | jgt x, no | ret #1 | no: ret #2",
    ],
    [
        "relation that contradicts bits",
        "ld [arg1.low] | tax | ld [arg0.low] | jgt #5, go | ret #0
         go: ld [arg1.low] | jge #9, no | ld [arg0.low] | jlt #10, no | jlt x, yes | no: ret #0
         yes: ret #1",
        "ret #0",
    ],
];

#[test]
fn arithmetic_on_two_words() {
    for [name, left, right] in EQUAL_PAIRS {
        let answer = decided(name, left, right, &FEW_NODES);
        assert!(matches!(answer, Answer::Equal(_)), "{name}");
    }
}

/// The quotient is 0 if the dividend is the smaller one; a division by zero ends the program with 0.
#[test]
fn a_quotient_and_a_comparison() {
    let answer = decided(
        "quotient is zero",
        "ld [arg1.low] | tax | ld [arg0.low] | div x | jne #0, no | ret #1 | no: ret #2",
        "ld [arg1.low] | jeq #0, zero | tax | ld [arg0.low] | jge x, no | ret #1 | no: ret #2
         zero: ret #0",
        &FEW_NODES,
    );
    assert_eq!(answer, Answer::Equal(Method::Gates));
}

#[test]
fn differences_that_only_arithmetic_reaches() {
    let answer = decided(
        "a product that is hit",
        "ld [arg1.low] | tax | ld [arg0.low] | mul x | jne #0xdeadbeef, no | ret #1 | no: ret #2",
        "ret #2",
        &FEW_NODES,
    );
    let is_expected = matches!(
        answer,
        Answer::Different {
            left: 1,
            right: 2,
            ..
        }
    );
    assert!(is_expected, "{answer:?}");
}

#[test]
fn what_is_too_hard_is_unknown_and_names_the_limit() {
    let answer = |max_gates| {
        let limits = Limits {
            max_gates,
            max_conflicts: 300,
            ..FEW_NODES
        };
        decided(
            "a product of three",
            "ld [arg0.low] | tax | ld [arg1.low] | mul x | tax | ld [arg2.low] | mul x | ret a",
            "ld [arg1.low] | tax | ld [arg2.low] | mul x | tax | ld [arg0.low] | mul x | ret a",
            &limits,
        )
    };
    assert_eq!(answer(1_000_000), Answer::Unknown(LimitReached::Conflicts));
    assert_eq!(answer(1_000), Answer::Unknown(LimitReached::Gates));
}

/// Decides with gates and with diagrams, and searches for inputs that contradict the answer.
fn judge(
    left: &Subject,
    right: &Subject,
    near: impl Fn(&mut Rng) -> SeccompData,
    rng: &mut Rng,
    tally: &mut Tally,
) {
    let results =
        [GATES_ONLY, WITH_DIAGRAMS].map(|limits| prove(left, right, &Scope::default(), &limits));
    if let [Ok(by_gates), Ok(by_both)] = results.map(|report| report.result) {
        assert_eq!(by_gates, by_both, "{left:?} {right:?}");
    }
    let by_gates = decide(left, right, &GATES_ONLY);
    let by_both = decide(left, right, &WITH_DIAGRAMS);
    match by_gates {
        Answer::Equal(_) => {
            tally.equal += 1;
            assert!(
                !matches!(by_both, Answer::Different { .. }),
                "{left:?} {right:?}"
            );
            for _ in 0..200 {
                let data = near(rng);
                assert_eq!(
                    left.answer(&data.into()),
                    right.answer(&data.into()),
                    "{data:x?}"
                );
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
    for seed in seeds::selected(0..200) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let body_insns = rng.range(3..=20) as usize;
        let left = program::program(&mut rng, body_insns, endian);
        let right = mutant(&mut rng, &left).expect("some change is legal");
        let near = Neighbourhood::from_programs(&[&left, &right]);
        let draw = |rng: &mut Rng| near.draw(rng);
        judge(
            &Subject::Program(&left),
            &Subject::Program(&right),
            draw,
            &mut rng,
            &mut tally,
        );
    }
    println!("{tally:?}");
    assert!(
        tally.equal > seeds::least(50) && tally.different > seeds::least(20),
        "{tally:?}"
    );
}

#[test]
fn gates_diagrams_and_evaluator_agree_on_random_rulesets() {
    let mut tally = Tally::default();
    for seed in seeds::selected(0..80) {
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
    assert!(
        tally.equal > seeds::least(10) && tally.different > seeds::least(20),
        "{tally:?}"
    );
}

fn policy(text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let source = sources.add("test", text);
    let options = tamis_policy::tamis::TamisOptions::new(vec![tamis_abi::Arch::X86_64]);
    let mut none = tamis_policy::loader::NoIncludes;
    let read = tamis_policy::tamis::parse(&mut sources, source, &mut none, &options);
    read.ruleset.expect("a policy")
}

/// No diagram of a reasonable size represents `(a & b) == c` for whole words. This is detected long before the
/// diagrams reach their limit of nodes.
#[test]
fn whole_words_joined_are_left_to_gates_soon() {
    for wanted in [0_u32, 5, 0xffff_0000] {
        let bits: Vec<String> = (0..u32::BITS)
            .map(|bit| {
                let mask = 1_u32 << bit;
                match wanted & mask {
                    0 => format!("(arg[0] & {mask:#x} == 0 || arg[1] & {mask:#x} == 0)"),
                    _ => format!(
                        "arg[0] & {mask:#x} == {mask:#x} && arg[1] & {mask:#x} == {mask:#x}"
                    ),
                }
            })
            .collect();
        let meant = policy(&format!(
            "arch x86_64\ndefault errno(1)\nallow munlock({})\n",
            bits.join(" && ")
        ));
        let options = tamis_compiler::CompileOptions {
            proof: tamis_compiler::ProofEffort {
                limits: Limits {
                    max_nodes: 16_000,
                    max_conflicts: 800,
                    ..Limits::default()
                },
                ..tamis_compiler::ProofEffort::default()
            },
            ..tamis_compiler::CompileOptions::default()
        };
        let compiled = tamis_compiler::compile(&meant, &options);
        assert!(compiled.is_ok(), "{wanted:#x}: {compiled:?}");
    }
}

/// A rule that compares words makes gates decide, which are slow with the lists of other rules: the prover returns to
/// diagrams before much work is spent.
#[test]
fn lists_beside_joined_words_are_left_to_diagrams() {
    let mut text = String::from("arch x86_64\ndefault errno(1)\n");
    for (nr, name) in ["read", "write", "close", "ioctl"].into_iter().enumerate() {
        let values: Vec<String> = (0..60)
            .map(|index| (index * index * 7919 + nr * 31 + 5).to_string())
            .collect();
        let list = values.join(", ");
        text.push_str(&format!("allow {name}(arg[0] in {{{list}}})\n"));
    }
    let bits: Vec<String> = (0..17)
        .map(|bit| {
            format!(
                "(arg[0] & {0:#x} == 0 || arg[1] & {0:#x} == 0)",
                1_u32 << bit
            )
        })
        .collect();
    text.push_str(&format!("allow munlock({})\n", bits.join(" && ")));
    let meant = policy(&text);
    let compiled = tamis_compiler::compile(&meant, &tamis_compiler::CompileOptions::default());
    let compiled = compiled.expect("it compiles");
    let limits = Limits {
        max_conflicts: 1_000_000,
        ..Limits::default()
    };
    let answer = decide(
        &Subject::Ruleset(&meant),
        &little(compiled.program().unwrap()),
        &limits,
    );
    assert!(
        matches!(answer, Answer::Equal(Method::Diagrams { nodes }) if nodes > 4_000),
        "{answer:?}"
    );
}
