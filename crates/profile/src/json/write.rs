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
        let calls: Vec<String> = self
            .calls()
            .map(|(arch, nr, call)| format!("\n    {}", entry(arch, nr, call)))
            .collect();
        let end = if calls.is_empty() { "" } else { "\n  " };
        let calls = calls.join(",");
        format!("{{\n  \"schema\": \"{SCHEMA}\",\n  \"calls\": [{calls}{end}]\n}}\n")
    }
}

fn entry(arch: Arch, nr: Nr, call: &Call) -> String {
    let name = match syscall::name(arch, nr) {
        Some(name) => format!("\"{name}\""),
        None => nr.0.to_string(),
    };
    let mut text = format!(
        "{{\"arch\": \"{arch}\", \"call\": {name}, \"count\": {}",
        call.count
    );
    let values: Vec<String> = call
        .values
        .iter()
        .flat_map(|(arg, values)| values.iter().map(move |(value, count)| (arg, value, count)))
        .map(|(arg, value, count)| {
            format!("{{\"arg\": {arg}, \"value\": \"{value:#x}\", \"count\": {count}}}")
        })
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
    for (member, list) in [("values", values), ("samples", samples), ("errors", errors)] {
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
