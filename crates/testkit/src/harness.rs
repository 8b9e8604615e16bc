//! A test harness that shows a test as ignored, with the reason, if the machine lacks something that it needs.
//!
//! The standard harness can't ignore a test at run time, so such a test would have to pass. Here it ends
//! by [`skip::because`](crate::skip::because), which unwinds to the harness. The list then shows
//! `ignored (corpus: …)`, and the last line counts the ignored tests by [`Need`](crate::skip::Need).
//!
//! A suite is a target with `harness = false`. In its `main.rs` `#[macro_use] extern crate tamis_testkit;` replaces the
//! attribute `#[test]` and the printing macros in all modules, and `main` calls [`main`]. Suites that make their tests
//! themselves call [`run`] with [`trial`]s.
//!
//! As in the standard harness, each test has a thread of its own with the test's name, and its output is shown only if
//! it fails or with `--nocapture`. `TAMIS_SLOWEST=20` lists the slowest tests at the end.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Arguments as Text;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, io};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::skip::Skipped;

pub use inventory::submit;

/// A function with the attribute `#[test]`.
pub struct Test {
    module: &'static str,
    name: &'static str,
    run: fn(),
}

inventory::collect!(Test);

impl Test {
    /// A test of a module; the module's name begins with that of its crate.
    pub const fn new(module: &'static str, name: &'static str, run: fn()) -> Test {
        Test { module, name, run }
    }

    /// Its name without the crate.
    fn path(&self) -> String {
        match self.module.split_once("::") {
            Some((_, module)) => format!("{module}::{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// The figures of the last lines: about the tests that have ended.
struct Tally {
    /// How many tests were ignored, by the name of the need.
    ignored: BTreeMap<&'static str, usize>,
    times: Vec<(Duration, String)>,
}

static TALLY: Mutex<Tally> = Mutex::new(Tally {
    ignored: BTreeMap::new(),
    times: Vec::new(),
});

/// Whether the output of tests is kept until they fail.
static IS_CAPTURING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The output of the test that this thread runs; none on other threads and with `--nocapture`.
    static OUTPUT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs all functions of the executable that have the attribute, as its `main`.
#[must_use]
pub fn main() -> ExitCode {
    let mut tests: Vec<&Test> = inventory::iter::<Test>().collect();
    tests.sort_by_key(|test| test.path());
    let trials = tests.into_iter().map(|test| {
        let run = test.run;
        trial(test.path(), move || {
            run();
            Ok(())
        })
    });
    run(trials.collect(), None)
}

/// A test that is ignored if it lacks something.
pub fn trial(
    name: impl Into<String>,
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let name = name.into();
    Trial::ignorable_test(name.clone(), move || on_own_thread(name, run))
}

/// Runs the trials that the command line chooses, and prints how many of them were ignored for which need.
///
/// The number of threads is that of the command line, else `threads`, else the number of processors.
#[must_use]
pub fn run(mut trials: Vec<Trial>, threads: Option<usize>) -> ExitCode {
    let (options, filters) = without_filters(env::args());
    let mut arguments = Arguments::from_iter(options);
    arguments.test_threads = arguments.test_threads.or(threads);
    let is_chosen = |name: &str| match arguments.exact {
        true => filters.iter().any(|filter| name == filter),
        false => filters.iter().any(|filter| name.contains(filter)),
    };
    trials.retain(|trial| filters.is_empty() || is_chosen(trial.name()));
    if !arguments.nocapture {
        IS_CAPTURING.store(true, Ordering::Relaxed);
        capture_panics();
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let mut tally = TALLY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(line) = ignored_line(&tally.ignored) {
        std::println!("{line}\n");
    }
    if let Ok(count) = env::var("TAMIS_SLOWEST") {
        tally.times.sort_by_key(|(time, _)| Reverse(*time));
        for (time, name) in tally.times.iter().take(count.parse().unwrap_or(20)) {
            std::println!("{:>9.3} s  {name}", time.as_secs_f64());
        }
    }
    conclusion.exit_code()
}

/// The options of the command line, with their values, and its filters. They are separated because libtest-mimic takes
/// one filter, the standard harness any number.
fn without_filters(words: impl Iterator<Item = String>) -> (Vec<String>, Vec<String>) {
    const WITH_VALUE: [&str; 5] = [
        "--skip",
        "--test-threads",
        "--color",
        "--format",
        "--logfile",
    ];
    let (mut options, mut filters) = (Vec::new(), Vec::new());
    let mut is_value = true;
    for word in words {
        let is_filter = !is_value && !word.starts_with('-');
        is_value = WITH_VALUE.contains(&word.as_str());
        match is_filter {
            true => filters.push(word),
            false => options.push(word),
        }
    }
    (options, filters)
}

/// The last line, such as `3 ignored: corpus 2, live 1`; `None` without ignored tests.
fn ignored_line(ignored: &BTreeMap<&str, usize>) -> Option<String> {
    let sum: usize = ignored.values().sum();
    let counts = ignored
        .iter()
        .map(|(need, count)| format!("{need} {count}"));
    let counts: Vec<String> = counts.collect();
    (sum > 0).then(|| format!("{sum} ignored: {}", counts.join(", ")))
}

/// Runs a benchmark. If the machine lacks something that it needs, prints the reason; the exit code is then 4.
#[must_use]
pub fn measure(run: impl FnOnce()) -> ExitCode {
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(payload) => match payload.downcast_ref::<Skipped>() {
            Some(skipped) => {
                std::println!("can't measure: {skipped}");
                ExitCode::from(4)
            }
            None => panic::resume_unwind(payload),
        },
    }
}

/// The result of a test's thread: the end of the test's function, and its output.
type Ended = (thread::Result<Result<(), Failed>>, String);

fn on_own_thread(
    name: String,
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Result<Completion, Failed> {
    let start = Instant::now();
    let spawned = thread::Builder::new()
        .name(name.clone())
        .spawn(|| -> Ended {
            OUTPUT.set(IS_CAPTURING.load(Ordering::Relaxed).then(String::new));
            let ended = panic::catch_unwind(AssertUnwindSafe(run));
            (ended, OUTPUT.take().unwrap_or_default())
        });
    let (ended, output) = spawned?
        .join()
        .map_err(|_| "its thread panicked after the test")?;
    let completion = completion(ended, &output);
    let mut tally = TALLY.lock().unwrap_or_else(PoisonError::into_inner);
    tally.times.push((start.elapsed(), name));
    completion
}

fn completion(
    ended: thread::Result<Result<(), Failed>>,
    output: &str,
) -> Result<Completion, Failed> {
    let message = match ended {
        Ok(Ok(())) => return Ok(Completion::Completed),
        Ok(Err(failed)) => failed.message().unwrap_or("it failed").to_owned(),
        Err(payload) => match payload.downcast::<Skipped>() {
            Ok(skipped) => {
                let mut tally = TALLY.lock().unwrap_or_else(PoisonError::into_inner);
                *tally.ignored.entry(skipped.need.name()).or_default() += 1;
                return Ok(Completion::ignored_with(skipped));
            }
            // The hook has written the message to the output.
            Err(_) if IS_CAPTURING.load(Ordering::Relaxed) => String::new(),
            Err(payload) => text_of(&*payload).to_owned(),
        },
    };
    Err(format!("{output}{message}").into())
}

/// The message of a panic.
fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked without a message")
}

/// Adds the messages of panics to the output of their test.
fn capture_panics() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let backtrace = Backtrace::capture();
        let shown = match backtrace.status() {
            BacktraceStatus::Captured => format!("{info}\n{backtrace}\n"),
            _ => format!("{info}\n"),
        };
        if !keep(&shown) {
            default(info);
        }
    }));
}

