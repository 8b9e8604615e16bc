//! What is known of the cases without timing them, and what the kernel was asked besides.

use std::collections::HashMap;

use tamis_abi::{Action, SeccompData};
use tamis_bpf::Program;
use tamis_kernel::measure::{MeasureError, bitmap};

use super::cases::{Case, Cases};
use super::subjects::{Answer, Subject};

/// What a subject does with the calls of a case, on average.
pub(super) struct Outcome {
    /// The instructions that its filters execute if they are run for each call.
    pub(super) mean_steps: f64,
    /// The same with nothing for calls that a kernel with a bitmap lets pass.
    pub(super) mean_executed_steps: f64,
    /// How many of the calls such a kernel lets pass; `None` without filters.
    pub(super) expected_cached_share: Option<f64>,
    /// What it answers, the most frequent answer first.
    pub(super) answers: Vec<(Action, f64)>,
    /// How many of the calls are made at all.
    pub(super) made_share: f64,
}

/// Answers of one subject, each found once.
pub(super) struct Oracle<'a> {
    subject: &'a Subject,
    known: HashMap<SeccompData, Answer>,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(subject: &'a Subject) -> Oracle<'a> {
        Oracle {
            subject,
            known: HashMap::new(),
        }
    }

    /// What the subject does with some calls.
    pub(super) fn outcome(&mut self, calls: &[SeccompData]) -> Outcome {
        let mut answers: Vec<(Action, f64)> = Vec::new();
        let (mut steps, mut executed, mut cached, mut made) = (0.0, 0.0, 0.0, 0.0);
        let each = 1.0 / calls.len().max(1) as f64;
        for call in calls {
            let subject = self.subject;
            let answer = *self
                .known
                .entry(*call)
                .or_insert_with(|| subject.answer(call));
            steps += f64::from(answer.steps) * each;
            if subject.is_cacheable(call) {
                cached += each;
            } else {
                executed += f64::from(answer.steps) * each;
            }
            if answer.is_made {
                made += each;
            }
            match answers
                .iter_mut()
                .find(|(action, _)| *action == answer.action)
            {
                Some((_, share)) => *share += each,
                None => answers.push((answer.action, each)),
            }
        }
        answers.sort_by(|a, b| b.1.total_cmp(&a.1));
        Outcome {
            mean_steps: steps,
            mean_executed_steps: executed,
            expected_cached_share: subject_share(self.subject, cached),
            answers,
            made_share: made,
        }
    }
}

fn subject_share(subject: &Subject, share: f64) -> Option<f64> {
    subject.has_filters().then_some(share)
}

/// For which numbers the kernel skips the filters, asked of the kernel: per subject.
pub(super) struct Skipped(Vec<HashMap<u32, bool>>);

impl Skipped {
    /// Asks for all numbers of the cases.
    ///
    /// # Errors
    /// See [`MeasureError`].
    pub(super) fn ask(subjects: &[Subject], cases: &Cases) -> Result<Skipped, MeasureError> {
        let mut calls: Vec<SeccompData> = Vec::new();
        for call in cases.iter().flat_map(|case| &case.made) {
            if !calls.iter().any(|known| known.nr == call.nr) {
                calls.push(*call);
            }
        }
        let stacks: Vec<Vec<Program>> = subjects
            .iter()
            .map(|subject| subject.tame.programs().to_vec())
            .collect();
        let answers = bitmap::skips_filters(&stacks, &calls)?;
        let known = answers.into_iter().map(|answers| {
            let pairs = calls.iter().zip(answers);
            pairs
                .filter_map(|(call, answer)| Some((call.nr, answer?)))
                .collect()
        });
        Ok(Skipped(known.collect()))
    }

    /// How many of a case's calls the kernel lets pass without the filters of a subject; `None` if it
    /// isn't known of each.
    pub(super) fn share(&self, subject: usize, case: &Case) -> Option<f64> {
        let known = &self.0[subject];
        let mut skipped = 0_usize;
        for call in &case.made {
            skipped += usize::from(*known.get(&call.nr)?);
        }
        Some(skipped as f64 / case.made.len().max(1) as f64)
    }
}
