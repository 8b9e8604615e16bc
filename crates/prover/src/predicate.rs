//! The meaning of a predicate: the condition that it holds.
//!
//! Sets become conditions by halving, comparisons with constants are sets, comparisons of two words are relations.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use tamis_abi::Word;
use tamis_rules::{CmpOp, IntervalSet, Operand, Part, Predicate, Test};

use crate::diagram::{FALSE, Limited, Links, Node, TRUE, Variable};
use crate::order;
use crate::relation::Comparison;
use crate::space::Space;

impl Space {
    /// The condition that a predicate holds.
    pub(crate) fn predicate(&mut self, predicate: &Predicate) -> Limited<Node> {
        self.choose_by(predicate, TRUE, FALSE)
    }

    /// The function that is `yes` if the predicate holds and `no` otherwise.
    ///
    /// The tests of a conjunction create only nodes of the function, if `yes` and `no` are constants or depend on
    /// later variables only.
    fn choose_by(&mut self, predicate: &Predicate, yes: Node, no: Node) -> Limited<Node> {
        match predicate {
            Predicate::True => Ok(yes),
            Predicate::False => Ok(no),
            Predicate::Not(inner) => self.choose_by(inner, no, yes),
            Predicate::All(_) => self.choose_by_all(&required(predicate), yes, no),
            Predicate::Any(parts) => {
                let parts: Vec<&Predicate> = parts.iter().collect();
                self.choose_by_any(&parts, yes, no)
            }
            Predicate::Test(test) => self.choose_by_test(test, yes, no),
        }
    }

    fn choose_by_all(&mut self, parts: &[&Predicate], yes: Node, no: Node) -> Limited<Node> {
        if let [part] = parts {
            return self.choose_by(part, yes, no);
        }
        if self.diagram.top(yes).min(self.diagram.top(no)) != Variable::LEAF {
            let condition = self.choose_by_all(parts, TRUE, FALSE)?;
            return self.diagram.ite(condition, yes, no);
        }
        // The last test first: then every other test is above the existing nodes.
        let mut parts = parts.to_vec();
        parts.sort_by_cached_key(|part| std::cmp::Reverse(first_variable(part)));
        let mut parts = parts.into_iter();
        parts.try_fold(yes, |rest, part| self.choose_by(part, rest, no))
    }

    /// The function that is `yes` if one of the predicates holds and `no` otherwise.
    pub(crate) fn choose_by_any(
        &mut self,
        parts: &[&Predicate],
        yes: Node,
        no: Node,
    ) -> Limited<Node> {
        if let [part] = parts {
            return self.choose_by(part, yes, no);
        }
        let mut alternatives = Vec::new();
        parts
            .iter()
            .for_each(|part| add_alternatives(part, &mut alternatives));
        let mut sets: BTreeMap<Operand, Vec<RangeInclusive<u64>>> = BTreeMap::new();
        alternatives.retain(
            |alternative| match (&alternative.parts[..], &alternative.set) {
                ([_], Some((_, operand, values))) => {
                    sets.entry(*operand).or_default().extend_from_slice(values);
                    false
                }
                _ => true,
            },
        );
        if alternatives.is_empty()
            && sets.len() == 1
            && let Some((operand, ranges)) = sets.pop_first()
        {
            let set = ranges.into_iter().collect();
            return self.choose_by_set(Digits::from_operand(operand), &set, yes, no);
        }
        // If `yes` and `no` are constants, the result shares the parts of each alternative.
        let is_constant = self.diagram.top(yes).min(self.diagram.top(no)) == Variable::LEAF;
        let (holds, fails) = if is_constant {
            (yes, no)
        } else {
            (TRUE, FALSE)
        };
        let mut any = fails;
        for (operand, ranges) in sets {
            let set = ranges.into_iter().collect();
            let chosen = self.choose_by_set(Digits::from_operand(operand), &set, holds, fails)?;
            any = self.diagram.either(chosen, any, holds, fails)?;
        }
        for alternative in alternatives {
            let chosen = self.choose_by_alternative(alternative, holds, fails)?;
            any = self.diagram.either(chosen, any, holds, fails)?;
        }
        if (holds, fails) == (yes, no) {
            return Ok(any);
        }
        self.diagram.ite(any, yes, no)
    }

