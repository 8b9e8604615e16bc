//! Small changes of Firecracker's filters: rules of a call removed, or a rule for all of its arguments added.
//!
//! A check concerns the filter of one thread; files with several have no mends, since a change would reach the others.

use tamis_abi::{Action, ActionKind};

use super::edit::{self, Edit, EditKind};
use super::{Change, Mend, PolicyText, Wanted};

/// The rules of the calls removed, or rules added to each list of rules.
pub(super) fn candidates(changes: &[Change], wanted: Wanted, policy: &PolicyText<'_>) -> Vec<Mend> {
    let root = policy.sources.iter().find(|own| *own.name == *policy.root);
    let Some(source) = root else {
        return Vec::new();
    };
    if source.text.matches("\"filter\"").count() != 1 {
        return Vec::new();
    }
    let mut names = Vec::new();
    for change in changes {
        match change.name {
            Some(name) if change.is_whole && !names.contains(&name) => names.push(name),
            Some(_) if change.is_whole => {}
            _ => return Vec::new(),
        }
    }
    let removed: Vec<Edit> = rules(&source.text)
        .into_iter()
        .filter(|rule| names.iter().any(|name| is_rule_of(rule, name)))
        .map(|rule| edit::deletion(&source.text, rule))
        .collect();
    // A list has one action, which a rule can't replace: a call is in the list, or gets the action of all others.
    let edits = match wanted {
        Wanted::Action(Action {
            kind: ActionKind::Allow,
            ..
        }) => insertions(&source.text, &names),
        Wanted::Denied | Wanted::Action(_) => removed,
    };
    match edits.is_empty() {
        true => Vec::new(),
        false => vec![Mend {
            file: source.name.clone(),
            edits,
        }],
    }
}

/// The innermost objects that have the key `syscall`.
fn rules(text: &str) -> Vec<&str> {
    let keys = text.match_indices("\"syscall\"");
    keys.filter_map(|(key, _)| edit::object_around(text, key))
        .collect()
}

/// Whether the value behind the key `syscall` of a rule is this name.
fn is_rule_of(rule: &str, name: &str) -> bool {
    let value = rule.split_once("\"syscall\"").map(|(_, rest)| rest);
    let value = value.and_then(|rest| rest.trim_start().strip_prefix(':'));
    let value = value.and_then(|rest| rest.trim_start().strip_prefix('"'));
    value.is_some_and(|value| {
        value
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('"'))
    })
}

/// A rule for each call, at the beginning of each list of rules that has lines of its own.
fn insertions(text: &str, names: &[&str]) -> Vec<Edit> {
    let rules: Vec<String> = names
        .iter()
        .map(|name| format!("{{ \"syscall\": \"{name}\" }},"))
        .collect();
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let key = line.trim().strip_prefix("\"filter\"");
        key.is_some_and(|rest| rest.trim_start_matches([':', ' ', '\t']) == "[")
    });
    let insertion = |(index, _): (usize, &str)| Edit {
        line: index as u32 + 2,
        column: 1,
        kind: EditKind::Insert,
        text: rules.join("\n"),
    };
    lines.map(insertion).collect()
}
