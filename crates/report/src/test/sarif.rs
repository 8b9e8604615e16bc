//! Failing checks as a SARIF 2.1.0 log: at the rule that decides, with the place of the check.

use serde_json::{Value, json};
use tamis_diag::Code;

use super::{CheckEntry, TestReport, TestedEntry, ViolationEntry};
use crate::lint::sarif::{document, uri};

/// The log of one run.
pub fn log(report: &TestReport) -> Value {
    let all = || {
        let policies = report.policies.iter();
        policies.flat_map(|tested| tested.checks.iter().map(move |check| (tested, check)))
    };
    let failing = || all().filter(|(_, check)| check.is_failure());
    let mut codes: Vec<Code> = failing().map(|(_, check)| check.code).collect();
    codes.sort();
    codes.dedup();
    let result = |(tested, check): (&TestedEntry, &CheckEntry)| {
        let index = codes.binary_search(&check.code).unwrap_or_default();
        json!({
            "ruleId": check.code.id,
            "ruleIndex": index,
            "level": "error",
            "message": { "text": format!("{}\n{}", check.check, check.details("")) },
            "locations": [{ "physicalLocation": place(tested, check) }],
            "relatedLocations": [{
                "physicalLocation": region(&check.file, check.line, check.column),
                "message": { "text": "the check" },
            }],
        })
    };
    let results: Vec<Value> = failing().map(result).collect();
    let undecided = all().filter(|(_, check)| check.is_undecided());
    let gap = |(tested, check): (&TestedEntry, &CheckEntry)| {
        let limit = check.limit.as_deref().unwrap_or_default();
        let text = format!("{}: {}: {limit}", tested.policy, check.check);
        json!({ "level": "error", "message": { "text": text } })
    };
    let gaps: Vec<Value> = undecided.map(gap).collect();
    document(&codes, &results, &gaps)
}

/// The place of the first rule that contradicts a check, or else the policy.
fn place(tested: &TestedEntry, check: &CheckEntry) -> Value {
    let of_rule = |own: &ViolationEntry| Some(region(own.file.as_deref()?, own.line?, own.column?));
    let first = check.violations.iter().find_map(of_rule);
    first.unwrap_or_else(|| json!({ "artifactLocation": { "uri": uri(&tested.policy) } }))
}

fn region(file: &str, line: u32, column: u32) -> Value {
    json!({
        "artifactLocation": { "uri": uri(file) },
        "region": { "startLine": line, "startColumn": column },
    })
}
