//! Conditions in disjunctive form: alternatives with at most one test per argument.
//!
//! OCI profiles can express only this form: the conditions of an entry must all hold, two on one argument would be
//! alternatives, and one of several entries must hold. Every condition that tests only arguments can be converted:
//! if two tests on one argument must both hold, ranges are split into blocks of values with common upper bits, and
//! a block is a masked test. The conversion lengthens conditions; [`MAX_ALTERNATIVES`] is the limit.

use std::collections::BTreeMap;

use tamis_rules::{IntervalSet, Operand, OperandSource, Part, Predicate, Test};

/// The most alternatives of a condition. Each becomes an entry, and more would be unreadable.
pub(super) const MAX_ALTERNATIVES: usize = 256;

/// The most halves that are tested for a cover by other alternatives.
const MAX_SPLITS: u32 = 2_000;

/// The most alternatives while two lists are combined.
const MAX_PRODUCT: usize = 4 * MAX_ALTERNATIVES;

/// The values of an argument in an alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Values {
    /// The values with this value under this mask.
    Bits { mask: u64, value: u64 },
    /// All others.
    Not(u64),
    /// At least this value.
    AtLeast(u64),
    /// At most this value.
    AtMost(u64),
}

impl Values {
    /// Whether a value is one of them.
    pub(super) const fn contains(self, number: u64) -> bool {
        match self {
            Values::Bits { mask, value } => number & mask == value,
            Values::Not(value) => number != value,
            Values::AtLeast(value) => number >= value,
            Values::AtMost(value) => number <= value,
        }
    }
}

/// Tests that must all hold, by argument.
pub(super) type Alternative = BTreeMap<u8, Values>;

/// A condition in this form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alternatives {
    pub(super) list: Vec<Alternative>,
    /// Whether alternatives are missing because they can't be expressed.
    pub(super) is_cut: bool,
}

/// Options of the conversion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Whether arguments have 64 bits, or only the lower 32 are compared.
    pub(super) is_wide: bool,
    /// The largest number that can be written.
    pub(super) max_number: u64,
    /// Whether alternatives that can't be expressed may be omitted.
    pub(super) may_cut: bool,
    /// Whether only the last test of an alternative may be one of order or inequality.
    pub(super) is_explicit: bool,
}

impl Form {
    /// The alternatives; `None` if the condition can't be expressed in this form.
    pub(super) fn alternatives(self, when: &Predicate) -> Option<Alternatives> {
        let mut making = Making {
            form: self,
            is_cut: false,
        };
        let list = making.condition(when, false)?;
        let list = match self.is_explicit {
            true => making.explicit(list)?,
            false => list,
        };
        let mut list = irredundant(without_covered(list));
        let is_expressible =
            |alternative: &Alternative| alternative.values().all(|v| self.can_express(*v));
        if !list.iter().all(is_expressible) {
            if !self.may_cut {
                return None;
            }
            list.retain(is_expressible);
            making.is_cut = true;
        }
        Some(Alternatives {
            list,
            is_cut: making.is_cut,
        })
    }

    /// The largest value of an argument.
    pub(super) const fn max(self) -> u64 {
        if self.is_wide {
            u64::MAX
        } else {
            u32::MAX as u64
        }
    }

    fn can_express(self, values: Values) -> bool {
        let is_small = |number: u64| number <= self.max_number;
        match values {
            // A mask of all bits isn't written.
            Values::Bits { mask, value } => {
                is_small(value) && (mask == self.max() || is_small(mask))
            }
            Values::Not(value) | Values::AtLeast(value) | Values::AtMost(value) => is_small(value),
        }
    }

    /// The set of these values.
    fn set(self, values: Values) -> Option<IntervalSet<u64>> {
        let max = self.max();
        Some(match values {
            Values::Not(value) => {
                IntervalSet::from_iter([0..=max]).difference(&IntervalSet::single(value))
            }
            Values::AtLeast(value) => IntervalSet::from_iter([value..=max]),
            Values::AtMost(value) => IntervalSet::from_iter([0..=value]),
            Values::Bits { mask, value } if mask == max => IntervalSet::single(value),
            Values::Bits { .. } => return None,
        })
    }