    fn choose_by_alternative(
        &mut self,
        alternative: Alternative<'_>,
        yes: Node,
        no: Node,
    ) -> Limited<Node> {
        let mut parts = alternative.parts;
        let Some((place, operand, values)) = alternative.set else {
            return self.choose_by_all(&parts, yes, no);
        };
        let set = values.into_iter().collect();
        let in_set = Predicate::Test(Test::In { operand, set });
        parts[place] = &in_set;
        self.choose_by_all(&parts, yes, no)
    }

    fn choose_by_test(&mut self, test: &Test, yes: Node, no: Node) -> Limited<Node> {
        match test {
            Test::Compare { operand, op, value } => self.choose_by_set(
                Digits::from_operand(*operand),
                &satisfying(*op, *value),
                yes,
                no,
            ),
            Test::In { operand, set } => {
                self.choose_by_set(Digits::from_operand(*operand), set, yes, no)
            }
            Test::Masked {
                operand,
                mask,
                value,
            } => {
                let digits = Digits::from_operand(*operand);
                if value & !mask != 0 || *value > Operand::max(*operand) {
                    return Ok(no);
                }
                if self.is_above(digits, yes, no) {
                    return self.choose_by_value(digits, *mask, *value, [yes, no]);
                }
                let condition = self.choose_by_value(digits, *mask, *value, [TRUE, FALSE])?;
                self.diagram.ite(condition, yes, no)
            }
            Test::Between { left, op, right } => {
                let condition = self.between(*left, *op, *right)?;
                self.diagram.ite(condition, yes, no)
            }
        }
    }

    /// `yes` if the number of these digits is in the set, else `no`. Proportional to the intervals of the set times
    /// the number of digits, if both depend on later variables only.
    fn choose_by_set(
        &mut self,
        digits: Digits,
        set: &IntervalSet<u64>,
        yes: Node,
        no: Node,
    ) -> Limited<Node> {
        if !self.is_above(digits, yes, no) {
            let condition = self.choose_by_set(digits, set, TRUE, FALSE)?;
            return self.diagram.ite(condition, yes, no);
        }
        // Numbers of these digits are in no other intervals.
        let intervals = set.intervals();
        let possible = intervals.partition_point(|(first, _)| *first <= digits.largest(0));
        self.choose_by_intervals(digits, 0, &intervals[..possible], [yes, no])
    }

    /// `yes` if `base` with these as its lowest digits is in one of the intervals, else `no`. Only possible
    /// intervals are given.
    fn choose_by_intervals(
        &mut self,
        mut digits: Digits,
        mut base: u64,
        mut intervals: &[(u64, u64)],
        [yes, no]: [Node; 2],
    ) -> Limited<Node> {
        let decided = |digits: Digits, base: u64, intervals: &[(u64, u64)]| match *intervals {
            [] => Some(no),
            [(first, last)] if first <= base && digits.largest(base) <= last => Some(yes),
            _ => None,
        };
        if let Some(node) = decided(digits, base, intervals) {
            return Ok(node);
        }
        let mut links = Links::new();
        let last = loop {
            match *intervals {
                [(first, last)] if first == last => {
                    break self.choose_by_value(digits, u64::MAX, first, [yes, no])?;
                }
                _ => {}
            }
            let whole = digits;
            digits.count -= 1;
            let middle = base | 1 << digits.count;
            let until = intervals.partition_point(|(first, _)| *first < middle);
            let spans = until > 0 && middle <= intervals[until - 1].1;
            let (low, high) = (
                &intervals[..until],
                &intervals[until - usize::from(spans)..],
            );
            let variable = digits.variable(digits.count);
            match (decided(digits, base, low), decided(digits, middle, high)) {
                (Some(low), Some(high)) => break self.diagram.branch(variable, low, high)?,
                (Some(low), None) if links.add(variable, low, true) => {
                    (base, intervals) = (middle, high);
                }
                (None, Some(high)) if links.add(variable, high, false) => intervals = low,
                (None, None) => {
                    let low = self.choose_by_intervals(digits, base, low, [yes, no])?;
                    let high = self.choose_by_intervals(digits, middle, high, [yes, no])?;
                    break self.diagram.branch(variable, low, high)?;
                }
                _ => break self.choose_by_intervals(whole, base, intervals, [yes, no])?,
            }
        };
        links.above(&mut self.diagram, last)
    }

