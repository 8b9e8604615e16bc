//! A profile of ordinary programs, for callers without one.
//!
//! Counts of ordinary programs on x86_64 (listed in `data/README.md`) are compressed by a square root and added to
//! a minimum for every known call: the most frequent call has four times the count of one that never occurred. So a
//! filter is a little faster for the most frequent calls, and no call becomes much slower.
//!
//! Profiles are built on first use. A forked child would wait forever for a profile that another thread of its parent
//! was building, because that thread doesn't exist in the child. So no thread waits: several may build the same
//! profile, and the first result is kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use tamis_abi::syscall::{self, Name};
use tamis_abi::{Arch, Nr};

use crate::Profile;

/// The measured counts.
const MEASURED: &str = include_str!("../data/default.json");
/// The measured architecture; others get the counts by name.
const MEASURED_ON: Arch = Arch::X86_64;
/// The parts of a line between quotes that hold the call's name and its count.
const CALL: usize = 7;
const COUNT: usize = 10;
/// The count of every known call.
const FLOOR: u64 = 100;
/// The count added for the most frequent call.
const RANGE: u64 = 300;
/// The divisor for all counts of an architecture for old or foreign programs.
const FOREIGN_DIVISOR: u64 = 10;

/// An upper bound of the number of architectures.
const ARCHES: usize = 32;

/// A value that is made on first use, for which no thread waits.
struct Made<T> {
    value: OnceLock<T>,
    /// Held by the thread that stores the value, so that [`OnceLock::get_or_init`] never waits.
    storing: Mutex<()>,
}

impl<T> Made<T> {
    const fn new() -> Made<T> {
        Made {
            value: OnceLock::new(),
            storing: Mutex::new(()),
        }
    }

    /// The value. A thread that finds another one storing its own keeps the one that it made, for ever; so does a child
    /// that was forked at that moment.
    fn get_or_make(&'static self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(known) = self.value.get() {
            return known;
        }
        let made = make();
        match self.storing.try_lock() {
            Ok(_storing) => self.value.get_or_init(|| made),
            Err(_) => Box::leak(Box::new(made)),
        }
    }
}

impl Profile {
    /// A profile of ordinary programs: every known call of the architecture has a count of 100 to 400, or a tenth of
    /// that on 32-bit architectures and x32, which only run in addition to the native one. Built once per process; no
    /// thread waits for another.
    ///
    /// ```
    /// use tamis_abi::{Arch, Nr};
    /// let profile = tamis_profile::Profile::builtin(Arch::X86_64);
    /// let count = |nr| profile.call(Arch::X86_64, Nr(nr)).unwrap().count;
    /// assert!(count(0) > count(155), "read is more frequent than pivot_root");
    /// ```
    pub fn builtin(arch: Arch) -> &'static Profile {
        static KNOWN: [Made<Profile>; ARCHES] = [const { Made::new() }; ARCHES];
        // Architectures are numbered in the order in which they are listed.
        KNOWN[arch as usize].get_or_make(|| ordinary(arch))
    }
}

fn ordinary(arch: Arch) -> Profile {
    static SEEN: Made<BTreeMap<Nr, u64>> = Made::new();
    let seen = SEEN.get_or_make(|| measured().collect());
    let most = seen.values().max().map_or(1, |most| most.isqrt().max(1));
    let divisor = if arch.is_64_bit() { 1 } else { FOREIGN_DIVISOR };
    let mut profile = Profile::default();
    for (nr, _) in syscall::all(arch) {
        let there = Name::of_number(arch, nr).and_then(|name| name.number(MEASURED_ON));
        let count = there.and_then(|nr| seen.get(&nr).copied());
        let share = RANGE * count.unwrap_or_default().isqrt() / most;
        profile.call_mut(arch, nr).count = (FLOOR + share) / divisor;
    }
    profile
}

/// The measured calls with their counts, found by the places of the quotes. Parsing them like users' profiles would
/// take a fifth of the time of a process that compiles one filter; a test does parse them.
fn measured() -> impl Iterator<Item = (Nr, u64)> {
    MEASURED.lines().filter_map(|line| {
        let mut parts = line.split('"');
        let name = parts.nth(CALL)?;
        let count = parts.nth(COUNT - CALL - 1)?;
        let count = count.trim_matches(|c: char| !c.is_ascii_digit());
        Some((syscall::number(MEASURED_ON, name)?, count.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use tamis_diag::Sources;

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
    fn threads_that_ask_at_once_get_the_same() {
        let ask = || std::ptr::from_ref(Profile::builtin(Arch::Riscv64)).addr();
        let asked = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert_eq!(asked, [ask(); 64]);
    }

    #[test]
    fn the_data_is_a_profile_as_the_writer_writes_it() {
        let mut sources = Sources::new();
        let source = sources.add("default.json", MEASURED);
        let profile = crate::read(&sources, source, MEASURED_ON).profile;
        let profile = profile.expect("a profile");
        assert_eq!(profile.to_json(), MEASURED);
        let calls = profile.calls().map(|(_, nr, call)| (nr, call.count));
        assert!(measured().eq(calls));
    }
}
