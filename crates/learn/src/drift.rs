//! Drift: recorded calls that a policy would deny.

use tamis_abi::{Action, Arch, ArgIndex, Nr};
use tamis_profile::Profile;
use tamis_rules::Ruleset;

use crate::answers::judge;

/// A recorded call that a policy denies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The architecture.
    pub arch: Arch,
    /// The number.
    pub nr: Nr,
    /// The number of recorded calls.
    pub count: u64,
    /// The strictest action that denies some of them.
    pub action: Action,
    /// Whether at least one recorded call is denied for all values of the unknown arguments.
    pub is_certain: bool,
    /// Recorded argument values that suffice for a denial; empty if none suffices, or if the call is denied with any
    /// arguments.
    pub values: Vec<(ArgIndex, u64)>,
}

/// The calls of a profile that a policy denies or may deny, by architecture and number, without calls that were denied
/// while recording.
///
/// ```
/// use tamis_abi::{Action, Arch, Nr};
/// use tamis_rules::{Ruleset, Section};
/// let section = Section { arch: Arch::X86_64, rules: Vec::new(), default: Action::errno(1) };
/// let policy = Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap();
/// let mut profile = tamis_profile::Profile::default();
/// profile.call_mut(Arch::X86_64, Nr(0)).count = 7;
/// let drift = tamis_learn::drift(&profile, &policy);
/// assert_eq!((drift[0].count, drift[0].action), (7, Action::errno(1)));
/// assert!(drift[0].is_certain);
/// ```
pub fn drift(profile: &Profile, policy: &Ruleset) -> Vec<Drift> {
    let made = profile
        .calls()
        .filter(|(_, _, call)| call.count > call.denied);
    let drift = made.filter_map(|(arch, nr, call)| {
        let judgement = judge(policy, arch, nr, call);
        Some(Drift {
            arch,
            nr,
            count: call.count - call.denied,
            action: judgement.denial?,
            is_certain: judgement.is_certain,
            values: judgement.values,
        })
    });
    drift.collect()
}
