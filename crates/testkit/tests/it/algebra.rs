//! Combinations of policies: each is the operation per call, by evaluation and by proof, and the laws of
//! `tamis-algebra` hold.

use tamis_abi::{Action, ActionKind, Arch, Endian, SeccompData};
use tamis_algebra::{Impossible, Operation, Unproved, combine, prove, prove_by_gates};
use tamis_diag::Sources;
use tamis_policy::oci::{self, OciOptions};
use tamis_prover::{ComparisonResult, Function, Limits, Scope, Space, Stop};
use tamis_rules::{Rule, Ruleset, Section};
use tamis_testkit::generate::ruleset::{self as generate, Size};
use tamis_testkit::rng::Rng;
use tamis_testkit::{corpus, seeds};

/// The calls that are evaluated for each combination.
const CALLS: usize = 200;

/// Random rulesets on the same architectures, or nearly.
fn rulesets<const N: usize>(rng: &mut Rng) -> [Ruleset; N] {
    let endian = *rng.choose(&[Endian::Little, Endian::Little, Endian::Big]);
    [(); N].map(|()| generate::ruleset(rng, Size::SMALL, endian))
}

fn combined(operation: Operation, first: &Ruleset, other: &Ruleset) -> Ruleset {
    combine(operation, first, &[other]).expect("it has an action for each call")
}

/// The action of a combination for one call, from the actions of its parts.
fn expected(operation: Operation, first: &Ruleset, other: &Ruleset, call: &SeccompData) -> Action {
    let [a, b] = [first, other].map(|ruleset| ruleset.decide(call).action);
    let default = || {
        let arch = tamis_abi::Arch::of_call(call.arch, call.nr);
        let section = arch.and_then(|arch| first.section(arch));
        section.map_or(first.bad_arch, |section| section.default)
    };
    match operation {
        Operation::Intersect if a.kind.min(b.kind) == ActionKind::Allow => Action::ALLOW,
        Operation::Intersect if a.kind < b.kind => a,
        Operation::Intersect => b,
        Operation::Union if a.kind > b.kind => a,
        Operation::Union => b,
        Operation::Minus if a.kind.executes() && b.kind.executes() => default(),
        Operation::Minus => a,
        Operation::Overlay => unreachable!("it depends on rules"),
    }
}

/// The ruleset with defaults that deny, of which minus can take calls.
fn denying(ruleset: &Ruleset) -> Ruleset {
    let deny = |action: Action| match action.kind.executes() {
        true => Action::errno(1),
        false => action,
    };
    let sections = ruleset.sections().iter().map(|section| Section {
        default: deny(section.default),
        ..section.clone()
    });
    Ruleset::new(sections.collect(), deny(ruleset.bad_arch)).expect("no architecture is new")
}

fn function(space: &mut Space, ruleset: &Ruleset) -> Function {
    space.ruleset(ruleset).expect("within the limits")
}

/// Gates prove a combination, too, and refute one with another action.
fn check_gates(
    seed: u64,
    operation: Operation,
    first: &Ruleset,
    other: &Ruleset,
    result: &Ruleset,
) {
    let by_gates = |result| {
        let limits = Limits::default();
        prove_by_gates(
            operation,
            first,
            &[other],
            result,
            &limits,
            &Stop::default(),
        )
    };
    let proof = by_gates(result);
    assert!(proof.is_ok(), "{seed} {operation:?} {proof:?}");
    let wrong = Ruleset::new(
        result.sections().to_vec(),
        Action::new(ActionKind::Trace, 0x1234),
    )
    .expect("as before");
    let refuted = matches!(by_gates(&wrong), Err(Unproved::Refuted(_)));
    assert!(refuted, "{seed} {operation:?}");
}

#[test]
fn combinations_are_the_operation_for_each_call_and_proved() {
    for seed in seeds::selected(0..400) {
        let mut rng = Rng::new(seed);
        let [first, other] = rulesets(&mut rng);
        let first = denying(&first);
        for operation in Operation::ALL {
            let result = combined(operation, &first, &other);
            let mut space = Space::new(Limits::default());
            let proof = prove(&mut space, operation, &first, &[&other], &result);
            assert!(proof.is_ok(), "{seed} {operation:?} {proof:?}");
            check_gates(seed, operation, &first, &other, &result);
            if operation == Operation::Overlay {
                continue;
            }
            for _ in 0..CALLS {
                let near = *rng.choose(&[&first, &other]);
                let call = generate::call(&mut rng, near);
                let is = result.decide(&call).action;
                let wanted = expected(operation, &first, &other, &call);
                assert_eq!(is, wanted, "{seed} {operation:?} {call:?}");
            }
        }
    }
}

#[test]
fn a_wrong_combination_is_refuted() {
    for seed in seeds::selected(0..100) {
        let mut rng = Rng::new(seed);
        let [first, other] = rulesets(&mut rng);
        let mut space = Space::new(Limits::default());
        let [intersection, union] = [Operation::Intersect, Operation::Union]
            .map(|operation| combined(operation, &first, &other));
        let is_equal = function(&mut space, &intersection) == function(&mut space, &union);
        let proof = prove(&mut space, Operation::Intersect, &first, &[&other], &union);
        assert_eq!(proof.is_ok(), is_equal, "{seed}");
    }
}

#[test]
fn all_but_minus_are_associative() {
    for seed in seeds::selected(0..200) {
        let mut rng = Rng::new(seed);
        let [a, b, c] = rulesets(&mut rng);
        for operation in [Operation::Intersect, Operation::Union, Operation::Overlay] {
            let left = combined(operation, &combined(operation, &a, &b), &c);
            let right = combined(operation, &a, &combined(operation, &b, &c));
            let all = combine(operation, &a, &[&b, &c]).expect("it is possible");
            let mut space = Space::new(Limits::default());
            let [left, right, all] = [left, right, all].map(|one| function(&mut space, &one));
            assert_eq!((left, right), (all, all), "{seed} {operation:?}");
        }
    }
}