    /// `yes` if the digits are the lowest bits of the value under the mask, else `no`.
    fn choose_by_value(
        &mut self,
        digits: Digits,
        mask: u64,
        value: u64,
        [yes, no]: [Node; 2],
    ) -> Limited<Node> {
        let mut matches = yes;
        for bit in (0..digits.count).filter(|bit| mask >> bit & 1 == 1) {
            matches = if value >> bit & 1 == 1 {
                self.diagram.branch(digits.variable(bit), no, matches)?
            } else {
                self.diagram.branch(digits.variable(bit), matches, no)?
            };
        }
        Ok(matches)
    }

    /// Whether both functions depend only on variables after the digits.
    fn is_above(&self, digits: Digits, yes: Node, no: Node) -> bool {
        digits.variable(0) < self.diagram.top(yes).min(self.diagram.top(no))
    }

    fn between(&mut self, left: Operand, op: CmpOp, right: Operand) -> Limited<Node> {
        match op {
            CmpOp::Eq => self.compare_values(left, right, Comparison::Equal),
            CmpOp::Gt => self.compare_values(left, right, Comparison::Greater),
            CmpOp::Ge => self.compare_values(left, right, Comparison::GreaterOrEqual),
            CmpOp::Lt => self.compare_values(right, left, Comparison::Greater),
            CmpOp::Le => self.compare_values(right, left, Comparison::GreaterOrEqual),
            CmpOp::Ne => {
                let equal = self.compare_values(left, right, Comparison::Equal)?;
                self.diagram.not(equal)
            }
        }
    }

    /// A comparison of two 64-bit values: the high halves decide, or are equal and the low halves decide.
    fn compare_values(
        &mut self,
        left: Operand,
        right: Operand,
        comparison: Comparison,
    ) -> Limited<Node> {
        let ((left_high, left_low), (right_high, right_low)) = (halves(left), halves(right));
        let diagram = &mut self.diagram;
        let low_decides = self
            .relations
            .compare(diagram, comparison, left_low, right_low)?;
        let high_equal = self.compare_high(left_high, right_high, Comparison::Equal)?;
        let high_decides = match comparison {
            Comparison::Equal => FALSE,
            Comparison::Greater | Comparison::GreaterOrEqual => {
                self.compare_high(left_high, right_high, Comparison::Greater)?
            }
        };
        self.diagram.ite(high_equal, low_decides, high_decides)
    }

    /// A comparison of two high halves; an absent one is zero.
    fn compare_high(
        &mut self,
        left: Option<Word>,
        right: Option<Word>,
        comparison: Comparison,
    ) -> Limited<Node> {
        let (word, word_is_left) = match (left, right) {
            (Some(left), Some(right)) => {
                return self
                    .relations
                    .compare(&mut self.diagram, comparison, left, right);
            }
            (None, None) if comparison == Comparison::Greater => return Ok(FALSE),
            (None, None) => return Ok(TRUE),
            (Some(left), None) => (left, true),
            (None, Some(right)) => (right, false),
        };
        let is_zero = self.choose_by_value(Digits::of_word(word), u64::MAX, 0, [TRUE, FALSE])?;
        match (comparison, word_is_left) {
            (Comparison::Equal, _) | (Comparison::GreaterOrEqual, false) => Ok(is_zero),
            (Comparison::Greater, true) => self.diagram.not(is_zero),
            (Comparison::GreaterOrEqual, true) => Ok(TRUE),
            (Comparison::Greater, false) => Ok(FALSE),
        }
    }
}

