//! Programs full of tests that decide nothing: the prover's readings and the interpreter count the same outcomes, and
//! the second judge confirms each optimised program.

use tamis_bpf::Stack;
use tamis_compiler::CompileOptions;
use tamis_fuzz::{Agreement, agreement};
use tamis_optimize::{Split, optimise};
use tamis_prover::{Limits, Stop, Subject};
use tamis_testkit::generate::degenerate;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

const PROGRAMS: u64 = 10_000;

#[test]
fn readings_and_interpreter_count_the_same_outcomes() {
    let mut total = Agreement::default();
    for seed in seeds::selected(0..PROGRAMS) {
        let mut rng = Rng::new(seed);
        let body_insns = rng.range(1..=12) as usize;
        let program = degenerate::program(&mut rng, body_insns);
        let subject = Subject::Program(&program);
        let found = agreement([&subject; 2], &Limits::default(), &Stop::default())
            .unwrap_or_else(|error| panic!("seed {seed}: {error:?}\n{program:?}"));
        total.edges += found.edges;
        total.infeasible_edges += found.infeasible_edges;
        total.unsettled_edges += found.unsettled_edges;
    }
    println!("{total:?}");
    // Otherwise the programs would not test this module.
    assert!(total.infeasible_edges * 4 > total.edges, "{total:?}");
    // Contradictory comparisons of two words, which diagrams leave open.
    assert!(total.unsettled_edges * 200 < total.edges, "{total:?}");
}

#[test]
fn optimised_programs_pass_the_second_judge() {
    let options = CompileOptions::default();
    for seed in seeds::selected(0..PROGRAMS).step_by(seeds::every(4)) {
        let mut rng = Rng::new(seed);
        let body_insns = rng.range(1..=12) as usize;
        let program = degenerate::program(&mut rng, body_insns);
        let stack = Stack::new(vec![program.clone()]).expect("one program");
        if let Err(bug) = optimise(&stack, &options, Split::default()) {
            panic!("seed {seed}: {bug:?}\n{program:?}");
        }
    }
}
