//! `RestrictNamespaces=` and `LockPersonality=`: what a systemd unit can say of the arguments of `clone` and `personality`.
//!
//! A policy that allows `clone` unless it makes namespaces is one with `RestrictNamespaces=`, which also restricts `clone3`,
//! `unshare` and `setns`, and always the namespaces of time. One that allows `personality` for some values, 0 among them, is
//! one with `LockPersonality=` if only 0 is kept. Both answer with `EPERM`. What that denies besides is a loss; a unit is never
//! looser. Policies that kill are not expressed so.
//!
//! `LockPersonality=` keeps the personality that the unit's programs start with: that of `Personality=`, else the manager's,
//! which is not 0 in a 32-bit container. So the text also gives the unit the personality 0: by the name of the native
//! architecture, after the value of the unit is reset. systemd ignores the names of other machines.

use tamis_abi::signature::{self, Width};
use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::code;
use tamis_diag::words::list;

use super::alternatives::Values;
use super::calls::{Answers, Calls};
use super::kept::Kept;
use super::{ExportOptions, Loss, RuleForm};
use crate::systemd::{self, SystemdVersion};

/// Calls that a setting restricts, instead of a list.
#[derive(Default)]
pub(super) struct Switches {
    /// The calls.
    pub(super) calls: Vec<&'static str>,
    /// The settings, each a line.
    pub(super) lines: Vec<String>,
    /// What they can't say of the policy.
    pub(super) losses: Vec<Loss>,
}

impl Switches {
    /// The settings for the calls of a policy on machines of these architectures.
    pub(super) fn of(calls: &Calls<'_>, natives: &[Arch], options: &ExportOptions<'_>) -> Switches {
        let mut switches = Switches::default();
        let answers = |name| {
            let answers = calls.named.get(name)?;
            (options.form_for(name) < RuleForm::Whole).then_some(answers.as_slice())
        };
        if let Some(denied) = answers("clone").and_then(denied_flags) {
            switches.restrict_namespaces(calls, denied);
        }
        if let Some(allowed) = answers("personality").and_then(allowed_personalities) {
            switches.lock_personality(natives, allowed);
        }
        switches
    }

    fn restrict_namespaces(&mut self, calls: &Calls<'_>, denied: Denied) {
        let all = old_namespaces();
        let kept: Vec<&str> = systemd::namespaces()
            .filter(|(_, flag)| flag & all & !denied.flags != 0)
            .map(|(name, _)| name)
            .collect();
        let words = match kept.as_slice() {
            [] => "yes".to_owned(),
            kept => kept.join(" "),
        };
        self.calls.push("clone");
        self.lines.push("RestrictNamespaces=".to_owned());
        self.lines.push(format!("RestrictNamespaces={words}"));
        if !denied.is_exact {
            self.losses.push(Loss {
                code: code::EXPORT_CONDITION,
                message: "systemd units can restrict only the kinds of namespaces that `clone` makes".to_owned(),
                kept: format!(
                    "{} for the kinds that the policy denies and for those of time; allow for all other flags",
                    Action::errno(EPERM)
                ),
                calls: vec!["clone"],
                arches: Vec::new(),
            });
        }
        let is_executed = |name: &&&'static str| {
            let answers = calls.named.get(**name).into_iter().flatten();
            let mut outcomes = answers.flat_map(|answers| &answers.outcomes);
            outcomes.any(|(action, _)| action.kind.executes())
        };
        let others = ["clone3", "unshare", "setns"];
        let others: Vec<&'static str> = others.iter().filter(is_executed).copied().collect();
        if !others.is_empty() {
            let (hidden, seen): (Vec<&str>, Vec<&str>) =
                others.iter().partition(|name| **name == "clone3");
            let of_kinds = format!(
                "{} for {} of these kinds",
                Action::errno(EPERM),
                list(&seen)
            );
            let parts = [
                (!seen.is_empty()).then_some(of_kinds),
                (!hidden.is_empty()).then(|| "ENOSYS for every `clone3`".to_owned()),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            self.losses.push(Loss {
                code: code::EXPORT_CONDITION,
                message: "systemd units cannot restrict the namespaces of `clone` alone".to_owned(),
                kept: parts.join(", "),
                calls: others,
                arches: Vec::new(),
            });
        }
    }

