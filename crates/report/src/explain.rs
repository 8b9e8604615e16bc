//! The actions for calls with their reasons, or the meaning of a diagnostic code: `tamis explain`.

use std::fmt;

use serde::Serialize;
use tamis_abi::{Action, Arch, Nr, SeccompData, call, syscall};
use tamis_bpf::{Program, interp};
use tamis_diag::escape::{harmless, on_one_line};
use tamis_diag::{Sources, Span};
use tamis_export::tamis::{self as export, Style};
use tamis_policy::systemd::Listing;
use tamis_rules::{Cause, Origin, Predicate, Rule, Ruleset};

use crate::entry::counted;
use crate::{place, upper_bits};

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
    /// The word with the call in a unit's list of allowed calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<PlaceEntry>,
    /// The cause in terms of systemd, whose units have no explicit default.
    #[serde(skip)]
    pub unit_reason: Option<&'static str>,
    /// The deciding upper bits, if the kernel ignores them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper_bits: Option<String>,
    /// The cost; `None` for a policy with a filter that is too long for the kernel.
    #[serde(flatten)]
    pub cost: Option<CostEntry>,
}

/// The cost of a call.
#[derive(Serialize)]
pub struct CostEntry {
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
    /// The policy's action for other architectures.
    BadArch,
    /// The program: the input is not a policy.
    Program,
}

/// The deciding rule.
#[derive(Serialize)]
pub struct RuleEntry {
    pub condition: String,
    /// The condition in the tamis language, with the names of arguments and constants; equal to `condition` if the
    /// language can't express it.
    #[serde(skip)]
    pub named_condition: String,
    #[serde(flatten)]
    pub place: Option<PlaceEntry>,
}

/// The place of a rule or word.
#[derive(PartialEq, Serialize)]
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
    /// The most characters of a line of the text.
    #[serde(skip)]
    pub width_chars: usize,
}

impl Explanation {
    /// The action of a program for a call.
    pub fn of_program(program: &Program, cacheable: bool, data: &SeccompData) -> Explanation {
        let run = interp::run(program, data);
        Explanation {
            call: call::describe(data),
            action: Action::from_ret(run.ret).to_string(),
            cause: CauseEntry::Program,
            listed: None,
            unit_reason: None,
            upper_bits: upper_bits::note(data, |data| {
                Action::from_ret(interp::run(program, data).ret)
            }),
            cost: Some(CostEntry {
                steps: run.steps,
                length_insns: program.len(),
                cacheable,
            }),
        }
    }

    /// The action of a policy for a call, and the part of the policy that decides.
    pub fn of_policy(ruleset: &Ruleset, sources: &Sources, data: &SeccompData) -> Explanation {
        let decision = ruleset.decide(data);
        let cause = match decision.cause {
            Cause::Rule(_, rule) => CauseEntry::Rule {
                rule: RuleEntry::from_rule(rule, data, sources),
            },
            Cause::Default(_) => CauseEntry::Default,
            Cause::BadArch => CauseEntry::BadArch,
        };
        Explanation {
            call: call::describe(data),
            action: decision.action.to_string(),
            cause,
            listed: None,
            unit_reason: None,
            upper_bits: upper_bits::note(data, |data| ruleset.decide(data).action),
            cost: None,
        }
    }

    /// The action of a unit of systemd for a call, with the answer of its list of allowed calls.
    pub fn of_unit(
        ruleset: &Ruleset,
        sources: &Sources,
        data: &SeccompData,
        listing: Option<Listing>,
    ) -> Explanation {
        let mut explanation = Explanation::of_policy(ruleset, sources, data);
        explanation.unit_reason = match (&explanation.cause, listing) {
            (CauseEntry::Default, Some(Listing::Named(word))) => {
                explanation.listed = Some(PlaceEntry::of_span(word, sources));
                Some("the unit's list of allowed calls has it, and no other setting denies it")
            }
            (CauseEntry::Default, Some(Listing::Implied)) => Some(
                "every list of allowed calls has it, as a call of `@default`, and no setting of the unit denies it",
            ),
            (CauseEntry::Default, Some(Listing::Needed)) => Some(
                "systemd adds it to every list of allowed calls, as it calls it itself, and no setting of the unit denies it",
            ),
            (CauseEntry::Default, _) => {
                Some("no setting of the unit denies it, and systemd allows what none denies")
            }
            (CauseEntry::Rule { rule }, Some(Listing::Missing(list)))
                if rule.place.as_ref() == Some(&PlaceEntry::of_span(list, sources)) =>
            {
                Some("the unit's list of allowed calls doesn't have it")
            }
            _ => None,
        };
        explanation
    }
}