/// An alternative: the conjunction of its parts.
struct Alternative<'a> {
    parts: Vec<&'a Predicate>,
    /// A test of an operand that merges the value sets of several otherwise equal alternatives.
    set: Option<(usize, Operand, Vec<RangeInclusive<u64>>)>,
}

/// Adds the alternatives of a predicate. One that differs from the last only in the values of one operand is merged
/// with it: `any(all(a, x == 1), all(a, x == 2))` is `all(a, x in {1, 2})`.
fn add_alternatives<'a>(predicate: &'a Predicate, alternatives: &mut Vec<Alternative<'a>>) {
    if let Predicate::Any(parts) = predicate {
        return parts
            .iter()
            .for_each(|part| add_alternatives(part, alternatives));
    }
    let parts = required(predicate);
    if let Some(last) = alternatives.last_mut()
        && last.takes(&parts)
    {
        return;
    }
    let set = match parts[..] {
        [part] => value_set(part).map(|(operand, values)| (0, operand, values)),
        _ => None,
    };
    alternatives.push(Alternative { parts, set });
}

impl Alternative<'_> {
    /// Merges the values of another alternative; `false` if it differs in anything else.
    fn takes(&mut self, other: &[&Predicate]) -> bool {
        if self.parts.len() != other.len() {
            return false;
        }
        let mut pairs = self.parts.iter().zip(other);
        let Some(place) = pairs.position(|(own, other)| own != other) else {
            return true;
        };
        if pairs.any(|(own, other)| own != other) {
            return false;
        }
        let Some((operand, more)) = value_set(other[place]) else {
            return false;
        };
        if self.set.is_none() {
            self.set = value_set(self.parts[place])
                .filter(|(own, _)| *own == operand)
                .map(|(_, values)| (place, operand, values));
        }
        match &mut self.set {
            Some((known_place, known_operand, known))
                if (*known_place, *known_operand) == (place, operand) =>
            {
                known.extend(more);
                true
            }
            _ => false,
        }
    }
}

/// The parts that must hold for a predicate to hold: those of a conjunction, except for parts that always hold.
fn required(predicate: &Predicate) -> Vec<&Predicate> {
    let parts = match predicate {
        Predicate::All(parts) => parts,
        other => std::slice::from_ref(other),
    };
    parts
        .iter()
        .filter(|part| **part != Predicate::True)
        .collect()
}

/// The values for which a predicate holds, if it is a test of one operand with constants that are intervals.
fn value_set(predicate: &Predicate) -> Option<(Operand, Vec<RangeInclusive<u64>>)> {
    let Predicate::Test(test) = predicate else {
        return None;
    };
    let ranges = |set: &IntervalSet<u64>| {
        let intervals = set.intervals().iter();
        intervals.map(|(first, last)| *first..=*last).collect()
    };
    match test {
        Test::Compare { operand, op, value } => Some((*operand, ranges(&satisfying(*op, *value)))),
        Test::In { operand, set } => Some((*operand, ranges(set))),
        Test::Masked { .. } | Test::Between { .. } => None,
    }
}

/// The first variable of a predicate; greater than all variables if it has none.
fn first_variable(predicate: &Predicate) -> Variable {
    let operands = predicate.tests().flat_map(Test::operands);
    let first = operands.map(first_of_operand).min();
    first.unwrap_or(Variable::LEAF)
}

fn first_of_operand(operand: Operand) -> Variable {
    let (high, low) = halves(operand);
    order::variable(high.unwrap_or(low), 31)
}

/// The variables of a number's bits. Those of a value's high half come directly before those of its low half.
#[derive(Clone, Copy)]
struct Digits {
    /// The variable of the lowest bit.
    last: Variable,
    count: u32,
}

impl Digits {
    /// The bits of an operand.
    fn from_operand(operand: Operand) -> Digits {
        let (high, low) = halves(operand);
        let digits = Digits::of_word(low);
        match high {
            None => digits,
            Some(high) => {
                debug_assert_eq!(
                    order::variable(high, 0).0 + 1,
                    order::variable(low, 31).0,
                    "the high half comes just before the low"
                );
                Digits {
                    count: 2 * digits.count,
                    ..digits
                }
            }
        }
    }

