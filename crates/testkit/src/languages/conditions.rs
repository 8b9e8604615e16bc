//! Languages that test arguments one by one: Firecracker's filters, minijail's and kafel's policies, systemd's units.

use serde_json::{Value, json};
use tamis_abi::{Action, ActionKind, Nr, syscall};
use tamis_rules::{CmpOp, Operand, OperandSource, Part, Predicate, Rule, Ruleset, Section, Test};

use super::{alternatives, plain_section};

/// The index of the argument, for an operand that is a whole argument.
fn argument(operand: &Operand) -> Option<usize> {
    match (operand.source, operand.part) {
        (OperandSource::Arg(arg), Part::Full) => Some(arg.index()),
        _ => None,
    }
}

fn call_name(section: &Section, rule: &Rule) -> Option<&'static str> {
    let (nr, _) = *rule.syscalls.intervals().first()?;
    syscall::name(section.arch, Nr(nr))
}

/// An action as a language's word, with another form for an errno.
fn word(
    action: Action,
    words: &[(ActionKind, &str)],
    errno: impl Fn(u16) -> String,
) -> Option<String> {
    if action.kind == ActionKind::Errno {
        return Some(errno(action.data));
    }
    let mut words = words.iter();
    let (_, word) = words.find(|(kind, _)| *kind == action.kind && action.data == 0)?;
    Some((*word).to_owned())
}

pub(super) fn firecracker(ruleset: &Ruleset) -> Option<String> {
    let section = plain_section(ruleset)?;
    let action = |action: Action| match action.kind {
        ActionKind::Errno => Some(json!({"errno": action.data})),
        _ => {
            let words = [
                (ActionKind::Allow, "allow"),
                (ActionKind::KillProcess, "kill_process"),
                (ActionKind::KillThread, "kill_thread"),
                (ActionKind::Log, "log"),
                (ActionKind::Trap, "trap"),
            ];
            word(action, &words, |_| String::new()).map(Value::String)
        }
    };
    let matched = section
        .rules
        .first()
        .map_or(Action::ALLOW, |rule| rule.action);
    if matched == section.default {
        return None;
    }
    let mut rules = Vec::new();
    for rule in &section.rules {
        let name = call_name(section, rule)?;
        for tests in alternatives(&rule.when)? {
            let args: Option<Vec<Value>> = tests.into_iter().map(firecracker_condition).collect();
            let args = args?;
            rules.push(match args.is_empty() {
                true => json!({"syscall": name}),
                false => json!({"syscall": name, "args": args}),
            });
        }
    }
    let filter = json!({
        "mismatch_action": action(section.default)?,
        "match_action": action(matched)?,
        "filter": rules,
    });
    Some(json!({ "main": filter }).to_string())
}

fn firecracker_condition(test: &Test) -> Option<Value> {
    let (operand, op, value) = match test {
        Test::Compare { operand, op, value } => {
            let op = match op {
                CmpOp::Eq => "eq",
                CmpOp::Ne => "ne",
                CmpOp::Lt => "lt",
                CmpOp::Le => "le",
                CmpOp::Gt => "gt",
                CmpOp::Ge => "ge",
            };
            (operand, json!(op), value)
        }
        // A mask without bits is rejected, because such a condition always holds.
        Test::Masked {
            operand,
            mask,
            value,
        } if *mask != 0 && value & !mask == 0 => (operand, json!({"masked_eq": mask}), value),
        Test::Masked { .. } | Test::In { .. } | Test::Between { .. } => return None,
    };
    Some(json!({"index": argument(operand)?, "type": "qword", "op": op, "val": value}))
}

/// Each rule states its action; calls of other architectures than x86_64 have the same rules.
pub(super) fn lxc(ruleset: &Ruleset) -> Option<String> {
    let section = plain_section(ruleset)?;
    let action = |action| {
        let words = [
            (ActionKind::Allow, "allow"),
            (ActionKind::KillThread, "kill"),
            (ActionKind::Notify, "notify"),
            (ActionKind::Trap, "trap"),
        ];
        word(action, &words, |errno| format!("errno {errno}"))
    };
    let mut text = format!("2\nallowlist {}\n", action(section.default)?);
    for rule in &section.rules {
        let name = call_name(section, rule)?;
        let action = action(rule.action)?;
        for tests in alternatives(&rule.when)? {
            let conditions: Option<String> = tests.into_iter().map(lxc_condition).collect();
            text += &format!("{name} {action} {}\n", conditions?);
        }
    }
    Some(text)
}

fn lxc_condition(test: &Test) -> Option<String> {
    let (operand, op, value, mask) = match test {
        Test::Compare { operand, op, value } => (operand, op.symbol(), value, 0),
        Test::Masked {
            operand,
            mask,
            value,
        } if value & !mask == 0 => (operand, "&=", value, *mask),
        Test::Masked { .. } | Test::In { .. } | Test::Between { .. } => return None,
    };
    Some(format!("[{},{value},{op},{mask}]", argument(operand)?))
}

