//! `tamis tables`: look up architectures, system calls, constants and options of policy languages.

use clap::Subcommand;
use tamis_abi::{Arch, consts, entry_point, syscall};
use tamis_diag::{Code, suggest};
use tamis_policy::{front_end, option};
use tamis_report::tables::{ArchRow, CodeRow, ConstantRow, OptionRow, SyscallRow, Table};

use crate::cli::arches::ArchParser;
use crate::cli::output::show;
use crate::cli::{Failure, Global, exit};
use crate::code;

/// Look up architectures, calls, constants, codes and options
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis tables syscalls openat            its number on every architecture
  tamis tables syscalls 257 --arch x86_64
  tamis tables constants AF_ --arch mips
  tamis tables codes argument             diagnostics about arguments
  tamis tables options minijail           what -O and flags such as --dialect take
Exit status: 1 if nothing matches.")]
pub(crate) struct Args {
    #[command(subcommand)]
    table: TableKind,
}

/// The table.
#[derive(Subcommand)]
enum TableKind {
    /// The architectures: audit value, word size, byte order, number of calls
    #[command(after_help = "\
Example:
  tamis tables arches")]
    Arches,
    /// System calls: numbers, first kernel version, arguments
    #[command(after_help = "\
Examples:
  tamis tables syscalls openat            its number on every architecture
  tamis tables syscalls 257 --arch x86_64
Exit status: 1 if nothing matches.")]
    Syscalls(Query),
    /// Symbolic constants for arguments
    #[command(after_help = "\
Examples:
  tamis tables constants AF_ --arch mips
  tamis tables constants 0x5401 --arch x86_64
Exit status: 1 if nothing matches.")]
    Constants(Query),
    /// Codes of diagnostics, which `tamis explain` explains
    #[command(after_help = "\
Examples:
  tamis tables codes                      all
  tamis tables codes argument             those about arguments
Exit status: 1 if nothing matches.")]
    Codes {
        /// A code, or a part of a title; without it everything is listed
        pattern: Option<String>,
    },
    /// Options of policy languages, for `-O NAME=VALUE` or as flags: `--dialect c`
    #[command(after_help = "\
Examples:
  tamis tables options minijail           what -O and flags such as --dialect take
Exit status: 1 if nothing matches.")]
    Options {
        /// A language, or an option or a part of its name; without it everything is listed
        pattern: Option<String>,
    },
}

/// The search.
#[derive(clap::Args)]
struct Query {
    /// A name, a part of a name, or a number; without it everything is listed
    pattern: Option<String>,
    /// Only this architecture; may be repeated
    #[arg(long = "arch", value_name = "ARCH", value_parser = ArchParser, hide_possible_values = true)]
    arches: Vec<Arch>,
}

impl Query {
    fn arches(&self) -> Vec<Arch> {
        if self.arches.is_empty() {
            Arch::all().collect()
        } else {
            self.arches.clone()
        }
    }

    /// Whether an entry matches: an exact number, an exact name, or else a part of the name.
    fn wants(&self, name: &str, value: u64, exact: bool) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        match parse_number(pattern) {
            Some(number) => number == value,
            None if exact => name == pattern,
            None => name.contains(pattern.as_str()),
        }
    }
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.table {
        TableKind::Arches => {
            let entries: Vec<_> = Arch::all().map(ArchRow::from_arch).collect();
            show(&Table { entries }, global)?;
        }
        TableKind::Syscalls(query) => {
            let entries = exact_or_partial(|exact| syscalls(query, exact));
            if entries.is_empty() {
                let pattern = query.pattern.as_deref();
                return Err(match pattern.and_then(entry_point::call_of) {
                    Some(meant) => nothing_but(pattern, Some(meant)),
                    None => nothing(pattern, syscall::names()),
                });
            }
            show(&Table { entries }, global)?;
        }
        TableKind::Constants(query) => {
            let entries = exact_or_partial(|exact| constants(query, exact));
            if entries.is_empty() {
                let names = query.arches().into_iter().flat_map(consts::names);
                return Err(nothing(query.pattern.as_deref(), names));
            }
            show(&Table { entries }, global)?;
        }
        TableKind::Codes { pattern } => {
            let pattern = pattern.as_deref().unwrap_or_default();
            let is_wanted = |code: &Code| code.id.contains(pattern) || code.title.contains(pattern);
            let codes = code::all().into_iter().filter(is_wanted);
            let entries: Vec<_> = codes.map(|code| CodeRow::from_code(&code)).collect();
            if entries.is_empty() {
                return Err(nothing(
                    Some(pattern),
                    code::all().into_iter().map(|code| code.id),
                ));
            }
            show(&Table { entries }, global)?;
        }
        TableKind::Options { pattern } => {
            let pattern = pattern.as_deref();
            let entries = exact_or_partial(|exact| options(pattern, exact));
            if entries.is_empty() {
                let languages = || front_end::ALL.into_iter().map(|own| own.name);
                if let Some(language) = languages().find(|name| Some(*name) == pattern) {
                    let message = format!("{language} has no options of its own");
                    return Err(Failure::new(exit::NO, message, None));
                }
                let names = option::all().into_iter().map(|option| option.name);
                return Err(nothing(pattern, names.chain(languages())));
            }
            show(&Table { entries }, global)?;
        }
    }
    Ok(exit::OK)
}

/// The exact match, if there is one, or else all names that contain the text.
fn exact_or_partial<T>(find: impl Fn(bool) -> Vec<T>) -> Vec<T> {
    let exact = find(true);
    if exact.is_empty() { find(false) } else { exact }
}

fn nothing(pattern: Option<&str>, names: impl Iterator<Item = &'static str>) -> Failure {
    nothing_but(pattern, suggest::nearest(pattern.unwrap_or(""), names))
}

/// The failure without a match, with a similar name.
fn nothing_but(pattern: Option<&str>, near: Option<&str>) -> Failure {
    let pattern = pattern.unwrap_or("");
    let help = near.map(|near| format!("did you mean `{near}`?"));
    Failure::new(exit::NO, format!("nothing matches `{pattern}`"), help)
}

fn syscalls(query: &Query, exact: bool) -> Vec<SyscallRow> {
    let of_arch = |arch: Arch| {
        syscall::all(arch)
            .filter(move |(nr, name)| query.wants(name, u64::from(nr.0), exact))
            .map(move |(nr, name)| SyscallRow::from_syscall(arch, nr, name))
    };
    query.arches().into_iter().flat_map(of_arch).collect()
}

fn constants(query: &Query, exact: bool) -> Vec<ConstantRow> {
    let of_arch = |arch: Arch| {
        consts::names(arch).filter_map(move |name| {
            let value = consts::value(arch, name)?;
            let arch = arch.name();
            query
                .wants(name, value, exact)
                .then_some(ConstantRow { arch, name, value })
        })
    };
    query.arches().into_iter().flat_map(of_arch).collect()
}

/// The options of a language, or those with a name.
fn options(pattern: Option<&str>, exact: bool) -> Vec<OptionRow> {
    let is_wanted = |language: &str, name: &str| match pattern {
        None => true,
        Some(pattern) if exact => language == pattern || name == pattern,
        Some(pattern) => name.contains(pattern),
    };
    let of_language = |language: &'static front_end::FrontEnd| {
        let options = language.options.iter();
        options
            .filter(move |option| is_wanted(language.name, option.name))
            .map(move |option| OptionRow::from_option(language, option))
    };
    front_end::ALL.into_iter().flat_map(of_language).collect()
}
