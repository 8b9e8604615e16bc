//! OCI profiles, and the resources of Kubernetes that are converted to such profiles.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tamis_abi::{Action, ActionKind, Nr, syscall};
use tamis_rules::{CmpOp, Operand, OperandSource, Part, Ruleset, Test};

use super::{alternatives, plain_section};

pub(super) fn oci_profile(ruleset: &Ruleset) -> Option<String> {
    let section = plain_section(ruleset)?;
    let mut entries = Vec::new();
    for rule in &section.rules {
        let (nr, _) = *rule.syscalls.intervals().first()?;
        let name = syscall::name(section.arch, Nr(nr))?;
        // An entry with the default action has no effect, so there is none for this rule.
        if rule.action == section.default {
            return None;
        }
        let alternatives = alternatives(&rule.when)?;
        // libseccomp may merge other alternatives, which changes the meaning of the profile.
        if alternatives.len() > 1 && !are_values_of_one_argument(&alternatives) {
            return None;
        }
        for tests in alternatives {
            let args: Option<Vec<Value>> = tests.into_iter().map(oci_condition).collect();
            let args = args?;
            let indices = args.iter().filter_map(|arg| arg["index"].as_u64());
            let indices: BTreeSet<u64> = indices.collect();
            if indices.len() < args.len() {
                // Several conditions on one argument would be alternatives.
                return None;
            }
            let mut entry = oci_action("action", "errnoRet", rule.action)?;
            entry["names"] = json!([name]);
            entry["args"] = Value::Array(args);
            entries.push(entry);
        }
    }
    let mut profile = oci_action("defaultAction", "defaultErrnoRet", section.default)?;
    profile["syscalls"] = Value::Array(entries);
    Some(profile.to_string())
}

fn are_values_of_one_argument(alternatives: &[Vec<&Test>]) -> bool {
    let operand = |tests: &Vec<&Test>| match tests.as_slice() {
        [
            Test::Compare {
                operand,
                op: CmpOp::Eq,
                ..
            },
        ] => Some(*operand),
        _ => None,
    };
    let first = alternatives.first().and_then(operand);
    first.is_some() && alternatives.iter().all(|tests| operand(tests) == first)
}

/// An object with an action, in the form that engines use.
fn oci_action(action_member: &str, errno_member: &str, action: Action) -> Option<Value> {
    if action.kind != ActionKind::Errno && action.data != 0 {
        return None;
    }
    let name = match action.kind {
        ActionKind::Allow => "SCMP_ACT_ALLOW",
        ActionKind::Errno => "SCMP_ACT_ERRNO",
        ActionKind::KillProcess => "SCMP_ACT_KILL_PROCESS",
        ActionKind::KillThread => "SCMP_ACT_KILL_THREAD",
        ActionKind::Log => "SCMP_ACT_LOG",
        ActionKind::Trap | ActionKind::Trace | ActionKind::Notify => return None,
    };
    let mut object = json!({action_member: name});
    if action.kind == ActionKind::Errno {
        object[errno_member] = json!(action.data);
    }
    Some(object)
}

fn oci_condition(test: &Test) -> Option<Value> {
    let index = |operand: &Operand| match (operand.source, operand.part) {
        (OperandSource::Arg(arg), Part::Full) => Some(arg.index()),
        _ => None,
    };
    match test {
        Test::Compare { operand, op, value } => {
            let op = match op {
                CmpOp::Eq => "SCMP_CMP_EQ",
                CmpOp::Ne => "SCMP_CMP_NE",
                CmpOp::Lt => "SCMP_CMP_LT",
                CmpOp::Le => "SCMP_CMP_LE",
                CmpOp::Gt => "SCMP_CMP_GT",
                CmpOp::Ge => "SCMP_CMP_GE",
            };
            Some(json!({"index": index(operand)?, "value": value, "op": op}))
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => {
            let op = "SCMP_CMP_MASKED_EQ";
            Some(json!({"index": index(operand)?, "value": mask, "valueTwo": value, "op": op}))
        }
        Test::In { .. } | Test::Between { .. } => None,
    }
}

/// The resource whose `spec` is the profile, in the block style of YAML.
pub(super) fn spo_resource(ruleset: &Ruleset) -> Option<String> {
    let text = oci_profile(ruleset)?;
    let mut profile: Value = serde_json::from_str(&text).expect("it was printed as JSON");
    // EPERM is implied, and other values cannot be expressed.
    match profile.as_object_mut()?.remove("defaultErrnoRet") {
        Some(errno) if errno != 1 => return None,
        _ => {}
    }
    for entry in profile["syscalls"].as_array()? {
        let has_zero = entry.get("errnoRet").is_some_and(|errno| *errno == 0);
        let args = entry["args"].as_array()?.iter();
        let mut values = args.flat_map(|arg| [arg.get("value"), arg.get("valueTwo")]);
        let is_large = |value: Option<&Value>| {
            let value = value.and_then(Value::as_u64);
            value.is_some_and(|value| value > i64::MAX as u64)
        };
        if has_zero || values.any(is_large) {
            return None;
        }
    }
    let resource = json!({
        "apiVersion": "security-profiles-operator.x-k8s.io/v1",
        "kind": "SeccompProfile",
        "spec": profile,
    });
    let mut yaml = String::new();
    print_yaml(&resource, 0, &mut yaml);
    Some(yaml)
}

/// A mapping or sequence, each member on a line of its own.
fn print_yaml(value: &Value, depth: usize, yaml: &mut String) {
    let indent = "  ".repeat(depth);
    let mut member = |head: &str, value: &Value| {
        yaml.push_str(&indent);
        yaml.push_str(head);
        match value {
            Value::Array(list) if list.is_empty() => yaml.push_str(" []\n"),
            Value::Array(_) | Value::Object(_) => {
                yaml.push('\n');
                print_yaml(value, depth + 1, yaml);
            }
            scalar => yaml.push_str(&format!(" {scalar}\n")),
        }
    };
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(key, value)| member(&format!("{key}:"), value)),
        Value::Array(elements) => elements.iter().for_each(|value| member("-", value)),
        _ => unreachable!("only mappings and sequences are printed"),
    }
}
