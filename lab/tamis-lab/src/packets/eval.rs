//! `tamis-lab packets eval` and `tamis-lab ebpf eval`: the values of a socket's filter for the packets of a capture.

use tamis_bpf::interp;
use tamis_cli::output::show;
use tamis_cli::{Failure, Global, exit, input};
use tamis_ebpf_vm::interp::Fault;
use tamis_engine::{Choice, ExtendedEvaluator, PacketEvaluator};
use tamis_report::packets::PacketsReport;
use tamis_session::files;

use crate::engine::{disagreement, unusable};
use crate::engines::eval::EngineArgs;
use crate::object;
use crate::packet::{self, Capture};

/// Evaluate a filter of a socket, or a program of an object file, on the packets of a capture
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tcpdump -dd 'port 22' | tamis-lab packets eval - capture.pcap
  tamis-lab packets eval filter.o capture.pcap --section socket
Exit status: 1 if none of the packets is accepted.")]
pub(crate) struct Args {
    /// The filter: a path, or `-` for standard input
    #[arg(value_parser = input::path_parser())]
    filter: String,
    /// The capture, in the format pcap or pcapng
    #[arg(value_parser = input::path_parser())]
    capture: String,
    /// The section of an object file with the program [default: the only one]
    #[arg(long, value_name = "NAME")]
    section: Option<String>,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let input = files::read(&args.filter)?;
    if let Some(program) = object::program(&input, args.section.as_deref())? {
        return extended(args, program, &Capture::read(&args.capture)?, global);
    }
    let program = packet::of_input(&input)?;
    let capture = Capture::read(&args.capture)?;
    let count = capture.packets().count();
    let evaluator = PacketEvaluator::new(&program, &packet::KNOWN, &args.engine.options(count))
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

/// An extended program, which must be safe by the kernel's rules.
fn extended(
    args: &Args,
    program: tamis_ebpf_vm::Program,
    capture: &Capture,
    global: &Global,
) -> Result<u8, Failure> {
    let checked = object::checked(program)
        .map_err(|reason| Failure::input(format!("{}: {reason}", args.filter)))?;
    let count = capture.packets().count();
    let evaluator = ExtendedEvaluator::new(checked, &args.engine.options(count))
        .map_err(|error| unusable(&args.filter, &error))?;
    let mut runs = Vec::with_capacity(count);
    for packet in capture.packets() {
        let wrong = |fault: Fault| Failure::input(format!("{}: {fault}", args.filter));
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
