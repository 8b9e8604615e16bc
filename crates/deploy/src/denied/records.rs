//! The denied calls of audit records.
//!
//! A record has no arguments. A rule is therefore named only if its action is that of the record; if there are several,
//! all are named. A change is proposed only for calls whose action doesn't depend on arguments. `ausearch -i` omits the
//! number of an error: then every rule with an error matches.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, SeccompData};
use tamis_diag::escape::on_one_line;
use tamis_profile::Record;
use tamis_report::denied::DeniedEntry;
use tamis_report::{explain, place};
use tamis_rules::Predicate;
use tamis_session::Policy;

use super::{Reload, allowing};

/// The calls of audit records.
pub struct Recorded {
    /// The denied calls, the most frequent first.
    pub denied: Vec<DeniedEntry>,
    /// The number of records of calls that were executed.
    pub logged: u64,
}

/// The calls of audit records; the denied ones are explained by the policy, if given.
pub fn recorded(records: &[Record], policy: Option<&Policy>, reload: &Reload<'_>) -> Recorded {
    let mut logged = 0;
    let mut kinds: BTreeMap<Key, Kind> = BTreeMap::new();
    for record in records {
        match record.kind {
            Some(kind) if kind.executes() => logged += 1,
            kind => {
                let key = (record.arch.audit(), record.nr.0, kind);
                kinds.entry(key).or_default().add(record);
            }
        }
    }
    let mut denied: Vec<DeniedEntry> = kinds
        .into_iter()
        .map(|(key, kind)| entry(key, kind, policy, reload))
        .collect();
    denied.sort_by_key(|entry| std::cmp::Reverse(entry.count));
    Recorded { denied, logged }
}

/// The architecture and number of a call, and the action without its data, if recorded.
type Key = (u32, u32, Option<ActionKind>);

/// Records of the same call and action.
#[derive(Default)]
struct Kind {
    count: u64,
    programs: Vec<String>,
}

impl Kind {
    fn add(&mut self, record: &Record) {
        self.count += 1;
        if let Some(program) = &record.program
            && !self.programs.contains(program)
        {
            self.programs.push(program.clone());
        }
    }
}

fn entry(
    (arch, nr, action): Key,
    kind: Kind,
    policy: Option<&Policy>,
    reload: &Reload<'_>,
) -> DeniedEntry {
    let data = SeccompData {
        nr,
        arch,
        ..SeccompData::default()
    };
    let found = policy.map(|policy| deciders(policy, &data, action));
    let tried = policy
        .zip(found.as_ref())
        .map(|(policy, found)| match found.part {
            Part::Sole => allowing(policy, &data, false, reload),
            Part::ByArguments => Err("records have no arguments, and those decide".to_owned()),
            Part::None => Err("the policy doesn't answer so".to_owned()),
        });
    let entry = DeniedEntry {
        programs: kind.programs,
        reason: found.map(|found| found.reason),
        ..DeniedEntry::without_data(&data, action, kind.count)
    };
    match tried {
        Some(tried) => entry.with_addition(tried),
        None => entry,
    }
}

/// The parts of a policy that may have denied a call.
struct Deciders {
    reason: String,
    part: Part,
}

/// The decision of a policy for a call.
enum Part {
    /// The same part decides for all arguments.
    Sole,
    /// Arguments decide, and the recorded action is possible.
    ByArguments,
    /// The recorded action is impossible.
    None,
}

fn deciders(policy: &Policy, data: &SeccompData, action: Option<ActionKind>) -> Deciders {
    // A record without an action may have any action that the kernel logs.
    let answers = |own: Action| match action {
        Some(action) => own.kind == action,
        None => own.kind != ActionKind::Allow,
    };
    let name = &on_one_line(&policy.name);
    let sections = policy.ruleset.sections().iter();
    let section = sections
        .filter(|section| section.arch.audit() == data.arch)
        .find(|section| section.arch.owns_number(data.nr));
    let Some(section) = section else {
        return Deciders {
            reason: format!("{name} has no rules for this architecture"),
            part: Part::None,
        };
    };
    let mut rules = section
        .rules
        .iter()
        .filter(|rule| rule.syscalls.contains(data.nr));
    let sole = match rules.next() {
        None => Some(section.default),
        Some(rule) => (rule.when == Predicate::True).then_some(rule.action),
    };
    if sole.is_some_and(answers) {
        return Deciders {
            reason: explain::reason(&policy.name, &policy.ruleset, &policy.sources, data),
            part: Part::Sole,
        };
    }
    let mut places = Vec::new();
    // Rules after one without a condition have no effect.
    let mut is_open = true;
    for rule in section
        .rules
        .iter()
        .filter(|rule| rule.syscalls.contains(data.nr))
    {
        if is_open
            && answers(rule.action)
            && let Some(origin) = &rule.origin
        {
            let origin = place::of_call(origin, data, &policy.sources);
            places.push(format!("the rule at {}", place::text(&origin)));
        }
        is_open &= rule.when != Predicate::True;
    }
    if is_open && answers(section.default) {
        places.push(format!("the default of {name} for {}", section.arch));
    }
    let reason = match places.as_slice() {
        [] => format!("nothing in {name} answers so: the record is of another filter"),
        [one] => format!("by {one}"),
        several => format!("by one of these: {}", several.join("; ")),
    };
    let part = match places.is_empty() {
        true => Part::None,
        false => Part::ByArguments,
    };
    Deciders { reason, part }
}
