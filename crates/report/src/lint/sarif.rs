//! Findings as a SARIF 2.1.0 log, which code hosts show beside the source lines.
//!
//! The log has the members that the specification requires and those that viewers use: rules with their explanations,
//! results with a level, a message and a place. A place in a program is a range of bytes. Prior art: OASIS, "Static
//! Analysis Results Interchange Format (SARIF) Version 2.1.0".

use serde_json::{Value, json};
use tamis_bpf::Insn;
use tamis_diag::{Code, Severity};

use super::{FindingEntry, InputFindings, LintReport};

/// The log of one run.
pub fn log(report: &LintReport) -> Value {
    let inputs = report.inputs.iter();
    let mut codes: Vec<Code> = inputs
        .clone()
        .flat_map(|input| &input.findings)
        .map(|finding| finding.diagnostic.code)
        .collect();
    codes.sort();
    codes.dedup();
    let results: Vec<Value> = inputs
        .flat_map(|input| input.findings.iter().map(move |finding| (input, finding)))
        .map(|(input, finding)| {
            let index = codes.binary_search(&finding.diagnostic.code);
            result(input, finding, index.unwrap_or_default())
        })
        .collect();
    let gaps: Vec<Value> = report.inputs.iter().flat_map(notifications).collect();
    document(&codes, &results, &gaps)
}

/// A log of results of these codes, which refer to them by index; `gaps` are parts that were not examined.
pub(crate) fn document(codes: &[Code], results: &[Value], gaps: &[Value]) -> Value {
    let rules: Vec<Value> = codes.iter().map(rule).collect();
    let mut run = json!({
        "tool": {
            "driver": {
                "name": "tamis",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            },
        },
        "columnKind": "unicodeCodePoints",
        "results": results,
    });
    if !gaps.is_empty() {
        run["invocations"] = json!([{
            "executionSuccessful": false,
            "toolExecutionNotifications": gaps,
        }]);
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    })
}

/// The parts of an input that were not checked.
fn notifications(input: &InputFindings) -> Vec<Value> {
    let gaps = input.gaps.iter();
    gaps.map(
        |gap| json!({ "level": "error", "message": { "text": format!("{}: {gap}", input.input) } }),
    )
    .collect()
}

fn rule(code: &Code) -> Value {
    json!({
        "id": code.id,
        "shortDescription": { "text": code.title },
        "fullDescription": { "text": code.explanation },
    })
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn result(input: &InputFindings, finding: &FindingEntry, rule_index: usize) -> Value {
    let diagnostic = &finding.diagnostic;
    let mut message = diagnostic.message.clone();
    let parts = diagnostic.notes.iter().chain(&diagnostic.help);
    for part in parts {
        message.push('\n');
        message.push_str(part);
    }
    json!({
        "ruleId": diagnostic.code.id,
        "ruleIndex": rule_index,
        "level": level(diagnostic.severity),
        "message": { "text": message },
        "locations": [{ "physicalLocation": place(input, finding) }],
    })
}

fn place(input: &InputFindings, finding: &FindingEntry) -> Value {
    let artifact = |name: &str| json!({ "uri": uri(name) });
    if let Some(label) = finding.diagnostic.labels.first() {
        let position = input.sources.position(label.span);
        return json!({
            "artifactLocation": artifact(input.sources.name(label.span.source)),
            "region": { "startLine": position.line, "startColumn": position.column },
        });
    }
    match &finding.insn {
        Some(insn) => json!({
            "artifactLocation": artifact(&insn.file),
            "region": {
                "byteOffset": insn.pc * Insn::SIZE_BYTES,
                "byteLength": Insn::SIZE_BYTES,
            },
        }),
        None => json!({ "artifactLocation": artifact(&input.input) }),
    }
}

/// A path as a relative or absolute URI reference, with other characters percent-encoded.
pub(crate) fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/.-_~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
