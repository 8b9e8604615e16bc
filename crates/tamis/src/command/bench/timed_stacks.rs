//! The subjects of the measurement: no filter, the baselines, and the filters of the arguments.

use tamis_abi::{Action, SeccompData};
use tamis_bpf::{Op, Program, Stack, harmless::harmless};
use tamis_kernel::NATIVE_ENDIAN;
use tamis_profile::Profile;

use crate::cli::{Failure, Global, side};

use super::Args;

/// The error that replaces actions worse than an error: `ENOSYS`.
const DENIED_ERRNO: u16 = 38;
/// The byte offset of the low half of the first argument on little-endian machines; on big-endian machines it is the
/// high half, which serves as well.
const ARG0_OFFSET: u32 = 16;

/// The index of no filter among the subjects.
pub(super) const NONE: usize = 0;
/// The index of the empty filter.
pub(super) const EMPTY: usize = 1;

/// A subject of the measurement: no filter, one filter, or several.
pub(super) struct TimedStack {
    pub(super) name: String,
    /// The given filters.
    pub(super) original: Stack,
    /// The installed filters, made harmless.
    pub(super) installed: Stack,
}

/// The result of a subject for one call.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    /// The action of the original filters.
    pub(super) action: Action,
    /// The installed filters allow the call.
    pub(super) is_made: bool,
}

/// The program of these operations.
pub(super) fn program(ops: &[Op]) -> Program {
    let insns = ops.iter().copied().map(Into::into).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("generated programs are valid")
}

/// The filter that the kernel never has to run.
pub(super) fn empty() -> Program {
    program(&[Op::RetImm(Action::ALLOW.ret())])
}

/// The smallest filter that the kernel has to run.
pub(super) fn uncacheable() -> Program {
    program(&[Op::LoadData(ARG0_OFFSET), Op::RetImm(Action::ALLOW.ret())])
}

/// The baselines, followed by the filters of the arguments. Policies are compiled for the profile, if there is one.
pub(super) fn timed_stacks(
    args: &Args,
    global: &Global,
) -> Result<(Vec<TimedStack>, Option<Profile>), Failure> {
    let mut subjects = vec![
        TimedStack::new("no filter", Stack::default())?,
        TimedStack::new("empty", empty().into())?,
        TimedStack::new("uncacheable", uncacheable().into())?,
    ];
    let (named, profile) = side::named_stacks(&args.filters, &args.load, &args.target, global)?;
    for (name, stack) in named {
        subjects.push(TimedStack::new(&name, stack)?);
    }
    Ok((subjects, profile))
}

impl TimedStack {
    fn new(name: &str, original: Stack) -> Result<TimedStack, Failure> {
        let mut installed = Stack::default();
        for program in original.programs() {
            let harmless = harmless(program, DENIED_ERRNO)
                .map_err(|error| Failure::input(format!("{name} can't be measured: {error}")))?;
            installed
                .push(harmless)
                .expect("it has the byte order of the original");
        }
        if !installed.is_installable() {
            return Err(Failure::usage(
                format!(
                    "{name} can't be installed: its filters have {} instructions, the kernel accepts {}",
                    installed.charge_insns(),
                    Stack::MAX_KERNEL_INSNS
                ),
                "merge the stack into one filter with `tamis optimize`",
            ));
        }
        Ok(TimedStack {
            name: name.to_owned(),
            original,
            installed,
        })
    }

    /// The total number of instructions of its filters.
    pub(super) fn length_insns(&self) -> usize {
        self.original.programs().iter().map(Program::len).sum()
    }

    /// Whether there are filters at all.
    pub(super) fn has_filters(&self) -> bool {
        !self.installed.programs().is_empty()
    }

    /// The result for a call.
    pub(super) fn answer(&self, call: &SeccompData) -> Answer {
        let made = Action::from_ret(self.installed.run(call).ret);
        Answer {
            action: Action::from_ret(self.original.run(call).ret),
            is_made: made.kind == tamis_abi::ActionKind::Allow,
        }
    }
}
