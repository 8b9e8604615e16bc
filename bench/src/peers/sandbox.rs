//! The ten calls that gVisor makes most often while it runs a database, call by call: the figures of its post of
//! February 2024, the present cost of its filter, and that of tamis's program for the same rules.
//!
//! The post gives its figures as charts, and states that filtering became 29 % cheaper, not counting the empty
//! filter. The programs of that time are in the corpus; their rules were slightly different.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::{Arch, SeccompData, syscall};
use tamis_bpf::{Program, Stack};
use tamis_compiler::CompileOptions;
use tamis_compiler::meter::{Workload, measure};
use tamis_testkit::corpus::{self, gvisor, profiles};

use super::builders;
use super::table::Table;
use super::timing::{NO_FD, NOWHERE, Times, baselines, call, time};
use crate::goals::recorded;

/// The policy.
const POLICY: &str = "gvisor/gvisor-sentry-systrap.json";
/// The calls with their frequencies.
const PROFILE: &str = "gvisor/profile-systrap.json";
/// The reduction of the cost of filtering according to the post.
const PUBLISHED_SAVING: f64 = 0.29;
/// Its filters before the work, as of the post, and at present without and with its optimisations.
const FILES: [(&str, &str); 4] = [
    ("2023-09", "gvisor/gvisor-sentry-systrap.2023-09.bpf"),
    ("2024-02", "gvisor/gvisor-sentry-systrap.2024-02.opt.bpf"),
    ("unopt", "gvisor/gvisor-sentry-systrap.unopt.bpf"),
    ("opt", "gvisor/gvisor-sentry-systrap.opt.bpf"),
];

/// The calls in a form that returns at once.
const CALLS: [(&str, [u64; 6]); 10] = [
    ("futex", [0, 0x81, 1, 0, 0, 0]),
    ("nanosleep", [NOWHERE, 0, 0, 0, 0, 0]),
    ("sendmmsg", [NO_FD, 0, 0, 0x40, 0, 0]),
    ("fstat", [NO_FD, 0, 0, 0, 0, 0]),
    ("ppoll", [0, 0, NOWHERE, 0, 0, 0]),
    ("fsync", [NO_FD, 0, 0, 0, 0, 0]),
    ("pwrite64", [NO_FD, 0, 0, 0, 0, 0]),
    ("epoll_pwait", [NO_FD, 0, 0, 0, 0, 0]),
    ("close", [NO_FD, 0, 0, 0, 0, 0]),
    ("getpid", [0; 6]),
];

/// The comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Sandbox {
    /// The reduction of the cost of filtering according to the post.
    pub published_saving: f64,
    /// The compared filters.
    pub filters: Vec<Filter>,
    /// The calls.
    pub calls: Vec<CallLine>,
    /// The reason why nothing was timed although it was requested.
    pub not_timed: Option<String>,
}

/// One of the filters.
#[derive(Clone, Debug, Serialize)]
pub struct Filter {
    /// Its name.
    pub name: &'static str,
    /// Its length.
    pub length_insns: usize,
    /// The weighted mean of the steps, with 0 for calls answered from the bitmap.
    pub bitmap_steps: f64,
    /// The weighted mean time over the empty filter, with 0 for calls answered from the bitmap.
    pub over_empty_ns: Option<f64>,
}

/// One of the calls under all filters.
#[derive(Clone, Debug, Serialize)]
pub struct CallLine {
    /// The call.
    pub name: &'static str,
    /// The number of calls.
    pub weight: u64,
    /// Whether the bitmap answers it, by filter.
    pub cached: Vec<bool>,
    /// The steps, by filter.
    pub steps: Vec<u32>,
    /// The time over the empty filter, by filter.
    pub over_empty_ns: Vec<f64>,
}

/// Compares the filters; `None` without the corpus.
///
/// # Errors
/// The compiler's error.
///
/// # Panics
/// If a file of the corpus has errors.
pub fn sandbox(rounds: Option<u32>) -> Result<Option<Sandbox>, String> {
    if !corpus::is_there() {
        return Ok(None);
    }
    let (ruleset, profile) = (gvisor::ruleset(POLICY), profiles::gvisor_top_ten(PROFILE));
    let stored = FILES.map(|(name, file)| (name, Ok(corpus::program(file))));
    let mut programs = stored.to_vec();
    let told = CompileOptions {
        profile: Some(profile.clone()),
        ..CompileOptions::default()
    };
    programs.push((
        "tamis",
        builders::tamis(&ruleset, &CompileOptions::default()),
    ));
    programs.push(("--counts", builders::tamis(&ruleset, &told)));
    let weight = |name: &str| {
        let nr = syscall::number(Arch::X86_64, name)?;
        profile.call(Arch::X86_64, nr).map(|call| call.count)
    };
    let calls = CALLS.map(|(name, args)| {
        let data = call(name, args).expect("the calls are known");
        (name, weight(name).unwrap_or(0), data)
    });
    compared(programs, &calls, &recorded(&profile), rounds).map(Some)
}

