//! Fleets of profiles: merging is associative, commutative and idempotent by run, rows are the same fleet, and counting
//! a run twice is rejected.

use tamis_abi::{Arch, Nr};
use tamis_diag::Sources;
use tamis_profile::rows::Collected;
use tamis_profile::{Fleet, Origin, Overlap, Profile, RunId, Runs};
use tamis_testkit::generate::profile::run;
use tamis_testkit::rng::Rng;
use tamis_testkit::work;

const ROUNDS: u64 = 300;
const MAX_CALLS: usize = 12;
const MAX_RUNS: usize = 6;

/// A fleet of single runs and of sums of several, some of them with a run that has no id.
fn fleet(rng: &mut Rng) -> Fleet {
    let mut fleet = Fleet::default();
    for _ in 0..rng.index(MAX_RUNS + 1) {
        let mut part = Fleet::default();
        for _ in 0..rng.range(1..=2) {
            part.add(run(rng, MAX_CALLS));
        }
        if rng.chance(1, 3) {
            let mut unnamed = run(rng, MAX_CALLS);
            unnamed.set_runs(Runs::default());
            part.add(unnamed);
        }
        fleet.add(part.sum().expect("single runs"));
    }
    fleet
}

fn merged(a: &Fleet, b: &Fleet) -> Fleet {
    let mut sum = a.clone();
    sum.merge(b.clone());
    sum
}

fn read(text: &str) -> Option<Profile> {
    let mut sources = Sources::new();
    let source = sources.add("profile", text);
    tamis_profile::read(&sources, source, Arch::X86_64).profile
}

#[test]
fn merging_is_associative_commutative_and_idempotent() {
    for seed in 0..ROUNDS {
        let mut rng = Rng::new(seed);
        let [a, b, c] = [(); 3].map(|()| fleet(&mut rng));
        let ab = merged(&a, &b);
        assert_eq!(merged(&ab, &c), merged(&a, &merged(&b, &c)), "seed {seed}");
        assert_eq!(ab, merged(&b, &a), "seed {seed}");
        assert_eq!(merged(&ab, &a), ab, "seed {seed}");
        assert_eq!(merged(&a, &Fleet::default()), a, "seed {seed}");
    }
}

#[test]
fn files_of_single_runs_may_be_merged_in_any_grouping() {
    for seed in 0..ROUNDS {
        let mut rng = Rng::new(seed);
        let runs: Vec<Profile> = (0..rng.range(1..=9))
            .map(|_| run(&mut rng, MAX_CALLS))
            .collect();
        let mut all = Fleet::default();
        runs.iter().cloned().for_each(|run| all.add(run));
        let whole = all.sum().expect("single runs");
        // Some are merged to a file, which is merged with all of them again.
        let mut some = Fleet::default();
        let chosen = runs.iter().filter(|_| rng.chance(1, 2));
        chosen.cloned().for_each(|run| some.add(run));
        let file = some.sum().expect("single runs").to_json();
        all.add(read(&file).unwrap_or_else(|| panic!("{file}")));
        assert_eq!(all.sum(), Ok(whole.clone()), "seed {seed}");
        let again = read(&whole.to_json());
        assert_eq!(again.as_ref(), Some(&whole), "seed {seed}");
        let ids: std::collections::BTreeSet<_> = runs
            .iter()
            .flat_map(|run| run.runs().named.keys())
            .collect();
        assert_eq!(whole.run_count(), ids.len() as u64, "seed {seed}");
    }
}

#[test]
fn the_rows_of_a_fleet_are_the_fleet() {
    for seed in 0..ROUNDS {
        let mut rng = Rng::new(seed);
        let fleet = fleet(&mut rng);
        let mut collected = Collected::default();
        let rows = fleet.rows(|row| {
            let added = collected.add(&row);
            added.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
            Ok::<(), Overlap>(())
        });
        if rows.is_err() {
            continue;
        }
        let again = collected.finish().expect("they fit together");
        assert_eq!(again.sum(), fleet.sum(), "seed {seed}");
    }
}

fn one(id: &str, count: u64) -> Profile {
    let mut profile = Profile::default();
    profile.call_mut(Arch::X86_64, Nr(0)).count = count;
    let id = RunId::new(id).expect("an id");
    profile.set_runs(Runs::one(id, Origin::default()));
    profile
}

fn sum(profiles: &[&Profile]) -> Profile {
    let mut fleet = Fleet::default();
    profiles
        .iter()
        .for_each(|profile| fleet.add((*profile).clone()));
    fleet.sum().expect("no overlap")
}

