//! The subcommands, one file each.
//!
//! Each has an `Args`, whose doc comments are the help, and a `run` that returns the exit code.

use std::time::Duration;

use clap::Subcommand;
use tamis_diag::suggest;

use crate::cli::{Failure, Global, sandbox};

mod audit;
mod bench;
mod bpf;
mod combine;
mod compile;
mod completions;
mod convert;
mod diff;
mod exec;
mod explain;
mod harden;
mod inject;
mod learn;
mod libseccomp;
mod lint;
mod man;
mod oci;
mod optimize;
mod precompile;
mod profile;
mod prove;
mod record;
mod run;
mod tables;
mod test;
mod trace;

/// A subcommand.
#[derive(Subcommand)]
pub(crate) enum Command {
    Compile(compile::Args),
    Precompile(precompile::Args),
    Optimize(optimize::Args),
    Explain(explain::Args),
    Lint(lint::Args),
    Prove(prove::Args),
    Test(test::Args),
    Diff(diff::Args),
    Run(run::Args),
    Exec(exec::Args),
    Record(record::Args),
    Trace(trace::Args),
    Learn(learn::Args),
    Sandbox(sandbox::Args),
    Inject(inject::Args),
    Audit(audit::Args),
    Harden(harden::Args),
    Oci(oci::Args),
    Libseccomp(libseccomp::Args),
    Convert(convert::Args),
    Combine(combine::Args),
    Tables(tables::Args),
    Profile(profile::Args),
    Bench(bench::Args),
    Bpf(bpf::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
}

/// The default time limit of a comparison.
const COMPARISON_LIMIT: Duration = Duration::from_secs(10);

/// The command of the group `bpf` with this name or a similar one, unless a command outside the group is as similar:
/// `bpf asm` for `asm`.
pub(crate) fn nearest_of_bpf(word: &str) -> Option<String> {
    let group = bpf::Command::augment_subcommands(clap::Command::new("bpf"));
    let all = Command::augment_subcommands(clap::Command::new("tamis"));
    let names =
        [&all, &group].map(|command| command.get_subcommands().map(clap::Command::get_name));
    let nearest = suggest::nearest(word, names.into_iter().flatten())?;
    group
        .find_subcommand(nearest)
        .map(|_| format!("bpf {nearest}"))
}

impl Command {
    /// The default time limit.
    pub(crate) const fn default_time_limit(&self) -> Option<Duration> {
        match self {
            Command::Prove(_) | Command::Diff(_) => Some(COMPARISON_LIMIT),
            _ => None,
        }
    }

    /// The option that ends the search with partial results.
    pub(crate) const fn own_limit(&self) -> Option<&'static str> {
        match self {
            Command::Bpf(args) => args.command.own_limit(),
            _ => None,
        }
    }

    /// The activity of the command, as the end of a sentence with *while*.
    pub(crate) const fn doing(&self) -> &'static str {
        match self {
            Command::Compile(_) | Command::Precompile(_) => "compiling",
            Command::Optimize(_) => "optimising",
            Command::Explain(_) => "explaining",
            Command::Lint(_) => "looking for mistakes",
            Command::Test(_) => "checking",
            Command::Prove(_) | Command::Diff(_) | Command::Audit(_) => "comparing",
            Command::Harden(_) | Command::Oci(_) => "compiling",
            Command::Convert(_) => "converting",
            Command::Combine(_) => "combining",
            Command::Bpf(args) => args.command.doing(),
            Command::Bench(_) => "measuring",
            Command::Record(_) => "recording",
            Command::Trace(_) => "tracing",
            Command::Learn(_) => "learning",
            Command::Run(_)
            | Command::Exec(_)
            | Command::Sandbox(_)
            | Command::Inject(_)
            | Command::Libseccomp(_)
            | Command::Tables(_)
            | Command::Profile(_)
            | Command::Completions(_)
            | Command::Man(_) => "working",
        }
    }

    /// Parses a command line without describing all subcommands, if it is of a form that is common and time-critical.
    pub(crate) fn parse_fast() -> Option<(Global, Command)> {
        let (global, args) = exec::parse_alone(std::env::args_os())?;
        Some((global, Command::Exec(args)))
    }

    /// Runs the subcommand and returns the exit code.
    pub(crate) fn run(&self, global: &Global) -> Result<u8, Failure> {
        match self {
            Command::Compile(args) => compile::run(args, global),
            Command::Precompile(args) => precompile::run(args, global),
            Command::Optimize(args) => optimize::run(args, global),
            Command::Explain(args) => explain::run(args, global),
            Command::Lint(args) => lint::run(args, global),
            Command::Prove(args) => prove::run(args, global),
            Command::Test(args) => test::run(args, global),
            Command::Diff(args) => diff::run(args, global),
            Command::Run(args) => run::run(args, global),
            Command::Exec(args) => exec::run(args, global),
            Command::Record(args) => record::run(args, global),
            Command::Trace(args) => trace::run(args, global),
            Command::Learn(args) => learn::run(args, global),
            Command::Sandbox(args) => sandbox::run(args, global),
            Command::Inject(args) => inject::run(args, global),
            Command::Audit(args) => audit::run(args, global),
            Command::Harden(args) => harden::run(args, global),
            Command::Oci(args) => oci::run(args, global),
            Command::Libseccomp(args) => libseccomp::run(args, global),
            Command::Convert(args) => convert::run(args, global),
            Command::Combine(args) => combine::run(args, global),
            Command::Tables(args) => tables::run(args, global),
            Command::Profile(args) => profile::run(args, global),
            Command::Bench(args) => bench::run(args, global),
            Command::Bpf(args) => args.command.run(global),
            Command::Completions(args) => completions::run(args, global),
            Command::Man(args) => man::run(args, global),
        }
    }
}
