//! The cost of argument decisions: executed steps of real policies for calls whose arguments matter.
//!
//! The steps are those of the whole program, with dispatch and return. `--nocapture` shows a line per policy: length,
//! followed by the mean steps of the allowed and of the other calls among the test's (the vectors of the corpus, or
//! calls drawn from the policy), without those that the kernel decides by its bitmap.

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch, SeccompData, syscall};
use tamis_bench::policies::{self, Policy};
use tamis_compiler::meter::{Executed, Sample, Workload, measure};
use tamis_compiler::{CompileOptions, Compiled, compile};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::gvisor;
use tamis_testkit::generate::ruleset::call;
use tamis_testkit::rng::Rng;

/// The number of calls that are drawn for a policy without vectors.
const DRAWN: usize = 20_000;

fn calls(name: &str, ruleset: &Ruleset) -> Vec<SeccompData> {
    let vectors = name.replace(".json", ".vectors");
    let is_recorded = name.starts_with("gvisor/");
    if is_recorded {
        let vectors = gvisor::vectors(&vectors).into_iter();
        return vectors.map(|vector| vector.data).collect();
    }
    let mut rng = Rng::new(1);
    (0..DRAWN).map(|_| call(&mut rng, ruleset)).collect()
}

/// The costs of the calls that run the program.
fn executed(compiled: &Compiled, calls: &[SeccompData]) -> Executed {
    let samples = calls.iter().filter_map(|data| {
        let arch = Arch::of_call(data.arch, data.nr)?;
        Some(Sample {
            arch,
            data: *data,
            weight: 1.0,
        })
    });
    let program = compiled.program().unwrap();
    measure(std::slice::from_ref(program), &Workload::new(samples), true).uncached
}

#[test]
fn drawn_calls_are_measured_for_every_policy_of_our_own() {
    assert_measured(|policy| !policy.is_in_corpus());
}

#[test]
fn drawn_calls_and_vectors_are_measured_for_every_policy_of_the_corpus() {
    assert_measured(Policy::is_in_corpus);
}

fn assert_measured(is_chosen: fn(Policy) -> bool) {
    let all = policies::ALL.into_iter();
    for policy in all.filter(|policy| is_chosen(*policy)) {
        let ruleset = policy.ruleset();
        let compiled = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
        let is_allowed = |data: &SeccompData| ruleset.decide(data).action == Action::ALLOW;
        let calls = calls(policy.name, &ruleset).into_iter();
        let (allowed, other): (Vec<_>, Vec<_>) = calls.partition(is_allowed);
        let [allowed, other] = [allowed, other].map(|calls| executed(&compiled, &calls));
        println!(
            "{}\t{}\t{:.2}\t{:.2}\t{}",
            policy.name,
            compiled.program().unwrap().len(),
            allowed.mean_steps(),
            other.mean_steps(),
            allowed.max_steps.max(other.max_steps)
        );
        assert!(other.calls > 0.0, "{}", policy.name);
    }
}

#[test]
fn a_list_of_ioctl_requests_is_a_tree() {
    let name = "gvisor/gvisor-sentry-nvproxy.json";
    let ruleset = gvisor::ruleset(name);
    let compiled = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
    let ioctl = syscall::number(Arch::X86_64, "ioctl").map(|nr| nr.0);
    let allowed = calls(name, &ruleset)
        .into_iter()
        .filter(|data| Some(data.nr) == ioctl && ruleset.decide(data).action == Action::ALLOW);
    let by_request: BTreeMap<u64, SeccompData> = allowed.map(|data| (data.args[1], data)).collect();
    let requests: Vec<SeccompData> = by_request.into_values().collect();
    let executed = executed(&compiled, &requests);
    println!("{executed:?}");
    assert!(compiled.program().unwrap().len() <= 400);
    assert_eq!(executed.calls, 71.0);
    assert!(executed.mean_steps() <= 25.0);
    assert!(executed.max_steps <= 35);
}
