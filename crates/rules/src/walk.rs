//! Walks over predicates: their parts, tests and operands.
//!
//! Code that examines every test - counting them, collecting operands - needs no recursion of its own. If lists and
//! negations matter, callers match on the tree itself. No meaning depends on the walks: the evaluator doesn't use
//! them, and the prover only for the order of variables and of its methods.

use std::iter;
use std::mem;
use std::slice;

use crate::predicate::{Operand, Predicate, Test};

impl Test {
    /// The operands, as written: one, or the two that are compared with each other.
    ///
    /// ```
    /// use tamis_abi::ArgIndex;
    /// use tamis_rules::{CmpOp, Operand, Test};
    /// let [left, right] = [0, 1].map(|index| Operand::arg(ArgIndex::ALL[index]));
    /// let test = Test::Between { left, op: CmpOp::Lt, right };
    /// assert!(test.operands().eq([left, right]));
    /// ```
    pub fn operands(&self) -> impl Iterator<Item = Operand> {
        let (first, second) = match self {
            Test::Compare { operand, .. }
            | Test::Masked { operand, .. }
            | Test::In { operand, .. } => (operand, None),
            Test::Between { left, right, .. } => (left, Some(right)),
        };
        iter::once(*first).chain(second.copied())
    }
}

impl Predicate {
    /// The direct parts: those of a list, or the negated one.
    fn parts(&self) -> &[Predicate] {
        match self {
            Predicate::Not(inner) => slice::from_ref(inner),
            Predicate::All(parts) | Predicate::Any(parts) => parts,
            Predicate::True | Predicate::False | Predicate::Test(_) => &[],
        }
    }

    /// The predicate and all nested ones, as written and each with its depth, which is 1 for the predicate itself.
    /// Not recursive, so the nesting may be of any depth.
    ///
    /// ```
    /// use tamis_rules::Predicate;
    /// let not = Predicate::Not(Box::new(Predicate::True));
    /// let all = Predicate::All(vec![not.clone(), Predicate::False]);
    /// let nested = [(&all, 1), (&not, 2), (&Predicate::True, 3), (&Predicate::False, 2)];
    /// assert!(all.nested().eq(nested));
    /// ```
    pub fn nested(&self) -> impl Iterator<Item = (&Predicate, usize)> {
        // The current list is not on the stack: a predicate without nested lists needs no allocation.
        let (mut list, mut depth) = (slice::from_ref(self).iter(), 1);
        let mut open = Vec::new();
        iter::from_fn(move || {
            while list.as_slice().is_empty() {
                (list, depth) = open.pop()?;
            }
            let predicate = list.next()?;
            let found = (predicate, depth);
            let parts = predicate.parts();
            if !parts.is_empty() {
                let rest = mem::replace(&mut list, parts.iter());
                if !rest.as_slice().is_empty() {
                    open.push((rest, depth));
                }
                depth += 1;
            }
            Some(found)
        })
    }

    /// The tests, as written, without recursion.
    ///
    /// ```
    /// use tamis_abi::ArgIndex;
    /// use tamis_rules::{CmpOp, Operand, Predicate};
    /// let is = |value| Predicate::compare(Operand::arg(ArgIndex::ALL[0]), CmpOp::Eq, value);
    /// let neither = Predicate::Not(Box::new(Predicate::Any(vec![is(1), is(2)])));
    /// assert_eq!(neither.tests().count(), 2);
    /// ```
    pub fn tests(&self) -> impl Iterator<Item = &Test> {
        let (mut list, mut open) = (slice::from_ref(self).iter(), Vec::new());
        iter::from_fn(move || {
            loop {
                match list.next() {
                    Some(Predicate::Test(test)) => return Some(test),
                    Some(other) => {
                        let rest = mem::replace(&mut list, other.parts().iter());
                        if !rest.as_slice().is_empty() {
                            open.push(rest);
                        }
                    }
                    None => list = open.pop()?,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::ArgIndex;

    use super::*;
    use crate::predicate::CmpOp;

    fn is(value: u64) -> Test {
        let operand = Operand::arg(ArgIndex::ALL[0]);
        let op = CmpOp::Eq;
        Test::Compare { operand, op, value }
    }

    fn not(inner: Predicate) -> Predicate {
        Predicate::Not(Box::new(inner))
    }

    /// Empty lists in the middle and at the end, with tests of the numbers 0 to 5 as written.
    fn mixed() -> Predicate {
        let test = |value| Predicate::Test(is(value));
        let last = Predicate::All(vec![test(4), not(Predicate::Any(vec![test(5)]))]);
        Predicate::Any(vec![
            test(0),
            Predicate::All(vec![test(1), Predicate::Any(Vec::new()), not(test(2))]),
            Predicate::True,
            test(3),
            last,
        ])
    }

    /// The result of [`Predicate::nested`], by recursion.
    fn by_recursion<'a>(
        predicate: &'a Predicate,
        depth: usize,
        found: &mut Vec<(&'a Predicate, usize)>,
    ) {
        found.push((predicate, depth));
        match predicate {
            Predicate::Not(inner) => by_recursion(inner, depth + 1, found),
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts
                    .iter()
                    .for_each(|part| by_recursion(part, depth + 1, found));
            }
            Predicate::True | Predicate::False | Predicate::Test(_) => {}
        }
    }

    #[test]
    fn nested_gives_every_part_once_as_written_with_its_depth() {
        for predicate in [Predicate::True, Predicate::All(Vec::new()), mixed()] {
            let mut expected = Vec::new();
            by_recursion(&predicate, 1, &mut expected);
            assert!(predicate.nested().eq(expected));
        }
    }

    #[test]
    fn tests_come_as_written() {
        let expected: Vec<Test> = (0..6).map(is).collect();
        assert!(mixed().tests().eq(&expected));
        assert_eq!(not(Predicate::False).tests().next(), None);
    }

    #[test]
    fn operands_are_those_that_the_value_of_a_test_depends_on() {
        let [operand, right] = [0, 1].map(|index| Operand::arg(ArgIndex::ALL[index]));
        let (mask, value, op) = (1, 1, CmpOp::Lt);
        let set = [1..=2].into_iter().collect();
        let of_one = [
            Test::Compare { operand, op, value },
            Test::Masked {
                operand,
                mask,
                value,
            },
            Test::In { operand, set },
        ];
        for test in of_one {
            assert!(test.operands().eq([operand]));
        }
        let left = operand;
        let between = Test::Between { left, op, right };
        assert!(between.operands().eq([left, right]));
    }
}
