//! `tamis precompile`: the filters of a policy for all combinations of its options.
//!
//! The session plans, reads and compiles the policies of all combinations on all processors ([`work`]). The result is
//! source code, a folder of filters ([`folder`]), or a report.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis_compiler::CompileOptions;
use tamis_diag::Sources;
use tamis_embed::family::assemble::{assemble, identifier};
use tamis_embed::{self as embed, Family, Language};
use tamis_policy::matrix::Combination;
use tamis_session::files;
use tamis_session::matrix::{LoadedMatrix, Plan, Target};
use tamis_session::path_text::PathText;

use super::compile::{no_source, no_target};
use crate::cli::languages;
use crate::cli::limits::LimitArgs;
use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, document_json, print};
use crate::cli::replace::{FOLDER, make_folder};
use crate::cli::target::TargetArgs;
use crate::cli::{Failure, Global, exit, input};

mod folder;
mod report;
mod work;

use work::Machine;

/// Compile a policy for all combinations of its options
#[derive(clap::Args)]
#[command(mut_args = languages::shown, after_help = "\
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
    #[arg(value_parser = input::path_parser())]
    matrix: String,
    /// What to write
    #[arg(long, value_name = "FORM", value_parser = Emit::parser())]
    emit: Option<Emit>,
    /// C and Go: the prefix of names, or the package [default: the matrix's `name`, or its file's name]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    name: Option<String>,
    /// Compile only the combinations with this value of an option; may be repeated
    #[arg(long, value_name = "OPTION=VALUE")]
    only: Vec<String>,
    /// Overwrite files that were not created by an earlier `--emit bpf`
    #[arg(long, hide_short_help = true)]
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

/// The form of the output.
#[derive(Clone, Copy, Debug)]
enum Emit {
    Bpf,
    Json,
    Policy,
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

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.matrix)?;
    let has_document = args.output.is_beside_document(global) && args.emit.is_some();
    let is_document = global.json && !has_document;
    let emit = args.emit.or(is_document.then_some(Emit::Json));
    if !matches!(emit, None | Some(Emit::Json)) {
        args.output.refuse_beside_document(global)?;
    }
    let loaded = LoadedMatrix::read(files::read(&args.matrix)?, args.load.is_strict())?;
    global.warn(&loaded.warnings, &loaded.sources);
    let chosen = loaded.choose(&args.only)?;
    if let Some(Emit::Policy) = emit {
        write_text(&loaded.policy_text(&chosen)?, args)?;
        if !has_document {
            return Ok(exit::OK);
        }
    }
    let named = match emit {
        Some(Emit::Source(language)) => {
            let name = identifier(language, &loaded, args.name.as_deref())?;
            Some((language, name))
        }
        _ if args.name.is_some() => {
            return Err(no_source());
        }
        _ => None,
    };
    let folder = folder_of(emit, args)?;
    let family = family(&loaded, &chosen, args, global)?;
    let matrix = &loaded.matrix;
    global.warn(&family.idle_options(matrix), &loaded.sources);
    let names = folder
        .as_ref()
        .map(|_| folder::names(family.programs.len()));
    let report = report::report(&loaded.name, matrix, &family, names.as_deref());
    match (emit, named) {
        (None, _) if global.quiet => {}
        (Some(Emit::Policy), _) => {}
        (None, _) => write_text(&report.to_string(), args)?,
        (Some(Emit::Source(_)), Some((language, identifier))) => {
            let text = language.text(&family, &identifier);
            let text = text.ok_or_else(|| no_target(language, &family.archs))?;
            write_text(&text, args)?;
            global.notice(report.summary().trim_end());
        }
        (Some(Emit::Bpf), _) => {
            let (Some(folder), Some(names)) = (folder, names) else {
                unreachable!("the directory was checked before");
            };
            let programs = family.programs.iter();
            let bytes = programs.map(|own| own.program.to_bytes());
            let files: Vec<(String, Vec<u8>)> = names.into_iter().zip(bytes).collect();
            folder::write(&folder, &files, &document_json(&report)?, args.force)?;
            global.notice(report.summary().trim_end());
        }
        (Some(_), _) => write_text(&document_json(&report)?, args)?,
    }
    if has_document && !matches!(emit, Some(Emit::Json)) {
        print(document_json(&report)?.as_bytes())?;
    }
    Ok(exit::OK)
}

/// Reads and compiles the policies of the combinations, and assembles the family; prints warnings.
fn family(
    loaded: &LoadedMatrix,
    chosen: &[Combination],
    args: &Args,
    global: &Global,
) -> Result<Family, Failure> {
    let load = args.load.for_embedded_filter();
    let mut options = load.options();
    options.policy.systemd = load.systemd();
    let plan = Plan::read(loaded, chosen, &options, load.include_dirs(), &Machine)?;
    for warnings in &plan.warnings {
        global.warn(&warnings.diagnostics, &warnings.sources);
    }
    refuse_to_replace_inputs(&plan, args)?;
    let [has_profile, has_objective, has_effort] = args.target.given_options();
    let target = Target {
        options: CompileOptions {
            proof: args.limits.effort(),
            ..args
                .target
                .options(&loaded.load_options(&options), global)?
        },
        has_profile,
        has_objective,
        has_effort,
    };
    let compiled = plan.compile(&loaded.matrix, &target, &Machine)?;
    global.warn(&compiled.warnings, &Sources::new());
    Ok(assemble(loaded, &plan, &compiled)?)
}

/// The folder for the filters, if one is written; an error if it isn't named.
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

/// Refuses to overwrite a policy or an included file.
fn refuse_to_replace_inputs(plan: &Plan, args: &Args) -> Result<(), Failure> {
    for member in &plan.members {
        for source in member.policy.sources.iter() {
            args.output.refuse_to_replace(&source.name)?;
        }
        args.output.refuse_to_replace(&member.policy.name)?;
    }
    Ok(())
}

/// Writes a text, and creates the folders of its path.
fn write_text(text: &str, args: &Args) -> Result<(), Failure> {
    if let Some(parent) = args.output.output.as_deref().and_then(Path::parent) {
        make_folder(parent, FOLDER).map_err(|error| {
            Failure::environment(format!("cannot make {}: {error}", parent.text()))
        })?;
    }
    args.output.text(text)
}
