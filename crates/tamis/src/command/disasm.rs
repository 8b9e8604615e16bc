//! `tamis disasm`: a program as assembler text.

use tamis_bpf::disasm;
use tamis_ebpf::convert;
use tamis_report::disasm::DisasmReport;
use tamis_session::NamedProgram;

use crate::cli::load::{self, LoadArgs};
use crate::cli::output::{OutputArgs, document_json};
use crate::cli::{Failure, Global, budget, exit};

/// Show a program, or a compiled policy, as assembler text
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis disasm filter.bpf
  tamis disasm filter.bpf --extended
  tamis compile policy.tamis | tamis disasm --plain | tamis asm -o same.bpf")]
pub(crate) struct Args {
    /// The input: a path, or `-` for standard input
    #[arg(default_value = "-")]
    input: String,
    /// Omit the comments that name fields, actions and calls
    #[arg(long)]
    plain: bool,
    /// Show the extended BPF that the kernel makes of the program and runs
    #[arg(long, conflicts_with = "json")]
    extended: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let loaded = args.load.load(&args.input, global)?;
    if let Some(policy) = loaded.policy() {
        load::warn_installation(policy, global);
    }
    let NamedProgram { program, .. } = loaded.into_program(&budget::compile_options())?;
    let style = match args.plain {
        true => disasm::Style::Plain,
        false => disasm::Style::Commented,
    };
    if args.extended {
        let listing = convert::listing(&program, style);
        args.output
            .text(&listing.map_err(|error| Failure::input(error.to_string()))?)?;
    } else if global.json {
        let report = DisasmReport::of(&program);
        args.output.text(&document_json(&report)?)?;
    } else {
        args.output.text(&disasm::disassemble(&program, style))?;
    }
    Ok(exit::OK)
}
