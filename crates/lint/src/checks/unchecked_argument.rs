//! Finds pairs of rules that allow one call, each after checking an argument that the other ignores.
//!
//! Not reported are rules that a common argument distinguishes (`ioctl` by its command), which don't overlap, and
//! pairs in which one rule checks everything that the other does, as a special case of it.

use std::collections::BTreeSet;

use crate::code::LINT_UNCHECKED_ARGUMENT;
use tamis_abi::{Arch, ArgIndex, Nr, syscall};
use tamis_rules::{OperandSource, Predicate, Rule, Test};

use super::overlap::overlaps;
use crate::context::{Context, is_executed};
use crate::finding::Finding;
use crate::registry::{Check, warning};
use crate::rules_view::place;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "unchecked-argument",
    LINT_UNCHECKED_ARGUMENT,
    "rules that allow one call check different arguments",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings: Vec<Finding> = Vec::new();
    for overlap in overlaps(context, |earlier, later| {
        let both_allow = [earlier, later].map(|rule| is_executed(rule.action.ret()));
        both_allow == [true; 2] && check_different(earlier, later)
    })? {
        let places = [
            place(overlap.later, "doesn't check the other's argument"),
            place(overlap.earlier, "doesn't check the first's argument"),
        ];
        let places: Vec<_> = places.into_iter().flatten().collect();
        if !places.is_empty() && findings.iter().any(|known| known.places == places) {
            continue;
        }
        let call = name(overlap.arch, overlap.both.call.nr);
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!("two rules for `{call}` check different arguments"),
            "a call needs to satisfy only one of them, so neither check is enforced",
            "if both must hold, write one rule with both conditions",
        );
        findings.push(finding.examples([overlap.later_alone]).places(places));
    }
    Ok(findings)
}

fn name(arch: Arch, nr: u32) -> String {
    syscall::name(arch, Nr(nr)).map_or_else(|| format!("{nr:#x}"), str::to_owned)
}

/// Whether each rule tests an argument that the other doesn't.
fn check_different(a: &Rule, b: &Rule) -> bool {
    let (a, b) = (arguments(&a.when), arguments(&b.when));
    !a.is_subset(&b) && !b.is_subset(&a)
}

/// The arguments that a predicate tests.
fn arguments(predicate: &Predicate) -> BTreeSet<ArgIndex> {
    let operands = predicate.tests().flat_map(Test::operands);
    let arguments = operands.filter_map(|operand| match operand.source {
        OperandSource::Arg(arg) => Some(arg),
        OperandSource::Ip | OperandSource::Variable(_) => None,
    });
    arguments.collect()
}
