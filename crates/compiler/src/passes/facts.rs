//! What is known about a call where a condition is asked, and what a condition comes to there.
//!
//! A part of a list matters only where the other parts leave the answer open: in `all(a, b)` the answer
//! to `b` is of interest where `a` holds, in `any(a, b)` where it doesn't. [`Facts`] collects such
//! assumptions: per argument the possible values of the whole and of both halves and the known bits, and
//! for all other predicates the answer itself, by structure. [`Facts::simplify`] replaces parts whose
//! answer is known. One part is replaced at a time, knowing the other parts as they are by then, so no
//! two parts vanish because of each other.
//!
//! # What it doesn't do
//! It is not complete: comparisons of two operands and masks of several bits that don't hold are known
//! by structure only. To stay near-linear, at most [`MAX_LITERALS`] tests of an argument in one list are
//! compared with each other, and [`knowledge`](super::knowledge) ignores large value sets.

use std::collections::BTreeMap;

use tamis_rules::{Operand, Part, Predicate, Subject, Test};

use super::knowledge::Knowledge;
use super::shape::{Kind, values};
use crate::hash::FastMap;

/// The most tests of one argument in a list that are compared with each other.
const MAX_LITERALS: usize = 32;

/// Assumptions, and how to take them back.
#[derive(Default)]
pub(super) struct Facts {
    subjects: BTreeMap<Subject, Knowledge>,
    answers: FastMap<Predicate, bool>,
    /// How many of the answers are to tests.
    tests: usize,
    log: Vec<Undo>,
}

enum Undo {
    Subject(Subject, Option<Knowledge>),
    Answer(Predicate),
}

impl Facts {
    /// Whether nothing is assumed.
    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Assumes that a predicate holds, or that it doesn't.
    pub(super) fn assume(&mut self, predicate: &Predicate, holds: bool) {
        match predicate {
            Predicate::Not(inner) => return self.assume(inner, !holds),
            Predicate::All(parts) if holds => parts.iter().for_each(|part| self.assume(part, true)),
            Predicate::Any(parts) if !holds => {
                parts.iter().for_each(|part| self.assume(part, false));
            }
            Predicate::Test(test) => self.learn(test, holds),
            Predicate::True | Predicate::False | Predicate::All(_) | Predicate::Any(_) => {}
        }
        self.note(predicate, holds);
    }

    /// Assumes an answer without drawing conclusions about the parts.
    fn note(&mut self, predicate: &Predicate, holds: bool) {
        let has_structure = !matches!(
            predicate,
            Predicate::True | Predicate::False | Predicate::Not(_)
        );
        if has_structure && !self.answers.contains_key(predicate) {
            self.answers.insert(predicate.clone(), holds);
            self.tests += usize::from(matches!(predicate, Predicate::Test(_)));
            self.log.push(Undo::Answer(predicate.clone()));
        }
    }

    fn learn(&mut self, test: &Test, holds: bool) {
        let Some(subject) = subject_of(test) else {
            return;
        };
        let known = self.subjects.get(&subject);
        let learnt = known.cloned().unwrap_or_default().and(test, holds);
        if known != Some(&learnt) {
            let before = self.subjects.insert(subject, learnt);
            self.log.push(Undo::Subject(subject, before));
        }
    }

    fn take_back(&mut self, to: usize) {
        while self.log.len() > to {
            match self.log.pop() {
                Some(Undo::Subject(subject, Some(known))) => {
                    self.subjects.insert(subject, known);
                }
                Some(Undo::Subject(subject, None)) => {
                    self.subjects.remove(&subject);
                }
                Some(Undo::Answer(predicate)) => {
                    self.answers.remove(&predicate);
                    self.tests -= usize::from(matches!(predicate, Predicate::Test(_)));
                }
                None => {}
            }
        }
    }

    /// The answer to a predicate, if it is known.
    fn answer(&self, predicate: &Predicate) -> Option<bool> {
        match predicate {
            Predicate::True => Some(true),
            Predicate::False => Some(false),
            Predicate::Not(inner) => self.answer(inner).map(|answer| !answer),
            Predicate::Test(test) => {
                let known = subject_of(test).and_then(|subject| self.subjects.get(&subject));
                known
                    .and_then(|known| known.answer(test))
                    .or_else(|| self.answers.get(predicate).copied())
            }
            Predicate::All(_) | Predicate::Any(_) => self.answers.get(predicate).copied(),
        }
    }

    /// A predicate that answers the same where the assumptions hold, with fewer parts if possible.
    pub(super) fn simplify(&mut self, predicate: &Predicate) -> Predicate {
        match self.answer(predicate) {
            Some(answer) => constant(answer),
            None => self.simplify_inside(predicate),
        }
    }

    fn simplify_inside(&mut self, predicate: &Predicate) -> Predicate {
        match predicate {
            Predicate::True | Predicate::False => predicate.clone(),
            Predicate::Not(inner) => match self.simplify(inner) {
                Predicate::True => Predicate::False,
                Predicate::False => Predicate::True,
                other => Predicate::Not(Box::new(other)),
            },
            Predicate::Test(test) => self.simplify_test(test),
            Predicate::All(parts) => self.simplify_list(Kind::All, parts),
            Predicate::Any(parts) => self.simplify_list(Kind::Any, parts),
        }
    }