    /// Tests with the disjunction "a part of an argument is in a set".
    fn of_set(self, part: Part, set: &IntervalSet<u64>) -> Option<Vec<Values>> {
        let (bits, shift) = match (part, self.is_wide) {
            (Part::Full, true) => (64, 0),
            (Part::Low, _) => (32, 0),
            (Part::High, true) => (32, 32),
            (Part::Full | Part::High, false) => return None,
        };
        let max = u64::MAX >> (64 - bits);
        // Whether the part is ordered like the argument.
        let is_ordered = part != Part::Low || !self.is_wide;
        let all = IntervalSet::from_iter([0..=max]);
        let set = set.intersection(&all);
        if let [(only, last)] = all.difference(&set).intervals()
            && only == last
            && is_ordered
            && shift == 0
        {
            return Some(vec![Values::Not(*only)]);
        }
        let below = (1 << shift) - 1;
        let mut values = Vec::new();
        for (first, last) in set.intervals().iter().copied() {
            match (first, last) {
                (0, last) if last == max => values.push(Values::Bits { mask: 0, value: 0 }),
                (0, last) if is_ordered && last > 0 => {
                    values.push(Values::AtMost(last << shift | below));
                }
                (first, last) if is_ordered && last == max && first < last => {
                    values.push(Values::AtLeast(first << shift));
                }
                _ => blocks(first, last, bits, shift, &mut values),
            }
        }
        Some(values)
    }

    /// Masked tests whose disjunction is equivalent to a test.
    fn as_bits(self, values: Values) -> Vec<Values> {
        let Some(set) = self.set(values) else {
            return vec![values];
        };
        let bits = if self.is_wide { 64 } else { 32 };
        let mut list = Vec::new();
        for (first, last) in set.intervals() {
            blocks(*first, *last, bits, 0, &mut list);
        }
        list
    }

    /// Tests with the conjunction of two tests as their disjunction.
    fn both(self, a: Values, b: Values) -> Vec<Values> {
        if let (Some(a), Some(b)) = (self.set(a), self.set(b)) {
            let part = if self.is_wide { Part::Full } else { Part::Low };
            return self.of_set(part, &a.intersection(&b)).unwrap_or_default();
        }
        let others = self.as_bits(b);
        let pairs = self.as_bits(a).into_iter().flat_map(|a| {
            let both = move |b: &Values| both_bits(a, *b);
            others.iter().filter_map(both).collect::<Vec<Values>>()
        });
        pairs.collect()
    }
}

/// Two masked tests as one; `None` if they contradict each other.
fn both_bits(a: Values, b: Values) -> Option<Values> {
    let (
        Values::Bits { mask, value },
        Values::Bits {
            mask: other_mask,
            value: other,
        },
    ) = (a, b)
    else {
        return None;
    };
    let common = mask & other_mask;
    (value & common == other & common).then_some(Values::Bits {
        mask: mask | other_mask,
        value: value | other,
    })
}

/// Splits a range into blocks of values with common upper bits.
fn blocks(first: u64, last: u64, bits: u32, shift: u32, values: &mut Vec<Values>) {
    let all = u64::MAX >> (64 - bits);
    let mut from = u128::from(first);
    while from <= u128::from(last) {
        let room = u128::from(last) - from + 1;
        let aligned = if from == 0 {
            bits
        } else {
            from.trailing_zeros()
        };
        let size = aligned.min(room.ilog2()).min(bits);
        let free = (1_u128 << size) - 1;
        values.push(Values::Bits {
            mask: (all & !(free as u64)) << shift,
            value: (from as u64) << shift,
        });
        from += free + 1;
    }
}

struct Making {
    form: Form,
    is_cut: bool,
}

