//! Small changes of languages with a statement per line.

use std::collections::BTreeMap;
use std::sync::Arc;

use tamis_abi::{Action, ActionKind, Arch, syscall};

use super::edit::{Edit, EditKind};
use super::{Change, Mend, PolicyText, Wanted};
use crate::outcome::Decider;

/// `ENOSYS`: the C libraries fall back from `clone3` to `clone`.
const ENOSYS: &str = "errno(ENOSYS)";

/// Rules of the tamis language: before the first rule that decides, or before all.
pub(super) fn candidates(
    changes: &[Change],
    wanted: Wanted,
    own: &[Arch],
    policy: &PolicyText<'_>,
) -> Vec<Mend> {
    let rules = rules(changes, wanted, own).join("\n");
    let places = changes.iter().filter_map(|change| match &change.decider {
        Decider::Rule(Some(origin)) => Some(origin),
        _ => None,
    });
    let first = places.min_by_key(|origin| (*origin.file != *policy.root, origin.line));
    let mut candidates = Vec::new();
    match first {
        Some(origin) => candidates.push(inserted(&origin.file, origin.line, &rules)),
        None => {
            if let Some(source) = policy.sources.iter().find(|own| *own.name == *policy.root) {
                let end = source.text.lines().count() as u32 + 1;
                candidates.push(inserted(&source.name, end, &rules));
            }
        }
    }
    if let Some(source) = policy.sources.iter().find(|own| *own.name == *policy.root) {
        let is_head = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let head = source.text.lines().take_while(is_head).count() as u32;
        candidates.push(inserted(&source.name, head + 1, &rules));
    }
    candidates
}

fn inserted(file: &Arc<str>, line: u32, text: &str) -> Mend {
    Mend {
        file: file.clone(),
        edits: vec![Edit {
            line,
            column: 1,
            kind: EditKind::Insert,
            text: text.to_owned(),
        }],
    }
}

/// The rules, in blocks where they don't concern all architectures that have the call.
fn rules(changes: &[Change], wanted: Wanted, own: &[Arch]) -> Vec<String> {
    let mut by_text: Vec<(&str, Option<&str>, Vec<Arch>)> = Vec::new();
    for change in changes {
        match by_text.iter_mut().find(|(text, ..)| *text == change.text) {
            Some((.., arches)) if arches.contains(&change.arch) => {}
            Some((.., arches)) => arches.push(change.arch),
            None => by_text.push((&change.text, change.name, vec![change.arch])),
        }
    }
    let mut rules: BTreeMap<(Vec<&str>, String), Vec<&str>> = BTreeMap::new();
    for (text, name, arches) in by_text {
        let has_call =
            |arch: &&Arch| name.is_some_and(|name| syscall::number(**arch, name).is_some());
        let is_general = own
            .iter()
            .filter(has_call)
            .all(|arch| arches.contains(arch));
        let block = match is_general && name.is_some() {
            true => Vec::new(),
            false => arches.iter().map(|arch| arch.name()).collect(),
        };
        let verb = verb(wanted, name);
        rules.entry((block, verb)).or_default().push(text);
    }
    let line = |((block, verb), texts): ((Vec<&str>, String), Vec<&str>)| {
        let rule = format!("{verb} {}", texts.join(", "));
        match block.is_empty() {
            true => rule,
            false => format!("on {} {{ {rule} }}", block.join(", ")),
        }
    };
    rules.into_iter().map(line).collect()
}

fn verb(wanted: Wanted, name: Option<&str>) -> String {
    match wanted {
        Wanted::Denied if name == Some("clone3") => ENOSYS.to_owned(),
        Wanted::Denied => "deny".to_owned(),
        Wanted::Action(action) => match action.kind {
            ActionKind::KillProcess => "kill-process".to_owned(),
            ActionKind::KillThread => "kill-thread".to_owned(),
            _ => action.to_string(),
        },
    }
}

/// The names of calls, if all calls of their numbers are meant.
fn whole_names(changes: &[Change]) -> Option<Vec<&'static str>> {
    let mut names = Vec::new();
    for change in changes {
        let name = change.name.filter(|_| change.is_whole)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Some(names)
}

