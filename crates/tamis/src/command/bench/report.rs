//! The report of `tamis bench`, as a document for programs and as a table.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::{Action, ActionKind, SeccompData, call};
use tamis_kernel::NATIVE_ENDIAN;
use tamis_kernel::measure::Timing;

use super::{Calls, Measured, Measurement, Subject};

/// The spread between fastest and median batch above which a machine counts as noisy.
const MAX_QUIET_SPREAD: f64 = 0.2;

/// What was measured.
#[derive(Serialize)]
pub(super) struct Document {
    schema: &'static str,
    clock: &'static str,
    rounds: u32,
    filters: Vec<FilterEntry>,
    calls: Vec<CallEntry>,
    not_called: Vec<NotCalledEntry>,
    notes: Vec<String>,
}

/// One subject; the first is no filter at all.
#[derive(Serialize)]
struct FilterEntry {
    name: String,
    length_insns: usize,
    install_ns: f64,
}

/// One call under all subjects, in their order.
#[derive(Serialize)]
struct CallEntry {
    name: &'static str,
    called_as: String,
    results: Vec<ResultEntry>,
}

/// One call under one subject.
#[derive(Serialize)]
struct ResultEntry {
    filter: String,
    min_ns: f64,
    median_ns: f64,
    over_none_min_ns: f64,
    over_none_median_ns: f64,
    steps: u32,
    cached: bool,
    answer: String,
}

/// A call that was asked for and not made.
#[derive(Serialize)]
struct NotCalledEntry {
    name: String,
    reason: &'static str,
}

impl Document {
    /// Puts the figures, in the order of subjects and calls, beside what is known without measuring.
    pub(super) fn new(subjects: &[Subject], calls: &Calls, measurement: &Measurement) -> Document {
        let measured = &measurement.subjects;
        let mut notes = Vec::new();
        let mut entries = Vec::new();
        for (index, (call, data)) in calls.made.iter().enumerate() {
            let timings: Vec<Timing> = measured.iter().map(|m| m.calls[index]).collect();
            let pairs = subjects.iter().zip(&timings);
            entries.push(CallEntry {
                name: call.name,
                called_as: call::describe_briefly(data),
                results: pairs
                    .map(|(subject, timing)| ResultEntry::new(subject, data, *timing, timings[0]))
                    .collect(),
            });
            notes.extend(contradictions(call.name, subjects, data, &timings));
        }
        notes.extend(noise(measured));
        let pairs = subjects.iter().zip(measured);
        let left_out = calls.left_out.iter();
        Document {
            schema: "tamis.bench/1",
            clock: measurement.clock.name,
            rounds: measurement.rounds,
            filters: pairs
                .map(|(subject, measured)| FilterEntry {
                    name: subject.name.clone(),
                    length_insns: subject
                        .original
                        .programs()
                        .iter()
                        .map(tamis_bpf::Program::len)
                        .sum(),
                    install_ns: measured.install_ns,
                })
                .collect(),
            calls: entries,
            not_called: left_out
                .map(|(name, reason)| NotCalledEntry {
                    name: name.clone(),
                    reason,
                })
                .collect(),
            notes,
        }
    }

    /// The same for people.
    pub(super) fn text(&self) -> String {
        let names = self
            .filters
            .iter()
            .map(|filter| filter.name.chars().count());
        let width = names.max().unwrap_or(0).max("filter".len());
        let mut text = String::new();
        for call in &self.calls {
            let _ = writeln!(
                text,
                "{}\n  {:width$}  {:>9}  {:>9}  {:>9}  {:>5}  {:6}  answer",
                call.called_as, "filter", "ns", "over min", "median", "steps", "cached"
            );
            for result in &call.results {
                let _ = writeln!(
                    text,
                    "  {:width$}  {:9.1}  {:+9.1}  {:+9.1}  {:5}  {:6}  {}",
                    result.filter,
                    result.min_ns,
                    result.over_none_min_ns,
                    result.over_none_median_ns,
                    result.steps,
                    if result.cached { "yes" } else { "no" },
                    result.answer
                );
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{:width$}  length  install", "filter");
        for filter in &self.filters[1..] {
            let install_us = filter.install_ns / 1000.0;
            let _ = writeln!(
                text,
                "{:width$}  {:6}  {install_us:.1} µs",
                filter.name, filter.length_insns
            );
        }
        for left_out in &self.not_called {
            let _ = writeln!(text, "not called: {}: {}", left_out.name, left_out.reason);
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

impl ResultEntry {
    fn new(subject: &Subject, data: &SeccompData, timing: Timing, none: Timing) -> ResultEntry {
        let image = data.image(NATIVE_ENDIAN);
        ResultEntry {
            filter: subject.name.clone(),
            min_ns: timing.min_ns,
            median_ns: timing.median_ns,
            over_none_min_ns: timing.min_ns - none.min_ns,
            over_none_median_ns: timing.median_ns - none.median_ns,
            steps: subject.tame.run(&image).steps,
            cached: subject.is_cached(data),
            answer: Action::from_ret(subject.original.run(&image).ret).to_string(),
        }
    }
}

/// Filters that let the call through and yet seem to make it faster, by more than the noise.
fn contradictions(
    name: &str,
    subjects: &[Subject],
    data: &SeccompData,
    timings: &[Timing],
) -> Vec<String> {
    let image = data.image(NATIVE_ENDIAN);
    let spread = |timing: Timing| timing.median_ns - timing.min_ns;
    let none = timings[0];
    let mut found = Vec::new();
    for (subject, timing) in subjects.iter().zip(timings) {
        let action = Action::from_ret(subject.tame.run(&image).ret);
        let gain_ns = none.min_ns - timing.min_ns;
        if action.kind == ActionKind::Allow && gain_ns > spread(none).max(spread(*timing)) {
            found.push(format!(
                "{name} seems {gain_ns:.1} ns faster under {} than without a filter, which cannot be: \
                 take more rounds or a quieter machine",
                subject.name
            ));
        }
    }
    found
}

/// Whether the machine was noisy.
fn noise(measured: &[Measured]) -> Option<String> {
    let timings = measured.iter().flat_map(|measured| &measured.calls);
    let worst = timings
        .map(|timing| (timing.median_ns - timing.min_ns) / timing.min_ns)
        .fold(0.0, f64::max);
    (worst > MAX_QUIET_SPREAD).then(|| {
        format!(
            "the machine is noisy: the median of a call is up to {:.0} % above its minimum",
            worst * 100.0
        )
    })
}
