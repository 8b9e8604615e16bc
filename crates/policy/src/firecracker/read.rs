//! From JSON to [`Filter`]s. Every error is reported with its place; input that the seccompiler library rejects is
//! rejected.

use tamis_abi::syscall::Name;
use tamis_abi::{Action, ActionKind, Arch, ArgIndex};
use tamis_diag::Diagnostic;
use tamis_diag::document::{Member, Object, Range, Value};
use tamis_diag::json::{Reader, member, start_of};
use tamis_diag::limits::MAX_DIAGNOSTICS;
use tamis_rules::CmpOp;

use super::model::{Comparison, Condition, Filter, Rule, Width};
use crate::code;
use crate::near::nearest_call;

/// The members of a filter; the first two pairs are alternative names.
const FILTER_MEMBERS: [&str; 5] = [
    "mismatch_action",
    "default_action",
    "match_action",
    "filter_action",
    "filter",
];
const RULE_MEMBERS: [&str; 3] = ["syscall", "args", "comment"];
const CONDITION_MEMBERS: [&str; 5] = ["index", "type", "op", "val", "comment"];

const ACTIONS: [(&str, ActionKind); 5] = [
    ("allow", ActionKind::Allow),
    ("trap", ActionKind::Trap),
    ("log", ActionKind::Log),
    ("kill_thread", ActionKind::KillThread),
    ("kill_process", ActionKind::KillProcess),
];
const NUMBERED_ACTIONS: [(&str, ActionKind); 2] =
    [("errno", ActionKind::Errno), ("trace", ActionKind::Trace)];
const WIDTHS: [(&str, Width); 2] = [("dword", Width::Dword), ("qword", Width::Qword)];
const MASKED_EQ: &str = "masked_eq";
const OPERATORS: [(&str, CmpOp); 6] = [
    ("eq", CmpOp::Eq),
    ("ne", CmpOp::Ne),
    ("lt", CmpOp::Lt),
    ("le", CmpOp::Le),
    ("gt", CmpOp::Gt),
    ("ge", CmpOp::Ge),
];

/// The filters without errors, in the order of the file.
pub(super) fn filters<'t>(
    reader: &mut Reader,
    document: Value<'t>,
    arches: &[Arch],
) -> Vec<Filter<'t>> {
    let Some(root) = reader.object(document, "a file of filters") else {
        return Vec::new();
    };
    let threads = root.members();
    threads
        .filter_map(|thread| read_filter(reader, thread, arches))
        .collect()
}

fn read_filter<'t>(reader: &mut Reader, thread: Member<'t>, arches: &[Arch]) -> Option<Filter<'t>> {
    let what = "the filter of a thread";
    let object = reader.object(thread.value, what)?;
    check_members(reader, object, what, &FILTER_MEMBERS);
    let mismatch = either_action(reader, object, ["mismatch_action", "default_action"]);
    let matched = either_action(reader, object, ["match_action", "filter_action"]);
    let rules = reader.required(object, "filter", what);
    let rules = rules.and_then(|list| reader.array(list, "`filter`"))?;
    let rules = rules.elements();
    let rules: Vec<Rule> = rules
        .filter_map(|rule| read_rule(reader, rule, arches))
        .collect();
    let (mismatch, matched) = (mismatch?, matched?);
    if mismatch == matched {
        let message = "both actions of the filter are the same".to_owned();
        let label = "the rules have no effect";
        reader.error(
            code::FIRECRACKER_CONTRADICTION,
            start_of(object.range()),
            message,
            label,
        );
    }
    Some(Filter {
        thread: thread.name,
        mismatch,
        matched,
        rules,
    })
}

/// The action under one of two names.
fn either_action(reader: &mut Reader, object: Object<'_>, keys: [&str; 2]) -> Option<Action> {
    let [first, second] = keys.map(|key| member(object, key));
    if let (Some(_), Some(again)) = (first, second) {
        let message = format!("`{}` and `{}` are the same member", keys[0], keys[1]);
        let label = "the action is given already";
        reader.error(code::FIRECRACKER_DUPLICATE, again.range(), message, label);
    }
    match first.or(second) {
        Some(value) => read_action(reader, value),
        None => {
            reader.required(object, keys[1], "the filter of a thread");
            None
        }
    }
}

/// `"allow"`, or an object such as `{"errno": 1}`.
fn read_action(reader: &mut Reader, value: Value<'_>) -> Option<Action> {
    if let Some(name) = value.as_text() {
        if NUMBERED_ACTIONS.iter().any(|(known, _)| *known == name) {
            let message = format!("the action `{name}` needs a number");
            let diagnostic = Diagnostic::error(code::FIRECRACKER_NAME, message)
                .label(reader.span(value.range()), "")
                .help(format!("write {{\"{name}\": 1}}"));
            reader.push(diagnostic);
            return None;
        }
        let kind = reader.lookup("action", name, value.range(), &ACTIONS)?;
        return Some(Action::new(kind, 0));
    }
    let (name, value) = only_member(reader, value, "an action")?;
    let kind = reader.lookup("action", name.0, name.1, &NUMBERED_ACTIONS)?;
    let data = reader.unsigned(value, &format!("`{}`", name.0), u64::from(u16::MAX))?;
    Some(Action::new(kind, data as u16))
}

