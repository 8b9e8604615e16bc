//! The `ENOSYS` rule for numbers that are newer than the profile.
//!
//! A C library that gets `EPERM` for a new call fails; with `ENOSYS` it falls back to an older one. So runc returns
//! `ENOSYS` for every number above the largest that the profile names, before libseccomp's program runs.

use tamis_abi::{Action, ActionKind, Arch, syscall};
use tamis_rules::{IntervalSet, Predicate, Rule, Section};

use super::EnosysTail;
use super::model::Profile;

/// The value of `ENOSYS` on all architectures except MIPS and PA-RISC; runc uses it everywhere, and the kernel
/// doesn't translate it.
const ENOSYS: u16 = 38;

/// Prepends the rule for unknown numbers to a section.
pub(super) fn prepend(section: &mut Section, tail: EnosysTail, profile: &Profile, has_x32: bool) {
    let lenient = matches!(
        profile.default.kind,
        ActionKind::Allow | ActionKind::Log | ActionKind::Trace
    );
    let arch = section.arch;
    let last = match tail {
        EnosysTail::None => None,
        _ if lenient => None,
        EnosysTail::Runc => profile
            .entries
            .iter()
            .flat_map(|entry| &entry.names)
            .filter_map(|name| name.known?.number(arch))
            .max(),
        EnosysTail::Table => syscall::last(arch),
    };
    let Some(last) = last else { return };
    let above = above(arch, last.0, has_x32);
    if !above.is_empty() {
        let rule = Rule {
            syscalls: above,
            when: Predicate::True,
            action: Action::errno(ENOSYS),
            origin: None,
        };
        section.rules.insert(0, rule);
    }
}

/// The numbers of an architecture above `last`.
///
/// A tracer writes -1 to skip a call. If x32 is not in the filter, runc returns the default action for -1 on
/// x86_64, as for any other number with bit 30; with x32, it treats -1 as a very large number.
fn above(arch: Arch, last: u32, has_x32: bool) -> IntervalSet<u32> {
    let Some(first) = last.checked_add(1) else {
        return IntervalSet::empty();
    };
    match arch {
        Arch::X86_64 if has_x32 => [first..=Arch::X32_BIT - 1, u32::MAX..=u32::MAX]
            .into_iter()
            .collect(),
        Arch::X86_64 => [first..=Arch::X32_BIT - 1].into_iter().collect(),
        Arch::X32 => [first..=u32::MAX - 1].into_iter().collect(),
        _ => [first..=u32::MAX].into_iter().collect(),
    }
}
