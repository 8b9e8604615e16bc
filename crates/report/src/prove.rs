//! Whether two filters are equivalent, or one is at least as strict: `tamis prove`.

use std::fmt::{self, Display};

use serde::Serialize;
use tamis_prover::{ComparisonResult, Scope};

use crate::entry::{ComparisonResultEntry, WitnessEntry, arches};
use crate::extent::Extent;

/// The result for two sides.
#[derive(Serialize)]
pub struct ProveReport {
    pub left: String,
    pub right: String,
    pub question: Question,
    pub answer: Answer,
    pub verdict: ComparisonResultEntry,
    pub scope: ScopeEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    pub witnesses: Vec<WitnessEntry>,
    pub yes_within: Vec<ScopeEntry>,
    /// Whether a limit was reached for a narrower scope.
    pub has_gaps_within: bool,
    /// The extent of the comparison.
    pub compared: Extent,
    /// The reading of the answer, if it isn't the first: `on aarch64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// The options that raise the limit.
    #[serde(skip)]
    pub advice: Option<String>,
}

/// The question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Whether the sides are equivalent.
    Equal,
    /// Whether the left side is at least as strict as the right one.
    AtLeastAsStrict,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The statement is proved.
    Yes,
    /// A call disproves it.
    No,
    /// Neither: a limit was reached, or the answer depends on calls without an example.
    Unknown,
}

/// The scope of the comparison.
#[derive(PartialEq, Eq, Serialize)]
pub struct ScopeEntry {
    pub arches: Vec<&'static str>,
    pub native: bool,
    pub actions_only: bool,
}

impl ScopeEntry {
    /// The entry of a scope.
    pub fn from_scope(scope: &Scope) -> ScopeEntry {
        ScopeEntry {
            arches: arches(&scope.arches),
            native: scope.native_only,
            actions_only: scope.actions_only,
        }
    }

    /// The scope as text; `None` if it is unrestricted.
    fn in_words(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.arches.is_empty() {
            parts.push(format!("calls of {}", self.arches.join(", ")));
        }
        if self.native {
            parts.push("numbers below 2^30".to_owned());
        }
        if self.actions_only {
            parts.push("actions without their data".to_owned());
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// The options that restrict a wider scope to this one.
    fn options(&self, wider: &ScopeEntry) -> String {
        let mut options: Vec<String> = Vec::new();
        if self.arches != wider.arches {
            options.extend(self.arches.iter().map(|arch| format!("--arch {arch}")));
        }
        if self.native && !wider.native {
            options.push("--native".to_owned());
        }
        if self.actions_only && !wider.actions_only {
            options.push("--actions-only".to_owned());
        }
        options.join(" ")
    }
}

impl Display for ProveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProveReport { left, right, .. } = self;
        match self.answer {
            Answer::Yes | Answer::No => self.write_result(f)?,
            Answer::Unknown => {
                let (word, against) = (self.word(), self.question.counterexample());
                writeln!(f, "{word}: no {against} {left} and {right} was found")?;
            }
        }
        for witness in &self.witnesses {
            witness.fmt(f)?;
        }
        match (self.answer, &self.limit) {
            (Answer::No, _) if self.elsewhere.is_none() => {
                self.write_narrower(f)?;
                f.write_str(&self.compared.left_out())
            }
            (Answer::Unknown, Some(limit)) => {
                writeln!(f, "  {limit}")?;
                match &self.advice {
                    Some(options) => writeln!(f, "to raise the limits: {options}"),
                    None => Ok(()),
                }
            }
            (Answer::Yes | Answer::No, _) | (Answer::Unknown, None) => Ok(()),
        }
    }
}

impl Question {
    /// What a counterexample is, before the names of the sides.
    const fn counterexample(self) -> &'static str {
        match self {
            Question::Equal => "difference between",
            Question::AtLeastAsStrict => "call that shows a looser action of the first of",
        }
    }
}

impl ProveReport {
    /// The answer in a word.
    const fn word(&self) -> &'static str {
        match (self.question, self.answer) {
            (Question::Equal, Answer::Yes) => "yes",
            (Question::Equal, Answer::No) => "no",
            (Question::Equal, Answer::Unknown) => "unknown",
            (Question::AtLeastAsStrict, Answer::Yes) => "within",
            (Question::AtLeastAsStrict, Answer::No) => "exceeds",
            (Question::AtLeastAsStrict, Answer::Unknown) => "undecided",
        }
    }

    fn write_result(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProveReport { left, right, .. } = self;
        let ComparisonResultEntry(result) = self.verdict;
        write!(f, "{}: ", self.word())?;
        match result {
            None => write!(f, "{left} and {right} differ"),
            Some(ComparisonResult::Equal) => write!(f, "{left} and {right} are equivalent"),
            Some(ComparisonResult::SameActions) => write!(
                f,
                "{left} and {right} have the same actions, with different data"
            ),
            Some(ComparisonResult::Stricter) => write!(f, "{left} is stricter than {right}"),
            Some(ComparisonResult::Looser) => write!(f, "{left} is looser than {right}"),
            Some(ComparisonResult::Incomparable) => {
                write!(f, "{left} and {right} differ, and neither is stricter")
            }
        }?;
        if let Some(reading) = &self.elsewhere {
            write!(f, " {reading}")?;
        }
        match (self.scope.in_words(), result) {
            (Some(scope), _) => write!(f, ", comparing only {scope}")?,
            (None, Some(ComparisonResult::Equal)) => write!(f, " for every call")?,
            (None, _) => {}
        }
        match self.answer {
            Answer::Yes => writeln!(f, "{}", self.compared.behind_answer()),
            Answer::No | Answer::Unknown => writeln!(f),
        }
    }

    /// Writes the narrower scopes for which the answer is yes.
    fn write_narrower(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OPTIONS: &str = "--native, --actions-only or for one --arch";
        let (no, yes) = match self.question {
            Question::Equal => ("the answer is also no", "yes"),
            Question::AtLeastAsStrict => ("it also exceeds", "it is within"),
        };
        match (self.yes_within.is_empty(), self.has_gaps_within) {
            (true, false) => writeln!(f, "{no} with {OPTIONS}"),
            (true, true) => {
                writeln!(
                    f,
                    "the answer with {OPTIONS} was not found within the limits"
                )
            }
            (false, _) => self
                .yes_within
                .iter()
                .try_for_each(|found| writeln!(f, "{yes} with {}", found.options(&self.scope))),
        }
    }
}
