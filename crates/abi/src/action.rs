//! Seccomp actions: the results of a filter.
//!
//! The kernel splits the 32-bit return value into an action (upper half) and 16 bits of data (lower
//! half), see `include/uapi/linux/seccomp.h`. Of the answers of several filters the most restrictive
//! action wins; [`ActionKind`] is ordered that way, the most restrictive first.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// The action part of a return value, `SECCOMP_RET_ACTION_FULL`.
const ACTION_MASK: u32 = 0xffff_0000;

/// The action part of a filter's return value, ordered by precedence: the smallest wins in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionKind {
    /// Kill every thread of the process with `SIGSYS`. Kernel 4.14.
    KillProcess,
    /// Kill the calling thread with `SIGSYS`.
    KillThread,
    /// Send `SIGSYS` to the caller; the data goes to `si_errno`.
    Trap,
    /// Skip the call and return the data as errno, capped at 4095 by the kernel.
    Errno,
    /// Hand the call to a user-space supervisor. Kernel 5.0.
    Notify,
    /// Hand the call to a ptrace tracer with the data as message; `ENOSYS` without a tracer.
    Trace,
    /// Allow the call and write an audit record. Kernel 4.14.
    Log,
    /// Allow the call.
    Allow,
}

impl ActionKind {
    /// All kinds, in order of precedence.
    pub const ALL: [ActionKind; 8] = [
        ActionKind::KillProcess,
        ActionKind::KillThread,
        ActionKind::Trap,
        ActionKind::Errno,
        ActionKind::Notify,
        ActionKind::Trace,
        ActionKind::Log,
        ActionKind::Allow,
    ];

    /// The `SECCOMP_RET_*` value, with zero data.
    pub const fn ret(self) -> u32 {
        match self {
            ActionKind::KillProcess => 0x8000_0000,
            ActionKind::KillThread => 0x0000_0000,
            ActionKind::Trap => 0x0003_0000,
            ActionKind::Errno => 0x0005_0000,
            ActionKind::Notify => 0x7fc0_0000,
            ActionKind::Trace => 0x7ff0_0000,
            ActionKind::Log => 0x7ffc_0000,
            ActionKind::Allow => 0x7fff_0000,
        }
    }

    /// The name used in all text forms: `kill_process`, `errno`, `allow`, …
    pub const fn name(self) -> &'static str {
        match self {
            ActionKind::KillProcess => "kill_process",
            ActionKind::KillThread => "kill_thread",
            ActionKind::Trap => "trap",
            ActionKind::Errno => "errno",
            ActionKind::Notify => "notify",
            ActionKind::Trace => "trace",
            ActionKind::Log => "log",
            ActionKind::Allow => "allow",
        }
    }

    /// Whether the kernel executes a call with this answer: allowed, perhaps with a record.
    pub const fn executes(self) -> bool {
        matches!(self, ActionKind::Allow | ActionKind::Log)
    }

    /// The kind with this [`name`](Self::name); `kill-process` is `kill_process`.
    pub fn from_name(name: &str) -> Option<ActionKind> {
        let name = name
            .bytes()
            .map(|byte| if byte == b'-' { b'_' } else { byte });
        let mut kinds = ActionKind::ALL.into_iter();
        kinds.find(|kind| kind.name().bytes().eq(name.clone()))
    }
}

/// A complete answer of a filter: kind and data.
///
/// ```
/// use tamis_abi::Action;
/// assert_eq!(Action::errno(1).ret(), 0x0005_0001);
/// assert_eq!(Action::from_ret(0x0005_0001).to_string(), "errno(1)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    /// The kind.
    pub kind: ActionKind,
    /// `SECCOMP_RET_DATA`: errno, trap or trace value; meaningless to the kernel for the others.
    pub data: u16,
}

impl Action {
    /// Allow the call; the only action that the kernel can cache (5.11).
    pub const ALLOW: Action = Action::new(ActionKind::Allow, 0);
    /// Kill the process.
    pub const KILL_PROCESS: Action = Action::new(ActionKind::KillProcess, 0);
    /// Kill the thread.
    pub const KILL_THREAD: Action = Action::new(ActionKind::KillThread, 0);

    /// An action of this kind with this data.
    pub const fn new(kind: ActionKind, data: u16) -> Action {
        Action { kind, data }
    }

    /// Skip the call and return this errno to the caller.
    pub const fn errno(errno: u16) -> Action {
        Action::new(ActionKind::Errno, errno)
    }

    /// The 32-bit return value of a filter with this action.
    pub const fn ret(self) -> u32 {
        self.kind.ret() | self.data as u32
    }

    /// The precedence of the action of a return value in the kernel: of two, the smaller wins in a stack.
    /// Unknown actions have a precedence, too; the data is ignored.
    pub const fn precedence(ret: u32) -> i32 {
        (ret & ACTION_MASK).cast_signed()
    }

    /// The kernel's interpretation of a return value: unknown actions kill the process.
    ///
    /// The lower half of an unknown action is kept as data although the kernel ignores it.
    pub fn from_ret(ret: u32) -> Action {
        let kind = ActionKind::ALL
            .into_iter()
            .find(|kind| kind.ret() == ret & ACTION_MASK)
            .unwrap_or(ActionKind::KillProcess);
        Action::new(kind, ret as u16)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let always_shows_data = matches!(
            self.kind,
            ActionKind::Errno | ActionKind::Trap | ActionKind::Trace
        );
        if always_shows_data || self.data != 0 {
            write!(f, "{}({})", self.kind.name(), self.data)
        } else {
            f.write_str(self.kind.name())
        }
    }
}

/// A text that isn't an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAction;

impl fmt::Display for NotAnAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an action: a name such as `allow`, or with data as in `errno(1)`")
    }
}

impl Error for NotAnAction {}

impl FromStr for Action {
    type Err = NotAnAction;

    /// Parses the form of `Display`.
    fn from_str(text: &str) -> Result<Action, NotAnAction> {
        let (kind, data) = match text.split_once('(') {
            Some((kind, rest)) => (kind, rest.strip_suffix(')').ok_or(NotAnAction)?),
            None => (text, "0"),
        };
        let kind = ActionKind::from_name(kind).ok_or(NotAnAction)?;
        let data = data.parse().map_err(|_| NotAnAction)?;
        Ok(Action::new(kind, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_is_the_kernels_signed_order_of_return_values() {
        let mut by_kernel = ActionKind::ALL;
        by_kernel.sort_by_key(|kind| kind.ret() as i32);
        assert_eq!(by_kernel, ActionKind::ALL);
    }

    #[test]
    fn return_value_round_trips_for_every_kind_and_extreme_data() {
        for kind in ActionKind::ALL {
            for data in [0, 1, 4095, 0xffff] {
                let action = Action::new(kind, data);
                assert_eq!(Action::from_ret(action.ret()), action);
                assert_eq!(action.to_string().parse(), Ok(action));
            }
        }
    }

    #[test]
    fn unknown_actions_kill_the_process() {
        for ret in [0x0001_0000, 0x1234_0000, 0x7fff_0000 ^ 0x8000_0000] {
            assert_eq!(Action::from_ret(ret).kind, ActionKind::KillProcess);
        }
    }
}