/// Adds a text to the output of the test that this thread runs; returns whether there is one.
fn keep(text: &str) -> bool {
    OUTPUT.with_borrow_mut(|output| match output {
        Some(output) => {
            output.push_str(text);
            true
        }
        None => false,
    })
}

/// The function behind [`print!`](crate::print), [`println!`](crate::println) and [`eprintln!`](crate::eprintln).
#[doc(hidden)]
pub fn write(to: &mut dyn io::Write, text: Text<'_>) {
    let text = text.to_string();
    if !keep(&text) {
        to.write_all(text.as_bytes()).expect("a stream for output");
    }
}

/// Prints to the output of the test that this thread runs, or to standard output.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => {
        $crate::harness::write(&mut ::std::io::stdout(), ::std::format_args!($($text)*))
    };
}

/// Prints a line as [`print!`](crate::print) does.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($text:tt)*) => { $crate::print!("{}\n", ::std::format_args!($($text)*)) };
}

/// Prints a line to the output of the test that this thread runs, or to standard error.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => {
        $crate::harness::write(
            &mut ::std::io::stderr(),
            ::std::format_args!("{}\n", ::std::format_args!($($text)*)),
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::{self, Need};

    fn outcome(run: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> String {
        match on_own_thread("a test".to_owned(), run) {
            Ok(Completion::Completed) => "passed".to_owned(),
            Ok(Completion::Ignored { reason }) => format!("ignored {}", reason.unwrap()),
            Err(failed) => format!("failed {}", failed.message().unwrap()),
        }
    }

    #[test]
    fn a_test_that_lacks_something_is_ignored_and_any_other_panic_fails() {
        assert_eq!(outcome(|| Ok(())), "passed");
        assert_eq!(outcome(|| Err("no".into())), "failed no");
        assert_eq!(
            outcome(|| skip::because(Need::Duckdb, "no python3")),
            "ignored duckdb: no python3"
        );
        assert_eq!(outcome(|| panic!("at {}", 7)), "failed at 7");
    }

    #[test]
    fn the_last_line_counts_by_need() {
        assert_eq!(ignored_line(&BTreeMap::new()), None);
        let ignored = BTreeMap::from([("live", 1), ("corpus", 12)]);
        assert_eq!(
            ignored_line(&ignored).unwrap(),
            "13 ignored: corpus 12, live 1"
        );
    }

    #[test]
    fn any_number_of_filters_is_taken_from_the_options() {
        let words = "program a --skip b --exact --test-threads=2 c --color auto";
        let (options, filters) = without_filters(words.split(' ').map(str::to_owned));
        let expected = "program --skip b --exact --test-threads=2 --color auto";
        assert_eq!(options.join(" "), expected);
        assert_eq!(filters, ["a", "c"]);
    }

    #[test]
    fn names_are_without_the_crate() {
        let path = |module| Test::new(module, "a", || {}).path();
        assert_eq!(path("it"), "a");
        assert_eq!(path("it::jit::edges"), "jit::edges::a");
    }
}
