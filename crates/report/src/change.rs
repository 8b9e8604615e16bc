//! Changes from one filter to another, grouped for review.
//!
//! The prover lists differences per architecture and number. This file splits each into calls, and merges the calls
//! that changed in the same way, under the same condition and on the same architectures, into one [`Change`].

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use tamis_abi::{Action, Arch, Nr, Word, syscall};
use tamis_analysis::{Difference, Machine};
use tamis_export::tamis as export;
use tamis_prover::Pair;
use tamis_rules::{Input, IntervalSet, Predicate, Section};

/// The most ranges of numbers without names that are listed.
const MAX_RANGES: usize = 6;

/// The effect of a change, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The call was not executed before, and is now.
    NewlyAllowed,
    /// The call was executed before, and is not now.
    NewlyDenied,
    /// Neither, but the action or its data has changed.
    ActionChanged,
}

/// Whether two lists have the same changes apart from the examples.
pub fn is_same_list(left: &[Change], right: &[Change]) -> bool {
    let is_same = |left: &Change, right: &Change| {
        let key = |own: &Change| (own.kind, own.old, own.new);
        key(left) == key(right)
            && left.arches == right.arches
            && left.calls == right.calls
            && left.condition == right.condition
    };
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(left, right)| is_same(left, right))
}

/// Calls that changed in the same way.
#[derive(Serialize)]
pub struct Change {
    pub kind: ChangeKind,
    /// Whether the new action comes later in the kernel's order.
    pub is_looser: bool,
    /// The architectures, by name; others by their audit values.
    pub arches: Vec<String>,
    /// The calls, by name; others by their numbers.
    pub calls: Vec<String>,
    /// The condition on arguments, in the tamis language; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    #[serde(serialize_with = "text")]
    pub old: Action,
    #[serde(serialize_with = "text")]
    pub new: Action,
    /// One of the calls, with the return values of both filters; `None` if none was found.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "example_text"
    )]
    pub example: Option<(Input, Pair)>,
}

impl Change {
    /// The example as a call.
    pub fn example_text(&self) -> Option<String> {
        let (input, _) = self.example.as_ref()?;
        Some(input.describe_briefly())
    }
}

/// Serialises a value as its text.
pub(crate) fn text<S: Serializer>(
    value: &impl fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn example_text<S: Serializer>(
    example: &Option<(Input, Pair)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = example.as_ref().map(|(input, _)| input.describe_briefly());
    text.serialize(serializer)
}

impl ChangeKind {
    fn from_actions(old: Action, new: Action) -> ChangeKind {
        match (old.kind.executes(), new.kind.executes()) {
            (false, true) => ChangeKind::NewlyAllowed,
            (true, false) => ChangeKind::NewlyDenied,
            _ => ChangeKind::ActionChanged,
        }
    }
}

/// The kind of a change; calls with equal keys are grouped.
type ChangeKey = (ChangeKind, u32, u32, String);

/// An architecture: its rank in the order, and its name.
type Place = (usize, String);

/// A call, or all numbers without a name, which sort last; in order of number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    is_nameless: bool,
    number: u32,
    text: String,
}

/// Calls of one architecture, before merging with others.
struct Part {
    way: ChangeKey,
    machine: Place,
    call: Call,
    example: Option<(Input, Pair)>,
}

/// Groups differences, newly allowed calls first.
pub fn group(differences: &[Difference]) -> Vec<Change> {
    let mut parts = Vec::new();
    for difference in differences {
        take_apart(difference, &mut parts);
    }
    // First the architectures by way and call, then the calls by way and architectures.
    let mut by_call: BTreeMap<(ChangeKey, String), Vec<Part>> = BTreeMap::new();
    for part in parts {
        let key = (part.way.clone(), part.call.text.clone());
        by_call.entry(key).or_default().push(part);
    }
    let mut by_arches: BTreeMap<(ChangeKey, Vec<Place>), Vec<Part>> = BTreeMap::new();
    for ((way, _), mut parts) in by_call {
        parts.sort_by(|a, b| a.machine.cmp(&b.machine));
        let machines = parts.iter().map(|part| part.machine.clone()).collect();
        let first = parts.swap_remove(0);
        by_arches.entry((way, machines)).or_default().push(first);
    }
    let mut changes: Vec<(u32, Change)> = by_arches
        .into_iter()
        .map(|((way, machines), parts)| change(way, machines, parts))
        .collect();
    changes.sort_by(|(first, a), (other, b)| {
        (a.kind, first, &a.arches).cmp(&(b.kind, other, &b.arches))
    });
    changes.into_iter().map(|(_, change)| change).collect()
}

/// Changes known only by an example, one for each pair of return values.
pub fn of_examples(pairs: &[Pair]) -> Vec<Change> {
    let difference = |pair: &Pair| {
        let input = pair.example?;
        let data = input.data;
        let machine = match Arch::of_call(data.arch, data.nr) {
            Some(arch) => Machine::Known(arch),
            None => Machine::Other(IntervalSet::single(data.arch)),
        };
        Some(Difference {
            machine,
            numbers: IntervalSet::single(data.nr),
            when: None,
            left_ret: pair.left,
            right_ret: pair.right,
            example: Some(input),
        })
    };
    let differences: Vec<Difference> = pairs.iter().filter_map(difference).collect();
    let mut changes = group(&differences);
    for change in &mut changes {
        "an unknown condition".clone_into(&mut change.condition);
    }
    changes
}

