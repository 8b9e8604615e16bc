//! `tamis explain`: what happens to a call and why, or what a diagnostic code means.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::{SeccompData, call};
use tamis_bpf::interp;
use tamis_diag::{Code, Sources};
use tamis_rules::{Cause, Origin, Rule};
use tamis_session::{Loaded, NamedProgram, Policy};

use crate::cli::load::LoadArgs;
use crate::cli::output::{print, print_json};
use crate::cli::{Failure, Global, call as cli_call, exit};

/// Explain the action for a call and the rule that decides, or a diagnostic code
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis explain profile.json 'socket(AF_VSOCK)'
  tamis explain TM0201")]
pub(crate) struct Args {
    /// A policy or program (a path, `-`, or an embedded policy's name); or a diagnostic code
    #[arg(value_name = "INPUT|CODE")]
    input: String,
    /// The calls
    #[arg(value_name = "CALL")]
    calls: Vec<String>,
    #[command(flatten)]
    load: LoadArgs,
}

/// The document for programs.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    explanations: Vec<Explanation>,
}

/// The document for a diagnostic code.
#[derive(Serialize)]
struct CodeDocument {
    schema: &'static str,
    code: &'static str,
    title: &'static str,
    explanation: &'static str,
}

/// What happens to one call.
#[derive(Serialize)]
struct Explanation {
    call: String,
    action: String,
    /// What decided: `rule`, `default`, `bad_arch`, or `program` if there is no policy to ask.
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<RuleEntry>,
    steps: u32,
    length_insns: usize,
    cacheable: bool,
}

/// The rule that decided.
#[derive(Serialize)]
struct RuleEntry {
    condition: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    /// The line of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if args.calls.is_empty() {
        return explain_code(&args.input, global);
    }
    let loaded = args.load.load(&args.input, global)?;
    let policy = match &loaded {
        Loaded::Policy(policy) => Some(policy.clone()),
        Loaded::Program(_) => None,
    };
    let raw = loaded.into_program(&tamis_compiler::CompileOptions::default())?;
    let mut explanations = Vec::new();
    for text in &args.calls {
        let data = cli_call::parse(text, args.load.call_arch())?;
        explanations.push(explain(&raw, policy.as_deref(), &data));
    }
    if global.json {
        print_json(&Document {
            schema: "tamis.explain/1",
            explanations,
        })?;
    } else {
        let texts: Vec<String> = explanations.iter().map(lines).collect();
        print(texts.join("\n").as_bytes())?;
    }
    Ok(exit::OK)
}

fn explain_code(id: &str, global: &Global) -> Result<u8, Failure> {
    let Some(Code {
        id,
        title,
        explanation,
    }) = Code::from_id(id)
    else {
        return Err(Failure::usage(
            format!("`{id}` is not a diagnostic code"),
            "name the calls to explain: `tamis explain POLICY 'socket(AF_VSOCK)'`",
        ));
    };
    if global.json {
        let document = CodeDocument {
            schema: "tamis.explain-code/1",
            code: id,
            title,
            explanation,
        };
        print_json(&document)?;
    } else {
        print(format!("{id}: {title}\n\n{explanation}\n").as_bytes())?;
    }
    Ok(exit::OK)
}

fn explain(raw: &NamedProgram, policy: Option<&Policy>, data: &SeccompData) -> Explanation {
    let run = interp::run(&raw.program, data);
    let (cause, rule) = match policy {
        None => ("program", None),
        Some(policy) => match policy.ruleset.decide(data).cause {
            Cause::Rule(_, rule) => ("rule", Some(rule_entry(rule, &policy.sources))),
            Cause::Default(_) => ("default", None),
            Cause::BadArch => ("bad_arch", None),
        },
    };
    Explanation {
        call: call::describe(data),
        action: tamis_abi::Action::from_ret(run.ret).to_string(),
        cause,
        rule,
        steps: run.steps,
        length_insns: raw.program.len(),
        cacheable: raw.is_cacheable(data),
    }
}

/// What of a policy decides about a call, in one line.
pub(crate) fn reason(policy: &Policy, data: &SeccompData) -> String {
    match policy.ruleset.decide(data).cause {
        Cause::Rule(
            _,
            Rule {
                origin: Some(origin),
                ..
            },
        ) => {
            let line = source_line(origin, &policy.sources);
            let line = line.map_or_else(String::new, |line| format!(": {line}"));
            format!("by the rule at {origin}{line}")
        }
        Cause::Rule(..) => format!("by a rule of {}", policy.name),
        Cause::Default(section) => {
            format!(
                "by the default of {} for {}: no rule matches",
                policy.name, section.arch
            )
        }
        Cause::BadArch => format!("{} has no rules for this architecture", policy.name),
    }
}

fn rule_entry(rule: &Rule, sources: &Sources) -> RuleEntry {
    let origin = rule.origin.as_ref();
    RuleEntry {
        condition: rule.when.to_string(),
        file: origin.map(|origin| origin.file.to_string()),
        line: origin.map(|origin| origin.line),
        column: origin.map(|origin| origin.column),
        text: origin.and_then(|origin| source_line(origin, sources)),
    }
}

/// The line that an origin points to.
fn source_line(origin: &Origin, sources: &Sources) -> Option<String> {
    let source = sources.iter().find(|source| source.name == origin.file)?;
    let line = source.text.lines().nth(origin.line as usize - 1)?;
    Some(line.trim().to_owned())
}

fn lines(explanation: &Explanation) -> String {
    let Explanation {
        call,
        action,
        cause,
        rule,
        steps,
        length_insns,
        cacheable,
    } = explanation;
    let mut text = format!("{call} -> {action}\n");
    let reason = match *cause {
        "rule" => "a rule decides",
        "default" => "no rule matches: the default decides",
        "bad_arch" => "the policy has no rules for this architecture",
        _ => "the program decides; a program has no rules to name",
    };
    let _ = writeln!(text, "  {reason}");
    if let Some(rule) = rule {
        if let (Some(file), Some(line), Some(column)) = (&rule.file, rule.line, rule.column) {
            let _ = writeln!(text, "  at {file}:{line}:{column}");
        }
        if let Some(line) = &rule.text {
            let _ = writeln!(text, "    {line}");
        }
        if rule.condition != "true" {
            let _ = writeln!(text, "  if {}", rule.condition);
        }
    }
    let cached = match cacheable {
        true => "cacheable (kernel 5.11 or later): no instruction runs",
        false => "not cacheable: it runs on every call",
    };
    let _ = writeln!(
        text,
        "  {steps} steps of {length_insns} instructions; {cached}"
    );
    text
}
