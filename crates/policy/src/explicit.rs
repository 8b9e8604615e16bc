//! The explicit rules of a section: those that an overlay takes from a later part, and an `include` of the tamis language
//! from a file in another one.
//!
//! A default has two more forms besides [`Section::default`]: `unknown` of the tamis language is a rule for exactly the
//! numbers without a name, and front ends add the `ENOSYS` tail of container runtimes, a rule without a place in the text
//! for all numbers above some call. Like the default, they name no call. All other rules are explicit.

use tamis_abi::{Arch, syscall};
use tamis_rules::{IntervalSet, Rule, Section};

/// The explicit rules, in order.
pub fn rules(section: &Section) -> Vec<Rule> {
    let rules = section.rules.iter();
    rules
        .filter(|rule| !is_default(section.arch, rule))
        .cloned()
        .collect()
}

/// Whether a rule is a form of the default.
fn is_default(arch: Arch, rule: &Rule) -> bool {
    match rule.origin {
        Some(_) => rule.syscalls.intersection(&Section::domain(arch)) == unnamed(arch),
        None => is_open_ended(arch, &rule.syscalls),
    }
}

/// The numbers without a name in the table.
fn unnamed(arch: Arch) -> IntervalSet<u32> {
    let named: IntervalSet<u32> = syscall::all(arch).map(|(nr, _)| nr.0).collect();
    Section::domain(arch).difference(&named)
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
