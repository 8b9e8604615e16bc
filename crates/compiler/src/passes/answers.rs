//! Assumed answers to questions, as a stack: added at the end, and removed from the end.
//!
//! Most stacks are short with few lookups; these compare the answers one by one. Hashes are computed only for longer
//! stacks, and only at a lookup: without a lookup an answer costs nothing.

use std::hash::Hash;
use std::ops::Deref;

use crate::hash::hash_of;
use rustc_hash::FxHashMap;

/// The most answers that are compared one by one.
const FEW: usize = 8;

/// Answers to questions, each question behind a pointer.
pub(super) struct Answers<Q> {
    list: Vec<Answer<Q>>,
    /// The number of answers, from the first on, that are in the hash table.
    hashed: usize,
    /// By hash, the latest answer.
    by_hash: FxHashMap<u64, usize>,
}

struct Answer<Q> {
    /// `None` once the answer is removed.
    question: Option<Q>,
    holds: bool,
    hash: u64,
    /// The previous answer with the same hash.
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
    /// The number of answers added.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Adds an answer; an earlier one to the same question takes precedence.
    pub(super) fn add(&mut self, question: Q, holds: bool) {
        self.list.push(Answer {
            question: Some(question),
            holds,
            hash: 0,
            previous: None,
        });
    }

    /// The answer to a question, if there is one.
    pub(super) fn get(&mut self, question: &Q::Target) -> Option<bool> {
        self.find(question).map(|place| self.list[place].holds)
    }

    /// Removes the answers to a question.
    pub(super) fn remove(&mut self, question: &Q::Target) {
        while let Some(place) = self.find(question) {
            self.list[place].question = None;
        }
    }

    /// Removes all but the first `len` answers.
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

    /// The index of the first answer to a question.
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
            // No lookup finds a removed answer.
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
