//! Random `SeccompProfile` resources for Kubernetes: the schema of the security-profiles-operator, and violations of
//! it.
//!
//! A profile is drawn as a value and written as YAML in several styles, or as JSON. The schema is that of
//! `deploy/base-crds/crds/seccompprofile.yaml` in the operator's Go module, version 0.9.1: enumerations, types,
//! required members, limits. A mistake breaks one of its rules.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

const ACTIONS: [&str; 8] = [
    "SCMP_ACT_KILL",
    "SCMP_ACT_KILL_PROCESS",
    "SCMP_ACT_KILL_THREAD",
    "SCMP_ACT_TRAP",
    "SCMP_ACT_ERRNO",
    "SCMP_ACT_TRACE",
    "SCMP_ACT_ALLOW",
    "SCMP_ACT_LOG",
];
const OPS: [&str; 7] = [
    "SCMP_CMP_NE",
    "SCMP_CMP_LT",
    "SCMP_CMP_LE",
    "SCMP_CMP_EQ",
    "SCMP_CMP_GE",
    "SCMP_CMP_GT",
    "SCMP_CMP_MASKED_EQ",
];
const ARCHES: [&str; 6] = [
    "SCMP_ARCH_X86_64",
    "SCMP_ARCH_X86",
    "SCMP_ARCH_X32",
    "SCMP_ARCH_AARCH64",
    "SCMP_ARCH_ARM",
    "SCMP_ARCH_RISCV64",
];
const NAMES: [&str; 9] = [
    "read",
    "write",
    "openat",
    "mmap",
    "socket",
    "clone",
    "ioctl",
    "ptrace",
    "no_such_call",
];
const VALUES: [u64; 8] = [
    0,
    1,
    7,
    0xff,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64 - 1,
    i64::MAX as u64,
];

/// A resource.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The file.
    pub text: String,
    /// The profile that the operator writes for the runtime; `None` if the schema refuses the resource.
    pub profile: Option<String>,
}

/// A resource for a machine of x86_64.
pub fn resource(rng: &mut Rng) -> Resource {
    let spec = spec(rng);
    let mut document = json!({
        "apiVersion": "security-profiles-operator.x-k8s.io/v1beta1",
        "kind": "SeccompProfile",
        "metadata": { "name": "x" },
        "spec": spec,
    });
    let has_mistake = rng.chance(1, 4) && mistake(rng, &mut document);
    let text = match rng.chance(1, 5) {
        true => document.to_string(),
        false => {
            let mut text = String::new();
            block(rng, &document, 0, &mut text);
            text
        }
    };
    let profile = (!has_mistake).then(|| written(&spec).to_string());
    Resource { text, profile }
}

fn spec(rng: &mut Rng) -> Value {
    let mut spec = Map::new();
    spec.insert("defaultAction".to_owned(), json!(rng.choose(&ACTIONS)));
    if rng.chance(1, 2) {
        let mut arches = ARCHES.to_vec();
        let count = rng.range(1..=3);
        let arches: Vec<&str> = (0..count)
            .map(|_| arches.remove(rng.index(arches.len())))
            .collect();
        spec.insert("architectures".to_owned(), json!(arches));
    }
    let entries: Vec<Value> = (0..rng.range(1..=4)).map(|_| entry(rng)).collect();
    spec.insert("syscalls".to_owned(), json!(entries));
    if rng.chance(1, 8) {
        spec.insert("disabled".to_owned(), json!(false));
    }
    Value::Object(spec)
}

fn entry(rng: &mut Rng) -> Value {
    let names: Vec<&str> = (0..rng.range(1..=3)).map(|_| *rng.choose(&NAMES)).collect();
    let mut entry = json!({ "names": names, "action": rng.choose(&ACTIONS) });
    if rng.chance(1, 4) {
        entry["errnoRet"] = json!(rng.range(0..=133));
    }
    if rng.chance(1, 2) {
        let args: Vec<Value> = (0..rng.range(1..=2))
            .map(|_| {
                let mut arg = json!({ "index": rng.range(0..=5), "op": rng.choose(&OPS) });
                for key in ["value", "valueTwo"] {
                    if rng.chance(4, 5) {
                        arg[key] = json!(rng.choose(&VALUES));
                    }
                }
                arg
            })
            .collect();
        entry["args"] = json!(args);
    }
    entry
}

/// The profile as the operator writes it: without its own members, and without numbers that are zero.
fn written(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(members) = spec.as_object_mut() {
        members.remove("disabled");
    }
    for entry in spec["syscalls"].as_array_mut().into_iter().flatten() {
        if entry["errnoRet"] == 0
            && let Some(members) = entry.as_object_mut()
        {
            members.remove("errnoRet");
        }
        for arg in entry["args"].as_array_mut().into_iter().flatten() {
            for key in ["value", "valueTwo"] {
                arg[key] = json!(arg[key].as_u64().unwrap_or_default());
            }
        }
    }
    spec
}

/// A place, a member there, and its invalid value; `null` removes it.
type Change = (&'static str, &'static str, Value);

/// Breaks a rule of the schema. `false` if the resource lacks the place.
fn mistake(rng: &mut Rng, document: &mut Value) -> bool {
    let mut changes = mistakes();
    changes.extend(mistakes_of_entries());
    let (place, key, value) = changes.swap_remove(rng.index(changes.len()));
    let Some(Value::Object(members)) = document.pointer_mut(place) else {
        return false;
    };
    match value {
        Value::Null => drop(members.remove(key)),
        value => drop(members.insert(key.to_owned(), value)),
    }
    true
}

