//! `tamis-lab engines disasm`: the machine code of a filter.

use tamis_cli::load::{self, LoadArgs};
use tamis_cli::output::OutputArgs;
use tamis_cli::{Failure, Global, budget, exit, input};
use tamis_session::NamedProgram;

use crate::native;

/// Show the machine code of a filter, for x86-64
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tamis-lab engines disasm filter.bpf")]
pub(crate) struct Args {
    /// The policy or program: a path, or `-` for standard input
    #[arg(default_value = "-", value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    global.refuse_document("machine code")?;
    args.output.refuse_to_replace(&args.input)?;
    let input = load::read_input(&args.input, global)?;
    let loaded = args.load.load_one(input, global)?;
    let NamedProgram { program, .. } = loaded.into_program(&budget::compile_options())?;
    args.output.text(&native::of_program(&program)?)?;
    Ok(exit::OK)
}
