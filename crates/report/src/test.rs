//! The results of checks for policies: `tamis test`.

pub mod junit;
pub mod sarif;

use std::fmt::{self, Write as _};

use serde::Serialize;
use tamis_abi::{Arch, call};
use tamis_assertions::code;
use tamis_assertions::{
    Check, Checks, Decider, Edit, EditKind, Example, Mend, Outcome, Uncovered, Verdict, Violation,
    Way,
};
use tamis_diag::Code;
use tamis_diag::Sources;
use tamis_rules::Origin;

use crate::entry::{counted, first_calls};
use crate::extent::{Extent, Readings};
use crate::place;

/// The results of all checks for all policies.
#[derive(Serialize)]
pub struct TestReport {
    pub policies: Vec<TestedEntry>,
    pub holds: usize,
    pub fails: usize,
    pub undecided: usize,
    /// The results of checks that hold are not in the text.
    #[serde(skip)]
    pub is_brief: bool,
}

/// The results for one policy, program or stack.
#[derive(Serialize)]
pub struct TestedEntry {
    pub policy: String,
    pub checks: Vec<CheckEntry>,
    /// The readings of a profile that were tested.
    pub compared: Extent,
    /// The rules that no check constrains, if they were sought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncovered: Option<Vec<UncoveredEntry>>,
}

/// A rule with calls that no check constrains.
#[derive(Serialize)]
pub struct UncoveredEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line of the rule, or the rule in words.
    pub rule: String,
    pub calls: Vec<String>,
    /// The number of calls that the rule decides, of all architectures.
    pub of: usize,
}

impl UncoveredEntry {
    /// The entry for a rule of a policy with these texts.
    pub fn new(uncovered: &Uncovered, sources: &Sources) -> UncoveredEntry {
        let origin = uncovered.origin.as_ref();
        let line = origin.and_then(|origin| place::line(origin, sources));
        UncoveredEntry {
            file: origin.map(|origin| origin.file.to_string()),
            line: origin.map(|origin| origin.line),
            column: origin.map(|origin| origin.column),
            rule: line.unwrap_or_else(|| uncovered.title.clone()),
            calls: uncovered.calls.clone(),
            of: uncovered.of,
        }
    }
}

/// One line: the place, the rule and the first calls.
impl fmt::Display for UncoveredEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_CALLS: usize = 6;
        f.write_str("not covered: ")?;
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            write!(f, "{file}:{line}: ")?;
        }
        let calls = first_calls(&self.calls, MAX_CALLS, "");
        writeln!(f, "{}: {calls}", self.rule)
    }
}

/// The result of a check.
#[derive(Serialize)]
pub struct CheckEntry {
    pub check: String,
    pub file: String,
    pub line: u32,
    pub column: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub sources: Vec<String>,
    pub verdict: &'static str,
    /// The reading of the profile with this result; absent if it is the first, or the check holds in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// The limit that was reached, or the reason why the check could not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    pub violations: Vec<ViolationEntry>,
    /// The number of violations that are not listed.
    pub further: usize,
    pub notices: Vec<String>,
    /// A change of the policy after which the check holds, tried and proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<MendEntry>,
    /// Whether a change was sought.
    #[serde(skip)]
    pub sought_mend: bool,
    #[serde(skip)]
    pub code: Code,
}

/// A change of one file.
#[derive(Serialize)]
pub struct MendEntry {
    pub file: String,
    pub edits: Vec<EditEntry>,
}

/// A change at a line.
#[derive(Serialize)]
pub struct EditEntry {
    pub line: u32,
    pub column: u32,
    /// `insert` or `delete`.
    pub kind: &'static str,
    pub text: String,
}

/// What contradicts a check.
#[derive(Default, Serialize)]
pub struct ViolationEntry {
    /// The call as the kernel reads it; absent for a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<&'static str>,
    /// The values of the policy's variables in the example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<String>,
    /// Arguments with bits that the kernel doesn't read.
    pub raw: Vec<RawEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The action of the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why the call counts, unless the check names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
    /// What decides the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The number of instructions, if they are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_insns: Option<usize>,
}

