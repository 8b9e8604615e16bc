//! `tamis combine`: several policies as one.

use std::collections::BTreeMap;
use std::path::Path;

use tamis_abi::{Action, Arch, SeccompData, syscall};
use tamis_algebra::{Impossible, Operation, Origin, Unproved, may_execute};
use tamis_analysis::{CaseLimits, decompile};
use tamis_diag::{Diagnostic, Sources};
use tamis_export::Exporter;
use tamis_export::convert::{self, Converted, Refusal, Source};
use tamis_policy::installation::Installation;
use tamis_prover::{Answer, Function, LimitReached, Space, Subject, decide_by_gates};
use tamis_report::combine::{Bound, CombineReport, OriginEntry, origin_note};
use tamis_rules::{Cause, Decision, Rule, Ruleset, Section};
use tamis_session::Loaded;

use super::convert::{Origins, Wanted, failure, language, narrowed, reported};
use crate::cli::judged::judge_reading;
use crate::cli::limits::LimitArgs;
use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, show_beside};
use crate::cli::{Failure, Global, budget, exit, input};
use crate::code;

/// Intersect, unite, overlay or subtract policies, with proof
#[derive(clap::Args)]
#[command(after_help = "\
Inputs are policies in any language, and programs; the oldest is first. The result is proved to be the function of the \
operation for every call: that of --intersect is the function of a stack of the inputs. Where two have the same action with \
different data, such as errno values, the newest decides. Comments in the result name the inputs from which calls come.
Examples:
  tamis combine --intersect docker.json policy.tamis -o both.tamis
  tamis combine --overlay docker.json policy.tamis --to oci -o profile.json
  tamis combine --minus old.json new.json --arch x86_64