impl Making {
    /// A condition, or its negation.
    fn condition(&mut self, when: &Predicate, is_negated: bool) -> Option<Vec<Alternative>> {
        match (when, is_negated) {
            (Predicate::True, false) | (Predicate::False, true) => Some(vec![Alternative::new()]),
            (Predicate::True, true) | (Predicate::False, false) => Some(Vec::new()),
            (Predicate::Not(inner), _) => self.condition(inner, !is_negated),
            (Predicate::All(parts), false) | (Predicate::Any(parts), true) => {
                let mut list = vec![Alternative::new()];
                for part in parts {
                    let part = self.condition(part, is_negated)?;
                    list = self.product(&list, &part)?;
                }
                Some(list)
            }
            (Predicate::Any(parts), false) | (Predicate::All(parts), true) => {
                let mut list = Vec::new();
                for part in parts {
                    list.extend(self.condition(part, is_negated)?);
                    if list.len() > MAX_ALTERNATIVES {
                        return None;
                    }
                }
                Some(list)
            }
            (Predicate::Test(test), _) => match self.test(test, is_negated) {
                Some((arg, values)) if values.len() <= MAX_ALTERNATIVES => {
                    let one = |values| Alternative::from([(arg, values)]);
                    Some(values.into_iter().map(one).collect())
                }
                Some(_) => None,
                None if self.form.may_cut => {
                    self.is_cut = true;
                    Some(Vec::new())
                }
                None => None,
            },
        }
    }

    /// Tests of one argument with the test as their disjunction; `None` for other operands.
    fn test(&self, test: &Test, is_negated: bool) -> Option<(u8, Vec<Values>)> {
        let (operand, set) = match test {
            Test::Between { .. } => return None,
            Test::Masked {
                operand,
                mask,
                value,
            } => return self.masked(*operand, *mask, *value, is_negated),
            Test::In { operand, set } => (*operand, set.clone()),
            Test::Compare { operand, op, value } => {
                use tamis_rules::CmpOp::{Eq, Ge, Gt, Le, Lt, Ne};
                let below = match value.checked_sub(1) {
                    Some(last) => IntervalSet::from_iter([0..=last]),
                    None => IntervalSet::empty(),
                };
                let set = match op {
                    Eq => IntervalSet::single(*value),
                    Ne => IntervalSet::single(*value).complement(),
                    Lt => below,
                    Le => IntervalSet::from_iter([0..=*value]),
                    Ge => below.complement(),
                    Gt => IntervalSet::from_iter([0..=*value]).complement(),
                };
                (*operand, set)
            }
        };
        let set = match is_negated {
            true => set.complement(),
            false => set,
        };
        let values = self.form.of_set(operand.part, &set)?;
        Some((argument(operand)?, values))
    }

    fn masked(
        &self,
        operand: Operand,
        mask: u64,
        value: u64,
        is_negated: bool,
    ) -> Option<(u8, Vec<Values>)> {
        let arg = argument(operand)?;
        let (shift, part) = match (operand.part, self.form.is_wide) {
            (Part::Full, true) => (0, u64::MAX),
            (Part::Low, _) => (0, u64::from(u32::MAX)),
            (Part::High, true) => (32, u64::from(u32::MAX)),
            (Part::Full | Part::High, false) => return None,
        };
        let anything = Values::Bits { mask: 0, value: 0 };
        let mask = mask & part;
        let values = match (value & !mask == 0, is_negated) {
            (true, false) => vec![Values::Bits {
                mask: mask << shift,
                value: value << shift,
            }],
            (false, false) => Vec::new(),
            (false, true) => vec![anything],
            (true, true) => {
                let bits = (0..64).map(|bit| 1_u64 << bit);
                let bits = bits.filter(|bit| mask & bit != 0);
                let other = |bit: u64| Values::Bits {
                    mask: bit << shift,
                    value: (!value & bit) << shift,
                };
                bits.map(other).collect()
            }
        };
        Some((arg, values))
    }

    /// The conjunction of two lists of alternatives.
    fn product(&self, left: &[Alternative], right: &[Alternative]) -> Option<Vec<Alternative>> {
        let mut list = Vec::new();
        for a in left {
            for b in right {
                let mut combined = vec![a.clone()];
                for (arg, values) in b {
                    combined = self.with(combined, *arg, *values);
                }
                list.extend(combined);
                if list.len() > MAX_PRODUCT {
                    return None;
                }
            }
        }
        // If both lists have the same tests, of several unset bits, most of the product is covered by the rest.
        if list.len() > MAX_ALTERNATIVES {
            list = without_covered(list);
        }
        (list.len() <= MAX_ALTERNATIVES).then_some(list)
    }