/// An argument of which the kernel reads only a part.
#[derive(Serialize)]
pub struct RawEntry {
    pub argument: &'static str,
    pub value: String,
    pub read_bits: u32,
}

impl TestReport {
    /// The report on these policies.
    pub fn new(policies: Vec<TestedEntry>, is_brief: bool) -> TestReport {
        let count = |verdict| {
            let checks = policies.iter().flat_map(|own| &own.checks);
            checks.filter(|own| own.verdict == verdict).count()
        };
        TestReport {
            holds: count(HOLDS),
            fails: count(FAILS),
            undecided: count(UNDECIDED),
            policies,
            is_brief,
        }
    }
}

/// Stands for the architectures in the text of a violation; no text of a call or rule contains it.
const ARCHES: &str = "\0";
const HOLDS: &str = "holds";
const FAILS: &str = "fails";
const UNDECIDED: &str = "undecided";

impl CheckEntry {
    /// The result of a check for a policy with these texts.
    pub fn new(checks: &Checks, check: &Check, outcome: &Outcome, sources: &Sources) -> CheckEntry {
        let group = check.group.map(|index| &checks.groups[index]);
        let (verdict, limit) = match &outcome.verdict {
            Verdict::Holds => (HOLDS, None),
            Verdict::Fails => (FAILS, None),
            Verdict::Undecided(limit) => (UNDECIDED, Some(limit.to_string())),
            Verdict::NotMade(reason) => (UNDECIDED, Some(reason.clone())),
        };
        let violations = outcome.violations.iter();
        CheckEntry {
            check: check.text.clone(),
            file: check.origin.file.to_string(),
            line: check.origin.line,
            column: check.origin.column,
            group: group.map(|group| group.title.clone()),
            reason: group.and_then(|group| group.reason.clone()),
            sources: group.map(|group| group.sources.clone()).unwrap_or_default(),
            verdict,
            reading: None,
            limit,
            violations: violations
                .map(|violation| ViolationEntry::new(violation, sources))
                .collect(),
            further: outcome.further,
            notices: outcome.notices.clone(),
            mend: None,
            sought_mend: false,
            code: code_of(check),
        }
    }

    /// Adds the change that was sought.
    pub fn add_mend(&mut self, mend: Option<&Mend>) {
        self.sought_mend = true;
        self.mend = mend.map(|mend| MendEntry {
            file: mend.file.to_string(),
            edits: mend.edits.iter().map(EditEntry::new).collect(),
        });
    }

    /// Whether the check fails.
    pub fn is_failure(&self) -> bool {
        self.verdict == FAILS
    }

    /// Whether a limit was reached or the check could not be made.
    pub fn is_undecided(&self) -> bool {
        self.verdict == UNDECIDED
    }

    /// The place of the check.
    fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// What contradicts the check, as lines with this indentation.
    pub(crate) fn details(&self, indent: &str) -> String {
        let mut text = String::new();
        if let Some(reason) = &self.reason {
            let _ = writeln!(text, "{indent}reason: {reason}");
        }
        if let Some(reading) = &self.reading {
            let _ = writeln!(text, "{indent}{reading}:");
        }
        if let Some(limit) = &self.limit {
            let _ = writeln!(text, "{indent}{limit}");
        }
        // Calls of several architectures that differ in nothing else stand together.
        let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
        for violation in &self.violations {
            let own = violation.text(indent);
            let arches = violation.arch.into_iter();
            match alike.iter_mut().find(|(text, _)| *text == own) {
                Some((_, known)) => known.extend(arches),
                None => alike.push((own, arches.collect())),
            }
        }
        for (own, arches) in alike {
            text.push_str(&own.replace(ARCHES, &arches.join(", ")));
        }
        if self.further > 0 {
            let _ = writeln!(
                text,
                "{indent}and {}",
                counted(self.further, "further call")
            );
        }
        for notice in &self.notices {
            let _ = writeln!(text, "{indent}note: {notice}");
        }
        match &self.mend {
            Some(mend) => text.push_str(&mend.text(indent)),
            None if self.sought_mend => {
                let _ = writeln!(
                    text,
                    "{indent}no small change of the policy is known that mends it"
                );
            }
            None => {}
        }
        text
    }
}

