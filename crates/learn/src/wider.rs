//! Where a learned policy is wider than the evidence, and why. The policy's comments and the report list it.

use std::collections::BTreeSet;
use std::fmt;

use tamis_abi::selector::{self, Hidden};
use tamis_abi::{Arch, ArgIndex, Nr, consts, syscall};
use tamis_rules::Predicate;

use crate::evidence::Evidence;
use crate::text::{Allowed, Basis};

/// A call that is allowed beyond the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widening {
    /// The architecture.
    pub arch: Arch,
    /// The number.
    pub nr: Nr,
    /// The unrestricted arguments; empty if the reason concerns the whole call.
    pub arguments: Vec<&'static str>,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a call is allowed beyond the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The values of the argument weren't recorded.
    NotRecorded,
    /// The values were recorded for some calls only.
    PartlyRecorded {
        /// The number of calls with a recorded value.
        known: u64,
        /// The number of all calls.
        made: u64,
    },
    /// The recorder had no room for the values of some calls.
    Lost {
        /// The number of those calls.
        count: u64,
    },
    /// The argument has more values than [`Options::max_values`](crate::Options::max_values).
    Many {
        /// The number of values.
        values: usize,
    },
    /// The argument selects nothing, and new values are likely.
    Likely,
    /// The call depends on chance, and would be allowed without having been recorded.
    ImpliedCalls,
    /// Programs fall back to this call from the named newer one, which the base denies.
    InsteadOf(&'static str),
    /// The effect depends on data that a filter can't compare.
    Hidden {
        /// The data, as a clause.
        why: &'static str,
        /// The calls that can be made through this one with any arguments.
        makes: Vec<&'static str>,
        /// The calls among them whose conditions in this policy are thereby void.
        voids: Vec<&'static str>,
    },
    /// A recorded value makes all readable memory executable.
    ReadImpliesExec,
}

impl Reason {
    /// The identifier in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::NotRecorded => "not-recorded",
            Reason::PartlyRecorded { .. } => "partly-recorded",
            Reason::Lost { .. } => "lost",
            Reason::Many { .. } => "many-values",
            Reason::Likely => "new-values-likely",
            Reason::ImpliedCalls => "chance",
            Reason::InsteadOf(_) => "instead-of-newer",
            Reason::Hidden { .. } => "hidden",
            Reason::ReadImpliesExec => "read-implies-exec",
        }
    }
}

impl fmt::Display for Widening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.arguments.is_empty() {
            write!(f, "any {}: ", self.arguments.join(", "))?;
        }
        match &self.reason {
            Reason::NotRecorded => f.write_str("values weren't recorded"),
            Reason::PartlyRecorded { known, made } => {
                write!(f, "values are known of {known} of {made} calls")
            }
            Reason::Lost { count } => write!(f, "of {count} calls the value was lost"),
            Reason::Many { values } => write!(f, "{values} values, more than --max-values"),
            Reason::Likely => f.write_str("new values are likely"),
            Reason::ImpliedCalls => f.write_str("depends on chance"),
            Reason::InsteadOf(newer) => {
                write!(f, "instead of {newer}, with arguments that weren't seen")
            }
            Reason::Hidden { why, makes, voids } => {
                f.write_str(why)?;
                if !makes.is_empty() {
                    write!(f, ": like {} with any arguments", makes.join(", "))?;
                }
                if !voids.is_empty() {
                    write!(f, "; makes the conditions of {} void", voids.join(", "))?;
                }
                Ok(())
            }
            Reason::ReadImpliesExec => {
                f.write_str("READ_IMPLIES_EXEC makes readable memory executable")
            }
        }
    }
}

/// Effects of allowed calls that no filter sees, and memory that becomes executable implicitly.
pub(crate) fn hidden(allowed: &[Allowed<'_>]) -> Vec<Widening> {
    let mut found = Vec::new();
    for call in allowed {
        let (arch, nr) = (call.arch, call.nr);
        let Some(name) = syscall::name(arch, nr) else {
            continue;
        };
        let mut add = |reason| {
            found.push(Widening {
                arch,
                nr,
                arguments: Vec::new(),
                reason,
            });
        };
        if let Some(hidden) = selector::hidden(arch, name) {
            let makes = made_by(call, hidden);
            if hidden.is_other_call && makes.is_empty() {
                continue;
            }
            let is_void = |made: &&&str| {
                allowed.iter().any(|other| {
                    other.arch == arch
                        && other.when != Predicate::True
                        && syscall::name(arch, other.nr) == Some(**made)
                })
            };
            let voids = makes.iter().filter(is_void).copied().collect();
            let why = hidden.why;
            add(Reason::Hidden { why, makes, voids });
        }
        if name == "personality" && implies_exec(call) {
            add(Reason::ReadImpliesExec);
        }
    }
    found
}

/// The calls that can be made through a multiplexer, limited to its recorded operations. Only calls with selecting
/// arguments are listed.
fn made_by(call: &Allowed<'_>, hidden: &'static Hidden) -> Vec<&'static str> {
    let seen = operations(call);
    let is_seen = |operation: u32| seen.as_ref().is_none_or(|seen| seen.contains(&operation));
    let own = syscall::name(call.arch, call.nr);
    let is_made = |name: &&str| {
        let through = syscall::multiplexed(call.arch, name);
        let number = syscall::number(call.arch, name).filter(|_| own == Some("syscall"));
        through.is_some_and(|through| through.nr == call.nr && is_seen(through.call))
            || number.is_some_and(|nr| is_seen(nr.0))
    };
    let others = hidden.instead_of.iter().copied();
    let others = others.filter(|name| Some(*name) != own);
    let others = others.filter(|name| syscall::number(call.arch, name).is_some());
    let made = syscall::names().filter(is_made);
    made.filter(|name| selector::is_several(name))
        .chain(others)
        .collect()
}

/// The operations with which a multiplexer is allowed; `None` if all.
fn operations(call: &Allowed<'_>) -> Option<BTreeSet<u32>> {
    let Basis::Seen(evidence) = call.basis else {
        return None;
    };
    let values = evidence.call.values.get(&0)?;
    // `ipc` has a version in the upper 16 bits.
    (call.when != Predicate::True)
        .then(|| values.keys().map(|value| *value as u32 & 0xffff).collect())
}

fn implies_exec(call: &Allowed<'_>) -> bool {
    /// The value that only queries the personality.
    const QUERY: u64 = 0xffff_ffff;
    let Basis::Seen(evidence) = call.basis else {
        return false;
    };
    let Some(flag) = consts::value(call.arch, "READ_IMPLIES_EXEC") else {
        return false;
    };
    let mut values = evidence
        .call
        .values
        .get(&0)
        .into_iter()
        .flat_map(|values| values.keys());
    values.any(|value| value & 0xffff_ffff != QUERY && value & flag != 0)
}

/// Why the values of an argument can't be a condition; `None` if all are known.
pub(crate) fn unknown(evidence: &Evidence, index: ArgIndex) -> Option<Reason> {
    if let Some(count) = evidence.call.lost_values.get(&(index.index() as u8)) {
        return Some(Reason::Lost { count: *count });
    }
    let Some(values) = evidence.call.values.get(&(index.index() as u8)) else {
        return Some(Reason::NotRecorded);
    };
    let known = values.values().copied().fold(0, u64::saturating_add);
    let made = evidence.made();
    (known < made).then_some(Reason::PartlyRecorded { known, made })
}
