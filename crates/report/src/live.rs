//! A running recording as a table that is redrawn.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Nr, syscall};
use tamis_profile::Profile;

/// The time during which a call counts as new, in milliseconds.
const NEW_MS: u64 = 5000;

/// The table: the calls by their rates.
#[derive(Debug, Default)]
pub struct LiveTable {
    /// The previous counts, and the time of each call's first occurrence.
    known: BTreeMap<(Arch, Nr), (u64, u64)>,
    at_ms: u64,
}

impl LiveTable {
    /// The lines `at_ms` milliseconds after the start, and the state for the next ones: at most `top` calls, the most
    /// frequent since the previous lines first, with their counts since the start. Calls that occurred first in the
    /// last five seconds, but not in the first five, are `new`.
    pub fn lines(&mut self, profile: &Profile, at_ms: u64, top: usize) -> Vec<String> {
        let passed_s = at_ms.saturating_sub(self.at_ms).max(1) as f64 / 1e3;
        let mut rows = Vec::new();
        let mut total = 0.0;
        for (arch, nr, call) in profile.calls() {
            let (before, first) = self.known.entry((arch, nr)).or_insert((0, at_ms));
            let rate = call.count.saturating_sub(*before) as f64 / passed_s;
            let is_new = *first > NEW_MS && at_ms.saturating_sub(*first) < NEW_MS;
            *before = call.count;
            total += rate;
            let errors = call.errors.values().copied().fold(0, u64::saturating_add);
            rows.push((rate, call.count, errors, is_new, arch, nr));
        }
        self.at_ms = at_ms;
        rows.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
        let mut lines = vec![
            format!(
                "{} s, {} different calls, {total:.0} a second; Ctrl-C ends",
                at_ms / 1000,
                rows.len()
            ),
            "    per second       count      failed  call".to_owned(),
        ];
        for (rate, count, errors, is_new, arch, nr) in rows.into_iter().take(top) {
            let name = syscall::name(arch, nr).map_or_else(|| nr.0.to_string(), str::to_owned);
            let errors = if errors == 0 {
                String::new()
            } else {
                errors.to_string()
            };
            let new = if is_new { "  new" } else { "" };
            lines.push(format!(
                "{rate:>14.0}{count:>12}{errors:>12}  {arch} {name}{new}"
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(counts: &[(u32, u64)]) -> Profile {
        let mut profile = Profile::default();
        for (nr, count) in counts {
            profile.call_mut(Arch::X86_64, Nr(*nr)).count = *count;
        }
        profile
    }

    #[test]
    fn rates_are_those_since_the_last_time_and_new_calls_are_marked() {
        let mut table = LiveTable::default();
        let second = |seconds: u64| 1000 * seconds;
        let first = table.lines(&profile(&[(0, 10), (1, 30)]), second(1), 9);
        assert!(
            first[0].contains("2 different calls, 40 a second"),
            "{first:?}"
        );
        assert!(first[2].ends_with("x86_64 write") && first[3].ends_with("x86_64 read"));
        let next = table.lines(&profile(&[(0, 210), (1, 30), (2, 1)]), second(11), 2);
        assert_eq!(next.len(), 4);
        assert!(
            next[2].starts_with("            20         210") && next[2].ends_with("read"),
            "{next:?}"
        );
        assert!(next[3].ends_with("x86_64 open  new"), "{next:?}");
        let later = table.lines(&profile(&[(2, 1)]), second(30), 2);
        assert!(!later[2].contains("new"), "{later:?}");
    }
}
