//! The explicit rules of a section: those that an overlay takes from a later part.
//!
//! A default has two more forms besides [`Section::default`]: `unknown` of the tamis language and the `ENOSYS` tail of
//! container runtimes are rules for all numbers above some call. Like the default, they name no call.

use tamis_abi::{Arch, syscall};
use tamis_rules::{IntervalSet, Rule, Section};

/// The explicit rules, in order.
pub(crate) fn rules(section: &Section) -> Vec<Rule> {
    let rules = section.rules.iter();
    rules
        .filter_map(|rule| explicit(section.arch, rule))
        .collect()
}

/// The rule for the calls that it names; `None` if it is a form of the default.
///
/// Of a rule that also has all numbers above the last call with a name, only the calls with names count. Without a
/// place in the text such a rule was added by the front end, and isn't explicit.
fn explicit(arch: Arch, rule: &Rule) -> Option<Rule> {
    if !is_open_ended(arch, &rule.syscalls) {
        return Some(rule.clone());
    }
    rule.origin.as_ref()?;
    let named: IntervalSet<u32> = syscall::all(arch).map(|(nr, _)| nr.0).collect();
    let syscalls = rule.syscalls.intersection(&named);
    (!syscalls.is_empty()).then(|| Rule {
        syscalls,
        ..rule.clone()
    })
}

/// Whether a set has every number above the last call with a name, up to where those of x32 begin.
fn is_open_ended(arch: Arch, numbers: &IntervalSet<u32>) -> bool {
    let Some(last) = syscall::last(arch) else {
        return false;
    };
    let end = match arch {
        Arch::X86_64 => Arch::X32_BIT - 1,
        _ => u32::MAX - 1,
    };
    let later = IntervalSet::from_iter([last.0.saturating_add(1)..=end]);
    later.is_subset(numbers)
}
