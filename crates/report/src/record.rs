//! The recorded calls of a program: `tamis record`.

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;
use tamis_abi::{Arch, Nr, syscall};
use tamis_profile::{Call, Profile};

use crate::entry::counted;

/// A recording.
#[derive(Serialize)]
pub struct RecordReport {
    pub backend: &'static str,
    pub exit_code: Option<u8>,
    pub signal: Option<i32>,
    pub running_tasks: u64,
    pub calls: Vec<RecordedCall>,
    pub unknown: Vec<NumberEntry>,
    pub signalled: Vec<NumberEntry>,
    pub lost: LostEntry,
    pub against: Option<String>,
    pub drift: Vec<DriftEntry>,
    /// The number of calls in the text.
    #[serde(skip)]
    pub top: usize,
}

/// A call; the list begins with the most frequent.
#[derive(Serialize)]
pub struct RecordedCall {
    pub arch: &'static str,
    pub call: String,
    pub count: u64,
    pub errors: u64,
    pub denied: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ns: Option<u64>,
}

/// A call that isn't in the profile.
#[derive(Serialize)]
pub struct NumberEntry {
    pub arch: String,
    pub call: String,
    pub count: u64,
}

/// A call that the policy of `--against` denies.
#[derive(Clone, Serialize)]
pub struct DriftEntry {
    pub arch: &'static str,
    pub call: String,
    pub count: u64,
    pub action: String,
    pub is_certain: bool,
    /// Names and values of arguments that suffice for the denial.
    pub arguments: Vec<String>,
}

impl fmt::Display for DriftEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let would = if self.is_certain {
            "would get"
        } else {
            "may get, depending on its arguments,"
        };
        /// The most values that are named.
        const NAMED: usize = 4;
        write!(f, "{} {}", self.arch, self.call)?;
        if !self.arguments.is_empty() {
            let named = &self.arguments[..self.arguments.len().min(NAMED)];
            write!(f, "({}", named.join(" or "))?;
            match self.arguments.len() - named.len() {
                0 => f.write_str(")")?,
                more => write!(f, " or {})", counted(more, "other value"))?,
            }
        }
        write!(f, " {would} {}", self.action)
    }
}

/// Calls that couldn't be counted.
#[derive(Clone, Copy, Default, Serialize)]
pub struct LostEntry {
    pub counts: u64,
    pub times: u64,
    pub events: u64,
}

impl RecordedCall {
    /// The calls of a profile, the most frequent first.
    pub fn all(profile: &Profile) -> Vec<RecordedCall> {
        let mut calls: Vec<(Arch, Nr, &Call)> = profile.calls().collect();
        calls.sort_by_key(|(arch, nr, call)| (Reverse(call.count), *arch, *nr));
        let entry = |(arch, nr, call): (Arch, Nr, &Call)| RecordedCall {
            arch: arch.name(),
            call: name(arch, nr),
            count: call.count,
            errors: call.errors.values().copied().fold(0, u64::saturating_add),
            denied: call.denied,
            total_ns: call.times.as_ref().map(|times| times.total_ns),
        };
        calls.into_iter().map(entry).collect()
    }
}

impl NumberEntry {
    /// A number on an architecture, `AUDIT_ARCH_*`, which may be unknown to tamis.
    pub fn new(audit_arch: u32, nr: u32, count: u64) -> NumberEntry {
        let arch = Arch::of_call(audit_arch, nr);
        NumberEntry {
            arch: arch.map_or_else(|| format!("{audit_arch:#x}"), |arch| arch.name().to_owned()),
            call: arch.map_or_else(|| nr.to_string(), |arch| name(arch, Nr(nr))),
            count,
        }
    }
}

fn name(arch: Arch, nr: Nr) -> String {
    syscall::name(arch, nr).map_or_else(|| nr.0.to_string(), str::to_owned)
}

impl fmt::Display for RecordReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum =
            |of: fn(&RecordedCall) -> u64| self.calls.iter().map(of).fold(0, u64::saturating_add);
        let total = sum(|call| call.count);
        let errors = sum(|call| call.errors);
        let denied = sum(|call| call.denied);
        writeln!(
            f,
            "calls made: {total}, different ones: {}, failed: {errors}, denied by a filter: {denied}",
            self.calls.len()
        )?;
        if !self.calls.is_empty() {
            writeln!(f, "   share       count      failed      denied  call")?;
        }
        let or_blank = |count: u64| {
            if count == 0 {
                String::new()
            } else {
                count.to_string()
            }
        };
        for call in self.calls.iter().take(self.top) {
            let share = call.count as f64 / total.max(1) as f64 * 100.0;
            writeln!(
                f,
                "{share:>6.2} %{:>12}{:>12}{:>12}  {} {}",
                call.count,
                or_blank(call.errors),
                or_blank(call.denied),
                call.arch,
                call.call
            )?;
        }
        if self.calls.len() > self.top {
            writeln!(f, "and {} more", self.calls.len() - self.top)?;
        }
        for entry in &self.signalled {
            let times = counted(entry.count, "time");
            writeln!(
                f,
                "a filter sent SIGSYS for {} {}, {times}",
                entry.arch, entry.call
            )?;
        }
        for entry in &self.unknown {
            let times = counted(entry.count, "time");
            writeln!(
                f,
                "no call of {} has the number {}, made {times}",
                entry.arch, entry.call
            )?;
        }
        if let Some(policy) = &self.against {
            match self.drift.len() {
                0 => writeln!(f, "{policy} allows all of them")?,
                several => writeln!(f, "{policy} denies {}", counted(several, "call"))?,
            }
        }
        for drift in &self.drift {
            writeln!(f, "  {drift}, made {}", counted(drift.count, "time"))?;
        }
        if self.running_tasks > 0 {
            let tasks = counted(self.running_tasks, "task");
            writeln!(f, "{tasks} still running")?;
        }
        self.lost.fmt(f)
    }
}

impl fmt::Display for LostEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = [
            (self.counts, "value", "for which there was no room"),
            (self.times, "time", "of calls whose beginning isn't known"),
            (self.events, "event", "at which the recorder didn't run"),
        ];
        for (count, what, why) in lost {
            if count > 0 {
                writeln!(f, "lost: {} {why}", counted(count, what))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_denied_are_named() {
        let entry = |count: usize| DriftEntry {
            arch: "x86_64",
            call: "accept4".to_owned(),
            count: 9,
            action: "errno(1)".to_owned(),
            is_certain: true,
            arguments: (0..count)
                .map(|value| format!("flags={value:#x}"))
                .collect(),
        };
        assert_eq!(entry(0).to_string(), "x86_64 accept4 would get errno(1)");
        let two = "x86_64 accept4(flags=0x0 or flags=0x1) would get errno(1)";
        assert_eq!(entry(2).to_string(), two);
        assert!(entry(5).to_string().contains("flags=0x3 or 1 other value)"));
    }
}
