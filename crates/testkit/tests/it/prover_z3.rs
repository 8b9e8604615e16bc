//! The prover and Z3 on random programs: two independent solvers come to the same results.

use tamis_abi::Endian;
use tamis_bpf::Program;
use tamis_certificate::smt;
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_testkit::generate::mutant::mutant;
use tamis_testkit::generate::program::program;
use tamis_testkit::rng::Rng;
use tamis_testkit::smt::ask_z3;

const PAIRS: u64 = 400;

const LIMITS: Limits = Limits {
    max_nodes: 20_000,
    max_steps: 200_000,
    max_states: 2_000,
    max_paths: 1_000,
    max_gates: 200_000,
    max_conflicts: 10_000,
};

#[test]
fn verdicts_are_those_of_z3() {
    let pairs: Vec<(Program, Program)> = (0..PAIRS)
        .map(|seed| {
            let mut rng = Rng::new(seed);
            let body_insns = rng.range(2..=14) as usize;
            let left = program(&mut rng, body_insns, Endian::Little);
            let right = mutant(&mut rng, &left).expect("some change is legal");
            (left, right)
        })
        .collect();
    let references: Vec<(&Program, &Program)> = pairs.iter().map(|(l, r)| (l, r)).collect();
    let answers = ask_z3(&smt::differences(&references));
    assert_eq!(answers.len(), pairs.len(), "{:?}", answers.first());
    let mut compared = [0, 0];
    for (seed, ((left, right), answer)) in pairs.iter().zip(&answers).enumerate() {
        let [left, right] = [left, right].map(Subject::Program);
        match (decide(&left, &right, &LIMITS), answer.as_str()) {
            (Answer::Equal(_), "unsat") => compared[0] += 1,
            (Answer::Different { .. }, "sat") => compared[1] += 1,
            (Answer::Unknown(_), _) | (_, "unknown") => {}
            (ours, theirs) => {
                panic!("seed {seed}: {ours:?}, Z3 says {theirs}\n{left:?}\n{right:?}")
            }
        }
    }
    println!(
        "{} equal, {} different, of {PAIRS}",
        compared[0], compared[1]
    );
    assert!(compared[0] > 100 && compared[1] > 50, "{compared:?}");
}
