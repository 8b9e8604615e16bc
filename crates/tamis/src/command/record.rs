//! `tamis record`: the calls of a program, as a profile.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use tamis_kernel::Ended;
use tamis_kernel::interrupt::Interrupts;
use tamis_learn::Drift;
use tamis_profile::RunId;
use tamis_recorder::Recording;
use tamis_recorder::caught::Counting;
use tamis_recorder::ebpf::{Options, Recorder, Unavailable};
use tamis_report::record::{LostEntry, NumberEntry, RecordReport, RecordedCall};
use tamis_report::strace_table::{self, Column};
use tamis_session::Policy;

use crate::cli::load::LoadArgs;
use crate::cli::output::{self, OutputArgs};
use crate::cli::{Failure, Global, exit, input, message, message_as_is, platform};

mod caught;
mod group;
pub(super) mod kernel;
mod live;
mod origin;
mod watch;

use group::Group;
use live::{LiveMode, TableScreen};
use watch::{RecordingView, Source, drift_entry};

/// Record what a program calls, as a profile
#[derive(clap::Args)]
#[command(after_help = "\
The calls of the command and of everything that it starts are counted, from its execve on, until all of \
it has ended, or Ctrl-C is pressed. Nothing is stopped or changed: programs of tamis run at the kernel's \
tracepoints. That takes root, or the capabilities CAP_BPF and CAP_PERFMON, and costs every call of the \
machine some 0.1 µs meanwhile. Calls that a filter denies are counted, and told from others.
Examples:
  tamis record -- ls -l
  tamis record --values -o service.json -- ./service
  tamis record --pid 4711 --time
  tamis record --confined --values -o container.json -- runc run web
  tamis record -w -- make
  tamis record --summary strace -U calls,errors,max-time -S calls -- make
  tamis record --values -o web.json --cgroup system.slice/web.service
  tamis record --against service.tamis --values --pid 4711
  tamis compile policy.tamis --counts service.json -o filter.bpf
Exit status: that of the command, 0 with --pid; 1 if the policy of --against would deny something; 4 if nothing can be \
recorded here.")]
pub(crate) struct Args {
    /// This process and what it starts; may be repeated
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Vec<i32>,
    /// All processes of this control group
    ///
    /// It is one of version 2; processes that join it count, until it is empty.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["command", "pid"])]
    cgroup: Option<PathBuf>,
    /// The same of a container, by its number's beginning
    #[arg(long, value_name = "ID", conflicts_with_all = ["command", "pid", "cgroup"])]
    container: Option<String>,
    /// Begin with a task's first call under a filter
    ///
    /// Of a container's runtime, that is only what the filter must allow.
    #[arg(long, conflicts_with_all = ["pid", "cgroup", "container"])]
    confined: bool,
    /// What records
    #[arg(
        long,
        value_name = "NAME",
        default_value = "auto",
        hide_short_help = true
    )]
    backend: Backend,
    /// Record the values of constants and flags, too
    #[arg(long)]
    values: bool,
    /// Record how long calls take
    #[arg(long)]
    time: bool,
    /// Tell at once which calls this policy would deny
    ///
    /// It isn't enforced. The exit status is 1 if there are any.
    #[arg(long, value_name = "POLICY", value_parser = input::PolicyParser, hide_possible_values = true)]
    against: Option<String>,
    /// Write the profile to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to call this run in the profile: merging counts a run once [default: a random id]
    #[arg(long, value_name = "ID", value_parser = origin::parse_id, requires = "output", hide_short_help = true)]
    run_id: Option<RunId>,
    /// What to print at the end
    #[arg(
        long,
        value_name = "FORM",
        default_value = "counts",
        hide_short_help = true
    )]
    summary: Summary,
    /// Print the table of `strace -c -w`, as `--summary strace`: times are those of the clock, sleep included
    #[arg(short = 'w', long, conflicts_with = "summary", hide_short_help = true)]
    wall_clock: bool,
    /// The columns of that table, as strace names them: time-percent, total-time, min-time, max-time, avg-time, calls, errors,
    /// name; also wall-total, wall-min, wall-max and wall-avg, which are the same times
    #[arg(short = 'U', long, value_name = "COLUMNS", value_parser = columns, hide_short_help = true)]
    summary_columns: Option<Columns>,
    /// The column by which its rows are ordered, or `none`
    #[arg(short = 'S', long, value_name = "COLUMN", value_parser = order, hide_short_help = true)]
    summary_sort_by: Option<Order>,
    /// When to show a table of calls and their rates while they are counted
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true
    )]
    live: LiveMode,
    /// How many calls to show
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 20,
        hide_short_help = true
    )]
    top: usize,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present_any = ["pid", "cgroup", "container"])]
    command: Vec<OsString>,
}

