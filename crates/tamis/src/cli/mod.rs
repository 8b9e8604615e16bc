//! Shared parts of the subcommands: options, input, output, exit codes, failures.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use tamis_diag::escape::harmless;
use tamis_diag::{Diagnostic, Severity, Sources};

pub(crate) mod arches;
pub(crate) mod budget;
pub(crate) mod call;
pub(crate) mod chart;
pub(crate) mod compare;
pub(crate) mod compiler;
pub(crate) mod denials;
pub(crate) mod engine;
pub(crate) mod exit;
pub(crate) mod failure;
mod fold;
pub(crate) mod fragment;
pub(crate) mod help;
pub(crate) mod input;
pub(crate) mod judged;
pub(crate) mod languages;
pub(crate) mod library;
pub(crate) mod limits;
pub(crate) mod load;
mod memory;
pub(crate) mod object;
pub(crate) mod output;
pub(crate) mod packet;
pub(crate) mod parquet;
pub(crate) mod platform;
pub(crate) mod private;
pub(crate) mod proc;
pub(crate) mod profile;
pub(crate) mod progress;
pub(crate) mod replace;
pub(crate) mod root;
pub(crate) mod settings;
pub(crate) mod side;
pub(crate) mod systemd;
pub(crate) mod target;
pub(crate) mod trust;

pub(crate) use failure::Failure;

/// Options of every subcommand.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Global {
    /// Print a JSON document instead of text
    #[arg(long, global = true, display_order = 897)]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(
        short,
        long,
        global = true,
        display_order = 898,
        hide_short_help = true
    )]
    pub(crate) quiet: bool,
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
    #[command(flatten)]
    pub(crate) budget: budget::BudgetArgs,
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
    /// For readings that repeat what was said before.
    pub(crate) fn silent() -> Global {
        Global {
            quiet: true,
            ..Global::default()
        }
    }

    /// Whether messages on standard error are coloured.
    pub(crate) fn colours_messages(&self) -> bool {
        self.colours(io::stderr().is_terminal())
    }

    /// Whether results on standard output are coloured.
    pub(crate) fn colours_results(&self) -> bool {
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

    /// Refuses `--json` where the result is something else than a report.
    pub(crate) fn refuse_document(&self, result: &str) -> Result<(), Failure> {
        match self.json {
            true => Err(Failure::usage(
                format!("{result} is not available as a document"),
                "leave `--json` out",
            )),
            false => Ok(()),
        }
    }

    /// Prints a message that is neither result nor error, once, unless `--quiet` is given.
    pub(crate) fn notice(&self, text: &str) {
        if !self.quiet && is_new(&[], text) {
            message(text);
        }
    }

    /// Prints warnings about a text, once, unless there are none or `--quiet` is given; with `--json` they are part of the
    /// command's document.
    pub(crate) fn warn(&self, warnings: &[Diagnostic], sources: &Sources) {
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

/// Whether a text, by which these warnings are told, hasn't been told before: an input that is named twice is read twice. Warnings without a
/// place may be about another input; notes without one are about what is assumed for all.
fn is_new(warnings: &[Diagnostic], text: &str) -> bool {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_first = told.insert(text.to_owned());
    let may_be_other = |own: &Diagnostic| own.labels.is_empty() && own.severity != Severity::Note;
    is_first || warnings.iter().any(may_be_other)
}

/// Writes a line to standard error, without what a terminal would obey: it may have names of files or words of a user.
pub(crate) fn message(text: &str) {
    message_as_is(&harmless(text));
}

/// Writes a document or a text with colours to standard error; a failure of that cannot be reported.
pub(crate) fn message_as_is(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Runs something that may panic, without telling the user; `None` if it did.
pub(crate) fn quietly<R>(run: impl FnOnce() -> R) -> Option<R> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    panic::set_hook(hook);
    result.ok()
}

/// The panic hook: a panic is a bug of tamis, so say how to report it.
pub(crate) fn report_bug(info: &PanicHookInfo<'_>) {
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
