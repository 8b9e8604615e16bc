//! Doubts about figures: noise, contradictions, and differences between requested and measured calls.

use tamis_kernel::measure::{CALLS_PER_BATCH, Timing};
use tamis_report::bench::{CallEntry, ResultEntry};
use tamis_report::entry::counted;

use super::cases::Case;
use super::figures::ExpectedFigures;
use super::report::Findings;
use super::timed_stacks::NONE;

/// The spread between fastest and median batch above which a machine counts as noisy.
const MAX_QUIET_SPREAD: f64 = 0.2;
/// The coarsest acceptable resolution of the clock, per call.
const MAX_GRANULARITY_NS: f64 = 0.5;
/// The maximum drift of a clock, as a part of its rate: less than 0.1 ns of a call.
const MAX_DRIFT: f64 = 0.001;
/// Shares below this are not worth a note.
const MIN_SHARE: f64 = 0.005;
/// Differences of mean steps below this come from rounding.
const MIN_STEPS: f64 = 1e-6;

/// Notes about the machine and the whole measurement.
pub(super) fn of_machine(findings: &Findings<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let measurement = findings.measurement;
    let timings = measurement
        .subjects
        .iter()
        .flat_map(|subject| &subject.calls);
    let spread = |timing: &Timing| (timing.median_ns - timing.min_ns) / timing.min_ns;
    let worst = timings.map(spread).fold(0.0, f64::max);
    if worst > MAX_QUIET_SPREAD {
        notes.push(format!(
            "the machine is noisy: a median is up to {:.0} % above its minimum; use the minima",
            worst * 100.0
        ));
    }
    if !measurement.is_settled {
        notes.push(format!(
            "the minima were not stable after {}: use more rounds, or a quieter machine",
            counted(measurement.rounds, "round")
        ));
    }
    let per_call_ns = measurement.clock.granularity_ns / CALLS_PER_BATCH as f64;
    if per_call_ns > MAX_GRANULARITY_NS {
        notes.push(format!(
            "the clock's resolution is {:.0} ns: the time of a call is accurate to {per_call_ns:.1} ns",
            measurement.clock.granularity_ns
        ));
    }
    if measurement.clock.drift > MAX_DRIFT {
        notes.push(format!(
            "the clock's rate changed by {:.2} % between rounds: this processor's time-stamp counter is not \
             a reliable clock",
            measurement.clock.drift * 100.0
        ));
    }
    let probe = findings.probe;
    if let Some(filters) = probe.filters.filter(|filters| *filters > 0) {
        notes.push(format!(
            "this process already has {}: `no filter` means no additional one, and the kernel \
             skips only calls that they allow, too",
            counted(filters, "filter")
        ));
    }
    if probe.jit.enable == Some(0) {
        notes.push("the BPF JIT is off: filters are interpreted".to_owned());
    }
    if let Some(error) = findings
        .memory
        .iter()
        .find_map(|memory| memory.as_ref().err())
    {
        notes.push(format!("memory is unknown: {error}"));
    }
    notes
}

/// Notes about one call; `wanted` has each subject's expected figures for the requested calls.
pub(super) fn of_call(entry: &CallEntry, case: &Case, wanted: &[ExpectedFigures]) -> Vec<String> {
    let mut notes = Vec::new();
    let none = &entry.results[NONE];
    for (result, wanted) in entry.results.iter().zip(wanted) {
        notes.extend(faster_than_nothing(&entry.name, result, none));
        notes.extend(unexpected_cache(&entry.name, result));
        notes.extend(other_path(&entry.name, result, wanted));
        if case.made.len() > 1 {
            notes.extend(denied(&entry.name, result));
        }
    }
    notes
}

/// A filter that allows the calls but seems to make them faster, by more than the noise.
fn faster_than_nothing(name: &str, result: &ResultEntry, none: &ResultEntry) -> Option<String> {
    let spread = |result: &ResultEntry| result.median_ns - result.min_ns;
    let gain_ns = -result.over_none_min_ns?;
    let is_gain = gain_ns > spread(none).max(spread(result));
    (result.made_share > 1.0 - MIN_SHARE && is_gain).then(|| {
        format!(
            "{name} seems {gain_ns:.1} ns faster under {} than without a filter, which is impossible: use \
             more rounds or a quieter machine",
            result.filter
        )
    })
}