/// Violations outside of entries.
fn mistakes() -> Vec<Change> {
    vec![
        ("", "spec", Value::Null),
        ("", "spec", json!([])),
        ("", "kind", json!(1)),
        (
            "",
            "apiVersion",
            json!("security-profiles-operator.x-k8s.io/v0"),
        ),
        ("/spec", "defaultAction", Value::Null),
        ("/spec", "defaultAction", json!("SCMP_ACT_FOO")),
        ("/spec", "defaultAction", json!("scmp_act_allow")),
        ("/spec", "defaultAction", json!(1)),
        ("/spec", "architectures", json!("SCMP_ARCH_X86")),
        ("/spec", "architectures", json!(["SCMP_ARCH_FOO"])),
        ("/spec", "architectures", json!(["x86_64"])),
        ("/spec", "architectures", json!([1])),
        ("/spec", "disabled", json!("maybe")),
        ("/spec", "disabled", json!(1)),
        ("/spec", "baseProfileName", json!(1)),
        ("/spec", "listenerPath", json!(1)),
        ("/spec", "listenerMetadata", json!(["x"])),
        ("/spec", "flags", json!("SECCOMP_FILTER_FLAG_LOG")),
        ("/spec", "flags", json!(["SECCOMP_FILTER_FLAG_FOO"])),
        ("/spec", "flags", json!([1])),
        ("/spec", "syscalls", json!({})),
        ("/spec", "syscalls", json!([1])),
        ("/spec", "syscalls", json!(["read"])),
    ]
}

/// Violations in the first entry.
fn mistakes_of_entries() -> Vec<Change> {
    const ENTRY: &str = "/spec/syscalls/0";
    let arg = json!({ "index": 0, "op": "SCMP_CMP_EQ", "value": 1 });
    let with = |key: &str, value: Value| {
        let mut arg = arg.clone();
        arg[key] = value;
        json!([arg])
    };
    let without = |key: &str| {
        let mut arg = arg.clone();
        arg.as_object_mut().expect("an object").remove(key);
        json!([arg])
    };
    vec![
        (ENTRY, "names", Value::Null),
        (ENTRY, "names", json!("read")),
        (ENTRY, "names", json!([1])),
        (ENTRY, "names", json!([true])),
        (ENTRY, "action", Value::Null),
        (ENTRY, "action", json!("SCMP_ACT_FOO")),
        (ENTRY, "action", json!(["SCMP_ACT_ALLOW"])),
        (ENTRY, "errnoRet", json!("1")),
        (ENTRY, "errnoRet", json!(1.5)),
        (ENTRY, "args", json!({})),
        (ENTRY, "args", json!([1])),
        (ENTRY, "args", json!(vec![arg.clone(); 7])),
        (ENTRY, "args", without("index")),
        (ENTRY, "args", without("op")),
        (ENTRY, "args", with("index", json!(-1))),
        (ENTRY, "args", with("index", json!("0"))),
        (ENTRY, "args", with("index", json!(0.5))),
        (ENTRY, "args", with("op", json!("=="))),
        (ENTRY, "args", with("op", json!("SCMP_CMP_FOO"))),
        (ENTRY, "args", with("value", json!(-1))),
        (ENTRY, "args", with("value", json!("1"))),
        (ENTRY, "args", with("value", json!(1.5))),
        (ENTRY, "args", with("value", json!(1_u64 << 63))),
        (ENTRY, "args", with("valueTwo", json!(u64::MAX))),
        (ENTRY, "args", with("valueTwo", json!([1]))),
    ]
}

/// Writes a value as YAML behind `indent` blanks, in a line of its own for each member.
fn block(rng: &mut Rng, value: &Value, indent: usize, text: &mut String) {
    let Value::Object(members) = value else {
        return flow(rng, value, text);
    };
    for (key, value) in members {
        if rng.chance(1, 15) {
            text.push_str("# a comment: [\n");
        }
        text.push_str(&format!("{:indent$}{key}:", ""));
        member(rng, value, indent, text);
    }
}

fn member(rng: &mut Rng, value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() && rng.chance(9, 10) => {
            text.push('\n');
            block(rng, value, indent + 2, text);
        }
        Value::Array(items) if !items.is_empty() && rng.chance(2, 3) => {
            text.push('\n');
            let inner = indent + rng.index(2) * 2;
            for item in items {
                let mut lines = String::new();
                block(rng, item, inner + 2, &mut lines);
                let lines = lines.trim_start_matches(' ');
                let lines = lines.strip_prefix("# a comment: [\n").unwrap_or(lines);
                text.push_str(&format!("{:inner$}- {}", "", lines.trim_start_matches(' ')));
                if !lines.ends_with('\n') {
                    text.push('\n');
                }
            }
        }
        value => {
            text.push(' ');
            flow(rng, value, text);
            text.push_str(rng.choose::<&str>(&["\n", "\n", "\n", " # here\n"]));
        }
    }
}

/// Writes a value in one line.
fn flow(rng: &mut Rng, value: &Value, text: &mut String) {
    match value {
        Value::String(word) => {
            let is_plain = word.starts_with(|c: char| c.is_ascii_alphabetic())
                && !["true", "false", "null", "maybe"].contains(&word.as_str());
            text.push_str(&match rng.range(0..=3) {
                0..=1 if is_plain => word.clone(),
                0..=2 => format!("\"{word}\""),
                _ => format!("'{word}'"),
            });
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                flow(rng, item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (index, (key, item)) in members.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                text.push_str(&format!("{key}: "));
                flow(rng, item, text);
            }
            text.push('}');
        }
        Value::Number(number) => {
            text.push_str(&match (number.as_u64(), rng.chance(1, 150)) {
                (Some(value), true) => format!("{value:#x}"),
                _ => number.to_string(),
            });
        }
        other => text.push_str(&other.to_string()),
    }
}
