//! The argument values with which a call is allowed.
//!
//! Only constants and flags are considered, and only if the value is known for every call. Whether the recorded values
//! are complete is estimated from the values that occurred once (Good–Turing): their share of all calls approximates
//! the probability that the next call has a new value. The calls of one run are not independent. With enough runs, the
//! estimate therefore uses the values that occurred in a single run, and their share of the runs.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::family::{self, Family};
use tamis_abi::selector::{self, Selector};
use tamis_abi::signature::{self, Width};
use tamis_abi::{Arch, ArgIndex, consts};
use tamis_profile::interest::{self, Interesting};
use tamis_rules::{Operand, Predicate, Test};

use crate::closure;
use crate::evidence::Evidence;
use crate::learned::Options;
use crate::wider::{self, Reason};

/// How far a policy goes beyond the evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generality {
    /// The recorded values of every argument whose values are known.
    Seen,
    /// The recorded values of selecting arguments, and of other arguments where new values are unlikely.
    #[default]
    Stable,
    /// Like [`Stable`](Generality::Stable); a recorded call also allows its whole group of similar calls, with any
    /// arguments.
    Groups,
    /// Calls with any arguments.
    Calls,
}

/// A new value counts as likely if its probability is more than 1 in 20 calls or runs.
const UNLIKELY: u64 = 20;

/// The condition on a call, and where it is wider than the evidence.
#[derive(Debug)]
pub(crate) struct Condition {
    /// [`Predicate::True`] without a condition.
    pub(crate) when: Predicate,
    /// The unrestricted arguments, with the reasons.
    pub(crate) free: Vec<(&'static str, Reason)>,
    /// Whether flags are allowed in combinations that were not recorded.
    pub(crate) has_joined_flags: bool,
    /// Whether values of several arguments are allowed in combinations that may not have occurred.
    pub(crate) has_product: bool,
}

/// The condition on a call, derived from its evidence.
pub(crate) fn from_evidence(
    arch: Arch,
    name: &str,
    evidence: &Evidence,
    options: &Options<'_>,
) -> Condition {
    let generality = options.generality;
    let mut condition = Condition {
        when: Predicate::True,
        free: Vec::new(),
        has_joined_flags: false,
        has_product: false,
    };
    if generality == Generality::Calls {
        return condition;
    }
    let mut tests = Vec::new();
    let mut several = 0;
    for argument in interest::arguments(arch, name) {
        let values = match closed(arch, name, argument, evidence, options) {
            Ok(values) => values,
            Err(reason) => {
                let argument = signature::at(arch, name, argument.index);
                condition
                    .free
                    .extend(argument.map(|arg| (arg.name(), reason)));
                continue;
            }
        };
        let (test, is_joined) = on_argument(arch, name, argument, values, generality);
        condition.has_joined_flags |= is_joined;
        several += usize::from(values.len() > 1);
        tests.push(test);
    }
    condition.has_product = several > 1;
    condition.when = match tests.len() {
        0 => Predicate::True,
        1 => tests.remove(0),
        _ => Predicate::All(tests),
    };
    condition
}

/// The complete list of allowed values of an argument, or the reason to allow any value.
fn closed<'e>(
    arch: Arch,
    name: &str,
    argument: Interesting,
    evidence: &'e Evidence,
    options: &Options<'_>,
) -> Result<&'e BTreeMap<u64, u64>, Reason> {
    let seen_only = options.generality == Generality::Seen;
    if closure::is_needed(name) && !seen_only {
        return Err(Reason::ImpliedCalls);
    }
    if let Some(reason) = wider::unknown(evidence, argument.index) {
        return Err(reason);
    }
    let values = &evidence.call.values[&(argument.index.index() as u8)];
    if options.max_values.is_some_and(|max| values.len() > max) {
        return Err(Reason::Many {
            values: values.len(),
        });
    }
    let decides = selector::at(arch, name, argument.index).is_some();
    match seen_only || decides || is_stable(argument.index, values, evidence) {
        true => Ok(values),
        false => Err(Reason::Likely),
    }
}

/// The condition on a call that replaces a newer one with unknown arguments: new tasks stay in their namespaces.
pub(crate) fn in_place_of_another(arch: Arch, name: &str) -> Predicate {
    let flags = signature::index(arch, name, "clone_flags").filter(|_| name == "clone");
    match flags {
        Some(index) => masked(Operand::arg_low(index), namespaces(arch, name), 0),
        None => Predicate::True,
    }
}

/// The namespace flags of a call.
fn namespaces(arch: Arch, name: &str) -> u64 {
    const NAMESPACES: [&str; 8] = [
        "CLONE_NEWCGROUP",
        "CLONE_NEWIPC",
        "CLONE_NEWNET",
        "CLONE_NEWNS",
        "CLONE_NEWPID",
        "CLONE_NEWUSER",
        "CLONE_NEWUTS",
        "CLONE_NEWTIME",
    ];
    let others = match name {
        // The number of the signal contains the bit of `CLONE_NEWTIME`.
        "clone" => family::for_argument(name, "clone_flags").map_or(0, Family::number_bits),
        "unshare" | "setns" => 0,
        _ => return 0,
    };
    let bits = NAMESPACES
        .iter()
        .filter_map(|name| consts::value(arch, name));
    bits.fold(0, |all, bit| all | bit) & !others
}

