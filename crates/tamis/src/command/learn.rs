//! `tamis learn`: policies from profiles.

use clap::ValueEnum;
use tamis_abi::Arch;
use tamis_learn::{DeniedCall, Generality, LearnError, Options, Run, Widening, learn};
use tamis_report::learn::{LearnReport, RefusedEntry, WiderEntry};
use tamis_session::profile::call_name;

use crate::cli::arches::ArchParser;
use crate::cli::load::{LoadArgs, native_arch};
use crate::cli::output::{OutputArgs, show_beside};
use crate::cli::{Failure, Global, exit, input, profile};

/// Learn a policy from profiles of a program's runs
#[derive(clap::Args)]
#[command(after_help = "\
The policy allows the calls that were made, and what programs need though it wasn't seen: ending, signals, aborting, \
the clock. Comments say how often each call was made, in how many of the runs, and where the policy is wider than what was \
seen. With `--base` the policy allows \
nothing that the base denies; this is proved.
Examples:
  tamis record --values -o monday.json -- ./service
  tamis learn monday.json tuesday.json -o service.tamis
  tamis learn monday.json --base docker.json -o service.tamis
  tamis compile service.tamis --counts monday.json -o service.bpf
Exit status: 1 if the base denies calls that were made and for which there is no older one; they are named.")]
pub(crate) struct Args {
    /// Profiles in any format, of one run or merged
    #[arg(required = true, value_name = "PROFILE", value_parser = input::path_parser())]
    profiles: Vec<String>,
    /// The architecture of tables and logs, which don't name it [default: this machine's]
    #[arg(long, value_name = "ARCH", value_parser = ArchParser, hide_possible_values = true)]
    arch: Option<Arch>,
    /// A policy that the learned one may not exceed
    #[arg(long, value_name = "POLICY", value_parser = input::PolicyParser, hide_possible_values = true)]
    base: Option<String>,
    /// How far the policy goes beyond what was seen
    #[arg(long, value_name = "HOW", default_value = "stable")]
    generality: Extent,
    /// The most values of an argument that are listed; with more it may have any, and the policy says so [default: no limit]
    #[arg(long, value_name = "COUNT", hide_short_help = true)]
    max_values: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
}

/// How far a policy goes beyond what was seen.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Extent {
    /// Only the values of arguments that were seen, however many
    Seen,
    /// Also other values where they are likely, but of arguments that decide what a call does only other combinations of
    /// flags that were seen, and of namespaces not even those
    Stable,
    /// As stable, and all calls of the built-in sets of files, networks, events and the like of which one was made
    Groups,
    /// The calls that were made, with any arguments
    Calls,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let arch = args.arch.unwrap_or_else(native_arch);
    for path in args.profiles.iter().chain(&args.base) {
        args.output.refuse_to_replace(path)?;
    }
    let profile = profile::load(&args.profiles, arch, global)?;
    let base = match &args.base {
        Some(path) => Some(LoadArgs::default().load_policy(path, global)?),
        None => None,
    };
    let options = Options {
        generality: match args.generality {
            Extent::Seen => Generality::Seen,
            Extent::Stable => Generality::Stable,
            Extent::Groups => Generality::Groups,
            Extent::Calls => Generality::Calls,
        },
        max_values: args.max_values,
        base: base
            .as_ref()
            .map(|policy| (policy.name.as_str(), &policy.ruleset)),
    };
    let run = Run {
        name: &names(&args.profiles),
        profile: &profile,
    };
    let learned = learn(&[run], &options).map_err(|error| refusal(&error))?;
    let report = LearnReport {
        runs: args.profiles.clone(),
        base: args.base.clone(),
        policy: learned.policy,
        refused: learned.refused.iter().map(entry).collect(),
        wider: learned.wider.iter().map(wider_entry).collect(),
    };
    let write = |output: &OutputArgs| output.text(&report.policy);
    show_beside(&args.output, write, &report, global)?;
    for refused in &report.refused {
        global.notice(&format!("tamis: {refused}"));
    }
    let is_complete = report
        .refused
        .iter()
        .all(|refused| refused.has_fallback || !refused.is_certain);
    Ok(if is_complete { exit::OK } else { exit::NO })
}

/// The file names for the policy's first line.
fn names(files: &[String]) -> String {
    const NAMED: usize = 5;
    let mut names = files[..files.len().min(NAMED)].join(" ");
    if files.len() > NAMED {
        names += " and others";
    }
    names
}

fn entry(refused: &DeniedCall) -> RefusedEntry {
    RefusedEntry {
        arch: refused.arch.name(),
        call: call_name(refused.arch, refused.nr),
        count: refused.count,
        is_certain: refused.is_certain,
        is_whole: refused.is_whole,
        has_fallback: refused.has_fallback,
    }
}

fn wider_entry(wider: &Widening) -> WiderEntry {
    WiderEntry {
        arch: wider.arch.name(),
        call: call_name(wider.arch, wider.nr),
        arguments: wider.arguments.clone(),
        reason: wider.reason.name(),
        text: wider.to_string(),
    }
}

fn refusal(error: &LearnError) -> Failure {
    let message = error.to_string();
    match error {
        LearnError::NothingLeft => Failure::new(exit::NO, message, None),
        LearnError::TooManyCases => Failure::gave_up(message, None),
        LearnError::NothingSeen => Failure::usage(message, "record a run with `tamis record`"),
        LearnError::TooLarge {
            has_many_values, ..
        } => {
            let help = "allow arguments with many values with any: `--max-values 64`";
            Failure::gave_up(message, has_many_values.then(|| help.to_owned()))
        }
        LearnError::Limit(_) | LearnError::Inexpressible(_) => Failure::gave_up(message, None),
        _ => Failure::bug(message, "please report this with the profiles"),
    }
}
