//! From a thread's filter to the sections of a ruleset.
//!
//! All rules have the same action, so their order doesn't matter: a call gets it if any rule for its number
//! matches. One behaviour of the library is unexpected: a rule without conditions adds nothing to the list of a
//! number, and only an empty list means *always*. So such a rule has no effect beside a rule with conditions.

use std::collections::BTreeSet;

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, Sources};
use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Section, Test};

use super::model::{Comparison, Condition, Filter, Rule, Width};
use crate::code;

/// The sections of the architectures, and the warnings.
pub(super) fn sections(
    filter: &Filter,
    arches: &[Arch],
    sources: &Sources,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Section> {
    let conditional: BTreeSet<_> = conditional_rules(filter).map(|rule| rule.call).collect();
    let is_lost = |rule: &Rule| rule.conditions.is_empty() && conditional.contains(&rule.call);
    for rule in &filter.rules {
        if is_lost(rule) {
            diagnostics.push(lost(filter, rule));
        }
        for condition in &rule.conditions {
            diagnostics.extend(cut(condition));
        }
    }
    let mut known = BTreeSet::new();
    let arches = arches.iter().copied().filter(|arch| known.insert(*arch));
    let mut sections: Vec<Section> = arches
        .map(|arch| Section {
            arch,
            rules: filter
                .rules
                .iter()
                .filter(|rule| !is_lost(rule))
                .filter_map(|rule| lowered(filter, rule, arch, sources))
                .collect(),
            default: filter.mismatch,
        })
        .collect();
    // The library checks only the audit value, which x32 shares with x86_64, and compares numbers.
    if known.contains(&Arch::X86_64) && !known.contains(&Arch::X32) {
        sections.push(Section {
            arch: Arch::X32,
            rules: Vec::new(),
            default: filter.mismatch,
        });
    }
    sections
}

fn conditional_rules<'f>(filter: &'f Filter) -> impl Iterator<Item = &'f Rule> {
    let rules = filter.rules.iter();
    rules.filter(|rule| !rule.conditions.is_empty())
}

/// A rule on an architecture; `None` if that lacks the call. The missing call has already been reported.
fn lowered(
    filter: &Filter,
    rule: &Rule,
    arch: Arch,
    sources: &Sources,
) -> Option<tamis_rules::Rule> {
    let when = match rule.conditions.as_slice() {
        [] => Predicate::True,
        [one] => predicate(one),
        several => Predicate::All(several.iter().map(predicate).collect()),
    };
    Some(tamis_rules::Rule {
        syscalls: IntervalSet::single(rule.call.number(arch)?.0),
        when,
        action: filter.matched,
        origin: Some(crate::origin(sources, rule.span)),
    })
}

fn predicate(condition: &Condition) -> Predicate {
    let (operand, kept) = match condition.width {
        Width::Dword => (Operand::arg_low(condition.arg), u64::from(u32::MAX)),
        Width::Qword => (Operand::arg(condition.arg), u64::MAX),
    };
    let value = condition.value & kept;
    match condition.comparison {
        Comparison::Plain(op) => Predicate::compare(operand, op, value),
        Comparison::Masked { mask, .. } if mask & kept == kept => {
            Predicate::compare(operand, CmpOp::Eq, value)
        }
        Comparison::Masked { mask, .. } => Predicate::Test(Test::Masked {
            operand,
            mask: mask & kept,
            value: value & mask,
        }),
    }
}

fn lost(filter: &Filter, rule: &Rule) -> Diagnostic {
    let message = "the rule without conditions has no effect";
    let diagnostic = Diagnostic::warning(code::FIRECRACKER_LOST_RULE, message)
        .label(rule.span, "other rules for this call have conditions");
    let mut others = conditional_rules(filter).filter(|other| other.call == rule.call);
    let diagnostic = match others.next() {
        Some(other) => diagnostic.label(other.span, "such as this"),
        None => diagnostic,
    };
    diagnostic
        .note("the seccompiler library keeps the rules with conditions only")
        .help("delete it, or delete the others to match every such call")
}

/// A warning about a condition with constants whose upper half is not compared.
fn cut(condition: &Condition) -> Vec<Diagnostic> {
    if condition.width == Width::Qword {
        return Vec::new();
    }
    let low = u64::from(u32::MAX);
    let (mask, mask_span) = match condition.comparison {
        Comparison::Plain(_) => (u64::MAX, None),
        Comparison::Masked { mask, span } => (mask, Some(span)),
    };
    let cut_mask = mask_span.filter(|_| mask > low).map(|span| {
        let diagnostic = match mask & low {
            0 => Diagnostic::error(code::FIRECRACKER_CUT, "the condition always holds").label(
                span,
                "the lower 32 bits of the mask, which a `dword` compares, are all 0",
            ),
            kept => {
                let message = "a `dword` compares 32 bits, and the mask has more";
                Diagnostic::warning(code::FIRECRACKER_CUT, message)
                    .label(span, format!("{kept} is used"))
            }
        };
        diagnostic.help("use \"qword\" to compare all 64 bits")
    });
    let cut_value = (condition.value & mask > low).then(|| {
        let message = "a `dword` compares 32 bits, and `val` has more";
        let kept = condition.value & low;
        Diagnostic::warning(code::FIRECRACKER_CUT, message)
            .label(condition.value_span, format!("{kept} is compared"))
            .help("use \"qword\" to compare all 64 bits")
    });
    cut_mask.into_iter().chain(cut_value).collect()
}
