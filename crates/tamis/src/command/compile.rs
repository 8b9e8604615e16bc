//! `tamis compile`: from a policy to a seccomp program.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis_abi::Arch;
use tamis_bpf::{Program, disasm};
use tamis_compiler::{CompileOptions, Compiled};
use tamis_embed::annotation;
use tamis_embed::digest::sha256;
use tamis_embed::{self as embed, Family, Language};
use tamis_export::pfc;
use tamis_prover::Subject;
use tamis_report::compile::CompileReport;
use tamis_report::program::ProgramReport;
use tamis_rules::Ruleset;
use tamis_session::Policy;

use crate::cli::certify::CertifyArgs;
use crate::cli::compiler::CompilerArgs;
use crate::cli::languages;
use crate::cli::load::{self, LoadArgs};
use crate::cli::output::{OutputArgs, document_json, print};
use crate::cli::{Failure, Global, exit, input, message, target};

/// Compile a policy to a seccomp program
#[derive(clap::Args)]
#[command(mut_args = languages::shown, after_help = "\
Without a policy, compiles the embedded `container-default`; `-` reads standard input. On a terminal, \
prints a summary and the readable program, otherwise the raw program: struct sock_filter[] in the byte \
order of the target, without a header, the input of bubblewrap, minijail0 and crun.
Examples:
  tamis compile policy.tamis -o filter.bpf
  tamis compile profile.json --arch x86_64 --arch x86 --stats -o filter.bpf
  tamis compile policy.tamis --counts trace.txt -o filter.bpf
  tamis compile server.tamis --emit c --name server -o server_filter.h
  tamis compile policy.tamis --emit rules")]
pub(crate) struct Args {
    /// A path, `-`, or an embedded policy's name [default: container-default]
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    policy: Option<String>,
    /// What to print
    #[arg(long, value_name = "FORM", value_parser = Emit::parser())]
    emit: Option<Emit>,
    /// C and Go: the prefix of names, or the package [default: the file's name]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    name: Option<String>,
    /// Prove the program after layout and after every pass that changed something, and name the first faulty
    /// pass
    #[arg(long, hide_short_help = true)]
    verify_each: bool,
    #[command(flatten)]
    certify: CertifyArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    compiler: CompilerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The form of the output.
#[derive(Clone, Copy, Debug)]
enum Emit {
    Bpf,
    Asm,
    Json,
    Rules,
    Pfc,
    Annotation,
    Source(&'static Language),
}

impl Emit {
    /// All forms, with their names and descriptions.
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

