//! Small changes of profiles of container engines: names removed from lists, and a further entry.

use tamis_abi::{Action, ActionKind};

use super::edit::{Edit, EditKind};
use super::{Change, Mend, PolicyText, Wanted};
use crate::outcome::Decider;

/// Names removed from the lists that decide, an entry added, or both.
pub(super) fn candidates(changes: &[Change], wanted: Wanted, policy: &PolicyText<'_>) -> Vec<Mend> {
    if !changes
        .iter()
        .all(|change| change.is_whole && change.name.is_some())
    {
        return Vec::new();
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
    let file = policy.sources.iter().find(|own| *own.name == *policy.root);
    let Some(file) = file.map(|own| own.name.clone()) else {
        return Vec::new();
    };
    let mend = |mut edits: Vec<Edit>| {
        edits.sort_by_key(|edit| (edit.line, edit.column));
        Mend {
            file: file.clone(),
            edits,
        }
    };
    candidates.into_iter().map(mend).collect()
}

/// The removal of each name from the list that decides; `None` if one isn't in a list.
fn removed(changes: &[Change], policy: &PolicyText<'_>) -> Option<Vec<Edit>> {
    let source = policy
        .sources
        .iter()
        .find(|own| *own.name == *policy.root)?;
    let mut edits: Vec<Edit> = Vec::new();
    for change in changes {
        let Decider::Rule(Some(origin)) = &change.decider else {
            return None;
        };
        let place = (policy.place_in_list)(origin, &change.call)?;
        let line = source.text.lines().nth(place.line as usize - 1)?;
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
    Some(edits)
}

/// A further entry at the beginning of a JSON profile's list.
fn added(changes: &[Change], action: Action, policy: &PolicyText<'_>) -> Option<Edit> {
    let source = policy
        .sources
        .iter()
        .find(|own| *own.name == *policy.root)?;
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
    let list = source.text.lines().position(|line| {
        let key = line.trim().strip_prefix("\"syscalls\"");
        key.is_some_and(|rest| rest.trim_start_matches([':', ' ', '\t']) == "[")
    })?;
    Some(Edit {
        line: list as u32 + 2,
        column: 1,
        kind: EditKind::Insert,
        text: format!(
            "{{ \"names\": [{}], \"action\": {action} }},",
            names.join(", ")
        ),
    })
}
