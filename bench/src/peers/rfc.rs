//! The experiment of the RFC for libseccomp's tree: 306 allowed calls, with `getppid` at the front, in the middle and
//! at the end of the list and in a tree; the result is the smallest number of ticks of the time stamp counter.
//!
//! Since 5.11 the kernel answers all these calls without running the filter, so each filter is timed twice:
//! unchanged, and behind a load of the length, which the kernel's emulation does not support. 306 consecutive numbers
//! are one range, which favours compilers that merge numbers; a second list has gaps.

use serde::Serialize;
use tamis_abi::{Action, Arch, Endian, Nr, SeccompData, syscall};
use tamis_bpf::{Op, Program, Stack};
use tamis_compiler::CompileOptions;
use tamis_profile::Profile;
use tamis_testkit::libseccomp::Library;

use super::builders;
use super::cases::allow;
use super::plain::{PlainRule, plain_rules};
use super::table::Table;
use super::timing::{baselines, call, time};

/// The number of allowed calls.
const ALLOWED: usize = 306;
/// Every fifth known number is left out of the list with gaps.
const GAP: usize = 5;

/// The smallest ticks per call published in the RFC of 2018 (T. Hromatka), by name of the filter.
const PUBLISHED: [(&str, u32); 5] = [
    (NO_FILTER, 138),
    (FRONT, 256),
    (MIDDLE, 516),
    (END, 1942),
    (TREE, 312),
];

const GAPPY: &str = "with gaps";
const NO_FILTER: &str = "no filter";
const EMPTY: &str = "empty filter";
const FRONT: &str = "libseccomp, list, at the front";
const MIDDLE: &str = "libseccomp, list, in the middle";
const END: &str = "libseccomp, list, at the end";
const TREE: &str = "libseccomp, tree";

/// The experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Experiment {
    /// Ticks of the counter per nanosecond; `None` if nothing was timed.
    pub ticks_per_ns: Option<f64>,
    /// A line for each filter, list by list.
    pub lines: Vec<Line>,
    /// The reason why nothing was timed although it was requested.
    pub not_timed: Option<String>,
}

/// One filter.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The name of the list of 306 numbers.
    pub list: &'static str,
    /// The name of the filter.
    pub filter: String,
    /// Its length.
    pub length_insns: usize,
    /// The steps of `getppid` if the filter runs, without the load of the length.
    pub steps: u32,
    /// The fastest `getppid` under the unchanged filter.
    pub cached_ns: Option<f64>,
    /// The same behind a load of the length.
    pub run_ns: Option<f64>,
    /// The RFC's figure for such a filter, in ticks.
    pub published_ticks: Option<u32>,
}

