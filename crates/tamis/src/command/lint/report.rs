//! Findings as diagnostics with places in sources, and as a document for programs.

use serde::Serialize;
use tamis_diag::{Diagnostic, Severity, Sources};
use tamis_lint::{Place, registry};

use crate::cli::place::span;

/// The findings about one input.
pub(super) struct Report {
    pub(super) input: String,
    pub(super) sources: Sources,
    pub(super) findings: Vec<Finding>,
    /// What was not looked at, and why.
    pub(super) gaps: Vec<String>,
}

/// A finding, of a check or of a front end.
pub(super) struct Finding {
    /// All of it, for people.
    pub(super) diagnostic: Diagnostic,
    /// Calls that show it, with their answers.
    pub(super) examples: Vec<Example>,
    /// The instruction that it is about, in a program.
    pub(super) insn: Option<Insn>,
    /// Why it matters.
    pub(super) why: Vec<String>,
}

/// A call and the answer that it gets.
#[derive(Clone, Serialize)]
pub(super) struct Example {
    call: String,
    action: String,
}

/// An instruction of one of the programs.
pub(super) struct Insn {
    pub(super) file: String,
    pub(super) pc: usize,
}

/// The document for programs.
#[derive(Serialize)]
pub(super) struct Document {
    schema: &'static str,
    findings: Vec<Entry>,
    warnings: usize,
    notes: usize,
    gaps: Vec<Gap>,
}

/// What was not looked at.
#[derive(Serialize)]
struct Gap {
    input: String,
    what: String,
}

/// One finding.
#[derive(Serialize)]
struct Entry {
    input: String,
    code: &'static str,
    /// The name of the check; absent if a front end said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<&'static str>,
    severity: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    /// The index of the instruction, in a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<usize>,
    examples: Vec<Example>,
    why: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl Finding {
    /// What a front end said.
    pub(super) fn told(diagnostic: Diagnostic) -> Finding {
        Finding {
            why: diagnostic.notes.clone(),
            diagnostic,
            examples: Vec::new(),
            insn: None,
        }
    }

    /// What a check found in a policy.
    pub(super) fn of_policy(finding: &tamis_lint::Finding, sources: &Sources) -> Finding {
        let mut result = Finding::without_places(finding);
        for place in &finding.places {
            if let Place::Rule(origin, label) = place
                && let Some(span) = span(origin, sources)
            {
                result.diagnostic = result.diagnostic.label(span, label);
            }
        }
        result
    }

    /// What a check found in programs of these names.
    pub(super) fn of_program(finding: &tamis_lint::Finding, names: &[String]) -> Finding {
        let mut result = Finding::without_places(finding);
        for place in &finding.places {
            let Place::Insn { filter, pc } = place else {
                continue;
            };
            let file = names[*filter].clone();
            let text = format!("decided by instruction {} of {file}", pc.0);
            result.diagnostic.notes.push(text);
            result.insn.get_or_insert(Insn { file, pc: pc.0 });
        }
        result
    }

    /// Says which input a finding is about that has no place of its own.
    pub(super) fn name_input(&mut self, input: &str) {
        if self.diagnostic.labels.is_empty() && self.insn.is_none() {
            self.diagnostic.notes.push(format!("in {input}"));
        }
    }

    fn without_places(finding: &tamis_lint::Finding) -> Finding {
        let mut diagnostic = Diagnostic::new(finding.severity, finding.code, &finding.message)
            .note(&finding.why)
            .help(&finding.help);
        let examples = finding.examples.iter();
        let shown: Vec<String> = examples.map(tamis_lint::Example::describe).collect();
        if !shown.is_empty() {
            diagnostic = diagnostic.note(format!("for example\n{}", shown.join("\n")));
        }
        let example = |example: &tamis_lint::Example| Example {
            call: tamis_abi::call::describe(&example.call),
            action: example.action.to_string(),
        };
        Finding {
            diagnostic,
            examples: finding.examples.iter().map(example).collect(),
            insn: None,
            why: vec![finding.why.clone()],
        }
    }

    /// Whether a front end has said the same already: of the same line, if there is one.
    pub(super) fn is_told(&self, told: &[Diagnostic], sources: &Sources) -> bool {
        let Some(check) = registry::of_code(self.diagnostic.code) else {
            return false;
        };
        let lines = |diagnostic: &Diagnostic| -> Vec<_> {
            let labels = diagnostic.labels.iter();
            labels
                .map(|label| (label.span.source, sources.position(label.span).line))
                .collect()
        };
        let own = lines(&self.diagnostic);
        let same_line = |other: &Diagnostic| lines(other).iter().any(|line| own.contains(line));
        told.iter().any(|other| {
            check.told_by.contains(&other.code) && (own.is_empty() || same_line(other))
        })
    }
}

/// All findings for programs.
pub(super) fn document(reports: &[Report]) -> Document {
    let findings = reports
        .iter()
        .flat_map(|report| report.findings.iter().map(|finding| entry(report, finding)));
    let findings: Vec<Entry> = findings.collect();
    let count = |severity: Severity| {
        let matching = findings
            .iter()
            .filter(|entry| entry.severity == severity.name());
        matching.count()
    };
    let gap = |input: &str, what: &String| Gap {
        input: input.to_owned(),
        what: what.clone(),
    };
    let gaps = reports.iter().flat_map(|report| {
        let gaps = report.gaps.iter();
        gaps.map(|what| gap(&report.input, what))
    });
    Document {
        schema: "tamis.lint/1",
        gaps: gaps.collect(),
        warnings: count(Severity::Warning),
        notes: count(Severity::Note),
        findings,
    }
}

fn entry(report: &Report, finding: &Finding) -> Entry {
    let diagnostic = &finding.diagnostic;
    let span = diagnostic.labels.first().map(|label| label.span);
    let position = span.map(|span| report.sources.position(span));
    let of_source = span.map(|span| report.sources.name(span.source).to_string());
    let of_program = finding.insn.as_ref().map(|insn| insn.file.clone());
    Entry {
        input: report.input.clone(),
        code: diagnostic.code.id,
        check: registry::of_code(diagnostic.code).map(|check| check.name),
        severity: diagnostic.severity.name(),
        message: diagnostic.message.clone(),
        file: of_source.or(of_program),
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
        pc: finding.insn.as_ref().map(|insn| insn.pc),
        examples: finding.examples.clone(),
        why: finding.why.clone(),
        help: diagnostic.help.clone(),
    }
}
