//! `tamis convert`: from a policy or program to a policy in another language.

use std::fmt::Write;
use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use tamis_abi::{Action, Arch};
use tamis_analysis::{CaseLimits, decompile};
use tamis_convert::{self as convert, Converted, Refusal, Source};
use tamis_diag::{Diagnostic, Severity, Sources, Span, code};
use tamis_policy::export::{self, Exporter, Loss, Machine};
use tamis_policy::installation::Installation;
use tamis_prover::{Function, Space, Verdict};
use tamis_rules::{Origin, Ruleset};
use tamis_session::Loaded;

use crate::cli::changes::{self, Change};
use crate::cli::judged::judge_reading;
use crate::cli::limits::LimitArgs;
use crate::cli::load::LoadArgs;
use crate::cli::output::{self, OutputArgs};
use crate::cli::place::span;
use crate::cli::{Failure, Global, exit};

/// Convert a policy to another language, and report what it cannot express
#[derive(clap::Args)]
#[command(after_help = "\
The output is parsed again as on its target machines, and compared with the policy for every call: it \
is equivalent, or a warning says what was lost and what replaces it. It is never looser than the \
policy; if that is not possible, the conversion fails. With --strict every loss is an error, and \
nothing is written.
Examples:
  tamis convert policy.tamis --to oci -o profile.json
  tamis convert docker.json --arch x86_64 --to tamis
  tamis convert filter.bpf --to systemd -o filter.conf
  tamis convert profile.json --to spo | kubectl apply -f -")]
pub(crate) struct Args {
    /// The policy or program: a path, `-`, or the name of an embedded policy
    #[arg(default_value = "-")]
    input: String,
    /// The language to write
    #[arg(long, value_name = "LANGUAGE", value_parser = language())]
    to: &'static Exporter,
    /// The name of the resource, for languages with names [default: the file's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Reads the value of `--to` and lists the languages in the help.
fn language() -> impl TypedValueParser<Value = &'static Exporter> {
    let all = export::ALL.into_iter();
    let values = all.map(|exporter| PossibleValue::new(exporter.name).help(exporter.about));
    PossibleValuesParser::new(values).map(|name| {
        let found = export::find(&name);
        found.expect("the parser takes no other value")
    })
}

/// The document for programs.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    input: &'a str,
    to: &'static str,
    machines: Vec<MachineEntry>,
    verdict: &'static str,
    losses: Vec<LossEntry<'a>>,
    changes: Vec<ChangeEntry>,
    is_complete: bool,
    text: &'a str,
}

/// A machine that the text is for.
#[derive(Serialize)]
struct MachineEntry {
    native: &'static str,
    arches: Vec<&'static str>,
}

/// Something that the language can't say.
#[derive(Serialize)]
struct LossEntry<'a> {
    code: &'static str,
    message: &'a str,
    kept: &'a str,
    calls: &'a [&'static str],
    arches: Vec<&'static str>,
    places: Vec<String>,
}

/// Calls that are answered otherwise in the same way.
#[derive(Serialize)]
struct ChangeEntry {
    arches: Vec<String>,
    calls: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    condition: String,
    policy: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.input)?;
    let loaded = args.load.load(&args.input, global)?;
    let gave_up = |limit| args.limits.gave_up("nothing was written", limit);
    let mut space = Space::stoppable(args.limits.limits(), args.limits.stop());
    let function = space.subject(&loaded.subject()).map_err(gave_up)?;
    let (source, origins) = about(args, &loaded);
    let function = match &loaded {
        Loaded::Program(_) => narrowed(&mut space, function, &args.load.arches).map_err(gave_up)?,
        Loaded::Policy(_) => function,
    };
    let converted = convert::convert(&mut space, function, args.to, &source);
    let converted = converted.map_err(|refusal| failure(args, refusal))?;
    if matches!(loaded, Loaded::Program(_)) {
        confirm_reading(args, &mut space, function, loaded)?;
    }
    let diagnostics: Vec<Diagnostic> = converted
        .losses
        .iter()
        .map(|loss| diagnostic(loss, &origins, args.load.is_strict()))
        .collect();
    if args.load.is_strict() && !diagnostics.is_empty() {
        return Err(Failure::Diagnostics(diagnostics, origins.sources));
    }
    if global.json {
        let document = document(args, &source, &converted, &origins);
        args.output.text(&output::json(&document)?)?;
        return Ok(exit::OK);
    }
    global.warn(&diagnostics, &origins.sources);
    global.notice(&summary(args.to, &source.name, &converted));
    args.output.text(&converted.text)?;
    Ok(exit::OK)
}

