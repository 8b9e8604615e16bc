//! From a profile to JSON: one call per line, so that two profiles can be compared line by line.

use std::fmt::Write;

use tamis_abi::{Arch, Nr, syscall};

use super::SCHEMA;
use crate::{Call, Profile};

impl Profile {
    /// The profile as JSON for [`read`](crate::read); the schema is `docs/schemas/profile.1.json`. Equal profiles give
    /// equal texts.
    ///
    /// ```
    /// use tamis_abi::{Arch, Nr};
    /// let mut profile = tamis_profile::Profile::default();
    /// profile.call_mut(Arch::X86_64, Nr(0)).count = 3;
    /// let line = r#"    {"arch": "x86_64", "call": "read", "count": 3}"#;
    /// assert!(profile.to_json().contains(line));
    /// ```
    pub fn to_json(&self) -> String {
        self.document("")
    }

    /// The same with an additional last member, which readers ignore; its value is JSON.
    pub fn to_json_with(&self, name: &str, value: &str) -> String {
        self.document(&format!(",\n  {}: {value}", quoted(name)))
    }

    /// The document with additional last members, each with a leading comma.
    fn document(&self, others: &str) -> String {
        let mut text = format!("{{\n  \"schema\": \"{SCHEMA}\",\n");
        self.write_runs(&mut text);
        text.push_str("  \"calls\": [");
        let mut separator = "\n    ";
        for (arch, nr, call) in self.calls() {
            text.push_str(separator);
            write_entry(&mut text, self, (arch, nr), call);
            separator = ",\n    ";
        }
        if !self.is_empty() {
            text.push_str("\n  ");
        }
        text.push(']');
        text.push_str(others);
        text.push_str("\n}\n");
        text
    }

    /// Writes the members about runs.
    fn write_runs(&self, text: &mut String) {
        let runs = self.runs();
        let named = runs.named.iter().map(|(id, origin)| {
            let mut line = format!("\n    {{\"id\": {}", quoted(id.as_str()));
            for (member, name) in [("machine", origin.machine()), ("program", origin.program())] {
                if !name.is_empty() {
                    let _ = write!(line, ", \"{member}\": {}", quoted(name));
                }
            }
            line + "}"
        });
        if !runs.named.is_empty() {
            text.push_str("  \"runs\": [");
            write_list(text, ",", named);
            text.push_str("\n  ],\n");
        }
        if runs.unnamed > 0 {
            let _ = writeln!(text, "  \"unnamed_runs\": {},", runs.unnamed);
        }
    }
}

/// Text without control characters as a string of JSON.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Writes elements with a separator between them.
fn write_list(text: &mut String, separator: &str, elements: impl Iterator<Item = String>) {
    for (index, element) in elements.enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&element);
    }
}

/// Writes a member with a list, unless the list is empty.
fn write_member(text: &mut String, member: &str, elements: impl Iterator<Item = String>) {
    let mut elements = elements.peekable();
    if elements.peek().is_some() {
        let _ = write!(text, ", \"{member}\": [");
        write_list(text, ", ", elements);
        text.push(']');
    }
}

fn write_entry(text: &mut String, profile: &Profile, (arch, nr): (Arch, Nr), call: &Call) {
    let coverage = (profile.run_count() > 1).then_some(&call.coverage);
    let name = match syscall::name(arch, nr) {
        Some(name) => format!("\"{name}\""),
        None => nr.0.to_string(),
    };
    let _ = write!(
        text,
        "{{\"arch\": \"{arch}\", \"call\": {name}, \"count\": {}",
        call.count
    );
    if let Some(coverage) = coverage {
        let _ = write!(text, ", \"runs\": {}", coverage.runs);
    }
    let values = call.values.iter();
    let values = values
        .flat_map(|(arg, values)| values.iter().map(move |(value, count)| (arg, value, count)));
    let values = values.map(|(arg, value, count)| {
        let runs = coverage.map(|coverage| {
            let runs = coverage.values.get(&(*arg, *value)).copied();
            format!(", \"runs\": {}", runs.unwrap_or_default())
        });
        let runs = runs.unwrap_or_default();
        format!("{{\"arg\": {arg}, \"value\": \"{value:#x}\", \"count\": {count}{runs}}}")
    });
    let lost = call.lost_values.iter();
    let lost = lost.map(|(arg, count)| format!("{{\"arg\": {arg}, \"count\": {count}}}"));
    let samples = call.samples.iter().map(|(args, count)| {
        let args = args.map(|value| format!("\"{value:#x}\"")).join(", ");
        format!("{{\"args\": [{args}], \"count\": {count}}}")
    });
    let errors = call.errors.iter();
    let errors = errors.map(|(errno, count)| format!("{{\"errno\": {errno}, \"count\": {count}}}"));
    write_member(text, "values", values);
    write_member(text, "lost_values", lost);
    write_member(text, "samples", samples);
    write_member(text, "errors", errors);
    if call.denied > 0 {
        let _ = write!(text, ", \"denied\": {}", call.denied);
    }
    if let Some(times) = &call.times {
        let buckets = times.buckets.map(|count| count.to_string()).join(", ");
        let _ = write!(
            text,
            ", \"times\": {{\"total_ns\": {}, \"min_ns\": {}, \"max_ns\": {}, \"buckets\": [{buckets}]}}",
            times.total_ns, times.min_ns, times.max_ns
        );
    }
    text.push('}');
}
