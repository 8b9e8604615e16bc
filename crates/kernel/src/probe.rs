//! The seccomp features of the running kernel and this process.
//!
//! Every feature is tested in the kernel if this has no side effects; otherwise (the action bitmap) it is derived
//! from the version and marked as such. [`probe`] never fails: a feature that can't be tested is
//! [`Support::Unknown`] or `None`. Nothing is cached and nothing is changed.

use std::fs;

use tamis_abi::ActionKind;

use crate::errno::Errno;
use crate::flags::{Flag, Flags};
use crate::status::Status;
use crate::sys;
use tamis_abi::KernelVersion;

/// Whether the kernel has a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Support {
    /// The kernel has it, as tested.
    Yes,
    /// The kernel doesn't have it; kernels have it from this version on, unless configured without.
    No {
        /// The first version.
        since: KernelVersion,
    },
    /// Not tested but derived from the version.
    Assumed(bool),
    /// It could not be determined.
    Unknown,
}

impl Support {
    /// Whether it is present, as far as known.
    pub const fn is_present(self) -> bool {
        matches!(self, Support::Yes | Support::Assumed(true))
    }
}

/// The seccomp mode of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// No filter.
    Disabled,
    /// Only `read`, `write`, `_exit` and `sigreturn`.
    Strict,
    /// Filters.
    Filter,
}

/// Yama's restriction of tracing, `/proc/sys/kernel/yama/ptrace_scope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PtraceScope {
    /// Any process of the same user; also without Yama.
    SameUser,
    /// Descendants only. Enough for running and explaining a command.
    Descendants,
    /// Only with `CAP_SYS_PTRACE`.
    Admin,
    /// No process, until the next boot.
    Nobody,
}

/// Whether a command can be traced to explain kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ptrace {
    /// The result of a harmless `ptrace(2)` request: an error if an outer filter denies it.
    pub call: Result<(), Errno>,
    /// Yama's restriction; `None` if it can't be read.
    pub scope: Option<PtraceScope>,
    /// Whether this thread has `CAP_SYS_PTRACE` in its user namespace.
    pub capable: Option<bool>,
}

impl Ptrace {
    /// Whether a child can be traced, as far as known.
    pub fn can_trace_children(&self) -> bool {
        let allowed_by_yama = match self.scope {
            Some(PtraceScope::Nobody) => false,
            Some(PtraceScope::Admin) => self.capable != Some(false),
            Some(PtraceScope::SameUser | PtraceScope::Descendants) | None => true,
        };
        self.call.is_ok() && allowed_by_yama
    }
}

/// The state of the BPF JIT, `/proc/sys/net/core/bpf_jit_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Jit {
    /// 0 off, 1 on, 2 on with debug output; seccomp filters are compiled unless it is 0. `None` if the file can't
    /// be read.
    pub enable: Option<u32>,
    /// 0 off, 1 for unprivileged programs, 2 for all: constants are blinded, code grows.
    pub harden: Option<u32>,
}

/// The sizes of the kernel's notification structures, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NotifySizes {
    /// `struct seccomp_notif`.
    pub request: u16,
    /// `struct seccomp_notif_resp`.
    pub response: u16,
    /// `struct seccomp_data`.
    pub data: u16,
}

/// The features of the running kernel and this thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The release from `uname`.
    pub release: Option<String>,
    /// The version in it.
    pub version: Option<KernelVersion>,
    /// Filter mode: the kernel is built with it and no outer filter hides it.
    pub filter_mode: Support,
    /// Every action, in order of precedence.
    pub actions: Vec<(ActionKind, Support)>,
    /// Every flag.
    pub flags: Vec<(Flag, Support)>,
    /// The action bitmap: the filter isn't run for calls that are always allowed. Derived from the version.
    pub action_bitmap: Support,
    /// The sizes of the notification structures; `None` if there are no notifications.
    pub notify_sizes: Option<NotifySizes>,
    /// Whether this thread has `no_new_privs` and so may install filters.
    pub no_new_privs: Option<bool>,
    /// Whether this thread has `CAP_SYS_ADMIN` in its user namespace and so may install filters.
    pub sys_admin: Option<bool>,
    /// The mode of this thread.
    pub mode: Option<Mode>,
    /// The count of filters on this thread. Kernel 5.9.
    pub filters: Option<u32>,
    /// Whether a command can be traced.
    pub ptrace: Ptrace,
    /// The BPF JIT.
    pub jit: Jit,
}

