//! Small changes of profiles of container engines: names removed from lists, and a further entry.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind};
use tamis_diag::Source;

use super::edit::{self, Edit, EditKind};
use super::{Change, Mend, PolicyText, Wanted};
use crate::outcome::Decider;

/// Names removed from the lists that decide, an entry added, or both.
pub(super) fn candidates(changes: &[Change], wanted: Wanted, policy: &PolicyText<'_>) -> Vec<Mend> {
    if changes.iter().any(|change| change.name.is_none()) {
        return Vec::new();
    }
    if !changes.iter().all(|change| change.is_whole) {
        return conditional(changes, wanted, policy);
    }
    let removed = removed(changes, policy);
    let entry = match wanted {
        Wanted::Denied => None,
        Wanted::Action(action) => added(changes, action, policy),
    };
    let mut candidates = Vec::new();
    if wanted != Wanted::Action(Action::ALLOW) {
        candidates.extend(removed.clone());
    }
    if let Some(entry) = entry {
        // libseccomp refuses two rules without conditions for one call.
        let both = removed.map(|removed| [removed, vec![entry.clone()]].concat());
        candidates.extend(both);
        candidates.push(vec![entry]);
    }
    candidates
        .into_iter()
        .filter_map(|edits| mend(edits, policy))
        .collect()
}

/// The change of the policy's own file.
fn mend(mut edits: Vec<Edit>, policy: &PolicyText<'_>) -> Option<Mend> {
    let file = policy.sources.iter().find(|own| *own.name == *policy.root);
    edits.sort_by_key(|edit| (edit.line, edit.column));
    Some(Mend {
        file: file?.name.clone(),
        edits,
    })
}

/// Entries with conditions: those under which a call is allowed in the place of its name in a list, or further ones.
fn conditional(changes: &[Change], wanted: Wanted, policy: &PolicyText<'_>) -> Vec<Mend> {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for change in changes {
        let name = change.name.unwrap_or_default();
        let condition = change.text.strip_prefix(name);
        let condition = condition.filter(|own| own.starts_with('(') && own.ends_with(')'));
        let all = by_name.entry(name).or_default();
        if let Some(condition) = condition
            && !all.contains(&condition)
        {
            all.push(condition);
        }
    }
    let removed = match wanted {
        Wanted::Denied => removed(changes, policy),
        Wanted::Action(Action::ALLOW) => Some(Vec::new()),
        Wanted::Action(_) => None,
    };
    let Some(mut edits) = removed else {
        return Vec::new();
    };
    let mut calls = Vec::new();
    for (name, conditions) in by_name {
        match (wanted, conditions.as_slice()) {
            // All of its calls are denied.
            (Wanted::Denied, []) => {}
            (Wanted::Denied, all) => {
                let others: Vec<String> = all.iter().map(|own| format!("!{own}")).collect();
                calls.push(format!("{name}({})", others.join(" && ")));
            }
            (Wanted::Action(_), []) => calls.push(name.to_owned()),
            (Wanted::Action(_), all) => calls.extend(all.iter().map(|own| format!("{name}{own}"))),
        }
    }
    let Some(entries) = (policy.allowing)(&calls, changes[0].arch) else {
        return Vec::new();
    };
    let entries: Vec<String> = entries.iter().map(|own| format!("{own},")).collect();
    edits.extend(in_list(&entries.join("\n"), policy));
    mend(edits, policy).into_iter().collect()
}

/// Entries at the beginning of a JSON profile's list.
fn in_list(entries: &str, policy: &PolicyText<'_>) -> Option<Edit> {
    let mut sources = policy.sources.iter();
    let source = sources.find(|own| *own.name == *policy.root)?;
    let list = source.text.lines().position(|line| {
        let key = line.trim().strip_prefix("\"syscalls\"");
        key.is_some_and(|rest| rest.trim_start_matches([':', ' ', '\t']) == "[")
    })?;
    Some(Edit {
        line: list as u32 + 2,
        column: 1,
        kind: EditKind::Insert,
        text: entries.to_owned(),
    })
}

