//! `tamis disasm`: a program as assembler text.

mod extended;
mod native;

use tamis_bpf::{Insn, disasm};
use tamis_report::disasm::DisasmReport;
use tamis_session::{NamedProgram, files};

use crate::cli::load::{self, LoadArgs};
use crate::cli::output::{OutputArgs, document_json};
use crate::cli::{Failure, Global, budget, exit, packet};

/// Show a program, or a compiled policy, as assembler text
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis disasm filter.bpf
  tamis compile policy.tamis | tamis disasm --plain | tamis asm -o same.bpf
  tcpdump -ddd 'port 22' | tamis disasm --packet
  tamis disasm --extended filter.bpf
  tamis disasm --native filter.bpf")]
pub(crate) struct Args {
    /// The input: a path, or `-` for standard input
    #[arg(default_value = "-")]
    input: String,
    /// Omit the comments that name fields, actions and calls
    #[arg(long)]
    plain: bool,
    /// Show a filter of a socket, which loads from packets, instead of one of seccomp
    #[arg(long, conflicts_with_all = ["from", "arches", "strict", "kernel", "language_options"])]
    packet: bool,
    /// Show the extended BPF that the kernel converts the program to, or that a section of an object file has
    #[arg(long, conflicts_with_all = ["native", "json"])]
    extended: bool,
    /// Show the machine code that tamis compiles the program to, on x86-64
    #[arg(long, conflicts_with_all = ["plain", "json"])]
    native: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let style = if args.plain {
        disasm::Style::Plain
    } else {
        disasm::Style::Commented
    };
    if args.packet {
        let program = packet::load(&args.input)?;
        let text = match (args.extended, args.native) {
            (true, _) => extended::of_packet_program(&program)?,
            (_, true) => native::of_packet_program(&program)?,
            _ => disasm::disassemble_packet(&program, style),
        };
        return write(program.insns(), &text, args, global);
    }
    let input = files::read(&args.input)?;
    if args.extended
        && let Some(text) = extended::of_object(&input)?
    {
        args.output.text(&text)?;
        return Ok(exit::OK);
    }
    let loaded = args.load.load_one(input, global)?;
    if let Some(policy) = loaded.policy() {
        load::warn_installation(policy, global);
    }
    let NamedProgram { program, .. } = loaded.into_program(&budget::compile_options())?;
    let text = match (args.extended, args.native) {
        (true, _) => extended::of_program(&program, style)?,
        (_, true) => native::of_program(&program)?,
        _ => disasm::disassemble(&program, style),
    };
    write(program.insns(), &text, args, global)
}

fn write(insns: &[Insn], text: &str, args: &Args, global: &Global) -> Result<u8, Failure> {
    if global.json {
        args.output
            .text(&document_json(&DisasmReport::of(insns))?)?;
    } else {
        args.output.text(text)?;
    }
    Ok(exit::OK)
}
