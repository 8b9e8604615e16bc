//! Options of a compilation.

use tamis_abi::{Arch, KernelVersion};
use tamis_meter::Workload;
use tamis_profile::Profile;
use tamis_prover::{Limits, Stop};

use crate::passes::registry::Selection;

/// How to compile. The default is suitable for most users.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// Which passes run; by default all.
    pub passes: Selection,
    /// How many changes passes may apply, all together; by default any number.
    pub fuel: Option<u64>,
    /// Whether the meaning is proved after layout and after every pass that changed something, and not only at the
    /// end; the error then names the stage that broke it.
    pub verify_each: bool,
    /// Whether the program is measured before and after every run of a pass, so that [`Remark`](crate::Remark)s give
    /// its effect on cost. Takes several times as long as compiling.
    pub measure_runs: bool,
    /// How often each call is made; by default [`Profile::builtin`] of ordinary programs.
    pub profile: Option<Profile>,
    /// What is minimised first.
    pub objective: Objective,
    /// What will run the program.
    pub target: Target,
    /// How much work the search for a fast program takes.
    pub effort: Effort,
    /// Which instructions the program may contain.
    pub instructions: Instructions,
    /// The oldest kernel that will run the filter; by default any with a bitmap of always allowed numbers (5.11), for
    /// which these calls cost nothing.
    pub kernel: Option<KernelVersion>,
    /// Limits of the prover. They affect whether there is a result and, for [`foreign`](crate::foreign) filters,
    /// which one.
    pub proof: ProofEffort,
}

/// Limits of the prover's work.
#[derive(Clone, Debug, Default)]
pub struct ProofEffort {
    /// Limits that count work.
    pub limits: Limits,
    /// Cancellation by the caller; by default never.
    pub stop: Stop,
}

/// What a compilation minimises first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Objective {
    /// The expected number of executed instructions.
    #[default]
    Steps,
    /// The expected time, including mispredicted branches.
    Ns,
    /// The number of instructions.
    Length,
}

/// What runs the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// The kernel, as old as [`CompileOptions::kernel`] says.
    #[default]
    Kernel,
    /// An evaluator in user space, such as those of `tamis-engine`. It runs the program for every call, so a call that is
    /// allowed by its number alone counts as any other one.
    User,
}

impl Target {
    /// What is minimised unless something else was asked for: in the kernel a branch of a filter is seldom what a call
    /// waits for, an evaluator does nothing else.
    pub const fn usual_objective(self) -> Objective {
        match self {
            Target::Kernel => Objective::Steps,
            Target::User => Objective::Ns,
        }
    }
}

/// The instructions that programs may contain.
///
/// [`foreign`](crate::foreign) filters are not restricted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Instructions {
    /// All that the kernel takes.
    #[default]
    All,
    /// Those that libseccomp's programs contain, for programs that are read by tools made for these: no `jset`, so
    /// that a test of bits takes two instructions. Arguments that are compared with each other still need `tax`.
    Libseccomp,
}

/// How much work a compilation spends on making the program fast. Every program is proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effort {
    /// The fastest program that the compiler finds.
    #[default]
    Full,
    /// Each pass runs once, and the search trees over numbers have bit tests only if they decide: half the work, and about
    /// 1 % more steps.
    Quick,
}

impl Effort {
    /// All, the default first.
    pub const ALL: [Effort; 2] = [Effort::Full, Effort::Quick];

    /// The name, as in `--effort`.
    pub const fn name(self) -> &'static str {
        match self {
            Effort::Full => "full",
            Effort::Quick => "quick",
        }
    }

    /// The effort of this name.
    pub fn from_name(name: &str) -> Option<Effort> {
        Effort::ALL.into_iter().find(|effort| effort.name() == name)
    }
}

/// The first kernel that keeps a bitmap of always allowed numbers.
const FIRST_WITH_BITMAP: KernelVersion = KernelVersion::new(5, 11);

impl CompileOptions {
    /// The calls of these architectures by which programs are measured: of the profile or, without one, of ordinary
    /// programs.
    pub fn workload(&self, archs: &[Arch]) -> Workload {
        Workload::from_profile(self.profile.as_ref(), archs)
    }

    /// Whether calls that are allowed by number alone cost nothing, as the kernel keeps a bitmap of them.
    pub fn has_bitmap(&self) -> bool {
        match self.target {
            Target::Kernel => self.kernel.is_none_or(|kernel| kernel >= FIRST_WITH_BITMAP),
            Target::User => false,
        }
    }
}