    /// Alternatives with one more test.
    fn with(&self, list: Vec<Alternative>, arg: u8, values: Values) -> Vec<Alternative> {
        let mut all = Vec::new();
        for alternative in list {
            let choices = match alternative.get(&arg) {
                None => vec![values],
                Some(before) => self.form.both(*before, values),
            };
            for choice in choices {
                let mut one = alternative.clone();
                one.insert(arg, choice);
                all.push(one);
            }
        }
        all
    }

    /// The same with masked tests instead of others, except for the last test of each alternative.
    fn explicit(&self, list: Vec<Alternative>) -> Option<Vec<Alternative>> {
        let mut all = Vec::new();
        for alternative in list {
            let last = alternative.keys().next_back().copied();
            let mut made = vec![Alternative::new()];
            for (arg, values) in &alternative {
                let choices = match last == Some(*arg) {
                    true => vec![*values],
                    false => self.form.as_bits(*values),
                };
                let extended = made.iter().flat_map(|before| {
                    choices.iter().map(|choice| {
                        let mut one = before.clone();
                        one.insert(*arg, *choice);
                        one
                    })
                });
                made = extended.collect();
                if made.len() > MAX_ALTERNATIVES {
                    return None;
                }
            }
            all.extend(made);
            if all.len() > MAX_ALTERNATIVES {
                return None;
            }
        }
        Some(all)
    }
}

/// The argument of an operand, if it is one.
fn argument(operand: Operand) -> Option<u8> {
    match operand.source {
        OperandSource::Arg(arg) => Some(arg.index() as u8),
        OperandSource::Ip | OperandSource::Variable(_) => None,
    }
}

/// The alternatives not covered by others, sorted, without tests that always hold.
fn without_covered(mut list: Vec<Alternative>) -> Vec<Alternative> {
    for alternative in &mut list {
        alternative.retain(|_, values| !matches!(values, Values::Bits { mask: 0, .. }));
    }
    list.sort();
    list.dedup();
    let is_covered = |index: usize| {
        let mut others = list.iter().enumerate();
        others.any(|(other, wider)| other != index && covers(wider, &list[index]))
    };
    let kept = (0..list.len()).filter(|index| !is_covered(*index));
    kept.map(|index| list[index].clone()).collect()
}

/// The same without alternatives that the others cover together, as far as [`MAX_SPLITS`] permits.
fn irredundant(mut list: Vec<Alternative>) -> Vec<Alternative> {
    let mut splits = MAX_SPLITS;
    for index in (0..list.len()).rev() {
        let one = list.remove(index);
        if !is_within(&one, &list, &mut splits) {
            list.insert(index, one);
        }
    }
    list
}

/// Whether others cover an alternative together: each of its halves by a bit that one of them tests.
fn is_within(one: &Alternative, others: &[Alternative], splits: &mut u32) -> bool {
    if others.iter().any(|other| covers(other, one)) {
        return true;
    }
    let Some((arg, bit)) = others.iter().find_map(|other| untested_bit(one, other)) else {
        return false;
    };
    let Some(left) = splits.checked_sub(1) else {
        return false;
    };
    *splits = left;
    let (mask, value) = bits_of(one, arg).unwrap_or_default();
    [value, value | bit].into_iter().all(|value| {
        let mut half = one.clone();
        half.insert(
            arg,
            Values::Bits {
                mask: mask | bit,
                value,
            },
        );
        is_within(&half, others, splits)
    })
}

/// A bit that only the second of two alternatives tests, if a call may satisfy both.
fn untested_bit(one: &Alternative, other: &Alternative) -> Option<(u8, u64)> {
    let mut found = None;
    for arg in other.keys() {
        let (mask, value) = bits_of(other, *arg)?;
        let (own_mask, own) = bits_of(one, *arg)?;
        if (value ^ own) & mask & own_mask != 0 {
            return None;
        }
        let untested = mask & !own_mask;
        if untested != 0 && found.is_none() {
            found = Some((*arg, untested & untested.wrapping_neg()));
        }
    }
    found
}

/// The bits of an argument that are tested, and their values; `None` if the test isn't one of bits.
fn bits_of(alternative: &Alternative, arg: u8) -> Option<(u64, u64)> {
    match alternative.get(&arg) {
        None => Some((0, 0)),
        Some(Values::Bits { mask, value }) => Some((*mask, *value)),
        Some(_) => None,
    }
}