Exit status: 0 done; 2 no call would be allowed, or the language can't express it; 3 gave up.")]
pub(crate) struct Args {
    #[command(flatten)]
    operation: OperationArgs,
    /// The policies or programs, the oldest first
    #[arg(required = true, num_args = 2.., value_name = "INPUT", value_parser = input::PolicyParser, hide_possible_values = true)]
    inputs: Vec<String>,
    /// The language to write
    #[arg(long, value_name = "LANGUAGE", default_value = "tamis", value_parser = language())]
    to: &'static Exporter,
    /// The name of the resource, for languages with names [default: the name of the first input]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    name: Option<String>,
    /// Write the text even if it denies calls that programs can't do without
    #[arg(long, hide_short_help = true)]
    allow_losses: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The operation.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct OperationArgs {
    /// Take the strictest action, as the kernel does for a stack
    #[arg(long)]
    intersect: bool,
    /// Take the loosest action
    #[arg(long)]
    union: bool,
    /// Lay the rules of later policies over the first one
    #[arg(long)]
    overlay: bool,
    /// Remove from the first policy what others allow, too
    #[arg(long)]
    minus: bool,
}

impl OperationArgs {
    fn operation(&self) -> Operation {
        match (self.intersect, self.union, self.overlay) {
            (true, ..) => Operation::Intersect,
            (_, true, _) => Operation::Union,
            (_, _, true) => Operation::Overlay,
            _ => Operation::Minus,
        }
    }
}

/// An input with its rules.
struct Part {
    name: String,
    ruleset: Ruleset,
    installation: Installation,
}

/// A proved combination.
struct Combined {
    meaning: Meaning,
    arches: Vec<Arch>,
    origins: BTreeMap<&'static str, Origin>,
}

/// The meaning of a combination.
enum Meaning {
    /// As a diagram.
    Function(Function),
    /// As rules, if its diagram reaches a limit.
    Rules(Ruleset),
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    for input in &args.inputs {
        args.output.refuse_to_replace(input)?;
    }
    let operation = args.operation.operation();
    let load = args.load.for_target(args.to)?;
    let mut loaded = Vec::new();
    let later = match operation {
        Operation::Overlay => load.for_explicit_rules(),
        Operation::Intersect | Operation::Union | Operation::Minus => load.clone(),
    };
    for input in &args.inputs {
        let load = if loaded.is_empty() { &load } else { &later };
        loaded.push(load.load_among(input, global)?);
    }
    load.check_options(&loaded)?;
    let parts = parts(args, operation, loaded)?;
    let installation = installation(operation, &parts)?;
    let mut space = Space::stoppable(args.limits.limits(), budget::stop());
    let combined = combined(args, operation, &parts, &mut space)?;
    let (origins, notes) = origins(&parts, &combined);
    let mut source = Source {
        name: args.name.clone().unwrap_or_else(|| stem(&parts[0].name)),
        arches: combined.arches,
        installation,
        notes,
        ..Source::default()
    };
    if args.to.name == "systemd" {
        source.systemd = load.systemd();
        let assumed = source.systemd.assumed().diagnostic("written for");
        global.warn(assumed.as_slice(), &Sources::new());
    }
    let converted = converted(args, &combined.meaning, &mut space, &source)?;
    let wanted = Wanted {
        to: args.to,
        is_strict: args.load.is_strict(),
        allows_losses: args.allow_losses,
    };
    let places = Origins {
        ruleset: None,
        sources: Sources::new(),
    };
    let report = CombineReport {
        operation: operation.name(),
        inputs: parts.into_iter().map(|part| part.name).collect(),
        bound: bound(operation),
        origins,
        converted: reported(converted, "the result", &wanted, &places, global)?,
    };
    if !global.json {
        global.notice(&report.to_string());
    }
    let write = |output: &OutputArgs| output.text(&report.converted.text);
    show_beside(&args.output, write, &report, global)?;
    Ok(exit::OK)
}

/// The combination in the language.
fn converted(
    args: &Args,
    meaning: &Meaning,
    space: &mut Space,
    source: &Source,
) -> Result<Converted, Failure> {
    let limits = &args.limits;
    match meaning {
        Meaning::Function(function) => convert::convert(space, *function, args.to, source)
            .map_err(|refusal| failure(limits, refusal)),
        Meaning::Rules(ruleset) => {
            let stop = budget::stop();
            let converted =
                convert::convert_complex(ruleset, args.to, source, limits.limits(), &stop);
            converted.map_err(|refusal| match refusal {
                Refusal::Limit(limit) => {
                    limits.gave_up("the combination is proved and its text is not", limit)
                }
                refusal => failure(limits, refusal),
            })
        }
    }
}

/// The proved relation of a result to its parts.
fn bound(operation: Operation) -> Bound {
    match operation {
        Operation::Intersect => Bound::NotLooser,
        Operation::Union => Bound::NotStricter,
        Operation::Overlay => Bound::None,
        Operation::Minus => Bound::NotLooserThanFirst,
    }
}

/// The rules of all inputs; those of programs are decompiled and confirmed.
fn parts(args: &Args, operation: Operation, loaded: Vec<Loaded>) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for one in loaded {
        let is_laid_over = !parts.is_empty() && operation == Operation::Overlay;
        parts.push(match one {
            Loaded::Policy(policy) if is_laid_over && !policy.kind.has_separate_default() => {
                return Err(Failure::usage(
                    format!(
                        "{} is {}: it has no rules apart from its default",
                        policy.name,
                        policy.kind.title()
                    ),
                    "`tamis convert` writes it in the tamis language",
                ));
            }
            Loaded::Policy(policy) => Part {
                name: policy.name,
                ruleset: policy.ruleset,
                installation: policy.installation,
            },
            Loaded::Program(raw) if is_laid_over => {
                return Err(Failure::usage(
                    format!(
                        "{} is a program: it has no rules to lay over others",
                        raw.name
                    ),
                    "`tamis bpf decompile` writes a policy, in which you choose the default",
                ));
            }
            Loaded::Program(_) => program_part(args, &one)?,
        });
    }
    Ok(parts)
}

/// The rules of a program.
fn program_part(args: &Args, loaded: &Loaded) -> Result<Part, Failure> {
    let Loaded::Program(raw) = loaded else {
        unreachable!("policies have rules of their own");
    };
    let gave_up = |limit| args.limits.gave_up("nothing was written", limit);
    let arches = &args.load.arches;
    let mut space = Space::stoppable(args.limits.limits(), budget::stop());
    let function = space.program(&raw.program).map_err(gave_up)?;
    let function = narrowed(&mut space, function, arches).map_err(gave_up)?;
    let ruleset = decompile(&mut space, function, &CaseLimits::default());
    let ruleset = ruleset
        .map_err(|error| Failure::gave_up(format!("{} has no rules: {error}", raw.name), None))?;
    judge_reading(std::slice::from_ref(loaded), arches, &ruleset, &args.limits)?;
    Ok(Part {
        name: raw.name.clone(),
        ruleset,
        installation: Installation::default(),
    })
}

