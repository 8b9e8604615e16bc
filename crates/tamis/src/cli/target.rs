//! Targets of optimisation: a profile, an objective, an effort, a kernel.
//!
//! None of them changes the result of a filter, only its speed. So a profile that doesn't fit the policy is
//! only a warning.

use clap::ValueEnum;
use tamis_compiler::{CompileOptions, Effort, Objective};
use tamis_diag::Sources;
use tamis_session::Policy;
use tamis_session::profile::mismatch;

use super::load::LoadArgs;
use super::{Failure, Global, profile};

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

    /// Whether a profile, an objective and an effort were given.
    pub(crate) fn given_options(&self) -> [bool; 3] {
        [
            !self.profiles.is_empty(),
            self.objective.is_some(),
            self.effort.is_some(),
        ]
    }

    /// The options for the compiler. Tables among the profiles are about the architecture of calls that
    /// name none.
    pub(crate) fn options(
        &self,
        load: &LoadArgs,
        global: &Global,
    ) -> Result<CompileOptions, Failure> {
        let profile = match self.profiles.as_slice() {
            [] => None,
            paths => Some(profile::load(paths, load.call_arch(), global)?),
        };
        Ok(CompileOptions {
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
            ..CompileOptions::default()
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
pub(crate) fn warn_profile_mismatch(options: &CompileOptions, policy: &Policy, global: &Global) {
    let Some(profile) = &options.profile else {
        return;
    };
    if let Some(warning) = mismatch(profile, policy.ruleset.sections()) {
        global.warn(&[warning], &Sources::new());
    }
}