/// The columns of strace's table.
#[derive(Clone, Debug)]
struct Columns(Vec<Column>);

/// The order of its rows; `None` for the order of call numbers.
#[derive(Clone, Copy, Debug)]
struct Order(Option<Column>);

fn columns(text: &str) -> Result<Columns, String> {
    Column::list(text)
        .map(Columns)
        .map_err(|name| no_column(&name))
}

fn no_column(name: &str) -> String {
    let known: Vec<&str> = Column::names().collect();
    format!(
        "`{name}` is no column, or is there twice; there are {}",
        known.join(", ")
    )
}

fn order(text: &str) -> Result<Order, String> {
    if matches!(text, "none" | "nothing") {
        return Ok(Order(None));
    }
    match Column::named(text) {
        Some(column) => Ok(Order(Some(column))),
        None => Err(no_column(text)),
    }
}

/// The forms of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Summary {
    /// The most frequent calls
    Counts,
    /// The table of `strace -c -w`
    Strace,
    /// Nothing
    None,
}

/// The back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// eBPF where it is possible, else notify; patched or trace on kernels before 5.19
    Auto,
    /// Programs at the kernel's tracepoints
    Ebpf,
    /// User notification: no privileges; no errors, no times; filters of the command itself hide calls
    Notify,
    /// Tracing: no privileges; errors, no times; much slower
    Trace,
    /// The command counts its own calls at patched sites: no privileges; no errors, no times; fast; nothing in it can trace
    Patched,
}

/// The result of a back end.
struct RunRecording {
    backend: &'static str,
    recording: Recording,
    drift: Vec<Drift>,
    ended: Option<Ended>,
    running_tasks: u64,
}

