//! The time and the memory of a command, from its start to its answer.
//!
//! One object for the whole process. Its [`Stop`] is handed to everything that searches, which ends there in good order
//! and tells what it knows. What looks at no clock - readers, the layout of filters, the solver within a propagation,
//! documents - is ended from outside: by a thread a little after the time, and by the [allocator](super::memory) at
//! the last byte. Then the command says what it was doing, and its exit code is that of giving up.
//!
//! As soon as an answer is written the budget has no say any more.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tamis_compiler::{CompileOptions, ProofEffort};
use tamis_prover::{LimitReached, Limits, Stop};

use super::failure::{Failure, lines};
use super::{exit, limits, memory, output};

/// The share of the time that is spent, once a question is answered, on telling more about it: one part in this many.
const PARTS: u32 = 4;
/// What the command gets beyond its time to end in good order: one part in this many of the time, and a moment.
const GRACE_PARTS: u32 = 40;
const GRACE: Duration = Duration::from_millis(10);
/// The tables of the prover get one part in this many of the memory: while one of them grows, its old and its new place
/// exist, and there is more than tables.
const TABLE_PARTS: usize = 2;
/// What a command may allocate if the user doesn't say.
const MEMORY_LIMIT_MEGABYTES: usize = 512;

/// Limits as the user gave them.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct BudgetArgs {
    /// Give up after this many seconds, such as 0.5 [default: 10 to compare filters, else no limit]
    #[arg(
        long,
        global = true,
        help_heading = "Limits",
        display_order = 900,
        value_name = "SECONDS",
        value_parser = limits::parse_seconds
    )]
    time_limit: Option<Duration>,
    /// Give up beyond this many megabytes of memory
    #[arg(
        long,
        global = true,
        help_heading = "Limits",
        display_order = 901,
        value_name = "MEGABYTES",
        default_value_t = MEMORY_LIMIT_MEGABYTES
    )]
    memory_limit: usize,
}

impl Default for BudgetArgs {
    fn default() -> BudgetArgs {
        BudgetArgs {
            time_limit: None,
            memory_limit: MEMORY_LIMIT_MEGABYTES,
        }
    }
}

/// What a command has.
struct Budget {
    start: Instant,
    args: BudgetArgs,
    /// In nanoseconds since the start.
    end: Arc<AtomicU64>,
    stop: Stop,
    /// What limits the command's time and lets it tell what it knows.
    own_limit: Option<&'static str>,
    is_json: bool,
}

static BUDGET: OnceLock<Budget> = OnceLock::new();
/// What the command is doing, to follow *while*.
static STAGE: Mutex<String> = Mutex::new(String::new());
/// Who has the last word.
static SPEAKER: AtomicU8 = AtomicU8::new(NOBODY);

const NOBODY: u8 = 0;
const COMMAND: u8 = 1;
const LIMIT: u8 = 2;

/// Begins the time of the command.
pub fn begin(
    args: BudgetArgs,
    default_time_limit: Option<Duration>,
    own_limit: Option<&'static str>,
    is_json: bool,
) {
    let start = Instant::now();
    let args = BudgetArgs {
        time_limit: args.time_limit.or(default_time_limit),
        ..args
    };
    let end = Arc::new(AtomicU64::new(args.time_limit.map_or(u64::MAX, nanos)));
    let own_end = Arc::clone(&end);
    let stop = match args.time_limit {
        None => Stop::default(),
        Some(_) => Stop::when(move || nanos(start.elapsed()) >= own_end.load(Ordering::Relaxed)),
    };
    let bytes = args.memory_limit.saturating_mul(1_000_000);
    let budget = Budget {
        start,
        args,
        end,
        stop: stop.with_memory(bytes / TABLE_PARTS),
        own_limit,
        is_json,
    };
    if BUDGET.set(budget).is_err() {
        return;
    }
    memory::limit(bytes);
    if let Some(limit) = args.time_limit {
        let last = limit + limit / GRACE_PARTS + GRACE;
        // Without a thread there is still the stop.
        let _ = thread::Builder::new().spawn(move || {
            thread::sleep(last.saturating_sub(start.elapsed()));
            give_up(LimitReached::Stopped);
        });
    }
}