/// Lets the judge confirm what the prover has read in a program.
fn confirm_reading(
    args: &Args,
    space: &mut Space,
    function: Function,
    program: Loaded,
) -> Result<(), Failure> {
    let ruleset = decompile(space, function, &CaseLimits::default());
    let ruleset = ruleset.map_err(|error| Failure::Message {
        message: format!("what the program means could not be confirmed: {error}"),
        help: None,
        code: exit::GAVE_UP,
    })?;
    judge_reading(&[program], &args.load.arches, &ruleset, &args.limits)?;
    Ok(())
}

/// Where the rules of a policy stand.
struct Origins {
    ruleset: Option<Ruleset>,
    sources: Sources,
}

/// What is known of the input beside its meaning.
fn about(args: &Args, loaded: &Loaded) -> (Source, Origins) {
    let mut arches = args.load.arches.clone();
    let (name, wanted, origins) = match loaded {
        Loaded::Policy(policy) => {
            let origins = Origins {
                ruleset: Some(policy.ruleset.clone()),
                sources: policy.sources.clone(),
            };
            let sections = policy.ruleset.sections().iter();
            arches = sections.map(|section| section.arch).collect();
            (&policy.name, policy.installation.clone(), origins)
        }
        Loaded::Program(raw) => {
            let origins = Origins {
                ruleset: None,
                sources: Sources::new(),
            };
            (&raw.name, Installation::default(), origins)
        }
    };
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    let source = Source {
        name: args
            .name
            .clone()
            .unwrap_or_else(|| stem.unwrap_or(name).to_owned()),
        arches,
        installation: wanted,
    };
    (source, origins)
}

/// What a program does for these architectures; all of them if there is none.
fn narrowed(
    space: &mut Space,
    function: Function,
    arches: &[Arch],
) -> Result<Function, tamis_prover::LimitReached> {
    match arches {
        [] => Ok(function),
        arches => tamis_analysis::narrowed(space, function, arches, Action::KILL_PROCESS.ret()),
    }
}

fn failure(args: &Args, refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Limit(limit) => args.limits.gave_up("nothing was written", limit),
        Refusal::Inexpressible(diagnostic) => {
            Failure::Diagnostics(vec![*diagnostic], Sources::new())
        }
        Refusal::Mistake(message) => Failure::Message {
            message,
            help: Some("please report this with the policy; nothing was written".to_owned()),
            code: exit::BUG,
        },
    }
}

impl Origins {
    /// The most places that are shown for a loss.
    const MAX_PLACES: usize = 3;

    /// Where the first rules about the calls of a loss stand.
    fn of(&self, loss: &Loss) -> Vec<&Origin> {
        let mut places: Vec<&Origin> = Vec::new();
        let sections = self.ruleset.iter().flat_map(Ruleset::sections);
        for section in sections {
            if !loss.arches.is_empty() && !loss.arches.contains(&section.arch) {
                continue;
            }
            let numbers = loss.calls.iter();
            for nr in numbers.filter_map(|name| tamis_abi::syscall::number(section.arch, name)) {
                let rules = section.rules.iter();
                let about = rules.filter(|rule| rule.syscalls.contains(nr.0));
                for origin in about.filter_map(|rule| rule.origin.as_ref()) {
                    if places.len() < Origins::MAX_PLACES && !places.contains(&origin) {
                        places.push(origin);
                    }
                }
            }
        }
        places
    }

    fn spans(&self, loss: &Loss) -> Vec<Span> {
        let places = self.of(loss).into_iter();
        places
            .filter_map(|origin| span(origin, &self.sources))
            .collect()
    }
}

/// A loss as it is told.
fn diagnostic(loss: &Loss, origins: &Origins, is_strict: bool) -> Diagnostic {
    let severity = match is_strict {
        true => Severity::Error,
        false => Severity::Warning,
    };
    let mut diagnostic = Diagnostic::new(severity, loss.code, &loss.message);
    for span in origins.spans(loss) {
        diagnostic = diagnostic.label(span, "");
    }
    let diagnostic = diagnostic.note(format!("instead: {}", loss.kept));
    match loss.code {
        code::EXPORT_ARCHES if !loss.calls.is_empty() => {
            diagnostic.help("with `--arch`, one export per architecture loses nothing")
        }
        _ => diagnostic,
    }
}