impl PlaceEntry {
    fn new(origin: &Origin, sources: &Sources) -> PlaceEntry {
        PlaceEntry {
            file: origin.file.to_string(),
            line: origin.line,
            column: origin.column,
            text: place::line(origin, sources),
        }
    }

    fn of_span(span: Span, sources: &Sources) -> PlaceEntry {
        PlaceEntry::new(&tamis_policy::origin(sources, span), sources)
    }
}

impl RuleEntry {
    fn from_rule(rule: &Rule, data: &SeccompData, sources: &Sources) -> RuleEntry {
        let place = rule
            .origin
            .as_ref()
            .map(|origin| PlaceEntry::new(&place::of_call(origin, data, sources), sources));
        RuleEntry {
            condition: rule.when.to_string(),
            named_condition: named(&rule.when, data),
            place,
        }
    }
}

/// A rule's condition for a call in the tamis language, or in the text form.
fn named(when: &Predicate, data: &SeccompData) -> String {
    let named = Arch::of_call(data.arch, data.nr).and_then(|arch| {
        let call = syscall::name(arch, Nr(data.nr));
        export::condition(arch, call, when, Style::Named).ok()
    });
    named.unwrap_or_else(|| when.to_string())
}

/// The part of the policy `name` that decides a call, on one line.
pub fn reason(name: &str, ruleset: &Ruleset, sources: &Sources, data: &SeccompData) -> String {
    let part = part(name, ruleset, sources, data);
    match upper_bits::note(data, |data| ruleset.decide(data).action) {
        Some(note) => format!("{part}; {note}"),
        None => part,
    }
}

fn part(name: &str, ruleset: &Ruleset, sources: &Sources, data: &SeccompData) -> String {
    let name = on_one_line(name);
    match ruleset.decide(data).cause {
        Cause::Rule(_, rule) => match &rule.origin {
            Some(origin) => {
                let origin = place::of_call(origin, data, sources);
                let line = place::line(&origin, sources);
                let line = line.map_or_else(String::new, |line| format!(": {}", harmless(&line)));
                format!("by the rule at {}{line}", place::text(&origin))
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

impl fmt::Display for PlaceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  at {}:{}:{}", self.file, self.line, self.column)?;
        let mut line = self.text.iter();
        line.try_for_each(|line| writeln!(f, "    {line}"))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = match &self.cause {
            CauseEntry::Rule { .. } => "a rule decides",
            CauseEntry::Default => "no rule matches: the policy's default action decides",
            CauseEntry::BadArch => "the policy has no rules for this architecture",
            CauseEntry::Program => "the program decides; a program has no rules to name",
        };
        let reason = self.unit_reason.unwrap_or(usual);
        writeln!(f, "{} -> {}\n  {reason}", self.call, self.action)?;
        if let Some(place) = &self.listed {
            write!(f, "{place}")?;
        }
        if let CauseEntry::Rule { rule } = &self.cause {
            if let Some(place) = &rule.place {
                write!(f, "{place}")?;
            }
            if rule.condition != "true" {
                writeln!(f, "  if {}", rule.named_condition)?;
            }
        }
        if let Some(note) = &self.upper_bits {
            writeln!(f, "  {note}")?;
        }
        let Some(cost) = &self.cost else {
            return writeln!(f, "  its filter would be too long for the kernel");
        };
        let cached = match cost.cacheable {
            true => "cacheable (kernel 5.11 or later): no instruction runs",
            false => "not cacheable: it runs on every call",
        };
        let steps = counted(cost.steps, "step");
        let length = counted(cost.length_insns, "instruction");
        writeln!(f, "  {steps} of {length}; {cached}")
    }
}

impl fmt::Display for ExplainCodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n", self.code, self.title)?;
        self.explanation.lines().try_for_each(|paragraph| {
            let wrapped = wrapped(paragraph, self.width_chars);
            wrapped.iter().try_for_each(|line| writeln!(f, "{line}"))
        })
    }
}

/// A paragraph as lines, wrapped between words; an empty one is an empty line.
fn wrapped(paragraph: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in paragraph.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