impl Args {
    fn summary(&self) -> Summary {
        match self.wall_clock {
            true => Summary::Strace,
            false => self.summary,
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    // `/proc` is read before the processes end.
    let runs = origin::runs(args.run_id.as_ref(), &args.command, &args.pid);
    let policy = match &args.against {
        Some(path) => Some(LoadArgs::default().load_policy(path, global)?),
        None => None,
    };
    let policy = policy.as_ref();
    if let Some(file) = &args.output {
        let output = OutputArgs::to(file.clone());
        output.check_folder()?;
        let mut read = args.against.iter();
        read.try_for_each(|path| output.refuse_to_replace(path))?;
    }
    let group = group(args)?;
    let options = Options {
        cgroup: group.as_ref().map(|group| group.cgroup),
        ..options(args)
    };
    // Interrupts are caught until the recording is written and shown.
    let mut interrupts = None;
    let kept = &mut interrupts;
    let mut recorded = match args.backend {
        Backend::Notify => caught(args, "notify", policy, kept, global)?,
        Backend::Trace => caught(args, "ptrace-seccomp", policy, kept, global)?,
        Backend::Patched => caught(args, "patched", policy, kept, global)?,
        Backend::Ebpf | Backend::Auto => match Recorder::new(options) {
            Ok(recorder) => in_kernel(args, &recorder, group.as_ref(), policy, kept, global)?,
            Err(error) if error.is_bug() => {
                return Err(Failure::bug(error.to_string(), "please report this"));
            }
            Err(error) if args.backend == Backend::Ebpf || needs_kernel(args) => {
                return Err(unavailable(&error));
            }
            Err(error) => {
                let (on, how) = without_kernel();
                global.notice(&format!("tamis: {error}; recording by {how}"));
                caught(args, on, policy, kept, global)?
            }
        },
    };
    if let Some(file) = &args.output {
        recorded.recording.profile.set_runs(runs);
        OutputArgs::to(file.clone()).text(&recorded.recording.profile.to_json())?;
    }
    let report = report(args, &recorded);
    print(args, &report, &recorded.recording, global)?;
    drop(interrupts);
    Ok(match recorded.drift.is_empty() {
        true => recorded.ended.map_or(exit::OK, Ended::pass_on),
        false => exit::NO,
    })
}

fn options(args: &Args) -> Options {
    Options {
        values: args.values || args.against.is_some(),
        times: args.time || args.summary() == Summary::Strace,
        confined: args.confined,
        cgroup: None,
    }
}

/// The given control group.
fn group(args: &Args) -> Result<Option<Group>, Failure> {
    match (&args.cgroup, &args.container) {
        (Some(path), _) => Group::find(path).map(Some),
        (None, Some(id)) => Group::of_container(id).map(Some),
        (None, None) => Ok(None),
    }
}

/// The live table, if it is shown.
fn live_table(args: &Args, global: &Global) -> Option<TableScreen> {
    let is_quiet = global.quiet || global.json;
    let is_shown = !is_quiet && args.live.is_now(!args.command.is_empty());
    is_shown.then(|| TableScreen::new(args.top))
}

/// Whether the options need a back end in the kernel.
fn needs_kernel(args: &Args) -> bool {
    options(args).times || args.confined || args.command.is_empty()
}

/// The back end without programs in the kernel: the name of its platform, and a description.
fn without_kernel() -> (&'static str, &'static str) {
    const BACKENDS: [(&str, &str); 3] = [
        (
            "notify",
            "user notification, without errors; `--backend patched` takes less time",
        ),
        ("patched", "patched call sites, without errors"),
        ("ptrace-seccomp", "tracing, which takes much longer"),
    ];
    let works = tamis_platform::preferred(tamis_platform::supported())
        .into_iter()
        .find_map(|platform| {
            let backend = BACKENDS.iter().find(|(name, _)| *name == platform.name());
            backend.filter(|_| platform.probe().is_ok())
        });
    // If no back end works, the command's own run reports the reason.
    *works.unwrap_or(&BACKENDS[0])
}

fn unavailable(error: &Unavailable) -> Failure {
    let help = "a command can be recorded without privileges by `--backend notify`";
    Failure::new(exit::ENVIRONMENT, error.to_string(), Some(help.to_owned()))
}

fn in_kernel(
    args: &Args,
    recorder: &Recorder,
    group: Option<&Group>,
    policy: Option<&Policy>,
    interrupts: &mut Option<Interrupts>,
    global: &Global,
) -> Result<RunRecording, Failure> {
    for missing in recorder.missing() {
        global.notice(&format!("tamis: {missing}"));
    }
    let watch = RecordingView::new(
        Source::Kernel(recorder),
        policy,
        live_table(args, global),
        global,
    );
    let ended = match args.command.split_first() {
        Some((program, arguments)) => Some(kernel::record_command(
            &watch, recorder, program, arguments, interrupts,
        )?),
        None => {
            match group {
                Some(group) => kernel::record_group(&watch, recorder, group, interrupts),
                None => kernel::record_processes(&watch, recorder, &args.pid, interrupts)?,
            }
            None
        }
    };
    let (recording, drift) = watch.finish()?;
    Ok(RunRecording {
        backend: "ebpf",
        recording,
        drift,
        ended,
        running_tasks: recorder.live(),
    })
}

/// Records on a platform.
fn caught(
    args: &Args,
    on: &'static str,
    policy: Option<&Policy>,
    interrupts: &mut Option<Interrupts>,
    global: &Global,
) -> Result<RunRecording, Failure> {
    if needs_kernel(args) {
        return Err(Failure::usage(
            "times, running processes and containers are recorded by eBPF only",
            "leave out `--backend`, or `--time`, `--summary strace`, `-w`, `--confined`, `--pid`, `--cgroup` and `--container`",
        ));
    }
    let Some(on_platform) = tamis_platform::by_name(on) else {
        return Err(Failure::bug(
            format!("no platform `{on}`"),
            "please report this",
        ));
    };
    let on_platform = platform::working(on_platform)?;
    let counting = Counting::new(options(args).values);
    let watch = RecordingView::new(
        Source::Caught(&counting),
        policy,
        live_table(args, global),
        global,
    );
    // The command receives interrupts while it runs.
    interrupts.get_or_insert_with(Interrupts::catch);
    let ended = caught::record_command(&watch, on_platform, &counting, &args.command)?;
    let (recording, drift) = watch.finish()?;
    Ok(RunRecording {
        backend: on,
        recording,
        drift,
        ended: Some(ended),
        running_tasks: 0,
    })
}

fn report(args: &Args, recorded: &RunRecording) -> RecordReport {
    let recording = &recorded.recording;
    let end = recorded.ended.map(platform::end);
    let numbers = recording.unknown.iter();
    let signals = recording.signalled.iter();
    RecordReport {
        backend: recorded.backend,
        exit_code: end.and_then(|end| end.exit_code),
        signal: end.and_then(|end| end.signal),
        running_tasks: recorded.running_tasks,
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
        drift: recorded.drift.iter().map(drift_entry).collect(),
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
        message_as_is(output::document_json(report)?.trim_end());
    } else if args.summary() == Summary::Strace {
        let columns = args.summary_columns.as_ref();
        let columns = columns.map_or(&Column::USUAL[..], |columns| &columns.0);
        let order = args
            .summary_sort_by
            .map_or(Some(Column::TimePercent), |order| order.0);
        let table = strace_table::table(&recording.profile, columns, order);
        message(table.trim_end());
    } else if args.summary() == Summary::Counts && !global.quiet {
        message(report.to_string().trim_end());
    }
    Ok(())
}