/// Whether `narrower` implies `wider`.
fn covers(wider: &Alternative, narrower: &Alternative) -> bool {
    wider
        .iter()
        .all(|(arg, wide)| match (wide, narrower.get(arg)) {
            (
                Values::Bits { mask, value },
                Some(Values::Bits {
                    mask: own,
                    value: bits,
                }),
            ) => own & mask == *mask && bits & mask == *value,
            (wide, Some(narrow)) => wide == narrow,
            (_, None) => false,
        })
}

#[cfg(test)]
mod tests {
    use tamis_abi::ArgIndex;
    use tamis_rules::CmpOp;

    use super::*;

    const FORM: Form = Form {
        is_wide: true,
        max_number: u64::MAX,
        may_cut: false,
        is_explicit: false,
    };
    const ARG: Operand = Operand::arg(ArgIndex::ALL[1]);

    fn tests_of(when: &Predicate) -> Vec<Values> {
        let alternatives = FORM.alternatives(when).expect("it can be said").list;
        alternatives
            .iter()
            .map(|alternative| alternative[&1])
            .collect()
    }

    #[test]
    fn none_of_several_values_under_a_mask_is_said_by_their_bits() {
        let masked = |value| {
            Predicate::Test(Test::Masked {
                operand: Operand::arg_low(ArgIndex::ALL[1]),
                mask: 0xfff7_fffb,
                value,
            })
        };
        let none = Predicate::Not(Box::new(Predicate::Any([0, 1, 2].map(masked).to_vec())));
        let tests = tests_of(&none);
        // Each other bit of the mask, and both of these.
        assert_eq!(tests.len(), 28 + 1, "{tests:?}");
        let both = Values::Bits { mask: 3, value: 3 };
        assert!(tests.contains(&both), "{tests:?}");
    }

    #[test]
    fn a_range_is_made_of_blocks() {
        let range = Predicate::All(vec![
            Predicate::compare(ARG, CmpOp::Ge, 2),
            Predicate::compare(ARG, CmpOp::Le, 10),
        ]);
        let bits = |free: u64, value| Values::Bits { mask: !free, value };
        assert_eq!(
            tests_of(&range),
            [bits(3, 4), bits(1, 2), bits(1, 8), bits(0, 10)]
        );
    }

    #[test]
    fn lower_halves_are_masks() {
        let low = Operand::arg_low(ArgIndex::ALL[1]);
        let one = Values::Bits {
            mask: 0xffff_ffff,
            value: 5,
        };
        assert_eq!(tests_of(&Predicate::compare(low, CmpOp::Eq, 5)), [one]);
        let narrow = Form {
            is_wide: false,
            ..FORM
        };
        let alternatives = narrow.alternatives(&Predicate::compare(low, CmpOp::Gt, 5));
        let list = alternatives.expect("it can be said").list;
        assert_eq!(list, [Alternative::from([(1, Values::AtLeast(6))])]);
    }

    #[test]
    fn what_cannot_be_said_is_left_out_only_if_it_may() {
        let ip = Operand {
            source: OperandSource::Ip,
            part: Part::Full,
        };
        let either = Predicate::Any(vec![
            Predicate::compare(ip, CmpOp::Eq, 5),
            Predicate::compare(ARG, CmpOp::Ne, 5),
        ]);
        assert_eq!(FORM.alternatives(&either), None);
        let form = Form {
            may_cut: true,
            ..FORM
        };
        let cut = form.alternatives(&either).expect("the rest can be said");
        assert!(cut.is_cut);
        assert_eq!(cut.list, [Alternative::from([(1, Values::Not(5))])]);
    }

    #[test]
    fn what_others_cover_together_is_left_out() {
        let bits = |mask, value| Alternative::from([(1, Values::Bits { mask, value })]);
        // 4 and 6, 7 and 3, 6 and 7.
        let list = vec![bits(5, 4), bits(3, 3), bits(6, 6)];
        assert_eq!(irredundant(list), [bits(5, 4), bits(3, 3)]);
        let list = vec![bits(5, 4), bits(7, 3), bits(6, 6)];
        assert_eq!(irredundant(list.clone()), list);
    }
}