/// A change, with its smallest number for the order.
fn change(way: ChangeKey, machines: Vec<Place>, mut parts: Vec<Part>) -> (u32, Change) {
    parts.sort_by(|a, b| a.call.cmp(&b.call));
    let (kind, old_ret, new_ret, condition) = way;
    let pair = Pair {
        left: old_ret,
        right: new_ret,
        example: None,
    };
    let first = parts.first().map_or(0, |part| part.call.number);
    let change = Change {
        kind,
        is_looser: pair.strictness().is_lt(),
        arches: machines.into_iter().map(|(_, name)| name).collect(),
        condition,
        old: Action::from_ret(old_ret),
        new: Action::from_ret(new_ret),
        example: parts.iter().find_map(|part| part.example),
        calls: parts.into_iter().map(|part| part.call.text).collect(),
    };
    (first, change)
}

/// Splits a difference into calls: each named one, and all numbers without a name together.
fn take_apart(difference: &Difference, parts: &mut Vec<Part>) {
    let (machine, arch) = match &difference.machine {
        Machine::Known(arch) => ((*arch as usize, arch.to_string()), Some(*arch)),
        Machine::Other(audits) => ((usize::MAX, audits_in_words(audits)), None),
    };
    let kind = ChangeKind::from_actions(
        Action::from_ret(difference.left_ret),
        Action::from_ret(difference.right_ret),
    );
    let pair = Pair {
        left: difference.left_ret,
        right: difference.right_ret,
        example: None,
    };
    let mut add = |name: Option<&str>, number: u32, text: String| {
        let condition = condition(arch, name, difference.when.as_ref());
        let way = (kind, difference.left_ret, difference.right_ret, condition);
        // The arguments of the example apply to all calls of the difference.
        let example = difference
            .example
            .map(|input| input.with_word(Word::NR, number));
        parts.push(Part {
            way,
            machine: machine.clone(),
            call: Call {
                is_nameless: name.is_none(),
                number,
                text,
            },
            example: example.map(|input| (input, pair)),
        });
    };
    let names: Vec<(u32, &str)> = arch.map_or(Vec::new(), |arch| {
        let all = syscall::all(arch).map(|(Nr(nr), name)| (nr, name));
        all.filter(|(nr, _)| difference.numbers.contains(*nr))
            .collect()
    });
    for (number, name) in &names {
        add(Some(name), *number, (*name).to_owned());
    }
    let named: IntervalSet<u32> = names.iter().map(|(number, _)| *number).collect();
    let others = difference.numbers.difference(&named);
    if let Some((first, _)) = others.intervals().first() {
        add(None, *first, numbers_in_words(&others, arch));
    }
}

/// A condition in the tamis language, or in the text form if the language cannot express it.
fn condition(arch: Option<Arch>, call: Option<&str>, when: Option<&Predicate>) -> String {
    match when {
        None => "a long condition (shown with --all)".to_owned(),
        Some(Predicate::True) => String::new(),
        Some(when) => {
            let arch = arch.unwrap_or(Arch::X86_64);
            export::condition(arch, call, when, export::Style::Named)
                .unwrap_or_else(|_| when.to_string())
        }
    }
}

/// Numbers without a name, as text.
fn numbers_in_words(numbers: &IntervalSet<u32>, arch: Option<Arch>) -> String {
    let nameless = arch.map_or_else(IntervalSet::full, |arch| {
        let named: IntervalSet<u32> = syscall::all(arch).map(|(nr, _)| nr.0).collect();
        Section::domain(arch).difference(&named)
    });
    match (*numbers == nameless, arch) {
        (true, Some(_)) => "all numbers without a name".to_owned(),
        (true, None) => "all numbers".to_owned(),
        (false, _) => ranges_in_words(numbers),
    }
}

fn audits_in_words(audits: &IntervalSet<u32>) -> String {
    let count: u64 = audits
        .intervals()
        .iter()
        .map(|(first, last)| u64::from(last - first) + 1)
        .sum();
    if count > u64::from(u32::MAX / 2) {
        return "other architectures".to_owned();
    }
    format!("audit value {}", ranges_in_words(audits))
}

fn ranges_in_words(set: &IntervalSet<u32>) -> String {
    let number = |number: u32| match number {
        0..0x1000 => number.to_string(),
        u32::MAX => "-1".to_owned(),
        _ => format!("{number:#x}"),
    };
    let intervals = set.intervals();
    let mut texts: Vec<String> = intervals
        .iter()
        .take(MAX_RANGES)
        .map(|(first, last)| match first == last {
            true => number(*first),
            false => format!("{}..{}", number(*first), number(*last)),
        })
        .collect();
    if intervals.len() > MAX_RANGES {
        texts.push(format!("and {} more ranges", intervals.len() - MAX_RANGES));
    }
    texts.join(", ")
}