/// The end of every search of the command.
pub fn stop() -> Stop {
    BUDGET
        .get()
        .map_or_else(Stop::default, |own| own.stop.clone())
}

/// What the compiler may do.
pub fn effort(limits: Limits) -> ProofEffort {
    ProofEffort {
        limits,
        stop: stop(),
    }
}

/// The compiler's defaults within the budget.
pub fn compile_options() -> CompileOptions {
    CompileOptions {
        proof: effort(Limits::default()),
        ..CompileOptions::default()
    }
}

/// Brings the end of searches forward to a share of the time from now, if that is earlier.
pub fn leave_share() {
    if let Some(own) = BUDGET.get()
        && let Some(limit) = own.args.time_limit
    {
        let end = own.start.elapsed() + limit / PARTS;
        own.end.fetch_min(nanos(end), Ordering::Relaxed);
    }
}

/// The command's answer is about to be written, or another process gets the word: the limits no longer end the
/// command.
pub fn answered() {
    let speaker = SPEAKER.compare_exchange(NOBODY, COMMAND, Ordering::SeqCst, Ordering::SeqCst);
    if speaker == Err(LIMIT) {
        // The process is about to end.
        loop {
            thread::park();
        }
    }
}

/// Says what the command is doing until the result is dropped.
pub fn stage(doing: impl Into<String>) -> Stage {
    Stage {
        before: exchange(doing.into()),
    }
}

/// The end of a stage.
pub struct Stage {
    before: String,
}

impl Drop for Stage {
    fn drop(&mut self) {
        exchange(std::mem::take(&mut self.before));
    }
}

fn exchange(doing: String) -> String {
    let mut stage = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut *stage, doing)
}

/// What to type to get further than a limit of the budget.
pub fn advice(limit: LimitReached) -> Option<String> {
    let args = BUDGET.get()?.args;
    match (limit, args.time_limit) {
        (LimitReached::Stopped, Some(time_limit)) => {
            let seconds = (time_limit.as_secs_f64() * 10.0).max(0.1);
            Some(format!("--time-limit {seconds}"))
        }
        (LimitReached::Memory, _) => Some(format!(
            "--memory-limit {}",
            args.memory_limit.saturating_mul(4)
        )),
        _ => None,
    }
}

/// Ends the process at a limit, unless its answer is being written. Any thread may be anywhere meanwhile, so nothing is
/// waited for.
pub(super) fn give_up(limit: LimitReached) {
    let speaker = SPEAKER.compare_exchange(NOBODY, LIMIT, Ordering::SeqCst, Ordering::SeqCst);
    if speaker.is_err() {
        return;
    }
    let stage = STAGE
        .try_lock()
        .map_or_else(|_| String::new(), |own| own.clone());
    let what = match stage.as_str() {
        "" => "gave up".to_owned(),
        doing => format!("gave up while {doing}"),
    };
    let own_limit = BUDGET.get().and_then(|own| own.own_limit);
    let own_limit = own_limit.filter(|_| limit == LimitReached::Stopped);
    let help = advice(limit).map(|options| match own_limit {
        Some(own) => format!("{}; {own}", limits::raise(&options)),
        None => limits::raise(&options),
    });
    let reason = match limit {
        LimitReached::Memory => "it takes more memory than allowed".to_owned(),
        limit => limits::text(limit),
    };
    let what = format!("{what}: {reason}");
    // If that can't be written, the exit code is all there is.
    let _ = match BUDGET.get().is_some_and(|own| own.is_json) {
        true => {
            let failure = Failure::gave_up(what, help);
            let text = output::document_json(&failure.document());
            text.map(|text| write_unlocked(&io::stdout(), &text))
        }
        false => Ok(write_unlocked(
            &io::stderr(),
            &lines(&what, help.as_deref()),
        )),
    };
    process::exit(i32::from(exit::GAVE_UP));
}

/// Writes without the lock of the stream, which another thread may hold.
fn write_unlocked(stream: &impl AsFd, text: &str) -> io::Result<()> {
    let mut file = File::from(stream.as_fd().try_clone_to_owned()?);
    file.write_all(text.as_bytes())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
