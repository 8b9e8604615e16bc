//! `tamis-lab packets disasm`: a filter of a socket as assembler text, as the kernel converts it, or as machine code.

use tamis_bpf::disasm;
use tamis_cli::output::{OutputArgs, document_json};
use tamis_cli::{Failure, Global, exit, input};
use tamis_report::disasm::DisasmReport;

use crate::ebpf::listing;
use crate::{native, packet};

/// Show a filter of a socket, which loads from packets, as assembler text
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tcpdump -ddd 'port 22' | tamis-lab packets disasm
  tamis-lab packets disasm ssh.bpf --extended
  tamis-lab packets disasm ssh.bpf --native")]
pub(crate) struct Args {
    /// The filter: a path, or `-` for standard input
    #[arg(default_value = "-", value_parser = input::path_parser())]
    input: String,
    /// Omit the comments that name fields
    #[arg(long)]
    plain: bool,
    /// Show the extended BPF that the kernel converts the filter to
    #[arg(long, conflicts_with = "native")]
    extended: bool,
    /// Show the machine code for x86-64
    #[arg(long, conflicts_with_all = ["plain", "json"])]
    native: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.input)?;
    let program = packet::load(&args.input)?;
    let style = match args.plain {
        true => disasm::Style::Plain,
        false => disasm::Style::Commented,
    };
    let text = match (args.extended, args.native) {
        (true, _) if global.json => document_json(&listing::report_of_packet_program(&program)?)?,
        (true, _) => listing::of_packet_program(&program)?,
        (false, true) => native::of_packet_program(&program)?,
        (false, false) if global.json => document_json(&DisasmReport::from_insns(program.insns()))?,
        (false, false) => disasm::disassemble_packet(&program, style),
    };
    args.output.text(&text)?;
    Ok(exit::OK)
}
