//! The calls by which programs are rated, and how often each is made.
//!
//! Every call that the tables of the input's architectures know counts as often as the profile says, or
//! once. A profile that recorded arguments says which; otherwise a number whose arguments matter is
//! called with all arguments 0 and with the values that its conditions name, so that chains and trees
//! of values are told apart.

use std::collections::BTreeSet;

use tamis_abi::{Action, Arch, Nr, SeccompData, syscall};
use tamis_bpf::{Op, Operand, Program};
use tamis_profile::Call;
use tamis_rules::{Part, Predicate, Section, Test};

use super::lift::Lifted;
use crate::options::Options;
use crate::weights::{Kind, Weights};

/// A call and what it weighs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) arch: Arch,
    pub(super) data: SeccompData,
    /// What its steps weigh if the program runs.
    pub(super) run_weight: u64,
    /// What they weigh if the kernel's bitmap may answer instead.
    pub(super) cached_weight: u64,
    /// How often it is made, in the same unit for all calls.
    pub(super) count: u64,
}

/// One call of a number, in parts: what its argument lists share.
const PARTS_PER_CALL: u64 = 1 << 10;
/// The most argument lists per number.
const MAX_LISTS: usize = 64;

/// The architectures of an input: those that it was lifted for, else those that it compares with.
pub(super) fn archs(stack: &[Program], lifted: &[Lifted]) -> Vec<Arch> {
    if let Some(lifted) = lifted.first() {
        let archs = lifted.ruleset.sections().iter().map(|section| section.arch);
        return archs.collect();
    }
    let constants: BTreeSet<u32> = stack
        .iter()
        .flat_map(Program::ops)
        .filter_map(|op| match op {
            Op::Branch {
                operand: Operand::K(k),
                ..
            } => Some(k),
            _ => None,
        })
        .collect();
    let named: Vec<Arch> = Arch::all()
        .filter(|arch| constants.contains(&arch.audit()))
        .collect();
    match named.is_empty() {
        true => vec![Arch::X86_64, Arch::X32],
        false => named,
    }
}

/// The calls for an input.
pub(super) fn calls(stack: &[Program], lifted: &[Lifted], options: &Options) -> Vec<Sample> {
    let weights = Weights::new(options);
    let ruleset = lifted.first().map(|lifted| &lifted.ruleset);
    let mut samples = Vec::new();
    for arch in archs(stack, lifted) {
        let section = ruleset.and_then(|ruleset| ruleset.section(arch));
        for (nr, _) in syscall::all(arch) {
            let run = weights.numbers(arch, nr, nr, kind(section, nr));
            let cached = weights.numbers(arch, nr, nr, Kind::Allowed);
            let count = match &options.profile {
                Some(profile) => profile.count(arch, nr, nr),
                None => 1,
            };
            let seen = options.profile.as_ref();
            let seen = seen.and_then(|profile| profile.call(arch, nr));
            let lists = match seen.map(recorded).filter(|lists| !lists.is_empty()) {
                Some(lists) => lists,
                None => section.map_or_else(|| vec![([0; 6], 1)], |section| named(section, nr)),
            };
            let total: u64 = lists.iter().map(|(_, share)| *share).sum();
            for (args, share) in lists {
                let part = |weight: u64| {
                    let parts = u128::from(weight) * u128::from(PARTS_PER_CALL);
                    u64::try_from(parts * u128::from(share) / u128::from(total.max(1)))
                        .unwrap_or(u64::MAX)
                };
                samples.push(Sample {
                    arch,
                    data: SeccompData {
                        nr: nr.0,
                        arch: arch.audit(),
                        args,
                        ip: 0,
                        ..SeccompData::default()
                    },
                    run_weight: part(run),
                    cached_weight: part(cached),
                    count: part(count),
                });
            }
        }
    }
    samples
}

/// How a number is decided if not by the bitmap, which a program that allows it may keep from answering.
fn kind(section: Option<&Section>, nr: Nr) -> Kind {
    let Some(section) = section else {
        return Kind::ByArguments;
    };
    let rule = section
        .rules
        .iter()
        .find(|rule| rule.syscalls.contains(nr.0));
    let always = match rule {
        Some(rule) if rule.when != Predicate::True => None,
        Some(rule) => Some(rule.action),
        None => Some(section.default),
    };
    match always {
        Some(action) if action != Action::ALLOW => Kind::Answered,
        _ => Kind::ByArguments,
    }
}

/// The argument lists of a profile, or lists in which one argument has a value that it counted.
fn recorded(call: &Call) -> Vec<([u64; 6], u64)> {
    if !call.samples.is_empty() {
        let samples = call.samples.iter();
        return samples.map(|(args, count)| (*args, *count)).collect();
    }
    let mut lists = Vec::new();
    for (index, values) in &call.values {
        for (value, count) in values {
            let mut args = [0; 6];
            if let Some(arg) = args.get_mut(usize::from(*index)) {
                *arg = *value;
            }
            lists.push((args, *count));
        }
    }
    lists
}

/// Argument lists with the values that a section's rules name for a number.
fn named(section: &Section, nr: Nr) -> Vec<([u64; 6], u64)> {
    let zero = SeccompData::default();
    let mut lists = vec![zero.args];
    for rule in &section.rules {
        if !rule.syscalls.contains(nr.0) {
            continue;
        }
        if rule.when == Predicate::True {
            break;
        }
        let choices = choices(&rule.when).min(MAX_LISTS);
        lists.extend((0..choices).map(|choice| with(&rule.when, choice, zero).args));
    }
    lists.truncate(MAX_LISTS);
    lists.into_iter().map(|args| (args, 1)).collect()
}

/// How many ways to hold a predicate names.
fn choices(predicate: &Predicate) -> usize {
    let most = |parts: &[Predicate]| parts.iter().map(choices).max().unwrap_or(1);
    match predicate {
        Predicate::Test(Test::In { set, .. }) => set.intervals().len().max(1),
        Predicate::Any(parts) => most(parts).saturating_mul(parts.len().max(1)),
        Predicate::All(parts) => most(parts),
        Predicate::Not(inner) => choices(inner),
        Predicate::True | Predicate::False | Predicate::Test(_) => 1,
    }
}

/// The call with the values that one of the ways names.
fn with(predicate: &Predicate, choice: usize, call: SeccompData) -> SeccompData {
    let (operand, value) = match predicate {
        Predicate::True | Predicate::False | Predicate::Test(Test::Between { .. }) => return call,
        Predicate::Not(inner) => return with(inner, choice, call),
        Predicate::All(parts) => {
            let with_part = |call, part| with(part, choice, call);
            return parts.iter().fold(call, with_part);
        }
        Predicate::Any(parts) => {
            return match parts.get(choice % parts.len().max(1)) {
                Some(part) => with(part, choice / parts.len(), call),
                None => call,
            };
        }
        Predicate::Test(
            Test::Compare { operand, value, .. } | Test::Masked { operand, value, .. },
        ) => (operand, *value),
        Predicate::Test(Test::In { operand, set }) => {
            let intervals = set.intervals();
            match intervals.get(choice % intervals.len().max(1)) {
                Some((first, _)) => (operand, *first),
                None => return call,
            }
        }
    };
    let (low, high) = operand.words();
    match operand.part {
        Part::Full => call
            .with_word(low, value as u32)
            .with_word(high, (value >> 32) as u32),
        Part::Low => call.with_word(low, value as u32),
        Part::High => call.with_word(high, value as u32),
    }
}
