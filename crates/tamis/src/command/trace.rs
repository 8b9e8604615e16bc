//! `tamis trace`: the calls of a command while it makes them.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use tamis_abi::Arch;
use tamis_bpf::Program;
use tamis_kernel::Ended;
use tamis_kernel::interrupt::Interrupts;
use tamis_recorder::view::{CallWatcher, Decoder, Lines, Prefix, Sink};
use tamis_session::path_text::PathText;

use crate::cli::arches::ArchParser;
use crate::cli::load::native_arch;
use crate::cli::{Failure, Global, platform, replace};

mod item;
mod json;
mod kernel;
mod select;

use json::JsonLines;

/// Show the calls of a command while it makes them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis trace -- ls
  tamis trace -e openat,connect -- ./program
  tamis trace -e 'socket(family == AF_INET)' -o sockets.txt -- ./program
  tamis trace -e %file -e @network-io --json -o calls.jsonl -- make
  tamis trace -e '!read,write' -- ./program
  tamis trace -e connect --pid 4711
What is asked for is written as in the tamis language: calls, calls with a condition on their arguments, sets such as \
@network-io; also strace's %file, %desc, %network, %process, %signal, %ipc, %memory, %creds and %clock. Without -e, all calls are.
The kernel's own filter selects them, so that calls that aren't asked for run at full speed, in threads and \
new processes too. Calls that a filter of the command itself answers with an error aren't seen. Lines are those of strace; calls of 32-bit \
programs have the name of their architecture before them. If tamis is killed, so is the command.
Running processes are shown by programs at the kernel's tracepoints, as `tamis record` counts them, which takes root or CAP_BPF \
and CAP_PERFMON and stops nothing; calls that a filter denies are seen, too. `--backend ebpf` shows commands in this way.
Exit status: that of the command, 0 with --pid.")]
pub(crate) struct Args {
    /// Show these calls; may be repeated
    #[arg(short = 'e', long = "expr", value_name = "CALLS")]
    expressions: Vec<String>,
    /// Write to this file instead of standard error
    ///
    /// `-` is standard output. Each line begins with the number of the task.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How many bytes of a text that isn't a path are shown
    #[arg(
        short,
        long,
        value_name = "COUNT",
        default_value_t = 32,
        hide_short_help = true
    )]
    string_bytes: usize,
    /// Show the calls of this architecture; may be repeated [default: all whose programs the machine runs]
    #[arg(long = "arch", value_name = "ARCH", value_parser = ArchParser, hide_possible_values = true, hide_short_help = true)]
    arches: Vec<Arch>,
    /// Show this process and what it starts; may be repeated
    ///
    /// It isn't stopped.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Vec<i32>,
    /// What shows the calls [default: ptrace, with --pid ebpf]
    #[arg(long, value_name = "NAME")]
    backend: Option<Backend>,
    /// The command and its arguments
    #[arg(
        trailing_var_arg = true,
        value_name = "COMMAND",
        required_unless_present = "pid"
    )]
    command: Vec<OsString>,
}

/// The back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// A tracer, which stops tasks at the calls that are asked for: no privileges, commands only
    Ptrace,
    /// Programs at the kernel's tracepoints: nothing is stopped; texts of at most 255 bytes
    Ebpf,
}

/// The longest time before an unfinished call is shown, and before lines are written to a file.
const PACE: Duration = Duration::from_millis(50);
/// The signal of Ctrl-C; its number is the same on all architectures.
const SIGINT: i32 = 2;

/// The sink for events.
type Output = Box<dyn Sink + Send>;

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let arches = match args.arches.as_slice() {
        [] => native_arch().with_compat().to_vec(),
        arches => arches.to_vec(),
    };
    let filter = select::filter(&args.expressions, &arches, global)?;
    // Checked before the file is truncated.
    if args.backend == Some(Backend::Ptrace) && !args.pid.is_empty() {
        return Err(Failure::usage(
            "a tracer can't show the calls of processes that run",
            "leave out `--backend`",
        ));
    }
    let sink = output(args, global)?;
    if args.backend == Some(Backend::Ebpf) || !args.pid.is_empty() {
        return kernel::run(args, &filter, sink, global);
    }
    let decoder = Decoder::new(args.string_bytes);
    let mut interrupts = None;
    let watched = CallWatcher::new(decoder, sink);
    Ok(watch(args, &filter, &watched, &mut interrupts)?.pass_on())
}

fn output(args: &Args, global: &Global) -> Result<Output, Failure> {
    let is_standard = args.output.as_deref() == Some(Path::new("-"));
    let file = match &args.output {
        Some(path) if !is_standard => Some(replace::create(path).map_err(|error| {
            Failure::environment(format!("cannot write {}: {error}", path.text()))
        })?),
        _ => None,
    };
    let is_live = file.is_none();
    let prefix = if args.output.is_none() {
        Prefix::IfSeveral
    } else {
        Prefix::Always
    };
    let out: Box<dyn Write + Send> = match file {
        Some(file) => Box::new(BufWriter::with_capacity(1 << 16, file)),
        None if is_standard => Box::new(BufWriter::new(io::stdout())),
        None => Box::new(BufWriter::new(io::stderr())),
    };
    Ok(match global.json {
        true => Box::new(JsonLines::new(out)),
        false => Box::new(Lines::new(out, prefix, is_live)),
    })
}

/// Runs the command until it and its descendants have ended.
fn watch(
    args: &Args,
    filter: &Program,
    watched: &CallWatcher<Output>,
    interrupts: &mut Option<Interrupts>,
) -> Result<Ended, Failure> {
    let is_over = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        let ticker = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                thread::park_timeout(PACE);
                // The command receives the signals while its first process lives.
                if watched.first_has_ended()
                    && interrupts.get_or_insert_with(Interrupts::catch).arrived()
                {
                    let _ = watched.with_sink(Sink::finish);
                    // The kernel kills traced tasks.
                    let interrupted = Ended::Signalled {
                        signal: SIGINT,
                        core_dumped: false,
                    };
                    interrupted.pass_on();
                }
                watched.with_sink(Sink::tick);
            }
        });
        let on = tamis_platform::watching();
        let ended = platform::run_guest(
            on,
            &args.command,
            filter,
            watched,
            platform::GuestEvents::Results,
        );
        is_over.store(true, Ordering::Release);
        ticker.thread().unpark();
        ended
    });
    let finished = watched.with_sink(Sink::finish);
    let ended = ended?;
    finished.map_err(|error| unwritten(&error))?;
    Ok(ended)
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write what was seen: {error}"))
}
