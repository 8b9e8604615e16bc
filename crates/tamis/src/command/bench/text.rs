//! The report of `tamis bench` as tables for people.

use std::fmt::Write;

use super::report::{CallEntry, Document, FilterEntry, ResultEntry, StandInEntry};

/// How many answers of a filter to the calls of a sequence are shown.
const MAX_ANSWERS: usize = 2;
/// The longest name of a filter.
const MAX_LABEL_CHARS: usize = 40;

impl Document {
    /// The same for people.
    pub(super) fn text(&self) -> String {
        let labels = self.labels();
        let widths = labels.iter().map(|label| label.chars().count());
        let width = widths.max().unwrap_or(0).max("filter".len());
        let mut text = String::new();
        let clock = &self.clock;
        let kernel = self.kernel.as_deref().unwrap_or("of an unknown release");
        let _ = writeln!(
            text,
            "kernel {kernel}, CPU {}, clock {}: {:.3} ns per call; {} rounds{}\n",
            self.cpu,
            clock.name,
            clock.per_call_ns,
            self.rounds,
            if self.is_settled { ", settled" } else { "" }
        );
        for call in self.mix.iter().chain(&self.calls) {
            call.write(&mut text, &labels, width);
        }
        let _ = writeln!(
            text,
            "{:width$}  length  charge  memory  install min    median",
            "filter"
        );
        for (filter, label) in self.filters.iter().zip(&labels).skip(1) {
            filter.write(&mut text, label, width);
        }
        for left_out in &self.not_called {
            let share = share(left_out.share);
            let _ = writeln!(
                text,
                "not called: {}{share}: {}",
                left_out.name, left_out.reason
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// What to call the filters in tables and charts: their files without the folders if that tells them
    /// apart.
    pub(super) fn labels(&self) -> Vec<String> {
        let names = || self.filters.iter().map(|filter| filter.name.as_str());
        let short: Vec<String> = names().map(short).collect();
        let is_new = |(index, label): (usize, &String)| !short[..index].contains(label);
        match short.iter().enumerate().all(is_new) {
            true => short,
            false => names().map(str::to_owned).collect(),
        }
    }
}

/// The name of a file, or of those of a stack, without folders.
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
    fn write(&self, text: &mut String, labels: &[String], width: usize) {
        let _ = writeln!(text, "{}{}", self.called_as, share(self.share));
        let mut hows: Vec<&str> = Vec::new();
        for StandInEntry { how, .. } in &self.stand_ins {
            if !hows.contains(how) {
                hows.push(how);
            }
        }
        for how in hows {
            let same = self.stand_ins.iter().filter(|entry| entry.how == how);
            let calls: Vec<&str> = same.map(|entry| entry.call).collect();
            let _ = match calls.as_slice() {
                [call] if *call == self.name => writeln!(text, "  stand-in: {how}"),
                calls => writeln!(text, "  stand-in: {}: {how}", calls.join(", ")),
            };
        }
        let _ = writeln!(
            text,
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
        );
        for (result, label) in self.results.iter().zip(labels) {
            result.write(text, label, width);
        }
        text.push('\n');
    }
}

impl ResultEntry {
    fn write(&self, text: &mut String, label: &str, width: usize) {
        let _ = writeln!(
            text,
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
        );
    }

    /// What the kernel was seen to skip; with a question mark what its rules say.
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
    fn write(&self, text: &mut String, label: &str, width: usize) {
        let memory = match self.program_bytes {
            Some(bytes) => format!("{} KiB", bytes / 1024),
            None => "-".to_owned(),
        };
        let _ = writeln!(
            text,
            "{:width$}  {:6}  {:6}  {memory:>6}  {:8.1} µs  {:8.1}",
            label,
            self.length_insns,
            self.charge_insns,
            self.install_min_ns / 1000.0,
            self.install_median_ns / 1000.0
        );
    }
}

/// How much longer something takes; a dash where that can't be said.
fn difference(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:+.1}"))
}

/// Steps, with a decimal if they are a mean.
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
