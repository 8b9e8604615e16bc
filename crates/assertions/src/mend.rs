//! The smallest change of a policy's text after which a check holds, tried and proved.
//!
//! Each language has few forms of small changes: a rule before the one that decides, a name removed from a list or added
//! to it. They are tried in this order: the text is changed and read again, and the change is a mend if the check then
//! holds in every tested reading of the policy, and in every reading each call with another action than before is one that
//! the check concerns. Nothing else is offered, and no file is written.

mod edit;
mod filters;
mod profile;
mod statements;

use std::collections::BTreeSet;
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
    /// The reading that the judge decides about.
    pub own: &'p dyn Reading,
    /// The further tested readings in which calls with these names may have other actions.
    pub tested: OtherReadings<'p>,
    /// Such readings that aren't tested.
    pub untested: OtherReadings<'p>,
}

/// The readings in which calls with these names may have other actions; `None` if there are too many.
pub type OtherReadings<'p> = &'p dyn Fn(&BTreeSet<&'static str>) -> Option<Vec<Rc<dyn Reading>>>;

/// A reading of a policy: for a machine, a set of capabilities and a kernel.
pub trait Reading {
    /// The rules.
    fn ruleset(&self) -> &Ruleset;

    /// The rules with another text of one of the files; `None` if that is no policy.
    fn changed(&self, file: &str, text: &str) -> Option<Rc<Ruleset>>;
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

impl Change {
    /// Whether both are the same calls, by the same rule.
    fn is_same(&self, other: &Change) -> bool {
        let calls = |own: &Change| (own.arch, own.nr, own.is_whole);
        calls(self) == calls(other) && self.text == other.text && self.decider == other.decider
    }
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
        let own = self.own_arches().to_vec();
        let Some(mut changes) = self.changes(checks, check)?.filter(|own| !own.is_empty()) else {
            return Ok(None);
        };
        let wanted = match &check.claim {
            Claim::Always(_) => Wanted::Action(Action::ALLOW),
            Claim::Expect(_, answer) => match checks.action(answer, own[0]) {
                Some(action) => Wanted::Action(action),
                None => return Ok(None),
            },
            _ => Wanted::Denied,
        };
        let Some(others) = self.other_readings(checks, check, policy)? else {
            return Ok(None);
        };
        for other in &others {
            let found = self.with_reading(other, |judge| judge.changes(checks, check))?;
            let Some(found) = found else {
                return Ok(None);
            };
            for change in found {
                if !changes.iter().any(|own| own.is_same(&change)) {
                    changes.push(change);
                }
            }
        }
        let candidates = match policy.language {
            "tamis" => statements::candidates(&changes, wanted, &own, policy),
            "oci" | "spo" => profile::candidates(&changes, wanted, policy),
            "systemd" => statements::settings(&changes, wanted, policy),
            "minijail" => statements::lines(&changes, wanted, policy),
            "kafel" => statements::blocks(&changes, wanted, policy),
            "firecracker" => filters::candidates(&changes, wanted, policy),
            _ => Vec::new(),
        };
        let changed: BTreeSet<&str> = changes.iter().filter_map(|change| change.name).collect();
        // All others have the same entries for the changed calls as one of these.
        let Some(affected) = (policy.tested)(&changed) else {
            return Ok(None);
        };
        let is_mended =
            |judge: &mut Judge<'_>, changed: &Ruleset| judge.is_mended(checks, check, changed);
        let is_harmless = |judge: &mut Judge<'_>, changed: &Ruleset| {
            let changed = Subject::Ruleset(changed);
            let changed = judge.with_other(changed, |judge| Ok(judge.function()))?;
            judge.is_harmless(checks, check, changed)
        };
        for candidate in candidates {
            let Some(source) = policy.sources.iter().find(|own| own.name == candidate.file) else {
                continue;
            };
            let text = edit::apply(&source.text, &candidate.edits);
            let place = (&*candidate.file, text.as_str());
            if let Some(ruleset) = policy.own.changed(&candidate.file, &text)
                && self.is_mended(checks, check, &ruleset)?
                && self.holds_in(&affected, place, &is_mended)?
                && let Some(untested) = (policy.untested)(&changed)
                && self.holds_in(&untested, place, &is_harmless)?
            {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// The contradicting calls of this reading, for a change; `None` if the action for other architectures decides, for all
    /// of their calls.
    fn changes(&mut self, checks: &Checks, check: &Check) -> Limited<Option<Vec<Change>>> {
        let contradicted = self.contradicted(checks, check, &mut |_| {})?;
        let own = self.own_arches();
        if contradicted
            .iter()
            .any(|own_call| !own.contains(&own_call.sought.arch))
        {
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
        Ok(Some(changes))
    }

    /// The other tested readings that a change for this check may affect.
    fn other_readings(
        &mut self,
        checks: &Checks,
        check: &Check,
        policy: &PolicyText<'_>,
    ) -> Limited<Option<Vec<Rc<dyn Reading>>>> {
        let mut names = self.names(checks, check)?;
        loop {
            let Some(others) = (policy.tested)(&names) else {
                return Ok(None);
            };
            // Another machine may have further calls that do the same.
            let mut all = names.clone();
            for other in &others {
                all.extend(self.with_reading(other, |judge| judge.names(checks, check))?);
            }
            if all == names {
                return Ok(Some(others));
            }
            names = all;
        }
    }

    /// The names of the calls that a check concerns.
    fn names(&mut self, checks: &Checks, check: &Check) -> Limited<BTreeSet<&'static str>> {
        let sought = self.all_sought(checks, check, &mut |_| {})?;
        Ok(sought.iter().filter_map(|own| own.name).collect())
    }

    /// Whether a property holds in these readings of a changed text.
    fn holds_in(
        &mut self,
        readings: &[Rc<dyn Reading>],
        (file, text): (&str, &str),
        holds: &dyn Fn(&mut Judge<'_>, &Ruleset) -> Limited<bool>,
    ) -> Limited<bool> {
        for reading in readings {
            let Some(changed) = reading.changed(file, text) else {
                return Ok(false);
            };
            if !self.with_reading(reading, |judge| holds(judge, &changed))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a check holds for a changed policy, and all calls that changed are ones that it concerns.
    fn is_mended(&mut self, checks: &Checks, check: &Check, changed: &Ruleset) -> Limited<bool> {
        let changed = self.with_other(Subject::Ruleset(changed), |judge| {
            let contradicted = judge.contradicted(checks, check, &mut |_| {})?;
            Ok(contradicted.is_empty().then(|| judge.function()))
        })?;
        match changed {
            Some(changed) => self.is_harmless(checks, check, changed),
            None => Ok(false),
        }
    }

    /// Whether all calls for which a changed function differs are ones that a check concerns.
    fn is_harmless(&mut self, checks: &Checks, check: &Check, changed: Function) -> Limited<bool> {
        let concerned = self.concerned(checks, check)?;
        let function = self.function();
        let other_calls = without(&mut self.shared.space, function, concerned)?;
        Ok(without(&mut self.shared.space, changed, concerned)? == other_calls)
    }

    /// The calls that a check concerns, as a condition on all words.
    fn concerned(&mut self, checks: &Checks, check: &Check) -> Limited<Function> {
        let mut concerned = Function::FALSE;
        for sought in self.all_sought(checks, check, &mut |_| {})?.iter() {
            let audit = IntervalSet::from_iter([sought.arch.audit()..=sought.arch.audit()]);
            let numbers = IntervalSet::from_iter([sought.nr..=sought.last]);
            let calls = self.shared.space.calls(&audit, &numbers)?;
            let own = both(&mut self.shared.space, calls, sought.region)?;
            concerned = either(&mut self.shared.space, concerned, own)?;
        }
        Ok(concerned)
    }
}
