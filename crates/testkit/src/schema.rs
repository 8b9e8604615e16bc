//! Documents of commands against their schemas: the part of JSON Schema that the schemas use, and no more.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value};

/// What is wrong with a value, as paths and reasons; nothing if it fits.
fn mismatches(value: &Value, schema: &Value, path: &str, folder: &Path) -> Vec<String> {
    let rules = schema.as_object().expect("a schema is an object");
    let mut found = Vec::new();
    for (rule, wanted) in rules {
        match rule.as_str() {
            "$schema" | "title" | "description" => {}
            "$ref" => found.extend(mismatches(value, &referred(wanted, folder), path, folder)),
            "type" if has_type(value, wanted) => {}
            "const" if value == wanted => {}
            "enum"
                if wanted
                    .as_array()
                    .is_some_and(|choices| choices.contains(value)) => {}
            "properties" | "required" | "additionalProperties" => {}
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(mismatches(
                        item,
                        wanted,
                        &format!("{path}[{index}]"),
                        folder,
                    ));
                }
            }
            _ => found.push(format!("{path}: {rule} {wanted} against {value}")),
        }
    }
    if let (Some(members), Some(properties)) = (value.as_object(), rules.get("properties")) {
        let properties = properties.as_object().expect("properties are an object");
        found.extend(member_mismatches(
            members,
            properties,
            &rules["required"],
            path,
            folder,
        ));
    }
    found
}

/// What a reference of a schema to a member of another leads to.
fn referred(reference: &Value, folder: &Path) -> Value {
    let reference = reference.as_str().expect("a reference is a string");
    let (file, pointer) = reference.split_once('#').expect("it names a member");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    schema.pointer(pointer).expect("the member exists").clone()
}

fn member_mismatches(
    members: &Map<String, Value>,
    properties: &Map<String, Value>,
    required: &Value,
    path: &str,
    folder: &Path,
) -> Vec<String> {
    let mut found = Vec::new();
    for (name, member) in members {
        match properties.get(name) {
            Some(schema) => found.extend(mismatches(
                member,
                schema,
                &format!("{path}.{name}"),
                folder,
            )),
            None => found.push(format!("{path}: no property {name}")),
        }
    }
    for name in required
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !members.contains_key(name) {
            found.push(format!("{path}: {name} is missing"));
        }
    }
    found
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    let one = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    };
    match wanted {
        Value::String(name) => one(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(one),
        _ => false,
    }
}

/// The file of a schema: `profile.1.json` for `tamis-profile/1`.
pub fn file(schema: &str) -> String {
    let name = schema
        .trim_start_matches("tamis")
        .trim_start_matches(['.', '-']);
    format!("{}.json", name.replace('/', "."))
}

/// Runs a command that prints a document, checks it against the schema that it names, which is in this folder, and returns the
/// schema's name.
///
/// # Panics
/// If the document doesn't fit.
pub fn check(program: &Path, folder: &Path, line: &str) -> String {
    let mut command = Command::new(program);
    let output = command.args(line.split_whitespace()).output().unwrap();
    // Standard output of these belongs to the command that it runs.
    let text = match line.split(' ').next() {
        Some("run" | "record" | "sandbox" | "inject" | "trace") => output.stderr,
        _ => output.stdout,
    };
    // Events are a document in each line.
    let has_events = line.starts_with("trace ") || line.contains(" --json-lines ");
    let documents: Vec<&[u8]> = match has_events {
        true => text.trim_ascii_end().split(|byte| *byte == b'\n').collect(),
        false => vec![&text],
    };
    let mut name = String::new();
    for text in documents {
        let document: Value = serde_json::from_slice(text)
            .unwrap_or_else(|error| panic!("{line}: {error}: {}", String::from_utf8_lossy(text)));
        name = document["schema"]
            .as_str()
            .expect("a document names its schema")
            .to_owned();
        let path = folder.join(file(&name));
        let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let found = mismatches(&document, &schema, "$", folder);
        assert!(found.is_empty(), "{line}: {found:#?}");
        let start = text
            .trim_ascii_start()
            .strip_prefix(b"{")
            .unwrap_or_default();
        assert!(
            start.trim_ascii_start().starts_with(b"\"schema\""),
            "the schema is the first member"
        );
    }
    name
}
