//! Drawing calls by weight: the same seed and weights always give the same calls.

use tamis_fuzz::rng::Rng;

/// A random source with numbers below large limits.
pub(super) struct Random(Rng);

/// Weighted items.
pub(super) struct WeightedItems<T> {
    /// Each item with the cumulative weight.
    items: Vec<(u128, T)>,
}

impl Random {
    pub(super) const fn new(seed: u64) -> Random {
        Random(Rng::new(seed))
    }

    /// A number below a limit, which is at least 1; large limits are reached evenly enough.
    pub(super) fn below(&mut self, limit: u128) -> u128 {
        let wide = u128::from(self.0.next_u64()) << 64 | u128::from(self.0.next_u64());
        wide % limit.max(1)
    }
}

impl<T> WeightedItems<T> {
    /// Items with their weights; items without weight are never drawn.
    pub(super) fn new(weighted: impl IntoIterator<Item = (u64, T)>) -> WeightedItems<T> {
        let mut total = 0;
        let items = weighted.into_iter().filter(|(weight, _)| *weight > 0);
        let items = items.map(|(weight, item)| {
            total += u128::from(weight);
            (total, item)
        });
        WeightedItems {
            items: items.collect(),
        }
    }

    /// The total weight.
    pub(super) fn total(&self) -> u128 {
        self.items.last().map_or(0, |(total, _)| *total)
    }

    /// The item at a place below the total; `None` beyond it.
    pub(super) fn at(&self, place: u128) -> Option<&T> {
        let index = self.items.partition_point(|(up_to, _)| *up_to <= place);
        self.items.get(index).map(|(_, item)| item)
    }

    /// A random item; `None` if there are none.
    pub(super) fn draw(&self, random: &mut Random) -> Option<&T> {
        self.at(random.below(self.total()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_drawn_by_their_weight() {
        let urn = WeightedItems::new([(1, 'a'), (0, 'b'), (7, 'c')]);
        let mut random = Random::new(1);
        let drawn: String = (0..8000).filter_map(|_| urn.draw(&mut random)).collect();
        let count = |c| drawn.matches(c).count();
        assert_eq!(count('b'), 0);
        assert!((900..1100).contains(&count('a')), "{}", count('a'));
        let mut again = Random::new(1);
        let same: String = (0..8000).filter_map(|_| urn.draw(&mut again)).collect();
        assert_eq!(drawn, same);
        assert_eq!(WeightedItems::<char>::new([]).draw(&mut again), None);
    }
}