    /// A test of fewer intervals with the same answer for all possible values.
    fn simplify_test(&self, test: &Test) -> Predicate {
        let simpler = values(test).and_then(|(operand, set)| {
            let known = self.subjects.get(&operand.subject)?;
            known.simpler(operand, &set)
        });
        simpler.unwrap_or_else(|| Predicate::Test(test.clone()))
    }

    fn simplify_list(&mut self, kind: Kind, parts: &[Predicate]) -> Predicate {
        let mut parts = parts.to_vec();
        let mark = self.log.len();
        let groups = literals(&parts);
        let knows_no_test = self.subjects.is_empty() && self.tests == 0;
        if knows_no_test && groups.len() == parts.len() {
            // Tests of one argument each have nothing to tell each other.
            return kind.join(parts);
        }
        let groups = groups.iter().map(|(_, group)| group);
        let small = || groups.clone().filter(|group| group.len() <= MAX_LITERALS);
        for group in small() {
            self.compare_literals(kind, &mut parts, group);
        }
        for part in parts.iter_mut().filter(|part| literal(part).is_none()) {
            if let Some(answer) = self.answer(part) {
                *part = constant(answer);
            }
        }
        let holds = kind == Kind::All;
        for place in small().flatten() {
            self.assume(&parts[*place], holds);
        }
        for part in &parts {
            self.note(part, holds);
        }
        for part in &mut parts {
            if matches!(test_in(part), Some((Test::Between { .. }, _))) || literal(part).is_some() {
                continue;
            }
            let simplified = self.simplify_inside(part);
            if simplified != *part {
                self.answers.remove(part);
                *part = simplified;
            }
        }
        self.take_back(mark);
        let (neutral, absorbing) = (kind.neutral(), kind.dual().neutral());
        if parts.contains(&absorbing) {
            return absorbing;
        }
        parts.retain(|part| *part != neutral);
        kind.join(parts)
    }

    /// Simplifies each of a list's tests of one argument, knowing the others.
    fn compare_literals(&mut self, kind: Kind, parts: &mut [Predicate], group: &[usize]) {
        let mark = self.log.len();
        for place in group {
            for other in group.iter().filter(|other| *other != place) {
                self.assume(&parts[*other], kind == Kind::All);
            }
            parts[*place] = self.simplify(&parts[*place]);
            self.take_back(mark);
        }
    }
}

/// Whether a condition's parts have nothing to tell each other: it is a test, a list of several tests of one subject
/// each, or a list of several such lists.
pub(super) fn is_about_one_each(predicate: &Predicate) -> bool {
    match Kind::of(predicate) {
        None => matches!(predicate, Predicate::Test(_)),
        Some((_, parts)) => {
            parts.len() >= 2
                && (are_about_one_each(parts) || parts.iter().all(is_list_about_one_each))
        }
    }
}

fn is_list_about_one_each(predicate: &Predicate) -> bool {
    Kind::of(predicate).is_some_and(|(_, parts)| parts.len() >= 2 && are_about_one_each(parts))
}

/// Whether these are tests of one subject each.
fn are_about_one_each(parts: &[Predicate]) -> bool {
    let rest = |index| parts[index + 1..].iter().map(literal);
    let mut subjects = parts.iter().map(literal).enumerate();
    // There are few subjects, so that a longer list ends soon.
    subjects.all(|(index, subject)| subject.is_some() && rest(index).all(|other| other != subject))
}

const fn constant(answer: bool) -> Predicate {
    if answer {
        Predicate::True
    } else {
        Predicate::False
    }
}

/// The test that a predicate is, and whether the predicate holds where the test does.
fn test_in(predicate: &Predicate) -> Option<(&Test, bool)> {
    match predicate {
        Predicate::Test(test) => Some((test, true)),
        Predicate::Not(inner) => test_in(inner).map(|(test, holds)| (test, !holds)),
        _ => None,
    }
}

/// What a predicate is about if it is a test, or a negated one, of one subject with constants.
fn literal(predicate: &Predicate) -> Option<Subject> {
    test_in(predicate).and_then(|(test, _)| subject_of(test))
}

fn is_about_the_whole(predicate: &Predicate) -> bool {
    let operand = test_in(predicate).and_then(|(test, _)| operand_of(test));
    operand.is_some_and(|operand| operand.part == Part::Full)
}

fn subject_of(test: &Test) -> Option<Subject> {
    operand_of(test).map(|operand| operand.subject)
}

const fn operand_of(test: &Test) -> Option<Operand> {
    match test {
        Test::Compare { operand, .. } | Test::Masked { operand, .. } | Test::In { operand, .. } => {
            Some(*operand)
        }
        Test::Between { .. } => None,
    }
}

/// The places of the tests of each subject, by subject: those of the whole value first, since they cost most.
fn literals(parts: &[Predicate]) -> Vec<(Subject, Vec<usize>)> {
    let mut groups: Vec<(Subject, Vec<usize>)> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let Some(subject) = literal(part) else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == subject) {
            Some((_, group)) => group.push(place),
            None => groups.push((subject, vec![place])),
        }
    }
    groups.sort_unstable_by_key(|(subject, _)| *subject);
    for (_, group) in &mut groups {
        group.sort_by_key(|place| !is_about_the_whole(&parts[*place]));
    }
    groups
}