/// How many changes are listed.
const MAX_CHANGES: usize = 5;
/// How many calls of a change are named.
const MAX_CALLS: usize = 6;

/// What the proof says, and for which machines.
fn summary(to: &Exporter, name: &str, converted: &Converted) -> String {
    let mut text = format!("{name}: {}", verdict_in_words(converted));
    let changes = changes::group(&converted.differences);
    for change in changes.iter().take(MAX_CHANGES) {
        let shown = change.calls.len().min(MAX_CALLS);
        let mut calls = change.calls[..shown].join(", ");
        if shown < change.calls.len() {
            let _ = write!(calls, " and {} more", change.calls.len() - shown);
        }
        let (arches, old, new) = (change.arches.join(", "), change.old, change.new);
        let _ = write!(text, "\n  {arches}: {calls}: {old} -> {new}");
        if let Some(example) = example(change) {
            let _ = write!(text, "\n    {example}");
        }
    }
    if changes.len() > MAX_CHANGES {
        let more = changes.len() - MAX_CHANGES;
        let _ = write!(text, "\n  and {more} more changes; `tamis diff` lists them");
    }
    let _ = write!(text, "\n{}", machines_in_words(to, &converted.machines));
    text
}

fn verdict_in_words(converted: &Converted) -> &'static str {
    match converted.verdict {
        Verdict::Equal if converted.losses.is_empty() => "proved equivalent",
        Verdict::Equal => "proved equivalent for all calls of its architectures",
        Verdict::SameActions => "proved to take the same actions, with other data:",
        Verdict::Stricter => "proved to be stricter, never looser:",
        Verdict::Looser | Verdict::Incomparable => "not as strict",
    }
}

/// For whom the text is meant: others would apply it to architectures of their own.
fn machines_in_words(to: &Exporter, machines: &[Machine]) -> String {
    let machine = |machine: &Machine| {
        let others = machine
            .arches
            .iter()
            .filter(|arch| **arch != machine.native);
        let others: Vec<&str> = others.map(|arch| arch.name()).collect();
        match others.as_slice() {
            [] => machine.native.name().to_owned(),
            others => format!("{} (with {})", machine.native, others.join(", ")),
        }
    };
    let machines: Vec<String> = machines.iter().map(machine).collect();
    let machines = machines.join(" or ");
    match to.states_arches {
        true => format!("for calls of {machines}"),
        false => format!(
            "only for {machines}; on other machines it would decide calls that the policy does not cover"
        ),
    }
}

fn example(change: &Change) -> Option<String> {
    let (input, _) = change.example.as_ref()?;
    Some(input.describe_briefly())
}

fn document<'a>(
    args: &Args,
    source: &'a Source,
    converted: &'a Converted,
    origins: &Origins,
) -> Document<'a> {
    let names = |arches: &[Arch]| arches.iter().map(|arch| arch.name()).collect();
    let changes = changes::group(&converted.differences).into_iter();
    Document {
        schema: "tamis.convert/1",
        input: &source.name,
        to: args.to.name,
        machines: converted
            .machines
            .iter()
            .map(|machine| MachineEntry {
                native: machine.native.name(),
                arches: names(&machine.arches),
            })
            .collect(),
        verdict: match converted.verdict {
            Verdict::Equal => "equal",
            Verdict::SameActions => "same_actions",
            Verdict::Stricter => "stricter",
            Verdict::Looser => "looser",
            Verdict::Incomparable => "incomparable",
        },
        losses: converted
            .losses
            .iter()
            .map(|loss| LossEntry {
                code: loss.code.id,
                message: &loss.message,
                kept: &loss.kept,
                calls: &loss.calls,
                arches: names(&loss.arches),
                places: origins.of(loss).iter().map(ToString::to_string).collect(),
            })
            .collect(),
        changes: changes.map(change_entry).collect(),
        is_complete: converted.is_complete,
        text: &converted.text,
    }
}

fn change_entry(change: Change) -> ChangeEntry {
    ChangeEntry {
        example: example(&change),
        arches: change.arches,
        calls: change.calls,
        condition: change.condition,
        policy: change.old.to_string(),
        text: change.new.to_string(),
    }
}
