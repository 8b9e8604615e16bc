//! Random rules are accepted and rejected as by the system's libseccomp, one by one, with the same error.
//!
//! Rules are added after a rejection too, which would show side effects of a rejected rule. `oci_libseccomp` tests
//! the meaning of accepted rules, by the same code.

use tamis_abi::{Action, ActionKind, Arch, ArgIndex};
use tamis_scmp::{self as scmp, AddError, Comparison, Db, Exactness, Refusal};
use tamis_testkit::libseccomp::{Condition, Errno, Library, Op};
use tamis_testkit::rng::Rng;
use tamis_testkit::skip::{self, Need};

/// The number of filters.
const FILTERS: u64 = 10_000;
/// The number of rules per filter.
const RULES: u32 = 12;

/// Calls that all architectures have, that x86 multiplexes, that x86-64 lacks.
const NAMES: [&str; 6] = ["read", "clone", "socket", "semop", "socketcall", "chown32"];
const VALUES: [u64; 6] = [0, 5, 0x8000_0000, 0x1_0000_0000, 0x1_0000_0005, u64::MAX];
const DEFAULT: Action = Action::KILL_THREAD;

fn random_action(rng: &mut Rng) -> Action {
    match rng.range(0..=8) {
        0 => DEFAULT,
        1..=4 => Action::errno(1),
        5..=7 => Action::errno(2),
        _ => Action::new(ActionKind::Log, 0),
    }
}

fn random_condition(rng: &mut Rng, values: &[u64]) -> Condition {
    Condition {
        arg: rng.range(0..=2) as u32,
        op: *rng.choose(&Op::ALL),
        value: *rng.choose(values),
        value_two: *rng.choose(values),
    }
}

/// The same condition for the crate.
fn converted(condition: &Condition) -> scmp::Condition {
    let (comparison, value) = match condition.op {
        Op::Ne => (Comparison::Ne, condition.value),
        Op::Lt => (Comparison::Lt, condition.value),
        Op::Le => (Comparison::Le, condition.value),
        Op::Eq => (Comparison::Eq, condition.value),
        Op::Ge => (Comparison::Ge, condition.value),
        Op::Gt => (Comparison::Gt, condition.value),
        Op::MaskedEq => {
            let mask = condition.value;
            (Comparison::Masked { mask }, condition.value_two)
        }
    };
    scmp::Condition {
        arg: ArgIndex::ALL[condition.arg as usize],
        comparison,
        value,
    }
}

/// The error numbers of x86-64.
fn number(errno: scmp::Errno) -> Errno {
    Errno(match errno {
        scmp::Errno::Access => 13,
        scmp::Errno::Domain => 33,
        scmp::Errno::Exists => 17,
        scmp::Errno::Fault => 14,
        scmp::Errno::Invalid => 22,
        scmp::Errno::NoMemory => 12,
        scmp::Errno::NotSupported => 95,
    })
}

/// The numbers of accepted and rejected rules.
#[derive(Debug, Default)]
struct Tally {
    accepted: u32,
    conflicts: u32,
    other_errors: u32,
}

fn compare(library: &Library, rng: &mut Rng, tally: &mut Tally) {
    let others: Vec<Arch> = [Arch::X86, Arch::X32]
        .into_iter()
        .filter(|_| rng.chance(1, 2))
        .collect();
    let mut db = Db::new(DEFAULT, Arch::X86_64, &others);
    let mut filter = library.filter(DEFAULT).expect("a plain action");
    for arch in &others {
        filter.add_arch(*arch).expect("a known architecture");
    }
    // Few calls and constants, so that rules interact.
    let names = [*rng.choose(&NAMES), *rng.choose(&NAMES)];
    let values = [*rng.choose(&VALUES), *rng.choose(&VALUES)];
    let mut history = Vec::new();
    for tag in 0..RULES {
        let action = random_action(rng);
        let name = *rng.choose(&names);
        let nr = library.resolve(name).expect("a known call");
        // A rule without conditions ends all conflicts about its call.
        let least = if rng.chance(1, 16) { 0 } else { 1 };
        let count = rng.range(least..=2);
        let conditions: Vec<Condition> =
            (0..count).map(|_| random_condition(rng, &values)).collect();
        let ours: Vec<scmp::Condition> = conditions.iter().map(converted).collect();
        history.push((action, name, conditions.clone()));
        let ours = db.add_rule(Exactness::Adjusted, action, nr, &ours, tag);
        if let Err(AddError::Refused {
            refusal: Refusal::Endless,
            ..
        }) = ours
        {
            // The library would not terminate.
            return;
        }
        let theirs = filter.add_rule(action, nr, &conditions);
        let expected = ours.map_err(|error| number(error.errno()));
        assert_eq!(expected, theirs, "{others:?} {history:#x?}");
        match theirs {
            Ok(()) => tally.accepted += 1,
            Err(Errno::EEXIST) => tally.conflicts += 1,
            Err(_) => tally.other_errors += 1,
        }
    }
}

#[test]
fn rules_are_refused_as_by_libseccomp() {
    let library = Library::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    skip::unless_x86_64();
    let mut tally = Tally::default();
    for seed in 0..FILTERS {
        compare(&library, &mut Rng::new(seed), &mut tally);
    }
    assert!(tally.accepted > 1000, "{tally:?}");
    assert!(tally.conflicts > 1000, "{tally:?}");
    assert!(tally.other_errors > 1000, "{tally:?}");
}
