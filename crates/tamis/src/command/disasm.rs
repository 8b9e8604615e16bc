//! `tamis disasm`: a program as assembler text.

use serde::Serialize;
use tamis_bpf::{Program, disasm};
use tamis_session::NamedProgram;

use crate::cli::load::{self, LoadArgs};
use crate::cli::output::OutputArgs;
use crate::cli::{Failure, Global, exit, output};

/// Show a program, or a compiled policy, as assembler text
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis disasm filter.bpf
  tamis compile policy.tamis | tamis disasm --plain | tamis asm -o same.bpf")]
pub(crate) struct Args {
    /// The input: a path, or `-` for standard input
    #[arg(default_value = "-")]
    input: String,
    /// Omit the comments that name fields, actions and calls
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The document for programs.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    insns: Vec<InsnEntry>,
}

/// One instruction as the kernel takes it.
#[derive(Serialize)]
pub(crate) struct InsnEntry {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

/// The instructions of a program for a document.
pub(crate) fn insn_entries(program: &Program) -> Vec<InsnEntry> {
    let entry = |insn: &tamis_bpf::Insn| InsnEntry {
        code: insn.code,
        jt: insn.jt,
        jf: insn.jf,
        k: insn.k,
    };
    program.insns().iter().map(entry).collect()
}

/// A program as the document for programs.
pub(crate) fn document(program: &Program) -> Result<String, Failure> {
    output::json(&Document {
        schema: "tamis.disasm/1",
        insns: insn_entries(program),
    })
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let loaded = args.load.load(&args.input, global)?;
    if let Some(policy) = loaded.policy() {
        load::tell_of_installation(policy, global);
    }
    let NamedProgram { program, .. } =
        loaded.into_program(&tamis_compiler::CompileOptions::default())?;
    if global.json {
        args.output.text(&document(&program)?)?;
    } else {
        let style = if args.plain {
            disasm::Style::Plain
        } else {
            disasm::Style::Commented
        };
        args.output.text(&disasm::disassemble(&program, style))?;
    }
    Ok(exit::OK)
}
