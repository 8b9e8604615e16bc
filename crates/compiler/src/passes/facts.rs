//! Facts about a call at a condition, and simplification by these facts.
//!
//! A part of a list matters only if the other parts do not decide: in `all(a, b)` the outcome of `b` matters where
//! `a` holds, in `any(a, b)` where it does not. [`Facts`] collects such assumptions: per argument the possible values
//! of the whole and of both halves and the known bits, and for all other predicates the [answer](Answers) itself, by
//! structure. [`Facts::simplify`] replaces parts with a known outcome. One part is replaced at a time, given the
//! present form of the others, so no two parts are removed because of each other.
//!
//! # What it doesn't do
//! It is not complete: comparisons of two operands, and masks of several bits that do not hold, are known by
//! structure only. To remain near-linear, at most [`MAX_LITERALS`] tests of an argument in one list are compared with
//! each other, and [`knowledge`](super::knowledge) ignores large value sets.

use std::borrow::Cow;

use tamis_rules::{Operand, OperandSource, Part, Predicate, Test};

use super::answers::Answers;
use super::knowledge::Knowledge;
use super::shape::{ListKind, values};

/// The most tests of one argument in a list that are compared with each other.
const MAX_LITERALS: usize = 32;

/// Assumptions, which can be undone in reverse order.
#[derive(Default)]
pub(super) struct Facts<'a> {
    sources: Vec<(OperandSource, Knowledge)>,
    tests: Answers<Cow<'a, Test>>,
    lists: Answers<&'a Predicate>,
    /// The previous facts about a source, if any, for each change.
    log: Vec<(OperandSource, Option<Knowledge>)>,
}

/// The number of assumptions at some time.
#[derive(Clone, Copy)]
struct Mark {
    log: usize,
    tests: usize,
    lists: usize,
}

