//! Findings in policies and programs, and the checks: `tamis lint`.

pub mod sarif;

use std::fmt;

use serde::{Serialize, Serializer};
use tamis_diag::render::render;
use tamis_diag::{Diagnostic, Severity, Sources};
use tamis_lint::{Place, Relevance, registry};

use crate::entry::counted;
use crate::extent::Extent;
use crate::place::{element_of, span};

/// The findings about all inputs. The text has one section per input.
pub struct LintReport {
    pub inputs: Vec<InputFindings>,
}

/// The findings about one input.
pub struct InputFindings {
    pub input: String,
    pub sources: Sources,
    pub findings: Vec<FindingEntry>,
    /// The number of omitted findings, which no rule of the policy causes.
    pub folded: usize,
    /// Checks that were not made, with the reason.
    pub gaps: Vec<String>,
    /// The readings of the input that were checked.
    pub extent: Extent,
}

/// A finding by a check or by a front end.
pub struct FindingEntry {
    /// The complete finding, for the text.
    pub diagnostic: Diagnostic,
    /// Calls that demonstrate it, with their actions.
    pub examples: Vec<ExampleEntry>,
    /// The instruction, for a finding in a program.
    pub insn: Option<InsnPlace>,
    /// The reasons.
    pub why: Vec<String>,
    /// The relevance: whether the policy's own rules cause the finding.
    pub relevance: Relevance,
    /// The reading of the policy that has it, if the first one doesn't.
    pub reading: Option<String>,
}

/// A call with its action.
#[derive(Clone, Serialize)]
pub struct ExampleEntry {
    pub call: String,
    pub action: String,
}

/// An instruction of one of the programs.
pub struct InsnPlace {
    pub file: String,
    pub pc: usize,
}

/// All checks.
#[derive(Serialize)]
pub struct LintChecksReport {
    pub checks: Vec<CheckEntry>,
}

/// One check.
#[derive(Serialize)]
pub struct CheckEntry {
    pub name: &'static str,
    pub code: &'static str,
    pub severity: &'static str,
    pub summary: &'static str,
}

impl LintChecksReport {
    /// The checks of the registry.
    pub fn of_registry() -> LintChecksReport {
        let entry = |check: &tamis_lint::Check| CheckEntry {
            name: check.name,
            code: check.code.id,
            severity: check.severity.name(),
            summary: check.summary,
        };
        LintChecksReport {
            checks: registry::ALL.iter().map(entry).collect(),
        }
    }
}

impl fmt::Display for LintChecksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            write!(f, "{} {:<21}", check.code, check.name)?;
            writeln!(f, " {:<8} {}", check.severity, check.summary)?;
        }
        Ok(())
    }
}

impl InputFindings {
    /// The findings as text, each with its place.
    pub fn text(&self, is_coloured: bool) -> String {
        let diagnostics: Vec<Diagnostic> = self
            .findings
            .iter()
            .map(|finding| finding.diagnostic.clone())
            .collect();
        match diagnostics.is_empty() {
            true => String::new(),
            false => render(&diagnostics, &self.sources, is_coloured) + "\n\n",
        }
    }

    /// `2 warnings, 1 note`, and the number of checks that were not made.
    pub fn counts(&self) -> String {
        let of = |severity: Severity| match self.count(severity) {
            0 => None,
            count => Some(counted(count, severity.name())),
        };
        let parts = [Severity::Warning, Severity::Note].into_iter();
        let parts: Vec<String> = parts.filter_map(of).collect();
        let found = match parts.as_slice() {
            [] => "nothing found".to_owned(),
            parts => parts.join(", "),
        };
        match self.gaps.is_empty() {
            true => found,
            false => format!("{found}; not everything was checked"),
        }
    }

    /// The highest severity of a finding.
    pub fn worst(&self) -> Option<Severity> {
        let findings = self.findings.iter();
        findings.map(|finding| finding.diagnostic.severity).max()
    }

    /// Adds what another reading of the input has beyond the findings that are known.
    pub fn add_reading(&mut self, title: &str, other: InputFindings) {
        for mut finding in other.findings {
            let own = &finding.diagnostic;
            let is_same = |known: &FindingEntry| {
                let known = &known.diagnostic;
                let places = known.labels.first().zip(own.labels.first());
                let is_same_place = places.is_some_and(|(known, own)| known.span == own.span);
                known.code == own.code && (is_same_place || known.message == own.message)
            };
            if !self.findings.iter().any(is_same) {
                let note = format!("in the reading of the policy {title}");
                finding.diagnostic.notes.push(note);
                finding.reading = Some(title.to_owned());
                self.findings.push(finding);
            }
        }
        for gap in other.gaps {
            if !self.gaps.contains(&gap) {
                self.gaps.push(gap);
            }
        }
        self.folded = self.folded.max(other.folded);
        // Stable: findings of the first reading stand before others of their severity.
        self.findings
            .sort_by_key(|finding| std::cmp::Reverse(finding.diagnostic.severity));
    }

    fn count(&self, severity: Severity) -> usize {
        let findings = self.findings.iter();
        findings
            .filter(|finding| finding.diagnostic.severity == severity)
            .count()
    }
}

/// A check that was not made.
#[derive(Serialize)]
struct Gap<'a> {
    input: &'a str,
    what: &'a str,
}

/// The readings of an input that were checked.
#[derive(Serialize)]
struct Checked<'a> {
    input: &'a str,
    #[serde(flatten)]
    extent: &'a Extent,
}

