//! A profile of ordinary programs, for callers that have none of their own.
//!
//! Counts of ordinary programs on x86_64 (`data/README.md` says which) are evened out by a square root
//! and laid on a floor that every known call has: the most frequent call counts four times as much as
//! one that was never seen. So a filter is a little better where most programs spend their time, and
//! no call pays much for it.

use std::sync::{LazyLock, OnceLock};

use tamis_abi::{Arch, syscall};
use tamis_diag::Sources;

use crate::Profile;

/// What was measured.
const MEASURED: &str = include_str!("../data/default.json");
/// The architecture that it was measured on; other ones take the counts by name.
const MEASURED_ON: Arch = Arch::X86_64;
/// How much every known call counts.
const FLOOR: u64 = 100;
/// How much the most frequent call counts on top.
const RANGE: u64 = 300;
/// How much less all calls of an architecture count that is there for old or foreign programs.
const FOREIGN_DIVISOR: u64 = 10;

impl Profile {
    /// A profile of ordinary programs: every known call of the architecture counts 100 to 400, or a
    /// tenth of that on 32-bit architectures and x32, which only run beside the native one. Made once per process.
    ///
    /// ```
    /// use tamis_abi::{Arch, Nr};
    /// let profile = tamis_profile::Profile::builtin(Arch::X86_64);
    /// let count = |nr| profile.call(Arch::X86_64, Nr(nr)).unwrap().count;
    /// assert!(count(0) > count(155), "read is more frequent than pivot_root");
    /// ```
    pub fn builtin(arch: Arch) -> &'static Profile {
        static KNOWN: LazyLock<Vec<OnceLock<Profile>>> =
            LazyLock::new(|| Arch::all().map(|_| OnceLock::new()).collect());
        // Architectures are numbered in the order in which they are listed.
        KNOWN[arch as usize].get_or_init(|| ordinary(arch))
    }
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
    static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
        let mut sources = Sources::new();
        let source = sources.add("default.json", MEASURED);
        let profile = crate::read(&sources, source, MEASURED_ON).profile;
        profile.expect("the data of the crate is a profile")
    });
    &PROFILE
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
