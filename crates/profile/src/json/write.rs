//! From a profile to JSON: one call per line, so that two profiles can be compared line by line.

use std::fmt::Write;

use tamis_abi::{Arch, Nr, syscall};

use super::SCHEMA;
use crate::{Call, Profile};

impl Profile {
    /// The profile as JSON for [`read`](crate::read); the schema is `docs/schemas/profile.1.json`. The same profile
    /// always gives the same text.
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

    /// The same with one more member behind its own, which readers pass over; its value is JSON.
    pub fn to_json_with(&self, name: &str, value: &str) -> String {
        self.document(&format!(",\n  {}: {value}", quoted(name)))
    }

    /// The document with these members, each behind a comma, behind its own.
    fn document(&self, others: &str) -> String {
        let calls: Vec<String> = self
            .calls()
            .map(|(arch, nr, call)| format!("\n    {}", entry(self, arch, nr, call)))
            .collect();
        let end = if calls.is_empty() { "" } else { "\n  " };
        let (runs, calls) = (self.runs_json(), calls.join(","));
        format!("{{\n  \"schema\": \"{SCHEMA}\",\n{runs}  \"calls\": [{calls}{end}]{others}\n}}\n")
    }

    /// The members about runs.
    fn runs_json(&self) -> String {
        let runs = self.runs();
        let mut text = String::new();
        if !runs.named.is_empty() {
            let named = runs.named.iter().map(|(id, origin)| {
                let mut line = format!("\n    {{\"id\": {}", quoted(id.as_str()));
                for (member, name) in [("machine", origin.machine()), ("program", origin.program())]
                {
                    if !name.is_empty() {
                        let _ = write!(line, ", \"{member}\": {}", quoted(name));
                    }
                }
                line + "}"
            });
            let named: Vec<String> = named.collect();
            let _ = writeln!(text, "  \"runs\": [{}\n  ],", named.join(","));
        }
        if runs.unnamed > 0 {
            let _ = writeln!(text, "  \"unnamed_runs\": {},", runs.unnamed);
        }
        text
    }
}

/// Text without control characters as a string of JSON.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn entry(profile: &Profile, arch: Arch, nr: Nr, call: &Call) -> String {
    let coverage = (profile.run_count() > 1).then_some(&call.coverage);
    let name = match syscall::name(arch, nr) {
        Some(name) => format!("\"{name}\""),
        None => nr.0.to_string(),
    };
    let mut text = format!(
        "{{\"arch\": \"{arch}\", \"call\": {name}, \"count\": {}",
        call.count
    );
    if let Some(coverage) = coverage {
        let _ = write!(text, ", \"runs\": {}", coverage.runs);
    }
    let values: Vec<String> = call
        .values
        .iter()
        .flat_map(|(arg, values)| values.iter().map(move |(value, count)| (arg, value, count)))
        .map(|(arg, value, count)| {
            let runs = coverage.map(|coverage| {
                let runs = coverage.values.get(&(*arg, *value)).copied();
                format!(", \"runs\": {}", runs.unwrap_or_default())
            });
            let runs = runs.unwrap_or_default();
            format!("{{\"arg\": {arg}, \"value\": \"{value:#x}\", \"count\": {count}{runs}}}")
        })
        .collect();
    let lost = call.lost_values.iter();
    let lost: Vec<String> = lost
        .map(|(arg, count)| format!("{{\"arg\": {arg}, \"count\": {count}}}"))
        .collect();
    let samples: Vec<String> = call
        .samples
        .iter()
        .map(|(args, count)| {
            let args = args.map(|value| format!("\"{value:#x}\"")).join(", ");
            format!("{{\"args\": [{args}], \"count\": {count}}}")
        })
        .collect();
    let errors: Vec<String> = call
        .errors
        .iter()
        .map(|(errno, count)| format!("{{\"errno\": {errno}, \"count\": {count}}}"))
        .collect();
    for (member, list) in [
        ("values", values),
        ("lost_values", lost),
        ("samples", samples),
        ("errors", errors),
    ] {
        if !list.is_empty() {
            let _ = write!(text, ", \"{member}\": [{}]", list.join(", "));
        }
    }
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
    text + "}"
}
