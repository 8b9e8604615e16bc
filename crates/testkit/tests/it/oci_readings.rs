//! The two readings of an OCI profile, on random profiles: libseccomp's result for the entries, and their text.
//!
//! Both are compared with rulesets that are generated here from the entries: one rule for each, sorted by strictness.
//! The prover decides. The calls have separate numbers on every architecture, so that no multiplexer is involved.

use std::cmp::Reverse;

use tamis_abi::{Action, Arch, ArgIndex, Nr, syscall};
use tamis_diag::{Code, Sources};
use tamis_policy::code;
use tamis_policy::oci::{self, OciOptions, Reading};
use tamis_prover::{Answer, ComparisonResult, Limits, Scope, Space, Subject, decide};
use tamis_rules::{CmpOp, Operand, Predicate, Rule, Ruleset, Section, Test};
use tamis_testkit::generate::oci::{self as generate, Entry, Profile};
use tamis_testkit::libseccomp::{Condition, Op};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// The number of profiles of each test.
const PROFILES: u64 = 5000;

const NAMES: [&str; 2] = ["read", "madvise"];

fn random_profile(seed: u64) -> Profile {
    let mut rng = Rng::new(seed);
    let mut profile = match rng.chance(1, 2) {
        true => generate::of_inequalities(&mut rng, NAMES[1]),
        false => generate::of_names(&mut rng, &NAMES),
    };
    if rng.chance(1, 4) {
        profile.arches.push(Arch::X86);
    }
    profile
}

/// tamis's reading, with the codes of the diagnostics; `None` if libseccomp rejects the profile.
fn read(profile: &Profile, reading: Reading) -> Option<(Ruleset, Vec<Code>)> {
    let mut sources = Sources::new();
    let source = sources.add("random.json", profile.to_json());
    let options = OciOptions {
        reading,
        ..OciOptions::docker(Arch::X86_64)
    };
    let parsed = oci::parse(&sources, source, &options).parsed;
    let codes = parsed.diagnostics.iter().map(|diagnostic| diagnostic.code);
    Some((parsed.ruleset?, codes.collect()))
}

/// How the conditions of an entry that repeats an argument are meant.
#[derive(Clone, Copy, PartialEq)]
enum Repeated {
    Alternatives,
    Together,
}

/// The entries as rules, the first that matches deciding, in the order of a key of their actions.
fn of_entries<K: Ord>(
    profile: &Profile,
    entries: &[&Entry],
    repeated: Repeated,
    order: impl Fn(Action) -> K,
) -> Ruleset {
    let mut entries = entries.to_vec();
    entries.sort_by_key(|entry| order(entry.answer.action));
    let arches = [Arch::X86_64]
        .into_iter()
        .chain(profile.arches.iter().copied());
    let sections = arches.map(|arch| {
        let rule = |entry: &&Entry| {
            let number = |name: &&str| syscall::number(arch, name).map(|Nr(nr)| nr);
            let tests = entry.args.iter().map(|condition| test(arch, condition));
            let is_any = repeated == Repeated::Alternatives && entry.repeats_an_argument();
            Rule {
                syscalls: entry.names.iter().filter_map(number).collect(),
                when: match is_any {
                    true => Predicate::Any(tests.collect()),
                    false => Predicate::All(tests.collect()),
                },
                action: entry.answer.action,
                origin: None,
            }
        };
        Section {
            arch,
            rules: entries.iter().map(rule).collect(),
            default: profile.default.action,
        }
    });
    Ruleset::new(sections.collect(), Action::KILL_THREAD).unwrap()
}

fn test(arch: Arch, condition: &Condition) -> Predicate {
    let arg = ArgIndex::ALL[condition.arg as usize];
    let (operand, bits) = match arch.is_64_bit() {
        true => (Operand::arg(arg), u64::MAX),
        false => (Operand::arg_low(arg), 0xffff_ffff),
    };
    let value = condition.value & bits;
    let compare = |op| Predicate::Test(Test::Compare { operand, op, value });
    match condition.op {
        Op::Ne => compare(CmpOp::Ne),
        Op::Lt => compare(CmpOp::Lt),
        Op::Le => compare(CmpOp::Le),
        Op::Eq => compare(CmpOp::Eq),
        Op::Ge => compare(CmpOp::Ge),
        Op::Gt => compare(CmpOp::Gt),
        Op::MaskedEq => Predicate::Test(Test::Masked {
            operand,
            mask: value,
            value: condition.value_two & value,
        }),
    }
}

/// The strictest action first.
fn strictness(action: Action) -> i32 {
    Action::precedence(action.kind.ret())
}

/// A warning is reported exactly if libseccomp grants more than the entries: more than the loosest of the matching
/// entries, or than the default.
#[test]
fn a_warning_says_that_libseccomp_grants_more() {
    let (mut looser, mut others) = (0, 0);
    for seed in seeds::selected(0..PROFILES) {
        let profile = random_profile(seed);
        let Some((ruleset, codes)) = read(&profile, Reading::Libseccomp) else {
            continue;
        };
        let is_given = |entry: &&Entry| entry.answer.action != profile.default.action;
        let given: Vec<&Entry> = profile.entries.iter().filter(is_given).collect();
        let said = of_entries(&profile, &given, Repeated::Alternatives, |action| {
            Reverse(strictness(action))
        });
        let mut space = Space::new(Limits::default());
        let [left, right] = [&ruleset, &said].map(|ruleset| space.ruleset(ruleset).unwrap());
        let scope = Scope {
            actions_only: true,
            ..Scope::default()
        };
        let comparison = space.comparison(left, right, &scope).unwrap();
        let is_looser = matches!(
            comparison.result().expect("every pair has a call"),
            ComparisonResult::Looser | ComparisonResult::Incomparable
        );
        let is_told = codes.contains(&code::OCI_LOOSER);
        match (is_looser, is_told) {
            (true, true) => looser += 1,
            (false, false) => others += 1,
            _ => panic!(
                "{seed}: looser {is_looser}, told {is_told}\n{}",
                profile.to_json()
            ),
        }
    }
    println!("{looser} profiles with a warning, {others} without");
    assert!(looser > seeds::least(100) && others > seeds::least(1000));
}

/// Read as text, a profile means its entries: all their conditions, and the strictest of those that match.
#[test]
fn the_text_is_what_the_entries_say() {
    for seed in seeds::selected(0..PROFILES) {
        let profile = random_profile(seed);
        let (ruleset, codes) = read(&profile, Reading::Text).expect("nothing contradicts itself");
        assert_eq!(codes, [], "{seed}");
        let entries: Vec<&Entry> = profile.entries.iter().collect();
        let said = of_entries(&profile, &entries, Repeated::Together, strictness);
        let sides = [&ruleset, &said].map(Subject::Ruleset);
        let answer = decide(&sides[0], &sides[1], &Limits::default());
        assert!(
            matches!(answer, Answer::Equal(_)),
            "{seed}: {answer:?}\n{}",
            profile.to_json()
        );
    }
}
