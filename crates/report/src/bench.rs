//! Measured costs of filters: `tamis bench`.

use std::fmt;

use serde::Serialize;
use tamis_chart::{Bar, Bars, Drawing, Group};

use crate::entry::counted;

/// The most actions of a filter that are shown for the calls of a sequence.
const MAX_ANSWERS: usize = 2;
/// The longest name of a filter, in characters.
const MAX_LABEL_CHARS: usize = 40;

/// The result of a measurement.
#[derive(Serialize)]
pub struct BenchReport {
    pub kernel: Option<String>,
    pub cpu: usize,
    pub clock: ClockEntry,
    pub rounds: u32,
    pub is_settled: bool,
    pub seed: u64,
    pub filters: Vec<FilterEntry>,
    pub calls: Vec<CallEntry>,
    pub mix: Option<CallEntry>,
    pub not_called: Vec<NotCalledEntry>,
    pub notes: Vec<String>,
}

/// The clock of the measurement.
#[derive(Serialize)]
pub struct ClockEntry {
    pub name: &'static str,
    pub ns_per_tick: f64,
    pub granularity_ns: f64,
    pub reading_ns: f64,
    pub drift: f64,
    pub calls_per_batch: usize,
    /// The resolution of a call's time, as far as the clock limits it.
    pub per_call_ns: f64,
}

/// A measured filter or stack; the first entry is no filter.
#[derive(Serialize)]
pub struct FilterEntry {
    pub name: String,
    pub length_insns: usize,
    pub charge_insns: usize,
    pub program_bytes: Option<u64>,
    pub install_min_ns: f64,
    pub install_median_ns: f64,
}

/// A call, a sequence, or the mix, with a result for each filter in their order.
#[derive(Serialize)]
pub struct CallEntry {
    pub name: String,
    pub called_as: String,
    pub share: Option<f64>,
    pub stand_ins: Vec<StandInEntry>,
    pub results: Vec<ResultEntry>,
}

/// A replacement of arguments of a call.
#[derive(Clone, Serialize, PartialEq, Eq)]
pub struct StandInEntry {
    pub call: &'static str,
    pub how: &'static str,
}

/// A call under a filter.
#[derive(Serialize)]
pub struct ResultEntry {
    pub filter: String,
    pub min_ns: f64,
    pub median_ns: f64,
    /// `None` if the filter denies all calls: their time is no gain.
    pub over_none_min_ns: Option<f64>,
    pub over_none_median_ns: Option<f64>,
    pub over_empty_min_ns: Option<f64>,
    pub over_empty_median_ns: Option<f64>,
    pub mean_steps: f64,
    pub mean_executed_steps: f64,
    pub cached_share: Option<f64>,
    pub expected_cached_share: Option<f64>,
    pub answers: Vec<AnswerEntry>,
    /// The share of calls that the kernel executed.
    pub made_share: f64,
}

/// The share of calls that get an action.
#[derive(Serialize)]
pub struct AnswerEntry {
    pub action: String,
    pub share: f64,
}