#[test]
fn sums_that_share_some_runs_are_refused_unless_others_cover_them() {
    let [a, b, c] = [one("a", 1), one("b", 10), one("c", 100)];
    let (ab, bc) = (sum(&[&a, &b]), sum(&[&b, &c]));
    let mut fleet = Fleet::default();
    fleet.add(ab.clone());
    fleet.add(bc);
    let overlap = fleet.sum().expect_err("`b` would count twice");
    assert_eq!((overlap.shared.as_str(), overlap.count), ("b", 1));
    fleet.add(sum(&[&a, &b, &c]));
    let whole = fleet.sum().expect("this has all");
    assert_eq!(
        whole.call(Arch::X86_64, Nr(0)).map(|call| call.count),
        Some(111)
    );
    // A run that is also in a sum.
    let with_single = sum(&[&ab, &b, &c]);
    assert_eq!(with_single, whole);
    // Two sums of the same runs that differ.
    let mut fleet = Fleet::default();
    fleet.add(ab);
    fleet.add(sum(&[&one("a", 5), &b]));
    assert!(fleet.sum().is_err());
}

#[test]
fn no_run_is_lost_and_none_counted_twice() {
    const IDS: [&str; 4] = ["a", "b", "c", "d"];
    let (mut added_up, mut refused) = (0, 0);
    for seed in 0..ROUNDS {
        let mut rng = Rng::new(seed);
        let mut fleet = Fleet::default();
        // The n-th run makes the n-th call once.
        let mut made = std::collections::BTreeSet::new();
        for sum in 0..rng.range(1..=4) as u32 {
            let mut part = Fleet::default();
            for _ in 0..rng.range(1..=3) {
                let run = rng.index(IDS.len());
                let mut profile = Profile::default();
                profile.call_mut(Arch::X86_64, Nr(run as u32)).count = 1;
                let id = RunId::new(IDS[run]).expect("an id");
                profile.set_runs(Runs::one(id, Origin::default()));
                part.add(profile);
                made.insert(run as u32);
            }
            if rng.chance(1, 2) {
                let mut unnamed = Profile::default();
                let nr = IDS.len() as u32 + sum;
                unnamed.call_mut(Arch::X86_64, Nr(nr)).count = 1;
                part.add(unnamed);
                made.insert(nr);
            }
            let part = part.sum().expect("single runs");
            for _ in 0..rng.range(1..=2) {
                fleet.add(part.clone());
            }
        }
        let Ok(whole) = fleet.sum() else {
            refused += 1;
            continue;
        };
        added_up += 1;
        let calls: Vec<(u32, u64)> = whole
            .calls()
            .map(|(_, nr, call)| (nr.0, call.count))
            .collect();
        let once: Vec<(u32, u64)> = made.iter().map(|nr| (*nr, 1)).collect();
        assert_eq!(calls, once, "seed {seed}");
        assert_eq!(whole.run_count(), made.len() as u64, "seed {seed}");
    }
    assert!(added_up > 20 && refused > 20, "{added_up}, {refused}");
}

#[test]
fn a_later_profile_of_the_same_run_has_the_greater_counts() {
    let sum = sum(&[&one("a", 7), &one("a", 3)]);
    assert_eq!(sum, one("a", 7));
}

#[test]
fn counts_that_are_too_large_are_cut_and_told() {
    let [a, b] = [one("a", u64::MAX - 1), one("b", 3)];
    assert_eq!(a.saturated().count(), 0);
    let sum = sum(&[&a, &b]);
    assert_eq!(sum.saturated().collect::<Vec<_>>(), [(Arch::X86_64, Nr(0))]);
}

/// Runs of the same calls, each with an id, added in an order of their own.
#[test]
fn the_work_of_a_merge_is_in_proportion_to_the_runs() {
    const FEW: u32 = 250;
    let work = |runs: u32| {
        let (sum, work) = work::measured(|| {
            let mut fleet = Fleet::default();
            for run in 0..runs {
                let mut profile = one(&format!("run-{}", run * 7919 % runs), 1);
                for nr in 1..40 {
                    profile.call_mut(Arch::X86_64, Nr(nr)).count = 1;
                }
                fleet.add(profile);
            }
            fleet.sum().expect("no overlap")
        });
        assert_eq!(sum.run_count(), u64::from(runs));
        work.total_bytes
    };
    let (few, many) = (work(FEW), work(16 * FEW));
    assert!(few > 0, "the allocator counts");
    assert!(many < 20 * few, "{few} {many}");
}
