//! The calls that programs are rated with: those of the profile or of ordinary programs, with their weights.

use std::collections::BTreeSet;

use tamis_abi::{Action, Arch, Nr};
use tamis_bpf::{Op, Operand, Program};
use tamis_compiler::meter::{Sample, Workload};
use tamis_rules::{Predicate, Section};

use super::lift::Lifted;
use tamis_compiler::weights::{DecisionKind, Weights};
use tamis_compiler::{CompileOptions, Target};

/// The calls for an input.
pub(super) struct Calls {
    /// The calls with their frequencies.
    pub(super) made: Workload,
    /// The same calls with the weights that layout uses for calls that run the filter. Whole numbers, so that
    /// programs of equal cost have equal ratings.
    pub(super) counted: Workload,
    /// The fraction of the weight that counts if the kernel answers from its bitmap: other kernels and stacks may
    /// still run the programs.
    pub(super) cached_part: f64,
    pub(super) has_bitmap: bool,
    pub(super) target: Target,
}

/// The number of parts of one recorded call that its argument lists share.
const PARTS_PER_CALL: f64 = 1024.0;

/// The architectures of an input: those of the lifted ruleset, otherwise those that the programs compare with.
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

impl Calls {
    /// The calls for an input.
    pub(super) fn new(stack: &[Program], lifted: &[Lifted], options: &CompileOptions) -> Calls {
        let profile = options.profile.as_ref();
        let ruleset = lifted.first().map(|lifted| &lifted.ruleset);
        let made = match ruleset {
            Some(ruleset) => Workload::of_ruleset(profile, ruleset),
            None => Workload::from_profile(profile, &archs(stack, lifted)),
        };
        let weights = Weights::new(options);
        let count = |sample: &Sample| {
            let section = ruleset.and_then(|ruleset| ruleset.section(sample.arch));
            let kind = kind(section, Nr(sample.data.nr));
            let per_call = weights.per_call(sample.arch, kind) as f64;
            (sample.weight * per_call * PARTS_PER_CALL).floor()
        };
        let counted = made.weighed(count);
        let per_call = |kind| weights.per_call(Arch::X86_64, kind) as f64;
        Calls {
            made,
            counted,
            cached_part: per_call(DecisionKind::Allowed) / per_call(DecisionKind::ByArguments),
            has_bitmap: options.has_bitmap(),
            target: options.target,
        }
    }
}

/// The kind of the decision for a number without the bitmap; a program may prevent the bitmap from answering a number
/// that it allows.
fn kind(section: Option<&Section>, nr: Nr) -> DecisionKind {
    let Some(section) = section else {
        return DecisionKind::ByArguments;
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
        Some(action) if action != Action::ALLOW => DecisionKind::Answered,
        _ => DecisionKind::ByArguments,
    }
}
