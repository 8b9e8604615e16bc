//! What argument decisions cost: executed steps of real policies over calls whose arguments matter.
//!
//! The steps are those of the whole program, with dispatch and return. `--nocapture` shows a line per
//! policy: length, then mean steps of the allowed and of the other calls among the judge's (the vectors
//! of the corpus, or calls drawn from the policy), without those that the kernel decides by its bitmap.

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch, SeccompData, syscall};
use tamis_bench::policies;
use tamis_bpf::cache::is_cacheable;
use tamis_bpf::interp;
use tamis_compiler::{Compiled, Options, compile};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::gvisor;
use tamis_testkit::generate::ruleset::call;
use tamis_testkit::rng::Rng;

/// How many calls are drawn for a policy without vectors.
const DRAWN: usize = 20_000;

fn calls(name: &str, ruleset: &Ruleset) -> Vec<SeccompData> {
    let vectors = name.replace(".json", ".vectors");
    let is_recorded = name.starts_with("gvisor/");
    if let Some(vectors) = is_recorded.then(|| gvisor::vectors(&vectors)).flatten() {
        return vectors.iter().map(|vector| vector.data).collect();
    }
    let mut rng = Rng::new(1);
    (0..DRAWN).map(|_| call(&mut rng, ruleset)).collect()
}

fn steps(compiled: &Compiled, data: &SeccompData) -> u64 {
    let run = interp::run(compiled.program().unwrap(), data);
    u64::from(run.steps)
}

fn mean(steps: &[u64]) -> f64 {
    steps.iter().sum::<u64>() as f64 / steps.len().max(1) as f64
}

#[test]
fn drawn_calls_and_vectors_are_measured_for_every_policy() {
    for policy in policies::ALL {
        let Some(ruleset) = policy.ruleset() else {
            continue;
        };
        let compiled = compile(&ruleset, &Options::default()).expect("the policy compiles");
        let (mut allowed, mut other) = (Vec::new(), Vec::new());
        for data in calls(policy.name, &ruleset) {
            if is_cacheable(compiled.program().unwrap(), data.arch, data.nr) {
                continue;
            }
            let is_allowed = ruleset.decide(&data).action == Action::ALLOW;
            let list = if is_allowed { &mut allowed } else { &mut other };
            list.push(steps(&compiled, &data));
        }
        println!(
            "{}\t{}\t{:.2}\t{:.2}\t{}",
            policy.name,
            compiled.program().unwrap().len(),
            mean(&allowed),
            mean(&other),
            allowed.iter().chain(&other).max().unwrap_or(&0)
        );
        assert!(!other.is_empty(), "{}", policy.name);
    }
}

/// The steps of each request that a policy allows for `ioctl`, by request.
fn ioctl_steps(name: &str, ruleset: &Ruleset, compiled: &Compiled) -> BTreeMap<u64, u64> {
    let ioctl = syscall::number(Arch::X86_64, "ioctl").map(|nr| nr.0);
    let allowed = calls(name, ruleset)
        .into_iter()
        .filter(|data| Some(data.nr) == ioctl && ruleset.decide(data).action == Action::ALLOW);
    allowed
        .map(|data| (data.args[1], steps(compiled, &data)))
        .collect()
}

#[test]
fn a_list_of_ioctl_requests_is_a_tree() {
    let name = "gvisor/gvisor-sentry-nvproxy.json";
    let Some(ruleset) = gvisor::ruleset(name) else {
        return;
    };
    let compiled = compile(&ruleset, &Options::default()).expect("the policy compiles");
    let by_request = ioctl_steps(name, &ruleset, &compiled);
    let steps: Vec<u64> = by_request.values().copied().collect();
    println!(
        "{} requests: mean {:.2}, max {}",
        steps.len(),
        mean(&steps),
        steps.iter().max().unwrap_or(&0)
    );
    assert!(compiled.program().unwrap().len() <= 400);
    assert_eq!(steps.len(), 71);
    assert!(mean(&steps) <= 25.0, "{by_request:x?}");
    assert!(steps.iter().all(|steps| *steps <= 35), "{by_request:x?}");
}
