//! `tamis bpf bisect`: the change of a pass that makes a program wrong.

use tamis_compiler::passes::registry::Selection;
use tamis_compiler::{Bisection, bisect};
use tamis_report::bisect::BisectReport;

use crate::cli::compiler::selection;
use crate::cli::load::LoadArgs;
use crate::cli::output::show;
use crate::cli::{Failure, Global, exit, input};

/// Find the change of a compiler pass that makes a program wrong
#[derive(clap::Args)]
#[command(after_help = "\
For authors of passes, and for bug reports: if the proof refutes a program, this finds the first change \
that makes it wrong, by bisecting over the fuel (the number of changes allowed).
Examples:
  tamis bpf bisect policy.tamis
  tamis bpf bisect policy.tamis --passes thread-jumps
Exit status: 1 if there is such a change.")]
pub(crate) struct Args {
    /// The policy: a path, `-`, or the name of an embedded policy
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    policy: String,
    /// The passes to run, in order, separated by commas [default: all]
    #[arg(long, value_name = "NAMES")]
    passes: Option<String>,
    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let passes = args
        .passes
        .as_deref()
        .map_or(Ok(Selection::default()), selection)?;
    let policy = args.load.load_policy(&args.policy, global)?;
    let found = bisect(&policy.ruleset, &passes).map_err(|error| policy.compile_error(&error))?;
    show(&BisectReport::from_bisection(&policy.name, &found), global)?;
    Ok(match found {
        Bisection::Right { .. } => exit::OK,
        Bisection::WrongFromTheStart(_) | Bisection::Found(_) => exit::NO,
    })
}
