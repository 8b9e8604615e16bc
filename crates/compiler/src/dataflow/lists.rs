//! Lists of facts about values: short, many, and mostly equal to a previous one.
//!
//! A state is copied at every branch, together with its facts. A state therefore only stores the place of its list.
//! All lists of a flow are stored one after the other in one vector, and adding a value at the end of a list reuses
//! the old entries if nothing follows them yet. Entries are never freed individually: the vector is cleared when the
//! flow starts again.

use super::fact::Fact;
use super::value::Value;

/// The most values of a list; the oldest is dropped first.
const MAX_FACTS: usize = 16;

/// The place of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    start: u32,
    len: u32,
}

/// The place of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FactId(u32);

/// An unfinished list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft(usize);

impl List {
    /// The number of entries.
    pub(crate) const fn len(self) -> usize {
        self.len as usize
    }
}

/// All lists.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    entries: Vec<(Value, FactId)>,
    facts: Vec<Fact>,
}

impl Lists {
    /// Removes all lists except the empty one.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.facts.clear();
    }

    /// The number of entries of all lists together.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The values of a list with their facts, the oldest first.
    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = (Value, &Fact)> {
        let entries = self.entries(list).iter();
        entries.map(|(value, fact)| (*value, &self.facts[fact.0 as usize]))
    }

    /// The fact about a value.
    pub(crate) fn get(&self, list: List, value: Value) -> Option<&Fact> {
        let id = self.id(list, value)?;
        Some(&self.facts[id.0 as usize])
    }

    /// A list with this fact about a value, which replaces an existing fact or is added at the end.
    pub(crate) fn with(&mut self, list: List, value: Value, fact: Fact) -> List {
        let known = self.entries(list).iter();
        let place = known.enumerate().find(|(_, (known, _))| *known == value);
        let place = place.map(|(place, (_, fact))| (place, *fact));
        match place {
            Some((_, known)) if self.facts[known.0 as usize] == fact => list,
            Some((place, _)) => {
                let start = self.entries.len();
                self.copy(list);
                self.entries[start + place].1 = self.add(fact);
                self.from(start)
            }
            None => {
                let list = self.at_the_end(self.without_oldest(list));
                let fact = self.add(fact);
                self.entries.push((value, fact));
                List {
                    len: list.len + 1,
                    ..list
                }
            }
        }
    }

    /// An entry of a list: a value and the place of its fact.
    pub(crate) fn entry(&self, list: List, place: usize) -> (Value, FactId) {
        self.entries(list)[place]
    }

    /// The place of the fact about a value.
    pub(crate) fn id(&self, list: List, value: Value) -> Option<FactId> {
        let mut entries = self.entries(list).iter();
        let (_, id) = entries.find(|(known, _)| *known == value)?;
        Some(*id)
    }

    /// The fact at a place.
    pub(crate) fn fact(&self, id: FactId) -> Fact {
        self.facts[id.0 as usize]
    }

    /// Starts a list; until it is finished no other list can be made.
    pub(crate) const fn draft(&self) -> Draft {
        Draft(self.entries.len())
    }

    /// Starts a list with the entries of another.
    pub(crate) fn draft_of(&mut self, list: List) -> Draft {
        let draft = self.draft();
        self.copy(list);
        draft
    }

    /// Adds an entry to the unfinished list.
    pub(crate) fn push(&mut self, value: Value, fact: Fact) {
        let fact = self.add(fact);
        self.entries.push((value, fact));
    }

    /// Adds an entry with an existing fact.
    pub(crate) fn push_known(&mut self, value: Value, fact: FactId) {
        self.entries.push((value, fact));
    }

    /// Removes the entry of a value from the unfinished list.
    pub(crate) fn retract(&mut self, draft: Draft, value: Value) {
        let mut entries = self.entries[draft.0..].iter();
        if let Some(place) = entries.position(|(known, _)| *known == value) {
            self.entries.remove(draft.0 + place);
        }
    }

    /// The finished list, truncated to the limit; the other list if both are equal.
    pub(crate) fn finish(&mut self, draft: Draft, other: List) -> List {
        self.entries.truncate(draft.0 + MAX_FACTS);
        let list = self.from(draft.0);
        if !self.are_equal(list, other) {
            return list;
        }
        self.entries.truncate(draft.0);
        other
    }

    /// Whether two lists have equal entries.
    pub(crate) fn are_equal(&self, left: List, right: List) -> bool {
        let facts = |fact: FactId| &self.facts[fact.0 as usize];
        left == right
            || left.len == right.len
                && self
                    .entries(left)
                    .iter()
                    .zip(self.entries(right))
                    .all(|(one, two)| {
                        one.0 == two.0 && (one.1 == two.1 || facts(one.1) == facts(two.1))
                    })
    }

    fn entries(&self, list: List) -> &[(Value, FactId)] {
        &self.entries[list.start as usize..][..list.len as usize]
    }

    fn add(&mut self, fact: Fact) -> FactId {
        self.facts.push(fact);
        FactId(self.facts.len() as u32 - 1)
    }

    fn without_oldest(&self, list: List) -> List {
        let oldest = u32::from(list.len as usize == MAX_FACTS);
        List {
            start: list.start + oldest,
            len: list.len - oldest,
        }
    }

    /// The list, copied unless it is already the last one.
    fn at_the_end(&mut self, list: List) -> List {
        if (list.start + list.len) as usize == self.entries.len() {
            return list;
        }
        let start = self.entries.len();
        self.copy(list);
        self.from(start)
    }

    fn copy(&mut self, list: List) {
        let start = list.start as usize;
        self.entries
            .extend_from_within(start..start + list.len as usize);
    }

    fn from(&self, start: usize) -> List {
        List {
            start: start as u32,
            len: (self.entries.len() - start) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Values;
    use super::*;

    fn known(lists: &Lists, list: List) -> Vec<(Value, Option<u32>)> {
        let entries = lists.iter(list);
        entries
            .map(|(value, fact)| (value, fact.constant()))
            .collect()
    }

    #[test]
    fn lists_that_began_as_one_do_not_disturb_each_other() {
        let (mut values, mut lists) = (Values::new(), Lists::default());
        let [a, b, c] = [1, 2, 3].map(|k| values.intern_constant(k));
        let one = lists.with(List::default(), a, Fact::exactly(1));
        let two = lists.with(one, b, Fact::exactly(2));
        let three = lists.with(one, c, Fact::exactly(3));
        let changed = lists.with(two, a, Fact::exactly(4));
        assert_eq!(known(&lists, one), [(a, Some(1))]);
        assert_eq!(known(&lists, two), [(a, Some(1)), (b, Some(2))]);
        assert_eq!(known(&lists, three), [(a, Some(1)), (c, Some(3))]);
        assert_eq!(known(&lists, changed), [(a, Some(4)), (b, Some(2))]);
        let back = lists.with(changed, a, Fact::exactly(1));
        assert!(lists.are_equal(back, two) && !lists.are_equal(back, changed));
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let (mut values, mut lists) = (Values::new(), Lists::default());
        let mut list = List::default();
        for k in 0..20 {
            list = lists.with(list, values.intern_constant(k), Fact::exactly(k));
        }
        let kept: Vec<Option<u32>> = lists.iter(list).map(|(_, fact)| fact.constant()).collect();
        assert_eq!(kept, (4..20).map(Some).collect::<Vec<_>>());
    }
}
