//! The actions for calls with their reasons, or the meaning of a diagnostic code: `tamis explain`.

use std::fmt;

use serde::Serialize;
use tamis_abi::{Action, SeccompData, call};
use tamis_bpf::{Program, interp};
use tamis_diag::Sources;
use tamis_rules::{Cause, Rule, Ruleset};

use crate::entry::counted;
use crate::place;

/// The actions for calls.
#[derive(Serialize)]
pub struct ExplainReport {
    pub explanations: Vec<Explanation>,
}

/// The action for one call.
#[derive(Serialize)]
pub struct Explanation {
    pub call: String,
    pub action: String,
    #[serde(flatten)]
    pub cause: CauseEntry,
    pub steps: u32,
    pub length_insns: usize,
    pub cacheable: bool,
}

/// The reason for an action.
#[derive(Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum CauseEntry {
    /// A rule of the policy.
    Rule { rule: RuleEntry },
    /// The default of the policy's section.
    Default,
    /// The policy's action for architectures that it does not name.
    BadArch,
    /// The program: the input is not a policy.
    Program,
}

/// The rule that decides.
#[derive(Serialize)]
pub struct RuleEntry {
    pub condition: String,
    #[serde(flatten)]
    pub place: Option<PlaceEntry>,
}

/// The place of a rule.
#[derive(Serialize)]
pub struct PlaceEntry {
    pub file: String,
    pub line: u32,
    pub column: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The meaning of a diagnostic code.
#[derive(Serialize)]
pub struct ExplainCodeReport {
    pub code: &'static str,
    pub title: &'static str,
    pub explanation: &'static str,
}

impl Explanation {
    /// The action of a program for a call, and, if it has a policy, the part of the policy that decides.
    pub fn new(
        program: &Program,
        cacheable: bool,
        policy: Option<(&Ruleset, &Sources)>,
        data: &SeccompData,
    ) -> Explanation {
        let run = interp::run(program, data);
        let cause = match policy {
            None => CauseEntry::Program,
            Some((ruleset, sources)) => match ruleset.decide(data).cause {
                Cause::Rule(_, rule) => CauseEntry::Rule {
                    rule: RuleEntry::of(rule, sources),
                },
                Cause::Default(_) => CauseEntry::Default,
                Cause::BadArch => CauseEntry::BadArch,
            },
        };
        Explanation {
            call: call::describe(data),
            action: Action::from_ret(run.ret).to_string(),
            cause,
            steps: run.steps,
            length_insns: program.len(),
            cacheable,
        }
    }
}

impl RuleEntry {
    fn of(rule: &Rule, sources: &Sources) -> RuleEntry {
        let place = rule.origin.as_ref().map(|origin| PlaceEntry {
            file: origin.file.to_string(),
            line: origin.line,
            column: origin.column,
            text: place::line(origin, sources),
        });
        RuleEntry {
            condition: rule.when.to_string(),
            place,
        }
    }
}

/// The part of a policy with this name that decides a call, on one line.
pub fn reason(name: &str, ruleset: &Ruleset, sources: &Sources, data: &SeccompData) -> String {
    match ruleset.decide(data).cause {
        Cause::Rule(_, rule) => match &rule.origin {
            Some(origin) => {
                let line = place::line(origin, sources);
                let line = line.map_or_else(String::new, |line| format!(": {line}"));
                format!("by the rule at {origin}{line}")
            }
            None => format!("by a rule of {name}"),
        },
        Cause::Default(section) => {
            let arch = section.arch;
            format!("by the default of {name} for {arch}: no rule matches")
        }
        Cause::BadArch => format!("{name} has no rules for this architecture"),
    }
}

impl fmt::Display for ExplainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.explanations.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("\n"))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match &self.cause {
            CauseEntry::Rule { .. } => "a rule decides",
            CauseEntry::Default => "no rule matches: the default decides",
            CauseEntry::BadArch => "the policy has no rules for this architecture",
            CauseEntry::Program => "the program decides; a program has no rules to name",
        };
        writeln!(f, "{} -> {}\n  {reason}", self.call, self.action)?;
        if let CauseEntry::Rule { rule } = &self.cause {
            if let Some(place) = &rule.place {
                writeln!(f, "  at {}:{}:{}", place.file, place.line, place.column)?;
                if let Some(line) = &place.text {
                    writeln!(f, "    {line}")?;
                }
            }
            if rule.condition != "true" {
                writeln!(f, "  if {}", rule.condition)?;
            }
        }
        let cached = match self.cacheable {
            true => "cacheable (kernel 5.11 or later): no instruction runs",
            false => "not cacheable: it runs on every call",
        };
        let steps = counted(self.steps, "step");
        let length = counted(self.length_insns, "instruction");
        writeln!(f, "  {steps} of {length}; {cached}")
    }
}

impl fmt::Display for ExplainCodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n\n{}", self.code, self.title, self.explanation)
    }
}
