//! Sets of numbers of calls, as intervals.

use tamis_bpf::Test;

/// A set of numbers: disjoint intervals in ascending order, with both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers(pub(super) Vec<(u32, u32)>);

impl Numbers {
    /// All numbers.
    pub(super) fn all() -> Numbers {
        Numbers(vec![(0, u32::MAX)])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes those for which the test with `k` holds out of the set and returns them; `None`, and the set stays as it
    /// is, if they would be more than `max` intervals.
    pub(super) fn take(&mut self, test: Test, k: u32, max: usize) -> Option<Numbers> {
        match test {
            Test::Eq => Some(self.take_between(k, k)),
            Test::Ge => Some(self.take_between(k, u32::MAX)),
            Test::Gt => Some(match k.checked_add(1) {
                Some(first) => self.take_between(first, u32::MAX),
                None => Numbers::default(),
            }),
            Test::Set => self.take_with_bits(k, max),
        }
    }

    fn take_between(&mut self, first: u32, last: u32) -> Numbers {
        let mut taken = Vec::new();
        let start = self.0.partition_point(|(_, to)| *to < first);
        let end = start + self.0[start..].partition_point(|(from, _)| *from <= last);
        let mut left = Vec::new();
        for (from, to) in &self.0[start..end] {
            if *from < first {
                left.push((*from, first - 1));
            }
            taken.push((first.max(*from), last.min(*to)));
            if *to > last {
                left.push((last + 1, *to));
            }
        }
        self.0.splice(start..end, left);
        Numbers(taken)
    }

    /// Those that have one of these bits, which is the same for all numbers of a block as long as the lowest bit.
    fn take_with_bits(&mut self, bits: u32, max: usize) -> Option<Numbers> {
        if bits == 0 {
            return Some(Numbers::default());
        }
        let block = 1u32 << bits.trailing_zeros();
        let blocks = |(from, to): &(u32, u32)| (to / block - from / block) as usize + 1;
        if self.0.iter().map(blocks).sum::<usize>() > max {
            return None;
        }
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for (from, to) in &self.0 {
            let mut first = *from;
            loop {
                let last = (first | (block - 1)).min(*to);
                let side = if first & bits != 0 {
                    &mut with
                } else {
                    &mut without
                };
                match side.last_mut() {
                    Some((_, end)) if *end + 1 == first => *end = last,
                    _ => side.push((first, last)),
                }
                if last == *to {
                    break;
                }
                first = last + 1;
            }
        }
        self.0 = without;
        Some(Numbers(with))
    }

    /// Every number by itself; `None` if they are more than `max`.
    pub(super) fn singles(&self, max: usize) -> Option<Vec<u32>> {
        let count = |(from, to): &(u32, u32)| u64::from(to - from) + 1;
        if self.0.iter().map(count).sum::<u64>() > max as u64 {
            return None;
        }
        Some(self.0.iter().flat_map(|(from, to)| *from..=*to).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_and_what_is_left_are_the_numbers_of_each_side() {
        let sample = [0, 1, 5, 6, 7, 8, 9, 10, 99, 100, 101, 1 << 30, u32::MAX];
        for test in Test::ALL {
            for k in sample {
                let mut left = Numbers(vec![(0, 6), (9, 100), (1 << 30, u32::MAX)]);
                let before = left.clone();
                let Some(taken) = left.take(test, k, 1 << 20) else {
                    assert_eq!((test, left), (Test::Set, before));
                    continue;
                };
                let has = |set: &Numbers, n: u32| {
                    set.0
                        .iter()
                        .filter(|(from, to)| (*from..=*to).contains(&n))
                        .count()
                };
                for n in sample {
                    let holds = test.holds(n, k) && has(&before, n) == 1;
                    assert_eq!(has(&taken, n), usize::from(holds), "{test:?} {k} {n}");
                    assert_eq!(has(&taken, n) + has(&left, n), has(&before, n), "{n}");
                }
                let is_ascending = |set: &Numbers| set.0.is_sorted_by(|a, b| a.1 < b.0);
                assert!(is_ascending(&taken) && is_ascending(&left));
            }
        }
    }
}
