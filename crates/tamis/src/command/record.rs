//! `tamis record`: what a program calls.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use tamis_kernel::interrupt::Interrupts;
use tamis_kernel::spawn::{Spawn, SpawnError};
use tamis_kernel::{Ended, Errno};
use tamis_recorder::Recording;
use tamis_recorder::ebpf::{Options, Recorder, Start};
use tamis_report::record::{LostEntry, NumberEntry, RecordReport, RecordedCall, strace_table};

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
  tamis compile policy.tamis --profile service.json -o filter.bpf
Exit status: that of the command; 0 with --pid; 4 if nothing can be recorded here.")]
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
        values: args.values,
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
    let ended = match args.command.split_first() {
        Some((program, arguments)) => Some(record_command(&recorder, program, arguments)?),
        None => {
            record_processes(&recorder, &args.pid)?;
            None
        }
    };
    let recording = recorder
        .recording()
        .map_err(|errno| Failure::environment(format!("the counts can't be read: {errno}")))?;
    if let Some(file) = &args.output {
        OutputArgs::to(file.clone()).text(&recording.profile.to_json())?;
    }
    print(args, &recording, recorder.live(), ended, global)?;
    drop(recorder);
    Ok(ended.map_or(exit::OK, Ended::pass_on))
}

/// Runs a command and waits until it and all that it started have ended.
fn record_command(
    recorder: &Recorder,
    program: &OsString,
    arguments: &[OsString],
) -> Result<Ended, Failure> {
    let mut spawn = Spawn::new(program);
    spawn.args = arguments.to_vec();
    spawn.no_new_privs = false;
    spawn.forward_signals = true;
    let held = spawn.start().map_err(|error| refused(program, &error))?;
    recorder.record(held.pid(), Start::AtExec);
    let mut child = held.release();
    let ended = child.wait().map_err(|errno| {
        Failure::environment(format!("the command can't be waited for: {errno}"))
    })?;
    if let Some(error) = child.error() {
        return Err(refused(program, &error));
    }
    drop(child);
    wait_for_all(recorder);
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
fn record_processes(recorder: &Recorder, pids: &[i32]) -> Result<(), Failure> {
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
                recorder.record(*task, Start::Now);
            }
            known.extend(new);
        }
    }
    wait_for_all(recorder);
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

fn wait_for_all(recorder: &Recorder) {
    let interrupts = Interrupts::catch();
    while recorder.live() > 0 && !interrupts.arrived() {
        thread::sleep(PACE);
    }
}

fn print(
    args: &Args,
    recording: &Recording,
    running_tasks: u64,
    ended: Option<Ended>,
    global: &Global,
) -> Result<(), Failure> {
    if args.summary == Summary::Strace && !global.json {
        message(strace_table(&recording.profile).trim_end());
        return Ok(());
    }
    let (exit_code, signal) = match ended {
        Some(Ended::Exited(code)) => (Some(code), None),
        Some(Ended::Signalled { signal, .. }) => (None, Some(signal)),
        None => (None, None),
    };
    let numbers = recording.unknown.iter();
    let signals = recording.signalled.iter();
    let report = RecordReport {
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
        top: args.top,
    };
    if global.json {
        message(output::document_json(&report)?.trim_end());
    } else if args.summary == Summary::Counts && !global.quiet {
        message(report.to_string().trim_end());
    }
    Ok(())
}
