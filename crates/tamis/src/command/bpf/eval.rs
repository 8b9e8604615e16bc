//! `tamis bpf eval`: what a filter answers to calls, or a socket's filter to packets.

use tamis_abi::{Action, SeccompData};
use tamis_bpf::{Pc, Stack, disasm, interp};
use tamis_ebpf::interp::Fault;
use tamis_engine::{Choice, Engine, Evaluator, ExtendedEvaluator, Options, PacketEvaluator};
use tamis_report::eval::{EvalEntry, EvalReport};
use tamis_report::packets::PacketsReport;
use tamis_session::files;

use crate::cli::engine::{disagreement, unusable};
use crate::cli::load::LoadArgs;
use crate::cli::output::show;
use crate::cli::packet::{self, Capture};
use crate::cli::{Failure, Global, budget, call as cli_call, exit, input, object};

/// Evaluate calls against a filter, or packets against a socket's
#[derive(clap::Args)]
#[command(after_help = "\
A call is `[ARCH] NAME(ARGUMENTS)`. A policy is compiled first, so the result is that of the kernel.
Examples:
  tamis bpf eval container-default 'socket(AF_VSOCK)' 'x86 ptrace'
  tamis bpf eval filter.bpf --trace 'openat(flags=O_RDONLY)'
  tcpdump -dd 'port 22' | tamis bpf eval - --packet capture.pcap
  tamis bpf eval filter.o --section socket --packet capture.pcap
Exit status: 1 if one of the calls isn't allowed, or none of the packets accepted.")]
pub(crate) struct Args {
    /// A policy or program: a path, `-`, or an embedded policy's name
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    input: String,
    /// The calls
    #[arg(required_unless_present = "packet", value_name = "CALL")]
    calls: Vec<String>,
    /// Show the instructions that are executed
    #[arg(long)]
    trace: bool,
    /// Evaluate a filter of a socket on the packets of a capture
    ///
    /// Or an extended program in an object file. The capture has the format pcap or pcapng.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["calls", "trace", "from", "arches", "strict", "kernel",
          "language_options"], value_parser = input::path_parser())]
    packet: Option<String>,
    /// The section of an object file with the program [default: the only one]
    #[arg(long, value_name = "NAME", requires = "packet", hide_short_help = true)]
    section: Option<String>,
    /// What evaluates: reference, threaded, jit, or auto for the fastest
    ///
    /// It is compared with the reference.
    #[arg(long, value_name = "ENGINE", value_parser = parse_engine)]
    engine: Option<Engine>,
    #[command(flatten)]
    load: LoadArgs,
}

fn parse_engine(name: &str) -> Result<Engine, String> {
    Engine::from_name(name).ok_or_else(|| {
        let names = Engine::ALL.map(Engine::name).join(", ");
        format!("the engines are {names}")
    })
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.packet {
        Some(capture) => packets(args, capture, global),
        None => calls(args, global),
    }
}

fn calls(args: &Args, global: &Global) -> Result<u8, Failure> {
    cli_call::refuse_before_policy(&args.input, &args.calls)?;
    let raw = args
        .load
        .load(&args.input, global)?
        .into_program(&budget::compile_options())?;
    let arch = args.load.call_arch();
    let mut results = Vec::new();
    // The calls with the answers of the reference interpreter.
    let mut asked = Vec::new();
    for text in &args.calls {
        let data = cli_call::parse(text, arch)?;
        let mut path = Vec::new();
        let mut visit = |Pc(pc): Pc| path.push(pc);
        let run = interp::run_traced(&raw.program, &data, &mut visit);
        if !args.trace {
            path.clear();
        }
        let is_cacheable = raw.is_cacheable(&data);
        asked.push((data, run.ret));
        results.push(EvalEntry::new(&data, run, is_cacheable, path));
    }
    let engine = match args.engine {
        Some(engine) => {
            let stack = Stack::from(raw.program.clone());
            let evaluator = Evaluator::new(&stack, &options(engine, asked.len()))
                .map_err(|error| unusable(&args.input, &error))?;
            Some(compared(&evaluator, &asked)?)
        }
        None => None,
    };
    let all_allowed = results
        .iter()
        .all(|result| Action::from_ret(result.ret).kind.executes());
    let listing = disasm::disassemble(&raw.program, disasm::Style::Commented);
    let listing = listing.lines().map(str::to_owned).collect();
    let report = EvalReport {
        engine,
        results,
        listing,
    };
    show(&report, global)?;
    Ok(if all_allowed { exit::OK } else { exit::NO })
}

/// Runs calls, compares the results with those that are expected, and says on which engine.
fn compared(evaluator: &Evaluator, calls: &[(SeccompData, u32)]) -> Result<String, Failure> {
    for (call, expected) in calls {
        let ret = evaluator.run(call);
        if ret != *expected {
            return Err(disagreement(evaluator.choice().engine, ret, *expected));
        }
    }
    Ok(evaluator.choice().to_string())
}

fn packets(args: &Args, capture: &str, global: &Global) -> Result<u8, Failure> {
    let input = files::read(&args.input)?;
    if let Some(program) = object::program(&input, args.section.as_deref())? {
        return extended(args, program, &Capture::read(capture)?, global);
    }
    let program = packet::of_input(&input)?;
    let capture = Capture::read(capture)?;
    let count = capture.packets().count();
    let engine = args.engine.unwrap_or_default();
    let evaluator = PacketEvaluator::new(&program, &packet::KNOWN, &options(engine, count))
        .map_err(|error| unusable(&input.name, &error))?;
    let mut runs = Vec::with_capacity(count);
    for packet in capture.packets() {
        let run = interp::run_packet(&program, &packet);
        let ret = evaluator.run(&packet);
        if ret != run.ret {
            return Err(disagreement(evaluator.choice().engine, ret, run.ret));
        }
        runs.push([packet.len_bytes, run.ret, run.steps]);
    }
    show_packets(evaluator.choice(), &runs, global)
}

/// An extended program, which must be safe as for the kernel.
fn extended(
    args: &Args,
    program: tamis_ebpf::Program,
    capture: &Capture,
    global: &Global,
) -> Result<u8, Failure> {
    let checked = object::checked(program)
        .map_err(|reason| Failure::input(format!("{}: {reason}", args.input)))?;
    let count = capture.packets().count();
    let options = options(args.engine.unwrap_or_default(), count);
    let evaluator =
        ExtendedEvaluator::new(checked, &options).map_err(|error| unusable(&args.input, &error))?;
    let mut runs = Vec::with_capacity(count);
    for packet in capture.packets() {
        let wrong = |fault: Fault| Failure::input(format!("{}: {fault}", args.input));
        let run = evaluator.run_reference(&packet).map_err(wrong)?;
        let (ret, expected) = (evaluator.run(&packet).map_err(wrong)?, run.ret as u32);
        if ret != expected {
            return Err(disagreement(evaluator.choice().engine, ret, expected));
        }
        let steps = u32::try_from(run.steps).unwrap_or(u32::MAX);
        runs.push([packet.len_bytes, ret, steps]);
    }
    show_packets(evaluator.choice(), &runs, global)
}

fn show_packets(choice: &Choice, runs: &[[u32; 3]], global: &Global) -> Result<u8, Failure> {
    let report = PacketsReport::new(choice.to_string(), runs);
    show(&report, global)?;
    Ok(if report.accepted > 0 {
        exit::OK
    } else {
        exit::NO
    })
}

fn options(engine: Engine, evaluations: usize) -> Options {
    Options {
        engine,
        evaluations: Some(evaluations as u64),
        ..Options::default()
    }
}
