//! Every program of the corpus fuzzed against itself, its optimised form or its policy: no difference is found, every
//! reachable place is reached, and the rest is proved unreachable.
//!
//! Each pair prints a line with its costs, the last line has the totals; `--nocapture` shows the table, and
//! `TAMIS_FUZZ_EVALUATIONS` sets a larger number of evaluations.

use std::time::{Duration, SystemTime};
use std::{env, fs};

use tamis_abi::Arch;
use tamis_bpf::{Op, Program};
use tamis_compiler::{CompileOptions, compile, judge};
use tamis_diag::Sources;
use tamis_fuzz::Campaign;
use tamis_policy::oci;
use tamis_prover::{Branches, Limits, Stop, Subject};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::{self, gvisor, pol_json};
use tamis_testkit::generate::shape;

/// The number of random evaluations of each pair, after the directed ones.
fn evaluations() -> u64 {
    let asked = env::var("TAMIS_FUZZ_EVALUATIONS").ok();
    asked.map_or(20_000, |count| count.parse().expect("a count"))
}

/// The CPU time of this thread; the time since the epoch if Linux does not report it.
fn cpu_time() -> Duration {
    let schedule = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let running_ns = schedule.split(' ').next().and_then(|ns| ns.parse().ok());
    running_ns.map_or_else(
        || SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default(),
        Duration::from_nanos,
    )
}

/// The costs and results of some campaigns; times are CPU times.
#[derive(Default)]
struct Totals {
    pairs: usize,
    evaluations: u64,
    /// The time of the random evaluations.
    random: Duration,
    slowest_rate: f64,
    insns: usize,
    outcomes: usize,
    impossible_outcomes: usize,
    /// The number of places reached only by an input of the prover.
    by_prover: usize,
    longest: Duration,
}

impl Totals {
    /// Fuzzes a pair and checks the results.
    fn add(&mut self, name: &str, subjects: [&Subject<'_>; 2]) {
        let start = cpu_time();
        let mut campaign = Campaign::new(subjects, 1).expect("short enough");
        assert_eq!(campaign.run_waiting(&Stop::default()), None, "{name}");
        let directed = campaign.evaluations();
        let taken = |campaign: &Campaign<'_>| -> usize {
            let coverage = campaign.coverage();
            coverage.iter().map(|filter| filter.taken_outcomes).sum()
        };
        let before = taken(&campaign);
        let proved = campaign.prove_coverage(&Limits::default(), &Stop::default());
        assert_eq!(proved, Ok(()), "{name}");
        let by_prover = taken(&campaign) - before;
        let covered = cpu_time() - start;
        assert_eq!(campaign.run(evaluations()), None, "{name}");
        let random = cpu_time() - start - covered;
        let rate = (campaign.evaluations() - directed) as f64 / random.as_secs_f64() / 1e6;
        for filter in campaign.coverage() {
            assert_eq!(filter.gaps, [], "{name}");
            self.insns += filter.insns;
            self.outcomes += filter.outcomes;
            self.impossible_outcomes += filter.impossible_outcomes;
        }
        println!(
            "{name}: {directed} directed, covered in {covered:?}, {by_prover} by the prover, {rate:.1} M/s"
        );
        self.pairs += 1;
        self.evaluations += campaign.evaluations();
        self.random += random;
        self.by_prover += by_prover;
        self.longest = self.longest.max(covered);
        self.slowest_rate = match self.pairs {
            1 => rate,
            _ => self.slowest_rate.min(rate),
        };
    }

    fn print(&self) {
        let Totals {
            pairs,
            evaluations,
            random,
            slowest_rate,
            insns,
            outcomes,
            impossible_outcomes,
            by_prover,
            longest,
        } = self;
        let rate = *evaluations as f64 / random.as_secs_f64() / 1e6;
        println!(
            "all: {pairs} pairs, {evaluations} evaluations, {rate:.1} M/s (slowest {slowest_rate:.1}), {insns} \
             instructions, {outcomes} outcomes, {impossible_outcomes} impossible by proof, {by_prover} reached \
             by the prover, each covered within {longest:?}"
        );
    }
}

fn program(name: &str) -> Program {
    corpus::program(name)
}

const fn filter(program: &Program) -> Subject<'_> {
    Subject::Program(program)
}

#[test]
fn every_feasible_place_of_every_program_is_reached() {
    let names = corpus::files("", ".bpf");
    let mut totals = Totals::default();
    for name in names {
        let left = program(&name);
        let right = match name.contains(".unopt.") {
            true => program(&name.replace(".unopt.", ".opt.")),
            false => left.clone(),
        };
        totals.add(&name, [&filter(&left), &filter(&right)]);
    }
    totals.print();
}

/// The policies of the corpus that have a reader, by name.
pub(super) fn policies() -> Vec<(String, Ruleset)> {
    let mut policies = Vec::new();
    for name in corpus::files("gvisor", ".json") {
        if !name.contains("profile") {
            let ruleset = gvisor::ruleset(&name);
            policies.push((name, ruleset));
        }
    }
    for name in corpus::files("peers", ".pol.json") {
        let ruleset = pol_json::ruleset(&name);
        policies.push((name, ruleset));
    }
    let name = "docker/docker-default-x86_64.json";
    let mut sources = Sources::new();
    let source = sources.add(name, corpus::text(name));
    let parsed = oci::parse(&sources, source, &oci::OciOptions::docker(Arch::X86_64)).parsed;
    policies.push((name.to_owned(), parsed.ruleset.expect("a real profile")));
    policies
}

#[test]
fn every_feasible_place_of_every_compiled_policy_is_reached() {
    all_are_reached(policies());
}

#[test]
fn every_feasible_place_of_every_compiled_policy_of_a_real_shape_is_reached() {
    all_are_reached(shape::policies());
}

fn all_are_reached(policies: Vec<(String, Ruleset)>) {
    let mut totals = Totals::default();
    for (name, ruleset) in policies {
        let compiled = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
        let filter = filter(compiled.program().unwrap());
        totals.add(&name, [&Subject::Ruleset(&ruleset), &filter]);
    }
    totals.print();
}

#[test]
fn the_check_of_compiled_policies_takes_all_but_one_feasible_edge() {
    let policies = policies();
    let (limits, stop) = (Limits::default(), Stop::default());
    let mut edges = 0;
    let mut not_taken = 0;
    let mut missed = 0;
    for (name, ruleset) in policies {
        let compiled = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
        let program = compiled.program().unwrap();
        let open = judge::cover(program, &mut |_, _| true);
        let mut branches =
            Branches::from_program(program, &limits, &stop).expect("it is within limits");
        for outcome in &open {
            let input = branches.input_for_any([*outcome]);
            if let Some(data) = input.expect("it is within limits") {
                println!("{name}: {outcome:?} of {data:x?}");
                missed += 1;
            }
        }
        let is_branch = |op: &Op| matches!(op, Op::Branch { .. });
        edges += 2 * program.ops().filter(is_branch).count();
        not_taken += open.len();
    }
    println!("{not_taken} of {edges} edges not taken, {missed} of them feasible");
    assert!(edges > 1000);
    // One outcome of the test of an argument of madvise, in the filter of gVisor's gofer.
    assert!(missed <= 1, "{missed}");
}
