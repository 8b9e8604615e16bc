//! A policy in another language, with its losses: `tamis convert`.

use std::fmt;

use serde::Serialize;
use tamis_abi::Action;
use tamis_export::code;
use tamis_export::convert::Converted;
use tamis_export::{Exporter, Loss, Machine};
use tamis_prover::ComparisonResult;

use crate::change::{self, Change};
use crate::entry::{ComparisonResultEntry, arches, counted, first_calls};

/// The most changes that the text lists.
const MAX_CHANGES: usize = 5;
/// The most calls of a change that the text names.
const MAX_CALLS: usize = 6;

/// A policy in another language.
#[derive(Serialize)]
pub struct ConvertReport {
    pub input: String,
    pub to: &'static str,
    pub machines: Vec<MachineEntry>,
    pub verdict: ComparisonResultEntry,
    pub losses: Vec<LossEntry>,
    pub changes: Vec<ReplacedEntry>,
    pub is_complete: bool,
    pub text: String,
    /// Whether texts in the language name their architectures.
    #[serde(skip)]
    pub states_arches: bool,
}

/// A machine that the text is valid for.
#[derive(Serialize)]
pub struct MachineEntry {
    pub native: &'static str,
    pub arches: Vec<&'static str>,
}

/// A property that the language cannot express.
#[derive(Serialize)]
pub struct LossEntry {
    pub code: &'static str,
    pub message: String,
    pub kept: String,
    pub calls: Vec<&'static str>,
    pub arches: Vec<&'static str>,
    pub places: Vec<String>,
}

/// Calls with one action in the policy and another in the text.
#[derive(Serialize)]
pub struct ReplacedEntry {
    pub arches: Vec<String>,
    pub calls: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    #[serde(serialize_with = "change::text")]
    pub policy: Action,
    #[serde(serialize_with = "change::text")]
    pub text: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

impl ConvertReport {
    /// The report of the conversion of the input `name`, with the places of each loss.
    pub fn from_conversion(
        input: &str,
        to: &Exporter,
        converted: Converted,
        places: impl Fn(&Loss) -> Vec<String>,
    ) -> ConvertReport {
        let machine = |machine: &Machine| MachineEntry {
            native: machine.native.name(),
            arches: arches(&machine.arches),
        };
        let loss = |loss: &Loss| LossEntry {
            code: loss.code.id,
            message: loss.message.clone(),
            kept: loss.kept.clone(),
            calls: loss.calls.clone(),
            arches: arches(&loss.arches),
            places: places(loss),
        };
        let changes = change::group(&converted.differences).into_iter();
        ConvertReport {
            input: input.to_owned(),
            to: to.name,
            machines: converted.machines.iter().map(machine).collect(),
            verdict: ComparisonResultEntry(Some(converted.comparison)),
            losses: converted.losses.iter().map(loss).collect(),
            changes: changes.map(ReplacedEntry::from_change).collect(),
            is_complete: converted.is_complete,
            text: converted.text,
            states_arches: to.states_arches,
        }
    }

    /// Whether calls unknown to the target language get a separate denying action.
    fn has_unknown_calls(&self) -> bool {
        let mut losses = self.losses.iter();
        losses.any(|loss| loss.code == code::EXPORT_UNKNOWN.id)
    }

    fn result_in_words(&self) -> &'static str {
        match self.verdict.0 {
            Some(ComparisonResult::Equal) if self.losses.is_empty() => "proved equivalent",
            Some(ComparisonResult::Equal) => "proved equivalent for all calls of its architectures",
            Some(ComparisonResult::SameActions) if self.has_unknown_calls() => {
                "proved to deny the same calls, some by another action:"
            }
            Some(ComparisonResult::SameActions) => {
                "proved to take the same actions, with other data:"
            }
            Some(ComparisonResult::Stricter) => "proved to be stricter, never looser:",
            Some(ComparisonResult::Looser | ComparisonResult::Incomparable) | None => {
                "not as strict"
            }
        }
    }
}

impl ReplacedEntry {
    fn from_change(change: Change) -> ReplacedEntry {
        ReplacedEntry {
            example: change.example_text(),
            arches: change.arches,
            calls: change.calls,
            condition: change.condition,
            policy: change.old,
            text: change.new,
        }
    }
}

/// The result of the proof and its machines, without the converted text and the final newline.
impl fmt::Display for ConvertReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.input, self.result_in_words())?;
        for change in self.changes.iter().take(MAX_CHANGES) {
            let calls = first_calls(&change.calls, MAX_CALLS, "");
            let ReplacedEntry { policy, text, .. } = change;
            let arches = change.arches.join(", ");
            write!(f, "\n  {arches}: {calls}: {policy} -> {text}")?;
            if let Some(example) = &change.example {
                write!(f, "\n    {example}")?;
            }
        }
        if self.changes.len() > MAX_CHANGES {
            let more = self.changes.len() - MAX_CHANGES;
            let more = counted(more, "more change");
            write!(f, "\n  and {more}; `tamis diff` lists them")?;
        }
        let machines: Vec<String> = self.machines.iter().map(ToString::to_string).collect();
        let machines = machines.join(" or ");
        match self.states_arches {
            true => write!(f, "\nfor calls of {machines}"),
            false => write!(
                f,
                "\nonly for {machines}; on other machines it would decide calls that the policy does not cover"
            ),
        }
    }
}

impl fmt::Display for MachineEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let native = self.native;
        let others = self.arches.iter().copied();
        let others: Vec<&str> = others.filter(|arch| *arch != native).collect();
        match others.as_slice() {
            [] => f.write_str(native),
            others => write!(f, "{native} (with {})", others.join(", ")),
        }
    }
}
