//! Recordings.

use std::collections::BTreeMap;

use tamis_profile::Profile;

/// The maximum number of distinct pairs of an argument and its value, and of a call and its error.
pub(crate) const MAX_VALUES: u32 = 1 << 15;

/// The calls recorded so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The calls.
    pub profile: Profile,
    /// Calls with numbers that their architecture doesn't have, by `AUDIT_ARCH_*` value and number.
    pub unknown: BTreeMap<(u32, u32), u64>,
    /// Calls for which a filter sent `SIGSYS`, whether or not it killed the caller. The profile excludes them, since
    /// not every kernel shows their exit.
    pub signalled: BTreeMap<Signalled, u64>,
    /// The events that weren't recorded.
    pub lost: LostEvents,
}

/// A call for which a filter sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signalled {
    /// The architecture of the call, `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Its number.
    pub nr: u32,
}

/// Numbers of events that weren't recorded; all 0 unless a table was full or a program overlapped itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostEvents {
    /// Argument values, error numbers, and calls with unknown numbers that the tables had no room for.
    pub counts: u64,
    /// Calls whose time is unknown.
    pub times: u64,
    /// Events at which a program didn't run, because it already ran on that CPU.
    pub events: u64,
}

impl LostEvents {
    /// Whether nothing was lost.
    pub const fn is_nothing(&self) -> bool {
        self.counts == 0 && self.times == 0 && self.events == 0
    }
}
