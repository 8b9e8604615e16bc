//! What was recorded.

use std::collections::BTreeMap;

use tamis_profile::Profile;

/// How many pairs of an argument and its value, and of a call and its error, are told apart.
pub(crate) const MAX_VALUES: u32 = 1 << 15;

/// What was recorded so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The calls.
    pub profile: Profile,
    /// Calls with numbers that their architecture doesn't own, by the value of `AUDIT_ARCH_*` and the number.
    pub unknown: BTreeMap<(u32, u32), u64>,
    /// Calls for which a filter sent `SIGSYS`, with or without killing the caller. They aren't part of the profile: not
    /// every kernel shows their exit.
    pub signalled: BTreeMap<Signalled, u64>,
    /// What wasn't recorded.
    pub lost: Lost,
}

/// A call for which a filter sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signalled {
    /// The architecture of the call, `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Its number.
    pub nr: u32,
}

/// What wasn't recorded. All of it is 0 unless a table was full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Argument values, error numbers and calls with strange numbers for which the tables had no room.
    pub counts: u64,
    /// Calls whose time isn't known.
    pub times: u64,
    /// Events at which a program didn't run, because it was running on that CPU already.
    pub events: u64,
}

impl Lost {
    /// Whether nothing was lost.
    pub const fn is_nothing(&self) -> bool {
        self.counts == 0 && self.times == 0 && self.events == 0
    }
}
