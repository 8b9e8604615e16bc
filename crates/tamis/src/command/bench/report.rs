//! The report of `tamis bench` as a document for programs. Text and chart are made of it.

use serde::Serialize;
use tamis_abi::SeccompData;
use tamis_kernel::measure::memory::{self, MemoryError};
use tamis_kernel::measure::{CALLS_PER_BATCH, Clock, Measured, Measurement, Timing};

use super::cases::{Case, Cases, LeftOut};
use super::doubts;
use super::figures::{ExpectedFigures, Skipped};
use super::timed_stacks::{EMPTY, NONE, TimedStack};

/// What was measured.
#[derive(Serialize)]
pub(super) struct Document {
    schema: &'static str,
    pub(super) kernel: Option<String>,
    pub(super) cpu: usize,
    pub(super) clock: ClockEntry,
    pub(super) rounds: u32,
    pub(super) is_settled: bool,
    seed: u64,
    pub(super) filters: Vec<FilterEntry>,
    pub(super) calls: Vec<CallEntry>,
    pub(super) mix: Option<CallEntry>,
    pub(super) not_called: Vec<NotCalledEntry>,
    pub(super) notes: Vec<String>,
}

/// What the time was read from.
#[derive(Serialize)]
pub(super) struct ClockEntry {
    pub(super) name: &'static str,
    ns_per_tick: f64,
    granularity_ns: f64,
    reading_ns: f64,
    drift: f64,
    calls_per_batch: usize,
    /// What a call's time is known to, by the clock's steps alone.
    pub(super) per_call_ns: f64,
}

/// One subject; the first is no filter at all.
#[derive(Serialize)]
pub(super) struct FilterEntry {
    pub(super) name: String,
    pub(super) length_insns: usize,
    pub(super) charge_insns: usize,
    pub(super) program_bytes: Option<u64>,
    pub(super) install_min_ns: f64,
    pub(super) install_median_ns: f64,
}

/// One call, one sequence, or the mix under all subjects, in their order.
#[derive(Serialize)]
pub(super) struct CallEntry {
    pub(super) name: String,
    pub(super) called_as: String,
    pub(super) share: Option<f64>,
    pub(super) stand_ins: Vec<StandInEntry>,
    pub(super) results: Vec<ResultEntry>,
}

/// What was done to the arguments of a call.
#[derive(Serialize, PartialEq, Eq)]
pub(super) struct StandInEntry {
    pub(super) call: &'static str,
    pub(super) how: &'static str,
}

/// One call under one subject.
#[derive(Serialize)]
pub(super) struct ResultEntry {
    pub(super) filter: String,
    pub(super) min_ns: f64,
    pub(super) median_ns: f64,
    /// None where no call is carried out: what is left out is no gain.
    pub(super) over_none_min_ns: Option<f64>,
    pub(super) over_none_median_ns: Option<f64>,
    pub(super) over_empty_min_ns: Option<f64>,
    pub(super) over_empty_median_ns: Option<f64>,
    pub(super) mean_steps: f64,
    pub(super) mean_executed_steps: f64,
    pub(super) cached_share: Option<f64>,
    pub(super) expected_cached_share: Option<f64>,
    pub(super) answers: Vec<AnswerEntry>,
    /// How many of the calls the kernel carried out.
    pub(super) made_share: f64,
}

/// How often a filter gives an answer.
#[derive(Serialize)]
pub(super) struct AnswerEntry {
    pub(super) action: String,
    pub(super) share: f64,
}

/// A call that was asked for and not made.
#[derive(Serialize)]
pub(super) struct NotCalledEntry {
    pub(super) name: String,
    pub(super) reason: &'static str,
    pub(super) share: Option<f64>,
}

/// Everything that the report is made of.
pub(super) struct Findings<'a> {
    pub(super) subjects: &'a [TimedStack],
    pub(super) cases: &'a Cases,
    pub(super) measurement: &'a Measurement,
    pub(super) skipped: &'a Skipped,
    /// Per subject.
    pub(super) memory: &'a [Result<u64, MemoryError>],
    pub(super) probe: &'a tamis_kernel::Probe,
    pub(super) seed: u64,
}

impl Document {
    /// Puts the figures beside what is known without measuring.
    pub(super) fn new(findings: &Findings<'_>) -> Document {
        let Findings {
            subjects,
            cases,
            measurement,
            ..
        } = findings;
        let mut notes = doubts::of_machine(findings);
        notes.extend(cases.only_mixed.clone());
        let mut entries = Vec::new();
        for (index, case) in cases.iter().enumerate() {
            let outcomes = |calls: &[SeccompData]| -> Vec<ExpectedFigures> {
                let subjects = subjects.iter();
                subjects
                    .map(|subject| ExpectedFigures::of(subject, calls))
                    .collect()
            };
            let timings: Vec<Timing> = measurement
                .subjects
                .iter()
                .map(|measured| measured.calls[index])
                .collect();
            let entry = CallEntry::new(case, findings, &timings, outcomes(&case.made));
            notes.extend(doubts::of_call(&entry, case, &outcomes(&case.wanted)));
            entries.push(entry);
        }
        let mix = cases.mix.as_ref().and_then(|_| entries.pop());
        let pairs = subjects.iter().zip(&measurement.subjects);
        Document {
            schema: "tamis.bench/1",
            kernel: findings.probe.release.clone(),
            cpu: measurement.cpu,
            clock: ClockEntry::new(measurement.clock),
            rounds: measurement.rounds,
            is_settled: measurement.is_settled,
            seed: findings.seed,
            filters: pairs
                .zip(findings.memory)
                .map(|((subject, measured), memory)| {
                    FilterEntry::new(subject, measured, memory.as_ref().ok().copied())
                })
                .collect(),
            calls: entries,
            mix,
            not_called: cases.left_out.iter().map(NotCalledEntry::new).collect(),
            notes,
        }
    }
}

impl ClockEntry {
    fn new(clock: Clock) -> ClockEntry {
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
}

impl FilterEntry {
    fn new(subject: &TimedStack, measured: &Measured, program_bytes: Option<u64>) -> FilterEntry {
        FilterEntry {
            name: subject.name.clone(),
            length_insns: subject.length_insns(),
            charge_insns: subject.installed.charge_insns(),
            program_bytes,
            install_min_ns: measured.install_ns,
            install_median_ns: measured.install_median_ns,
        }
    }
}

impl CallEntry {
    fn new(
        case: &Case,
        findings: &Findings<'_>,
        timings: &[Timing],
        outcomes: Vec<ExpectedFigures>,
    ) -> CallEntry {
        let stand_ins = case.stand_ins.iter();
        let subjects = findings.subjects.iter().enumerate();
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
                cached_share: findings.skipped.share(index, case),
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
            stand_ins: stand_ins
                .map(|(call, how)| StandInEntry { call, how })
                .collect(),
            results: results.collect(),
        }
    }
}

impl NotCalledEntry {
    fn new(left_out: &LeftOut) -> NotCalledEntry {
        NotCalledEntry {
            name: left_out.name.clone(),
            reason: left_out.reason,
            share: left_out.share,
        }
    }
}

/// The memory of each subject's filters.
pub(super) fn memory(subjects: &[TimedStack]) -> Vec<Result<u64, MemoryError>> {
    let bytes = |subject: &TimedStack| memory::program_bytes(subject.installed.programs());
    subjects.iter().map(bytes).collect()
}