/// A finding in the document.
#[derive(Serialize)]
struct Row<'a> {
    input: &'a str,
    code: &'static str,
    /// The name of the check; absent for a finding of a front end.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<&'static str>,
    severity: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    /// The index of the instruction, for a finding in a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<usize>,
    examples: &'a [ExampleEntry],
    why: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    /// The reading of the policy that has it, if the first one doesn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<&'a str>,
}

impl FindingEntry {
    /// The entry for a diagnostic of a front end.
    pub fn of_front_end(diagnostic: Diagnostic) -> FindingEntry {
        FindingEntry {
            why: diagnostic.notes.clone(),
            diagnostic,
            examples: Vec::new(),
            insn: None,
            relevance: Relevance::Intent,
            reading: None,
        }
    }

    /// The entry for a finding of a check in a policy.
    pub fn of_policy(finding: &tamis_lint::Finding, sources: &Sources) -> FindingEntry {
        let mut result = FindingEntry::without_places(finding);
        for (index, place) in finding.places.iter().enumerate() {
            if let Place::Rule(origin, label) = place {
                // If there are several examples, they belong to the places in order.
                let own = finding.examples.get(index);
                let mut calls = own.into_iter().chain(&finding.examples);
                let element = calls.find_map(|example| element_of(origin, &example.call, sources));
                let origin = element.as_ref().unwrap_or(origin);
                let Some(span) = span(origin, sources) else {
                    continue;
                };
                result.diagnostic = result.diagnostic.label(span, label);
            }
        }
        result
    }

    /// The entry for a finding of a check in programs with these names.
    pub fn of_program(finding: &tamis_lint::Finding, names: &[String]) -> FindingEntry {
        let mut result = FindingEntry::without_places(finding);
        for place in &finding.places {
            let Place::Insn { filter, pc } = place else {
                continue;
            };
            let file = names[*filter].clone();
            let text = format!("decided by instruction {} of {file}", pc.0);
            result.diagnostic.notes.push(text);
            result.insn.get_or_insert(InsnPlace { file, pc: pc.0 });
        }
        result
    }

    /// Whether it concerns a certain rule or instruction.
    pub fn has_place(&self) -> bool {
        !self.diagnostic.labels.is_empty() || self.insn.is_some()
    }

    /// Adds the name of the input to a finding without a place.
    pub fn name_input(&mut self, input: &str) {
        if !self.has_place() {
            self.diagnostic.notes.push(format!("in {input}"));
        }
    }

    fn without_places(finding: &tamis_lint::Finding) -> FindingEntry {
        let mut diagnostic = Diagnostic::new(finding.severity, finding.code, &finding.message)
            .note(&finding.why)
            .help(&finding.help);
        let examples = finding.examples.iter();
        let shown: Vec<String> = examples.map(tamis_lint::Example::describe).collect();
        if !shown.is_empty() {
            diagnostic = diagnostic.note(format!("for example\n{}", shown.join("\n")));
        }
        let example = |example: &tamis_lint::Example| ExampleEntry {
            call: tamis_abi::call::describe_briefly(&example.call),
            action: example.action.to_string(),
        };
        FindingEntry {
            diagnostic,
            examples: finding.examples.iter().map(example).collect(),
            insn: None,
            why: vec![finding.why.clone()],
            relevance: finding.relevance,
            reading: None,
        }
    }

    /// Whether one of these diagnostics of a front end reports the same problem, on the same line if there is one.
    pub fn is_among(&self, others: &[Diagnostic], sources: &Sources) -> bool {
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
        others.iter().any(|other| {
            check.front_end_codes.contains(&other.code) && (own.is_empty() || same_line(other))
        })
    }
}

impl Serialize for LintReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Members<'a> {
            findings: Vec<Row<'a>>,
            warnings: usize,
            notes: usize,
            folded: usize,
            gaps: Vec<Gap<'a>>,
            checked: Vec<Checked<'a>>,
        }
        let count = |severity| self.inputs.iter().map(|input| input.count(severity)).sum();
        let mut members = Members {
            findings: Vec::new(),
            warnings: count(Severity::Warning),
            notes: count(Severity::Note),
            folded: self.inputs.iter().map(|input| input.folded).sum(),
            gaps: Vec::new(),
            checked: Vec::new(),
        };
        for of in &self.inputs {
            let input = &of.input;
            members.checked.push(Checked {
                input,
                extent: &of.extent,
            });
            members
                .findings
                .extend(of.findings.iter().map(|finding| of.row(finding)));
            members
                .gaps
                .extend(of.gaps.iter().map(|what| Gap { input, what }));
        }
        members.serialize(serializer)
    }
}

impl InputFindings {
    fn row<'a>(&'a self, finding: &'a FindingEntry) -> Row<'a> {
        let diagnostic = &finding.diagnostic;
        let span = diagnostic.labels.first().map(|label| label.span);
        let position = span.map(|span| self.sources.position(span));
        let of_source = span.map(|span| self.sources.name(span.source).to_string());
        let of_program = finding.insn.as_ref().map(|insn| insn.file.clone());
        Row {
            input: &self.input,
            code: diagnostic.code.id,
            check: registry::of_code(diagnostic.code).map(|check| check.name),
            severity: diagnostic.severity.name(),
            message: &diagnostic.message,
            file: of_source.or(of_program),
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            pc: finding.insn.as_ref().map(|insn| insn.pc),
            examples: &finding.examples,
            why: &finding.why,
            help: diagnostic.help.as_deref(),
            reading: finding.reading.as_deref(),
        }
    }
}