/// Calls with the default EPERM, and values of 32 bits.
pub(super) fn snap(ruleset: &Ruleset) -> Option<String> {
    let section = plain_section(ruleset)?;
    if section.default != Action::errno(1) {
        return None;
    }
    let mut text = String::new();
    for rule in &section.rules {
        let name = call_name(section, rule)?;
        if rule.action != Action::ALLOW {
            return None;
        }
        for tests in alternatives(&rule.when)? {
            let mut words = ["-"; 6].map(str::to_owned);
            for test in tests {
                let Test::Compare { operand, op, value } = test else {
                    return None;
                };
                let value = u32::try_from(*value).ok()?;
                let sign = match op {
                    CmpOp::Eq => "",
                    CmpOp::Ne => "!",
                    other => other.symbol(),
                };
                words[argument(operand)?] = format!("{sign}{value}");
            }
            text += &format!("{name} {}\n", words.join(" "));
        }
    }
    Some(text)
}

/// The first line contains the default action, which the compile tool gets as an option.
pub(super) fn minijail(ruleset: &Ruleset) -> Option<String> {
    let section = plain_section(ruleset)?;
    let action = |action| {
        let words = [
            (ActionKind::Allow, "allow"),
            (ActionKind::KillProcess, "kill-process"),
            (ActionKind::KillThread, "kill-thread"),
            (ActionKind::Log, "log"),
            (ActionKind::Trap, "trap"),
            (ActionKind::Trace, "trace"),
            (ActionKind::Notify, "user-notify"),
        ];
        word(action, &words, |errno| format!("return {errno}"))
    };
    let mut text = format!("# {}\n", action(section.default)?);
    for rule in &section.rules {
        let name = call_name(section, rule)?;
        let action = action(rule.action)?;
        let alternatives: Option<Vec<String>> = alternatives(&rule.when)?
            .into_iter()
            .map(|tests| joined(tests, minijail_condition, " && "))
            .collect();
        let alternatives = alternatives?;
        text.push_str(&match alternatives.iter().any(String::is_empty) {
            true => format!("{name}: {action}\n"),
            false => format!("{name}: {}; {action}\n", alternatives.join(" || ")),
        });
    }
    Some(text)
}

/// The default action in the first line of a text by [`minijail`].
pub(super) fn minijail_default(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix("# ")
}

fn minijail_condition(test: &Test) -> Option<String> {
    match test {
        Test::Compare { operand, op, value } => {
            Some(format!("arg{} {} {value}", argument(operand)?, op.symbol()))
        }
        Test::Masked {
            operand,
            mask,
            value: 0,
        } => Some(format!("arg{} in ~{mask}", argument(operand)?)),
        Test::Masked {
            operand,
            mask,
            value,
        } if mask == value && mask.is_power_of_two() => {
            Some(format!("arg{} & {mask}", argument(operand)?))
        }
        Test::Masked { .. } | Test::In { .. } | Test::Between { .. } => None,
    }
}

fn joined(
    tests: Vec<&Test>,
    condition: fn(&Test) -> Option<String>,
    separator: &str,
) -> Option<String> {
    let conditions: Option<Vec<String>> = tests.into_iter().map(condition).collect();
    Some(conditions?.join(separator))
}

/// The policy names its arguments itself, so that all 64 bits are compared.
pub(super) fn kafel(ruleset: &Ruleset) -> Option<String> {
    let section = plain_section(ruleset)?;
    let action = |action| {
        let words = [
            (ActionKind::Allow, "ALLOW"),
            (ActionKind::KillProcess, "KILL_PROCESS"),
            (ActionKind::KillThread, "KILL_THREAD"),
            (ActionKind::Log, "LOG"),
        ];
        word(action, &words, |errno| format!("ERRNO({errno})"))
    };
    let mut text = format!("DEFAULT {}\n", action(section.default)?);
    for rule in &section.rules {
        let (nr, _) = *rule.syscalls.intervals().first()?;
        let alternatives: Option<Vec<String>> = alternatives(&rule.when)?
            .into_iter()
            .map(|tests| joined(tests, kafel_condition, " && "))
            .collect();
        let alternatives = alternatives?;
        let action = action(rule.action)?;
        text.push_str(&match alternatives.iter().any(String::is_empty) {
            true => format!("{action} {{ SYSCALL[{nr}] }}\n"),
            false => {
                let condition = alternatives.join(" || ");
                format!("{action} {{ SYSCALL[{nr}](a0, a1, a2, a3, a4, a5) {{ {condition} }} }}\n")
            }
        });
    }
    Some(text)
}

fn kafel_condition(test: &Test) -> Option<String> {
    match test {
        Test::Compare { operand, op, value } => {
            Some(format!("a{} {} {value}", argument(operand)?, op.symbol()))
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => Some(format!("(a{} & {mask}) == {value}", argument(operand)?)),
        Test::In { .. } | Test::Between { .. } => None,
    }
}

/// A deny list: an allow list would always include `@default`.
pub(super) fn systemd(ruleset: &Ruleset) -> Option<String> {
    let section = plain_section(ruleset)?;
    if section.default != Action::ALLOW {
        return None;
    }
    let mut text = "[Service]\nSystemCallFilter=~\n".to_owned();
    for rule in &section.rules {
        let name = call_name(section, rule)?;
        let is_unconditional = alternatives(&rule.when)?.iter().any(Vec::is_empty);
        let answer = match rule.action {
            Action::KILL_PROCESS => "kill".to_owned(),
            Action {
                kind: ActionKind::Errno,
                data: errno @ 1..=4095,
            } => errno.to_string(),
            _ => return None,
        };
        match &rule.when {
            Predicate::False => {}
            _ if is_unconditional => text.push_str(&format!("SystemCallFilter=~{name}:{answer}\n")),
            _ => return None,
        }
    }
    Some(text)
}