impl Probe {
    /// Whether the kernel has an action.
    pub fn action(&self, kind: ActionKind) -> Support {
        find(&self.actions, kind)
    }

    /// Whether the kernel has a flag.
    pub fn flag(&self, flag: Flag) -> Support {
        find(&self.flags, flag)
    }

    /// Whether this thread may install a filter without setting `no_new_privs`.
    pub fn may_install(&self) -> bool {
        self.no_new_privs == Some(true) || self.sys_admin == Some(true)
    }
}

fn find<T: Copy + PartialEq>(list: &[(T, Support)], wanted: T) -> Support {
    list.iter()
        .find(|(item, _)| *item == wanted)
        .map_or(Support::Unknown, |(_, support)| *support)
}

/// Tests the features of the running kernel. [`flag`], [`action`] and [`notify_sizes`] test one with one system call.
///
/// ```
/// let probe = tamis_kernel::probe();
/// assert_eq!(probe.actions.len(), 8);
/// ```
pub fn probe() -> Probe {
    let release = sys::seccomp::release();
    let version = version();
    let status = Status::of_this_thread();
    let capability = |bit| status.as_ref().and_then(|status| status.bit("CapEff", bit));
    Probe {
        version,
        filter_mode: filter_mode(),
        actions: ActionKind::ALL
            .into_iter()
            .map(|kind| (kind, action(kind, version)))
            .collect(),
        flags: Flag::ALL
            .into_iter()
            .map(|flag| (flag, self::flag(flag)))
            .collect(),
        action_bitmap: action_bitmap(version),
        notify_sizes: notify_sizes(),
        no_new_privs: sys::seccomp::no_new_privs().ok(),
        sys_admin: capability(CAP_SYS_ADMIN),
        mode: mode(),
        filters: status.as_ref().and_then(Status::filters),
        ptrace: Ptrace {
            call: sys::seize::available(),
            scope: ptrace_scope(),
            capable: capability(CAP_SYS_PTRACE),
        },
        jit: Jit {
            enable: read_number("/proc/sys/net/core/bpf_jit_enable"),
            harden: read_number("/proc/sys/net/core/bpf_jit_harden"),
        },
        release,
    }
}

const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;

/// `seccomp(2)` and filter mode.
const SINCE_FILTER_MODE: KernelVersion = KernelVersion::new(3, 17);
/// `SECCOMP_GET_ACTION_AVAIL`.
const SINCE_ACTION_AVAIL: KernelVersion = KernelVersion::new(4, 14);
const SINCE_ACTION_BITMAP: KernelVersion = KernelVersion::new(5, 11);

fn filter_mode() -> Support {
    match sys::seccomp::try_flags(Flags::NONE) {
        Errno(libc::EFAULT) => Support::Yes,
        Errno(libc::ENOSYS | libc::EINVAL) => Support::No {
            since: SINCE_FILTER_MODE,
        },
        _ => Support::Unknown,
    }
}

/// The first kernel that has an action.
fn since(kind: ActionKind) -> KernelVersion {
    match kind {
        ActionKind::KillProcess | ActionKind::Log => KernelVersion::new(4, 14),
        ActionKind::Notify => KernelVersion::new(5, 0),
        ActionKind::KillThread
        | ActionKind::Trap
        | ActionKind::Errno
        | ActionKind::Trace
        | ActionKind::Allow => KernelVersion::new(3, 5),
    }
}