impl EditEntry {
    fn new(edit: &Edit) -> EditEntry {
        EditEntry {
            line: edit.line,
            column: edit.column,
            kind: match edit.kind {
                EditKind::Insert => "insert",
                EditKind::Delete => "delete",
            },
            text: edit.text.clone(),
        }
    }
}

impl MendEntry {
    fn text(&self, indent: &str) -> String {
        let mut text = format!("{indent}mend, proved to change no other call:\n");
        for edit in &self.edits {
            let place = format!("{}:{}", self.file, edit.line);
            match edit.kind {
                "delete" => {
                    let words: Vec<&str> = edit.text.split_whitespace().collect();
                    let _ = writeln!(text, "{indent}  in {place} delete {}", words.join(" "));
                }
                _ => {
                    for line in edit.text.lines() {
                        let _ = writeln!(text, "{indent}  before {place} insert {line}");
                    }
                }
            }
        }
        text
    }
}

/// The code of a check that fails.
fn code_of(check: &Check) -> Code {
    use tamis_assertions::Claim;
    match &check.claim {
        Claim::Never { .. } => code::CHECK_NEVER,
        Claim::Always(_) => code::CHECK_ALWAYS,
        Claim::Expect(..) => code::CHECK_EXPECT,
        Claim::Compare(..) => code::CHECK_COMPARE,
        Claim::AtMost(_) => code::CHECK_SIZE,
        Claim::Cached(_) => code::CHECK_CACHED,
    }
}

impl ViolationEntry {
    fn new(violation: &Violation, sources: &Sources) -> ViolationEntry {
        match violation {
            Violation::Call(example) => ViolationEntry::of_example(example, sources),
            Violation::NotCached(example) => ViolationEntry {
                way: Some("the kernel runs the filter for it".to_owned()),
                ..ViolationEntry::of_example(example, sources)
            },
            Violation::Reference { example, reference } => ViolationEntry {
                reference: Some(reference.to_string()),
                ..ViolationEntry::of_example(example, sources)
            },
            Violation::Size { length_insns } => ViolationEntry {
                length_insns: Some(*length_insns),
                ..ViolationEntry::default()
            },
        }
    }

    fn of_example(example: &Example, sources: &Sources) -> ViolationEntry {
        let (read, raw) = example.as_read();
        let origin = match &example.decider {
            Decider::Rule(Some(origin)) => Some(place::of_call(origin, &read, sources)),
            _ => None,
        };
        let raw = raw.iter().map(|own| RawEntry {
            argument: own.name,
            value: format!("{:#x}", own.value),
            read_bits: own.read_bits,
        });
        let variables = example.input.variables.to_string();
        ViolationEntry {
            call: Some(call::describe_briefly(&read)),
            arch: Arch::of_call(read.arch, read.nr).map(Arch::name),
            variables: (!variables.is_empty()).then_some(variables),
            raw: raw.collect(),
            action: Some(example.action.to_string()),
            reference: None,
            way: way(&example.way),
            decided_by: Some(decided_by(&example.decider, origin.as_ref(), sources)),
            file: origin.as_ref().map(|origin| origin.file.to_string()),
            line: origin.as_ref().map(|origin| origin.line),
            column: origin.as_ref().map(|origin| origin.column),
            length_insns: None,
        }
    }