fn installation(operation: Operation, parts: &[Part]) -> Result<Installation, Failure> {
    let all: Vec<&Installation> = parts.iter().map(|part| &part.installation).collect();
    tamis_algebra::installation(operation, &all).map_err(|two| {
        let of = |index: usize| {
            let part = &parts[index];
            let path = part.installation.listener_path.as_deref();
            format!("{} in {}", path.unwrap_or("none"), part.name)
        };
        let message = format!("{two}: {}, {}", of(two.0), of(two.1));
        Failure::usage(message, "give both policies the same `listenerPath`")
    })
}

/// The combination, proved.
fn combined(
    args: &Args,
    operation: Operation,
    parts: &[Part],
    space: &mut Space,
) -> Result<Combined, Failure> {
    let gave_up = |limit| args.limits.gave_up("nothing was written", limit);
    let [first, others @ ..] = parts else {
        unreachable!("there are at least two inputs");
    };
    let others: Vec<&Ruleset> = others.iter().map(|part| &part.ruleset).collect();
    let ruleset = tamis_algebra::combine(operation, &first.ruleset, &others);
    let ruleset = ruleset.map_err(|impossible| impossible_failure(&impossible))?;
    let sections = ruleset.sections().iter();
    let arches: Vec<Arch> = sections.map(|section| section.arch).collect();
    let function = match tamis_algebra::prove(space, operation, &first.ruleset, &others, &ruleset) {
        Ok(function) => function,
        Err(Unproved::Limit(LimitReached::Nodes | LimitReached::Steps)) => {
            prove_by_gates(args, operation, (&first.ruleset, &others), &ruleset)?;
            if allows_nothing(args, &ruleset) {
                return Err(nothing_allowed(operation, parts));
            }
            return Ok(Combined {
                meaning: Meaning::Rules(ruleset),
                arches,
                origins: BTreeMap::new(),
            });
        }
        Err(Unproved::Limit(limit)) => return Err(gave_up(limit)),
        Err(unproved @ Unproved::Refuted(_)) => return Err(bug(&unproved)),
    };
    let mut values = space.values(function).into_iter();
    if !values.any(may_execute) {
        return Err(nothing_allowed(operation, parts));
    }
    let functions = parts.iter().map(|part| space.ruleset(&part.ruleset));
    let functions: Result<Vec<Function>, _> = functions.collect();
    let functions = functions.map_err(gave_up)?;
    Ok(Combined {
        origins: tamis_algebra::origins(space, function, &functions, &arches),
        meaning: Meaning::Function(function),
        arches,
    })
}

/// Whether gates prove that every call is denied: that denying what is allowed changes nothing.
fn allows_nothing(args: &Args, ruleset: &Ruleset) -> bool {
    let denied = |action: Action| match may_execute(action.ret()) {
        true => Action::KILL_PROCESS,
        false => action,
    };
    let sections = ruleset.sections().iter().map(|section| Section {
        arch: section.arch,
        rules: section
            .rules
            .iter()
            .cloned()
            .map(|rule| Rule {
                action: denied(rule.action),
                ..rule
            })
            .collect(),
        default: denied(section.default),
    });
    let Ok(denying) = Ruleset::new(sections.collect(), denied(ruleset.bad_arch)) else {
        return false;
    };
    let denying = denying.with_variables(ruleset.variables().to_vec());
    let sides = [ruleset, &denying].map(Subject::Ruleset);
    let (limits, stop) = (args.limits.limits(), budget::stop());
    let answer = decide_by_gates(&sides[0], &sides[1], &limits, &stop);
    matches!(answer, Answer::Equal(_))
}

