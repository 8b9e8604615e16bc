//! `tamis-lab ebpf disasm`: the kernel's conversion of a classic program, and programs of object files.

use tamis_bpf::disasm::Style;
use tamis_cli::load::{self, LoadArgs};
use tamis_cli::output::{OutputArgs, document_json};
use tamis_cli::{Failure, Global, budget, exit, input};
use tamis_session::NamedProgram;

use super::listing;
use crate::{native, object};

/// Show the extended BPF that the kernel converts a filter to, or that an object file has
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis-lab ebpf disasm filter.bpf
  tamis-lab ebpf disasm filter.o --native")]
pub(crate) struct Args {
    /// The policy, program or object file: a path, or `-` for standard input
    #[arg(default_value = "-", value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    /// Omit the classic instructions beside those that they become
    #[arg(long)]
    plain: bool,
    /// Show the machine code for x86-64
    #[arg(long, conflicts_with_all = ["plain", "json"])]
    native: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.input)?;
    let input = load::read_input(&args.input, global)?;
    let text = match object::sections(&input)? {
        Some(sections) => of_object(sections, args, global)?,
        None => of_filter(input, args, global)?,
    };
    args.output.text(&text)?;
    Ok(exit::OK)
}

/// A classic filter in the kernel's conversion.
fn of_filter(input: tamis_session::Input, args: &Args, global: &Global) -> Result<String, Failure> {
    let loaded = args.load.load_one(input, global)?;
    if let Some(policy) = loaded.policy() {
        load::warn_installation(policy, global);
    }
    let NamedProgram { program, .. } = loaded.into_program(&budget::compile_options())?;
    let style = match args.plain {
        true => Style::Plain,
        false => Style::Commented,
    };
    match args.native {
        true => native::of_converted(&program),
        false if global.json => document_json(&listing::report_of_program(&program)?),
        false => listing::of_program(&program, style),
    }
}

/// The programs of an object file.
fn of_object(
    sections: Vec<object::Section>,
    args: &Args,
    global: &Global,
) -> Result<String, Failure> {
    match args.native {
        true => native::of_sections(object::all_readable(sections)?),
        false if global.json => document_json(&listing::report_of_sections(object::all_readable(
            sections,
        )?)),
        false => Ok(listing::listing(&sections)),
    }
}
