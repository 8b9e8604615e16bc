//! The actions of a policy for recorded calls, whose arguments are only partly known.
//!
//! A profile counts the values of single arguments, not their combinations. Each recorded value is therefore evaluated
//! alone; every other argument is the set of its values, or unknown. A test then holds, doesn't hold, or is undecided,
//! and a policy has several possible actions.

use std::collections::BTreeSet;
use std::slice;

use tamis_abi::{Action, Arch, ArgIndex, Nr};
use tamis_profile::Call;
use tamis_rules::{Operand, OperandSource, Part, Predicate, Ruleset, Test};

/// The result of a policy for the recorded calls of one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// The strictest action that denies some of the calls; `None` if none is denied.
    pub(crate) denial: Option<Action>,
    /// Whether at least one call is denied for all values of the unknown arguments.
    pub(crate) is_certain: bool,
    /// Whether all calls are denied for all values of the unknown arguments.
    pub(crate) is_whole: bool,
    /// Argument values that suffice for a denial; empty if calls are denied with any arguments.
    pub(crate) values: Vec<(ArgIndex, u64)>,
}

/// The values of an argument; `None` if unknown.
type Values<'v> = Option<&'v [u64]>;

/// Evaluates a policy for the calls of a profile's entry that were not denied while recording.
pub(crate) fn judge(policy: &Ruleset, arch: Arch, nr: Nr, call: &Call) -> Judgement {
    let made = call.count.saturating_sub(call.denied);
    let values = known_values(call, made);
    let answers: Vec<Vec<Action>> = argument_lists(call, made, &values)
        .iter()
        .map(|args| answers(policy, arch, nr, args))
        .collect();
    let all_deny = |answers: &Vec<Action>| answers.iter().all(|action| denies(*action));
    let denials = answers.iter().flatten().filter(|action| denies(**action));
    let denial = denials.min_by_key(|action| action.ret()).copied();
    Judgement {
        denial,
        is_certain: answers.iter().any(all_deny),
        is_whole: answers.iter().all(all_deny),
        values: match denial {
            Some(_) => denied_values(policy, arch, nr, call),
            None => Vec::new(),
        },
    }
}

/// The argument values that suffice for a denial.
fn denied_values(policy: &Ruleset, arch: Arch, nr: Nr, call: &Call) -> Vec<(ArgIndex, u64)> {
    let is_denied = |args: &[Values<'_>; 6]| {
        let answers = answers(policy, arch, nr, args);
        answers.iter().all(|action| denies(*action))
    };
    if is_denied(&Default::default()) {
        return Vec::new();
    }
    let mut seen: BTreeSet<(ArgIndex, u64)> = BTreeSet::new();
    for (index, values) in &call.values {
        let place = ArgIndex::new(*index).into_iter();
        seen.extend(place.flat_map(|place| values.keys().map(move |value| (place, *value))));
    }
    for args in call.samples.keys() {
        seen.extend(ArgIndex::ALL.into_iter().zip(*args));
    }
    seen.retain(|(place, value)| {
        let mut args: [Values<'_>; 6] = Default::default();
        args[place.index()] = Some(slice::from_ref(value));
        is_denied(&args)
    });
    seen.into_iter().collect()
}

/// Whether an action prevents the call.
pub(crate) const fn denies(action: Action) -> bool {
    !action.kind.executes()
}

/// The complete values of each argument; `None` for an argument with unknown values.
fn known_values(call: &Call, made: u64) -> [Option<Vec<u64>>; 6] {
    let mut known: [Option<Vec<u64>>; 6] = Default::default();
    for (index, values) in &call.values {
        let is_known = sum(values.values()) >= made && !call.lost_values.contains_key(index);
        if let Some(known) = known.get_mut(usize::from(*index)).filter(|_| is_known) {
            *known = Some(values.keys().copied().collect());
        }
    }
    known
}

fn sum<'c>(counts: impl Iterator<Item = &'c u64>) -> u64 {
    counts.fold(0, |sum: u64, count| sum.saturating_add(*count))
}

