//! `tamis-lab packets`: filters of sockets, which load from packets, as `tcpdump -dd` and `-ddd` print them.

mod asm;
mod bench;
mod disasm;
pub(crate) mod eval;
mod optimize;

use clap::Subcommand;
use tamis_cli::{Failure, Global};

/// Assemble, show, evaluate, optimise and time filters of sockets
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tcpdump -dd 'port 22' | tamis-lab packets eval - capture.pcap
  tcpdump -ddd 'port 22' | tamis-lab packets optimize -o better.bpf")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Subcommand)]
enum Command {
    Asm(asm::Args),
    Disasm(disasm::Args),
    Eval(eval::Args),
    Optimize(optimize::Args),
    Bench(bench::Args),
}

/// Runs a command of the group.
pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Asm(args) => asm::run(args, global),
        Command::Disasm(args) => disasm::run(args, global),
        Command::Eval(args) => eval::run(args, global),
        Command::Optimize(args) => optimize::run(args, global),
        Command::Bench(args) => bench::run(args, global),
    }
}
