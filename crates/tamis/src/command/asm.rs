//! `tamis asm`: assembler text as a raw program.

use tamis_bpf::forms;
use tamis_session::{InputKind, Loaded};

use crate::cli::load::LoadArgs;
use crate::cli::output::OutputArgs;
use crate::cli::{Failure, Global, exit};
use crate::command::disasm;

/// Assemble a program and check it as the kernel does
#[derive(clap::Args)]
#[command(after_help = "\
The mnemonics are those of the kernel's bpf_asm, with names for fields, actions and architectures.
Example:
  printf 'ld [nr]\\njeq #39, yes\\nret #allow\\nyes: ret #errno(1)\\n' | tamis asm -o no-getpid.bpf")]
pub(crate) struct Args {
    /// The text: a path, or `-` for standard input
    #[arg(default_value = "-")]
    input: String,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let load = LoadArgs::of_kind(InputKind::Text(forms::ASM));
    let Loaded::Program(raw) = load.load(&args.input, global)? else {
        unreachable!("assembler text is a program");
    };
    if !raw.program.is_installable() {
        let length = raw.program.len();
        let limit = tamis_bpf::Program::MAX_INSNS;
        global.notice(&format!(
            "warning: {length} instructions; the kernel takes at most {limit}"
        ));
    }
    if global.json {
        args.output.text(&disasm::document(&raw.program)?)?;
    } else {
        args.output.raw(&raw.program.to_bytes())?;
    }
    Ok(exit::OK)
}
