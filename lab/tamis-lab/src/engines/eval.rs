//! `tamis-lab engines eval`: calls on an engine, compared with the reference interpreter.

use tamis_abi::{Action, SeccompData};
use tamis_bpf::{Stack, disasm, interp};
use tamis_cli::load::LoadArgs;
use tamis_cli::output::show;
use tamis_cli::{Failure, Global, budget, call, exit, input};
use tamis_engine::{Engine, Evaluator, Options};
use tamis_report::eval::{EvalEntry, EvalReport};

use crate::engine::{disagreement, unusable};

/// Evaluate calls on an engine, compared with the reference interpreter
#[derive(clap::Args)]
#[command(after_help = "\
A call is `[ARCH] NAME(ARGUMENTS)`. A policy is compiled first.
Example:
  tamis-lab engines eval container-default 'socket(AF_VSOCK)' --engine jit
Exit status: 1 if one of the calls isn't allowed.")]
pub(crate) struct Args {
    /// A policy or program: a path, `-`, or an embedded policy's name
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    /// The calls
    #[arg(required = true, value_name = "CALL")]
    calls: Vec<String>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    load: LoadArgs,
}

/// Which engine.
#[derive(clap::Args)]
pub(crate) struct EngineArgs {
    /// What evaluates: reference, threaded, jit, or auto for the fastest
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = parse_engine)]
    engine: Engine,
}

impl EngineArgs {
    /// The options for so many evaluations.
    pub(crate) fn options(&self, evaluations: usize) -> Options {
        Options {
            engine: self.engine,
            evaluations: Some(evaluations as u64),
            ..Options::default()
        }
    }
}

fn parse_engine(name: &str) -> Result<Engine, String> {
    Engine::from_name(name).ok_or_else(|| {
        let names = Engine::ALL.map(Engine::name).join(", ");
        format!("the engines are {names}")
    })
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    call::refuse_before_policy(&args.input, &args.calls)?;
    let raw = args
        .load
        .load(&args.input, global)?
        .into_program(&budget::compile_options())?;
    let arch = args.load.call_arch();
    let calls: Result<Vec<SeccompData>, Failure> = args
        .calls
        .iter()
        .map(|text| call::parse(text, arch))
        .collect();
    let calls = calls?;
    let stack = Stack::from(raw.program.clone());
    let evaluator = Evaluator::new(&stack, &args.engine.options(calls.len()))
        .map_err(|error| unusable(&args.input, &error))?;
    let mut results = Vec::with_capacity(calls.len());
    for call in &calls {
        let run = interp::run(&raw.program, call);
        let ret = evaluator.run(call);
        if ret != run.ret {
            return Err(disagreement(evaluator.choice().engine, ret, run.ret));
        }
        results.push(EvalEntry::new(
            call,
            run,
            raw.is_cacheable(call),
            Vec::new(),
        ));
    }
    let all_allowed = results
        .iter()
        .all(|result| Action::from_ret(result.ret).kind.executes());
    let listing = disasm::disassemble(&raw.program, disasm::Style::Commented);
    let report = EvalReport {
        engine: Some(evaluator.choice().to_string()),
        results,
        listing: listing.lines().map(str::to_owned).collect(),
    };
    show(&report, global)?;
    Ok(if all_allowed { exit::OK } else { exit::NO })
}
