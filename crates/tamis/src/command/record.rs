//! `tamis record`: what a program calls.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use tamis_abi::{Arch, Nr};
use tamis_kernel::interrupt::Interrupts;
use tamis_kernel::spawn::{Spawn, SpawnError};
use tamis_kernel::{Ended, Errno};
use tamis_learn::{Drift, drift};
use tamis_recorder::Recording;
use tamis_recorder::ebpf::{Options, Recorder, Start};
use tamis_report::record::{
    DriftEntry, LostEntry, NumberEntry, RecordReport, RecordedCall, strace_table,
};

use tamis_session::Policy;
use tamis_session::profile::call_name;

use crate::cli::load::LoadArgs;
use crate::cli::output::{self, OutputArgs};
use crate::cli::{Failure, Global, exit, message};

/// Record what a program calls, as a profile
#[derive(clap::Args)]
#[command(after_help = "\
The calls of the command and of everything that it starts are counted, from its execve on, until all of \
it has ended, or Ctrl-C is pressed. Nothing is stopped or changed: programs of tamis run at the kernel's \
tracepoints. That takes root, or the capabilities CAP_BPF and CAP_PERFMON, and costs every call of the \
machine some tens of nanoseconds meanwhile. Calls that a filter denies are counted, and told from others.
Examples:
  tamis record -- ls -l
  tamis record --values -o service.json -- ./service
  tamis record --pid 4711 --time
  tamis record --summary strace -- make
  tamis record --against service.tamis --values --pid 4711
  tamis compile policy.tamis --profile service.json -o filter.bpf
Exit status: that of the command, 0 with --pid; 1 if the policy of --against would deny something; 4 if nothing can be \
recorded here.")]
pub(crate) struct Args {
    /// Record this process and what it starts from now on; may be repeated
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Vec<i32>,
    /// Record the values of arguments that are constants or flags
    #[arg(long)]
    values: bool,
    /// Record how long calls take
    #[arg(long)]
    time: bool,
    /// Tell at once which calls this policy would deny, without enforcing it; exit with 1 if there are any
    #[arg(long, value_name = "POLICY")]
    against: Option<String>,
    /// Write the profile to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to print at the end
    #[arg(long, value_name = "FORM", default_value = "counts")]
    summary: Summary,
    /// How many calls to show
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    top: usize,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "pid")]
    command: Vec<OsString>,
}

/// The forms of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Summary {
    /// The most frequent calls
    Counts,
    /// The table of `strace -c -w`
    Strace,
    /// Nothing
    None,
}

/// How often it is looked whether all tasks have ended.
const PACE: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let options = Options {
        values: args.values || args.against.is_some(),
        times: args.time || args.summary == Summary::Strace,
    };
    let recorder = Recorder::new(options).map_err(|error| {
        Failure::new(
            exit::ENVIRONMENT,
            error.to_string(),
            Some(
                "`strace -c -f` counts without privileges; `tamis profile` reads its table"
                    .to_owned(),
            ),
        )
    })?;
    let policy = match &args.against {
        Some(path) => Some(LoadArgs::default().load_policy(path, global)?),
        None => None,
    };
    let watch = Watch {
        recorder: &recorder,
        policy: policy.as_ref(),
        told: Mutex::default(),
        global,
    };
    let ended = match args.command.split_first() {
        Some((program, arguments)) => Some(record_command(&watch, program, arguments)?),
        None => {
            record_processes(&watch, &args.pid)?;
            None
        }
    };
    let recording = recorder
        .recording()
        .map_err(|errno| Failure::environment(format!("the counts can't be read: {errno}")))?;
    let drift = watch.tell(&recording);
    if let Some(file) = &args.output {
        OutputArgs::to(file.clone()).text(&recording.profile.to_json())?;
    }
    let report = report(args, &recording, recorder.live(), ended, &drift);
    print(args, &report, &recording, global)?;
    drop(recorder);
    Ok(match drift.is_empty() {
        true => ended.map_or(exit::OK, Ended::pass_on),
        false => exit::NO,
    })
}

/// A recording that goes on, and the policy that it is compared with.
struct Watch<'w> {
    recorder: &'w Recorder,
    policy: Option<&'w Policy>,
    /// The calls that the user knows the policy would deny.
    told: Mutex<BTreeSet<(Arch, Nr)>>,
    global: &'w Global,
}

impl Watch<'_> {
    /// Tells which calls the policy would deny, each once. Returns all that it denies or may deny.
    fn tell(&self, recording: &Recording) -> Vec<Drift> {
        let Some(policy) = self.policy else {
            return Vec::new();
        };
        let drift = drift(&recording.profile, &policy.ruleset);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // While calls are being made, some are counted before their values are.
        for entry in drift.iter().filter(|entry| entry.is_certain) {
            // A document has all of it at the end.
            if told.insert((entry.arch, entry.nr)) && !self.global.json {
                self.global
                    .notice(&format!("tamis: {}", drift_entry(entry)));
            }
        }
        drift
    }

    /// Compares from time to time, until this says that it is over.
    fn watch_until(&self, is_over: impl Fn() -> bool) {
        while !is_over() {
            if self.policy.is_some()
                && let Ok(recording) = self.recorder.recording()
            {
                self.tell(&recording);
            }
            thread::sleep(PACE);
        }
    }
}