/// A kernel that skips filters contrary to its rules, or runs filters that its rules skip.
fn unexpected_cache(name: &str, result: &ResultEntry) -> Option<String> {
    let (seen, expected) = result.cached_share.zip(result.expected_cached_share)?;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    ((seen - expected).abs() > 1e-9).then(|| {
        format!(
            "{name} under {}: by its time the kernel skips the filter for {} of the calls, by its rules for {}",
            result.filter,
            percent(seen),
            percent(expected)
        )
    })
}

/// A stand-in that takes another path through the filter than the requested call.
fn other_path(name: &str, result: &ResultEntry, wanted: &ExpectedFigures) -> Option<String> {
    let is_same = (result.mean_steps - wanted.mean_steps).abs() < MIN_STEPS;
    let first = |action: Option<String>| action.unwrap_or_default();
    let answer = first(result.answers.first().map(|answer| answer.action.clone()));
    let wanted_answer = first(wanted.answers.first().map(|(action, _)| action.to_string()));
    (!is_same || answer != wanted_answer).then(|| {
        format!(
            "{name} under {}: with the requested arguments it takes {:.1} steps and returns {wanted_answer}; \
             the stand-in takes {:.1} and returns {answer}",
            result.filter, wanted.mean_steps, result.mean_steps
        )
    })
}

/// Calls of a mix that a filter denies: they are cheap, because the kernel doesn't execute them.
fn denied(name: &str, result: &ResultEntry) -> Option<String> {
    let share = 1.0 - result.made_share;
    (share > MIN_SHARE).then(|| {
        format!(
            "{name} under {}: {:.1} % of the calls are denied, which takes less time than executing them",
            result.filter,
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use tamis_abi::Action;
    use tamis_report::bench::AnswerEntry;

    use super::*;

    /// A result without notes, next to a call that takes 80 ns.
    fn result(min_ns: f64, median_ns: f64) -> ResultEntry {
        ResultEntry {
            filter: "x.bpf".to_owned(),
            min_ns,
            median_ns,
            over_none_min_ns: Some(min_ns - 80.0),
            over_none_median_ns: Some(median_ns - 81.0),
            over_empty_min_ns: Some(0.0),
            over_empty_median_ns: Some(0.0),
            mean_steps: 5.0,
            mean_executed_steps: 5.0,
            cached_share: Some(0.0),
            expected_cached_share: Some(0.0),
            answers: vec![AnswerEntry {
                action: "allow".to_owned(),
                share: 1.0,
            }],
            made_share: 1.0,
        }
    }

    #[test]
    fn a_filter_faster_than_none_is_doubted_beyond_the_noise() {
        let none = result(80.0, 81.0);
        let doubt = |result: &ResultEntry| faster_than_nothing("getpid", result, &none);
        assert_eq!(doubt(&result(92.0, 93.0)), None);
        // Within the spread of either.
        assert_eq!(doubt(&result(79.5, 80.0)), None);
        assert_eq!(doubt(&result(75.0, 83.0)), None);
        let said = doubt(&result(75.0, 76.0)).unwrap();
        assert!(said.contains("5.0 ns faster under x.bpf"), "{said}");
        // Denied calls may be faster.
        let denied = ResultEntry {
            made_share: 0.0,
            ..result(75.0, 76.0)
        };
        assert_eq!(doubt(&denied), None);
    }

    #[test]
    fn a_bitmap_that_is_not_what_its_rules_say_is_told() {
        let cached = |seen, expected| {
            let result = ResultEntry {
                cached_share: seen,
                expected_cached_share: expected,
                ..result(90.0, 91.0)
            };
            unexpected_cache("mix", &result)
        };
        assert_eq!(cached(Some(0.25), Some(0.25)), None);
        assert_eq!(cached(None, Some(1.0)), None);
        let said = cached(Some(0.0), Some(1.0)).unwrap();
        assert!(
            said.contains("0.0 % of the calls, by its rules for 100.0 %"),
            "{said}"
        );
    }

    #[test]
    fn a_stand_in_on_another_path_is_told() {
        let wanted = |mean_steps, action| ExpectedFigures {
            mean_steps,
            mean_executed_steps: mean_steps,
            expected_cached_share: Some(0.0),
            answers: vec![(action, 1.0)],
            made_share: 1.0,
        };
        let doubt = |wanted| other_path("futex", &result(90.0, 91.0), &wanted);
        assert_eq!(doubt(wanted(5.0, Action::ALLOW)), None);
        assert!(doubt(wanted(6.0, Action::ALLOW)).is_some());
        assert!(doubt(wanted(5.0, Action::errno(1))).is_some());
    }
}
