//! `tamis audit`: the filters of running processes.

use std::collections::HashMap;
use std::fs;

use clap::ArgGroup;
use tamis_abi::{Action, syscall};
use tamis_analysis::{CaseLimits, decompile, narrowed};
use tamis_bpf::Program;
use tamis_kernel::{DumpError, dump};
use tamis_prover::{ComparisonResult, Scope, Space, Subject, prove};
use tamis_report::audit::{AgainstEntry, AuditReport, AuditedEntry, SummaryEntry};
use tamis_report::entry::{ComparisonResultEntry, WitnessEntry};
use tamis_rules::{Predicate, Section};

use super::bpf::dump::refusal;
use crate::cli::limits::LimitArgs;
use crate::cli::load::{LoadArgs, native_arch};
use crate::cli::{Failure, Global, budget, exit, input, output, proc, side};

/// Show what is enforced on processes, compared with a policy
#[derive(clap::Args)]
#[command(group(ArgGroup::new("processes").required(true)), after_help = "\
Examples:
  tamis audit --all
  tamis audit --pid 4711 --against server.tamis
  tamis audit --pid 4711 --against profile.json --json
Each line is a process, or a thread with other filters than its process: its filters, what they do together with the calls \
of this machine's architecture, and with --against whether that is what the policy says, for every call. Filters from \
outside count: those of a container around it, or of its own program. The kernel shows filters only to processes with \
CAP_SYS_ADMIN and without a filter of their own.
Exit status: 0; with --against 1 if some process is under anything else than the policy, 4 if the filters of one can't \
be read, 3 if a comparison gave up.")]
pub(crate) struct Args {
    /// The process; may be repeated
    #[arg(short, long, value_name = "PID", group = "processes")]
    pid: Vec<i32>,
    /// All processes that have filters
    #[arg(long, conflicts_with = "pid", group = "processes")]
    all: bool,
    /// What should be enforced: a policy, or filters
    #[arg(long, value_name = "INPUT", value_parser = input::PolicyParser, hide_possible_values = true)]
    against: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
}

/// A task with its filters.
struct TaskFilters {
    tid: i32,
    name: String,
    filters: Vec<Program>,
}

/// The results for filters, which several tasks may share.
#[derive(Clone)]
struct FilterFindings {
    summary: Option<SummaryEntry>,
    against: Option<AgainstEntry>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let against = match &args.against {
        Some(name) => {
            let load = args.load.for_comparison();
            let side = side::read(name, &load, global)?;
            load.check_options(side.filters())?;
            Some((name, side))
        }
        None => None,
    };
    let Tasks { found, unreadable } = tasks(args)?;
    let mut known: HashMap<Vec<Program>, FilterFindings> = HashMap::new();
    let mut entries = Vec::new();
    for found in found {
        let about = known
            .entry(found.filters.clone())
            .or_insert_with(|| FilterFindings {
                summary: summary(args, &found.filters),
                against: against
                    .as_ref()
                    .map(|(_, side)| compare(args, &found.filters, side)),
            });
        entries.push(entry(found, about));
    }
    let report = AuditReport {
        against: args.against.clone(),
        processes: entries,
        unreadable,
    };
    output::show(&report, global)?;
    let results = report.processes.iter();
    let results = results.filter_map(|own| own.against.as_ref());
    let is_partial = args.against.is_some() && !report.unreadable.is_empty();
    let mut code = match is_partial {
        true => exit::ENVIRONMENT,
        false => exit::OK,
    };
    for AgainstEntry { verdict, .. } in results {
        code = match verdict {
            ComparisonResultEntry(Some(ComparisonResult::Equal)) => code,
            ComparisonResultEntry(Some(_)) => return Ok(exit::NO),
            ComparisonResultEntry(None) => code.max(exit::GAVE_UP),
        };
    }
    Ok(code)
}

fn entry(found: TaskFilters, about: &FilterFindings) -> AuditedEntry {
    AuditedEntry {
        pid: found.tid,
        name: found.name,
        filters: found.filters.len(),
        length_insns: found.filters.iter().map(Program::len).sum(),
        summary: about.summary.clone(),
        against: about.against.clone(),
    }
}

