//! `tamis precompile`: the filters of a policy for all combinations of its options.
//!
//! The policies of all combinations are read ([`members`]), compiled and proved side by side ([`work`]), and put
//! together ([`assemble`]); what comes out is source code, a folder of filters ([`folder`]), or a report.

use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis_diag::{Diagnostic, SourceId, Sources, code, suggest};
use tamis_policy::front_end;
use tamis_policy::matrix::{self, Combination, Matrix};

use crate::cli::limits::LimitArgs;
use crate::cli::load::LoadArgs;
use crate::cli::output::{self, OutputArgs};
use crate::cli::target::TargetArgs;
use crate::cli::{Failure, Global, exit};
use tamis_embed::family::Family;
use tamis_embed::{self as embed, Language};
use tamis_session::{InputKind, files};

mod assemble;
mod folder;
mod members;
mod merged_diagnostics;
mod report;
mod work;

use assemble::Assembled;

/// Compile a policy for all combinations of its options
#[derive(clap::Args)]
#[command(after_help = "\
A matrix is a TOML file that names a policy and its options, each with its values and their settings:
  policy = \"server.tamis\"
  [option.network]
  none = {}
  host = { include = \"network.tamis\" }
Without `--emit` the combinations are compiled, proved and listed, and nothing is written.
Examples:
  tamis precompile server.toml
  tamis precompile server.toml --emit c -o server_filters.h
  tamis precompile server.toml --emit bpf -o filters/
  tamis precompile server.toml --only network=host --emit policy | tamis lint -")]
pub(crate) struct Args {
    /// The matrix: a path, or `-` for standard input
    matrix: String,
    /// What to write
    #[arg(long, value_name = "FORM", value_parser = Emit::parser())]
    emit: Option<Emit>,
    /// C and Go: the prefix of names, or the package [default: the matrix's `name`, or its file's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Compile only the combinations with this value of an option; may be repeated
    #[arg(long, value_name = "OPTION=VALUE")]
    only: Vec<String>,
    /// Overwrite files that were not created by an earlier `--emit bpf`
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// What a family is written as.
#[derive(Clone, Copy, Debug)]
enum Emit {
    Bpf,
    Json,
    Policy,
    /// Source code in a language.
    Source(&'static Language),
}

impl Emit {
    fn all() -> impl Iterator<Item = (Emit, &'static str, &'static str)> {
        let forms = [
            (
                Emit::Bpf,
                "bpf",
                "A directory with a raw program for each filter, and an index",
            ),
            (
                Emit::Json,
                "json",
                "A JSON document with the filters and their combinations",
            ),
            (
                Emit::Policy,
                "policy",
                "The policy of one combination, in the tamis language",
            ),
        ];
        let abouts = [
            "A C header: the filters, and functions to look one up, bind it and install it",
            "The same as a Rust module",
            "The same as a Go package",
        ];
        let languages = embed::ALL.into_iter().zip(abouts);
        forms
            .into_iter()
            .chain(languages.map(|(own, about)| (Emit::Source(own), own.name, about)))
    }

    fn parser() -> impl TypedValueParser<Value = Emit> {
        let values = Emit::all().map(|(_, name, about)| PossibleValue::new(name).help(about));
        PossibleValuesParser::new(values).map(|text| {
            let found = Emit::all().find(|(_, name, _)| *name == text);
            found.expect("the parser takes no other value").0
        })
    }
}

/// A matrix with its text.
struct Read {
    matrix: Matrix,
    sources: Sources,
    name: String,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.matrix)?;
    let emit = args.emit.or(global.json.then_some(Emit::Json));
    let read = read(args, global)?;
    let Read {
        matrix,
        sources,
        name,
    } = &read;
    let chosen = chosen(matrix, &args.only)?;
    if let Some(Emit::Policy) = emit {
        return write_policy(&read, &chosen, args);
    }
    let named = match emit {
        Some(Emit::Source(language)) => Some((language, identifier(language, &read, args)?)),
        _ if args.name.is_some() => {
            return Err(Failure::usage(
                "--name is for source code",
                "leave --name out, or choose `--emit c` or `--emit go`",
            ));
        }
        _ => None,
    };
    let folder = folder_of(emit, args)?;
    let plan = members::plan(matrix, sources, &chosen, args, global)?;
    refuse_to_replace_inputs(&plan, args)?;
    let (numbers, filters) = plan.compile(matrix, args, global)?;
    let family = assemble::assemble(matrix, sources, &plan, &numbers, &filters)?;
    global.warn(&report::idle(matrix, &family), sources);
    let summary = report::summary(name, matrix, &family);
    match (emit, named) {
        (None, _) if global.quiet => {}
        (None, _) => write_text(&(summary + &report::table(matrix, &family)), args)?,
        (Some(Emit::Source(_)), Some((language, identifier))) => {
            write_text(&source(language, &identifier, &read, &family)?, args)?;
            global.notice(summary.trim_end());
        }
        (Some(Emit::Bpf), _) => {
            write_folder(folder, &read, &family, args)?;
            global.notice(summary.trim_end());
        }
        (Some(_), _) => {
            write_text(
                &output::json(&report::document(name, matrix, &family, None))?,
                args,
            )?;
        }
    }
    Ok(exit::OK)
}

/// Reads the matrix; warnings go to standard error.
fn read(args: &Args, global: &Global) -> Result<Read, Failure> {
    let input = files::read(&args.matrix)?;
    let name = input.name.clone();
    let mut sources = Sources::new();
    let source = input.add_to(&mut sources)?;
    let (matrix, diagnostics) = matrix::read(&sources, source, args.load.is_strict());
    match matrix {
        Some(matrix) => {
            global.warn(&diagnostics, &sources);
            Ok(Read {
                matrix,
                sources,
                name,
            })
        }
        None => Err(Failure::Diagnostics(
            mistaken(source, &sources).map_or(diagnostics, |own| vec![own]),
            sources,
        )),
    }
}

/// What to say of a text that is no matrix and looks like something else.
fn mistaken(source: SourceId, sources: &Sources) -> Option<Diagnostic> {
    let text = &sources.get(source).text;
    let kind = InputKind::of_text(text).filter(|_| !matrix::recognises(text))?;
    let help = "`tamis compile` compiles it; in a matrix it is named by `policy = \"FILE\"`";
    Some(front_end::mistaken(
        source,
        "a matrix of options",
        kind.title(),
        help,
    ))
}

/// The combinations to compile.
fn chosen(matrix: &Matrix, only: &[String]) -> Result<Vec<Combination>, Failure> {
    let mut wanted: Vec<Vec<usize>> = vec![Vec::new(); matrix.options.len()];
    for text in only {
        let (option, value) = text.split_once('=').ok_or_else(|| {
            Failure::usage(
                format!("`{text}` is not an option with a value"),
                "write `--only OPTION=VALUE`",
            )
        })?;
        let options: Vec<&str> = matrix
            .options
            .iter()
            .map(|own| own.name.value.as_str())
            .collect();
        let axis = options
            .iter()
            .position(|own| *own == option)
            .ok_or_else(|| unknown("option", option, "", &options))?;
        let values: Vec<&str> = matrix.options[axis]
            .values
            .iter()
            .map(|own| own.name.value.as_str())
            .collect();
        let whose = format!(" of `{option}`");
        let value = values
            .iter()
            .position(|own| *own == value)
            .ok_or_else(|| unknown("value", value, &whose, &values))?;
        wanted[axis].push(value);
    }
    let is_wanted = |values: &Combination| {
        let mut pairs = values.iter().zip(&wanted);
        pairs.all(|(value, wanted)| wanted.is_empty() || wanted.contains(value))
    };
    let chosen: Vec<Combination> = matrix
        .combinations()
        .filter(|values| is_wanted(values) && !matrix.is_excluded(values))
        .collect();
    match chosen.is_empty() {
        true => Err(Failure::usage(
            "the matrix excludes all combinations selected by `--only`",
            "choose other values, or omit `--only`",
        )),
        false => Ok(chosen),
    }
}

fn unknown(what: &str, name: &str, whose: &str, known: &[&str]) -> Failure {
    let help = match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    Failure::usage(format!("there is no {what} `{name}`{whose}"), help)
}

/// Writes the policy of the one combination that was chosen.
fn write_policy(read: &Read, chosen: &[Combination], args: &Args) -> Result<u8, Failure> {
    let [values] = chosen else {
        return Err(Failure::usage(
            format!(
                "`--emit policy` writes one policy, and there are {} combinations",
                chosen.len()
            ),
            "choose one with `--only OPTION=VALUE`, once for each option",
        ));
    };
    let Some(text) = read
        .matrix
        .policy_text(values)
        .filter(|_| read.matrix.text_span().is_some())
    else {
        return Err(Failure::usage(
            "no option changes the text of the policy",
            "the policy is the file named in the matrix",
        ));
    };
    write_text(&text, args)?;
    Ok(exit::OK)
}

/// What the names in source code begin with.
fn identifier(language: &Language, read: &Read, args: &Args) -> Result<String, Failure> {
    match (&args.name, &read.matrix.name) {
        (None, Some(name)) if language.named.is_some() => {
            embed::name::of(language, Some(&name.value), &read.name).map_err(|_| {
                let diagnostic = Diagnostic::error(
                    code::MATRIX_NAME,
                    format!(
                        "`{name}` is not a valid name in the language of `--emit {}`",
                        language.name
                    ),
                )
                .label(name.span, "it is a reserved word, or not an identifier")
                .help(format!(
                    "choose another, or use `--name`: `{}`",
                    embed::name::near(language, &name.value)
                ));
                Failure::Diagnostics(vec![diagnostic], read.sources.clone())
            })
        }
        (asked, _) => embed::name::of(language, asked.as_deref(), &read.name)
            .map_err(|error| Failure::usage(error.to_string(), error.help())),
    }
}

/// The folder to write; an error if it isn't named, or no folder is written.
fn folder_of(emit: Option<Emit>, args: &Args) -> Result<Option<PathBuf>, Failure> {
    match (emit, &args.output.output) {
        (Some(Emit::Bpf), Some(folder)) if folder != Path::new("-") => Ok(Some(folder.clone())),
        (Some(Emit::Bpf), _) => Err(Failure::usage(
            "`--emit bpf` writes a directory",
            "name it with `-o DIR`; `--emit json` writes one document",
        )),
        (_, _) if args.force => Err(Failure::usage(
            "--force is for `--emit bpf`",
            "omit --force: other results always overwrite the file named by `-o`",
        )),
        _ => Ok(None),
    }
}

/// Refuses to replace a policy, or a file that it includes, by the result.
fn refuse_to_replace_inputs(plan: &members::Plan, args: &Args) -> Result<(), Failure> {
    for member in &plan.members {
        for source in member.policy.sources.iter() {
            args.output.refuse_to_replace(&source.name)?;
        }
        args.output.refuse_to_replace(&member.policy.name)?;
    }
    Ok(())
}

/// Writes a text, and makes the folders that its path names.
fn write_text(text: &str, args: &Args) -> Result<(), Failure> {
    if let Some(parent) = args.output.output.as_deref().and_then(Path::parent) {
        fs::create_dir_all(parent).map_err(|error| {
            Failure::environment(format!("cannot make {}: {error}", parent.display()))
        })?;
    }
    args.output.text(text)
}

fn source(
    language: &'static Language,
    identifier: &str,
    read: &Read,
    family: &Assembled,
) -> Result<String, Failure> {
    let text = language.family_text(&Family {
        name: identifier,
        matrix: &read.name,
        archs: &family.archs,
        endian: family.endian,
        options: &read.matrix.options,
        variables: &family.variables,
        members: &family.members,
        ranges: &family.ranges,
        programs: &family.programs,
        shared: &family.shared,
    });
    text.ok_or_else(|| super::compile::no_target(language, &family.archs))
}

fn write_folder(
    folder: Option<PathBuf>,
    read: &Read,
    family: &Assembled,
    args: &Args,
) -> Result<(), Failure> {
    let Some(folder) = folder else {
        unreachable!("the directory was checked before");
    };
    let names = folder::names(family.programs.len());
    let document = report::document(&read.name, &read.matrix, family, Some(&names));
    let index = output::json(&document)?;
    let bytes = family.programs.iter().map(|own| own.program.to_bytes());
    let files: Vec<(String, Vec<u8>)> = names.iter().cloned().zip(bytes).collect();
    folder::write(&folder, &files, &index, args.force)
}