/// Whether new values are unlikely.
fn is_stable(index: ArgIndex, values: &BTreeMap<u64, u64>, evidence: &Evidence) -> bool {
    if evidence.runs >= UNLIKELY {
        let arg = index.index() as u8;
        let of_one = |value: &&u64| evidence.coverage.values.get(&(arg, **value)) == Some(&1);
        let once = values.keys().filter(of_one).count() as u64;
        return once.saturating_mul(UNLIKELY) <= evidence.runs;
    }
    let once = values.values().filter(|count| **count == 1).count() as u64;
    let all = values.values().copied().fold(0, u64::saturating_add);
    once.saturating_mul(UNLIKELY) <= all
}

fn on_argument(
    arch: Arch,
    name: &str,
    argument: Interesting,
    values: &BTreeMap<u64, u64>,
    generality: Generality,
) -> (Predicate, bool) {
    let operand = match argument.width {
        Width::Bits64 => Operand::arg(argument.index),
        Width::Bits32 | Width::Bits16 => Operand::arg_low(argument.index),
    };
    let max = argument.width.max();
    let selector = selector::at(arch, name, argument.index);
    let deciding = match (selector, argument.width) {
        (Some(Selector::Bits(bits)), _) => Some(bits),
        // Tests of sets compare at least 32 bits, so a 16-bit argument needs a masked test.
        (_, Width::Bits16) => Some(max),
        _ => None,
    };
    let values: BTreeSet<u64> = values
        .keys()
        .map(|value| value & deciding.unwrap_or(max))
        .collect();
    if let Some(bits) = deciding {
        let values = values.into_iter().map(|value| masked(operand, bits, value));
        return (any(values.collect()), false);
    }
    // Values with namespace flags are listed: a combination of namespaces may permit far more than each of them.
    let apart = namespaces(arch, name);
    let (listed, joined): (BTreeSet<u64>, BTreeSet<u64>) =
        values.iter().partition(|value| *value & apart != 0);
    let family = signature::at(arch, name, argument.index)
        .and_then(|arg| family::for_argument(name, arg.name()));
    let are_flags = generality != Generality::Seen
        && selector.is_none_or(|selector| selector == Selector::Flags)
        && joined.iter().any(|value| *value != 0)
        && family.is_some_and(|family| {
            let bits = argument.width.bits();
            let mut names = joined.iter().map(|value| family.flags(arch, *value, bits));
            names.all(|names| names.is_some())
        });
    if !are_flags {
        return (one_of(operand, values), false);
    }
    let is_joined = joined.len() > 1 || joined.iter().any(|value| value.count_ones() > 1);
    let mut alternatives = Vec::new();
    if !listed.is_empty() {
        alternatives.push(one_of(operand, listed));
    }
    let number = family.map_or(0, Family::number_bits);
    if name == "clone" {
        // The signal at exit distinguishes forks from threads, which have different flags.
        let signals: BTreeSet<u64> = joined.iter().map(|value| value & number).collect();
        alternatives.extend(signals.into_iter().map(|signal| {
            let own = joined.iter().filter(|value| *value & number == signal);
            combined(operand, max, number, &own.copied().collect())
        }));
    } else {
        let only_seen = combined(operand, max, number, &joined);
        let together = never_together(arch, name, argument.index, joined.iter().copied());
        alternatives.push(match together {
            Some(bits) => {
                let together = masked(operand, bits, bits);
                Predicate::All(vec![only_seen, Predicate::Not(Box::new(together))])
            }
            None => only_seen,
        });
    }
    (any(alternatives), is_joined)
}

/// The flags of these values in any combination, with any of their `choice` bits.
fn combined(operand: Operand, max: u64, choice: u64, values: &BTreeSet<u64>) -> Predicate {
    let seen = values.iter().fold(0, |seen, value| seen | value);
    let choices: BTreeSet<u64> = values.iter().map(|value| value & choice).collect();
    let mask = max & !seen | choice;
    if mask == max {
        return one_of(operand, choices);
    }
    let choices = choices.into_iter();
    any(choices
        .map(|chosen| masked(operand, mask, chosen))
        .collect())
}

fn one_of(operand: Operand, values: BTreeSet<u64>) -> Predicate {
    let set = values.into_iter().collect();
    Predicate::Test(Test::In { operand, set })
}

fn any(mut alternatives: Vec<Predicate>) -> Predicate {
    match alternatives.len() {
        1 => alternatives.remove(0),
        _ => Predicate::Any(alternatives),
    }
}

/// W^X: if no recorded call combines the two protections, their combination stays denied.
fn never_together(
    arch: Arch,
    name: &str,
    index: ArgIndex,
    mut values: impl Iterator<Item = u64> + Clone,
) -> Option<u64> {
    let is_protection = signature::at(arch, name, index).is_some_and(|arg| arg.name() == "prot");
    let bit = |name| consts::value(arch, name);
    let both = bit("PROT_WRITE")? | bit("PROT_EXEC")?;
    let all = values.clone().fold(0, |all, value| all | value);
    let is_separate = values.all(|value| value & both != both);
    (is_protection && all & both == both && is_separate).then_some(both)
}

const fn masked(operand: Operand, mask: u64, value: u64) -> Predicate {
    Predicate::Test(Test::Masked {
        operand,
        mask,
        value,
    })
}
