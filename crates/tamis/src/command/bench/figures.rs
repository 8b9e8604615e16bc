//! Expected figures of the cases, without timing, and the kernel's decisions to skip filters.

use std::collections::HashMap;

use tamis_abi::{Action, SeccompData};
use tamis_bpf::Program;
use tamis_compiler::meter::{Sample, Workload, measure};
use tamis_kernel::measure::{MeasureError, bitmap};

use super::cases::{Case, Cases};
use super::timed_stacks::{Answer, TimedStack};
use crate::cli::load;

/// A subject's expected figures for the calls of a case, on average.
pub(super) struct ExpectedFigures {
    /// The instructions that its filters execute if they are run for each call.
    pub(super) mean_steps: f64,
    /// The same, with 0 for calls that a kernel with a bitmap allows without the filters.
    pub(super) mean_executed_steps: f64,
    /// The share of the calls that such a kernel allows without the filters; `None` without filters.
    pub(super) expected_cached_share: Option<f64>,
    /// The actions, the most frequent first, with their shares.
    pub(super) answers: Vec<(Action, f64)>,
    /// The share of the calls that are executed.
    pub(super) made_share: f64,
}

impl ExpectedFigures {
    /// The expected figures of a subject for some calls.
    pub(super) fn measured(subject: &TimedStack, calls: &[SeccompData]) -> ExpectedFigures {
        let workload = Workload::of_calls(load::native_arch(), calls);
        let cost = measure(subject.installed.programs(), &workload, true);
        let whole = cost.all().calls;
        let (mut answers, mut made_share): (Vec<(Action, f64)>, f64) = (Vec::new(), 0.0);
        for Sample { data, weight, .. } in workload.samples() {
            let Answer { action, is_made } = subject.answer(data);
            let share = weight / whole;
            if is_made {
                made_share += share;
            }
            match answers.iter_mut().find(|(known, _)| *known == action) {
                Some((_, known)) => *known += share,
                None => answers.push((action, share)),
            }
        }
        answers.sort_by(|a, b| b.1.total_cmp(&a.1));
        ExpectedFigures {
            mean_steps: cost.all().mean_steps(),
            mean_executed_steps: cost.mean_executed_steps(),
            expected_cached_share: subject.has_filters().then(|| cost.cached_share()),
            answers,
            made_share,
        }
    }
}

/// A call's architecture and number, the kernel's key for skipping filters.
const fn number(call: &SeccompData) -> (u32, u32) {
    (call.arch, call.nr)
}

/// The numbers with skipped filters, measured on the kernel: per subject.
pub(super) struct SkippedFilters(Vec<HashMap<(u32, u32), bool>>);

impl SkippedFilters {
    /// Measures all numbers of the cases.
    ///
    /// # Errors
    /// See [`MeasureError`].
    pub(super) fn ask(
        subjects: &[TimedStack],
        cases: &Cases,
    ) -> Result<SkippedFilters, MeasureError> {
        let mut calls: Vec<SeccompData> = Vec::new();
        for call in cases.iter().flat_map(|case| &case.made) {
            if !calls.iter().any(|known| number(known) == number(call)) {
                calls.push(*call);
            }
        }
        let stacks: Vec<Vec<Program>> = subjects
            .iter()
            .map(|subject| subject.installed.programs().to_vec())
            .collect();
        let answers = bitmap::skips_filters(&stacks, &calls)?;
        let known = answers.into_iter().map(|answers| {
            let pairs = calls.iter().zip(answers);
            pairs
                .filter_map(|(call, answer)| Some((number(call), answer?)))
                .collect()
        });
        Ok(SkippedFilters(known.collect()))
    }

    /// The share of a case's calls that the kernel allows without a subject's filters; `None` if one of them is
    /// unknown.
    pub(super) fn share(&self, subject: usize, case: &Case) -> Option<f64> {
        let known = &self.0[subject];
        let mut skipped = 0_usize;
        for call in &case.made {
            skipped += usize::from(*known.get(&number(call))?);
        }
        Some(skipped as f64 / case.made.len().max(1) as f64)
    }
}