    /// The bits of a word.
    const fn of_word(word: Word) -> Digits {
        Digits {
            last: order::variable(word, 0),
            count: u32::BITS,
        }
    }

    /// The largest number with the prefix `base`.
    fn largest(self, base: u64) -> u64 {
        base | u64::MAX.checked_shr(64 - self.count).unwrap_or(0)
    }

    /// The variable of a bit; 0 is the lowest.
    const fn variable(self, bit: u32) -> Variable {
        Variable(self.last.0 - bit)
    }
}

/// The words of an operand's value: the high half, if it isn't always zero, and the low.
fn halves(operand: Operand) -> (Option<Word>, Word) {
    let (low, high) = operand.words();
    match operand.part {
        Part::Full => (Some(high), low),
        Part::Low => (None, low),
        Part::High => (None, high),
    }
}

/// The numbers for which `number op value`.
fn satisfying(op: CmpOp, value: u64) -> IntervalSet<u64> {
    let below = || {
        value
            .checked_sub(1)
            .map(|last| 0..=last)
            .into_iter()
            .collect()
    };
    let above = || {
        value
            .checked_add(1)
            .map(|first| first..=u64::MAX)
            .into_iter()
            .collect()
    };
    match op {
        CmpOp::Eq => IntervalSet::single(value),
        CmpOp::Ne => IntervalSet::single(value).complement(),
        CmpOp::Lt => below(),
        CmpOp::Le => IntervalSet::from_iter([0..=value]),
        CmpOp::Gt => above(),
        CmpOp::Ge => IntervalSet::from_iter([value..=u64::MAX]),
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{ArgIndex, SeccompData};

    use super::*;
    use crate::Limits;
    use crate::space::Function;

    fn compare(arg: usize, op: CmpOp, value: u64) -> Predicate {
        Predicate::compare(Operand::arg(ArgIndex::ALL[arg]), op, value)
    }

    /// Alternatives that differ in one operand's values, in more, or not at all.
    fn alternatives() -> Vec<Predicate> {
        let is = |arg, value| compare(arg, CmpOp::Eq, value);
        let masked = |mask| {
            let operand = Operand::arg_low(ArgIndex::ALL[2]);
            Predicate::Test(Test::Masked {
                operand,
                mask,
                value: mask,
            })
        };
        vec![
            Predicate::All(vec![is(0, 1), is(1, 2)]),
            Predicate::All(vec![Predicate::True, is(0, 1), is(1, 3)]),
            Predicate::All(vec![is(0, 1), compare(1, CmpOp::Gt, 9)]),
            Predicate::All(vec![is(0, 4), is(1, 3)]),
            Predicate::All(vec![is(0, 4), is(1, 3), masked(1)]),
            Predicate::All(vec![is(0, 4), is(1, 3), masked(6)]),
            Predicate::All(vec![is(0, 4), is(2, 3)]),
            Predicate::Any(vec![is(3, 1), Predicate::All(vec![is(3, 2)]), is(1, 7)]),
            Predicate::Any(vec![is(3, 5), Predicate::Any(Vec::new())]),
        ]
    }

    #[test]
    fn alternatives_mean_the_same_one_by_one_and_together() {
        let all = alternatives();
        let mut space = Space::new(Limits::default());
        let leaves = [7, 9].map(|value| space.diagram.leaf(value).unwrap());
        for first in 0..all.len() {
            for step in 1..all.len() {
                let list: Vec<Predicate> = (0..all.len())
                    .map(|index| all[(first + index * step) % all.len()].clone())
                    .collect();
                let mut any = FALSE;
                for predicate in &list {
                    let holds = space.predicate(predicate).unwrap();
                    any = space.diagram.ite(holds, TRUE, any).unwrap();
                }
                let together = Predicate::Any(list);
                assert_eq!(space.predicate(&together), Ok(any), "{together:?}");
                let chosen = space.diagram.ite(any, leaves[0], leaves[1]);
                assert_eq!(space.choose_by(&together, leaves[0], leaves[1]), chosen);
            }
        }
    }

    #[test]
    fn alternatives_that_differ_in_one_operand_become_one() {
        let predicate = Predicate::Any(alternatives());
        let mut found = Vec::new();
        add_alternatives(&predicate, &mut found);
        let lens: Vec<usize> = found.iter().map(|found| found.parts.len()).collect();
        assert_eq!(lens, [2, 2, 3, 3, 2, 1, 1, 1]);
        let sets = found.iter().map(|found| found.set.as_ref());
        let lens: Vec<usize> = sets.map(|set| set.map_or(0, |set| set.2.len())).collect();
        assert_eq!(lens, [3, 0, 0, 0, 0, 2, 1, 1]);
    }

    /// Borders in which every bit, or every second one, is another test that decides one side: longer chains than
    /// are cached at a time.
    #[test]
    fn sets_of_wide_values_with_long_chains_agree_with_their_values() {
        const ALTERNATING: u64 = 0x5555_5555_5555_5555;
        const BORDERS: [u64; 6] = [1, ALTERNATING, ALTERNATING + 1, !ALTERNATING, 1 << 32, !1];
        let operand = Operand::arg(ArgIndex::ALL[0]);
        let borders = || BORDERS.into_iter().enumerate();
        let pairs =
            borders().flat_map(|(index, one)| BORDERS[index..].iter().map(move |k| (one, *k)));
        let ranges = pairs.map(|(one, other)| one.min(other)..=one.max(other));
        let mut sets: Vec<IntervalSet<u64>> =
            ranges.map(|range| [range].into_iter().collect()).collect();
        sets.extend(borders().map(|(_, k)| [0..=k].into_iter().collect()));
        sets.extend(borders().map(|(_, k)| [k..=u64::MAX].into_iter().collect()));
        sets.push(BORDERS.into_iter().collect());
        sets.push(
            [
                ALTERNATING - 1..=ALTERNATING,
                ALTERNATING + 2..=ALTERNATING + 4,
            ]
            .into_iter()
            .collect(),
        );
        let mut complements: Vec<_> = sets.iter().map(IntervalSet::complement).collect();
        sets.append(&mut complements);

        let flipped = |k: u64| (0..64).map(move |bit| k ^ 1 << bit);
        let values = BORDERS.into_iter().chain([0, u64::MAX]);
        let values: Vec<u64> = values
            .flat_map(|k| flipped(k).chain([k, k.wrapping_sub(1), k.wrapping_add(1)]))
            .collect();
        let mut space = Space::new(Limits::default());
        let mut check = |predicate: Predicate, holds: &dyn Fn(u64) -> bool| {
            let leaves = [7, 9].map(|value| space.diagram.leaf(value).unwrap());
            for [yes, no] in [[TRUE, FALSE], leaves] {
                let made = Function(space.choose_by(&predicate, yes, no).unwrap());
                for value in &values {
                    let data = SeccompData {
                        args: [*value, 0, 0, 0, 0, 0],
                        ..SeccompData::default()
                    };
                    let expected = Function(if holds(*value) { yes } else { no });
                    let expected = space.value(expected, &data.into());
                    assert_eq!(
                        space.value(made, &data.into()),
                        expected,
                        "{predicate:?} {value:#x}"
                    );
                }
            }
        };
        for set in sets {
            let within = set.clone();
            let contains = move |value| {
                let mut intervals = within.intervals().iter();
                intervals.any(|(first, last)| (*first..=*last).contains(&value))
            };
            check(Predicate::Test(Test::In { operand, set }), &contains);
        }
        for mask in [u64::MAX, ALTERNATING, !ALTERNATING, u64::MAX << 20] {
            let value = mask & 0x3333_3333_3333_3333;
            let masked = Test::Masked {
                operand,
                mask,
                value,
            };
            check(Predicate::Test(masked), &|asked| asked & mask == value);
        }
    }
}
