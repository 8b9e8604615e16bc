//! A campaign finds bugs: of compiled programs with one instruction changed, those that the prover distinguishes from
//! the original are also found by running them.

use tamis_abi::Endian;
use tamis_bpf::Program;
use tamis_compiler::{CompileOptions, compile};
use tamis_fuzz::Campaign;
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::{self, gvisor};
use tamis_testkit::generate::mutant::mutant;
use tamis_testkit::generate::ruleset::{Size, ruleset};
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// The results for mutants.
#[derive(Debug, Default)]
struct Tally {
    equal: u32,
    found: u32,
    missed: u32,
    evaluations: u64,
}

impl Tally {
    /// Makes a mutant of a program and searches for the difference.
    fn try_mutant(&mut self, rng: &mut Rng, program: &Program, evaluations: u64) {
        let Some(mutant) = mutant(rng, program) else {
            return;
        };
        let [left, right] = [program, &mutant].map(Subject::Program);
        let answer = decide(&left, &right, &Limits::default());
        let mut campaign = Campaign::new([&left, &right], 1).expect("short programs");
        let found = campaign.run(evaluations);
        match (answer, found) {
            (Answer::Equal(_), None) => self.equal += 1,
            (Answer::Equal(_), Some(found)) => panic!("proved equal: {found:x?} {mutant:?}"),
            (_, Some(_)) => {
                self.found += 1;
                self.evaluations += campaign.evaluations();
            }
            (Answer::Different { .. }, None) => self.missed += 1,
            (Answer::Unknown(_), None) => {}
        }
    }
}

#[test]
fn of_random_rulesets_compiled() {
    let mut tally = Tally::default();
    for seed in seeds::selected(0..300) {
        let mut rng = Rng::new(seed);
        let ruleset: Ruleset = ruleset(&mut rng, Size::SMALL, Endian::Little);
        let compiled = compile(&ruleset, &CompileOptions::default()).expect("a small ruleset");
        tally.try_mutant(&mut rng, compiled.program().unwrap(), 50_000);
    }
    println!("{tally:?}");
    assert!(
        tally.found > seeds::least(100) && tally.missed * 100 <= tally.found,
        "{tally:?}"
    );
}

#[test]
fn of_a_real_program() {
    let ruleset = gvisor::ruleset("gvisor/gvisor-sentry-systrap.json");
    let given = corpus::program("gvisor/gvisor-sentry-systrap.opt.bpf");
    found_by_inputs(&ruleset, &given, 100);
}

#[test]
fn of_a_program_of_a_real_shape() {
    let given = shape::programs().pop().expect("a list of comparisons");
    // A mutant of this one takes a quarter of a second.
    found_by_inputs(&shape::requests(), &given.1, seeds::share(100));
}

fn found_by_inputs(ruleset: &Ruleset, given: &Program, mutants: u32) {
    let compiled = compile(ruleset, &CompileOptions::default()).expect("the policy compiles");
    let mut tally = Tally::default();
    let mut rng = Rng::new(1);
    for _ in 0..mutants {
        tally.try_mutant(&mut rng, given, 50_000);
        tally.try_mutant(&mut rng, compiled.program().unwrap(), 50_000);
    }
    println!("{tally:?}");
    assert!(
        tally.found > seeds::least(100) && tally.missed * 100 <= tally.found,
        "{tally:?}"
    );
}
