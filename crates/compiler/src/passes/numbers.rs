//! A set of numbers that grows by whole sets, near-linear in all of their intervals together.

use std::collections::BTreeMap;

use tamis_rules::IntervalSet;

/// A growing set of numbers: disjoint intervals by first number, updated in place.
#[derive(Default)]
pub(super) struct Numbers(BTreeMap<u32, u32>);

impl Numbers {
    /// Whether some number of a set is in this one.
    pub(super) fn meets(&self, set: &IntervalSet<u32>) -> bool {
        !self.0.is_empty()
            && set.intervals().iter().any(|(first, last)| {
                let latest = self.0.range(..=last).next_back();
                latest.is_some_and(|(_, end)| first <= end)
            })
    }

    /// What of a set is not in this one.
    pub(super) fn missing_of(&self, set: &IntervalSet<u32>) -> IntervalSet<u32> {
        let mut rest = Vec::new();
        for (first, last) in set.intervals() {
            let mut next = Some(*first);
            let before = self.0.range(..=first).next_back();
            let inside = self
                .0
                .range(first..=last)
                .filter(|(start, _)| *start != first);
            for (start, end) in before.into_iter().chain(inside) {
                if let Some(open) = next.filter(|open| open < start) {
                    rest.push(open..=start - 1);
                }
                next = next.and_then(|next| Some(next.max(end.checked_add(1)?)));
            }
            rest.extend(next.filter(|open| open <= last).map(|open| open..=*last));
        }
        rest.into_iter().collect()
    }

    /// Adds a set of which nothing is in this one yet.
    pub(super) fn add(&mut self, set: &IntervalSet<u32>) {
        self.0.extend(set.intervals().iter().copied());
    }
}
