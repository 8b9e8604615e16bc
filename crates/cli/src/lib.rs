//! Options, inputs, outputs, limits, exit codes and failures, shared by the commands of `tamis` and `tamis-lab`.
//!
//! A command is a struct of options for `clap` and a function that returns an exit code or a [`Failure`]. This crate
//! reads inputs, writes results atomically, and prints diagnostics and documents. It does not interpret filters.
#![expect(
    clippy::missing_errors_doc,
    reason = "a `Failure` has its cause, its way out and its exit code in itself"
)]

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use tamis_diag::escape::harmless;
use tamis_diag::{Diagnostic, Severity, Sources};

pub mod arches;
pub mod budget;
pub mod call;
pub mod certify;
pub mod chart;
pub mod compiler;
pub mod exit;
pub mod failure;
mod fold;
pub mod help;
pub mod input;
pub mod languages;
pub mod limits;
pub mod load;
mod memory;
pub mod output;
pub mod parquet;
pub mod platform;
pub mod private;
pub mod profile;
pub mod progress;
pub mod replace;
pub mod sandbox;
pub mod side;
pub mod target;
pub mod trust;
pub mod usage;

pub use failure::Failure;

/// Options of every command.
#[derive(clap::Args, Debug, Default)]
pub struct Global {
    /// Print a JSON document instead of text
    #[arg(long, global = true, display_order = 897)]
    pub json: bool,
    /// Print only results and errors
    #[arg(
        short,
        long,
        global = true,
        display_order = 898,
        hide_short_help = true
    )]
    pub quiet: bool,
    /// When to colour messages; `auto` respects NO_COLOR and TERM=dumb
    #[arg(
        long = "color",
        global = true,
        display_order = 899,
        hide_short_help = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    colour: Colour,
    /// The limits of time and memory.
    #[command(flatten)]
    pub budget: budget::BudgetArgs,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Colour {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    Always,
    Never,
}

impl Global {
    /// Options that suppress warnings, for an input that is read again.
    pub fn silent() -> Global {
        Global {
            quiet: true,
            ..Global::default()
        }
    }

    /// Whether messages on standard error are coloured.
    pub fn colours_messages(&self) -> bool {
        self.colours(io::stderr().is_terminal())
    }

    /// Whether results on standard output are coloured.
    pub fn colours_results(&self) -> bool {
        self.colours(io::stdout().is_terminal())
    }

    fn colours(&self, is_terminal: bool) -> bool {
        match self.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
                !unwanted && !is_dumb && is_terminal
            }
        }
    }

    /// Rejects `--json` for a command whose result is not a report.
    pub fn refuse_document(&self, result: &str) -> Result<(), Failure> {
        match self.json {
            true => Err(Failure::usage(
                format!("{result} is not available as a document"),
                "leave `--json` out",
            )),
            false => Ok(()),
        }
    }

    /// Prints a message that is neither result nor error, once; not with `--quiet`.
    pub fn notice(&self, text: &str) {
        if !self.quiet && is_new(&[], text) {
            message(text);
        }
    }

    /// Prints warnings, once; not with `--quiet`. With `--json` they are part of the document.
    pub fn warn(&self, warnings: &[Diagnostic], sources: &Sources) {
        if warnings.is_empty() {
            return;
        }
        if self.json {
            output::keep_warnings(warnings, sources);
        } else {
            if !self.quiet {
                let shown =
                    fold::render(warnings, fold::WARNINGS, sources, self.colours_messages());
                if is_new(warnings, &shown) {
                    message_as_is(&shown);
                }
            }
        }
    }
}

/// Whether these warnings have not been printed before: an input may be named twice and is then read twice. Warnings
/// without a place may belong to different inputs; notes without a place are about assumptions for all inputs.
fn is_new(warnings: &[Diagnostic], text: &str) -> bool {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_first = told.insert(text.to_owned());
    let may_be_other = |own: &Diagnostic| own.labels.is_empty() && own.severity != Severity::Note;
    is_first || warnings.iter().any(may_be_other)
}

/// Writes a line to standard error, without control characters, which names of files may contain.
pub fn message(text: &str) {
    message_as_is(&harmless(text));
}

/// Writes a document or a coloured text to standard error; failures are ignored.
pub fn message_as_is(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Runs a function that may panic, without the panic message; `None` if it panics.
pub fn quietly<R>(run: impl FnOnce() -> R) -> Option<R> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    panic::set_hook(hook);
    result.ok()
}

/// Runs a command within its limits, reports its failure, and returns the exit code. A panic is a bug; the hook has
/// reported it.
pub fn execute(
    global: &Global,
    (time_limit, own_limit): (Option<Duration>, Option<&'static str>),
    doing: &'static str,
    run: impl FnOnce() -> Result<u8, Failure>,
) -> ExitCode {
    budget::begin(global.budget, time_limit, own_limit, global.json);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let _stage = budget::stage(doing);
        run()
    }));
    budget::answered();
    let code = match outcome {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.report(global),
        Err(_) => exit::BUG,
    };
    for text in output::left_warnings() {
        message(&text);
    }
    ExitCode::from(code)
}

/// The panic hook: reports a bug of tamis.
pub fn report_bug(info: &PanicHookInfo<'_>) {
    let command: Vec<String> = std::env::args().collect();
    message(&format!(
        "tamis {}: this is a bug of tamis, not of your input\n{info}\ncommand: {}\n\
         please report it with the input; RUST_BACKTRACE=1 adds the call stack",
        env!("CARGO_PKG_VERSION"),
        command.join(" "),
    ));
    let backtrace = std::backtrace::Backtrace::capture();
    if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
        message(&backtrace.to_string());
    }
}
