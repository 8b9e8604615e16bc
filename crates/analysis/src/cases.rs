//! Cases: the results of a function in readable terms.
//!
//! A diagram is canonical but unreadable, with one node per bit. Here it is cut where filters are cut, at the
//! architecture and at the number, and numbers with the same function are grouped; the rest depends only on
//! arguments and becomes a [`Predicate`] (see [`condition`](crate::condition)).
//!
//! Nothing is approximated. If a function needs more cases or tests than [`CaseLimits`] allow, the list is marked
//! as incomplete, or a case has no condition.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Arch, Word};
use tamis_prover::{Function, LimitReached, Space, Variable, VariableKind, View};
use tamis_rules::{IntervalSet, Predicate, Section};

use crate::condition::Conditions;

/// The form of conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wording {
    /// For readers: the shortest form.
    #[default]
    Shortest,
    /// For a compiler, which splits sets itself: sets of values, unless one mask expresses them.
    Values,
}

/// The limits and the form of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseLimits {
    /// The most intervals of architectures, and of numbers on each of them.
    pub max_runs: usize,
    /// The most return values of a group of numbers.
    pub max_outcomes: usize,
    /// The most tests of a condition.
    pub max_tests: usize,
    /// The most cases in all.
    pub max_cases: usize,
    /// The form of conditions.
    pub wording: Wording,
}

impl Default for CaseLimits {
    fn default() -> CaseLimits {
        CaseLimits {
            max_runs: 20_000,
            max_outcomes: 64,
            max_tests: 1_000,
            max_cases: 20_000,
            wording: Wording::Shortest,
        }
    }
}

/// The architectures of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// An architecture with a name.
    Known(Arch),
    /// These audit values: those without a name, and those treated like most of them.
    Other(IntervalSet<u32>),
}

/// Calls with the same return value. The cases of a function are disjoint and, if complete, cover every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The architecture.
    pub machine: Machine,
    /// The numbers; for x86_64 and x32 only their own.
    pub numbers: IntervalSet<u32>,
    /// The condition on arguments and instruction pointer; `None` if it exceeds the limit of tests, or compares the
    /// number or the architecture with an argument.
    pub when: Option<Predicate>,
    /// The return value.
    pub ret: u32,
}

/// The results of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cases {
    /// By architecture, then by the smallest number, then by return value.
    pub list: Vec<Case>,
    /// Whether the list is complete; otherwise a limit was reached.
    pub is_complete: bool,
}

/// Numbers of one architecture with the same function.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) machine: Machine,
    pub(crate) numbers: IntervalSet<u32>,
    /// Their function of arguments and instruction pointer.
    pub(crate) node: Function,
}

/// Intervals of one word's values, ascending, each with the function after the word.
type Runs = Vec<(u32, u32, Function)>;

/// The results of a function, by architecture, number and arguments.
///
/// # Errors
/// If the space is full.
pub fn cases(
    space: &mut Space,
    function: Function,
    limits: &CaseLimits,
) -> Result<Cases, LimitReached> {
    let (groups, mut is_complete) = groups(space, function, limits);
    let mut conditions = Conditions::new(limits);
    let mut list = Vec::new();
    for group in groups {
        let (outcomes, all) = outcomes(space, group.node, limits.max_outcomes);
        is_complete &= all;
        for ret in outcomes {
            if list.len() == limits.max_cases {
                return Ok(Cases {
                    list,
                    is_complete: false,
                });
            }
            let holds = space.returns(group.node, ret)?;
            list.push(Case {
                machine: group.machine.clone(),
                numbers: group.numbers.clone(),
                when: conditions.predicate_of(space, holds)?,
                ret,
            });
        }
    }
    Ok(Cases { list, is_complete })
}

/// The groups of numbers with the same function, per architecture, and whether these are all.
pub(crate) fn groups(space: &Space, function: Function, limits: &CaseLimits) -> (Vec<Group>, bool) {
    let mut is_complete = true;
    let mut groups = Vec::new();
    for (machine, node) in machines(space, function, limits, &mut is_complete) {
        let domain = match machine {
            Machine::Known(arch) => Section::domain(arch),
            Machine::Other(_) => IntervalSet::full(),
        };
        let mut by_node: Vec<(Function, Vec<(u32, u32)>)> = Vec::new();
        let mut places: BTreeMap<Function, usize> = BTreeMap::new();
        let (runs, all) = runs(space, node, Word::NR, limits.max_runs);
        is_complete &= all;
        for (first, last, node) in runs {
            let place = *places.entry(node).or_insert_with(|| {
                by_node.push((node, Vec::new()));
                by_node.len() - 1
            });
            by_node[place].1.push((first, last));
        }
        for (node, ranges) in by_node {
            let numbers = ranges.into_iter().map(|(first, last)| first..=last);
            let numbers = numbers.collect::<IntervalSet<u32>>().intersection(&domain);
            if !numbers.is_empty() {
                groups.push(Group {
                    machine: machine.clone(),
                    numbers,
                    node,
                });
            }
        }
    }
    // x32's numbers are between those of x86_64.
    groups.sort_by_key(|group| {
        let place = match group.machine {
            Machine::Known(arch) => (0, arch as u32),
            Machine::Other(ref audits) => (1, audits.intervals()[0].0),
        };
        (place, group.numbers.intervals()[0].0)
    });
    (groups, is_complete)
}

