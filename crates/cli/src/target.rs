//! Targets of optimisation: a profile, an objective, an effort, a kernel or evaluator.
//!
//! Targets change the speed of a filter, never its actions. A profile that doesn't match the policy is therefore only a
//! warning.

use clap::ValueEnum;
use tamis_compiler::{CompileOptions, Effort, Objective, Target};
use tamis_diag::Sources;
use tamis_kernel::{Flag, Flags};
use tamis_session::profile::mismatch;
use tamis_session::{LoadOptions, Loaded, Policy, check};

use super::load::LoadArgs;
use super::{Failure, Global, budget, profile};

/// Targets of optimisation; `--kernel` is an option of [`LoadArgs`].
#[derive(clap::Args, Debug, Default)]
#[command(next_help_heading = "Compiling")]
pub struct TargetArgs {
    /// How often each call is made: a profile, a table of `strace -c` or `perf trace -s`, or a minijail
    /// frequency file; may be repeated, counts add up [default: ordinary programs]
    #[arg(long = "counts", value_name = "FILE", value_parser = super::input::path_parser())]
    profiles: Vec<String>,
    /// What to minimise first [default: steps, with `--target user` ns]
    #[arg(long, value_name = "WHAT")]
    objective: Option<Goal>,
    /// What will run the filter: the kernel, or an evaluator in user space, which has no table of the calls that are
    /// always allowed [default: kernel]
    #[arg(long, value_name = "WHAT", conflicts_with = "kernel")]
    target: Option<Runner>,
    /// How much work to spend on making the filter fast; every filter is proved [default: full]
    #[arg(long, value_name = "EFFORT")]
    effort: Option<EffortName>,
}

/// Efforts by their names on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EffortName {
    /// The fastest filter that is found
    Full,
    /// Less than half the work, for about 1 % more executed instructions on average
    Quick,
}

/// Targets by their names on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Runner {
    /// The kernel
    Kernel,
    /// An evaluator in user space
    User,
}

/// Objectives by their names on the command line.
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
    /// Rejects these options if all inputs are programs: nothing is compiled.
    pub fn check_use<'l>(
        &self,
        inputs: impl Iterator<Item = &'l Loaded> + Clone,
    ) -> Result<(), Failure> {
        if !self.profiles.is_empty() {
            check::compiled("--counts", inputs.clone())?;
        }
        self.check_objective_use(inputs)
    }

    /// Rejects the options other than a profile, for a command that uses the profile otherwise.
    pub fn check_objective_use<'l>(
        &self,
        inputs: impl Iterator<Item = &'l Loaded> + Clone,
    ) -> Result<(), Failure> {
        if self.target.is_some() {
            check::compiled("--target", inputs.clone())?;
        }
        if self.objective.is_some() {
            check::compiled("--objective", inputs.clone())?;
        }
        if self.effort.is_some() {
            check::compiled("--effort", inputs)?;
        }
        Ok(())
    }

    /// Whether a profile, an objective and an effort were given.
    pub fn given_options(&self) -> [bool; 3] {
        [
            !self.profiles.is_empty(),
            self.objective.is_some(),
            self.effort.is_some(),
        ]
    }

    /// The filters of a command that installs them, and the options for compiling them.
    pub fn load_stack(
        &self,
        inputs: &[String],
        load: &LoadArgs,
        global: &Global,
    ) -> Result<(Vec<Loaded>, CompileOptions), Failure> {
        let loaded = inputs.iter().map(|input| load.load_among(input, global));
        let loaded: Vec<Loaded> = loaded.collect::<Result<_, _>>()?;
        load.check_options(&loaded)?;
        load.check_arches(&loaded)?;
        self.check_use(loaded.iter())?;
        let options = self.options(&load.options(), global)?;
        Ok((loaded, options))
    }

    /// The options for the compiler. Profiles without an architecture are for the architecture of calls that name none.
    pub fn options(&self, load: &LoadOptions, global: &Global) -> Result<CompileOptions, Failure> {
        let profile = match self.profiles.as_slice() {
            [] => None,
            paths => Some(profile::load(paths, load.call_arch(), global)?),
        };
        let target = match self.target {
            None | Some(Runner::Kernel) => Target::Kernel,
            Some(Runner::User) => Target::User,
        };
        Ok(CompileOptions {
            profile,
            target,
            objective: match self.objective {
                None => target.usual_objective(),
                Some(Goal::Steps) => Objective::Steps,
                Some(Goal::Ns) => Objective::Ns,
                Some(Goal::Length) => Objective::Length,
            },
            effort: match self.effort {
                None | Some(EffortName::Full) => Effort::Full,
                Some(EffortName::Quick) => Effort::Quick,
            },
            kernel: load.policy.kernel,
            ..budget::compile_options()
        })
    }
}

/// The kernel's flags for installing filters.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct FlagArgs {
    /// Let the kernel write an audit record for every action except allow
    #[arg(long, hide_short_help = true)]
    log: bool,
    /// Don't enable the mitigation against speculative store bypass
    #[arg(long, hide_short_help = true)]
    spec_allow: bool,
}

impl FlagArgs {
    /// The given flags.
    pub fn flags(self) -> Flags {
        let wanted = [(Flag::Log, self.log), (Flag::SpecAllow, self.spec_allow)];
        let wanted = wanted.into_iter().filter(|(_, wanted)| *wanted);
        wanted.fold(Flags::NONE, |flags, (flag, _)| flags | flag)
    }
}

/// The flags that a policy requires.
pub fn wanted_flags(policy: Option<&Policy>) -> Flags {
    let names = policy.iter().flat_map(|policy| &policy.installation.flags);
    names
        .filter_map(|name| Flag::from_constant(name))
        .fold(Flags::NONE, |flags, flag| flags | flag)
}

/// Warns if the profile seems to be that of a program for another policy.
pub fn warn_profile_mismatch(options: &CompileOptions, policy: &Policy, global: &Global) {
    let Some(profile) = &options.profile else {
        return;
    };
    if let Some(warning) = mismatch(profile, policy.ruleset.sections()) {
        global.warn(&[warning], &Sources::new());
    }
}