/// The version in the running kernel's release.
pub fn version() -> Option<KernelVersion> {
    sys::seccomp::release()?.parse().ok()
}

/// Whether the kernel has an action. Kernels before 4.14 lack the query; their version, if known, decides.
pub fn action(kind: ActionKind, version: Option<KernelVersion>) -> Support {
    let since = since(kind);
    match (sys::seccomp::action_available(kind.ret()), version) {
        (Ok(()), _) => Support::Yes,
        (Err(Errno(libc::EOPNOTSUPP)), _) => Support::No { since },
        // The request is newer than the old actions.
        (Err(_), Some(version)) if version < SINCE_ACTION_AVAIL => {
            Support::Assumed(version >= since)
        }
        (Err(_), _) => Support::Unknown,
    }
}

/// Whether the kernel supports a flag, by a query.
pub fn flag(flag: Flag) -> Support {
    // The kernel rejects this flag alone even if it supports it.
    let asked = match flag {
        Flag::WaitKillableRecv => flag | Flag::NewListener,
        other => other.into(),
    };
    match sys::seccomp::try_flags(asked) {
        Errno(libc::EFAULT) => Support::Yes,
        Errno(libc::EINVAL | libc::ENOSYS) => Support::No {
            since: flag.since(),
        },
        _ => Support::Unknown,
    }
}

/// The bitmap can't be queried: only timing shows it.
fn action_bitmap(version: Option<KernelVersion>) -> Support {
    const WITHOUT: [&str; 5] = ["mips", "mips64", "sparc", "sparc64", "hexagon"];
    match version {
        None => Support::Unknown,
        Some(_) if WITHOUT.contains(&std::env::consts::ARCH) => Support::Assumed(false),
        Some(version) => Support::Assumed(version >= SINCE_ACTION_BITMAP),
    }
}

/// The sizes of the kernel's notification structures; `None` if there are no notifications. Kernel 5.0.
pub fn notify_sizes() -> Option<NotifySizes> {
    let sizes = sys::seccomp::notification_sizes().ok()?;
    Some(NotifySizes {
        request: sizes.seccomp_notif,
        response: sizes.seccomp_notif_resp,
        data: sizes.seccomp_data,
    })
}

fn mode() -> Option<Mode> {
    match sys::seccomp::mode().ok()? {
        0 => Some(Mode::Disabled),
        1 => Some(Mode::Strict),
        2 => Some(Mode::Filter),
        _ => None,
    }
}

fn ptrace_scope() -> Option<PtraceScope> {
    const YAMA: &str = "/proc/sys/kernel/yama";
    // Without `/proc` nothing is known; with it, no file means no Yama.
    fs::metadata("/proc/sys/kernel").ok()?;
    if fs::metadata(YAMA).is_err() {
        return Some(PtraceScope::SameUser);
    }
    match read_number(&format!("{YAMA}/ptrace_scope"))? {
        0 => Some(PtraceScope::SameUser),
        1 => Some(PtraceScope::Descendants),
        2 => Some(PtraceScope::Admin),
        3 => Some(PtraceScope::Nobody),
        _ => None,
    }
}

fn read_number(path: &str) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yama_and_the_call_itself_decide_on_tracing() {
        let ptrace = |call, scope, capable| Ptrace {
            call,
            scope,
            capable,
        };
        let descendants = Some(PtraceScope::Descendants);
        let admin = Some(PtraceScope::Admin);
        assert!(ptrace(Ok(()), descendants, Some(false)).can_trace_children());
        assert!(!ptrace(Ok(()), admin, Some(false)).can_trace_children());
        assert!(ptrace(Ok(()), admin, Some(true)).can_trace_children());
        assert!(!ptrace(Err(Errno(libc::EPERM)), descendants, Some(true)).can_trace_children());
    }
}
