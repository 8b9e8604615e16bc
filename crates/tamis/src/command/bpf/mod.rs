//! `tamis bpf`: commands for single programs.
//!
//! They are for developers who inspect the output of a compiler. Policies are compiled, compared and run by the
//! commands outside this group. Each file is one command.

use clap::Subcommand;

use crate::cli::{Failure, Global};

mod asm;
mod bisect;
mod decompile;
mod disasm;
pub(super) mod dump;
mod eval;
mod fuzz;
mod passes;
mod reduce;

/// Read, run, compare and reduce single programs
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis bpf eval filter.bpf 'socket(AF_VSOCK)'
  tamis bpf decompile filter.bpf -o policy.tamis")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

/// A command of the group.
#[derive(Subcommand)]
pub(super) enum Command {
    Asm(asm::Args),
    Disasm(disasm::Args),
    Eval(eval::Args),
    Decompile(decompile::Args),
    Dump(dump::Args),
    Reduce(reduce::Args),
    Bisect(bisect::Args),
    Passes(passes::Args),
    Fuzz(fuzz::Args),
}

impl Command {
    /// The option that ends the search with partial results.
    pub(super) const fn own_limit(&self) -> Option<&'static str> {
        match self {
            Command::Fuzz(_) => Some("`--time SECONDS` ends with a summary"),
            _ => None,
        }
    }

    /// The activity of the command, as the end of a sentence with *while*.
    pub(super) const fn doing(&self) -> &'static str {
        match self {
            Command::Asm(_) => "assembling",
            Command::Disasm(_) => "disassembling",
            Command::Eval(_) => "evaluating",
            Command::Decompile(_) => "decompiling",
            Command::Reduce(_) => "reducing",
            Command::Bisect(_) => "searching",
            Command::Fuzz(_) => "running calls",
            Command::Dump(_) | Command::Passes(_) => "working",
        }
    }

    /// Runs the command and returns its exit code.
    pub(super) fn run(&self, global: &Global) -> Result<u8, Failure> {
        match self {
            Command::Asm(args) => asm::run(args, global),
            Command::Disasm(args) => disasm::run(args, global),
            Command::Eval(args) => eval::run(args, global),
            Command::Decompile(args) => decompile::run(args, global),
            Command::Dump(args) => dump::run(args, global),
            Command::Reduce(args) => reduce::run(args, global),
            Command::Bisect(args) => bisect::run(args, global),
            Command::Passes(args) => passes::run(args, global),
            Command::Fuzz(args) => fuzz::run(args, global),
        }
    }
}