/// The removal of each name from the list that decides, or of the whole entry that names no other call; `None` if one isn't
/// in a list.
fn removed(changes: &[Change], policy: &PolicyText<'_>) -> Option<Vec<Edit>> {
    let source = policy
        .sources
        .iter()
        .find(|own| *own.name == *policy.root)?;
    let lines: Vec<&str> = source.text.lines().collect();
    let mut edits: Vec<Edit> = Vec::new();
    for change in changes {
        let Decider::Rule(Some(origin)) = &change.decider else {
            return None;
        };
        let place = (policy.place_in_list)(origin, &change.call)?;
        let line = *lines.get(place.line as usize - 1)?;
        let start = line.char_indices().nth(place.column as usize - 1)?.0;
        let name = change.name?;
        let quoted = format!("\"{name}\"");
        let (column, text) = match line[start..].starts_with(&quoted) {
            true => (place.column, quoted),
            // A list with one element per line.
            false if line.trim_start().starts_with("- ") => (1, line.to_owned()),
            false => return None,
        };
        let edit = Edit {
            line: place.line,
            column,
            kind: EditKind::Delete,
            text,
        };
        if !edits.contains(&edit) {
            edits.push(edit);
        }
    }
    Some(with_whole_entries(edits, source))
}

/// The removals of names, with one removal for all names of an entry: engines refuse entries without names.
fn with_whole_entries(edits: Vec<Edit>, source: &Source) -> Vec<Edit> {
    let text = &source.text;
    let place = |edit: &Edit| {
        let (start, line) = source.line(edit.line)?;
        let (within, _) = line.char_indices().nth(edit.column as usize - 1)?;
        Some(start + within)
    };
    // The removals by the entry in which they are.
    let mut entries: BTreeMap<(usize, &str), Vec<Edit>> = BTreeMap::new();
    let mut kept = Vec::new();
    for edit in edits {
        let Some(at) = place(&edit) else {
            kept.push(edit);
            continue;
        };
        let known = entries.keys().copied();
        let mut known = known.filter(|(start, entry)| (*start..start + entry.len()).contains(&at));
        let around = || {
            let entry = edit::object_around(text, at)?;
            Some((entry.as_ptr().addr() - text.as_ptr().addr(), entry))
        };
        match known.next().or_else(around) {
            Some(entry) => entries.entry(entry).or_default().push(edit),
            None => kept.push(edit),
        }
    }
    for ((_, entry), own) in entries {
        let names = entry.split_once("\"names\"").map_or("", |(_, rest)| rest);
        let names = names.split(']').next().unwrap_or_default();
        match names.matches('"').count() == 2 * own.len() {
            true => kept.push(edit::deletion(text, entry)),
            false => kept.extend(own),
        }
    }
    kept
}

/// A further entry at the beginning of a JSON profile's list.
fn added(changes: &[Change], action: Action, policy: &PolicyText<'_>) -> Option<Edit> {
    let mut names: Vec<String> = Vec::new();
    for change in changes {
        let quoted = format!("\"{}\"", change.name?);
        if !names.contains(&quoted) {
            names.push(quoted);
        }
    }
    let action = match action.kind {
        ActionKind::Allow => "\"SCMP_ACT_ALLOW\"".to_owned(),
        ActionKind::Log => "\"SCMP_ACT_LOG\"".to_owned(),
        ActionKind::KillProcess => "\"SCMP_ACT_KILL_PROCESS\"".to_owned(),
        ActionKind::KillThread => "\"SCMP_ACT_KILL_THREAD\"".to_owned(),
        ActionKind::Errno => format!("\"SCMP_ACT_ERRNO\", \"errnoRet\": {}", action.data),
        ActionKind::Trap | ActionKind::Trace | ActionKind::Notify => return None,
    };
    let names = names.join(", ");
    in_list(
        &format!("{{ \"names\": [{names}], \"action\": {action} }},"),
        policy,
    )
}
