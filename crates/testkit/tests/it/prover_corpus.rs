//! The prover on real programs and policies: pairs that must be equal, and every difference confirmed.
//!
//! Each comparison prints a line with its costs; `--nocapture` shows the table.

use std::time::Instant;

use tamis_abi::{Action, Arch};
use tamis_bpf::Program;
use tamis_prover::{ComparisonResult, Equality, Function, Limits, Scope, Space, Subject, prove};
use tamis_testkit::corpus::{self, gvisor, pol_json};

fn function(space: &mut Space, program: &Program) -> Function {
    let function = space.program(program);
    function.expect("within the limits")
}

/// Compares two functions made by the closures in a new space, and prints the costs.
fn compare(
    name: &str,
    left: impl Fn(&mut Space) -> Function,
    right: impl Fn(&mut Space) -> Function,
) -> Equality {
    let start = Instant::now();
    let mut space = Space::new(Limits::default());
    let (left, right) = (left(&mut space), right(&mut space));
    let equality = space.compare(left, right);
    let (time, nodes) = (start.elapsed(), space.len_nodes());
    println!("{name}: {equality:?}, {nodes} nodes, {time:?}");
    equality
}

fn compare_programs(left: &str, right: &str) -> Equality {
    let (left_program, right_program) = (corpus::program(left), corpus::program(right));
    let lengths = (left_program.len(), right_program.len());
    compare(
        &format!("{left} ~ {right} {lengths:?}"),
        |space| function(space, &left_program),
        |space| function(space, &right_program),
    )
}

#[test]
fn the_two_levels_of_libseccomp_mean_the_same() {
    let pairs = [
        (
            "docker/docker-libseccomp-opt1",
            "docker/docker-libseccomp-opt2",
        ),
        ("docker/libseccomp306-opt1", "docker/libseccomp306-opt2"),
        (
            "peers/docker-libseccomp-2.5.4",
            "peers/docker-libseccomp-2.5.4-opt2",
        ),
    ];
    for (left, right) in pairs {
        let equality = compare_programs(&format!("{left}.bpf"), &format!("{right}.bpf"));
        assert_eq!(equality, Equality::Equal);
    }
}

#[test]
fn gvisors_optimiser_kept_the_meaning() {
    let files = corpus::files("gvisor", ".unopt.bpf");
    for unoptimised in files {
        let optimised = unoptimised.replace(".unopt.", ".opt.");
        let equality = compare_programs(&unoptimised, &optimised);
        assert_eq!(equality, Equality::Equal);
    }
}

#[test]
fn gvisors_declared_rules_mean_their_programs() {
    let files = corpus::files("gvisor", ".json");
    for file in files.iter().filter(|file| !file.contains("profile")) {
        let program_file = file.replace(".json", ".opt.bpf");
        let ruleset = gvisor::ruleset(file);
        let program = corpus::program(&program_file);
        let equality = compare(
            file,
            |space| space.ruleset(&ruleset).expect("within the limits"),
            |space| function(space, &program),
        );
        assert_eq!(equality, Equality::Equal);
    }
}

/// Scopes from the widest to the narrowest, with their names.
fn scopes() -> [(&'static str, Scope); 4] {
    let x86_64 = |native_only, actions_only| Scope {
        arches: vec![Arch::X86_64],
        native_only,
        actions_only,
    };
    [
        ("everywhere", Scope::default()),
        ("for x86_64", x86_64(false, false)),
        ("for native x86_64 numbers", x86_64(true, false)),
        (
            "for native x86_64 numbers, actions only",
            x86_64(true, true),
        ),
    ]
}

/// Prints the scope in which two subjects are equivalent, or their difference in the narrowest one.
fn say(name: &str, policy: &Subject, program: &Subject) -> ComparisonResult {
    let mut result = ComparisonResult::Equal;
    for (scope_name, scope) in scopes() {
        let start = Instant::now();
        let report = prove(policy, program, &scope, &Limits::default());
        result = report.result.expect("within the limits");
        for pair in &report.pairs {
            let data = pair.example.expect("a report has confirmed pairs only");
            let answers = (policy.answer(&data), program.answer(&data));
            assert_eq!(answers, (pair.left, pair.right), "{name}: {data:x?}");
        }
        if result == ComparisonResult::Equal {
            println!("{name}: equal {scope_name}, {:?}", start.elapsed());
            return result;
        }
        let pair = report.pairs.first().expect("a difference has an example");
        let example = pair.example.expect("confirmed").describe();
        let [left, right] = [pair.left, pair.right].map(Action::from_ret);
        println!("{name}: {result:?} {scope_name}: {example}: policy {left}, program {right}");
    }
    result
}

/// Other compilers' programs for one policy. They may differ outside of the policy: foreign architectures, x32 numbers,
/// the errno. Those by libseccomp and kafel do not differ otherwise.
#[test]
fn peers_against_their_policies() {
    let programs = corpus::files("peers", ".bpf");
    for prefix in ["docker-", "gappy302-", "fc-"] {
        let policy = format!("peers/{prefix}").trim_end_matches('-').to_owned();
        let policy = policy.replace("fc", "fc-vmm") + ".pol.json";
        let ruleset = pol_json::ruleset(&policy);
        let family = format!("peers/{}", prefix.replace("fc-", "firecracker-"));
        let has_policy = |file: &&String| file.starts_with(&family) && !file.contains("1action");
        for file in programs.iter().filter(has_policy) {
            let program = &corpus::program(file);
            let result = say(
                file,
                &Subject::Ruleset(&ruleset),
                &Subject::Program(program),
            );
            if file.contains("libseccomp") || file.contains("kafel") {
                assert_eq!(result, ComparisonResult::Equal, "{file}");
            }
        }
    }
}

#[test]
fn a_stack_of_34_filters_is_one_function() {
    let files = corpus::files("systemd/stack", ".bpf");
    let programs: Vec<Program> = files.iter().map(|file| corpus::program(file)).collect();
    assert_eq!(programs.len(), 34);
    let stack = |space: &mut Space| {
        let functions: Vec<Function> = programs.iter().map(|one| function(space, one)).collect();
        space.stack(&functions).expect("within the limits")
    };
    assert_eq!(compare("systemd/stack", stack, stack), Equality::Equal);
}

#[test]
fn every_program_of_the_corpus_is_within_the_limits() {
    let files = corpus::programs();
    for file in files {
        assert_eq!(compare_programs(&file, &file), Equality::Equal);
    }
}