/// Proves a combination whose diagrams reach a limit.
fn prove_by_gates(
    args: &Args,
    operation: Operation,
    (first, others): (&Ruleset, &[&Ruleset]),
    result: &Ruleset,
) -> Result<(), Failure> {
    let limits = args.limits.limits();
    let stop = budget::stop();
    let proved = tamis_algebra::prove_by_gates(operation, first, others, result, &limits, &stop);
    proved.map_err(|unproved| match unproved {
        Unproved::Limit(limit) => {
            let name = operation.name();
            let remains = format!(
                "undecided: whether the combined rules are the {name} of the inputs; nothing was written"
            );
            args.limits.gave_up(&remains, limit)
        }
        Unproved::Refuted(_) => bug(&unproved),
    })
}

fn bug(unproved: &Unproved) -> Failure {
    Failure::bug(
        format!("bug in tamis: {unproved}"),
        "please report this with the inputs; nothing was written",
    )
}

fn impossible_failure(impossible: &Impossible) -> Failure {
    match impossible {
        Impossible::ExecutingDefault { .. } => Failure::usage(
            impossible.to_string(),
            "give the first policy a default that denies",
        ),
        Impossible::TooManyRules => Failure::gave_up(impossible.to_string(), None),
    }
}

/// The failure if a combination allows no call: with a call that an input allows, and the places that decide it.
fn nothing_allowed(operation: Operation, parts: &[Part]) -> Failure {
    let message = format!(
        "the {} allows no call",
        match operation {
            Operation::Intersect => "intersection",
            Operation::Union => "union",
            Operation::Overlay => "overlay",
            Operation::Minus => "difference",
        }
    );
    let mut diagnostic = Diagnostic::error(code::COMBINE_EMPTY, message);
    if let Some((arch, name, data)) = parts.iter().find_map(|part| allowed_call(&part.ruleset)) {
        for part in parts {
            let Decision { action, cause } = part.ruleset.decide(&data);
            let place = match cause {
                Cause::Rule(_, rule) => match &rule.origin {
                    Some(origin) => origin.to_string(),
                    None => format!("a rule of {}", part.name),
                },
                Cause::Default(_) => format!("the default of {}", part.name),
                Cause::BadArch => format!("{}, which has no rules for {arch}", part.name),
            };
            diagnostic = diagnostic.note(format!("{arch} {name} -> {action} by {place}"));
        }
    }
    Failure::Diagnostics(vec![diagnostic], Sources::new())
}

/// A call that a policy allows without arguments.
fn allowed_call(ruleset: &Ruleset) -> Option<(Arch, &'static str, SeccompData)> {
    let arches = ruleset.sections().iter().map(|section| section.arch);
    let calls = arches.flat_map(|arch| syscall::all(arch).map(move |call| (arch, call)));
    let mut calls = calls.map(|(arch, (nr, name))| {
        let data = SeccompData {
            arch: arch.audit(),
            nr: nr.0,
            ..SeccompData::default()
        };
        (arch, name, data)
    });
    calls.find(|(.., data)| may_execute(ruleset.decide(data).action.ret()))
}

/// The calls by origin, and the comment for each.
fn origins(
    parts: &[Part],
    combined: &Combined,
) -> (Vec<OriginEntry>, BTreeMap<&'static str, String>) {
    let mut groups: BTreeMap<Vec<bool>, Vec<&'static str>> = BTreeMap::new();
    let mut notes = BTreeMap::new();
    for (name, origin) in &combined.origins {
        notes.insert(*name, note(parts, &origin.is_as_in));
        if origin.may_execute {
            let group = groups.entry(origin.is_as_in.clone()).or_default();
            group.push(name);
        }
    }
    let groups = groups.into_iter().rev();
    let entries = groups.map(|(is_as_in, calls)| OriginEntry {
        inputs: names(parts, &is_as_in)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        calls,
    });
    (entries.collect(), notes)
}

fn note(parts: &[Part], is_as_in: &[bool]) -> String {
    let is_all = is_as_in.iter().all(|is_as_in| *is_as_in);
    origin_note(&names(parts, is_as_in), is_all)
}

/// The names of the parts that are marked.
fn names<'p>(parts: &'p [Part], is_marked: &[bool]) -> Vec<&'p str> {
    let marked = parts
        .iter()
        .zip(is_marked)
        .filter(|(_, is_marked)| **is_marked);
    marked.map(|(part, _)| part.name.as_str()).collect()
}

/// The name of a file without its folder and extension.
fn stem(name: &str) -> String {
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or(name).to_owned()
}
