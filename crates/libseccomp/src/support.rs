//! Features of the running kernel, for the whole process.
//!
//! Each feature is probed once and cached, because a filter may deny `seccomp(2)` later. `seccomp_api_set` replaces all
//! results by those of a level, `seccomp_reset(NULL)` clears them. Concurrent probes have equal results, so atomic
//! variables suffice.

use std::sync::atomic::{AtomicI8, AtomicU32, Ordering::Relaxed};

use tamis_abi::{Action, ActionKind};
use tamis_kernel::{Errno, Flag, probe};

use crate::next;

/// A feature of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// The system call `seccomp`.
    Syscall,
    /// `SECCOMP_FILTER_FLAG_TSYNC`
    Tsync,
    /// `SECCOMP_FILTER_FLAG_LOG`
    LogFlag,
    /// `SECCOMP_RET_LOG`
    LogAction,
    /// `SECCOMP_RET_KILL_PROCESS`
    KillProcess,
    /// `SECCOMP_FILTER_FLAG_SPEC_ALLOW`
    SpecAllow,
    /// `SECCOMP_FILTER_FLAG_NEW_LISTENER`
    NewListener,
    /// `SECCOMP_RET_USER_NOTIF`
    Notify,
    /// `SECCOMP_FILTER_FLAG_TSYNC_ESRCH`
    TsyncEsrch,
    /// `SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`
    WaitKillable,
}

/// The features that each API level adds, from level 1.
const LEVELS: [&[Feature]; 7] = [
    &[],
    &[Feature::Syscall, Feature::Tsync],
    &[Feature::LogFlag, Feature::LogAction, Feature::KillProcess],
    &[Feature::SpecAllow],
    &[Feature::NewListener, Feature::Notify],
    &[Feature::TsyncEsrch],
    &[Feature::WaitKillable],
];

/// The greatest API level.
const LAST_LEVEL: u32 = LEVELS.len() as u32;

const UNKNOWN: i8 = -1;

/// The result for each feature: [`UNKNOWN`], 0 or 1.
static KNOWN: [AtomicI8; 10] = [const { AtomicI8::new(UNKNOWN) }; 10];

/// The API level; 0 while unknown.
static LEVEL: AtomicU32 = AtomicU32::new(0);

/// Whether the kernel supports a feature; probes it on first use.
pub(crate) fn supports(feature: Feature) -> bool {
    let known = &KNOWN[feature as usize];
    if known.load(Relaxed) == UNKNOWN {
        known.store(i8::from(probe_feature(feature)), Relaxed);
    }
    known.load(Relaxed) == 1
}

/// Whether a feature was found or declared to be supported, without a probe.
pub(crate) fn is_known_to_support(feature: Feature) -> bool {
    KNOWN[feature as usize].load(Relaxed) == 1
}

/// The API level, 1 to 7; probes all features on first use.
pub(crate) fn level() -> u32 {
    if LEVEL.load(Relaxed) == 0 {
        let has_all = |features: &&&[Feature]| features.iter().all(|feature| supports(*feature));
        let level = LEVELS.iter().take_while(has_all).count();
        LEVEL.store(level as u32, Relaxed);
    }
    LEVEL.load(Relaxed)
}

/// Declares exactly the features of a level to be supported; false for an invalid level.
pub(crate) fn set_level(level: u32) -> bool {
    if !(1..=LAST_LEVEL).contains(&level) {
        return false;
    }
    for (features, of) in LEVELS.iter().zip(1..) {
        for feature in *features {
            KNOWN[*feature as usize].store(i8::from(of <= level), Relaxed);
        }
    }
    LEVEL.store(level, Relaxed);
    true
}

/// Clears all results and probes again. As in libseccomp, the level stays.
pub(crate) fn reset() {
    for known in &KNOWN {
        known.store(UNKNOWN, Relaxed);
    }
    level();
}

/// The action for the value of a rule or default; `None` if the kernel lacks it, or for invalid values.
///
/// Error number 4095, the greatest, is rejected, and so are data for actions without any.
pub(crate) fn action(value: u32) -> Option<Action> {
    let action = Action::from_ret(value);
    if action.ret() != value {
        return None;
    }
    let is_valid = match action.kind {
        ActionKind::Errno => u32::from(action.data) < MAX_ERRNO,
        ActionKind::Trace => true,
        ActionKind::Trap if next::release().traps_have_data() => true,
        _ if action.data != 0 => false,
        ActionKind::KillThread | ActionKind::Trap | ActionKind::Allow => true,
        ActionKind::KillProcess => supports(Feature::KillProcess),
        ActionKind::Log => supports(Feature::LogAction),
        ActionKind::Notify => supports(Feature::Notify),
    };
    is_valid.then_some(action)
}

/// The kernel's `MAX_ERRNO`.
const MAX_ERRNO: u32 = 4095;

fn probe_feature(feature: Feature) -> bool {
    let flag = |flag| probe::flag(flag).is_present();
    // Kernels without `SECCOMP_GET_ACTION_AVAIL` have none of these.
    let action = |kind| probe::action(kind, None).is_present();
    match feature {
        Feature::Syscall => has_syscall(),
        _ if !supports(Feature::Syscall) => false,
        Feature::Tsync => flag(Flag::Tsync),
        Feature::LogFlag => flag(Flag::Log),
        Feature::SpecAllow => flag(Flag::SpecAllow),
        Feature::NewListener => flag(Flag::NewListener),
        Feature::TsyncEsrch => flag(Flag::TsyncEsrch),
        Feature::WaitKillable => supports(Feature::NewListener) && flag(Flag::WaitKillableRecv),
        Feature::LogAction => action(ActionKind::Log),
        Feature::KillProcess => action(ActionKind::KillProcess),
        Feature::Notify => probe::notify_sizes().is_some(),
    }
}

/// A kernel with the call reports an error for strict mode with flags.
fn has_syscall() -> bool {
    // SAFETY: strict mode isn't entered with flags, and takes no pointers.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_STRICT,
            1_usize,
            0_usize,
        )
    };
    returned < 0 && Errno::last() == Errno(libc::EINVAL)
}
