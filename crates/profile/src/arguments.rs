//! The argument lists of a call, estimated from the recorded values.

use crate::profile::{Args, Call};

/// The number of lists that represent the values of single arguments. Prime, so that every stride visits every rank.
const RANKS: u64 = 61;

impl Call {
    /// The argument lists of a call with their frequencies, which add up to the count of the call. Recorded lists come
    /// first; the others combine recorded values of single arguments, with 0 for unknown ones.
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

    /// Lists with the recorded frequencies of single argument values; `None` for an unknown value. They are evenly
    /// spaced ranks of every argument's values, in a different order for each argument, so that arguments are
    /// independent.
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
