//! Which arguments a call is made with, from what a profile saw of it.

use crate::profile::{Args, Call};

/// How many lists stand for the values of single arguments. Prime, so that every stride visits every rank.
const RANKS: u64 = 61;

impl Call {
    /// The argument lists that the call is made with, and how often each is; together as often as the call. Lists
    /// that were seen come first; the rest has the values of single arguments that were seen, and 0 for all others.
    ///
    /// ```
    /// use tamis_profile::Call;
    /// let mut call = Call { count: 5, ..Call::default() };
    /// call.samples.insert([1, 2, 3, 0, 0, 0], 2);
    /// let expected = vec![([1, 2, 3, 0, 0, 0], 2.0), ([0; 6], 3.0)];
    /// assert_eq!(call.argument_lists(), expected);
    /// ```
    pub fn argument_lists(&self) -> Vec<(Args, f64)> {
        let mut lists = Vec::new();
        let mut left = self.count;
        for (args, count) in &self.samples {
            left = left.saturating_sub(*count);
            lists.push((*args, *count as f64));
        }
        if left == 0 {
            return lists;
        }
        if self.values.is_empty() {
            lists.push(([0; 6], left as f64));
            return lists;
        }
        let each = left as f64 / RANKS as f64;
        let known = |values: [Option<u64>; 6]| values.map(Option::unwrap_or_default);
        lists.extend(self.value_lists().map(|values| (known(values), each)));
        lists
    }

    /// Lists in which the values of single arguments occur as often as they were seen, `None` where no value is
    /// known: evenly spaced ranks of every argument's values, in an order of its own so that arguments are
    /// independent of each other.
    pub fn value_lists(&self) -> impl ExactSizeIterator<Item = [Option<u64>; 6]> {
        (0..RANKS as u32).map(|rank| {
            let mut list = [None; 6];
            for (index, values) in &self.values {
                let place = u64::from(rank) * (2 * u64::from(*index) + 1) % RANKS;
                let wanted =
                    u128::from(self.count) * u128::from(2 * place + 1) / u128::from(2 * RANKS);
                let mut before = 0;
                let value = values.iter().find(|(_, count)| {
                    before += u128::from(**count);
                    wanted < before
                });
                if let (Some(known), Some((value, _))) = (list.get_mut(usize::from(*index)), value)
                {
                    *known = Some(*value);
                }
            }
            list
        })
    }
}