    /// The lines with [`ARCHES`] in place of the architecture.
    fn text(&self, indent: &str) -> String {
        let mut text = String::new();
        if let Some(length) = self.length_insns {
            let _ = writeln!(text, "{indent}it has {}", counted(length, "instruction"));
        }
        let Some(call) = &self.call else {
            return text;
        };
        let variables = self.variables.as_deref().unwrap_or_default();
        let action = self.action.as_deref().unwrap_or_default();
        // The architecture is the first word of the call.
        let call = match (self.arch, call.split_once(' ')) {
            (Some(_), Some((_, rest))) => format!("{ARCHES} {rest}"),
            _ => call.clone(),
        };
        let _ = write!(text, "{indent}{call}{variables} -> {action}");
        let _ = match &self.reference {
            Some(reference) => writeln!(text, ", the reference {reference}"),
            None => writeln!(text),
        };
        for raw in &self.raw {
            let RawEntry {
                argument,
                value,
                read_bits,
            } = raw;
            let _ = writeln!(
                text,
                "{indent}  with {argument} = {value}, of which the kernel reads {read_bits} bits"
            );
        }
        for line in self.way.iter().chain(&self.decided_by) {
            let _ = writeln!(text, "{indent}  {line}");
        }
        text
    }
}

fn way(way: &Way) -> Option<String> {
    match way {
        Way::Direct => None,
        Way::InMemory => Some("its arguments are in memory, where no filter reads them".to_owned()),
        Way::Multiplexer(call) => Some(format!(
            "it is {call} with its arguments in memory, where no filter reads them"
        )),
        Way::Twin { effect, reason: "" } => Some(format!("it can {effect}")),
        Way::Twin { effect, reason } => Some(format!("it can {effect}: {reason}")),
        Way::Ring(operation) => Some(format!("{operation} does the same, and no filter sees it")),
    }
}

fn decided_by(decider: &Decider, origin: Option<&Origin>, sources: &Sources) -> String {
    match (decider, origin) {
        (Decider::Rule(_), Some(origin)) => {
            let place = place::text(origin);
            match place::line(origin, sources) {
                Some(line) => format!("{place}: {line}"),
                None => place,
            }
        }
        (Decider::Rule(_), None) => "decided by a rule".to_owned(),
        (Decider::Default(arch), _) => format!("decided by the default of {arch}"),
        (Decider::NoFilter, _) => "there is no filter".to_owned(),
        (Decider::BadArch, _) => "decided by the action for other architectures".to_owned(),
        (Decider::Insn { filter, pc }, _) => {
            format!("decided by instruction {} of filter {filter}", pc.0)
        }
    }
}

impl fmt::Display for TestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tested in &self.policies {
            for check in &tested.checks {
                let is_shown = !self.is_brief || check.verdict != HOLDS;
                let word = match check.verdict {
                    HOLDS => "ok",
                    FAILS => "FAIL",
                    _ => "UNDECIDED",
                };
                if is_shown {
                    let group = check.group.as_ref();
                    let group = group.map(|group| format!(" ({group})")).unwrap_or_default();
                    writeln!(f, "{word} {}: {}{group}", check.place(), check.check)?;
                    if check.verdict == HOLDS {
                        for notice in &check.notices {
                            writeln!(f, "  note: {notice}")?;
                        }
                    } else {
                        f.write_str(&check.details("  "))?;
                    }
                }
            }
            for uncovered in tested.uncovered.iter().flatten() {
                write!(f, "{uncovered}")?;
            }
            writeln!(f, "{}", tested.counts())?;
        }
        Ok(())
    }
}

impl TestedEntry {
    /// `docker.json: 12 checks hold, 1 fails`.
    fn counts(&self) -> String {
        let count = |verdict| {
            let checks = self.checks.iter();
            checks.filter(|own| own.verdict == verdict).count()
        };
        let (holds, fails, undecided) = (count(HOLDS), count(FAILS), count(UNDECIDED));
        let verb = |count| if count == 1 { "holds" } else { "hold" };
        let mut text = format!(
            "{}: {} {}",
            self.policy,
            counted(holds, "check"),
            verb(holds)
        );
        if fails > 0 {
            let verb = if fails == 1 { "fails" } else { "fail" };
            let _ = write!(text, ", {fails} {verb}");
        }
        if undecided > 0 {
            let verb = if undecided == 1 { "is" } else { "are" };
            let _ = write!(text, ", {undecided} {verb} undecided");
        }
        if self.compared.readings != Readings::Only {
            text += &self.compared.behind_answer();
        }
        text
    }
}
