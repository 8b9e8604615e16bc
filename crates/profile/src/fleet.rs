//! Profiles of many runs. Each run counts once, no matter how often and in what order it is added.
//!
//! A fleet is a set of parts: single runs with an id, and sums of several runs. Adding is the union of these sets; of
//! two profiles of the same run the greater counts are kept, because counts only grow during a recording. So adding is
//! associative, commutative and idempotent. Whether a sum is possible is decided in [`Fleet::sum`]. A profile without
//! an id can't be identified and counts each time.
//!
//! A sum has only the ids of its runs, not their counts. Two sums that share some of their runs can't be added exactly,
//! so this is an error. Adding a run without an id to one with an id makes a sum.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::error;
use std::fmt;

use crate::Profile;
use crate::runs::RunId;

/// The identity of a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ids {
    /// The ids of the runs. Never empty.
    named: BTreeSet<RunId>,
    /// The number of runs without an id.
    unnamed: u64,
}

impl Ids {
    /// Whether the part is a single run.
    fn is_single(&self) -> bool {
        self.named.len() == 1 && self.unnamed == 0
    }

    /// Whether every run of the part is in the set.
    fn is_covered(&self, by: &BTreeSet<&RunId>) -> bool {
        self.unnamed == 0 && self.named.iter().all(|id| by.contains(id))
    }
}

/// Profiles of many runs.
///
/// ```
/// use tamis_abi::{Arch, Nr};
/// use tamis_profile::{Fleet, Origin, Profile, RunId, Runs};
/// let mut profile = Profile::default();
/// profile.call_mut(Arch::X86_64, Nr(0)).count = 3;
/// profile.set_runs(Runs::one(RunId::new("monday").unwrap(), Origin::default()));
/// let mut fleet = Fleet::default();
/// fleet.add(profile.clone());
/// fleet.add(profile);
/// let sum = fleet.sum().unwrap();
/// assert_eq!((sum.run_count(), sum.call(Arch::X86_64, Nr(0)).unwrap().count), (1, 3));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    parts: BTreeMap<Ids, Part>,
    /// The sum of the runs without an id.
    unnamed: Profile,
}

/// The counts of some runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    profile: Profile,
    /// Whether two sums of the same runs had different counts.
    is_ambiguous: bool,
}

/// The error for two sums that share runs, without one including the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// A shared run.
    pub shared: RunId,
    /// The number of shared runs.
    pub count: usize,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "two sums of runs share {} of them, `{}` among them, which would be counted twice",
            self.count, self.shared
        )
    }
}

impl error::Error for Overlap {}

impl Fleet {
    /// Adds a profile.
    pub fn add(&mut self, profile: Profile) {
        let ids = Ids {
            named: profile.runs().named.keys().cloned().collect(),
            unnamed: profile.runs().unnamed,
        };
        if ids.named.is_empty() {
            self.unnamed.merge(&profile);
            return;
        }
        let part = Part {
            profile,
            is_ambiguous: false,
        };
        self.insert(ids, part);
    }

    fn insert(&mut self, ids: Ids, part: Part) {
        match self.parts.get_mut(&ids) {
            Some(known) => {
                let differ = !ids.is_single() && known.profile != part.profile;
                known.is_ambiguous |= part.is_ambiguous || differ;
                known.profile.join(&part.profile);
            }
            None => drop(self.parts.insert(ids, part)),
        }
    }

    /// Adds all parts of another fleet.
    pub fn merge(&mut self, other: Fleet) {
        for (ids, part) in other.parts {
            self.insert(ids, part);
        }
        self.unnamed.merge(&other.unnamed);
    }

    /// The parts with each run exactly once: those of single runs, and the sum of all others. A run that is also part
    /// of a sum is omitted: the sum contains it.
    ///
    /// # Errors
    /// If two sums share runs, without one including the other; runs without an id are never shared.
    pub fn parts(&self) -> Result<(Vec<&Profile>, Profile), Overlap> {
        let mut sum = self.unnamed.clone();
        let mut singles = Vec::new();
        for (ids, part) in self.disjoint()? {
            match ids.is_single() {
                true => singles.push(&part.profile),
                false => sum.merge(&part.profile),
            }
        }
        Ok((singles, sum))
    }

    /// The sum of all runs.
    ///
    /// # Errors
    /// As [`parts`](Self::parts).
    pub fn sum(&self) -> Result<Profile, Overlap> {
        let (singles, mut sum) = self.parts()?;
        for single in singles {
            sum.merge(single);
        }
        Ok(sum)
    }

    /// The same, consuming the fleet: a single profile isn't copied.
    ///
    /// # Errors
    /// As [`parts`](Self::parts).
    pub fn into_sum(mut self) -> Result<Profile, Overlap> {
        let is_single = self.unnamed.run_count() == 0 && self.parts.len() == 1;
        match self.parts.first_entry() {
            Some(only) if is_single && !only.get().is_ambiguous => Ok(only.remove().profile),
            _ => self.sum(),
        }
    }

    /// Disjoint parts that contain all runs.
    fn disjoint(&self) -> Result<Vec<(&Ids, &Part)>, Overlap> {
        let mut parts: Vec<(&Ids, &Part)> = self.parts.iter().collect();
        // Large parts first, since they may include others. Stable: others stay in the order of their ids.
        parts.sort_by_key(|(ids, _)| Reverse((ids.named.len(), ids.unnamed)));
        let mut counted: BTreeSet<&RunId> = BTreeSet::new();
        let (mut kept, mut overlapping) = (Vec::new(), Vec::new());
        for (ids, part) in parts {
            let is_new = ids.named.iter().all(|id| !counted.contains(id));
            if is_new && !part.is_ambiguous {
                counted.extend(&ids.named);
                kept.push((ids, part));
            } else {
                overlapping.push(ids);
            }
        }
        for ids in overlapping {
            let shared: Vec<&RunId> = ids.named.iter().filter(|id| counted.contains(id)).collect();
            if !ids.is_covered(&counted)
                && let Some(first) = shared.first().copied().or(ids.named.first())
            {
                return Err(Overlap {
                    shared: first.clone(),
                    count: shared.len().max(1),
                });
            }
        }
        Ok(kept)
    }
}