/// A requested call that was not made.
#[derive(Clone, Serialize)]
pub struct NotCalledEntry {
    pub name: String,
    pub reason: &'static str,
    pub share: Option<f64>,
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.labels();
        let widths = labels.iter().map(|label| label.chars().count());
        let width = widths.max().unwrap_or(0).max("filter".len());
        let clock = &self.clock;
        let kernel = self.kernel.as_deref().unwrap_or("of an unknown release");
        writeln!(
            f,
            "kernel {kernel}, CPU {}, clock {}: {:.3} ns per call; {}\n",
            self.cpu,
            clock.name,
            clock.per_call_ns,
            rounds(self.rounds, self.is_settled)
        )?;
        for call in self.calls_in_order() {
            call.write(f, &labels, width)?;
        }
        writeln!(
            f,
            "{:width$}  length  charge  memory  install min    median",
            "filter"
        )?;
        for (filter, label) in self.filters.iter().zip(&labels).skip(1) {
            filter.write(f, label, width)?;
        }
        for left_out in &self.not_called {
            let share = share(left_out.share);
            writeln!(
                f,
                "not called: {}{share}: {}",
                left_out.name, left_out.reason
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

impl BenchReport {
    /// Bars for the mix and each call: the time that each filter adds to the minimum, with the median as a mark.
    /// A call that is not executed has none.
    pub fn chart(&self) -> Drawing {
        Bars {
            title: "Time added to calls by a filter: minimum, and median as a mark".to_owned(),
            unit: "ns".to_owned(),
            series: self.labels().split_off(1),
            groups: self.calls_in_order().map(CallEntry::group).collect(),
        }
        .draw()
    }

    /// The mix, then the other calls.
    fn calls_in_order(&self) -> impl Iterator<Item = &CallEntry> {
        self.mix.iter().chain(&self.calls)
    }

    /// The names of the filters in tables and charts: file names without directories, if these are distinct.
    fn labels(&self) -> Vec<String> {
        let names = || self.filters.iter().map(|filter| filter.name.as_str());
        let short: Vec<String> = names().map(short).collect();
        let is_new = |(index, label): (usize, &String)| !short[..index].contains(label);
        match short.iter().enumerate().all(is_new) {
            true => short,
            false => names().map(str::to_owned).collect(),
        }
    }
}

/// The file names of a filter or a stack, without directories.
fn short(name: &str) -> String {
    let files = name.split(',').map(|path| {
        let path = path.trim_end_matches('/');
        path.rsplit_once('/').map_or(path, |(_, file)| file)
    });
    let files: Vec<&str> = files.collect();
    let short = files.join(",");
    if short.chars().count() <= MAX_LABEL_CHARS {
        return short;
    }
    let kept: String = short.chars().take(MAX_LABEL_CHARS - 1).collect();
    kept + "…"
}

impl CallEntry {
    fn group(&self) -> Group {
        let bars = self.results[1..].iter().map(|result| Bar {
            value: result.over_none_min_ns.unwrap_or(0.0),
            mark: result.over_none_median_ns,
        });
        Group {
            name: self.name.clone(),
            bars: bars.collect(),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, labels: &[String], width: usize) -> fmt::Result {
        writeln!(f, "{}{}", self.called_as, share(self.share))?;
        let mut hows: Vec<&str> = Vec::new();
        for StandInEntry { how, .. } in &self.stand_ins {
            if !hows.contains(how) {
                hows.push(how);
            }
        }
        for how in hows {
            let same = self.stand_ins.iter().filter(|entry| entry.how == how);
            let calls: Vec<&str> = same.map(|entry| entry.call).collect();
            match calls.as_slice() {
                [call] if *call == self.name => writeln!(f, "  stand-in: {how}")?,
                calls => writeln!(f, "  stand-in: {}: {how}", calls.join(", "))?,
            }
        }
        writeln!(
            f,
            "  {:width$}  {:>8} {:>8}  {:>9} {:>8}  {:>10} {:>8}  {:>6} {:>8}  {:6}  answer",
            "filter",
            "min ns",
            "median",
            "over none",
            "median",
            "over empty",
            "median",
            "steps",
            "executed",
            "cached"
        )?;
        for (result, label) in self.results.iter().zip(labels) {
            result.write(f, label, width)?;
        }
        writeln!(f)
    }
}

impl ResultEntry {
    fn write(&self, f: &mut fmt::Formatter<'_>, label: &str, width: usize) -> fmt::Result {
        writeln!(
            f,
            "  {:width$}  {:8.1} {:8.1}  {:>9} {:>8}  {:>10} {:>8}  {:>6} {:>8}  {:6}  {}",
            label,
            self.min_ns,
            self.median_ns,
            difference(self.over_none_min_ns),
            difference(self.over_none_median_ns),
            difference(self.over_empty_min_ns),
            difference(self.over_empty_median_ns),
            steps(self.mean_steps),
            steps(self.mean_executed_steps),
            self.cached(),
            self.answer()
        )
    }

    /// The share of calls for which the kernel skips the filter; the expected one, with a question mark, if it was not
    /// observed.
    fn cached(&self) -> String {
        let said = |share: f64| match share {
            0.0 => "no".to_owned(),
            1.0 => "yes".to_owned(),
            share => format!("{:.1} %", share * 100.0),
        };
        match (self.cached_share, self.expected_cached_share) {
            (Some(seen), _) => said(seen),
            (None, Some(expected)) => said(expected) + "?",
            (None, None) => "-".to_owned(),
        }
    }

    fn answer(&self) -> String {
        if let [only] = self.answers.as_slice() {
            return only.action.clone();
        }
        let shown = self.answers.iter().take(MAX_ANSWERS);
        let shown = shown.map(|answer| format!("{} {:.1} %", answer.action, answer.share * 100.0));
        let shown: Vec<String> = shown.collect();
        let more = if self.answers.len() > MAX_ANSWERS {
            ", …"
        } else {
            ""
        };
        shown.join(", ") + more
    }
}

impl FilterEntry {
    fn write(&self, f: &mut fmt::Formatter<'_>, label: &str, width: usize) -> fmt::Result {
        let memory = match self.program_bytes {
            Some(bytes) => format!("{} KiB", bytes / 1024),
            None => "-".to_owned(),
        };
        writeln!(
            f,
            "{:width$}  {:6}  {:6}  {memory:>6}  {:8.1} µs  {:8.1}",
            label,
            self.length_insns,
            self.charge_insns,
            self.install_min_ns / 1000.0,
            self.install_median_ns / 1000.0
        )
    }
}

/// A difference of times, or a dash.
fn difference(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:+.1}"))
}

/// A mean number of steps, with decimals if it is not a whole number.
fn steps(mean: f64) -> String {
    match mean.fract() == 0.0 {
        true => format!("{mean:.0}"),
        false => format!("{mean:.2}"),
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| {
        format!(", {:.1} % of the profile's calls", share * 100.0)
    })
}

/// The rounds of a measurement, and whether the minima settled.
pub(crate) fn rounds(rounds: u32, is_settled: bool) -> String {
    let settled = if is_settled { ", settled" } else { "" };
    counted(rounds, "round") + settled
}