impl<'a> Facts<'a> {
    /// Whether there are no assumptions.
    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty() && self.tests.len() + self.lists.len() == 0
    }

    /// Assumes that a predicate holds, or that it does not.
    pub(super) fn assume(&mut self, predicate: &'a Predicate, holds: bool) {
        match predicate {
            Predicate::True | Predicate::False => {}
            Predicate::Not(inner) => self.assume(inner, !holds),
            Predicate::Test(test) => self.assume_test(Cow::Borrowed(test), holds),
            Predicate::All(parts) | Predicate::Any(parts) => {
                if matches!(predicate, Predicate::All(_)) == holds {
                    parts.iter().for_each(|part| self.assume(part, holds));
                }
                self.lists.add(predicate, holds);
            }
        }
    }

    fn assume_test(&mut self, test: Cow<'a, Test>, holds: bool) {
        if let Some(source) = source_of(&test) {
            self.learn(source, &test, holds);
        }
        self.tests.add(test, holds);
    }

    fn learn(&mut self, source: OperandSource, test: &Test, holds: bool) {
        let place = self.place_of(source);
        let known = place.map(|place| &self.sources[place].1);
        let learnt = known.cloned().unwrap_or_default().and(test, holds);
        if known == Some(&learnt) {
            return;
        }
        let before = match place {
            Some(place) => Some(std::mem::replace(&mut self.sources[place].1, learnt)),
            None => {
                self.sources.push((source, learnt));
                None
            }
        };
        self.log.push((source, before));
    }

    fn place_of(&self, source: OperandSource) -> Option<usize> {
        let mut sources = self.sources.iter();
        sources.position(|(known, _)| *known == source)
    }

    fn knowledge(&self, source: OperandSource) -> Option<&Knowledge> {
        let place = self.place_of(source)?;
        Some(&self.sources[place].1)
    }

    fn mark(&self) -> Mark {
        Mark {
            log: self.log.len(),
            tests: self.tests.len(),
            lists: self.lists.len(),
        }
    }

    fn take_back(&mut self, to: Mark) {
        while self.log.len() > to.log {
            match self.log.pop() {
                Some((source, Some(before))) => {
                    if let Some(place) = self.place_of(source) {
                        self.sources[place].1 = before;
                    }
                }
                // It is the source that was added last among the present ones.
                _ => drop(self.sources.pop()),
            }
        }
        self.tests.truncate(to.tests);
        self.lists.truncate(to.lists);
    }

    /// The outcome of a predicate, if known.
    fn answer(&mut self, predicate: &Predicate) -> Option<bool> {
        match predicate {
            Predicate::True => Some(true),
            Predicate::False => Some(false),
            Predicate::Not(inner) => self.answer(inner).map(|answer| !answer),
            Predicate::Test(test) => {
                let known = source_of(test).and_then(|source| self.knowledge(source));
                let answer = known.and_then(|known| known.answer(test));
                answer.or_else(|| self.tests.get(test))
            }
            Predicate::All(_) | Predicate::Any(_) => self.lists.get(predicate),
        }
    }

    /// A predicate that is equivalent under the assumptions, with fewer parts if possible; `None` if it is not
    /// changed.
    pub(super) fn simplify(&mut self, predicate: &'a Predicate) -> Option<Predicate> {
        match self.answer(predicate) {
            Some(answer) => Some(constant(answer)).filter(|answer| answer != predicate),
            None => self.simplify_inside(predicate),
        }
    }

    fn simplify_inside(&mut self, predicate: &'a Predicate) -> Option<Predicate> {
        match predicate {
            Predicate::True | Predicate::False => None,
            Predicate::Not(inner) => match self.simplify(inner) {
                None => negated_constant(inner),
                Some(simplified) => Some(negated(simplified)),
            },
            Predicate::Test(test) => self.simplify_test(test),
            Predicate::All(parts) => self.simplify_list(ListKind::All, parts),
            Predicate::Any(parts) => self.simplify_list(ListKind::Any, parts),
        }
    }

    /// A test, or a negated one, simplified.
    fn simplify_literal(&mut self, literal: &Predicate) -> Option<Predicate> {
        if let Some(answer) = self.answer(literal) {
            return Some(constant(answer));
        }
        match literal {
            Predicate::Not(inner) => self.simplify_literal(inner).map(negated),
            Predicate::Test(test) => self.simplify_test(test),
            _ => None,
        }
    }

    /// A test with fewer intervals that is equivalent for all possible values.
    fn simplify_test(&self, test: &Test) -> Option<Predicate> {
        let (operand, set) = values(test)?;
        let known = self.knowledge(operand.source)?;
        known.simpler(operand, &set)
    }

    fn simplify_list(&mut self, kind: ListKind, given: &'a [Predicate]) -> Option<Predicate> {
        if self.sources.is_empty() && self.tests.len() == 0 && are_about_one_each(given) {
            // Tests of different arguments do not affect each other.
            return (given.len() < 2).then(|| kind.join(given.to_vec()));
        }
        let mark = self.mark();
        let mut parts: Vec<Cow<'a, Predicate>> = given.iter().map(Cow::Borrowed).collect();
        let literals = literals(given);
        let groups = literals.chunk_by(|one, other| one.source == other.source);
        let (small, large): (Vec<_>, Vec<_>) =
            groups.partition(|group| group.len() <= MAX_LITERALS);
        for group in &small {
            self.compare_literals(kind, &mut parts, group);
        }
        for part in parts.iter_mut().filter(|part| literal(part).is_none()) {
            if let Some(answer) = self.answer(part)
                && !is_constant(part)
            {
                *part = Cow::Owned(constant(answer));
            }
        }
        let holds = kind == ListKind::All;
        for literal in small.into_iter().flatten() {
            self.assume_literal(&parts[literal.place], holds);
        }
        for literal in large.into_iter().flatten() {
            self.note(&parts[literal.place], holds);
        }
        for part in parts.iter().filter(|part| literal(part).is_none()) {
            self.note(part, holds);
        }
        for part in &mut parts {
            if let Cow::Borrowed(given) = *part
                && test_in(given).is_none()
                && let Some(simplified) = self.simplify_inside(given)
            {
                self.lists.remove(given);
                *part = Cow::Owned(simplified);
            }
        }
        self.take_back(mark);
        joined(kind, parts)
    }

    /// Assumes that a test, or a negated one, holds, or that it does not.
    #[expect(
        clippy::ptr_arg,
        reason = "what is borrowed lives longer than the list"
    )]
    fn assume_literal(&mut self, literal: &Cow<'a, Predicate>, holds: bool) {
        match literal {
            Cow::Borrowed(literal) => self.assume(literal, holds),
            Cow::Owned(literal) => {
                if let Some((test, is_plain)) = test_in(literal) {
                    self.assume_test(Cow::Owned(test.clone()), holds == is_plain);
                }
            }
        }
    }

    /// Assumes an outcome without conclusions about the parts.
    #[expect(
        clippy::ptr_arg,
        reason = "what is borrowed lives longer than the list"
    )]
    fn note(&mut self, predicate: &Cow<'a, Predicate>, holds: bool) {
        match predicate {
            Cow::Borrowed(Predicate::Test(test)) => self.tests.add(Cow::Borrowed(test), holds),
            Cow::Borrowed(list @ (Predicate::All(_) | Predicate::Any(_))) => {
                self.lists.add(list, holds);
            }
            _ => {}
        }
    }

    /// Simplifies each of a list's tests of one argument, given the others.
    fn compare_literals(
        &mut self,
        kind: ListKind,
        parts: &mut [Cow<'a, Predicate>],
        group: &[Literal],
    ) {
        let mark = self.mark();
        for literal in group {
            for other in group.iter().filter(|other| other.place != literal.place) {
                self.assume_literal(&parts[other.place], kind == ListKind::All);
            }
            if let Some(simplified) = self.simplify_literal(&parts[literal.place]) {
                parts[literal.place] = Cow::Owned(simplified);
            }
            self.take_back(mark);
        }
    }
}

