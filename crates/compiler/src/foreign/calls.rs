//! The calls by which programs are rated, and how often each is made.
//!
//! Every call that the tables of the input's architectures or the profile know counts as often as the
//! profile says, or once. A profile that recorded arguments says which; otherwise a number whose arguments matter is
//! called with all arguments 0 and with the values that its conditions name, so that chains and trees
//! of values are told apart.

use std::collections::BTreeSet;

use tamis_abi::{Action, Arch, Nr, SeccompData, syscall};
use tamis_bpf::{Op, Operand, Program};
use tamis_profile::Profile;
use tamis_rules::{Part, Predicate, Section, Test};

use super::lift::Lifted;
use crate::expected::{Sample, argument_lists};
use crate::options::Options;
use crate::weights::{Kind, Weights};

/// A call, how often it is made, and what it weighs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighed {
    /// The call; its weight is how often it is made, in the same unit for all calls.
    pub(super) sample: Sample,
    /// What its steps weigh if the program runs.
    pub(super) run_weight: u64,
    /// What they weigh if the kernel's bitmap may answer instead.
    pub(super) cached_weight: u64,
}

/// One call of a number, in parts: what its argument lists share.
const PARTS_PER_CALL: f64 = 1024.0;
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
pub(super) fn calls(stack: &[Program], lifted: &[Lifted], options: &Options) -> Vec<Weighed> {
    let weights = Weights::new(options);
    let ruleset = lifted.first().map(|lifted| &lifted.ruleset);
    let profile = options.profile.as_ref();
    let mut calls = Vec::new();
    for arch in archs(stack, lifted) {
        let section = ruleset.and_then(|ruleset| ruleset.section(arch));
        let named: BTreeSet<Nr> = syscall::all(arch).map(|(nr, _)| nr).collect();
        let recorded = profile.into_iter().flat_map(Profile::calls);
        let recorded = recorded.filter(|(of, ..)| *of == arch).map(|(_, nr, _)| nr);
        for nr in named.into_iter().chain(recorded).collect::<BTreeSet<Nr>>() {
            let run = weights.numbers(arch, nr, nr, kind(section, nr));
            let cached = weights.numbers(arch, nr, nr, Kind::Allowed);
            let count = profile.map_or(1, |profile| profile.count(arch, nr, nr));
            let seen = profile.and_then(|profile| profile.call(arch, nr));
            let seen = seen.filter(|call| !call.samples.is_empty() || !call.values.is_empty());
            let lists = match (seen, section) {
                (Some(call), _) => argument_lists(call),
                (None, Some(section)) => lists_named(section, nr),
                (None, None) => vec![([0; 6], 1.0)],
            };
            let total: f64 = lists.iter().map(|(_, share)| share).sum();
            for (args, share) in lists {
                let share = share / total.max(f64::MIN_POSITIVE);
                let part = |weight: u64| (weight as f64 * PARTS_PER_CALL * share) as u64;
                let data = SeccompData {
                    nr: nr.0,
                    arch: arch.audit(),
                    args,
                    ip: 0,
                };
                calls.push(Weighed {
                    sample: Sample {
                        arch,
                        data,
                        weight: count as f64 * share,
                    },
                    run_weight: part(run),
                    cached_weight: part(cached),
                });
            }
        }
    }
    calls
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

/// Argument lists with the values that a section's rules name for a number.
fn lists_named(section: &Section, nr: Nr) -> Vec<([u64; 6], f64)> {
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
    lists.into_iter().map(|args| (args, 1.0)).collect()
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
