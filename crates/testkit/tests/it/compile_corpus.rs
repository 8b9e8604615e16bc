//! Real policies, compiled: the programs agree with the rulesets and with the vectors of the corpus.

use std::time::Instant;

use tamis_abi::{Arch, Nr, syscall};
use tamis_bpf::interp;
use tamis_compiler::{CompileOptions, Compiled, compile};
use tamis_rules::{IntervalSet, Rule, Ruleset, Section};
use tamis_testkit::corpus::{self, gvisor, pol_json};
use tamis_testkit::generate::shape;

/// Compiles a ruleset and prints the figures.
fn compiled(name: &str, ruleset: &Ruleset) -> Compiled {
    let start = Instant::now();
    let compiled = compile(ruleset, &CompileOptions::default()).expect("the policy compiles");
    let elapsed = start.elapsed();
    for (arch, cost) in compiled.costs() {
        println!("{name}, {arch}: {cost:?}, {elapsed:?}");
    }
    compiled
}

#[test]
fn policies_fed_to_peers_compile_to_programs_no_longer_than_the_best_of_theirs() {
    for (name, best_peer_insns) in [
        ("peers/docker.pol.json", 103),
        ("peers/gappy302.pol.json", 60),
        ("peers/fc-vmm.pol.json", 167),
    ] {
        let ruleset = pol_json::ruleset(name);
        let compiled = compiled(name, &ruleset);
        assert!(
            compiled.program().unwrap().len() <= best_peer_insns,
            "{name}"
        );
    }
}

/// Docker's policy for the three architectures of an x86-64 machine, by name, as runtimes install it.
fn docker_for_three_archs() -> Ruleset {
    let native = pol_json::ruleset("peers/docker.pol.json");
    let sections = [Arch::X86_64, Arch::X86, Arch::X32].map(|arch| {
        let [section] = native.sections() else {
            unreachable!("the policy is for one architecture")
        };
        let translate = |rule: &Rule| {
            let (nr, _) = *rule.syscalls.intervals().first()?;
            let name = syscall::name(Arch::X86_64, Nr(nr))?;
            Some(Rule {
                syscalls: IntervalSet::single(syscall::number(arch, name)?.0),
                ..rule.clone()
            })
        };
        Section {
            arch,
            rules: section.rules.iter().filter_map(translate).collect(),
            default: section.default,
        }
    });
    let ruleset = Ruleset::new(sections.to_vec(), native.bad_arch);
    ruleset.expect("three architectures")
}

#[test]
fn docker_for_three_architectures_is_a_third_of_what_a_tree_over_single_numbers_takes() {
    let ruleset = docker_for_three_archs();
    let compiled = compiled("docker, three architectures", &ruleset);
    let theirs = corpus::insns("docker/docker-libseccomp-opt2.bpf");
    assert!(compiled.program().unwrap().len() * 3 < theirs.len());
}

/// As the test above, for a policy of that shape.
#[test]
fn a_policy_for_three_architectures_is_a_third_of_a_comparison_and_a_return_for_each_number() {
    let compiled = compiled("300 calls by name", &shape::names());
    assert!(compiled.program().unwrap().len() * 3 < 3 * 2 * 300);
}

#[test]
fn trees_of_requests_take_at_most_three_instructions_for_each() {
    let compiled = compiled("200 requests", &shape::requests());
    assert!(compiled.program().unwrap().len() < 3 * 200 + 100);
}

#[test]
fn gvisor_policies_answer_every_vector_as_recorded() {
    let names = corpus::files("gvisor", ".vectors");
    for name in names {
        let policy = name.replace(".vectors", ".json");
        let (ruleset, vectors) = (gvisor::ruleset(&policy), gvisor::vectors(&name));
        let compiled = compiled(&policy, &ruleset);
        let theirs = corpus::insns(&name.replace(".vectors", ".opt.bpf")).len();
        println!("{policy}: {} vectors, theirs {theirs}", vectors.len());
        for vector in vectors {
            let data = vector.data;
            assert_eq!(ruleset.decide(&data).action.ret(), vector.ret, "{data:x?}");
            let run = interp::run(compiled.program().unwrap(), &data);
            assert_eq!(run.ret, vector.ret, "{data:x?}");
        }
    }
}
