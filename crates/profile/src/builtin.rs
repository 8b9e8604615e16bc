//! A profile of ordinary programs, for callers without one.
//!
//! Counts of ordinary programs on x86_64 (listed in `data/README.md`) are compressed by a square root and added to
//! a minimum for every known call: the most frequent call has four times the count of one that never occurred. So a
//! filter is a little faster for the most frequent calls, and no call becomes much slower.

use std::sync::OnceLock;

use tamis_abi::{Arch, syscall};
use tamis_diag::Sources;

use crate::Profile;

/// The measured counts.
const MEASURED: &str = include_str!("../data/default.json");
/// The measured architecture; others get the counts by name.
const MEASURED_ON: Arch = Arch::X86_64;
/// The count of architectures.
const ARCHES: usize = 24;
/// The count of every known call.
const FLOOR: u64 = 100;
/// The count added for the most frequent call.
const RANGE: u64 = 300;
/// The divisor for all counts of an architecture for old or foreign programs.
const FOREIGN_DIVISOR: u64 = 10;

impl Profile {
    /// A profile of ordinary programs: every known call of the architecture has a count of 100 to 400, or a tenth
    /// of that on 32-bit architectures and x32, which only run in addition to the native one. Made once per process.
    ///
    /// ```
    /// use tamis_abi::{Arch, Nr};
    /// let profile = tamis_profile::Profile::builtin(Arch::X86_64);
    /// let count = |nr| profile.call(Arch::X86_64, Nr(nr)).unwrap().count;
    /// assert!(count(0) > count(155), "read is more frequent than pivot_root");
    /// ```
    pub fn builtin(arch: Arch) -> &'static Profile {
        static KNOWN: [OnceLock<Profile>; ARCHES] = [const { OnceLock::new() }; ARCHES];
        // Architectures are numbered in the order in which they are listed.
        kept(&KNOWN[arch as usize], || ordinary(arch))
    }
}

/// The value of a cell, made before the cell is locked, so that a process that is forked meanwhile by another thread
/// doesn't find it locked for ever.
fn kept(cell: &'static OnceLock<Profile>, make: impl FnOnce() -> Profile) -> &'static Profile {
    if let Some(profile) = cell.get() {
        return profile;
    }
    let profile = make();
    cell.get_or_init(|| profile)
}

fn ordinary(arch: Arch) -> Profile {
    let most = measured().calls().map(|(_, _, call)| call.count).max();
    let most = most.unwrap_or(0).max(1).isqrt();
    let divisor = if arch.is_64_bit() { 1 } else { FOREIGN_DIVISOR };
    let mut profile = Profile::default();
    for (nr, name) in syscall::all(arch) {
        let there = syscall::number(MEASURED_ON, name);
        let seen = there.and_then(|nr| measured().call(MEASURED_ON, nr));
        let share = seen.map_or(0, |call| RANGE * call.count.isqrt() / most);
        profile.call_mut(arch, nr).count = (FLOOR + share) / divisor;
    }
    profile
}

fn measured() -> &'static Profile {
    static PROFILE: OnceLock<Profile> = OnceLock::new();
    kept(&PROFILE, || {
        let mut sources = Sources::new();
        let source = sources.add("default.json", MEASURED);
        let profile = crate::read(&sources, source, MEASURED_ON).profile;
        profile.expect("the data of the crate is a profile")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_call_counts_and_none_more_than_four_times_another() {
        for arch in Arch::all() {
            let profile = Profile::builtin(arch);
            let counts: Vec<u64> = profile.calls().map(|(_, _, call)| call.count).collect();
            assert_eq!(counts.len(), syscall::all(arch).count());
            let (least, most) = (counts.iter().min(), counts.iter().max());
            let (least, most) = (least.unwrap(), most.unwrap());
            assert!(
                *least > 0 && *most <= 4 * least,
                "{arch}: {least} to {most}"
            );
        }
    }

    #[test]
    fn the_data_is_written_as_the_writer_writes_it() {
        assert_eq!(measured().to_json(), MEASURED);
    }
}