/// The argument lists to evaluate: each recorded list, and each recorded value with the complete values of the other
/// arguments.
fn argument_lists<'v>(
    call: &'v Call,
    made: u64,
    known: &'v [Option<Vec<u64>>; 6],
) -> Vec<[Values<'v>; 6]> {
    let whole = call.samples.keys();
    let whole = whole.map(|args| args.each_ref().map(|value| Some(slice::from_ref(value))));
    let mut lists: Vec<[Values<'_>; 6]> = whole.collect();
    let mut is_partial = lists.is_empty() || sum(call.samples.values()) < made;
    let known: [Values<'_>; 6] = known.each_ref().map(Option::as_deref);
    for (index, values) in &call.values {
        let place = known.get(usize::from(*index));
        is_partial |= place.is_none_or(Option::is_none);
        for value in values.keys() {
            let mut args = known;
            if let Some(arg) = args.get_mut(usize::from(*index)) {
                *arg = Some(slice::from_ref(value));
            }
            lists.push(args);
        }
    }
    // The calls without further information.
    if is_partial {
        lists.push(known);
    }
    lists
}

/// The possible actions for an argument list.
fn answers(policy: &Ruleset, arch: Arch, nr: Nr, args: &[Values<'_>; 6]) -> Vec<Action> {
    let Some(section) = policy.section(arch) else {
        return vec![policy.bad_arch];
    };
    let mut answers = Vec::new();
    let rules = section.rules.iter();
    for rule in rules.filter(|rule| rule.syscalls.contains(nr.0)) {
        match holds(&rule.when, args) {
            Some(false) => {}
            Some(true) => {
                answers.push(rule.action);
                return answers;
            }
            None => answers.push(rule.action),
        }
    }
    answers.push(section.default);
    answers
}

/// Whether a predicate holds; `None` if that depends on unknown values.
fn holds(predicate: &Predicate, args: &[Values<'_>; 6]) -> Option<bool> {
    let is_joined = matches!(predicate, Predicate::All(_) | Predicate::Any(_));
    if is_joined
        && let Some(index) = only_argument(predicate)
        && let Some(values) = args[index].filter(|values| values.len() > 1)
    {
        // The parts may hold for different values although the whole has one result for all values.
        let mut each = values.iter().map(|value| {
            let mut args = *args;
            args[index] = Some(slice::from_ref(value));
            holds(predicate, &args)
        });
        let first = each.next()??;
        return each.all(|result| result == Some(first)).then_some(first);
    }
    match predicate {
        Predicate::True => Some(true),
        Predicate::False => Some(false),
        Predicate::Not(inner) => holds(inner, args).map(|holds| !holds),
        Predicate::All(parts) => joined(parts, args, false),
        Predicate::Any(parts) => joined(parts, args, true),
        Predicate::Test(test) => tested(test, args),
    }
}

/// The argument of a predicate that reads only one.
fn only_argument(predicate: &Predicate) -> Option<usize> {
    let index = |operand: &Operand| match operand.source {
        OperandSource::Arg(index) => Some(index.index()),
        _ => None,
    };
    match predicate {
        Predicate::True | Predicate::False => None,
        Predicate::Not(inner) => only_argument(inner),
        Predicate::All(parts) | Predicate::Any(parts) => {
            let mut parts = parts.iter().map(only_argument);
            let first = parts.next()??;
            parts.all(|part| part == Some(first)).then_some(first)
        }
        Predicate::Test(
            Test::Compare { operand, .. } | Test::Masked { operand, .. } | Test::In { operand, .. },
        ) => index(operand),
        Predicate::Test(Test::Between { .. }) => None,
    }
}

/// The result of a conjunction or disjunction; `decisive` is the value of a part that decides the whole.
fn joined(parts: &[Predicate], args: &[Values<'_>; 6], decisive: bool) -> Option<bool> {
    let mut all_known = true;
    for part in parts {
        match holds(part, args) {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => all_known = false,
        }
    }
    all_known.then_some(!decisive)
}

/// Whether a test holds for all values or for none; `None` if undecided.
fn tested(test: &Test, args: &[Values<'_>; 6]) -> Option<bool> {
    let same = |operand: Operand, holds: &dyn Fn(u64) -> bool| {
        let mut results = read(operand, args)?.map(holds);
        let first = results.next()?;
        results.all(|result| result == first).then_some(first)
    };
    match test {
        Test::Compare { operand, op, value } => same(*operand, &|seen| op.holds(seen, *value)),
        Test::Masked {
            operand,
            mask,
            value,
        } => same(*operand, &|seen| seen & mask == *value),
        Test::In { operand, set } => same(*operand, &|seen| set.contains(seen)),
        Test::Between { left, op, right } => {
            let mut rights = read(*right, args)?;
            let right = rights.next()?;
            if rights.next().is_some() {
                return None;
            }
            same(*left, &|seen| op.holds(seen, right))
        }
    }
}

/// The possible values of an operand.
fn read(operand: Operand, args: &[Values<'_>; 6]) -> Option<impl Iterator<Item = u64>> {
    let OperandSource::Arg(index) = operand.source else {
        return None;
    };
    let values = args[index.index()]?;
    Some(values.iter().map(move |value| match operand.part {
        Part::Full => *value,
        Part::Low => value & 0xffff_ffff,
        Part::High => value >> 32,
    }))
}
