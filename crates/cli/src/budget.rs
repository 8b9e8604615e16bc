//! The limits of a command's time and memory.
//!
//! The process has one budget. Searches take its [`Stop`] and end early with a partial result. Code that does not check
//! the clock - readers, the layout of filters, propagation in the solver, documents - is ended from outside: by a
//! thread shortly after the time limit, or by the allocator (`memory`) at the memory limit. The process then
//! prints its current stage and exits with the code for giving up.
//!
//! The limits have no effect once the answer is being written.

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

/// The share of the time limit for further findings after an answer: one part in this many.
const PARTS: u32 = 4;
/// The time beyond the limit in which searches can end by themselves: one part in this many of the limit, and a
/// constant.
const GRACE_PARTS: u32 = 40;
const GRACE: Duration = Duration::from_millis(10);
/// The share of the memory limit for the prover's tables: one part in this many. A growing table exists twice, and
/// other data needs memory.
const TABLE_PARTS: usize = 2;
/// The default memory limit.
const MEMORY_LIMIT_MEGABYTES: usize = 512;

/// Limits given by the user.
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

/// The limits of the process.
struct Budget {
    start: Instant,
    args: BudgetArgs,
    /// In nanoseconds since the start.
    end: Arc<AtomicU64>,
    stop: Stop,
    /// The option that ends the search of a command with partial results.
    own_limit: Option<&'static str>,
    is_json: bool,
}

static BUDGET: OnceLock<Budget> = OnceLock::new();
/// The current stage, as the end of a sentence with *while*.
static STAGE: Mutex<String> = Mutex::new(String::new());
/// Whether the answer or the limit came first; it is set once.
static OUTCOME: AtomicU8 = AtomicU8::new(RUNNING);

const RUNNING: u8 = 0;
const ANSWERED: u8 = 1;
const STOPPED: u8 = 2;

/// Starts the clock of the command.
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
        // Without a thread, searches still end by the stop.
        let _ = thread::Builder::new().spawn(move || {
            thread::sleep(last.saturating_sub(start.elapsed()));
            give_up(LimitReached::Stopped);
        });
    }
}

/// The stop for every search of the command.
pub fn stop() -> Stop {
    BUDGET
        .get()
        .map_or_else(Stop::default, |own| own.stop.clone())
}

/// The limits of a proof within the budget.
pub fn effort(limits: Limits) -> ProofEffort {
    ProofEffort {
        limits,
        stop: stop(),
    }
}

/// The compiler's default options within the budget.
pub fn compile_options() -> CompileOptions {
    CompileOptions {
        proof: effort(Limits::default()),
        ..CompileOptions::default()
    }
}

/// Ends searches after a share of the time limit, counted from now, unless they end earlier.
pub fn leave_share() {
    if let Some(own) = BUDGET.get()
        && let Some(limit) = own.args.time_limit
    {
        let end = own.start.elapsed() + limit / PARTS;
        own.end.fetch_min(nanos(end), Ordering::Relaxed);
    }
}

/// Disables the limits, before the answer is written or another program is executed.
pub fn answered() {
    let outcome = OUTCOME.compare_exchange(RUNNING, ANSWERED, Ordering::SeqCst, Ordering::SeqCst);
    if outcome == Err(STOPPED) {
        // The thread at the limit is ending the process.
        loop {
            thread::park();
        }
    }
}

/// Sets the current stage until the result is dropped.
pub fn stage(doing: impl Into<String>) -> Stage {
    Stage {
        before: exchange(doing.into()),
    }
}

/// A stage; dropping it restores the enclosing one.
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

/// The options that raise a limit of the budget.
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

/// Ends the process at a limit, unless its answer is being written. It takes no locks, because other threads may hold
/// them.
pub(super) fn give_up(limit: LimitReached) {
    let outcome = OUTCOME.compare_exchange(RUNNING, STOPPED, Ordering::SeqCst, Ordering::SeqCst);
    if outcome.is_err() {
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
    // If writing fails, the exit code is the only report.
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

/// Writes without locking the stream, because another thread may hold the lock.
fn write_unlocked(stream: &impl AsFd, text: &str) -> io::Result<()> {
    let mut file = File::from(stream.as_fd().try_clone_to_owned()?);
    file.write_all(text.as_bytes())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
