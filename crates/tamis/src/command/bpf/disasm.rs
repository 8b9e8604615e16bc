//! `tamis bpf disasm`: a program as assembler text.

use tamis_bpf::disasm;
use tamis_report::disasm::DisasmReport;
use tamis_session::NamedProgram;

use crate::cli::load::{self, LoadArgs};
use crate::cli::output::{OutputArgs, document_json};
use crate::cli::{Failure, Global, budget, exit, input};

/// Show a program, or a compiled policy, as assembler text
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis bpf disasm filter.bpf
  tamis compile policy.tamis | tamis bpf disasm --plain | tamis bpf asm -o same.bpf")]
pub(crate) struct Args {
    /// The input: a path, or `-` for standard input
    #[arg(default_value = "-", value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    /// Omit the comments that name fields, actions and calls
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.input)?;
    let style = if args.plain {
        disasm::Style::Plain
    } else {
        disasm::Style::Commented
    };
    let input = load::read_input(&args.input, global)?;
    let loaded = args.load.load_one(input, global)?;
    if let Some(policy) = loaded.policy() {
        load::warn_installation(policy, global);
    }
    let NamedProgram { program, .. } = loaded.into_program(&budget::compile_options())?;
    let text = match global.json {
        true => document_json(&DisasmReport::from_insns(program.insns()))?,
        false => disasm::disassemble(&program, style),
    };
    args.output.text(&text)?;
    Ok(exit::OK)
}
