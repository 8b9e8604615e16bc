//! Answers that are taken as given, in the order in which they were, and taken back in reverse.
//!
//! Few questions are asked about few answers, and those are compared one by one. Hashes are made once there are
//! many, and only for what is there when a question comes: an answer that nobody asks for costs nothing.

use std::hash::Hash;
use std::ops::Deref;

use crate::hash::hash_of;
use rustc_hash::FxHashMap;

/// So many answers are compared one by one.
const FEW: usize = 8;

/// Answers to questions, each behind a pointer.
pub(super) struct Answers<Q> {
    list: Vec<Answer<Q>>,
    /// How many of them, from the first on, are found by hash.
    hashed: usize,
    /// The latest of those with a hash.
    by_hash: FxHashMap<u64, usize>,
}

struct Answer<Q> {
    /// None once the answer was forgotten.
    question: Option<Q>,
    holds: bool,
    hash: u64,
    /// The one before with the same hash.
    previous: Option<usize>,
}

impl<Q> Default for Answers<Q> {
    fn default() -> Answers<Q> {
        Answers {
            list: Vec::new(),
            hashed: 0,
            by_hash: FxHashMap::default(),
        }
    }
}

impl<Q: Deref<Target: Hash + Eq + Sized>> Answers<Q> {
    /// How many were given.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Takes an answer as given; an earlier one to the same question counts instead.
    pub(super) fn add(&mut self, question: Q, holds: bool) {
        self.list.push(Answer {
            question: Some(question),
            holds,
            hash: 0,
            previous: None,
        });
    }

    /// The answer to a question, if it was given.
    pub(super) fn get(&mut self, question: &Q::Target) -> Option<bool> {
        self.find(question).map(|place| self.list[place].holds)
    }

    /// Removes the answers to a question.
    pub(super) fn remove(&mut self, question: &Q::Target) {
        while let Some(place) = self.find(question) {
            self.list[place].question = None;
        }
    }

    /// Takes back all but so many of the first.
    pub(super) fn truncate(&mut self, len: usize) {
        while self.hashed > len {
            self.hashed -= 1;
            let Answer { hash, previous, .. } = self.list[self.hashed];
            match previous {
                Some(previous) => self.by_hash.insert(hash, previous),
                None => self.by_hash.remove(&hash),
            };
        }
        self.list.truncate(len);
    }

    /// The place of the first answer to a question.
    fn find(&mut self, question: &Q::Target) -> Option<usize> {
        let eq = |answer: &Answer<Q>| answer.question.as_deref() == Some(question);
        if self.list.len() <= FEW {
            return self.list.iter().position(eq);
        }
        self.hash_all();
        let latest = self.by_hash.get(&hash_of(question)).copied();
        let places = std::iter::successors(latest, |place| self.list[*place].previous);
        places.filter(|place| eq(&self.list[*place])).last()
    }

    fn hash_all(&mut self) {
        for place in self.hashed..self.list.len() {
            let answer = &mut self.list[place];
            // What was forgotten is found by nobody.
            answer.hash = answer.question.as_deref().map_or(0, hash_of);
            answer.previous = self.by_hash.insert(answer.hash, place);
        }
        self.hashed = self.list.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_counts_until_it_is_taken_back_or_forgotten() {
        for count in [3, 40] {
            let mut answers = Answers::default();
            let questions: Vec<u32> = (0..count).collect();
            for question in &questions {
                answers.add(question, question % 2 == 0);
            }
            for question in &questions {
                answers.add(question, question % 2 == 1);
                assert_eq!(answers.get(question), Some(question % 2 == 0));
            }
            answers.remove(&1);
            assert_eq!((answers.get(&1), answers.get(&2)), (None, Some(true)));
            answers.truncate(2);
            assert_eq!((answers.get(&0), answers.get(&2)), (Some(true), None));
            answers.add(&2, false);
            assert_eq!(answers.get(&2), Some(false));
        }
    }
}
