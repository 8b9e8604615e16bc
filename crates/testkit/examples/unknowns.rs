//! How many random pairs of programs the prover can't decide, with and without a search by running first.
//!
//! A pair is a random program and the same with one instruction changed, with limits of a fiftieth of the defaults.
//! `cargo run --release -p tamis-testkit --example unknowns -- 10000`

use std::env;

use tamis_abi::Endian;
use tamis_fuzz::refute;
use tamis_prover::{Answer, Limits, Scope, Stop, Subject, decide};
use tamis_testkit::generate::mutant::mutant;
use tamis_testkit::generate::program;
use tamis_testkit::rng::Rng;

fn main() {
    let pairs = env::args().nth(1).and_then(|count| count.parse().ok());
    let pairs: u64 = pairs.unwrap_or(1000);
    let limits = Limits {
        max_nodes: 40_000,
        max_steps: 400_000,
        max_gates: 400_000,
        max_conflicts: 400,
        ..Limits::default()
    };
    let (mut equal, mut different, mut unknown, mut refuted) = (0, 0, 0, 0);
    for seed in 0..pairs {
        let mut rng = Rng::new(seed);
        let body_insns = rng.range(4..=40) as usize;
        let one = program::program(&mut rng, body_insns, Endian::Little);
        let Some(other) = mutant(&mut rng, &one) else {
            continue;
        };
        let [left, right] = [&one, &other].map(Subject::Program);
        match decide(&left, &right, &limits) {
            Answer::Equal(_) => equal += 1,
            Answer::Different { .. } => different += 1,
            Answer::Unknown(_) => {
                unknown += 1;
                let found = refute([&left, &right], &Scope::default(), &Stop::default());
                refuted += u64::from(found.is_some());
            }
        }
    }
    println!("{pairs} pairs: {equal} equal, {different} different, {unknown} unknown");
    println!(
        "of the unknown, running refutes {refuted}: {} left",
        unknown - refuted
    );
}
