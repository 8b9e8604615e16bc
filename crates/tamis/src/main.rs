//! The `tamis` command.
//!
//! One file per subcommand in [`command`], what they share in [`cli`]. A subcommand returns its exit
//! code or a [`cli::Failure`]; results go to standard output, everything else to standard error.

use std::process::ExitCode;

use clap::Parser;

mod cli;
mod command;

// What `tamis exec` hands on.
tamis_kernel::note_start!();

/// Compile, explain and run Linux seccomp-bpf filters.
#[derive(Parser)]
#[command(
    name = "tamis",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = cli::exit::HELP)]
struct Cli {
    #[command(flatten)]
    global: cli::Global,
    #[command(subcommand)]
    command: command::Command,
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(cli::report_bug));
    let (global, command) = command::Command::parse_fast().unwrap_or_else(|| {
        let Cli { global, command } = Cli::parse();
        (global, command)
    });
    cli::budget::begin(global.budget, command.default_time_limit(), global.json);
    // A panic is a bug: the hook has told the user, the exit code tells programs.
    let outcome = std::panic::catch_unwind(|| {
        let _stage = cli::budget::stage(command.doing());
        command.run(&global)
    });
    cli::budget::answered();
    let code = match outcome {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.report(&global),
        Err(_) => cli::exit::BUG,
    };
    ExitCode::from(code)
}