/// The list with these parts, or its only part; `None` if no part is changed.
fn joined(kind: ListKind, parts: Vec<Cow<'_, Predicate>>) -> Option<Predicate> {
    let (neutral, absorbing) = (kind.neutral(), kind.dual().neutral());
    if parts.iter().any(|part| **part == absorbing) {
        return Some(absorbing);
    }
    let is_new = |part: &Cow<'_, Predicate>| matches!(part, Cow::Owned(_)) || **part == neutral;
    if parts.len() >= 2 && !parts.iter().any(is_new) {
        return None;
    }
    let parts = parts.into_iter().filter(|part| **part != neutral);
    Some(kind.join(parts.map(Cow::into_owned).collect()))
}

/// Whether no part of a condition can affect another: it is a test, a list of tests of different sources, or a list
/// of such lists.
pub(super) fn is_about_one_each(predicate: &Predicate) -> bool {
    match ListKind::of(predicate) {
        None => matches!(predicate, Predicate::Test(_)),
        Some((_, parts)) => {
            parts.len() >= 2
                && (are_about_one_each(parts) || parts.iter().all(is_list_about_one_each))
        }
    }
}

fn is_list_about_one_each(predicate: &Predicate) -> bool {
    ListKind::of(predicate).is_some_and(|(_, parts)| parts.len() >= 2 && are_about_one_each(parts))
}

/// Whether these are tests of different sources.
fn are_about_one_each(parts: &[Predicate]) -> bool {
    let rest = |index| parts[index + 1..].iter().map(literal);
    let mut sources = parts.iter().map(literal).enumerate();
    // There are few sources, so in a longer list one soon repeats.
    sources.all(|(index, source)| source.is_some() && rest(index).all(|other| other != source))
}

const fn constant(answer: bool) -> Predicate {
    if answer {
        Predicate::True
    } else {
        Predicate::False
    }
}

const fn is_constant(predicate: &Predicate) -> bool {
    matches!(predicate, Predicate::True | Predicate::False)
}

fn negated(predicate: Predicate) -> Predicate {
    negated_constant(&predicate).unwrap_or_else(|| Predicate::Not(Box::new(predicate)))
}

/// The opposite constant, if the predicate is a constant.
const fn negated_constant(predicate: &Predicate) -> Option<Predicate> {
    match predicate {
        Predicate::True => Some(Predicate::False),
        Predicate::False => Some(Predicate::True),
        _ => None,
    }
}

/// The test in a predicate, and whether the predicate holds where the test does.
fn test_in(predicate: &Predicate) -> Option<(&Test, bool)> {
    match predicate {
        Predicate::Test(test) => Some((test, true)),
        Predicate::Not(inner) => test_in(inner).map(|(test, holds)| (test, !holds)),
        _ => None,
    }
}

/// The source that a predicate tests, if it is a test, or a negated one, of one source with constants.
fn literal(predicate: &Predicate) -> Option<OperandSource> {
    test_in(predicate).and_then(|(test, _)| source_of(test))
}

fn is_about_the_whole(predicate: &Predicate) -> bool {
    let operand = test_in(predicate).and_then(|(test, _)| operand_of(test));
    operand.is_some_and(|operand| operand.part == Part::Full)
}

fn source_of(test: &Test) -> Option<OperandSource> {
    operand_of(test).map(|operand| operand.source)
}

const fn operand_of(test: &Test) -> Option<Operand> {
    match test {
        Test::Compare { operand, .. } | Test::Masked { operand, .. } | Test::In { operand, .. } => {
            Some(*operand)
        }
        Test::Between { .. } => None,
    }
}

/// A part of a list that is a test, or a negated one, of one source.
struct Literal {
    source: OperandSource,
    /// False for tests of the whole value: these come first, because they cost most.
    is_about_half: bool,
    place: usize,
}

/// The literals of a list, by source.
fn literals(parts: &[Predicate]) -> Vec<Literal> {
    let literals = parts.iter().enumerate().filter_map(|(place, part)| {
        let source = literal(part)?;
        let is_about_half = !is_about_the_whole(part);
        Some(Literal {
            source,
            is_about_half,
            place,
        })
    });
    let mut literals: Vec<Literal> = literals.collect();
    literals.sort_unstable_by_key(|literal| (literal.source, literal.is_about_half, literal.place));
    literals
}