/// The lists by name.
fn lists() -> [(&'static str, Vec<u32>); 2] {
    let known = syscall::all(Arch::X86_64).map(|(nr, _)| nr.0).enumerate();
    let gappy = known
        .filter(|(index, _)| (index + 1) % GAP != 0)
        .map(|(_, nr)| nr);
    [
        ("consecutive", (0..ALLOWED as u32).collect()),
        (GAPPY, gappy.take(ALLOWED).collect()),
    ]
}

/// The filters for a list.
fn filters(
    numbers: &[u32],
    call: u32,
    library: Option<&Library>,
) -> Vec<(String, Result<Program, String>)> {
    let ruleset = allow(numbers.iter().copied());
    let section = ruleset.section(Arch::X86_64).expect("a section for x86_64");
    let rules: Vec<PlainRule> = plain_rules(section).expect("numbers are plain");
    let mut filters = Vec::new();
    if let Some(library) = library {
        let middle = numbers[numbers.len() / 2];
        let mut add = |name: &str, level, priority: &dyn Fn(u32) -> u8| {
            let made = builders::libseccomp_with(library, &ruleset, &rules, level, priority);
            filters.push((name.to_owned(), made));
        };
        add(FRONT, 1, &|nr| u8::from(nr == call));
        add(MIDDLE, 1, &|nr| match nr {
            nr if nr == call => 1,
            nr if nr < middle => 2,
            _ => 0,
        });
        add(END, 1, &|nr| u8::from(nr != call));
        add(TREE, 2, &|_| 0);
    }
    filters.push((
        "seccompiler".to_owned(),
        builders::seccompiler(&ruleset, &rules),
    ));
    filters.push((
        "tamis".to_owned(),
        builders::tamis(&ruleset, &CompileOptions::default()),
    ));
    let mut profile = Profile::default();
    profile.call_mut(Arch::X86_64, Nr(call)).count = 1;
    let told = CompileOptions {
        profile: Some(profile),
        ..CompileOptions::default()
    };
    filters.push((
        "tamis, told of getppid".to_owned(),
        builders::tamis(&ruleset, &told),
    ));
    filters
}

/// The same program behind an unused load of the length, so that it is never answered from the bitmap.
fn uncacheable(program: &Program) -> Result<Program, String> {
    let mut insns = vec![Op::LoadLen.into()];
    insns.extend_from_slice(program.insns());
    Program::new(insns, Endian::Little).map_err(|invalid| invalid.to_string())
}

/// Runs the experiment; without rounds only the counts.
///
/// # Errors
/// The error of a compiler.
///
/// # Panics
/// Never: the lists are plain and `getppid` is known.
pub fn experiment(library: Option<&Library>, rounds: Option<u32>) -> Result<Experiment, String> {
    let getppid = call("getppid", [0; 6]).expect("the call is known");
    let [none, empty] = baselines();
    let allow_program = empty.programs()[0].clone();
    let mut lines = vec![
        Line::new("-", NO_FILTER, None, &getppid),
        Line::new("-", EMPTY, Some(&allow_program), &getppid),
    ];
    // Unchanged, and modified so that it runs; the baseline has only one form.
    let mut subjects = vec![
        none.clone(),
        none,
        empty,
        Stack::from(uncacheable(&allow_program)?),
    ];
    for (list, numbers) in lists() {
        for (name, made) in filters(&numbers, getppid.nr, library) {
            let program = made?;
            lines.push(Line::new(list, &name, Some(&program), &getppid));
            subjects.push(Stack::from(program.clone()));
            subjects.push(Stack::from(uncacheable(&program)?));
        }
    }
    let (mut ticks_per_ns, mut not_timed) = (None, None);
    if let Some(rounds) = rounds {
        match time(&subjects, &[getppid], rounds) {
            Ok(timed) => {
                ticks_per_ns = Some(timed.clock.ns_per_tick.recip());
                for (line, times) in lines.iter_mut().zip(timed.subjects.chunks(2)) {
                    line.cached_ns = Some(times[0].calls[0].min_ns);
                    line.run_ns = Some(times[1].calls[0].min_ns);
                }
            }
            Err(reason) => not_timed = Some(reason),
        }
    }
    Ok(Experiment {
        ticks_per_ns,
        lines,
        not_timed,
    })
}

impl Line {
    fn new(
        list: &'static str,
        filter: &str,
        program: Option<&Program>,
        call: &SeccompData,
    ) -> Line {
        let run = program.map(|program| tamis_bpf::interp::run(program, call));
        debug_assert!(
            run.as_ref()
                .is_none_or(|run| Action::from_ret(run.ret) == Action::ALLOW)
        );
        let is_published = |(name, _): &&(&str, u32)| *name == filter && list != GAPPY;
        let published = PUBLISHED.iter().find(is_published);
        Line {
            list,
            filter: filter.to_owned(),
            length_insns: program.map_or(0, Program::len),
            steps: run.map_or(0, |run| run.steps),
            cached_ns: None,
            run_ns: None,
            published_ticks: published.map(|(_, ticks)| *ticks),
        }
    }
}

impl Experiment {
    /// The table; ticks are those of this machine, except in the column of the RFC.
    pub fn text(&self) -> String {
        let mut table = Table::new(&[
            "filter",
            "list",
            "length",
            "steps",
            "ns",
            "ticks",
            "ns, run",
            "ticks, run",
            "over none",
            "RFC ticks",
            "over none",
            "",
        ]);
        let first = self.lines.first();
        let none_ns = first.and_then(|line| line.run_ns);
        let none_ticks = first.and_then(|line| line.published_ticks);
        let number =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        let ticks = |ns: Option<f64>| number(ns.zip(self.ticks_per_ns).map(|(ns, rate)| ns * rate));
        let whole = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
        for line in &self.lines {
            let over = line
                .published_ticks
                .zip(none_ticks)
                .map(|(ticks, none)| ticks - none);
            table.push(vec![
                line.filter.clone(),
                line.list.to_owned(),
                line.length_insns.to_string(),
                line.steps.to_string(),
                number(line.cached_ns),
                ticks(line.cached_ns),
                number(line.run_ns),
                ticks(line.run_ns),
                ticks(line.run_ns.zip(none_ns).map(|(ns, none)| ns - none)),
                whole(line.published_ticks),
                whole(over),
            ]);
        }
        table.text()
    }
}
