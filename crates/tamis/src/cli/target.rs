//! Targets of optimisation: a profile, an objective, an effort, a kernel.
//!
//! None of them changes the result of a filter, only its speed. So a profile that doesn't fit the policy is
//! only a warning.

use std::cmp::Reverse;

use clap::ValueEnum;
use tamis_abi::{ActionKind, Nr};
use tamis_compiler::{Effort, Objective, Options};
use tamis_diag::{Diagnostic, Sources, code};
use tamis_profile::Profile;
use tamis_rules::{Predicate, Section};

use super::load::{LoadArgs, Policy};
use super::{Failure, Global, profile};

/// How many calls a warning names.
const MAX_NAMED: usize = 3;

/// What to optimise for; `--kernel` is among the options of [`LoadArgs`].
#[derive(clap::Args, Debug)]
pub(crate) struct TargetArgs {
    /// How often each call is made: a profile, a table of `strace -c` or `perf trace -s`, or a minijail
    /// frequency file; may be repeated, counts add up [default: ordinary programs]
    #[arg(long = "profile", value_name = "FILE")]
    profiles: Vec<String>,
    /// What to minimise first [default: steps]
    #[arg(long, value_name = "WHAT")]
    objective: Option<Goal>,
    /// How much work to spend on making the filter fast; every filter is proved [default: full]
    #[arg(long, value_name = "EFFORT")]
    effort: Option<Work>,
}

/// The command line's names of the efforts.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Work {
    /// The fastest filter that is found
    Full,
    /// Less than half the work, for about 1 % more executed instructions on average
    Quick,
}

/// The command line's names of the objectives.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Goal {
    /// The expected number of executed instructions
    Steps,
    /// The expected time, with mispredicted branches
    Ns,
    /// The number of instructions
    Length,
}

impl TargetArgs {
    /// Refuses options that none of a command's inputs has a use for, because nothing is compiled.
    pub(crate) fn check_use(&self, compiles: bool) -> Result<(), Failure> {
        check_given("--profile", !self.profiles.is_empty() && !compiles)?;
        self.check_objective_use(compiles)
    }

    /// The same for a command that has another use for a profile.
    pub(crate) fn check_objective_use(&self, compiles: bool) -> Result<(), Failure> {
        check_given("--objective", self.objective.is_some() && !compiles)?;
        check_given("--effort", self.effort.is_some() && !compiles)
    }

    /// Whether the user says what to optimise for: by a profile, by an objective; and with which effort.
    pub(crate) fn says(&self) -> [bool; 3] {
        [
            !self.profiles.is_empty(),
            self.objective.is_some(),
            self.effort.is_some(),
        ]
    }

    /// The options for the compiler. Tables among the profiles are about the architecture of calls that
    /// name none.
    pub(crate) fn options(&self, load: &LoadArgs, global: &Global) -> Result<Options, Failure> {
        let profile = match self.profiles.as_slice() {
            [] => None,
            paths => Some(profile::load(paths, load.call_arch(), global)?),
        };
        Ok(Options {
            profile,
            objective: match self.objective {
                None => Objective::default(),
                Some(Goal::Steps) => Objective::Steps,
                Some(Goal::Ns) => Objective::Ns,
                Some(Goal::Length) => Objective::Length,
            },
            effort: match self.effort {
                None | Some(Work::Full) => Effort::Full,
                Some(Work::Quick) => Effort::Quick,
            },
            kernel: load.kernel,
            ..Options::default()
        })
    }
}

fn check_given(option: &str, is_in_vain: bool) -> Result<(), Failure> {
    if !is_in_vain {
        return Ok(());
    }
    Err(Failure::usage(
        format!("{option} is for policies, and the inputs are programs"),
        format!("omit {option}"),
    ))
}

/// Warns if the profile seems to be of another program than the policy.
pub(crate) fn warn_profile_mismatch(options: &Options, policy: &Policy, global: &Global) {
    let Some(profile) = &options.profile else {
        return;
    };
    if let Some(warning) = profile_mismatch(profile, policy.ruleset.sections()) {
        global.warn(&[warning], &Sources::new());
    }
}

/// What doesn't fit, if anything: calls that are counted and never allowed.
fn profile_mismatch(profile: &Profile, sections: &[Section]) -> Option<Diagnostic> {
    let mut denied = Vec::new();
    let (mut allows_any, mut total) = (false, 0_u128);
    for (arch, nr, call) in profile.calls().filter(|(_, _, call)| call.count > 0) {
        let Some(section) = sections.iter().find(|section| section.arch == arch) else {
            continue;
        };
        total += u128::from(call.count);
        if may_allow(section, nr) {
            allows_any = true;
        } else {
            denied.push((call.count, arch, nr));
        }
    }
    if total == 0 {
        let arches: Vec<&str> = sections.iter().map(|section| section.arch.name()).collect();
        let message = "the profile has no calls of the filter's architectures";
        let help = "set the architecture of a table with `--arch`, or use another profile";
        return Some(
            Diagnostic::warning(code::PROFILE_UNFIT, message)
                .note(format!("the filter is for {}", arches.join(", ")))
                .help(help),
        );
    }
    if denied.is_empty() {
        return None;
    }
    denied.sort_by_key(|(count, arch, nr)| (Reverse(*count), *arch, *nr));
    let message = match allows_any {
        true => "the profile counts calls that the policy never allows",
        false => "the policy allows none of the calls that the profile counts",
    };
    let named = denied.iter().take(MAX_NAMED).map(|(count, arch, nr)| {
        let share = *count as f64 / total as f64 * 100.0;
        format!("{} ({share:.1} %)", profile::name(*arch, *nr))
    });
    let named: Vec<String> = named.collect();
    let more = match denied.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(
        Diagnostic::warning(code::PROFILE_UNFIT, message)
            .note(format!("never allowed: {}{more}", named.join(", ")))
            .help("check that the profile and the policy are for the same program"),
    )
}

/// Whether some call with this number is let through, perhaps with the help of a tracer.
fn may_allow(section: &Section, nr: Nr) -> bool {
    let lets_through = |kind: ActionKind| {
        let passing = [
            ActionKind::Allow,
            ActionKind::Log,
            ActionKind::Trace,
            ActionKind::Notify,
        ];
        passing.contains(&kind)
    };
    for rule in &section.rules {
        if !rule.syscalls.contains(nr.0) {
            continue;
        }
        if lets_through(rule.action.kind) {
            return true;
        }
        if rule.when == Predicate::True {
            return false;
        }
    }
    lets_through(section.default.kind)
}
