//! `tamis bpf decompile`: from programs to a readable policy.

use clap::ValueEnum;
use tamis_abi::{Action, Arch};
use tamis_analysis::{CaseLimits, Undecompilable, decompile, narrowed};
use tamis_diag::Sources;
use tamis_export::tamis as export;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis;
use tamis_prover::{Function, LimitReached, Space};
use tamis_report::decompile::DecompileReport;
use tamis_report::entry::{self, InputEntry, JudgedEntry};
use tamis_rules::Ruleset;
use tamis_session::{Loaded, files};

use crate::cli::judged::judge_reading;
use crate::cli::limits::LimitArgs;
use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, show_beside};
use crate::cli::{Failure, Global, budget, exit, input};
use crate::command::compile::pseudo_code;

/// The failure for a program that can't be decompiled.
const NO_POLICY: &str = "no policy can express this program";

/// Decompile a program, or a stack of programs, to a readable policy
#[derive(clap::Args)]
#[command(after_help = "\
The policy is proved equivalent to the programs, for every call, before it is printed. Several programs \
are a stack, the oldest first. A policy in another language is converted to the tamis language. \
Arguments compared at another width than the kernel's are marked: full(x), low(x), high(x).
Examples:
  tamis bpf decompile filter.bpf
  tamis bpf decompile filter.bpf --arch x86_64 -o policy.tamis
  tamis bpf decompile dump/0.bpf dump/1.bpf --emit rules
  tamis bpf decompile profile.json")]
pub(crate) struct Args {
    /// The programs, the oldest first: paths, folders, or `-`
    #[arg(default_value = "-", value_parser = input::PolicyParser, hide_possible_values = true)]
    inputs: Vec<String>,
    /// What to print
    #[arg(long, value_name = "FORM", default_value = "tamis")]
    emit: Emit,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// A policy in the tamis language
    Tamis,
    /// The text form of the ruleset, which is more general and harder to read
    Rules,
    /// libseccomp's pseudo filter code
    Pfc,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let mut space = Space::stoppable(args.limits.limits(), budget::stop());
    let mut inputs = Vec::new();
    let mut functions = Vec::new();
    let mut filters = Vec::new();
    let paths = args.inputs.iter().map(|input| files::stack_paths(input));
    let paths: Vec<(Vec<String>, bool)> = paths.collect::<Result<_, _>>()?;
    for path in paths.iter().flat_map(|(paths, _)| paths) {
        args.output.refuse_to_replace(path)?;
    }
    for path in paths.iter().flat_map(|(paths, _)| paths) {
        let (input, filter, function) = load(args, path, &mut space, global)?;
        inputs.push(input);
        filters.push(filter);
        functions.push(function);
    }
    let gave_up = |limit| args.limits.gave_up("gave up", limit);
    let function = meaning(&mut space, &functions, &args.load.arches).map_err(gave_up)?;
    let ruleset = decompile(&mut space, function, &CaseLimits::default())
        .map_err(|error| refusal(args, &error))?;
    let judged = judge_reading(&filters, &args.load.arches, &ruleset, &args.limits)?;
    let (form, policy) = match args.emit {
        Emit::Rules => ("rules", ruleset.to_string()),
        Emit::Pfc => ("pfc", pseudo_code(&ruleset)?),
        Emit::Tamis => ("tamis", policy_text(args, &mut space, &ruleset, function)?),
    };
    let wanted = &args.load.arches;
    let repeats = |at: usize| wanted[..at].contains(&wanted[at]);
    let once = (0..wanted.len()).filter(|at| !repeats(*at));
    let report = DecompileReport {
        inputs,
        arches: entry::arches(ruleset.sections().iter().map(|section| &section.arch)),
        form,
        judged: JudgedEntry(judged),
        policy,
        wanted_arches: once.map(|at| wanted[at].name()).collect(),
    };
    let write = |output: &OutputArgs| output.text(&report.to_string());
    show_beside(&args.output, write, &report, global)?;
    Ok(exit::OK)
}

/// Reads an input and computes its meaning.
fn load(
    args: &Args,
    path: &str,
    space: &mut Space,
    global: &Global,
) -> Result<(InputEntry, Loaded, Function), Failure> {
    let filter = args.load.load(path, global)?;
    let (name, length_insns, function) = match &filter {
        Loaded::Policy(policy) => (&policy.name, None, space.ruleset(&policy.ruleset)),
        Loaded::Program(raw) => {
            let function = space.program(&raw.program);
            (&raw.name, Some(raw.program.len()), function)
        }
    };
    let function = function.map_err(|limit| args.limits.gave_up("gave up", limit))?;
    let name = name.clone();
    Ok((InputEntry { name, length_insns }, filter, function))
}

/// The function of the inputs together, for the requested architectures.
fn meaning(
    space: &mut Space,
    functions: &[Function],
    arches: &[Arch],
) -> Result<Function, LimitReached> {
    let function = match functions {
        [single] => *single,
        stack => space.stack(stack)?,
    };
    if arches.is_empty() {
        return Ok(function);
    }
    narrowed(space, function, arches, Action::KILL_PROCESS.ret())
}

/// The policy with names or, if that isn't equivalent, with literal numbers.
fn policy_text(
    args: &Args,
    space: &mut Space,
    ruleset: &Ruleset,
    function: Function,
) -> Result<String, Failure> {
    for style in [export::Style::Named, export::Style::Literal] {
        let text = export::policy(ruleset, style).map_err(|error| {
            Failure::usage(
                error.to_string(),
                "`--emit rules` writes a form without this limit",
            )
        })?;
        let is_same = means(space, &text, function);
        if is_same.map_err(|limit| args.limits.gave_up("gave up", limit))? {
            return Ok(text);
        }
    }
    Err(Failure::bug(
        "the decompiled policy is not equivalent to the program",
        "please report this with the program; `--emit rules` may still work",
    ))
}

/// Whether a policy is proved equivalent to a function.
fn means(space: &mut Space, text: &str, function: Function) -> Result<bool, LimitReached> {
    let mut sources = Sources::new();
    let source = sources.add("<decompiled>", text);
    let options = tamis::TamisOptions::new(Vec::new());
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    match parsed.ruleset {
        Some(ruleset) => Ok(space.ruleset(&ruleset)? == function),
        None => Ok(false),
    }
}

fn refusal(args: &Args, error: &Undecompilable) -> Failure {
    let (help, code) = match error {
        Undecompilable::Limit(limit) => return args.limits.gave_up(NO_POLICY, *limit),
        Undecompilable::TooManyCases | Undecompilable::Condition { .. } => (
            "`tamis bpf disasm` shows the program as it is",
            exit::GAVE_UP,
        ),
        Undecompilable::ForeignArches(_) => {
            ("`--arch x86_64` decompiles one architecture", exit::USAGE)
        }
        Undecompilable::NotAnAction(_) => (
            "the kernel kills the process for such a value; `tamis bpf disasm` shows where it is returned",
            exit::USAGE,
        ),
        Undecompilable::Refuted => ("please report this with the program", exit::BUG),
    };
    Failure::new(code, format!("{NO_POLICY}: {error}"), Some(help.to_owned()))
}