/// A block of kafel before all others: with the names of the calls or, as kafel has some under others, their numbers.
pub(super) fn blocks(changes: &[Change], wanted: Wanted, policy: &PolicyText<'_>) -> Vec<Mend> {
    let Some(names) = whole_names(changes) else {
        return Vec::new();
    };
    let verb = match wanted {
        Wanted::Denied => "ERRNO(1)".to_owned(),
        Wanted::Action(action) => match action.kind {
            ActionKind::Allow => "ALLOW".to_owned(),
            ActionKind::Log => "LOG".to_owned(),
            ActionKind::Notify => "USER_NOTIF".to_owned(),
            ActionKind::KillProcess => "KILL_PROCESS".to_owned(),
            ActionKind::KillThread => "KILL_THREAD".to_owned(),
            ActionKind::Errno => format!("ERRNO({})", action.data),
            ActionKind::Trap => format!("TRAP({})", action.data),
            ActionKind::Trace => format!("TRACE({})", action.data),
        },
    };
    let Some(source) = policy.sources.iter().find(|own| *own.name == *policy.root) else {
        return Vec::new();
    };
    let is_head = |line: &&str| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with("//") || line.starts_with('#')
    };
    let head = source.text.lines().take_while(is_head).count() as u32;
    let numbers: Vec<String> = changes
        .iter()
        .map(|change| format!("SYSCALL[{}]", change.nr))
        .collect();
    [names.join(", "), numbers.join(", ")]
        .iter()
        .map(|calls| inserted(&source.name, head + 1, &format!("{verb} {{ {calls} }}")))
        .collect()
}

/// A further `SystemCallFilter=` of a unit.
pub(super) fn settings(changes: &[Change], wanted: Wanted, policy: &PolicyText<'_>) -> Vec<Mend> {
    let Some(names) = whole_names(changes) else {
        return Vec::new();
    };
    let sign = match wanted {
        Wanted::Denied => "~",
        Wanted::Action(Action::ALLOW) => "",
        Wanted::Action(_) => return Vec::new(),
    };
    let text = format!("SystemCallFilter={sign}{}", names.join(" "));
    let root = policy.sources.iter().find(|own| *own.name == *policy.root);
    let Some(source) = root else {
        return Vec::new();
    };
    let lines = source.text.lines().enumerate();
    let filters = lines.filter(|(_, line)| line.trim_start().starts_with("SystemCallFilter="));
    let last = filters.last();
    let place = last.map(|(index, _)| inserted(&source.name, index as u32 + 2, &text));
    place.into_iter().collect()
}

/// Lines of a policy of minijail: removed, or added at the end.
pub(super) fn lines(changes: &[Change], wanted: Wanted, policy: &PolicyText<'_>) -> Vec<Mend> {
    let Some(names) = whole_names(changes) else {
        return Vec::new();
    };
    let Some(source) = policy.sources.iter().find(|own| *own.name == *policy.root) else {
        return Vec::new();
    };
    let numbered = || source.text.lines().enumerate();
    let removed = numbered().filter(|(_, line)| {
        let call = line.split_once(':').map(|(call, _)| call.trim());
        call.is_some_and(|call| names.contains(&call))
    });
    let removed = removed.map(|(index, line)| Edit {
        line: index as u32 + 1,
        column: 1,
        kind: EditKind::Delete,
        text: line.to_owned(),
    });
    let removed: Vec<Edit> = removed.collect();
    let added = |value: &str| {
        let lines: Vec<String> = names
            .iter()
            .map(|name| format!("{name}: {value}"))
            .collect();
        Edit {
            line: source.text.lines().count() as u32 + 1,
            column: 1,
            kind: EditKind::Insert,
            text: lines.join("\n"),
        }
    };
    let edits = match wanted {
        Wanted::Denied => removed,
        Wanted::Action(action) => {
            let value = match action.kind {
                ActionKind::Allow => "1".to_owned(),
                ActionKind::Errno => format!("return {}", action.data),
                _ => return Vec::new(),
            };
            removed.into_iter().chain([added(&value)]).collect()
        }
    };
    vec![Mend {
        file: source.name.clone(),
        edits,
    }]
}
