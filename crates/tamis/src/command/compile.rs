//! `tamis compile`: from a policy to the program that the kernel runs.

use std::fmt::Write;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use tamis_abi::{Arch, Endian, Word};
use tamis_bpf::ebpf_len::kernel_len_insns;
use tamis_bpf::{Patch, Program, disasm};
use tamis_compiler::{CompileOptions, Compiled};
use tamis_embed::annotation;
use tamis_embed::digest::sha256;
use tamis_embed::{self as embed, Language, Source};
use tamis_policy::export::pfc;
use tamis_report::entry::{InsnEntry, insns};
use tamis_report::program::{ArchEntry, ProgramReport};
use tamis_rules::{Ruleset, Variable, VariableWidth};
use tamis_session::Policy;

use crate::cli::compiler::CompilerArgs;
use crate::cli::input;
use crate::cli::languages;
use crate::cli::load::{self, LoadArgs};
use crate::cli::output::OutputArgs;
use crate::cli::{Failure, Global, exit, message, output, target};

/// Compile a policy to a seccomp program
#[derive(clap::Args)]
#[command(mut_args = languages::shown, after_help = "\
Without a policy, compiles the embedded `container-default`; `-` reads standard input. On a terminal, \
prints a summary and the readable program, otherwise the raw program: struct sock_filter[] in the byte \
order of the target, without a header, the input of bubblewrap, minijail0 and crun.
Examples:
  tamis compile policy.tamis -o filter.bpf
  tamis compile profile.json --arch x86_64 --arch x86 --stats -o filter.bpf
  tamis compile policy.tamis --profile trace.txt -o filter.bpf
  tamis compile server.tamis --emit c --name server -o server_filter.h
  tamis compile policy.tamis --emit rules")]
pub(crate) struct Args {
    /// The policy: a path, `-`, or the name of an embedded policy [default: container-default]
    policy: Option<String>,
    /// What to print
    #[arg(long, value_name = "FORM", value_parser = Emit::parser())]
    emit: Option<Emit>,
    /// C and Go: the prefix of names, or the package [default: the file's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Prove the program after layout and after every pass that changed something, and name the first faulty
    /// pass
    #[arg(long)]
    verify_each: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    compiler: CompilerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What a compiled policy is printed as.
#[derive(Clone, Copy, Debug)]
enum Emit {
    Bpf,
    Asm,
    Json,
    Rules,
    Pfc,
    Annotation,
    /// Source code in a language.
    Source(&'static Language),
}

impl Emit {
    /// All forms, with what `--emit` calls them and what they are.
    fn all() -> impl Iterator<Item = (Emit, &'static str, &'static str)> {
        let forms = [
            (Emit::Bpf, "bpf", "The raw program"),
            (Emit::Asm, "asm", "Assembler text with comments"),
            (
                Emit::Json,
                "json",
                "A JSON document: the instructions, their costs, and the places of variables",
            ),
            (
                Emit::Rules,
                "rules",
                "The text form of the ruleset, before compilation",
            ),
            (
                Emit::Pfc,
                "pfc",
                "The ruleset as libseccomp's pseudo filter code",
            ),
            (
                Emit::Annotation,
                "annotation",
                "The raw program in base64, the annotation of crun",
            ),
        ];
        let languages = embed::ALL.into_iter();
        let sources = languages.map(|own| (Emit::Source(own), own.name, own.about));
        forms.into_iter().chain(sources)
    }

