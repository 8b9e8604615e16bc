//! Minijail's policies against their grammar: random ones with known meaning, and rejected lines.

use tamis_abi::{Action, Arch, SeccompData};
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::minijail::{self, Dialect, MinijailOptions, Settings};
use tamis_rules::Ruleset;
use tamis_testkit::generate::minijail::{Meaning, Policy, policy};
use tamis_testkit::oracle::{Class, Classes};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// Random policies; only `.ci/run full` tries all.
const RANDOM: u64 = 2000;

fn read(policy: &Policy) -> Option<Ruleset> {
    let mut sources = Sources::new();
    let root = sources.add("x.policy", policy.text.as_str());
    let dialect = match policy.is_for_library {
        true => Dialect::C,
        false => Dialect::Python,
    };
    let options = MinijailOptions {
        settings: Settings {
            dialect: Some(dialect),
            denylist: policy.is_denylist,
            ..Settings::default()
        },
        ..MinijailOptions::new(Arch::X86_64)
    };
    let read = minijail::parse(&mut sources, root, &mut NoIncludes, &options);
    read.parsed.ruleset
}

/// The class of a policy: calls near its values are answered as it means.
fn class(rng: &mut Rng, policy: &Policy) -> Class {
    let (ruleset, meaning) = match (read(policy), &policy.meaning) {
        (None, None) => return Class::BothRefuse,
        (Some(_), None) => return Class::Wrong("it is refused by its grammar".to_owned()),
        (None, Some(_)) => return Class::Wrong("its grammar accepts it".to_owned()),
        (Some(ruleset), Some(meaning)) => (ruleset, meaning),
    };
    let found = difference(rng, &ruleset, meaning);
    found.map_or(Class::Equal, Class::Wrong)
}

/// A call that is answered otherwise.
fn difference(rng: &mut Rng, ruleset: &Ruleset, meaning: &Meaning) -> Option<String> {
    meaning.calls(rng).into_iter().find_map(|(nr, args)| {
        let data = SeccompData {
            nr,
            arch: Arch::X86_64.audit(),
            args,
            ..SeccompData::default()
        };
        let (found, expected) = (ruleset.decide(&data).action, meaning.action(nr, &args));
        (found != expected).then(|| format!("{found:?}, not {expected:?} for {data:x?}"))
    })
}

#[test]
fn random_policies_mean_what_their_grammar_says() {
    let mut classes = Classes::default();
    for seed in seeds::selected(0..RANDOM) {
        let mut rng = Rng::new(seed);
        let policy = policy(&mut rng);
        classes.add(class(&mut rng, &policy), &policy.text);
    }
    classes.check();
    classes.check_row("minijail", "its grammar", 0);
}

#[test]
fn calls_of_other_architectures_are_denied() {
    let mut rng = Rng::new(0);
    for _ in 0..seeds::share(100_u64) {
        let policy = policy(&mut rng);
        let Some(ruleset) = read(&policy) else {
            continue;
        };
        let data = SeccompData {
            arch: Arch::X86.audit(),
            ..SeccompData::default()
        };
        let expected = match policy.is_denylist {
            true => Action::errno(1),
            false => Action::KILL_THREAD,
        };
        assert_eq!(ruleset.decide(&data).action, expected, "{}", policy.text);
    }
}
