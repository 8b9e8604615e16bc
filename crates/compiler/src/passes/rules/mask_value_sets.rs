//! Replace value sets by masks.
//!
//! # Effect
//! A set of all values with certain bits fixed becomes a mask. A set that contains such values, with one free bit
//! among others, becomes a mask and the rest, if the rest has enough fewer intervals to save instructions.
//!
//! # Before/After
//! ```text
//! arg1 in {0x0..0x1, 0x80..0x81}       ->  arg1 & 0xffffffffffffff7e == 0x0
//! arg1 in {0x0..0x1, 0x5, 0x80..0x81}  ->  any(arg1 & 0xffffffffffffff7e == 0x0, arg1 == 0x5)
//! ```
//!
//! # Why it is sound
//! The set has as many values as the free bits have combinations, and all its values agree in the other bits.
//!
//! # Limits
//! It does not change ranges, nor sets of two intervals unless the fixed bits are all zero: a mask with a comparison
//! takes two instructions. Sets of more than 64 values are only considered as a whole.
//!
//! # Cost
//! Linear in the intervals of a set, times 64 for small ones.
//!
//! # Prior art
//! gVisor's authors did this manually for `futex`.

use tamis_rules::{IntervalSet, Operand, Predicate, Test};

use crate::passes::support::shape::{ListKind, rewrite_parts, single_values, test_of};
use crate::passes::{Changed, Claim, Draft, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "mask-value-sets",
    summary: "make masks of value sets that are all values with certain bits",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(in crate::passes) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    rewrite_conditions(draft, cx, rewrite)
}

fn rewrite(predicate: &Predicate) -> Option<Predicate> {
    if let Some((kind, parts)) = ListKind::split(predicate) {
        return match rewrite_parts(parts, rewrite) {
            Some(made) => Some(kind.join(made)),
            None => (parts.len() < 2).then(|| kind.join(parts.to_vec())),
        };
    }
    match predicate {
        Predicate::Not(inner) => rewrite(inner).map(|inner| Predicate::Not(Box::new(inner))),
        Predicate::Test(Test::In { operand, set }) => masks(*operand, set),
        _ => None,
    }
}

/// The set as masks; the operand's impossible values are left out.
fn masks(operand: Operand, set: &IntervalSet<u64>) -> Option<Predicate> {
    let possible = set.intersection(&[0..=operand.max()].into_iter().collect());
    if let Some(cube) = Cube::from_set(&possible)
        && possible.intervals().len() > cube.cost()
    {
        return Some(cube.test(operand));
    }
    if let Some((cube, rest)) = partial(&possible) {
        let parts = vec![cube.test(operand), test_of(operand, &rest)];
        return Some(Predicate::Any(parts));
    }
    let is_same = possible == *set;
    let set = possible;
    (!is_same).then_some(Predicate::Test(Test::In { operand, set }))
}

/// The mask that saves most, and the values outside it.
fn partial(set: &IntervalSet<u64>) -> Option<(Cube, IntervalSet<u64>)> {
    if set.intervals().len() <= 2 {
        return None;
    }
    let values = single_values(set)?;
    let (ones, zeros) = values.iter().fold((0, 0), |(ones, zeros), value| {
        (ones | value, zeros | !value)
    });
    let is_varied = |bit: &u32| ones & zeros & 1 << bit != 0;
    let candidates = (0..u64::BITS).filter(is_varied).filter_map(|bit| {
        let has_partner = |value: &&u64| set.contains(**value ^ 1 << bit);
        let paired: IntervalSet<u64> = values.iter().filter(has_partner).copied().collect();
        let cube = Cube::from_set(&paired)?;
        let rest = set.difference(&paired);
        let cost = cube.cost() + rest.intervals().len();
        (!rest.is_empty() && cost < set.intervals().len()).then_some((cost, cube, rest))
    });
    let (_, cube, rest) = candidates.min_by_key(|(cost, ..)| *cost)?;
    Some((cube, rest))
}

/// All values with these bits free, and the others as in the smallest value.
#[derive(Clone, Copy)]
struct Cube {
    smallest: u64,
    free: u64,
}

impl Cube {
    /// A set as a cube, if it is one.
    fn from_set(set: &IntervalSet<u64>) -> Option<Cube> {
        let (smallest, _) = *set.intervals().first()?;
        let mut free = 0;
        let mut count: u128 = 0;
        for (first, last) in set.intervals() {
            // Bits below the highest differing one change within the interval, or the count is too small.
            let differing = u64::BITS - (first ^ last).leading_zeros();
            free |= first ^ smallest | !u64::MAX.checked_shl(differing).unwrap_or(0);
            count += u128::from(last - first) + 1;
        }
        let smallest = smallest & !free;
        (count == 1 << free.count_ones()).then_some(Cube { smallest, free })
    }

    /// The instructions of the test per word: a mask without a comparison is a `jset`.
    const fn cost(self) -> usize {
        if self.smallest == 0 { 1 } else { 2 }
    }

    fn test(self, operand: Operand) -> Predicate {
        Predicate::Test(Test::Masked {
            operand,
            mask: operand.max() & !self.free,
            value: self.smallest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_rules;

    #[test]
    fn values_with_free_bits_are_a_mask() {
        check_rules(
            &INFO,
            "0 if arg1 in {0x0..0x1, 0x80..0x81}: allow\n\
             1 if arg1.low in {0x11, 0x13, 0x19, 0x1b}: allow\n\
             2 if all(arg0 == 0x1, arg1 in {0x0..0x1, 0x5, 0x80..0x81}): allow",
            "0 if arg1 & 0xffffffffffffff7e == 0x0: allow\n\
             1 if arg1.low & 0xfffffff5 == 0x11: allow\n\
             2 if all(arg0 == 0x1, any(arg1 & 0xffffffffffffff7e == 0x0, arg1 == 0x5)): allow",
        );
    }

    #[test]
    fn one_value_too_few_or_too_many_is_no_mask() {
        let text = "0 if arg1 in {0x0..0x1, 0x80}: allow\n\
                    1 if arg1 in {0x11, 0x13}: allow\n\
                    2 if arg1 in {0x2..0x9, 0x42..0x49}: allow";
        check_rules(&INFO, text, text);
    }
}
