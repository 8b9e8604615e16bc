//! Every program of the corpus, fuzzed against itself: what can be reached is reached, and the rest is proved
//! to be out of reach.
//!
//! A line for each program says what it took; `--nocapture` shows the table.

use std::time::Instant;

use tamis_abi::Endian;
use tamis_bpf::Program;
use tamis_fuzz::{Campaign, FilterCoverage};
use tamis_prover::{Limits, Stop, Subject};
use tamis_testkit::corpus;

/// Random evaluations of each program, after the directed ones.
const EVALUATIONS: u64 = 20_000;

fn cover(name: &str, program: &Program) -> FilterCoverage {
    let subject = Subject::Program {
        program,
        endian: Endian::Little,
    };
    let start = Instant::now();
    let mut campaign = Campaign::new([&subject; 2], 1).expect("a program is short enough");
    assert_eq!(campaign.run_waiting(), None);
    let directed = (campaign.evaluations(), start.elapsed());
    assert_eq!(campaign.run(EVALUATIONS), None);
    let random = start.elapsed() - directed.1;
    let rate = (campaign.evaluations() - directed.0) as f64 / random.as_secs_f64() / 1e6;
    let before = campaign.kept().count();
    let proved = campaign.prove_coverage(&Limits::default(), &Stop::default());
    assert_eq!(proved, Ok(()));
    let coverage = campaign.coverage().swap_remove(0);
    println!(
        "{name}: {} insns, {} outcomes, {} never, {} by the prover; {} directed in {:?}, {rate:.1} M/s, all in {:?}",
        coverage.insns,
        coverage.outcomes,
        coverage.impossible_outcomes,
        campaign.kept().count() - before,
        directed.0,
        directed.1,
        start.elapsed(),
    );
    coverage
}

#[test]
fn every_feasible_place_of_every_program_is_reached() {
    let Some(names) = corpus::files("", ".bpf") else {
        return;
    };
    for name in names {
        let insns = corpus::insns(&name).expect("the listed file is there");
        let program = Program::new(insns).expect("the corpus holds programs");
        let coverage = cover(&name, &program);
        assert_eq!(coverage.gaps, [], "{name}");
        assert_eq!(
            coverage.insns,
            coverage.executed_insns + coverage.impossible_insns
        );
    }
}
