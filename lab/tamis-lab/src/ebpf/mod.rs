//! `tamis-lab ebpf`: extended BPF, from object files of clang and from the kernel's conversion of classic filters.

mod check;
mod disasm;
pub(crate) mod listing;

use clap::Subcommand;
use tamis_cli::{Failure, Global};

use crate::packets::eval;

/// Show, check and evaluate extended BPF
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis-lab ebpf disasm filter.bpf
  tamis-lab ebpf eval filter.o capture.pcap --section socket")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Subcommand)]
enum Command {
    Disasm(disasm::Args),
    Check(check::Args),
    Eval(eval::Args),
}

/// Runs a command of the group.
pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Disasm(args) => disasm::run(args, global),
        Command::Check(args) => check::run(args, global),
        Command::Eval(args) => eval::run(args, global),
    }
}
