//! The `tamis-lab` command: the laboratory's experiments beside the product.
//!
//! Filters of sockets, extended BPF, engines that evaluate filters, and ways to catch system calls. Each group of
//! commands is a module; inputs, outputs, limits and failures are those of `tamis` (`tamis_cli`).

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tamis_cli::{Failure, Global, exit, help, platform, usage};

mod ebpf;
mod engine;
mod engines;
mod native;
mod object;
mod packet;
mod packets;
mod platforms;

/// Experiments beside tamis: extended BPF, filters of sockets, engines, ways to catch calls
#[derive(Parser)]
#[command(
    name = "tamis-lab",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = exit::HELP)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Subcommand)]
enum Command {
    Engines(engines::Args),
    Packets(packets::Args),
    Ebpf(ebpf::Args),
    Platforms(platforms::Args),
    Sandbox(tamis_cli::sandbox::Args),
}

impl Command {
    /// The command's activity, to follow *while*.
    const fn doing(&self) -> &'static str {
        match self {
            Command::Engines(_) | Command::Platforms(_) => "measuring",
            Command::Packets(_) | Command::Ebpf(_) | Command::Sandbox(_) => "working",
        }
    }

    fn run(&self, global: &Global) -> Result<u8, Failure> {
        match self {
            Command::Engines(args) => engines::run(args, global),
            Command::Packets(args) => packets::run(args, global),
            Command::Ebpf(args) => ebpf::run(args, global),
            Command::Platforms(args) => platforms::run(args, global),
            Command::Sandbox(args) => tamis_cli::sandbox::run(args, global),
        }
    }
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(tamis_cli::report_bug));
    platform::offer(tamis_platform::all());
    let tamis = help::brief(Cli::command(), "tamis-lab");
    let parsed = tamis
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(Cli { global, command }) => {
            let limits = (None, None);
            tamis_cli::execute(&global, limits, command.doing(), || command.run(&global))
        }
        Err(error) => usage::misused(&usage::without_command(error)),
    }
}