fn compared(
    programs: Vec<(&'static str, Result<Program, String>)>,
    calls: &[(&'static str, u64, SeccompData)],
    made: &Workload,
    rounds: Option<u32>,
) -> Result<Sandbox, String> {
    let mut filters = Vec::new();
    let mut subjects = baselines().to_vec();
    for (name, program) in programs {
        let stack = Stack::from(program?);
        filters.push(Filter {
            name,
            length_insns: stack.programs()[0].len(),
            bitmap_steps: measure(stack.programs(), made, true).mean_executed_steps(),
            over_empty_ns: None,
        });
        subjects.push(stack);
    }
    let line = |(name, weight, data): &(&'static str, u64, SeccompData)| {
        let call = Workload::of_calls(Arch::X86_64, &[*data]);
        let stacks = subjects[2..].iter();
        let costs = stacks.map(|stack| measure(stack.programs(), &call, true));
        let costs = costs.map(|cost| (cost.cached_numbers > 0, cost.all().max_steps));
        let (cached, steps) = costs.unzip();
        CallLine {
            name,
            weight: *weight,
            cached,
            steps,
            over_empty_ns: Vec::new(),
        }
    };
    let lines: Vec<CallLine> = calls.iter().map(line).collect();
    let mut sandbox = Sandbox {
        published_saving: PUBLISHED_SAVING,
        filters,
        calls: lines,
        not_timed: None,
    };
    let data: Vec<SeccompData> = calls.iter().map(|(_, _, data)| *data).collect();
    match rounds.map(|rounds| time(&subjects, &data, rounds)) {
        None => {}
        Some(Err(reason)) => sandbox.not_timed = Some(reason),
        Some(Ok(timed)) => sandbox.fill_in(&timed.subjects),
    }
    Ok(sandbox)
}

impl Sandbox {
    /// Adds the times of no filter, the empty filter, and the filters.
    fn fill_in(&mut self, times: &[Times]) {
        let [_, empty, times @ ..] = times else {
            return;
        };
        for (call, line) in self.calls.iter_mut().enumerate() {
            let over = |times: &Times| times.calls[call].min_ns - empty.calls[call].min_ns;
            line.over_empty_ns = times.iter().map(over).collect();
        }
        let total: u64 = self.calls.iter().map(|line| line.weight).sum();
        for (index, filter) in self.filters.iter_mut().enumerate() {
            let run = self.calls.iter().filter(|line| !line.cached[index]);
            let sum: f64 = run
                .map(|line| line.over_empty_ns[index] * line.weight as f64)
                .sum();
            filter.over_empty_ns = Some(sum / total as f64);
        }
    }

    /// The largest measured difference from the empty filter for a call answered from the bitmap, whose cost is the
    /// same under each filter; `None` if nothing was timed.
    fn noise_ns(&self) -> Option<f64> {
        let cached = |line: &CallLine| -> Vec<f64> {
            let pairs = line.over_empty_ns.iter().zip(&line.cached);
            pairs
                .filter_map(|(ns, cached)| cached.then_some(ns.abs()))
                .collect()
        };
        self.calls.iter().flat_map(cached).max_by(f64::total_cmp)
    }

    /// The reduction of the cost of filtering since the first filter.
    fn savings(&self) -> Vec<String> {
        let times = self.filters.iter();
        let times = times.filter_map(|filter| Some((filter.name, filter.over_empty_ns?)));
        let times: Vec<(&str, f64)> = times.collect();
        let Some((_, first)) = times.first().copied() else {
            return Vec::new();
        };
        let saving =
            |(name, ns): &(&str, f64)| format!("{name} {:.0} %", (1.0 - ns / first) * 100.0);
        times[1..].iter().map(saving).collect()
    }

    /// The table: steps, then times over the empty filter.
    pub fn text(&self) -> String {
        let names = self.filters.iter().map(|filter| filter.name);
        let mut headings = vec!["call", "weight"];
        headings.extend(names.clone());
        headings.extend(names);
        headings.push("");
        let columns = headings.len();
        let mut table = Table::new(&headings);
        let ns = |value: &f64| format!("{value:+.1}");
        let mut push =
            |name: &str, weight: String, steps: Vec<String>, times: Vec<String>, note: &str| {
                let mut cells = vec![name.to_owned(), weight];
                cells.extend(steps);
                cells.extend(times);
                cells.resize(columns - 1, "-".to_owned());
                cells.push(note.to_owned());
                table.push(cells);
            };
        for line in &self.calls {
            let note = if line.cached.iter().all(|cached| *cached) {
                "from the bitmap"
            } else {
                "run"
            };
            let steps = line.steps.iter().map(u32::to_string).collect();
            let times = line.over_empty_ns.iter().map(ns).collect();
            push(line.name, line.weight.to_string(), steps, times, note);
        }
        let steps = |filter: &Filter| format!("{:.2}", filter.bitmap_steps);
        let times = self
            .filters
            .iter()
            .filter_map(|filter| filter.over_empty_ns.as_ref());
        let means = self.filters.iter().map(steps).collect();
        push(
            "mean",
            String::new(),
            means,
            times.map(ns).collect(),
            "from the bitmap: 0",
        );
        let length = |filter: &Filter| filter.length_insns.to_string();
        let lengths = self.filters.iter().map(length).collect();
        push("length", String::new(), lengths, Vec::new(), "");
        let mut text = table.text();
        if let Some(noise) = self.noise_ns() {
            let _ = writeln!(
                text,
                "  filtering is cheaper than in 2023-09 by: {} (the post: {:.0} %)\n  \
                 noise: calls from the bitmap are up to {noise:.1} ns apart",
                self.savings().join(", "),
                self.published_saving * 100.0
            );
        }
        text
    }
}
