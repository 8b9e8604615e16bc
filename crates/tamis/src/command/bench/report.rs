//! The report of a measurement.

use tamis_abi::SeccompData;
use tamis_kernel::measure::memory::{self, MemoryError};
use tamis_kernel::measure::{CALLS_PER_BATCH, Clock, Measured, Measurement, Timing};
use tamis_report::bench::{
    AnswerEntry, BenchReport, CallEntry, ClockEntry, FilterEntry, ResultEntry,
};

use super::cases::{Case, Cases};
use super::doubts;
use super::figures::{ExpectedFigures, SkippedFilters};
use super::timed_stacks::{EMPTY, NONE, TimedStack};

/// The data of the report.
pub(super) struct Findings<'a> {
    pub(super) subjects: &'a [TimedStack],
    pub(super) cases: &'a Cases,
    pub(super) measurement: &'a Measurement,
    pub(super) skipped: &'a SkippedFilters,
    /// Per subject.
    pub(super) memory: &'a [Result<u64, MemoryError>],
    pub(super) probe: &'a tamis_kernel::Probe,
    pub(super) seed: u64,
}

impl Findings<'_> {
    /// Joins the measured and the expected figures.
    pub(super) fn report(&self) -> BenchReport {
        let Findings {
            subjects,
            cases,
            measurement,
            ..
        } = self;
        let mut notes = doubts::of_machine(self);
        notes.extend(cases.only_mixed.clone());
        let mut entries = Vec::new();
        for (index, case) in cases.iter().enumerate() {
            let outcomes = |calls: &[SeccompData]| -> Vec<ExpectedFigures> {
                let subjects = subjects.iter();
                subjects
                    .map(|subject| ExpectedFigures::measured(subject, calls))
                    .collect()
            };
            let timings: Vec<Timing> = measurement
                .subjects
                .iter()
                .map(|measured| measured.calls[index])
                .collect();
            let entry = self.call(case, &timings, outcomes(&case.made));
            notes.extend(doubts::of_call(&entry, case, &outcomes(&case.wanted)));
            entries.push(entry);
        }
        let mix = cases.mix.as_ref().and_then(|_| entries.pop());
        let pairs = subjects.iter().zip(&measurement.subjects);
        BenchReport {
            kernel: self.probe.release.clone(),
            cpu: measurement.cpu,
            clock: clock(measurement.clock),
            rounds: measurement.rounds,
            is_settled: measurement.is_settled,
            seed: self.seed,
            filters: pairs
                .zip(self.memory)
                .map(|((subject, measured), memory)| {
                    filter(subject, measured, memory.as_ref().ok().copied())
                })
                .collect(),
            calls: entries,
            mix,
            not_called: cases.left_out.clone(),
            notes,
        }
    }
    fn call(&self, case: &Case, timings: &[Timing], outcomes: Vec<ExpectedFigures>) -> CallEntry {
        let subjects = self.subjects.iter().enumerate();
        let results = subjects.zip(outcomes).map(|((index, subject), outcome)| {
            let timing = timings[index];
            let is_made = outcome.made_share > 0.0;
            let over = |base: usize| {
                let base = timings[base];
                (
                    is_made.then_some(timing.min_ns - base.min_ns),
                    is_made.then_some(timing.median_ns - base.median_ns),
                )
            };
            let (over_none, over_empty) = (over(NONE), over(EMPTY));
            ResultEntry {
                filter: subject.name.clone(),
                min_ns: timing.min_ns,
                median_ns: timing.median_ns,
                over_none_min_ns: over_none.0,
                over_none_median_ns: over_none.1,
                over_empty_min_ns: over_empty.0,
                over_empty_median_ns: over_empty.1,
                mean_steps: outcome.mean_steps,
                mean_executed_steps: outcome.mean_executed_steps,
                cached_share: self.skipped.share(index, case),
                expected_cached_share: outcome.expected_cached_share,
                answers: outcome
                    .answers
                    .iter()
                    .map(|(action, share)| AnswerEntry {
                        action: action.to_string(),
                        share: *share,
                    })
                    .collect(),
                made_share: outcome.made_share,
            }
        });
        CallEntry {
            name: case.name.clone(),
            called_as: case.described(),
            share: case.share,
            stand_ins: case.stand_ins.clone(),
            results: results.collect(),
        }
    }
}

fn clock(clock: Clock) -> ClockEntry {
    ClockEntry {
        name: clock.name,
        ns_per_tick: clock.ns_per_tick,
        granularity_ns: clock.granularity_ns,
        reading_ns: clock.reading_ns,
        drift: clock.drift,
        calls_per_batch: CALLS_PER_BATCH,
        per_call_ns: clock.granularity_ns / CALLS_PER_BATCH as f64,
    }
}

fn filter(subject: &TimedStack, measured: &Measured, program_bytes: Option<u64>) -> FilterEntry {
    FilterEntry {
        name: subject.name.clone(),
        length_insns: subject.length_insns(),
        charge_insns: subject.installed.charge_insns(),
        program_bytes,
        install_min_ns: measured.install_ns,
        install_median_ns: measured.install_median_ns,
    }
}

/// The memory of each subject's filters.
pub(super) fn memory(subjects: &[TimedStack]) -> Vec<Result<u64, MemoryError>> {
    let bytes = |subject: &TimedStack| memory::program_bytes(subject.installed.programs());
    subjects.iter().map(bytes).collect()
}
