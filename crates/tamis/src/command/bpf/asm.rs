//! `tamis bpf asm`: assembler text as a raw program.

use tamis_bpf::{forms, program};
use tamis_report::disasm::DisasmReport;
use tamis_session::{InputKind, Loaded};

use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, show_beside};
use crate::cli::{Failure, Global, exit, input};
use crate::code;

/// Assemble a program and check it as the kernel does
#[derive(clap::Args)]
#[command(after_help = "\
The mnemonics are those of the kernel's bpf_asm, with names for fields, actions and architectures.
Example:
  printf 'ld [nr]\\njeq #39, yes\\nret #allow\\nyes: ret #errno(1)\\n' | tamis bpf asm -o no-getpid.bpf")]
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
    let load = LoadArgs::of_kind(InputKind::Text(forms::ASM));
    let loaded = load.load(&args.input, global).map_err(without_kinds)?;
    let Loaded::Program(raw) = loaded else {
        unreachable!("assembler text is a program");
    };
    if !raw.program.is_installable() {
        let length = raw.program.len();
        let limit = tamis_bpf::Program::MAX_INSNS;
        return Err(Failure::usage(
            format!("the program has {length} instructions; the kernel takes at most {limit}"),
            "`tamis optimize` reads the text as it is and may make it short enough",
        ));
    }
    let insns = raw.program.insns();
    let endian = raw.program.endian();
    let write = |output: &OutputArgs| output.raw(&program::insns_to_bytes(insns, endian));
    show_beside(
        &args.output,
        write,
        &DisasmReport::from_insns(insns),
        global,
    )?;
    Ok(exit::OK)
}

/// The failure to read an input of another kind, without the help on kinds, because the command accepts only one.
fn without_kinds(failure: Failure) -> Failure {
    let Failure::Diagnostics(mut mistakes, sources) = failure else {
        return failure;
    };
    let wrong = mistakes.iter_mut().filter(|it| it.code == code::WRONG_KIND);
    for mistake in wrong {
        mistake.help = Some("`tamis bpf disasm` shows it as assembler text".to_owned());
    }
    Failure::Diagnostics(mistakes, sources)
}
