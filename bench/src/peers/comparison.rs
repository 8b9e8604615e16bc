//! The comparison of one case: a row for each tool.

use serde::Serialize;
use tamis_abi::{Arch, SeccompData, call};
use tamis_bpf::Stack;

use super::better::{Better, better};
use super::cases::Case;
use super::figures::Figures;
use super::judge::Meaning;
use super::plain::plain_rules;
use super::timing::{self, Times};
use super::tools::{Compilers, Tool, tools};
use crate::ratio::{Contestant, compare};

/// The number of times that each tool makes its filters for timing.
const COMPILE_ROUNDS: usize = 40;

/// A case with the results of all tools.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The case.
    pub policy: &'static str,
    /// The source of the weights.
    pub weights: &'static str,
    /// The number of numbers in the mean.
    pub allowed_calls: usize,
    /// The timed calls.
    pub timed: Vec<String>,
    /// The mean time of the timed calls without a filter; `None` if nothing was timed.
    pub no_filter_ns: Option<f64>,
    /// The additional time of the empty filter.
    pub empty_over_none_ns: Option<f64>,
    /// The reason why nothing was timed although it was requested.
    pub not_timed: Option<String>,
    /// One row for each tool.
    pub rows: Vec<Row>,
    /// The figures in which a tool is better than each of tamis's rows.
    pub better: Vec<Better>,
}

/// One tool.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The tool.
    pub tool: String,
    /// The origin of its filters.
    pub from: Origin,
    /// Its filters, or the reason why there are none.
    #[serde(flatten)]
    pub made: Made,
}

/// The origin of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Made here.
    Here,
    /// A file of the corpus.
    File,
}

/// The result of a tool for a policy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// None, for this reason.
    Refused(String),
    /// Filters.
    Filters(Box<Filters>),
}

impl Row {
    /// The figures of the tool's filters, if there are any.
    pub fn filters(&self) -> Option<&Filters> {
        match &self.made {
            Made::Filters(filters) => Some(filters),
            Made::Refused(_) => None,
        }
    }
}

/// The figures of a tool's filters.
#[derive(Clone, Debug, Serialize)]
pub struct Filters {
    /// The counts.
    pub counts: Figures,
    /// The mean additional time of the timed calls over no filter.
    pub over_none_ns: Option<f64>,
    /// The same for each call.
    pub calls_over_none_ns: Vec<f64>,
    /// The time of an installation.
    pub install_ns: Option<f64>,
    /// The time of making the filters in the fastest round, if they were made here.
    pub compile_us: Option<f64>,
    /// The same as a multiple of tamis's time.
    pub compile_ratio: Option<f64>,
    /// Whether they are equivalent to the policy.
    pub meaning: Meaning,
}

/// One tool's result, with its origin.
type MadeStack = (String, Origin, Result<Stack, String>);

/// Compares all tools on one case; without rounds nothing is timed.
///
/// # Panics
/// If tamis rejects a policy of the corpus.
pub fn compared(case: &Case, compilers: &Compilers, rounds: Option<u32>) -> Compared {
    let section = case
        .ruleset()
        .and_then(|ruleset| ruleset.section(Arch::X86_64));
    let plain = section.map_or_else(|| Ok(Vec::new()), plain_rules);
    let tools = tools(case, &plain, compilers);
    let made = tools
        .iter()
        .map(|tool| (tool.name.clone(), Origin::Here, tool.build()));
    let stored = case.stored.iter().cloned();
    let stored = stored.map(|(tool, stack)| (tool, Origin::File, Ok(stack)));
    let subjects: Vec<MadeStack> = made.chain(stored).collect();
    let own = subjects[0].2.as_ref().expect("tamis compiles the policy");
    let calls = timing::timed_calls(case, own);
    let rounds = rounds.filter(|_| !calls.is_empty());
    let times = rounds.map(|rounds| timed(&subjects, &calls, rounds));
    let compile = rounds.map(|_| compile_times(&tools));
    let not_timed = times.clone().and_then(Result::err);
    let times = times.and_then(Result::ok);
    let allowed = case.allowed.samples().iter();
    let mut numbers: Vec<u32> = allowed.map(|sample| sample.data.nr).collect();
    numbers.dedup();
    let weights = case.counts.as_ref();
    let rows = rows(
        case,
        subjects,
        times.as_deref(),
        &compile.unwrap_or_default(),
    );
    Compared {
        policy: case.name,
        weights: weights.map_or("each number alike", |counts| counts.whose),
        allowed_calls: numbers.len(),
        better: better(&rows),
        rows,
        no_filter_ns: times.as_ref().map(|times| times[0].mean_ns()),
        empty_over_none_ns: times.as_ref().map(|times| times[1].over_ns(&times[0])),
        timed: calls.iter().map(call::describe_briefly).collect(),
        not_timed,
    }
}

/// Times the baselines, followed by the filters of the tools.
fn timed(subjects: &[MadeStack], calls: &[SeccompData], rounds: u32) -> Result<Vec<Times>, String> {
    let made = subjects.iter().filter_map(|(_, _, made)| made.clone().ok());
    let stacks: Vec<Stack> = timing::baselines().into_iter().chain(made).collect();
    Ok(timing::time(&stacks, calls, rounds)?.subjects)
}

fn rows(
    case: &Case,
    subjects: Vec<MadeStack>,
    times: Option<&[Times]>,
    compile: &[(String, f64)],
) -> Vec<Row> {
    let mut next = timing::baselines().len();
    let own_us = compile.first().map(|(_, us)| *us);
    let row = |(tool, from, made): MadeStack| {
        let made = match made {
            Err(reason) => Made::Refused(reason),
            Ok(stack) => {
                let times = times.map(|times| (&times[next], &times[0]));
                next += 1;
                let of_tool = compile.iter().find(|(name, _)| *name == tool);
                let compile_us = of_tool.map(|(_, us)| *us).filter(|_| from == Origin::Here);
                Made::Filters(Box::new(Filters {
                    compile_us,
                    compile_ratio: compile_us.zip(own_us).map(|(us, own)| us / own),
                    ..filters(case, &stack, times)
                }))
            }
        };
        Row { tool, from, made }
    };
    subjects.into_iter().map(row).collect()
}

fn filters(case: &Case, stack: &Stack, times: Option<(&Times, &Times)>) -> Filters {
    let each = times.map(|(mine, none)| mine.calls.iter().zip(&none.calls));
    let over_none = each.into_iter().flatten();
    Filters {
        counts: Figures::from_stack(stack, &case.allowed, &case.weighted),
        over_none_ns: times.map(|(mine, none)| mine.over_ns(none)),
        calls_over_none_ns: over_none
            .map(|(mine, none)| mine.min_ns - none.min_ns)
            .collect(),
        install_ns: times.map(|(mine, _)| mine.install_ns),
        compile_us: None,
        compile_ratio: None,
        meaning: case.policy.judge(stack),
    }
}

/// The shortest times in microseconds of the tools that make filters, run in turns; tamis is first.
fn compile_times(tools: &[Tool<'_>]) -> Vec<(String, f64)> {
    let able = tools.iter().filter(|tool| tool.build().is_ok());
    let mut contestants: Vec<Contestant<'_>> = able
        .map(|tool| Contestant::with_own_clock(&tool.name, || tool.time()))
        .collect();
    let times = compare(&mut contestants, COMPILE_ROUNDS).0.into_iter();
    times
        .map(|timing| (timing.name, timing.min.as_secs_f64() * 1e6))
        .collect()
}
