//! What to say of denied calls: the rule that decided, and the smallest change of the policy that allows them.

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch, SeccompData, errno};
use tamis_diag::Sources;
use tamis_report::addition::{self, Addition, Denial};
use tamis_report::denied::{AdditionEntry, DeniedEntry, essence};
use tamis_report::entry::counted;
use tamis_report::explain;
use tamis_rules::Cause;
use tamis_session::{Input, Loaded, Policy};

use super::load::LoadArgs;

/// More kinds of denied calls are not kept: a program that tries all numbers is no reason to fill the memory.
const MAX_KINDS: usize = 1000;

/// Denied calls, those that differ only in addresses and the like counted together.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    kinds: BTreeMap<Key, Kind>,
    /// How many calls are of other kinds than those that are kept.
    others: u64,
}

/// What makes calls alike: the call without what is left out of it, the answer, and the place of the rule.
type Key = (u32, u32, [u64; 6], u32, Option<(u32, u32)>);

/// Calls that were denied in the same way.
#[derive(Debug)]
struct Kind {
    first: SeccompData,
    action: Action,
    count: u64,
}

/// Who denied a call.
pub(crate) struct Decider<'p> {
    /// The policy of the filter that decided.
    pub(crate) policy: &'p Policy,
    /// Whether no other filter denies the call too.
    pub(crate) is_alone: bool,
}

impl Denials {
    /// Counts a call that the filter of this policy denied.
    pub(crate) fn add(&mut self, data: &SeccompData, action: Action, policy: Option<&Policy>) {
        let place = policy.and_then(|policy| match policy.ruleset.decide(data).cause {
            Cause::Rule(_, rule) => rule
                .origin
                .as_ref()
                .map(|origin| (origin.line, origin.column)),
            Cause::Default(_) | Cause::BadArch => None,
        });
        let key = essence(data);
        let key = (key.arch, key.nr, key.args, action.ret(), place);
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&key) {
            self.others = self.others.saturating_add(1);
            return;
        }
        let kind = self.kinds.entry(key).or_insert(Kind {
            first: *data,
            action,
            count: 0,
        });
        kind.count = kind.count.saturating_add(1);
    }

    /// The entries, the most frequent first.
    pub(crate) fn entries<'p>(
        &self,
        decider: impl Fn(&SeccompData) -> Option<Decider<'p>>,
        load: &LoadArgs,
    ) -> Vec<DeniedEntry> {
        let mut kinds: Vec<&Kind> = self.kinds.values().collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
        let entry = |kind: &Kind| {
            let data = &kind.first;
            let decider = decider(data);
            let reason = decider.as_ref().map(|Decider { policy, .. }| {
                explain::reason(&policy.name, &policy.ruleset, &policy.sources, data)
            });
            // Who answers that a call doesn't exist wants another one to be made.
            let is_wanted = !is_enosys(data, kind.action);
            let alone = decider.filter(|decider| decider.is_alone && is_wanted);
            DeniedEntry {
                reason,
                addition: alone.and_then(|decider| allowing(decider.policy, data, load)),
                ..DeniedEntry::new(data, kind.action, kind.count)
            }
        };
        kinds.into_iter().map(entry).collect()
    }

    /// What isn't among the entries.
    pub(crate) fn note(&self) -> Option<String> {
        let calls = counted(self.others, "more denied call");
        (self.others > 0).then(|| format!("{calls}, of more than {MAX_KINDS} kinds"))
    }
}

/// The change of a policy that allows a call, tried.
fn allowing(policy: &Policy, data: &SeccompData, load: &LoadArgs) -> Option<AdditionEntry> {
    let decision = policy.ruleset.decide(data);
    let rule = match decision.cause {
        Cause::Rule(_, rule) => Some(rule.origin.as_ref()?),
        Cause::Default(_) => None,
        Cause::BadArch => return None,
    };
    let text = source_text(&policy.sources, &policy.name)?;
    if rule.is_some_and(|origin| *origin.file != *policy.name) {
        // The rule is in a file that the policy includes.
        return None;
    }
    let denial = Denial {
        data,
        has_args: true,
        rule,
    };
    tried(&denial, &text, policy, load)
}

/// The change of a policy that allows all calls of a number, of which no rule of the policy is about arguments.
pub(crate) fn allowing_all(
    policy: &Policy,
    data: &SeccompData,
    load: &LoadArgs,
) -> Option<AdditionEntry> {
    let text = source_text(&policy.sources, &policy.name)?;
    let denial = Denial {
        data,
        has_args: false,
        rule: None,
    };
    tried(&denial, &text, policy, load)
}

/// The change for a denial, if the changed text allows the call.
fn tried(
    denial: &Denial<'_>,
    text: &str,
    policy: &Policy,
    load: &LoadArgs,
) -> Option<AdditionEntry> {
    let addition = addition::propose(policy.kind.name(), text, denial)?;
    is_allowing(&addition, text, policy, denial.data, load).then(|| AdditionEntry {
        diff: addition.diff(&policy.name, text),
        opens: addition.opens.clone(),
    })
}

fn is_enosys(data: &SeccompData, action: Action) -> bool {
    let arch = Arch::of_call(data.arch, data.nr);
    arch.is_some_and(|arch| action == Action::errno(errno::enosys(arch)))
}

fn source_text(sources: &Sources, name: &str) -> Option<String> {
    let source = sources.iter().find(|source| *source.name == *name)?;
    Some(source.text.to_string())
}

/// Whether the changed text is a policy that allows the call.
fn is_allowing(
    addition: &Addition,
    text: &str,
    policy: &Policy,
    data: &SeccompData,
    load: &LoadArgs,
) -> bool {
    let input = Input::new(policy.name.as_str(), addition.apply(text));
    let load = load.with_kind(Some(policy.kind));
    match load.load_input(input) {
        Ok(Loaded::Policy(changed)) => changed.ruleset.decide(data).action.kind.executes(),
        Ok(Loaded::Program(_)) | Err(_) => false,
    }
}
