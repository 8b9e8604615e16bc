//! Options of a compilation.

use crate::meter::Workload;
use tamis_abi::{Arch, KernelVersion};
use tamis_profile::Profile;
use tamis_prover::{Limits, Stop};

use crate::passes::registry::Selection;

/// The options of a compilation. The defaults suit most users.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// The passes to run; by default all.
    pub passes: Selection,
    /// The maximum number of changes by all passes together; by default unlimited.
    pub fuel: Option<u64>,
    /// Whether equivalence is proved after layout and after every pass that changed something, and not only at the end;
    /// the error then names the stage that broke it.
    pub verify_each: bool,
    /// Whether the program is measured before and after every run of a pass, so that [`Remark`](crate::Remark)s give
    /// its effect on cost. Takes several times as long as compiling.
    pub measure_runs: bool,
    /// The frequencies of calls; by default [`Profile::builtin`], those of ordinary programs.
    pub profile: Option<Profile>,
    /// The primary objective.
    pub objective: Objective,
    /// The target that runs the program.
    pub target: Target,
    /// The work that the search for a fast program takes.
    pub effort: Effort,
    /// The instructions that the program may contain.
    pub instructions: Instructions,
    /// The oldest kernel that will run the filter; by default any with a bitmap of always allowed numbers (5.11), for
    /// which these calls cost nothing.
    pub kernel: Option<KernelVersion>,
    /// Limits of the prover. They affect whether there is a result and, for filters of other tools,
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

/// The primary objective of a compilation.
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

/// The target that runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// The kernel, from version [`CompileOptions::kernel`] on.
    #[default]
    Kernel,
    /// An evaluator in user space, such as those of `tamis-engine`. It runs the program for every call, so a call that
    /// is allowed by its number alone counts like any other.
    User,
}

impl Target {
    /// The default objective. In the kernel, mispredicted branches of a filter are a small part of a call's time; an
    /// evaluator does nothing but run the program.
    pub const fn usual_objective(self) -> Objective {
        match self {
            Target::Kernel => Objective::Steps,
            Target::User => Objective::Ns,
        }
    }
}

/// The instructions that programs may contain.
///
/// Filters of other tools are not restricted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Instructions {
    /// All that the kernel accepts.
    #[default]
    All,
    /// Those of libseccomp's programs, for tools that accept only these: no `jset`, so that a test of bits takes two
    /// instructions. Comparisons of arguments with each other still need `tax`.
    Libseccomp,
}

/// The work that a compilation spends on a fast program. Every program is proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effort {
    /// The fastest program that the compiler finds.
    #[default]
    Full,
    /// Each pass runs once, and the search trees over numbers have bit tests only if these decide: half the work, and
    /// about 1 % more steps.
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
    /// The calls of these architectures for the measurement of programs: those of the profile or, without one, of
    /// ordinary programs.
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
