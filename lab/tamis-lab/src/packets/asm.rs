//! `tamis-lab packets asm`: assembler text as a raw filter of a socket.

use tamis_abi::Endian;
use tamis_bpf::program;
use tamis_cli::output::{OutputArgs, show_beside};
use tamis_cli::{Failure, Global, exit, input};
use tamis_report::disasm::DisasmReport;

use crate::packet;

/// Assemble a filter of a socket, which loads from packets
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tcpdump -dd 'port 22' | tamis-lab packets asm -o ssh.bpf")]
pub(crate) struct Args {
    /// The text: a path, or `-` for standard input
    #[arg(default_value = "-", value_parser = input::path_parser())]
    input: String,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.input)?;
    args.output.refuse_to_replace_policy()?;
    let program = packet::load(&args.input)?;
    packet::check_attachable(&program)?;
    let insns = program.insns();
    let write = |output: &OutputArgs| output.raw(&program::insns_to_bytes(insns, Endian::Little));
    show_beside(
        &args.output,
        write,
        &DisasmReport::from_insns(insns),
        global,
    )?;
    Ok(exit::OK)
}
