//! `tamis convert`: from a policy or program to a policy in another language.

use std::collections::BTreeSet;
use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis_abi::{Action, Arch};
use tamis_analysis::{CaseLimits, decompile};
use tamis_diag::words::joined;
use tamis_diag::{Diagnostic, Severity, Sources, Span};
use tamis_export::convert::{self, Converted, Refusal, Source};
use tamis_export::{self as export, Exporter, Loss};
use tamis_lint::is_essential;
use tamis_policy::installation::Installation;
use tamis_prover::{Function, LimitReached, Space};
use tamis_report::convert::ConvertReport;
use tamis_report::place::span;
use tamis_rules::{Origin, Ruleset};
use tamis_session::Loaded;

use crate::cli::judged::judge_reading;
use crate::cli::limits::LimitArgs;
use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, show_beside};
use crate::cli::{Failure, Global, budget, exit, input};
use crate::code;

/// Convert a policy to another language, and report losses
#[derive(clap::Args)]
#[command(after_help = "\
The output is parsed again as on its target machines, and compared with the policy for every call: it \
is equivalent, or a warning says what was lost and what replaces it. It is never looser than the \
policy; if that is not possible, the conversion fails. So it does if a call is lost as a whole that programs can't do \
without, unless --allow-losses is given. With --strict every loss is an error, and \
nothing is written.
Examples:
  tamis convert policy.tamis --to oci -o profile.json
  tamis convert docker.json --arch x86_64 --to tamis
  tamis convert filter.bpf --to systemd -o filter.conf
  tamis convert profile.json --to spo | kubectl apply -f -")]
pub(crate) struct Args {
    /// The policy or program: a path, `-`, or an embedded policy's name
    #[arg(default_value = "-", value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    /// The language to write
    #[arg(long, value_name = "LANGUAGE", value_parser = language())]
    to: &'static Exporter,
    /// The name of the resource, for languages with names [default: the file's name]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    name: Option<String>,
    /// Write the text even if it denies calls that programs can't do without
    #[arg(long)]
    allow_losses: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Parses the value of `--to` and lists the languages in the help.
pub(super) fn language() -> impl TypedValueParser<Value = &'static Exporter> {
    let all = export::ALL.into_iter();
    let values = all.map(|exporter| PossibleValue::new(exporter.name).help(exporter.about));
    PossibleValuesParser::new(values).map(|name| {
        let found = export::find(&name);
        found.expect("the parser takes no other value")
    })
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.input)?;
    let load = args.load.for_target(args.to)?;
    let loaded = load.load(&args.input, global)?;
    let (mut source, origins) = source_and_origins(args, &loaded);
    if args.to.name == "systemd" {
        source.systemd = load.systemd();
        let assumed = source.systemd.assumed().diagnostic("written for");
        global.warn(assumed.as_slice(), &Sources::new());
    }
    let converted = converted(&loaded, args.to, &source, &args.limits, &args.load.arches)?;
    let wanted = Wanted {
        to: args.to,
        is_strict: args.load.is_strict(),
        allows_losses: args.allow_losses,
    };
    let report = reported(converted, &source.name, &wanted, &origins, global)?;
    if !global.json {
        global.notice(&report.to_string());
    }
    let write = |output: &OutputArgs| output.text(&report.text);
    show_beside(&args.output, write, &report, global)?;
    Ok(exit::OK)
}

/// The wanted text.
pub(super) struct Wanted {
    pub(super) to: &'static Exporter,
    /// Whether each loss is an error.
    pub(super) is_strict: bool,
    /// Whether a call that programs can't do without may be lost.
    pub(super) allows_losses: bool,
}

/// The report of a conversion, with its warnings printed.
///
/// # Errors
/// If a loss is an error.
pub(super) fn reported(
    converted: Converted,
    name: &str,
    wanted: &Wanted,
    origins: &Origins,
    global: &Global,
) -> Result<ConvertReport, Failure> {
    let losses = converted.losses.iter();
    let losses = losses.map(|loss| diagnostic(loss, wanted.to, origins, wanted.is_strict));
    let lost = loss_diagnostic(&converted, wanted.to, wanted.allows_losses);
    let lost = lost.map(|lost| Diagnostic {
        severity: match wanted.is_strict {
            true => Severity::Error,
            false => lost.severity,
        },
        ..lost
    });
    let diagnostics: Vec<Diagnostic> = lost.into_iter().chain(losses).collect();
    let is_refused = diagnostics.iter().any(Diagnostic::is_error);
    if is_refused || wanted.is_strict && !diagnostics.is_empty() {
        let sources = origins.sources.clone();
        return Err(Failure::Diagnostics(diagnostics, sources));
    }
    let places = |loss: &Loss| {
        let places = origins.origins(loss).into_iter();
        places.map(ToString::to_string).collect()
    };
    if !global.json {
        global.warn(&diagnostics, &origins.sources);
    }
    Ok(ConvertReport::from_conversion(
        name, wanted.to, converted, places,
    ))
}

