//! `tamis bpf eval`: the actions of a filter for calls.

use tamis_abi::Action;
use tamis_bpf::{Pc, disasm, interp};
use tamis_report::eval::{EvalEntry, EvalReport};

use crate::cli::load::LoadArgs;
use crate::cli::output::show;
use crate::cli::{Failure, Global, budget, call as cli_call, exit, input};

/// Evaluate calls against a filter
#[derive(clap::Args)]
#[command(after_help = "\
A call is `[ARCH] NAME(ARGUMENTS)`. A policy is compiled first, so the result is that of the kernel.
Examples:
  tamis bpf eval container-default 'socket(AF_VSOCK)' 'x86 ptrace'
  tamis bpf eval filter.bpf --trace 'openat(flags=O_RDONLY)'
Exit status: 1 if one of the calls isn't allowed.")]
pub(crate) struct Args {
    /// A policy or program: a path, `-`, or an embedded policy's name
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    /// The calls
    #[arg(required = true, value_name = "CALL")]
    calls: Vec<String>,
    /// Show the instructions that are executed
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    cli_call::refuse_before_policy(&args.input, &args.calls)?;
    let raw = args
        .load
        .load(&args.input, global)?
        .into_program(&budget::compile_options())?;
    let arch = args.load.call_arch();
    let mut results = Vec::new();
    for text in &args.calls {
        let data = cli_call::parse(text, arch)?;
        let mut path = Vec::new();
        let mut visit = |Pc(pc): Pc| path.push(pc);
        let run = interp::run_traced(&raw.program, &data, &mut visit);
        if !args.trace {
            path.clear();
        }
        let is_cacheable = raw.is_cacheable(&data);
        results.push(EvalEntry::new(&data, run, is_cacheable, path));
    }
    let all_allowed = results
        .iter()
        .all(|result| Action::from_ret(result.ret).kind.executes());
    let listing = disasm::disassemble(&raw.program, disasm::Style::Commented);
    let listing = listing.lines().map(str::to_owned).collect();
    let report = EvalReport {
        engine: None,
        results,
        listing,
    };
    show(&report, global)?;
    Ok(if all_allowed { exit::OK } else { exit::NO })
}
