//! Every sabotage is detected: the prover rejects its results, with a call that the interpreter confirms.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Endian};
use tamis_bpf::{Op, Program, Test};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_testkit::corpus;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::sabotage::{self, STACKS};
use tamis_testkit::seeds;

/// The most places of a corpus program at which each sabotage is tried.
const MAX_PLACES: usize = 6;

const LIMITS: Limits = Limits {
    max_nodes: 30_000,
    max_steps: 300_000,
    max_states: 20_000,
    max_paths: 1_000,
    max_gates: 1_000_000,
    max_conflicts: 20_000,
};

/// The results of one sabotage.
#[derive(Debug, Default)]
struct Tally {
    rejected: usize,
    harmless: usize,
    unknown: usize,
}

fn subject(program: &Program) -> Subject<'_> {
    Subject::Program(program)
}

/// Judges one result; a rejection has a witness that `decide` has confirmed.
fn judge(original: &Program, sabotaged: &Program, tally: &mut Tally) {
    match decide(&subject(original), &subject(sabotaged), &LIMITS) {
        Answer::Different { left, right, .. } => {
            assert_ne!(left, right);
            tally.rejected += 1;
        }
        Answer::Equal(_) => {
            tally.harmless += 1;
            let near = Neighbourhood::from_programs(&[original, sabotaged]);
            let mut rng = Rng::new(1);
            for _ in 0..200 {
                let data = near.draw(&mut rng);
                let answers = [original, sabotaged].map(|one| subject(one).answer(&data.into()));
                assert_eq!(answers[0], answers[1], "{data:x?}");
            }
        }
        Answer::Unknown(_) => tally.unknown += 1,
    }
}

#[test]
fn every_sabotage_of_the_sample_is_rejected() {
    let sample = sabotage::sample();
    let all = sabotage::all();
    assert!(all.len() >= 30);
    for sabotage in &all {
        let mut tally = Tally::default();
        for (_, sabotaged) in sabotage.results(&sample) {
            judge(&sample, &sabotaged, &mut tally);
        }
        println!("{:36} {tally:?}", sabotage.name);
        assert!(tally.rejected > 0, "{}", sabotage.name);
        assert_eq!(tally.unknown, 0, "{}", sabotage.name);
    }
}

#[test]
fn sabotages_of_real_programs_are_rejected() {
    all_are_rejected(
        corpus::all_programs().into_iter().step_by(12).collect(),
        300,
    );
}

#[test]
fn sabotages_of_programs_of_real_shapes_are_rejected() {
    all_are_rejected(shape::programs(), 100);
}

fn all_are_rejected(programs: Vec<(String, Program)>, least: usize) {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for (_, program) in programs {
        for sabotage in sabotage::all() {
            let results = sabotage.results(&program);
            let step = results.len() / seeds::share(MAX_PLACES).max(1) + 1;
            for (_, sabotaged) in results.iter().step_by(step) {
                judge(
                    &program,
                    sabotaged,
                    tallies.entry(sabotage.name).or_default(),
                );
            }
        }
    }
    for (name, tally) in &tallies {
        println!("{name:36} {tally:?}");
    }
    let rejected: usize = tallies.values().map(|tally| tally.rejected).sum();
    assert!(rejected > seeds::least(least), "{rejected}");
}

/// A filter that returns these actions for some numbers and allows the rest.
fn denying(answers: &[(u32, Action)]) -> Program {
    let mut ops = vec![Op::LoadData(0)];
    for (nr, action) in answers {
        let is_other = Op::branch(Test::Eq, *nr, 0, 1);
        ops.extend([is_other, Op::RetImm(action.ret())]);
    }
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    Program::from_ops(&ops, Endian::Little).expect("a valid program")
}

#[test]
fn every_sabotage_of_a_stack_is_rejected() {
    let trap = Action::new(ActionKind::Trap, 0);
    let stack = [
        denying(&[(1, Action::errno(1)), (4, trap)]),
        denying(&[(1, Action::errno(2)), (2, Action::errno(2))]),
        denying(&[(2, Action::errno(3)), (3, Action::KILL_PROCESS)]),
    ];
    for sabotage in STACKS {
        let sabotaged = (sabotage.change)(&stack);
        let [left, right] =
            [&stack[..], &sabotaged].map(|programs| programs.iter().map(subject).collect());
        let (left, right): (Vec<Subject>, Vec<Subject>) = (left, right);
        let answer = decide(&Subject::Stack(&left), &Subject::Stack(&right), &LIMITS);
        let name = sabotage.name;
        assert!(
            matches!(answer, Answer::Different { .. }),
            "{name}: {answer:?}"
        );
    }
}