/// The input in another language: equivalent, or stricter with reported losses.
pub(super) fn converted(
    loaded: &Loaded,
    to: &'static Exporter,
    source: &Source,
    limits: &LimitArgs,
    arches: &[Arch],
) -> Result<Converted, Failure> {
    let gave_up = |limit| limits.gave_up("nothing was written", limit);
    let stop = budget::stop();
    let mut space = Space::stoppable(limits.limits(), stop.clone());
    let refused = |refusal| failure(limits, refusal);
    match loaded {
        Loaded::Policy(policy) => {
            let function = space.ruleset(&policy.ruleset).map_err(Refusal::Limit);
            let converted =
                function.and_then(|function| convert::convert(&mut space, function, to, source));
            let converted = match converted {
                Err(Refusal::Limit(LimitReached::Nodes | LimitReached::Steps)) => {
                    convert::convert_complex(&policy.ruleset, to, source, limits.limits(), &stop)
                }
                converted => converted,
            };
            converted.map_err(refused)
        }
        Loaded::Program(_) => {
            let function = space.subject(&loaded.subject()).map_err(gave_up)?;
            let function = narrowed(&mut space, function, arches).map_err(gave_up)?;
            let converted = convert::convert(&mut space, function, to, source).map_err(refused)?;
            // A proof confirms the ruleset that is decompiled from the program.
            let ruleset = decompile(&mut space, function, &CaseLimits::default());
            let ruleset = ruleset.map_err(|error| {
                let message = format!("what the program means could not be confirmed: {error}");
                Failure::gave_up(message, None)
            })?;
            judge_reading(std::slice::from_ref(loaded), arches, &ruleset, limits)?;
            Ok(converted)
        }
    }
}

/// The diagnostic for calls that the policy executes and the text denies completely: an error if every program needs
/// one of them.
pub(super) fn loss_diagnostic(
    converted: &Converted,
    to: &Exporter,
    is_allowed: bool,
) -> Option<Diagnostic> {
    let names: BTreeSet<&str> = converted.lost.iter().map(|(_, name)| *name).collect();
    let (essential, others): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| is_essential(name));
    let all = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        joined(&names, "and")
    };
    let said = |names: &[&str]| {
        let (names, plural) = (all(names), to.plural);
        format!(
            "in {plural} every call of {names} would be denied, of which the policy allows some"
        )
    };
    match (essential.as_slice(), others.as_slice()) {
        ([], []) => None,
        ([], others) => Some(Diagnostic::warning(code::EXPORT_LOST, said(others))),
        (essential, others) => {
            let severity = match is_allowed {
                true => Severity::Warning,
                false => Severity::Error,
            };
            let diagnostic = Diagnostic::new(severity, code::EXPORT_LOST, said(essential)).note(
                match essential {
                    [_] => "programs can't do without it",
                    _ => "programs can't do without them",
                },
            );
            let diagnostic = match others {
                [] => diagnostic,
                others => diagnostic.note(format!("so would every call of {}", all(others))),
            };
            Some(match is_allowed {
                true => diagnostic,
                false => diagnostic.help(
                    "allow all calls of these in the policy, or take a language that has the conditions; \
                     `--allow-losses` writes the text all the same",
                ),
            })
        }
    }
}

/// The places of a policy's rules.
pub(super) struct Origins {
    pub(super) ruleset: Option<Ruleset>,
    pub(super) sources: Sources,
}

/// The name, options and rules of the input.
fn source_and_origins(args: &Args, loaded: &Loaded) -> (Source, Origins) {
    let mut arches = args.load.arches.to_vec();
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
        ..Source::default()
    };
    (source, origins)
}

/// The function of a program for these architectures, or for all if none are given.
pub(super) fn narrowed(
    space: &mut Space,
    function: Function,
    arches: &[Arch],
) -> Result<Function, tamis_prover::LimitReached> {
    match arches {
        [] => Ok(function),
        arches => tamis_analysis::narrowed(space, function, arches, Action::KILL_PROCESS.ret()),
    }
}

pub(super) fn failure(limits: &LimitArgs, refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Limit(limit) => limits.gave_up("nothing was written", limit),
        Refusal::Inexpressible(diagnostic) => {
            Failure::Diagnostics(vec![*diagnostic], Sources::new())
        }
        Refusal::Mistake(message) => Failure::bug(
            message,
            "please report this with the policy; nothing was written",
        ),
    }
}

impl Origins {
    /// The most places that are shown for a loss.
    const MAX_PLACES: usize = 3;

    /// The places of the first rules for the calls of a loss.
    fn origins(&self, loss: &Loss) -> Vec<&Origin> {
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
        let places = self.origins(loss).into_iter();
        places
            .filter_map(|origin| span(origin, &self.sources))
            .collect()
    }
}

/// The diagnostic for a loss.
fn diagnostic(loss: &Loss, to: &Exporter, origins: &Origins, is_strict: bool) -> Diagnostic {
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
        code::EXPORT_CONDITION if to.name == "systemd" && loss.calls != ["socket"] => diagnostic
            .help("`ExecStart=tamis exec -p FILTER PROGRAM` keeps all conditions, as does `tamis harden` for a unit"),
        _ => diagnostic,
    }
}
