//! `tamis bpf disasm`: a program as assembler text.

mod extended;
mod native;

use tamis_bpf::disasm;
use tamis_report::disasm::DisasmReport;
use tamis_session::NamedProgram;

use crate::cli::load::{self, LoadArgs};
use crate::cli::output::{OutputArgs, document_json};
use crate::cli::{Failure, Global, budget, exit, input, object, packet};

/// Show a program, or a compiled policy, as assembler text
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis bpf disasm filter.bpf
  tamis compile policy.tamis | tamis bpf disasm --plain | tamis bpf asm -o same.bpf
  tcpdump -ddd 'port 22' | tamis bpf disasm --packet
  tamis bpf disasm --extended filter.bpf
  tamis bpf disasm --native filter.bpf
  tamis bpf disasm --extended --native filter.bpf")]
pub(crate) struct Args {
    /// The input: a path, or `-` for standard input
    #[arg(default_value = "-", value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    /// Omit the comments that name fields, actions and calls
    #[arg(long)]
    plain: bool,
    /// Show a filter of a socket, which loads from packets
    #[arg(long, conflicts_with_all = ["from", "arches", "strict", "kernel", "language_options"])]
    packet: bool,
    /// Show the extended BPF that the kernel converts the program to
    ///
    /// Or that a section of an object file has.
    #[arg(long)]
    extended: bool,
    /// Show the machine code that tamis compiles the program to
    ///
    /// For x86-64; with `--extended` that of extended BPF.
    #[arg(long, conflicts_with_all = ["plain", "json"])]
    native: bool,
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
    if args.packet {
        return packet_program(args, style, global);
    }
    let input = load::read_input(&args.input, global)?;
    if args.extended
        && let Some(sections) = object::sections(&input)?
    {
        return of_object(sections, args, global);
    }
    let loaded = args.load.load_one(input, global)?;
    if let Some(policy) = loaded.policy() {
        load::warn_installation(policy, global);
    }
    let NamedProgram { program, .. } = loaded.into_program(&budget::compile_options())?;
    let text = match (args.extended, args.native) {
        (true, false) if global.json => {
            let report = extended::report_of_program(&program)?;
            document_json(&report)?
        }
        (true, false) => extended::of_program(&program, style)?,
        (true, true) => native::of_converted(&program)?,
        (false, true) => native::of_program(&program)?,
        (false, false) if global.json => document_json(&DisasmReport::from_insns(program.insns()))?,
        (false, false) => disasm::disassemble(&program, style),
    };
    args.output.text(&text)?;
    Ok(exit::OK)
}

/// A filter of a socket.
fn packet_program(args: &Args, style: disasm::Style, global: &Global) -> Result<u8, Failure> {
    let program = packet::load(&args.input)?;
    let text = match (args.extended, args.native) {
        (true, true) => {
            return Err(Failure::usage(
                "--extended --native takes no filter of a socket",
                "`--packet --native` shows its machine code",
            ));
        }
        (true, false) if global.json => {
            document_json(&extended::report_of_packet_program(&program)?)?
        }
        (true, false) => extended::of_packet_program(&program)?,
        (false, true) => native::of_packet_program(&program)?,
        (false, false) if global.json => document_json(&DisasmReport::from_insns(program.insns()))?,
        (false, false) => disasm::disassemble_packet(&program, style),
    };
    args.output.text(&text)?;
    Ok(exit::OK)
}

/// The programs of an object file.
fn of_object(sections: Vec<object::Section>, args: &Args, global: &Global) -> Result<u8, Failure> {
    let text = match args.native {
        true => native::of_sections(sections)?,
        false if global.json => document_json(&extended::report_of_sections(sections))?,
        false => extended::listing(&sections),
    };
    args.output.text(&text)?;
    Ok(exit::OK)
}
