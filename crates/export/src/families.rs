//! `RestrictAddressFamilies=`: the only condition on the argument of `socket` that a systemd unit can express.
//!
//! systemd lists the allowed families; `socket` for all others gets `EAFNOSUPPORT`. A family is listed if the policy
//! allows it with any other arguments, on all architectures of the unit, so the unit is never looser. There is no list
//! where systemd has no filter for it, on architectures that create sockets by `socketcall`, and for policies that kill
//! for other families.

use std::collections::BTreeSet;

use tamis_abi::{Action, ActionKind, Arch, consts, family};
use tamis_diag::words::list;

use super::Loss;
use super::alternatives::Values;
use super::calls::Answers;
use super::kept::AllowedValues;
use crate::code;
use tamis_policy::systemd;

const CALL: &str = "socket";
/// The index of the family among the arguments.
const FAMILY: u8 = 0;

/// The allowed families, and the losses.
pub(super) struct Families {
    /// The names.
    pub(super) names: Vec<String>,
    pub(super) loss: Option<Loss>,
}

impl Families {
    /// The families of `socket`; `None` if all or none are allowed, or a unit can't restrict them.
    pub(super) fn from_answers(answers: &[Answers<'_>], native: Arch) -> Option<Families> {
        let refused = answers.iter().flat_map(|answers| &answers.outcomes);
        let refused = refused.filter(|(action, _)| *action != Action::ALLOW);
        let refused: BTreeSet<u32> = refused.map(|(action, _)| action.ret()).collect();
        let is_errno = |ret: &u32| Action::from_ret(*ret).kind == ActionKind::Errno;
        let is_restricted = |answers: &Answers<'_>| systemd::restricts_families(answers.arch);
        if refused.is_empty() || !refused.iter().all(is_errno) || !answers.iter().all(is_restricted)
        {
            return None;
        }
        let kept: Vec<AllowedValues> = answers
            .iter()
            .map(|answers| AllowedValues::from_answers(answers, FAMILY))
            .collect();
        let family = family::for_argument(CALL, "family")?;
        let known = consts::names(native).filter(|name| systemd::is_family(name));
        let known: BTreeSet<u64> = known
            .filter_map(|name| consts::value(native, name))
            .filter(|value| *value != 0)
            .collect();
        let allowed = known.iter().copied();
        let allowed = allowed.filter(|value| kept.iter().all(|kept| kept.allows(*value)));
        let names = allowed.filter_map(|value| family.name(native, value, u32::BITS));
        let names: Vec<String> = names.map(str::to_owned).collect();
        if names.is_empty() {
            return None;
        }
        let unsupported = consts::value(native, "EAFNOSUPPORT")?;
        let unsupported = Action::errno(u16::try_from(unsupported).ok()?);
        let is_exact = kept.iter().all(|kept| is_exact(kept, &known))
            && refused.iter().all(|ret| *ret == unsupported.ret());
        let loss = (!is_exact).then(|| Families::loss(&names, unsupported));
        Some(Families { names, loss })
    }

    fn loss(names: &[String], unsupported: Action) -> Loss {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Loss {
            code: code::EXPORT_CONDITION,
            message: "systemd units can express only which families `socket` may have".to_owned(),
            kept: format!(
                "allow for {}, whose other arguments the policy doesn't restrict; {unsupported} for all others",
                list(&names)
            ),
            calls: vec![CALL],
            arches: Vec::new(),
        }
    }
}

/// Whether the policy allows exactly the known families.
fn is_exact(kept: &AllowedValues, known: &BTreeSet<u64>) -> bool {
    let is_known = |values: &Option<Values>| matches!(values, Some(Values::Bits { mask, value }) if *mask == kept.max && known.contains(value));
    kept.is_all && kept.values.iter().all(is_known)
}
