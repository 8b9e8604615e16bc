//! The filters of running processes, summarised and compared with the expected ones.
//!
//! A thread is listed if its filters differ from those of its process. Tasks with the same filters share one result.

use std::collections::{HashMap, HashSet};
use std::fs;

use tamis_abi::{Action, Arch, syscall};
use tamis_analysis::{CaseLimits, decompile, narrowed};
use tamis_bpf::Program;
use tamis_kernel::{DumpError, dump};
use tamis_prover::{Limits, Scope, Space, Stop, Subject, prove};
use tamis_report::audit::{AgainstEntry, AuditReport, AuditedEntry, SummaryEntry};
use tamis_report::entry::{ComparisonResultEntry, WitnessEntry};
use tamis_rules::{Predicate, Section};
use tamis_session::{Error, Side};

use crate::tasks;

/// What filters are compared with, and how.
#[derive(Clone, Debug)]
pub struct Audit<'a> {
    /// The architecture of the summaries.
    pub arch: Arch,
    /// The expected filters.
    pub against: Option<&'a Side>,
    /// The compared calls.
    pub scope: Scope,
    /// The limits of each search.
    pub limits: Limits,
    /// Ends searches early.
    pub stop: Stop,
}

/// A task with its filters.
#[derive(Debug)]
pub struct TaskFilters {
    /// Its number.
    pub tid: i32,
    /// Its name, escaped.
    pub name: String,
    /// Its filters, the oldest first.
    pub filters: Vec<Program>,
}

/// The results for filters, which several tasks may share.
#[derive(Clone)]
struct FilterFindings {
    summary: Option<SummaryEntry>,
    against: Option<AgainstEntry>,
}

impl Audit<'_> {
    /// The report on tasks.
    pub fn report(&self, tasks: Tasks) -> AuditReport {
        let mut known: HashMap<Vec<Program>, FilterFindings> = HashMap::new();
        let mut processes = Vec::new();
        for task in tasks.found {
            let about = known
                .entry(task.filters.clone())
                .or_insert_with_key(|filters| FilterFindings {
                    summary: self.summary(filters),
                    against: self.against.map(|side| self.compare(filters, side)),
                });
            processes.push(entry(task, about));
        }
        AuditReport {
            against: self.against.map(|side| side.name.clone()),
            processes,
            unreadable: tasks.unreadable,
        }
    }

    /// The number of this machine's calls by action; `None` if the filters can't be interpreted.
    fn summary(&self, filters: &[Program]) -> Option<SummaryEntry> {
        let arch = self.arch;
        let mut space = Space::stoppable(self.limits, self.stop.clone());
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

    /// Compares filters with the expected side.
    fn compare(&self, filters: &[Program], side: &Side) -> AgainstEntry {
        let left = Subject::programs(filters);
        let report = side
            .with_subject(|right| prove(&Subject::Stack(&left), right, &self.scope, &self.limits));
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
}

fn entry(task: TaskFilters, about: &FilterFindings) -> AuditedEntry {
    AuditedEntry {
        pid: task.tid,
        name: task.name,
        filters: task.filters.len(),
        length_insns: task.filters.iter().map(Program::len).sum(),
        summary: about.summary.clone(),
        against: about.against.clone(),
    }
}

/// Tasks, and those whose filters can't be read, with the reason.
#[derive(Debug, Default)]
pub struct Tasks {
    found: Vec<TaskFilters>,
    unreadable: Vec<String>,
}

impl Tasks {
    /// These processes, with or without filters; each task once.
    ///
    /// # Errors
    /// If the filters of one can't be read.
    pub fn requested(pids: &[i32]) -> Result<Tasks, Error> {
        let mut tasks = Tasks::default();
        let mut known = HashSet::new();
        for &pid in pids.iter().filter(|pid| known.insert(**pid)) {
            let added = tasks.add(pid, true);
            added.map_err(|error| tasks::unreadable(pid, &error))?;
        }
        // A thread may be named besides its process.
        let mut known = HashSet::new();
        tasks.found.retain(|task| known.insert(task.tid));
        Ok(tasks)
    }

    /// The tasks; the second list has those whose filters can't be read, with the reason.
    pub fn into_parts(self) -> (Vec<TaskFilters>, Vec<String>) {
        (self.found, self.unreadable)
    }

    /// All processes with filters.
    ///
    /// # Errors
    /// If this process may not read filters.
    pub fn all() -> Result<Tasks, Error> {
        let mut tasks = Tasks::default();
        for pid in tasks::numbers("/proc").unwrap_or_default() {
            match tasks.add(pid, false) {
                // The task has ended.
                Ok(()) | Err(DumpError::NoTask | DumpError::Ended) => {}
                Err(error @ (DumpError::NotPrivileged | DumpError::OwnFilter)) => {
                    return Err(tasks::unreadable(pid, &error));
                }
                Err(error) => tasks
                    .unreadable
                    .push(format!("{pid} {}: {error}", name(pid))),
            }
        }
        Ok(tasks)
    }

    /// Adds a process, and its threads with different filters. A process without filters is added only on request.
    fn add(&mut self, pid: i32, is_requested: bool) -> Result<(), DumpError> {
        // The first thread may end before the others.
        let own = match dump(pid) {
            Err(DumpError::Ended) => None,
            own => Some(own?),
        };
        let (mut threads, mut unreadable) = (Vec::new(), Vec::new());
        let tids = tasks::numbers(&format!("/proc/{pid}/task")).unwrap_or_default();
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

/// The action of a call, if it depends on the number alone.
fn action(section: &Section, nr: u32) -> Option<Action> {
    let mut rules = section.rules.iter();
    match rules.find(|rule| rule.syscalls.contains(nr)) {
        None => Some(section.default),
        Some(rule) => (rule.when == Predicate::True).then_some(rule.action),
    }
}
