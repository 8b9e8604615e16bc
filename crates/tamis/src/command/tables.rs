//! `tamis tables`: look up architectures, system calls and constants.

use std::fmt::Write;

use clap::Subcommand;
use serde::Serialize;
use tamis_abi::{Arch, Endian, Nr, consts, signature, syscall};
use tamis_diag::suggest;

use crate::cli::output::{print, print_json};
use crate::cli::{Failure, Global, exit, load, message};

/// Look up architectures, system calls and constants
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis tables syscalls openat            its number on every architecture
  tamis tables syscalls 257 --arch x86_64
  tamis tables constants AF_ --arch mips
Exit status: 1 if nothing matches.")]
pub(crate) struct Args {
    #[command(subcommand)]
    table: Table,
}

/// Which table.
#[derive(Subcommand)]
enum Table {
    /// The architectures: audit value, word size, byte order, number of calls
    Arches,
    /// System calls: numbers, first kernel version, arguments
    Syscalls(Query),
    /// Symbolic constants for arguments
    Constants(Query),
}

/// What to look for.
#[derive(clap::Args)]
struct Query {
    /// A name, a part of a name, or a number; without it everything is listed
    pattern: Option<String>,
    /// Only this architecture; may be repeated
    #[arg(long = "arch", value_name = "ARCH", value_parser = load::parse_arch)]
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

    /// Whether an entry is asked for: an exact number, an exact name, or else a part of the name.
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

/// The document for programs.
#[derive(Serialize)]
struct Document<T> {
    schema: &'static str,
    entries: Vec<T>,
}

#[derive(Serialize)]
struct ArchEntry {
    name: &'static str,
    audit: u32,
    word_bits: u8,
    endian: &'static str,
    syscalls: usize,
}

#[derive(Serialize)]
struct SyscallEntry {
    arch: &'static str,
    name: &'static str,
    nr: u32,
    since: Option<String>,
    args: Vec<ArgEntry>,
}

#[derive(Serialize)]
struct ArgEntry {
    name: &'static str,
    c_type: &'static str,
    width_bits: u32,
}

#[derive(Serialize)]
struct ConstantEntry {
    arch: &'static str,
    name: &'static str,
    value: u64,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.table {
        Table::Arches => show("tamis.tables.arches/1", arches(), arch_lines, global),
        Table::Syscalls(query) => {
            let entries = exact_or_partial(|exact| syscalls(query, exact));
            if entries.is_empty() {
                return Ok(nothing(query, syscall::names()));
            }
            show("tamis.tables.syscalls/1", entries, syscall_lines, global)
        }
        Table::Constants(query) => {
            let entries = exact_or_partial(|exact| constants(query, exact));
            if entries.is_empty() {
                let names = query.arches().into_iter().flat_map(consts::names);
                return Ok(nothing(query, names));
            }
            show("tamis.tables.constants/1", entries, constant_lines, global)
        }
    }
}

/// An exact name is what the user meant, if there is one; else every name that holds the text.
fn exact_or_partial<T>(find: impl Fn(bool) -> Vec<T>) -> Vec<T> {
    let exact = find(true);
    if exact.is_empty() { find(false) } else { exact }
}

fn show<T: Serialize>(
    schema: &'static str,
    entries: Vec<T>,
    lines: fn(&[T]) -> String,
    global: &Global,
) -> Result<u8, Failure> {
    if global.json {
        print_json(&Document { schema, entries })?;
    } else {
        print(lines(&entries).as_bytes())?;
    }
    Ok(exit::OK)
}

fn nothing(query: &Query, names: impl Iterator<Item = &'static str>) -> u8 {
    let pattern = query.pattern.as_deref().unwrap_or("");
    message(&format!("nothing matches `{pattern}`"));
    if let Some(near) = suggest::nearest(pattern, names) {
        message(&format!("help: did you mean `{near}`?"));
    }
    exit::NO
}

fn arches() -> Vec<ArchEntry> {
    let entry = |arch: Arch| ArchEntry {
        name: arch.name(),
        audit: arch.audit(),
        word_bits: if arch.is_64_bit() { 64 } else { 32 },
        endian: match arch.endian() {
            Endian::Little => "little",
            Endian::Big => "big",
        },
        syscalls: syscall::all(arch).count(),
    };
    Arch::all().map(entry).collect()
}

fn syscalls(query: &Query, exact: bool) -> Vec<SyscallEntry> {
    let of_arch = |arch: Arch| {
        syscall::all(arch)
            .filter(move |(nr, name)| query.wants(name, u64::from(nr.0), exact))
            .map(move |(nr, name)| syscall_entry(arch, nr, name))
    };
    query.arches().into_iter().flat_map(of_arch).collect()
}

fn syscall_entry(arch: Arch, nr: Nr, name: &'static str) -> SyscallEntry {
    let args = signature::args(name).unwrap_or_default();
    let arg = |arg: &signature::Arg| ArgEntry {
        name: arg.name,
        c_type: arg.c_type,
        width_bits: signature::width(arch, name, arg).bits(),
    };
    SyscallEntry {
        arch: arch.name(),
        name,
        nr: nr.0,
        since: syscall::since(arch, nr).map(|version| version.to_string()),
        args: args.iter().map(arg).collect(),
    }
}

fn constants(query: &Query, exact: bool) -> Vec<ConstantEntry> {
    let of_arch = |arch: Arch| {
        consts::names(arch).filter_map(move |name| {
            let value = consts::value(arch, name)?;
            let arch = arch.name();
            query
                .wants(name, value, exact)
                .then_some(ConstantEntry { arch, name, value })
        })
    };
    query.arches().into_iter().flat_map(of_arch).collect()
}

fn arch_lines(entries: &[ArchEntry]) -> String {
    let mut text = String::new();
    for ArchEntry {
        name,
        audit,
        word_bits,
        endian,
        syscalls,
    } in entries
    {
        let _ = writeln!(
            text,
            "{name:<12} {audit:#010x}  {word_bits} bit  {endian:<6}  {syscalls:>3} calls"
        );
    }
    text
}

fn syscall_lines(entries: &[SyscallEntry]) -> String {
    let mut text = String::new();
    for SyscallEntry {
        arch,
        name,
        nr,
        since,
        args,
    } in entries
    {
        let args: Vec<String> = args
            .iter()
            .map(|arg| format!("{} {}", arg.c_type, arg.name))
            .collect();
        let since = since
            .as_ref()
            .map_or_else(String::new, |since| format!("  since {since}"));
        let _ = writeln!(
            text,
            "{arch:<12} {nr:>10}  {name}({}){since}",
            args.join(", ")
        );
    }
    text
}

fn constant_lines(entries: &[ConstantEntry]) -> String {
    let mut text = String::new();
    for ConstantEntry { arch, name, value } in entries {
        let _ = writeln!(
            text,
            "{arch:<12} {name} = {value:#x} ({})",
            value.cast_signed()
        );
    }
    text
}