fn drift_entry(drift: &Drift) -> DriftEntry {
    DriftEntry {
        arch: drift.arch.name(),
        call: call_name(drift.arch, drift.nr),
        count: drift.count,
        action: drift.action.to_string(),
        is_certain: drift.is_certain,
    }
}

/// Runs a command and waits until it and all that it started have ended.
fn record_command(
    watch: &Watch<'_>,
    program: &OsString,
    arguments: &[OsString],
) -> Result<Ended, Failure> {
    let mut spawn = Spawn::new(program);
    spawn.args = arguments.to_vec();
    spawn.no_new_privs = false;
    spawn.forward_signals = true;
    let held = spawn.start().map_err(|error| refused(program, &error))?;
    watch.recorder.record(held.pid(), Start::AtExec);
    let mut child = held.release();
    let is_over = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        scope.spawn(|| watch.watch_until(|| is_over.load(Ordering::Acquire)));
        let ended = child.wait();
        is_over.store(true, Ordering::Release);
        ended
    });
    let ended = ended.map_err(|errno| {
        Failure::environment(format!("the command can't be waited for: {errno}"))
    })?;
    if let Some(error) = child.error() {
        return Err(refused(program, &error));
    }
    drop(child);
    wait_for_all(watch);
    Ok(ended)
}

fn refused(program: &OsString, error: &SpawnError) -> Failure {
    let message = format!("{}: {error}", program.to_string_lossy());
    match error {
        SpawnError::Exec(Errno::ENOENT) => Failure::new(exit::NOT_FOUND, message, None),
        SpawnError::Exec(_) => Failure::new(exit::CANNOT_EXECUTE, message, None),
        _ => Failure::environment(message),
    }
}

/// Records all tasks of processes until they have ended, or the user wants to end.
fn record_processes(watch: &Watch<'_>, pids: &[i32]) -> Result<(), Failure> {
    for pid in pids {
        // A task that starts another one before it is recorded itself is found in another round.
        let mut known = Vec::new();
        loop {
            let tasks = tasks(*pid)?;
            let new: Vec<i32> = tasks
                .into_iter()
                .filter(|task| !known.contains(task))
                .collect();
            if new.is_empty() {
                break;
            }
            for task in &new {
                watch.recorder.record(*task, Start::Now);
            }
            known.extend(new);
        }
    }
    wait_for_all(watch);
    Ok(())
}

/// The threads of a process.
fn tasks(pid: i32) -> Result<Vec<i32>, Failure> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder)
        .map_err(|error| Failure::environment(format!("there is no process {pid}: {error}")))?;
    let numbers = entries.flatten().map(|entry| entry.file_name());
    Ok(numbers
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect())
}

fn wait_for_all(watch: &Watch<'_>) {
    let interrupts = Interrupts::catch();
    watch.watch_until(|| watch.recorder.live() == 0 || interrupts.arrived());
}

fn report(
    args: &Args,
    recording: &Recording,
    running_tasks: u64,
    ended: Option<Ended>,
    drift: &[Drift],
) -> RecordReport {
    let (exit_code, signal) = match ended {
        Some(Ended::Exited(code)) => (Some(code), None),
        Some(Ended::Signalled { signal, .. }) => (None, Some(signal)),
        None => (None, None),
    };
    let numbers = recording.unknown.iter();
    let signals = recording.signalled.iter();
    RecordReport {
        backend: "ebpf",
        exit_code,
        signal,
        running_tasks,
        calls: RecordedCall::all(&recording.profile),
        unknown: numbers
            .map(|((arch, nr), count)| NumberEntry::new(*arch, *nr, *count))
            .collect(),
        signalled: signals
            .map(|(call, count)| NumberEntry::new(call.arch, call.nr, *count))
            .collect(),
        lost: LostEntry {
            counts: recording.lost.counts,
            times: recording.lost.times,
            events: recording.lost.events,
        },
        against: args.against.clone(),
        drift: drift.iter().map(drift_entry).collect(),
        top: args.top,
    }
}

fn print(
    args: &Args,
    report: &RecordReport,
    recording: &Recording,
    global: &Global,
) -> Result<(), Failure> {
    if global.json {
        message(output::document_json(report)?.trim_end());
    } else if args.summary == Summary::Strace {
        message(strace_table(&recording.profile).trim_end());
    } else if args.summary == Summary::Counts && !global.quiet {
        message(report.to_string().trim_end());
    }
    Ok(())
}
