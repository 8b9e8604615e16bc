//! Where a policy is wider than the evidence, and why: said in its comments and in the report.

use std::collections::BTreeSet;
use std::fmt;

use tamis_abi::selector::{self, Hidden};
use tamis_abi::{Arch, ArgIndex, Nr, consts, syscall};
use tamis_rules::Predicate;

use crate::evidence::Evidence;
use crate::text::{Allowed, Basis};

/// A call that is allowed with more than was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wider {
    /// Its architecture.
    pub arch: Arch,
    /// Its number.
    pub nr: Nr,
    /// The arguments that may have any value; empty if it is about the whole call.
    pub arguments: Vec<&'static str>,
    /// Why.
    pub reason: Reason,
}

/// Why a call is allowed with more than was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The values of the argument weren't recorded.
    NotRecorded,
    /// They were recorded of some calls only.
    PartlyRecorded {
        /// Of so many.
        known: u64,
        /// So many were made.
        made: u64,
    },
    /// The recorder had no room for the values of some calls.
    Lost {
        /// So many.
        count: u64,
    },
    /// It has more values than [`Options::max_values`](crate::Options::max_values).
    Many {
        /// So many.
        values: usize,
    },
    /// It doesn't decide what the call does, and new values are likely.
    Likely,
    /// The call depends on chance, and would be allowed if it hadn't been seen.
    Needed,
    /// Programs fall back to this call from a newer one that the base denies.
    InsteadOf(&'static str),
    /// What decides is in no argument that a filter can compare.
    Hidden {
        /// What that is, as a clause.
        why: &'static str,
        /// The calls that can be made in this way with any arguments.
        makes: Vec<&'static str>,
        /// Those of them whose conditions in this policy don't hold then.
        voids: Vec<&'static str>,
    },
    /// One of its seen values makes all readable memory executable.
    ReadImpliesExec,
}

impl Reason {
    /// Its name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::NotRecorded => "not-recorded",
            Reason::PartlyRecorded { .. } => "partly-recorded",
            Reason::Lost { .. } => "lost",
            Reason::Many { .. } => "many-values",
            Reason::Likely => "new-values-likely",
            Reason::Needed => "chance",
            Reason::InsteadOf(_) => "instead-of-newer",
            Reason::Hidden { .. } => "hidden",
            Reason::ReadImpliesExec => "read-implies-exec",
        }
    }
}

impl fmt::Display for Wider {
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
            Reason::Needed => f.write_str("depends on chance"),
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

/// What no filter sees of the calls that are allowed, and memory that is executable though it wasn't asked for.
pub(crate) fn hidden(allowed: &[Allowed<'_>]) -> Vec<Wider> {
    let mut found = Vec::new();
    for call in allowed {
        let (arch, nr) = (call.arch, call.nr);
        let Some(name) = syscall::name(arch, nr) else {
            continue;
        };
        let mut add = |reason| {
            found.push(Wider {
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

/// The calls that can be made through another one, of which something decides: those of the operations that were seen.
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

/// The operations of a multiplexer that it is allowed with; `None` if all.
fn operations(call: &Allowed<'_>) -> Option<BTreeSet<u32>> {
    let Basis::Seen(evidence) = call.basis else {
        return None;
    };
    let values = evidence.call.values.get(&0)?;
    // `ipc` has a version above.
    (call.when != Predicate::True)
        .then(|| values.keys().map(|value| *value as u32 & 0xffff).collect())
}

fn implies_exec(call: &Allowed<'_>) -> bool {
    /// Only returns what there is.
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

/// Why the values of an argument are no condition; `None` if all are known.
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