    /// Parses the value of `--emit` and lists the forms in the help.
    fn parser() -> impl TypedValueParser<Value = Emit> {
        let values = Emit::all().map(|(_, name, about)| PossibleValue::new(name).help(about));
        PossibleValuesParser::new(values).map(|text| {
            let found = Emit::all().find(|(_, name, _)| *name == text);
            found.expect("the parser takes no other value").0
        })
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let input = args.policy.as_deref().unwrap_or(load::DEFAULT_POLICY);
    if args.policy.is_none() {
        take_default(input, global)?;
    }
    args.output.refuse_to_replace(input)?;
    if args.policy.is_none() || matches!(args.emit, None | Some(Emit::Bpf)) {
        args.output.refuse_to_replace_policy()?;
    }
    let has_document = args.output.is_beside_document(global);
    let is_document = global.json && !has_document;
    let emit = args.emit.or(is_document.then_some(Emit::Json));
    if !matches!(emit, None | Some(Emit::Json)) {
        args.output.refuse_beside_document(global)?;
    }
    let name = source_name(args, emit, input)?;
    // The reader of source code or a document binds variables without values.
    let load = match emit {
        Some(Emit::Source(_) | Emit::Json) => args.load.for_embedded_filter(),
        _ => args.load.for_filter(),
    };
    let policy = load.load_policy(input, global)?;
    check_certify(args, emit)?;
    let of_ruleset = match emit {
        Some(Emit::Rules) => Some(policy.ruleset.to_string()),
        Some(Emit::Pfc) => Some(pseudo_code(&policy.ruleset)?),
        _ => None,
    };
    if let Some(text) = of_ruleset {
        args.output.text(&text)?;
        if !has_document {
            return Ok(exit::OK);
        }
    }
    let options = CompileOptions {
        verify_each: args.verify_each,
        ..policy.with_frequency(args.compiler.options(&load.options(), global)?)
    };
    target::warn_profile_mismatch(&options, &policy, global);
    load::warn_installation(&policy, global);
    load::warn_essential(&policy, global);
    let filter = policy.compile(&options)?;
    certify(args, &policy, &filter, &options, global)?;
    args.compiler.print_remarks(filter.remarks());
    let document = document(&policy, &filter, args, &options);
    let shows_person = emit.is_none() && args.output.is_terminal();
    match (emit, name) {
        (Some(Emit::Source(language)), Some(name)) => {
            let text = source(language, &name, &policy, &filter)?;
            args.output.text(&text)?;
        }
        (Some(Emit::Json), _) => args.output.text(&document_json(&document)?)?,
        (Some(Emit::Rules | Emit::Pfc), _) => {}
        _ => write(args, policy.program(&filter)?, shows_person)?,
    }
    if has_document && !matches!(emit, Some(Emit::Json)) {
        print(document_json(&document)?.as_bytes())?;
        return Ok(exit::OK);
    }
    // After the listing, which may fill the screen.
    if args.compiler.stats || shows_person {
        message(&document.to_string());
    }
    if let Some(report) = &document.report {
        message(&report.text());
    }
    Ok(exit::OK)
}

/// Notes that the embedded policy is compiled; fails if there is input that would not be read.
fn take_default(input: &str, global: &Global) -> Result<(), Failure> {
    input::refuse_unread_input()?;
    global.notice(&format!(
        "no policy given: compiling the embedded `{input}` (`-` reads standard input)"
    ));
    Ok(())
}

/// Fails if a certificate is wanted without a filter, or can't be written.
fn check_certify(args: &Args, emit: Option<Emit>) -> Result<(), Failure> {
    if args.certify.is_given() && matches!(emit, Some(Emit::Rules | Emit::Pfc)) {
        return Err(Failure::usage(
            "--certify is for a compiled filter",
            "leave out --certify, or choose another form than `--emit rules` and `--emit pfc`",
        ));
    }
    args.certify.check_folder()
}

/// Writes the certificate that the filter is equivalent to the policy, if it is wanted.
fn certify(
    args: &Args,
    policy: &Policy,
    filter: &Compiled,
    options: &CompileOptions,
    global: &Global,
) -> Result<(), Failure> {
    let given = Subject::Ruleset(&policy.ruleset);
    let made = Subject::Template(filter.template());
    args.certify.write(&given, &made, &options.proof, global)
}

fn document(
    policy: &Policy,
    filter: &Compiled,
    args: &Args,
    options: &CompileOptions,
) -> CompileReport {
    let program = filter.template().unbound();
    let report = args.compiler.stats.then(|| {
        let archs = policy.arches();
        ProgramReport::from_program(program, &archs, filter.remarks(), options)
    });
    let digest = format!("sha256:{}", sha256(&program.to_bytes()));
    let could_have = load::runnable_arches(policy);
    CompileReport::from_compiled(policy.name.clone(), digest, filter, report, could_have)
}

fn write(args: &Args, program: &Program, shows_person: bool) -> Result<(), Failure> {
    match args.emit {
        Some(Emit::Asm) => args.output.text(&listing(program)),
        None if shows_person => args.output.text(&listing(program)),
        Some(Emit::Annotation) => args.output.text(&annotation::text(&program.to_bytes())),
        _ => args.output.raw(&program.to_bytes()),
    }
}

/// The filter as source code, which binds variables without values.
fn source(
    language: &Language,
    name: &str,
    policy: &Policy,
    filter: &Compiled,
) -> Result<String, Failure> {
    let archs = &policy.arches();
    let text = language.text(&Family::single(&policy.name, archs, filter), name);
    text.ok_or_else(|| no_target(language, archs))
}

/// The prefix of names in source code; `None` for other forms.
fn source_name(args: &Args, emit: Option<Emit>, input: &str) -> Result<Option<String>, Failure> {
    match (emit, &args.name) {
        (Some(Emit::Source(language)), name) => {
            embed::name::identifier(language, name.as_deref(), input)
                .map(Some)
                .map_err(|error| Failure::usage(error.to_string(), error.help()))
        }
        (_, Some(_)) => Err(no_source()),
        (_, None) => Ok(None),
    }
}

pub(super) fn no_source() -> Failure {
    Failure::usage(
        "--name is for source code",
        "leave --name out, or choose `--emit c` or `--emit go`",
    )
}

/// The error for a policy whose architectures a language doesn't support.
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