    /// Reads the value of `--emit` and lists the forms in the help.
    fn parser() -> impl TypedValueParser<Value = Emit> {
        let values = Emit::all().map(|(_, name, about)| PossibleValue::new(name).help(about));
        PossibleValuesParser::new(values).map(|text| {
            let found = Emit::all().find(|(_, name, _)| *name == text);
            found.expect("the parser takes no other value").0
        })
    }
}

/// The document for programs.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    policy: String,
    byte_order: &'static str,
    digest: String,
    length_insns: usize,
    kernel_length_insns: usize,
    arches: Vec<ArchEntry>,
    insns: Vec<InsnEntry>,
    variables: Vec<VariableEntry>,
    patches: Vec<PatchEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ProgramReport>,
}

/// A run-time variable that has no value.
#[derive(Serialize)]
struct VariableEntry {
    name: String,
    bits: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    first: u64,
    last: u64,
}

/// An instruction whose constant is half of a variable's value.
#[derive(Serialize)]
struct PatchEntry {
    insn: usize,
    variable: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    element: Option<u32>,
    half: &'static str,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let input = args.policy.as_deref().unwrap_or(load::DEFAULT_POLICY);
    if args.policy.is_none() {
        input::refuse_unread_input()?;
        global.notice(&format!(
            "no policy given: compiling the embedded `{input}` (`-` reads standard input)"
        ));
    }
    args.output.refuse_to_replace(input)?;
    if let Some(Emit::Source(language)) = args.emit {
        return run_source(args, global, input, language);
    }
    if let Some(Emit::Json) = args.emit.or(global.json.then_some(Emit::Json)) {
        return run_json(args, global, input);
    }
    refuse_name(args)?;
    let load = args.load.for_filter();
    let policy = load.load_policy(input, global)?;
    let of_ruleset = match args.emit {
        Some(Emit::Rules) => Some(policy.ruleset.to_string()),
        Some(Emit::Pfc) => Some(pseudo_code(&policy.ruleset)?),
        _ => None,
    };
    if let Some(text) = of_ruleset {
        args.output.text(&text)?;
        return Ok(exit::OK);
    }
    let options = CompileOptions {
        verify_each: args.verify_each,
        ..policy.with_frequency(args.compiler.options(&load.options(), global)?)
    };
    target::warn_profile_mismatch(&options, &policy, global);
    load::warn_installation(&policy, global);
    let compiled = policy.compile(&options)?;
    let program = policy.program(&compiled)?;
    let report = args.compiler.stats.then(|| {
        let archs = policy.arches();
        ProgramReport::of(program, &archs, compiled.remarks(), &options)
    });
    args.compiler.print_remarks(compiled.remarks());
    let shows_person = args.emit.is_none() && args.output.is_terminal();
    if args.compiler.stats || shows_person {
        message(&summary(&policy, &compiled));
    }
    if let Some(report) = &report {
        message(&report.text());
    }
    match args.emit {
        Some(Emit::Asm) => args.output.text(&listing(program))?,
        None if shows_person => args.output.text(&listing(program))?,
        Some(Emit::Annotation) => {
            args.output.text(&annotation::text(&program.to_bytes()))?;
        }
        Some(Emit::Bpf | Emit::Json | Emit::Rules | Emit::Pfc | Emit::Source(_)) | None => {
            args.output.raw(&program.to_bytes())?;
        }
    }
    Ok(exit::OK)
}

/// A policy that keeps its variables, compiled.
struct Unbound {
    policy: Policy,
    archs: Vec<Arch>,
    filter: Compiled,
    report: Option<ProgramReport>,
}

impl Unbound {
    /// Compiles the policy and says what the options ask for.
    fn compile(args: &Args, global: &Global, input: &str) -> Result<Unbound, Failure> {
        let load = args.load.for_embedded_filter();
        let policy = load.load_policy(input, global)?;
        let options = CompileOptions {
            verify_each: args.verify_each,
            ..policy.with_frequency(args.compiler.options(&load.options(), global)?)
        };
        target::warn_profile_mismatch(&options, &policy, global);
        load::warn_installation(&policy, global);
        let filter = policy.compile(&options)?;
        let archs = policy.arches();
        args.compiler.print_remarks(filter.remarks());
        let report = args.compiler.stats.then(|| {
            let program = filter.template().unbound();
            ProgramReport::of(program, &archs, filter.remarks(), &options)
        });
        if let Some(report) = &report {
            message(&summary(&policy, &filter));
            message(&report.text());
        }
        Ok(Unbound {
            policy,
            archs,
            filter,
            report,
        })
    }
}

/// Writes the filter as source code; variables that have no value are bound by that code.
fn run_source(
    args: &Args,
    global: &Global,
    input: &str,
    language: &Language,
) -> Result<u8, Failure> {
    let name = embed::name::of(language, args.name.as_deref(), input)
        .map_err(|error| Failure::usage(error.to_string(), error.help()))?;
    let unbound = Unbound::compile(args, global, input)?;
    let source = Source {
        name: &name,
        policy: &unbound.policy.name,
        archs: &unbound.archs,
        filter: &unbound.filter,
    };
    let Some(text) = language.text(&source) else {
        return Err(no_target(language, &unbound.archs));
    };
    args.output.text(&text)?;
    Ok(exit::OK)
}

/// Writes the filter as a document; whoever reads it binds the variables that have no value.
fn run_json(args: &Args, global: &Global, input: &str) -> Result<u8, Failure> {
    refuse_name(args)?;
    let unbound = Unbound::compile(args, global, input)?;
    args.output.text(&output::json(&document(unbound))?)?;
    Ok(exit::OK)
}

fn refuse_name(args: &Args) -> Result<(), Failure> {
    match args.name {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "--name is for source code",
            "leave --name out, or choose `--emit c` or `--emit go`",
        )),
    }
}

