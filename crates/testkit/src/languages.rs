//! Rulesets as texts of every policy language, and back.
//!
//! The table [`ALL`] is the place for a new language: a printer of what it can say, which need be neither short nor
//! pretty, and its parser with the options under which the text means what it says.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tamis_abi::{Action, ActionKind, Arch, Nr, syscall};
use tamis_diag::{Diagnostic, SourceId, Sources};
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::export::{self, Style};
use tamis_policy::{oci, tamis};
use tamis_rules::{CmpOp, Operand, Part, Predicate, Ruleset, Section, Subject, Test, text};

/// A policy language.
pub struct Language {
    /// Its name, as `--from` takes it.
    pub name: &'static str,
    /// A text that means a ruleset, at least for calls of its architectures; `None` if the language can't say it.
    pub print: fn(&Ruleset) -> Option<String>,
    /// What a text means, for x86_64 if it doesn't say.
    parse: fn(&mut Sources, SourceId) -> Result<Ruleset, Vec<Diagnostic>>,
}

/// All languages.
pub const ALL: [Language; 3] = [
    Language {
        name: "rules",
        print: |ruleset| Some(ruleset.to_string()),
        parse: |sources, source| text::parse(sources, source),
    },
    Language {
        name: "tamis",
        print: |ruleset| export::policy(ruleset, Style::Explicit).ok(),
        parse: |sources, source| {
            let options = tamis::Options::new(vec![Arch::X86_64]);
            let parsed = tamis::parse(sources, source, &mut NoIncludes, &options);
            parsed.ruleset.ok_or(parsed.diagnostics)
        },
    },
    Language {
        name: "oci",
        print: oci_profile,
        parse: |sources, source| {
            let options = oci::Options::docker(Arch::X86_64);
            let parsed = oci::parse(sources, source, &options).parsed;
            parsed.ruleset.ok_or(parsed.diagnostics)
        },
    },
];

impl Language {
    /// What a text of this language means.
    ///
    /// # Errors
    /// The mistakes in it.
    pub fn parse(&self, text: &str) -> Result<Ruleset, Vec<Diagnostic>> {
        let mut sources = Sources::new();
        let source = sources.add(format!("fuzz.{}", self.name), text);
        (self.parse)(&mut sources, source)
    }
}

/// The alternatives of a condition, each some tests; `None` if it has another form.
fn alternatives(condition: &Predicate) -> Option<Vec<Vec<&Test>>> {
    fn conjunction(condition: &Predicate) -> Option<Vec<&Test>> {
        match condition {
            Predicate::True => Some(Vec::new()),
            Predicate::Test(test) => Some(vec![test]),
            Predicate::All(parts) => {
                let parts: Option<Vec<Vec<&Test>>> = parts.iter().map(conjunction).collect();
                Some(parts?.concat())
            }
            Predicate::False | Predicate::Not(_) | Predicate::Any(_) => None,
        }
    }
    match condition {
        Predicate::Any(parts) if !parts.is_empty() => parts.iter().map(conjunction).collect(),
        other => Some(vec![conjunction(other)?]),
    }
}

/// The one section of a ruleset for x86_64 whose rules are about one call each, all with one action.
fn plain_section(ruleset: &Ruleset) -> Option<&Section> {
    let [section] = ruleset.sections() else {
        return None;
    };
    let mut named: Vec<u32> = Vec::new();
    for rule in &section.rules {
        let [(first, last)] = rule.syscalls.intervals() else {
            return None;
        };
        if first != last || named.contains(first) || rule.action != section.rules[0].action {
            return None;
        }
        named.push(*first);
    }
    (section.arch == Arch::X86_64).then_some(section)
}

fn oci_profile(ruleset: &Ruleset) -> Option<String> {
    let section = plain_section(ruleset)?;
    let mut entries = Vec::new();
    for rule in &section.rules {
        let (nr, _) = *rule.syscalls.intervals().first()?;
        let name = syscall::name(section.arch, Nr(nr))?;
        // An entry that does what the default does is none.
        if rule.action == section.default {
            return None;
        }
        let alternatives = alternatives(&rule.when)?;
        // libseccomp may merge other alternatives, and the profile means what it makes of them.
        if alternatives.len() > 1 && !are_values_of_one_argument(&alternatives) {
            return None;
        }
        for tests in alternatives {
            let args: Option<Vec<Value>> = tests.into_iter().map(oci_condition).collect();
            let args = args?;
            let indices = args.iter().filter_map(|arg| arg["index"].as_u64());
            let indices: BTreeSet<u64> = indices.collect();
            if indices.len() < args.len() {
                // Conditions on one argument are alternatives.
                return None;
            }
            let mut entry = oci_action("action", "errnoRet", rule.action)?;
            entry["names"] = json!([name]);
            entry["args"] = Value::Array(args);
            entries.push(entry);
        }
    }
    let mut profile = oci_action("defaultAction", "defaultErrnoRet", section.default)?;
    profile["syscalls"] = Value::Array(entries);
    Some(profile.to_string())
}

fn are_values_of_one_argument(alternatives: &[Vec<&Test>]) -> bool {
    let operand = |tests: &Vec<&Test>| match tests.as_slice() {
        [
            Test::Compare {
                operand,
                op: CmpOp::Eq,
                ..
            },
        ] => Some(*operand),
        _ => None,
    };
    let first = alternatives.first().and_then(operand);
    first.is_some() && alternatives.iter().all(|tests| operand(tests) == first)
}

/// An object with an action as engines write it.
fn oci_action(action_member: &str, errno_member: &str, action: Action) -> Option<Value> {
    let name = match action.kind {
        ActionKind::Allow => "SCMP_ACT_ALLOW",
        ActionKind::Errno => "SCMP_ACT_ERRNO",
        ActionKind::KillProcess => "SCMP_ACT_KILL_PROCESS",
        ActionKind::KillThread => "SCMP_ACT_KILL_THREAD",
        ActionKind::Log => "SCMP_ACT_LOG",
        ActionKind::Trap | ActionKind::Trace | ActionKind::Notify => return None,
    };
    let mut object = json!({action_member: name});
    if action.kind == ActionKind::Errno {
        object[errno_member] = json!(action.data);
    }
    Some(object)
}

fn oci_condition(test: &Test) -> Option<Value> {
    let index = |operand: &Operand| match (operand.subject, operand.part) {
        (Subject::Arg(arg), Part::Full) => Some(arg.index()),
        _ => None,
    };
    match test {
        Test::Compare { operand, op, value } => {
            let op = match op {
                CmpOp::Eq => "SCMP_CMP_EQ",
                CmpOp::Ne => "SCMP_CMP_NE",
                CmpOp::Lt => "SCMP_CMP_LT",
                CmpOp::Le => "SCMP_CMP_LE",
                CmpOp::Gt => "SCMP_CMP_GT",
                CmpOp::Ge => "SCMP_CMP_GE",
            };
            Some(json!({"index": index(operand)?, "value": value, "op": op}))
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => {
            let op = "SCMP_CMP_MASKED_EQ";
            Some(json!({"index": index(operand)?, "value": mask, "valueTwo": value, "op": op}))
        }
        Test::In { .. } | Test::Between { .. } => None,
    }
}
