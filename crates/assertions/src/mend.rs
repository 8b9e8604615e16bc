//! The smallest change of a policy's text after which a check holds, tried and proved.
//!
//! Each language has few forms of small changes: a rule before the one that decides, a name removed from a list or added
//! to it. They are tried in this order: the text is changed and read again, and the change is a mend if the check then
//! holds and every call with another action than before is one that the check concerns. Nothing else is offered, and no
//! file is written.

mod edit;
mod filters;
mod profile;
mod statements;

use std::rc::Rc;
use std::sync::Arc;

use tamis_abi::{Action, Arch, SeccompData};
use tamis_diag::Sources;
use tamis_prover::{Function, Limited, Subject};
use tamis_rules::{IntervalSet, Origin, Ruleset};

use crate::checks::{Check, Checks, Claim};
use crate::judge::{Contradicted, Judge};
use crate::outcome::Decider;
use crate::region::{both, either, without};

pub use edit::{Edit, EditKind};

/// A change of one file after which a check holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mend {
    /// The file.
    pub file: Arc<str>,
    /// The changes, in the order of the text.
    pub edits: Vec<Edit>,
}

/// The place of a call in the list of names at an origin.
pub type PlaceInList<'p> = &'p dyn Fn(&Origin, &SeccompData) -> Option<Origin>;

/// The entries of a container profile that allow calls; `None` if there are none.
pub type AllowingEntries<'p> = &'p dyn Fn(&[String], Arch) -> Option<Vec<String>>;

/// The text of a policy.
pub struct PolicyText<'p> {
    /// The name of its language.
    pub language: &'p str,
    /// The name of its own file among the sources.
    pub root: &'p str,
    /// The texts of its files.
    pub sources: &'p Sources,
    /// The place of a call in the list of names that a rule begins with.
    pub place_in_list: PlaceInList<'p>,
    /// The entries of a container profile that allow these calls, which are in the language of policies, on an
    /// architecture; each on a line.
    pub allowing: AllowingEntries<'p>,
    /// Reads the policy with another text of one of its files; `None` if that is no policy.
    pub read: &'p dyn Fn(&str, &str) -> Option<Rc<Ruleset>>,
}

/// The wanted action of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Denied,
    Action(Action),
}

/// Calls that contradict a check, for a change.
struct Change {
    arch: Arch,
    name: Option<&'static str>,
    nr: u32,
    /// The calls in the language of policies.
    text: String,
    /// Whether all calls of the number are meant.
    is_whole: bool,
    /// One of the calls.
    call: SeccompData,
    decider: Decider,
}

impl Judge<'_> {
    /// The smallest change after which a failing check holds; `None` if none is known.
    ///
    /// # Errors
    /// If a limit was reached.
    pub fn mend(
        &mut self,
        checks: &Checks,
        check: &Check,
        policy: &PolicyText<'_>,
    ) -> Limited<Option<Mend>> {
        let contradicted = self.contradicted(checks, check, &mut |_| {})?;
        if contradicted.is_empty() {
            return Ok(None);
        }
        let mut changes = Vec::new();
        for Contradicted { sought, part } in &contradicted {
            let example = self.example(sought, *part)?;
            changes.push(Change {
                arch: sought.arch,
                name: sought.name,
                nr: sought.nr,
                text: sought.text.clone(),
                is_whole: sought.region == Function::TRUE,
                call: example.input.data,
                decider: example.decider,
            });
        }
        let own = self.own_arches().to_vec();
        if changes.iter().any(|change| !own.contains(&change.arch)) {
            // The action for other architectures decides, for all of their calls.
            return Ok(None);
        }
        let wanted = match &check.claim {
            Claim::Always(_) => Wanted::Action(Action::ALLOW),
            Claim::Expect(_, answer) => match checks.action(answer, own[0]) {
                Some(action) => Wanted::Action(action),
                None => return Ok(None),
            },
            _ => Wanted::Denied,
        };
        let candidates = match policy.language {
            "tamis" => statements::candidates(&changes, wanted, &own, policy),
            "oci" | "spo" => profile::candidates(&changes, wanted, policy),
            "systemd" => statements::settings(&changes, wanted, policy),
            "minijail" => statements::lines(&changes, wanted, policy),
            "kafel" => statements::blocks(&changes, wanted, policy),
            "firecracker" => filters::candidates(&changes, wanted, policy),
            _ => Vec::new(),
        };
        for candidate in candidates {
            let Some(source) = policy.sources.iter().find(|own| own.name == candidate.file) else {
                continue;
            };
            let text = edit::apply(&source.text, &candidate.edits);
            if let Some(ruleset) = (policy.read)(&candidate.file, &text)
                && self.is_mended(checks, check, &ruleset)?
            {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// Whether a check holds for a changed policy, and all calls that changed are ones that it concerns.
    fn is_mended(&mut self, checks: &Checks, check: &Check, changed: &Ruleset) -> Limited<bool> {
        let changed = self.with_other(Subject::Ruleset(changed), |judge| {
            let contradicted = judge.contradicted(checks, check, &mut |_| {})?;
            Ok(contradicted.is_empty().then(|| judge.function()))
        })?;
        let Some(changed) = changed else {
            return Ok(false);
        };
        let concerned = self.concerned(checks, check)?;
        let function = self.function();
        let other_calls = without(&mut self.shared.space, function, concerned)?;
        Ok(without(&mut self.shared.space, changed, concerned)? == other_calls)
    }

    /// The calls that a check concerns, as a condition on all words.
    fn concerned(&mut self, checks: &Checks, check: &Check) -> Limited<Function> {
        let mut concerned = Function::FALSE;
        for sought in self.all_sought(checks, check, &mut |_| {})? {
            let audit = IntervalSet::from_iter([sought.arch.audit()..=sought.arch.audit()]);
            let numbers = IntervalSet::from_iter([sought.nr..=sought.last]);
            let calls = self.shared.space.calls(&audit, &numbers)?;
            let own = both(&mut self.shared.space, calls, sought.region)?;
            concerned = either(&mut self.shared.space, concerned, own)?;
        }
        Ok(concerned)
    }
}
