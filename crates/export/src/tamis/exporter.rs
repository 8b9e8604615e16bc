//! Policies in the tamis language, from the meaning of a policy in any language.
//!
//! The language can express nearly everything, by name; see [`super`]. Comments, includes, sets and the
//! order of statements are not kept.

use tamis_abi::{Action, ActionKind, errno};
use tamis_diag::Diagnostic;
use tamis_rules::{Rule, Ruleset, Section};

use crate::calls::{Actions, Calls, with_errno_in};
use crate::code;
use crate::{Export, ExportOptions, Exporter, Loss, Machine, Meaning};
use tamis_policy::tamis;

use super::{Style, policy_with_notes};

/// The exporter in the registry.
pub(crate) static EXPORTER: Exporter = Exporter {
    name: "tamis",
    plural: "policies in the tamis language",
    about: "A policy in the tamis language",
    front_end: &tamis::FRONT_END,
    writes_rules: true,
    takes_installation: false,
    states_arches: true,
    write,
};

fn write(meaning: &Meaning, options: &ExportOptions<'_>) -> Result<Export, Box<Diagnostic>> {
    let Some(ruleset) = &meaning.ruleset else {
        return Err(refusal("a condition of the policy is too long"));
    };
    let arches: Vec<_> = meaning
        .listings
        .iter()
        .map(|listing| listing.arch)
        .collect();
    let mut losses: Vec<Loss> = Vec::new();
    let actions = Actions {
        plural: EXPORTER.plural,
        nearest_action,
    };
    Calls::from_meaning(meaning, &arches, actions, &mut losses);
    let ruleset = with_actions(ruleset);
    let style = match options.forms.is_empty() {
        true => Style::Named,
        false => Style::Literal,
    };
    let text = policy_with_notes(&ruleset, style, options.notes);
    let text = text.map_err(|error| refusal(&error.to_string()))?;
    Ok(Export {
        text,
        machines: arches
            .first()
            .map(|native| Machine {
                native: *native,
                arches: arches.clone(),
            })
            .into_iter()
            .collect(),
        bad_arch: nearest_action(meaning.bad_arch),
        losses,
    })
}

fn refusal(message: &str) -> Box<Diagnostic> {
    let diagnostic = Diagnostic::error(code::EXPORT_REFUSED, message.to_owned());
    Box::new(diagnostic.help("`tamis bpf decompile --emit rules` writes a form without this limit"))
}

/// The nearest action of the language.
fn nearest_action(action: Action) -> Action {
    match action.kind {
        // The kernel caps larger values.
        ActionKind::Errno if action.data > errno::MAX => Action::errno(errno::MAX),
        ActionKind::Trap | ActionKind::Trace => action,
        _ => with_errno_in(action, 0, errno::MAX),
    }
}

fn with_actions(ruleset: &Ruleset) -> Ruleset {
    let section = |section: &Section| Section {
        arch: section.arch,
        default: nearest_action(section.default),
        rules: section
            .rules
            .iter()
            .map(|rule| Rule {
                action: nearest_action(rule.action),
                ..rule.clone()
            })
            .collect(),
    };
    let sections = ruleset.sections().iter().map(section).collect();
    match Ruleset::new(sections, nearest_action(ruleset.bad_arch)) {
        Ok(ruleset) => ruleset,
        Err(_) => unreachable!("the architectures are those of a ruleset"),
    }
}
