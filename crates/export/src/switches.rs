//! `RestrictNamespaces=` and `LockPersonality=`: the expressible conditions on the arguments of `clone` and
//! `personality`.
//!
//! A policy that allows `clone` except for new namespaces is expressed by `RestrictNamespaces=`, which also restricts
//! `clone3`, `unshare` and `setns`, and always time namespaces. A policy that allows `personality` for some values
//! including 0 is expressed by `LockPersonality=`, which keeps only 0. Both return `EPERM`. Additional denials are
//! losses; a unit is never looser. Policies that kill are not expressed this way.
//!
//! `LockPersonality=` keeps the initial personality of the unit's programs: that of `Personality=`, otherwise the
//! manager's, which is not 0 in a 32-bit container. So the text also sets the personality of the unit to 0: the unit's
//! value is reset, followed by the name of the native architecture. systemd ignores the names of other machines.

use tamis_abi::signature::{self, Width};
use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::words::list;

use super::alternatives::Values;
use super::calls::{Answers, Calls};
use super::kept::AllowedValues;
use super::{ExportOptions, Loss, RuleForm};
use crate::code;
use tamis_policy::systemd::{self, SystemdVersion};

/// Calls that a setting restricts, instead of a list.
#[derive(Default)]
pub(super) struct Switches {
    /// The calls.
    pub(super) calls: Vec<&'static str>,
    /// The settings, each a line.
    pub(super) lines: Vec<String>,
    /// The properties of the policy that they can't express.
    pub(super) losses: Vec<Loss>,
}

impl Switches {
    /// The settings for the calls of a policy on machines of these architectures.
    pub(super) fn from_calls(
        calls: &Calls<'_>,
        natives: &[Arch],
        options: &ExportOptions<'_>,
    ) -> Switches {
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

    fn restrict_namespaces(&mut self, calls: &Calls<'_>, denied: DeniedFlags) {
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

/// The flags that `clone` is denied with.
#[derive(Clone, Copy)]
struct DeniedFlags {
    flags: u64,
    /// Whether the setting is equivalent to the policy.
    is_exact: bool,
}

/// The flags of all namespaces except time. A list of kinds without `time` denies time namespaces on every release of
/// systemd; `~time` doesn't.
fn old_namespaces() -> u64 {
    systemd::all_namespaces(SystemdVersion::OLDEST)
}

/// The namespace flags that `clone` is denied with; `None` if the denial depends on anything else.
fn denied_flags(answers: &[Answers<'_>]) -> Option<DeniedFlags> {
    let all = systemd::namespaces().fold(0, |all, (_, flag)| all | flag);
    let mut denied = DeniedFlags {
        flags: 0,
        is_exact: refuses_with_errno(answers)?,
    };
    for answers in answers {
        let place = signature::index(answers.arch, "clone", "clone_flags")?;
        let kept = AllowedValues::from_answers(answers, place.index() as u8);
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

/// The allowed arguments of `personality`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Personalities {
    /// 0, like the setting.
    Zero,
    /// All values with a lower half of 0: equal for the kernel.
    LowerZero,
    /// 0 and others.
    Others,
}

/// The allowed personalities; `None` if 0 isn't among them.
fn allowed_personalities(answers: &[Answers<'_>]) -> Option<Personalities> {
    let mut allowed = match refuses_with_errno(answers)? {
        true => Personalities::Zero,
        false => Personalities::Others,
    };
    for answers in answers {
        let kept = AllowedValues::from_answers(answers, 0);
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

/// Whether all denials are `EPERM`; `None` if there are no denials, or denials other than errors.
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