#[test]
fn intersections_and_unions_commute_in_actions() {
    for seed in seeds::selected(0..200) {
        let mut rng = Rng::new(seed);
        let [a, b] = rulesets(&mut rng);
        for operation in [Operation::Intersect, Operation::Union] {
            let mut space = Space::new(Limits::default());
            let [one, other] = [(&a, &b), (&b, &a)]
                .map(|(first, second)| function(&mut space, &combined(operation, first, second)));
            assert!(
                has_same_actions(&mut space, one, other),
                "{seed} {operation:?}"
            );
        }
    }
}

/// Whether two functions have the same actions; their data may differ.
fn has_same_actions(space: &mut Space, left: Function, right: Function) -> bool {
    let compared = space.comparison(left, right, &Scope::default());
    let result = compared.expect("within the limits").result();
    matches!(
        result,
        Some(ComparisonResult::Equal | ComparisonResult::SameActions)
    )
}

/// A policy with itself is itself, and parts that were split by rules make the whole.
#[test]
fn parts_make_the_whole() {
    for seed in seeds::selected(0..200) {
        let mut rng = Rng::new(seed);
        let [whole] = rulesets(&mut rng);
        let mut space = Space::new(Limits::default());
        let expected = function(&mut space, &whole);
        for operation in [Operation::Intersect, Operation::Union] {
            let twice = combined(operation, &whole, &whole);
            let twice = function(&mut space, &twice);
            assert!(has_same_actions(&mut space, twice, expected), "{seed}");
        }
        // What stays without some calls, joined with those calls, is the whole, if the default denies the most.
        let strict = with_default(&whole, Action::KILL_PROCESS);
        let [upper, lower] = [true, false].map(|is_upper| some_rules(&strict, is_upper));
        let joined = combined(Operation::Union, &lower, &upper);
        let overlaid = combined(Operation::Overlay, &lower, &upper);
        let strict = function(&mut space, &strict);
        assert_eq!(function(&mut space, &overlaid), strict, "{seed}");
        let joined = function(&mut space, &joined);
        let pairs = space.strictness(joined, strict, &Scope::default());
        let pairs = pairs.expect("within the limits");
        assert!(
            pairs.iter().all(|pair| !pair.strictness().is_lt()),
            "{seed}"
        );
    }
}

/// Each entry of Docker's profile as a profile of its own: laid over each other they are the whole.
#[test]
fn entries_of_dockers_profile_make_the_whole() {
    let text = corpus::text("docker/docker-default-x86_64.json");
    let profile: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let entries = profile["syscalls"].as_array().expect("it has entries");
    let part = |entry: &serde_json::Value| {
        let mut part = profile.clone();
        part["syscalls"] = serde_json::json!([entry]);
        docker(&part.to_string())
    };
    let parts: Vec<Ruleset> = entries.iter().map(part).collect();
    let (oldest, newer) = parts.split_first().expect("it has entries");
    let newer: Vec<&Ruleset> = newer.iter().collect();
    let result = combine(Operation::Overlay, oldest, &newer).expect("it is possible");
    let mut space = Space::new(Limits::default());
    let proved = prove(&mut space, Operation::Overlay, oldest, &newer, &result);
    assert_eq!(proved, Ok(function(&mut space, &docker(&text))));
    // Without an entry that is the only one for a call it is another policy.
    let without = combine(Operation::Overlay, newer[0], &newer[1..]);
    let fewer = without.expect("it is possible");
    assert_ne!(proved, Ok(function(&mut space, &fewer)));
}

/// The rules of a profile, selected as Docker does.
fn docker(text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let source = sources.add("profile.json", text);
    let profile = oci::parse(&sources, source, &OciOptions::docker(Arch::X86_64));
    profile.parsed.ruleset.expect("it has no errors")
}

/// The ruleset with this default, and rules for numbers that have names.
fn with_default(ruleset: &Ruleset, default: Action) -> Ruleset {
    let rules = |section: &Section| {
        let named = |rule: &Rule| {
            let named = tamis_abi::syscall::all(section.arch).map(|(nr, _)| nr.0);
            Rule {
                syscalls: rule.syscalls.intersection(&named.collect()),
                ..rule.clone()
            }
        };
        section.rules.iter().map(named).collect()
    };
    let sections = ruleset.sections().iter().map(|section| Section {
        arch: section.arch,
        rules: rules(section),
        default,
    });
    Ruleset::new(sections.collect(), default).expect("no architecture is new")
}

/// The first half of the rules of each section, or the second one.
fn some_rules(ruleset: &Ruleset, is_upper: bool) -> Ruleset {
    let sections = ruleset.sections().iter().map(|section| {
        let (upper, lower) = section.rules.split_at(section.rules.len() / 2);
        Section {
            rules: if is_upper { upper } else { lower }.to_vec(),
            ..section.clone()
        }
    });
    Ruleset::new(sections.collect(), ruleset.bad_arch).expect("no architecture is new")
}

#[test]
fn nothing_is_removed_from_a_policy_that_allows_by_default() {
    let open = Ruleset::new(Vec::new(), Action::ALLOW).expect("it has no architecture");
    let result = combine(Operation::Minus, &open, &[&open]);
    assert!(matches!(
        result,
        Err(Impossible::ExecutingDefault { arch: None, .. })
    ));
}
