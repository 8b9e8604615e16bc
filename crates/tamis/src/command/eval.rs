//! `tamis eval`: what a filter answers to calls.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::{Action, ActionKind, SeccompData, call};
use tamis_bpf::{Pc, disasm, interp};
use tamis_session::NamedProgram;

use crate::cli::load::LoadArgs;
use crate::cli::output::{print, print_json};
use crate::cli::{Failure, Global, call as cli_call, exit};

/// Evaluate system calls against a filter
#[derive(clap::Args)]
#[command(after_help = "\
A call is `[ARCH] NAME(ARGUMENTS)`. A policy is compiled first, so the result is that of the kernel.
Examples:
  tamis eval container-default 'socket(AF_VSOCK)' 'x86 ptrace'
  tamis eval filter.bpf --trace 'openat(flags=O_RDONLY)'
Exit status: 1 if one of the calls isn't allowed.")]
pub(crate) struct Args {
    /// A policy or program: a path, `-` for standard input, or the name of an embedded policy
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

/// The document for programs.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    results: Vec<Evaluation>,
}

/// The answer to one call.
#[derive(Serialize)]
struct Evaluation {
    call: String,
    action: String,
    ret: u32,
    steps: u32,
    cacheable: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<usize>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let raw = args
        .load
        .load(&args.input, global)?
        .into_program(&tamis_compiler::CompileOptions::default())?;
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
        results.push(evaluation(&raw, &data, run, path));
    }
    let all_allowed = results
        .iter()
        .all(|result| is_allowed(Action::from_ret(result.ret)));
    if global.json {
        print_json(&Document {
            schema: "tamis.eval/1",
            results,
        })?;
    } else {
        let listing = disasm::disassemble(&raw.program, disasm::Style::Commented);
        let listing: Vec<&str> = listing.lines().collect();
        print(lines(&results, &listing).as_bytes())?;
    }
    Ok(if all_allowed { exit::OK } else { exit::NO })
}

/// Whether a call with this answer is executed.
fn is_allowed(action: Action) -> bool {
    matches!(action.kind, ActionKind::Allow | ActionKind::Log)
}

fn evaluation(
    raw: &NamedProgram,
    data: &SeccompData,
    run: interp::Run,
    path: Vec<usize>,
) -> Evaluation {
    Evaluation {
        call: call::describe(data),
        action: Action::from_ret(run.ret).to_string(),
        ret: run.ret,
        steps: run.steps,
        cacheable: raw.is_cacheable(data),
        path,
    }
}

fn lines(results: &[Evaluation], listing: &[&str]) -> String {
    let mut text = String::new();
    for result in results {
        let Evaluation {
            call,
            action,
            steps,
            cacheable,
            path,
            ..
        } = result;
        let cacheable = if *cacheable { ", cacheable" } else { "" };
        let _ = writeln!(text, "{call} -> {action}  ({steps} steps{cacheable})");
        for pc in path {
            let _ = writeln!(text, "  {pc:>4}  {}", listing[*pc].trim());
        }
    }
    text
}