/// The requested tasks, and those whose filters can't be read.
fn tasks(args: &Args) -> Result<Tasks, Failure> {
    let mut tasks = Tasks::default();
    for &pid in &args.pid {
        let added = tasks.add(pid, true);
        added.map_err(|error| refusal(pid, &error))?;
    }
    if !args.all {
        return Ok(tasks);
    }
    for pid in proc::numbers("/proc").unwrap_or_default() {
        match tasks.add(pid, false) {
            // The task has ended.
            Ok(()) | Err(DumpError::NoTask | DumpError::Ended) => {}
            Err(error @ (DumpError::NotPrivileged | DumpError::OwnFilter)) => {
                return Err(refusal(pid, &error));
            }
            Err(error) => tasks
                .unreadable
                .push(format!("{pid} {}: {error}", name(pid))),
        }
    }
    Ok(tasks)
}

/// Tasks, and those whose filters can't be read, with the reason.
#[derive(Default)]
struct Tasks {
    found: Vec<TaskFilters>,
    unreadable: Vec<String>,
}

impl Tasks {
    /// Adds a process, and its threads with different filters. A process without filters is added only on request.
    fn add(&mut self, pid: i32, is_requested: bool) -> Result<(), DumpError> {
        // The first thread may end before the others.
        let own = match dump(pid) {
            Err(DumpError::Ended) => None,
            own => Some(own?),
        };
        let (mut threads, mut unreadable) = (Vec::new(), Vec::new());
        let tids = proc::numbers(&format!("/proc/{pid}/task")).unwrap_or_default();
        for tid in tids.into_iter().filter(|tid| *tid != pid) {
            let name = || format!("{} (thread of {pid})", name(tid));
            match dump(tid) {
                Ok(filters) if own.as_ref() == Some(&filters) => {}
                Ok(filters) if own.is_none() && !is_requested && filters.is_empty() => {}
                Ok(filters) => threads.push(TaskFilters {
                    tid,
                    name: name(),
                    filters,
                }),
                // The thread has ended.
                Err(DumpError::NoTask | DumpError::Ended) => {}
                Err(error) => unreadable.push(format!("{tid} {}: {error}", name())),
            }
        }
        let is_alone = threads.is_empty() && unreadable.is_empty();
        match own {
            None if is_alone => return Err(DumpError::Ended),
            Some(filters) if is_requested || !filters.is_empty() || !threads.is_empty() => {
                let name = name(pid);
                let tid = pid;
                self.found.push(TaskFilters { tid, name, filters });
            }
            _ => {}
        }
        self.found.append(&mut threads);
        self.unreadable.append(&mut unreadable);
        Ok(())
    }
}

/// The name of a task, escaped because the task chooses it.
fn name(tid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
    name.trim_end_matches('\n').escape_debug().to_string()
}

/// The number of this machine's calls by action; `None` if the filters can't be interpreted.
fn summary(args: &Args, filters: &[Program]) -> Option<SummaryEntry> {
    let arch = native_arch();
    let mut space = Space::stoppable(args.limits.limits(), budget::stop());
    let subjects = Subject::programs(filters);
    let function = space.subject(&Subject::Stack(&subjects)).ok()?;
    let foreign = Action::KILL_PROCESS.ret();
    let function = narrowed(&mut space, function, &[arch], foreign).ok()?;
    let ruleset = decompile(&mut space, function, &CaseLimits::default()).ok()?;
    let section = ruleset
        .sections()
        .iter()
        .find(|section| section.arch == arch);
    let mut summary = SummaryEntry::default();
    for (nr, _) in syscall::all(arch) {
        match section.map_or(Some(ruleset.bad_arch), |section| action(section, nr.0)) {
            Some(action) => *summary.actions.entry(action.to_string()).or_default() += 1,
            None => summary.conditional += 1,
        }
    }
    Some(summary)
}

/// The action of a call, if it depends on the number alone.
fn action(section: &Section, nr: u32) -> Option<Action> {
    let mut rules = section.rules.iter();
    match rules.find(|rule| rule.syscalls.contains(nr)) {
        None => Some(section.default),
        Some(rule) => (rule.when == Predicate::True).then_some(rule.action),
    }
}

/// Compares filters with the expected side.
fn compare(args: &Args, filters: &[Program], side: &tamis_session::Side) -> AgainstEntry {
    let left = Subject::programs(filters);
    let scope = Scope {
        arches: args.load.arches.to_vec(),
        ..Scope::default()
    };
    let limits = args.limits.limits();
    let report = side.with_subject(|right| prove(&Subject::Stack(&left), right, &scope, &limits));
    let pairs = report.pairs.iter();
    let witnesses = pairs.filter_map(|pair| {
        let input = pair.example.as_ref()?;
        Some(WitnessEntry::new(input, pair.left, pair.right))
    });
    AgainstEntry {
        verdict: ComparisonResultEntry(report.result.ok()),
        witnesses: witnesses.collect(),
    }
}
