//! What to say of denied calls: the rule that decided, and the smallest change of the policy that allows them.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Arch, SeccompData, errno};
use tamis_diag::Sources;
use tamis_report::addition::{self, Addition, Denial};
use tamis_report::denied::{AdditionEntry, DeniedEntry, essence};
use tamis_report::explain;
use tamis_rules::Cause;
use tamis_session::{Input, Loaded, Policy};

use super::load::LoadArgs;

/// More kinds of denied calls are not kept: a program that tries all numbers is no reason to fill the memory.
const MAX_KINDS: usize = 1000;

/// Denied calls, those that differ only in addresses and the like counted together.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    kinds: BTreeMap<(u32, u32, [u64; 6], u32), Kind>,
}

/// Calls that were denied in the same way.
#[derive(Debug)]
struct Kind {
    first: SeccompData,
    count: u64,
    programs: Vec<String>,
}

impl Denials {
    /// Counts a call, and the program that made it if that is known.
    pub(crate) fn add(&mut self, data: &SeccompData, action: Action, program: Option<&str>) {
        let key = essence(data);
        let key = (key.arch, key.nr, key.args, action.ret());
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&key) {
            return;
        }
        let kind = self.kinds.entry(key).or_insert_with(|| Kind {
            first: *data,
            count: 0,
            programs: Vec::new(),
        });
        kind.count = kind.count.saturating_add(1);
        if let Some(program) = program
            && !kind.programs.iter().any(|known| known == program)
        {
            kind.programs.push(program.to_owned());
        }
    }

    /// The entries, the most frequent first; the policy of a call is asked for its reason.
    pub(crate) fn entries<'p>(
        &self,
        policy_of: impl Fn(&SeccompData) -> Option<&'p Policy>,
        load: &LoadArgs,
    ) -> Vec<DeniedEntry> {
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.count));
        let entry = |((.., ret), kind): (&(u32, u32, [u64; 6], u32), &Kind)| {
            let data = &kind.first;
            let policy = policy_of(data);
            let reason = policy.map(|policy| {
                explain::reason(&policy.name, &policy.ruleset, &policy.sources, data)
            });
            DeniedEntry {
                programs: kind.programs.clone(),
                reason,
                // Who answers that a call doesn't exist wants another one to be made.
                addition: policy
                    .filter(|_| !is_enosys(data, Action::from_ret(*ret)))
                    .and_then(|policy| allowing(policy, data, load)),
                ..DeniedEntry::new(data, Action::from_ret(*ret), kind.count)
            }
        };
        kinds.into_iter().map(entry).collect()
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
    let denial = Denial { data, rule };
    let addition = addition::propose(policy.kind.name(), &text, &denial)?;
    is_allowing(&addition, &text, policy, data, load).then(|| AdditionEntry {
        diff: addition.diff(&policy.name, &text),
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
        Ok(Loaded::Policy(changed)) => {
            let action = changed.ruleset.decide(data).action;
            matches!(action.kind, ActionKind::Allow | ActionKind::Log)
        }
        Ok(Loaded::Program(_)) | Err(_) => false,
    }
}