/// The error for a policy that is only for machines that a language doesn't know.
pub(super) fn no_target(language: &Language, archs: &[Arch]) -> Failure {
    let named = |archs: Vec<Arch>| {
        let names: Vec<&str> = archs.into_iter().map(Arch::name).collect();
        names.join(", ")
    };
    let known = Arch::all().filter(|arch| (language.target)(*arch).is_some());
    let message = match archs {
        [] => "the policy has no architecture".to_owned(),
        _ => format!(
            "`--emit {}` does not support the machines of the policy: {}",
            language.name,
            named(archs.to_vec())
        ),
    };
    Failure::usage(message, format!("it supports {}", named(known.collect())))
}

/// A ruleset as pseudo filter code.
pub(super) fn pseudo_code(ruleset: &Ruleset) -> Result<String, Failure> {
    pfc::text(ruleset).map_err(|error| {
        Failure::usage(
            error.to_string(),
            "`--emit rules` writes a form without limits",
        )
    })
}

fn listing(program: &Program) -> String {
    disasm::disassemble(program, disasm::Style::Commented)
}

fn document(unbound: Unbound) -> Document {
    let filter = &unbound.filter;
    let program = filter.template().unbound();
    Document {
        schema: "tamis.compile/1",
        policy: unbound.policy.name,
        byte_order: match program.endian() {
            Endian::Little => "little",
            Endian::Big => "big",
        },
        digest: format!("sha256:{}", sha256(&program.to_bytes())),
        length_insns: program.len(),
        kernel_length_insns: kernel_len_insns(program),
        arches: filter.costs().iter().map(ArchEntry::of).collect(),
        insns: insns(program),
        variables: variable_entries(filter.variables()),
        patches: patch_entries(filter),
        report: unbound.report,
    }
}

/// The variables, sets as one.
fn variable_entries(variables: &[Variable]) -> Vec<VariableEntry> {
    let mut entries: Vec<VariableEntry> = Vec::new();
    for variable in variables {
        match entries.last_mut() {
            Some(last) if last.name == *variable.name => last.count = last.count.map(|n| n + 1),
            _ => entries.push(VariableEntry {
                name: variable.name.to_string(),
                bits: match variable.width {
                    VariableWidth::U32 => 32,
                    VariableWidth::U64 => 64,
                },
                count: variable.element.map(|_| 1),
                first: variable.range.0,
                last: variable.range.1,
            }),
        }
    }
    entries
}

fn patch_entries(filter: &Compiled) -> Vec<PatchEntry> {
    let patches = filter.template().patches().iter();
    let entry = |patch: &Patch| {
        let half = patch.word.index() - Word::COUNT;
        let variable = &filter.variables()[half / 2];
        PatchEntry {
            insn: patch.pc.0,
            variable: variable.name.to_string(),
            element: variable.element,
            half: ["low", "high"][half % 2],
        }
    };
    patches.map(entry).collect()
}

/// What the program costs, for a person.
fn summary(policy: &Policy, compiled: &Compiled) -> String {
    let program = compiled.template().unbound();
    let mut text = format!(
        "{}: {} instructions ({} in the kernel), proved equivalent to the policy\n",
        policy.name,
        program.len(),
        kernel_len_insns(program)
    );
    for (arch, cost) in compiled.costs() {
        let all = cost.all();
        let _ = writeln!(
            text,
            "  {:<12} {} calls, {} cacheable; {:.1} steps on average, {} at most, each call once with \
             arguments 0",
            arch.name(),
            cost.numbers,
            cost.cached_numbers,
            all.mean_steps(),
            all.max_steps
        );
    }
    text + &load::other_arches(policy)
}