/// The member of an object that must have exactly one.
fn only_member<'t>(
    reader: &mut Reader,
    value: Value<'t>,
    what: &str,
) -> Option<((&'t str, Range), Value<'t>)> {
    let object = reader.object(value, &format!("{what} that is not a name"))?;
    let mut members = object.members();
    if let (Some(only), None) = (members.next(), members.next()) {
        return Some(((only.name, only.name_range), only.value));
    }
    let message = format!("{what} has one member");
    let label = "this has another number of members";
    reader.error(
        code::FIRECRACKER_MEMBER,
        start_of(object.range()),
        message,
        label,
    );
    None
}

fn read_rule(reader: &mut Reader, value: Value<'_>, arches: &[Arch]) -> Option<Rule> {
    let what = "a rule";
    let object = reader.object(value, what)?;
    check_members(reader, object, what, &RULE_MEMBERS);
    check_comment(reader, object);
    let name = reader.required(object, "syscall", what);
    let call = name.and_then(|value| read_call(reader, value, arches));
    let mut conditions = Vec::new();
    let mut is_whole = true;
    if let Some(list) = member(object, "args") {
        let list = reader.array(list, "`args`")?;
        if list.is_empty() {
            let message = "a rule cannot have an empty list of conditions".to_owned();
            let label = "omit `args` if the rule applies to all calls";
            reader.error(code::FIRECRACKER_MEMBER, list.range(), message, label);
        }
        for element in list.elements() {
            match read_condition(reader, element) {
                Some(condition) => conditions.push(condition),
                None => is_whole = false,
            }
        }
    }
    let rule = Rule {
        span: reader.span(name?.range()),
        call: call?,
        conditions,
    };
    is_whole.then_some(rule)
}

/// The name of a call that every architecture of the filter has.
fn read_call(reader: &mut Reader, value: Value<'_>, arches: &[Arch]) -> Option<Name> {
    let text = reader.string(value, "`syscall`")?;
    let span = reader.span(value.range());
    let Some(name) = Name::find(text) else {
        let message = format!("unknown system call `{text}`");
        let diagnostic = Diagnostic::error(code::FIRECRACKER_SYSCALL, message)
            .label(span, "no architecture has a call of this name");
        let near = match reader.diagnostics.len() < MAX_DIAGNOSTICS {
            true => nearest_call(text),
            false => None,
        };
        reader.push(match near {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
        return None;
    };
    let lacking = arches.iter().find(|arch| name.number(**arch).is_none());
    if let Some(arch) = lacking {
        let message = format!("{arch} has no call `{text}`");
        let diagnostic = Diagnostic::error(code::FIRECRACKER_SYSCALL, message)
            .label(span, "")
            .help("a file is for one architecture; choose another with `--arch`");
        reader.push(diagnostic);
    }
    Some(name)
}

fn read_condition(reader: &mut Reader, value: Value<'_>) -> Option<Condition> {
    let what = "a condition";
    let object = reader.object(value, what)?;
    check_members(reader, object, what, &CONDITION_MEMBERS);
    check_comment(reader, object);
    let index = reader.required(object, "index", what);
    let index = index.and_then(|value| reader.unsigned(value, "`index`", 5));
    let width = reader.required(object, "type", what).and_then(|value| {
        let name = reader.string(value, "`type`")?;
        reader.lookup("type", name, value.range(), &WIDTHS)
    });
    let op = reader.required(object, "op", what);
    let comparison = op.and_then(|value| read_operator(reader, value));
    let val = reader.required(object, "val", what)?;
    let value = reader.unsigned(val, "`val`", u64::MAX);
    Some(Condition {
        arg: ArgIndex::new(index? as u8)?,
        width: width?,
        comparison: comparison?,
        value: value?,
        value_span: reader.span(val.range()),
    })
}

/// `"eq"`, or `{"masked_eq": MASK}`.
fn read_operator(reader: &mut Reader, value: Value<'_>) -> Option<Comparison> {
    if let Some(name) = value.as_text() {
        if name == MASKED_EQ {
            let message = format!("the operator `{MASKED_EQ}` needs a mask");
            let diagnostic = Diagnostic::error(code::FIRECRACKER_NAME, message)
                .label(reader.span(value.range()), "")
                .help(format!("write {{\"{MASKED_EQ}\": 255}}"));
            reader.push(diagnostic);
            return None;
        }
        let op = reader.lookup("operator", name, value.range(), &OPERATORS)?;
        return Some(Comparison::Plain(op));
    }
    let (name, mask) = only_member(reader, value, "an operator")?;
    reader.lookup("operator", name.0, name.1, &[(MASKED_EQ, ())])?;
    let span = reader.span(mask.range());
    let mask = reader.unsigned(mask, &format!("`{MASKED_EQ}`"), u64::MAX)?;
    Some(Comparison::Masked { mask, span })
}

fn check_comment(reader: &mut Reader, object: Object<'_>) {
    if let Some(comment) = member(object, "comment") {
        reader.string(comment, "`comment`");
    }
}

fn check_members(reader: &mut Reader, object: Object<'_>, what: &str, known: &[&str]) {
    for prop in object.members() {
        if !known.contains(&prop.name) {
            reader.unknown_member(&prop, what, known);
        }
    }
}
