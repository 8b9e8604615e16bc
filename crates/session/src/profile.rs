//! Profiles: read from inputs of any format, and compared with the policy that they are used for.

use std::cmp::Reverse;

use tamis_abi::{ActionKind, Arch, Nr, syscall};
use tamis_diag::Diagnostic;
use tamis_profile::Profile;
use tamis_rules::{Predicate, Section};

use crate::code;

#[cfg(feature = "languages")]
mod reading;

#[cfg(feature = "languages")]
pub use reading::{LoadedProfile, load};

/// The most calls in a warning.
const MAX_NAMED: usize = 3;

/// The name of a call, or `nr 500` without one.
pub fn call_name(arch: Arch, nr: Nr) -> String {
    match syscall::name(arch, nr) {
        Some(name) => name.to_owned(),
        None => format!("nr {}", nr.0),
    }
}

/// The warning about counted calls that the policy never allows.
pub fn mismatch(profile: &Profile, sections: &[Section]) -> Option<Diagnostic> {
    let mut denied = Vec::new();
    let (mut allows_any, mut total) = (false, 0_u128);
    for (arch, nr, call) in profile.calls().filter(|(_, _, call)| call.count > 0) {
        let Some(section) = sections.iter().find(|section| section.arch == arch) else {
            continue;
        };
        total += u128::from(call.count);
        if may_allow(section, nr) {
            allows_any = true;
        } else {
            denied.push((call.count, arch, nr));
        }
    }
    if total == 0 {
        let arches: Vec<&str> = sections.iter().map(|section| section.arch.name()).collect();
        let message = "the profile has no calls of the filter's architectures";
        let help = "set the architecture of a table with `--arch`, or use another profile";
        return Some(
            Diagnostic::warning(code::PROFILE_UNFIT, message)
                .note(format!("the filter is for {}", arches.join(", ")))
                .help(help),
        );
    }
    if denied.is_empty() {
        return None;
    }
    denied.sort_by_key(|(count, arch, nr)| (Reverse(*count), *arch, *nr));
    let message = match allows_any {
        true => "the profile counts calls that the policy never allows",
        false => "the policy allows none of the calls that the profile counts",
    };
    let named = denied.iter().take(MAX_NAMED).map(|(count, arch, nr)| {
        let share = *count as f64 / total as f64 * 100.0;
        format!("{} ({share:.1} %)", call_name(*arch, *nr))
    });
    let named: Vec<String> = named.collect();
    let more = match denied.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(
        Diagnostic::warning(code::PROFILE_UNFIT, message)
            .note(format!("never allowed: {}{more}", named.join(", ")))
            .help("check that the profile and the policy are for the same program"),
    )
}

/// Whether the section allows some call with this number, possibly through a tracer.
fn may_allow(section: &Section, nr: Nr) -> bool {
    let lets_through = |kind: ActionKind| {
        let passing = [
            ActionKind::Allow,
            ActionKind::Log,
            ActionKind::Trace,
            ActionKind::Notify,
        ];
        passing.contains(&kind)
    };
    for rule in &section.rules {
        if !rule.syscalls.contains(nr.0) {
            continue;
        }
        if lets_through(rule.action.kind) {
            return true;
        }
        if rule.when == Predicate::True {
            return false;
        }
    }
    lets_through(section.default.kind)
}
