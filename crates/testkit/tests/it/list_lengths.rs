//! The length of libseccomp's own program, which the library in its place reports, against the system's libseccomp: the
//! same for all random filters, small ones with rules that interact and large ones with jumps that are too long.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Arch, ArgIndex};
use tamis_scmp::{self as scmp, Comparison, Db, Exactness};
use tamis_testkit::libseccomp::{Condition, Library, Op};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

const FILTERS: u64 = 1000;
const OTHERS: [Arch; 4] = [Arch::X86, Arch::X32, Arch::Aarch64, Arch::Arm];
const ACTIONS: [Action; 7] = [
    Action::ALLOW,
    Action::KILL_THREAD,
    Action::KILL_PROCESS,
    Action::errno(1),
    Action::errno(38),
    Action::new(ActionKind::Trap, 0),
    Action::new(ActionKind::Trace, 9),
];
const VALUES: [u64; 8] = [
    0,
    1,
    5,
    0xff,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0005,
    u64::MAX,
];

/// A condition for the system's library, and for the crate.
fn condition(rng: &mut Rng) -> (Condition, scmp::Condition) {
    let [value, value_two] = [0; 2].map(|_| match rng.range(0..=3) {
        0 => rng.range(0..=40),
        _ => *rng.choose(&VALUES),
    });
    let arg = rng.range(0..=5) as u32;
    let (op, comparison) = match rng.range(0..=7) {
        0 => (Op::Ne, Comparison::Ne),
        1 => (Op::Lt, Comparison::Lt),
        2 => (Op::Le, Comparison::Le),
        3 => (Op::Ge, Comparison::Ge),
        4 => (Op::Gt, Comparison::Gt),
        5 => (Op::MaskedEq, Comparison::Masked { mask: value }),
        _ => (Op::Eq, Comparison::Eq),
    };
    let theirs = Condition {
        arg,
        op,
        value,
        value_two,
    };
    let ours = scmp::Condition {
        arg: ArgIndex::ALL[arg as usize],
        comparison,
        value: match op {
            Op::MaskedEq => value_two,
            _ => value,
        },
    };
    (theirs, ours)
}

/// The lengths of a random filter: the library's program and ours for it.
fn lengths(library: &Library, rng: &mut Rng) -> Option<(usize, usize, String)> {
    let default = *rng.choose(&ACTIONS);
    let bad_arch = *rng.choose(&ACTIONS);
    let mut db: Db<()> = Db::new(default, Arch::X86_64, &[]);
    let mut filter = library.filter(default)?;
    filter.set_bad_arch(bad_arch).ok()?;
    let mut told = format!("default {default}, bad {bad_arch}");
    for arch in OTHERS {
        if rng.chance(1, 3) {
            filter.add_arch(arch).expect("a new architecture");
            db.add_arch(arch).expect("a new architecture");
            told += &format!(", {arch}");
        }
    }
    let (most_calls, most_rules) = *rng.choose(&[(3, 12), (20, 60), (330, 400), (330, 900)]);
    let conditional = *rng.choose(&[2, 10, 60]);
    for _ in 0..rng.range(0..=most_rules) {
        let call = rng.range(0..=most_calls) as i32;
        if rng.chance(1, 20) {
            let priority = rng.range(0..=3) as u8;
            let set = filter.set_priority(call, priority).is_ok();
            assert_eq!(set, db.set_priority(call, priority).is_ok());
            continue;
        }
        let count = match rng.chance(1, conditional) {
            true => rng.range(1..=3),
            false => 0,
        };
        let action = *rng.choose(&ACTIONS);
        let (theirs, ours): (Vec<_>, Vec<_>) = (0..count).map(|_| condition(rng)).unzip();
        let added = db.add_rule(Exactness::Adjusted, action, call, &ours, ());
        if matches!(&added, Err(error) if error.errno() == scmp::Errno::Fault) {
            // The library doesn't return from some of these rules.
            return None;
        }
        let theirs = filter.add_rule(action, call, &theirs);
        if theirs.is_ok() != added.is_ok() {
            // The merge of 64-bit limits from above has changed.
            return None;
        }
        told += &format!("\n{call} {action} {ours:x?}");
    }
    let theirs = filter.export().ok()?;
    Some((theirs.len(), db.list_length_insns(bad_arch), told))
}

#[test]
fn lengths_are_those_of_the_systems_library() {
    let library = Library::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    skip::unless_x86_64();
    let mut compared = 0;
    let mut differing = BTreeMap::new();
    let mut longest = 0;
    for seed in seeds::selected(0..FILTERS) {
        let Some((theirs, ours, told)) = lengths(&library, &mut Rng::new(seed)) else {
            continue;
        };
        compared += 1;
        longest = longest.max(theirs);
        if theirs != ours {
            differing.insert(told.len(), (seed, theirs, ours, told));
        }
    }
    let count = differing.len();
    let simplest = differing.into_values().next();
    println!("{compared} filters, up to {longest} instructions, {count} differ");
    assert!(compared > seeds::least(FILTERS / 2) && longest > 1000);
    if let Some((seed, theirs, ours, told)) = simplest {
        panic!("{count} of {compared} differ; seed {seed}: {theirs}, not {ours}\n{told}");
    }
}
