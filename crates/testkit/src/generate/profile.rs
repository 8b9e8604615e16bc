//! Random profiles: few calls, so that two profiles share some, and counts of every size.

use tamis_abi::{Arch, Nr, syscall};
use tamis_profile::{Origin, Profile, RunId, Runs, Times};
use tamis_rules::Ruleset;

use super::ruleset::call;
use crate::rng::Rng;

const ARCHES: [Arch; 3] = [Arch::X86_64, Arch::X32, Arch::Aarch64];
/// The number of different call numbers.
const NUMBERS: usize = 8;

/// A profile of up to `calls` calls, some without a name. The counts of parts never exceed that of the call.
pub fn profile(rng: &mut Rng, calls: usize) -> Profile {
    let mut profile = Profile::default();
    for _ in 0..rng.index(calls + 1) {
        let arch = *rng.choose(&ARCHES);
        let known: Vec<Nr> = syscall::all(arch).map(|(nr, _)| nr).take(NUMBERS).collect();
        let unnamed = Nr(known[0].0 + 1000);
        let nr = if rng.chance(1, 8) {
            unnamed
        } else {
            *rng.choose(&known)
        };
        let call = profile.call_mut(arch, nr);
        let more = rng.interesting_u64() >> rng.range(0..=63);
        call.count = call.count.saturating_add(more);
        let arg = rng.range(0..=5) as u8;
        if more > 0 && rng.chance(1, 2) {
            let values = call.values.entry(arg).or_default();
            let value = values.entry(rng.interesting_u64()).or_default();
            *value = value.saturating_add(rng.range(1..=more));
        }
        if more > 0 && rng.chance(1, 8) {
            let lost = call.lost_values.entry(arg).or_default();
            *lost = lost.saturating_add(rng.range(1..=more));
        }
        if more > 0 && rng.chance(1, 2) {
            let args = [(); 6].map(|()| rng.interesting_u64());
            let sample = call.samples.entry(args).or_default();
            *sample = sample.saturating_add(more);
        }
    }
    profile
}

/// The profile of one run, with an id of few, errors, denied calls and times.
pub fn run(rng: &mut Rng, calls: usize) -> Profile {
    const IDS: [&str; 6] = ["a", "b\"\\", "c/1", "d e", "é", "f"];
    let id = *rng.choose(&IDS);
    // Its counts depend on the id alone: it is the same run.
    let mut of_run = Rng::new(id.bytes().map(u64::from).sum());
    let mut profile = profile(&mut of_run, calls);
    let places: Vec<(Arch, Nr)> = profile.calls().map(|(arch, nr, _)| (arch, nr)).collect();
    for (arch, nr) in places {
        let call = profile.call_mut(arch, nr);
        if call.count > 1 && of_run.chance(1, 2) {
            call.denied = of_run.range(0..=call.count);
            call.errors
                .insert(of_run.range(0..=4095) as u16, call.count / 2);
        }
        if of_run.chance(1, 2) {
            let mut buckets = [0; Times::BUCKETS];
            buckets[of_run.index(Times::BUCKETS)] = call.count;
            call.times = Some(Box::new(Times {
                total_ns: of_run.interesting_u64(),
                min_ns: 1,
                max_ns: of_run.range(1..=9),
                buckets,
            }));
        }
    }
    if let Some(id) = RunId::new(id) {
        profile.set_runs(Runs::one(id, Origin::new("m", "p,\"q\"")));
    }
    profile
}

/// A profile of calls in a ruleset's rules; empty if the ruleset has no sections.
pub fn fitting(rng: &mut Rng, ruleset: &Ruleset) -> Profile {
    let mut profile = Profile::default();
    if ruleset.sections().is_empty() {
        return profile;
    }
    for _ in 0..40 {
        let data = call(rng, ruleset);
        let section = rng.choose(ruleset.sections());
        let seen = profile.call_mut(section.arch, Nr(data.nr));
        let count = rng.range(1..=1_000_000);
        seen.count += count;
        if rng.chance(1, 2) {
            seen.samples.insert(data.args, count);
        } else {
            let index = rng.index(data.args.len());
            let values = seen.values.entry(index as u8).or_default();
            *values.entry(data.args[index]).or_default() += count;
        }
    }
    profile
}
