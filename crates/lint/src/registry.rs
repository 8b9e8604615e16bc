//! The list of checks.

use tamis_diag::{Code, Severity};

use crate::checks::{
    address_families, compat_gap, dangerous_calls, dead_code, duplicate_rule, enosys_expected,
    essential_calls, evadable_restriction, foreign_arch, idle_rule, io_uring, merged_bounds,
    multiplexer, never_holds, outdated_list, permissive_default, runtime, shadowed_rule,
    sign_extension, start_up, target_needs, time64, twins, unchecked_arch, unchecked_argument,
    unknown_numbers, unreachable_rule, wide_comparison, x32_gap,
};
use crate::context::Context;
use crate::finding::Finding;
use tamis_prover::LimitReached;

/// A check.
#[derive(Clone, Copy)]
pub struct Check {
    /// Its name, in kebab case.
    pub name: &'static str,
    /// The code of its findings.
    pub code: Code,
    /// The severity of its worst findings.
    pub severity: Severity,
    /// A short description.
    pub summary: &'static str,
    /// Codes of front ends that report the same problem in a policy: the finding is then omitted.
    pub front_end_codes: &'static [Code],
    pub(crate) run: fn(&mut Context) -> Result<Vec<Finding>, LimitReached>,
}

/// All checks, ascending by code.
pub const ALL: [Check; 30] = [
    unchecked_arch::CHECK,
    foreign_arch::CHECK,
    x32_gap::CHECK,
    compat_gap::CHECK,
    multiplexer::CHECK,
    evadable_restriction::CHECK,
    wide_comparison::CHECK,
    twins::CHECK,
    io_uring::CHECK,
    unreachable_rule::CHECK,
    never_holds::CHECK,
    shadowed_rule::CHECK,
    idle_rule::CHECK,
    duplicate_rule::CHECK,
    unchecked_argument::CHECK,
    enosys_expected::CHECK,
    unknown_numbers::ERRNO,
    permissive_default::CHECK,
    unknown_numbers::KILLS,
    dangerous_calls::CHECK,
    dead_code::CHECK,
    address_families::CHECK,
    essential_calls::CHECK,
    start_up::CHECK,
    sign_extension::CHECK,
    time64::CHECK,
    runtime::CHECK,
    outdated_list::CHECK,
    target_needs::CHECK,
    merged_bounds::CHECK,
];

/// The check of calls that every program needs.
pub const ESSENTIAL: Check = essential_calls::CHECK;

/// The check with this name or code.
///
/// ```
/// use tamis_lint::registry::from_name;
/// assert_eq!(from_name("TM0708").unwrap().name, "twins");
/// assert_eq!(from_name("twins").unwrap().code.id, "TM0708");
/// ```
pub fn from_name(name: &str) -> Option<Check> {
    ALL.into_iter()
        .find(|check| check.name == name || check.code.id.eq_ignore_ascii_case(name))
}

/// The check that reports this code.
pub fn of_code(code: Code) -> Option<Check> {
    ALL.into_iter().find(|check| check.code == code)
}

/// A check with warnings.
pub(crate) const fn warning(
    name: &'static str,
    code: Code,
    summary: &'static str,
    run: fn(&mut Context) -> Result<Vec<Finding>, LimitReached>,
) -> Check {
    Check {
        name,
        code,
        severity: Severity::Warning,
        summary,
        front_end_codes: &[],
        run,
    }
}

/// A check with notes.
pub(crate) const fn note(
    name: &'static str,
    code: Code,
    summary: &'static str,
    run: fn(&mut Context) -> Result<Vec<Finding>, LimitReached>,
) -> Check {
    Check {
        severity: Severity::Note,
        ..warning(name, code, summary, run)
    }
}