/// The condition that a call is one of these.
pub(crate) fn calls_in(
    space: &mut Space,
    machine: &Machine,
    numbers: &IntervalSet<u32>,
) -> Result<Function, LimitReached> {
    let audits = match machine {
        Machine::Known(arch) => IntervalSet::single(arch.audit()),
        Machine::Other(audits) => audits.clone(),
    };
    space.calls(&audits, numbers)
}

/// The architectures that a function treats differently from most audit values.
pub fn arches(space: &Space, function: Function) -> Vec<Arch> {
    let machines = machines(space, function, &CaseLimits::default(), &mut true);
    let known = |(machine, _)| match machine {
        Machine::Known(arch) => Some(arch),
        Machine::Other(_) => None,
    };
    machines.into_iter().filter_map(known).collect()
}

/// The groups of architectures: those with a name one by one, except for those treated like most values.
fn machines(
    space: &Space,
    function: Function,
    limits: &CaseLimits,
    is_complete: &mut bool,
) -> Vec<(Machine, Function)> {
    let (runs, all) = runs(space, function, Word::ARCH, limits.max_runs);
    *is_complete &= all;
    let mut alike: BTreeMap<Function, Vec<(u32, u32)>> = BTreeMap::new();
    for (first, last, node) in &runs {
        alike.entry(*node).or_default().push((*first, *last));
    }
    let count = |ranges: &[(u32, u32)]| {
        let counts = ranges
            .iter()
            .map(|(first, last)| u64::from(last - first) + 1);
        counts.sum::<u64>()
    };
    let usual = alike
        .iter()
        .max_by_key(|(_, ranges)| count(ranges))
        .map(|(node, _)| *node);
    let node_at = |audit: u32| {
        let run = runs
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&audit));
        run.map(|(_, _, node)| *node)
    };
    let mut machines = Vec::new();
    let mut named = Vec::new();
    for arch in Arch::all() {
        if let Some(node) = node_at(arch.audit()).filter(|node| Some(*node) != usual) {
            machines.push((Machine::Known(arch), node));
            named.push(arch.audit());
        }
    }
    let named: IntervalSet<u32> = named.into_iter().collect();
    for (node, ranges) in alike {
        let audits = ranges.into_iter().map(|(first, last)| first..=last);
        let audits = audits.collect::<IntervalSet<u32>>().difference(&named);
        if !audits.is_empty() {
            machines.push((Machine::Other(audits), node));
        }
    }
    machines
}

/// The values of a word at the top of a diagram, ascending, with the diagram that each leads to,
/// and whether these are all.
fn runs(space: &Space, node: Function, word: Word, max_runs: usize) -> (Runs, bool) {
    let mut runs = Runs::new();
    let all = collect_runs(space, node, word, 32, 0, max_runs, &mut runs);
    (runs, all)
}

/// Adds the functions of the numbers from `base` on with `bits` lower bits; `false` if the limit is reached.
fn collect_runs(
    space: &Space,
    node: Function,
    word: Word,
    bits: u32,
    base: u32,
    max_runs: usize,
    runs: &mut Runs,
) -> bool {
    let below = |bits: u32| u32::MAX.checked_shr(32 - bits).unwrap_or(0);
    if word_of(space, node) != Some(word) {
        if let Some((_, last, before)) = runs.last_mut()
            && *before == node
        {
            *last = base | below(bits);
            return true;
        }
        runs.push((base, base | below(bits), node));
        return runs.len() <= max_runs;
    }
    let bit = bits - 1;
    let (low, high) = space.cofactors(node, Variable::of_bit(word, bit));
    collect_runs(space, low, word, bit, base, max_runs, runs)
        && collect_runs(space, high, word, bit, base | 1 << bit, max_runs, runs)
}

/// The word whose bit a node tests first.
fn word_of(space: &Space, node: Function) -> Option<Word> {
    match space.view(node) {
        View::Leaf(_) => None,
        View::Branch { variable, .. } => match space.kind(variable) {
            VariableKind::Bit(word, _) => Some(word),
            VariableKind::Relation(_) => None,
        },
    }
}

/// The return values of a diagram, ascending, and whether these are all.
pub(crate) fn outcomes(space: &Space, node: Function, max_outcomes: usize) -> (Vec<u32>, bool) {
    let mut values = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if !seen.insert(node) {
            continue;
        }
        match space.view(node) {
            View::Leaf(_) if values.len() == max_outcomes => return (values, false),
            View::Leaf(value) => values.push(value),
            View::Branch { low, high, .. } => open.extend([high, low]),
        }
    }
    values.sort_unstable();
    (values, true)
}