    fn lock_personality(&mut self, natives: &[Arch], allowed: Personalities) {
        self.calls.push("personality");
        self.lines.push("Personality=".to_owned());
        let names = natives.iter().copied().filter_map(systemd::arch_name);
        self.lines
            .extend(names.map(|name| format!("Personality={name}")));
        self.lines.push("LockPersonality=yes".to_owned());
        let eperm = Action::errno(EPERM);
        let (message, kept) = match allowed {
            Personalities::Zero => (
                "systemd units can lock only the personality that their programs start with",
                None,
            ),
            Personalities::LowerZero => (
                "systemd units compare all 64 bits of `personality`, of which the kernel reads the lower 32",
                Some(format!("{eperm} where the upper half isn't 0")),
            ),
            Personalities::Others => (
                "systemd units can allow only one value of `personality`",
                Some(format!("allow for 0; {eperm} for all others")),
            ),
        };
        let start = "the unit's programs start with 0, whatever its `Personality=`".to_owned();
        let kept: Vec<String> = kept.into_iter().chain([start]).collect();
        self.losses.push(Loss {
            code: code::EXPORT_CONDITION,
            message: message.to_owned(),
            kept: kept.join("; "),
            calls: vec!["personality"],
            arches: Vec::new(),
        });
    }
}

const EPERM: u16 = 1;

/// The flags with which `clone` is denied.
#[derive(Clone, Copy)]
struct Denied {
    flags: u64,
    /// Whether the policy says exactly what the setting does.
    is_exact: bool,
}

/// The flags of all kinds but that of time. A list of kinds without `time` denies time namespaces on every release of
/// systemd; `~time` doesn't.
fn old_namespaces() -> u64 {
    systemd::all_namespaces(SystemdVersion::OLDEST)
}

/// The flags of namespaces without which the policy allows `clone`; `None` if that depends on anything else.
fn denied_flags(answers: &[Answers<'_>]) -> Option<Denied> {
    let all = systemd::namespaces().fold(0, |all, (_, flag)| all | flag);
    let mut denied = Denied {
        flags: 0,
        is_exact: refuses_with_errno(answers)?,
    };
    for answers in answers {
        let place = signature::index(answers.arch, "clone", "clone_flags")?;
        let kept = Kept::of(answers, place.index() as u8);
        let masks = kept.values.iter().filter_map(|values| match values {
            Some(Values::Bits { mask, value: 0 }) => Some(*mask),
            _ => None,
        });
        // The condition that allows most.
        let mask = masks
            .filter(|mask| mask & !all == 0)
            .min_by_key(|mask| mask.count_ones())?;
        denied.is_exact &= kept.is_all && kept.values.len() == 1 && mask == all;
        denied.flags |= mask;
    }
    let has_namespaces = denied.flags & old_namespaces() != 0;
    has_namespaces.then_some(denied)
}

/// For which arguments a policy allows `personality`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Personalities {
    /// 0, as the setting does.
    Zero,
    /// All whose lower half is 0: the same for the kernel.
    LowerZero,
    /// 0 and others.
    Others,
}

/// The personalities that a policy allows; `None` if 0 isn't among them.
fn allowed_personalities(answers: &[Answers<'_>]) -> Option<Personalities> {
    let mut allowed = match refuses_with_errno(answers)? {
        true => Personalities::Zero,
        false => Personalities::Others,
    };
    for answers in answers {
        let kept = Kept::of(answers, 0);
        if !kept.allows(0) {
            return None;
        }
        let own = match kept.values.as_slice() {
            [Some(Values::Bits { mask, value: 0 })] if kept.is_all => match *mask {
                mask if mask == kept.max => Personalities::Zero,
                mask if mask == Width::Bits32.max() => Personalities::LowerZero,
                _ => Personalities::Others,
            },
            _ => Personalities::Others,
        };
        allowed = allowed.max(own);
    }
    Some(allowed)
}

/// Whether all denials are `EPERM`; `None` if there are none, or others than errors.
fn refuses_with_errno(answers: &[Answers<'_>]) -> Option<bool> {
    let all = answers.iter().flat_map(|answers| &answers.outcomes);
    let mut refused = all.filter(|(action, _)| *action != Action::ALLOW);
    let (first, _) = refused.next()?;
    let others = refused.map(|(action, _)| *action);
    let mut is_eperm = true;
    for action in [*first].into_iter().chain(others) {
        if action.kind != ActionKind::Errno {
            return None;
        }
        is_eperm &= action == Action::errno(EPERM);
    }
    Some(is_eperm)
}
