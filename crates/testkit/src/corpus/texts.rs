//! The policies of the corpus as texts for other compilers.

use std::collections::BTreeMap;

use serde_json::Value;
use tamis_abi::{Action, ActionKind, Arch, Nr, syscall};

/// A policy of the corpus as the text given to kafel. A 32-bit condition uses a mask, because arguments named by a
/// rule have 64 bits.
///
/// # Panics
/// If the policy has features that were not used with kafel.
pub fn kafel(name: &str) -> String {
    let policy: Value = serde_json::from_str(&super::text(name)).expect("a policy is JSON");
    let action = |value: &Value| {
        let action = Action::from_ret(value.as_u64().expect("a number") as u32);
        match action.kind {
            ActionKind::Allow => "ALLOW".to_owned(),
            ActionKind::Errno => format!("ERRNO({})", action.data),
            ActionKind::Trap => format!("TRAP({})", action.data),
            other => panic!("kafel was given no {other:?}"),
        }
    };
    let mut text = format!("DEFAULT {}\n", action(&policy["default"]));
    for rule in policy["rules"].as_array().expect("a list") {
        let conditions = rule["conds"].as_array().expect("a list").iter();
        let conditions: Vec<String> = conditions.map(kafel_condition).collect();
        let nr = &rule["nr"];
        let action = action(&rule["action"]);
        let conditions = conditions.join(" && ");
        text.push_str(&format!(
            "{action} {{ SYSCALL[{nr}](a0, a1, a2, a3, a4, a5) {{ {conditions} }} }}\n"
        ));
    }
    text
}

fn kafel_condition(condition: &Value) -> String {
    let (arg, value) = (&condition["arg"], &condition["val"]);
    let is_narrow = condition["width"] == 32;
    let low = u64::from(u32::MAX);
    let op = match condition["op"].as_str().expect("an operator") {
        "eq" | "masked_eq" => "==",
        "lt" => "<",
        "gt" => ">",
        other => panic!("kafel was given no {other}"),
    };
    match (condition["mask"].as_u64(), is_narrow) {
        (Some(mask), true) => format!("(a{arg} & {}) {op} {value}", mask & low),
        (Some(mask), false) => format!("(a{arg} & {mask}) {op} {value}"),
        (None, true) => format!("(a{arg} & {low}) {op} {value}"),
        (None, false) => format!("a{arg} {op} {value}"),
    }
}

/// A policy of the corpus as the text given to minijail, with one line per call.
///
/// # Panics
/// If the policy has features that were not used with minijail.
pub fn minijail(name: &str) -> String {
    let policy: Value = serde_json::from_str(&super::text(name)).expect("a policy is JSON");
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for rule in policy["rules"].as_array().expect("a list") {
        let action = Action::from_ret(rule["action"].as_u64().expect("a number") as u32);
        let conditions = rule["conds"].as_array().expect("a list").iter();
        let conditions: Vec<String> = conditions.map(minijail_condition).collect();
        let filter = match (action.kind, conditions.as_slice()) {
            (ActionKind::Allow, []) => "1".to_owned(),
            (ActionKind::Allow, conditions) => conditions.join(" && "),
            (ActionKind::Errno, []) => format!("return {}", action.data),
            other => panic!("minijail was given no {other:?}"),
        };
        let call = rule["name"].as_str().expect("a name");
        lines.entry(call).or_default().push(filter);
    }
    let lines = lines.into_iter();
    let lines = lines.map(|(call, filters)| format!("{call}: {}\n", filters.join(" || ")));
    lines.collect()
}

/// A condition; minijail always compares 64 bits.
fn minijail_condition(condition: &Value) -> String {
    let arg = &condition["arg"];
    let value = &condition["val"];
    let op = match condition["op"].as_str().expect("an operator") {
        "eq" => "==",
        "ne" => "!=",
        "lt" => "<",
        "le" => "<=",
        "gt" => ">",
        "ge" => ">=",
        "masked_eq" => {
            assert_eq!(value.as_u64(), Some(0), "`in` can say no other");
            return format!("arg{arg} in ~{}", condition["mask"]);
        }
        other => panic!("minijail was given no {other}"),
    };
    format!("arg{arg} {op} {value}")
}

/// The names of the first 306 calls of x86_64.
fn first_306() -> impl Iterator<Item = &'static str> {
    (0..306).map(|nr| syscall::name(Arch::X86_64, Nr(nr)).expect("all are assigned"))
}

/// The kafel policy that allows the first 306 calls and denies others with `EPERM`.
pub fn kafel_306() -> String {
    let kernel_name = |name| match name {
        "stat" => "newstat",
        "fstat" => "newfstat",
        "lstat" => "newlstat",
        "sendfile" => "sendfile64",
        "uname" => "newuname",
        "_sysctl" => "sysctl",
        "umount2" => "umount",
        name => name,
    };
    let allowed: Vec<&str> = first_306().map(kernel_name).collect();
    format!("ALLOW {{ {} }} DEFAULT ERRNO(1)", allowed.join(", "))
}

/// The minijail policy that allows them; the action for other calls is not part of it.
pub fn minijail_306() -> String {
    first_306().map(|name| format!("{name}: 1\n")).collect()
}
