//! `tamis completions`: scripts that teach a shell to complete the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Failure, exit, output};

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tamis completions bash > ~/.local/share/bash-completion/completions/tamis")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "tamis", &mut script);
    output::print(&script)?;
    Ok(exit::OK)
}
