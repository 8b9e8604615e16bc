//! `tamis audit`: the filters of running processes.

use clap::ArgGroup;
use tamis_deploy::advisories::Examination;
use tamis_deploy::audit::{Audit, Tasks};
use tamis_kernel::probe;
use tamis_prover::{ComparisonResult, Scope};
use tamis_report::audit::AgainstEntry;
use tamis_report::entry::ComparisonResultEntry;

use crate::cli::limits::LimitArgs;
use crate::cli::load::{LoadArgs, native_arch};
use crate::cli::{Failure, Global, budget, exit, input, output, side};

/// Show what is enforced on processes, compared with a policy
#[derive(clap::Args)]
#[command(group(ArgGroup::new("processes").required(true)), after_help = "\
Examples:
  tamis audit --all
  tamis audit --pid 4711 --against server.tamis
  tamis audit --pid 4711 --against profile.json --json
  tamis audit --all --advisories
Each line is a process, or a thread with other filters than its process: its filters, what they do together with the calls \
of this machine's architecture, and with --against whether that is what the policy says, for every call. Filters from \
outside count: those of a container around it, or of its own program. The kernel shows filters only to processes with \
CAP_SYS_ADMIN and without a filter of their own.
With --advisories each line is the known weaknesses of a process's filters, by container and unit; the weaknesses of each \
different stack of filters follow, with calls that show them.
Exit status: 0; with --advisories 1 if a filter has one; with --against 1 if some process is under anything else than the policy, 4 if the filters of one can't \
be read, 3 if a comparison gave up.")]
pub(crate) struct Args {
    /// The process; may be repeated
    #[arg(short, long, value_name = "PID", group = "processes")]
    pid: Vec<i32>,
    /// All processes that have filters
    #[arg(long, conflicts_with = "pid", group = "processes")]
    all: bool,
    /// What should be enforced: a policy, or filters
    #[arg(long, value_name = "INPUT", value_parser = input::PolicyParser, hide_possible_values = true)]
    against: Option<String>,
    /// Show the filters that are weak in a known way
    ///
    /// Comparisons of 64 bits on arguments of 32, calls of other architectures, AF_ALG, io_uring, deny lists that are older
    /// than the running kernel (or `--kernel`), and others, each with its public source.
    #[arg(long, conflicts_with = "against")]
    advisories: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let against = match &args.against {
        Some(name) => {
            let load = args.load.for_comparison();
            let side = side::read(name, &load, global)?;
            load.check_options(side.filters())?;
            Some(side)
        }
        None => None,
    };
    let tasks = match args.all {
        true => Tasks::all()?,
        false => Tasks::requested(&args.pid)?,
    };
    if args.advisories {
        return advisories(args, tasks, global);
    }
    let audit = Audit {
        arch: native_arch(),
        against: against.as_ref(),
        scope: Scope {
            arches: args.load.arches.to_vec(),
            ..Scope::default()
        },
        limits: args.limits.limits(),
        stop: budget::stop(),
    };
    let report = audit.report(tasks);
    output::show(&report, global)?;
    let results = report.processes.iter();
    let results = results.filter_map(|own| own.against.as_ref());
    let is_partial = args.against.is_some() && !report.unreadable.is_empty();
    let mut code = match is_partial {
        true => exit::ENVIRONMENT,
        false => exit::OK,
    };
    for AgainstEntry { verdict, .. } in results {
        code = match verdict {
            ComparisonResultEntry(Some(ComparisonResult::Equal)) => code,
            ComparisonResultEntry(Some(_)) => return Ok(exit::NO),
            ComparisonResultEntry(None) => code.max(exit::GAVE_UP),
        };
    }
    Ok(code)
}

/// Shows the advisories that concern the filters of tasks.
fn advisories(args: &Args, tasks: Tasks, global: &Global) -> Result<u8, Failure> {
    let examination = Examination {
        arch: args.load.call_arch(),
        kernel: args.load.kernel.or_else(probe::version),
        limits: args.limits.limits(),
        stop: budget::stop(),
    };
    let report = examination.report(tasks);
    output::show(&report, global)?;
    Ok(match () {
        () if report.is_raised() => exit::NO,
        () if !report.unreadable.is_empty() => exit::ENVIRONMENT,
        () if report.has_gaps() => exit::GAVE_UP,
        () => exit::OK,
    })
}
