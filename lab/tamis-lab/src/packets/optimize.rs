//! `tamis-lab packets optimize`: optimiser for filters of sockets.

use clap::ValueEnum;
use tamis_abi::Endian;
use tamis_bpf::disasm;
use tamis_bpf::program::insns_to_bytes;
use tamis_cli::output::{OutputArgs, document_json, print};
use tamis_cli::{Failure, Global, budget, exit, input, message};
use tamis_packets::{Difference, Optimised, Outcome, optimise};
use tamis_prover::Limits;
use tamis_report::disasm::DisasmReport;
use tamis_report::entry::counted;

use crate::packet;

/// Optimise a filter of a socket, proved to return the same for every packet
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tcpdump -ddd 'port 22' | tamis-lab packets optimize -o better.bpf")]
pub(crate) struct Args {
    /// The filter: a path, or `-` for standard input
    #[arg(default_value = "-", value_parser = input::path_parser())]
    input: String,
    /// What to print
    #[arg(long, value_name = "FORM")]
    emit: Option<Emit>,
    /// Print the lengths, and what is known of the result
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// What the result is printed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The raw program
    Bpf,
    /// Assembler text with comments
    Asm,
    /// A JSON document with the instructions
    Json,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.output.refuse_to_replace(&args.input)?;
    args.output.refuse_to_replace_policy()?;
    let given = packet::load(&args.input)?;
    let effort = budget::effort(Limits::default());
    let optimised = optimise(&given, &effort).map_err(|difference| bug(&difference))?;
    packet::check_attachable(&optimised.program)?;
    let is_document = global.json && !args.output.is_beside_document(global);
    let form = args.emit.or(is_document.then_some(Emit::Json));
    let shows_person = form.is_none() && args.output.is_terminal();
    let is_unproved = matches!(optimised.outcome, Outcome::Unproved(_));
    if args.stats || shows_person || is_unproved {
        message(&summary(given.len(), &optimised));
    }
    let program = &optimised.program;
    let document = || document_json(&DisasmReport::from_insns(program.insns()));
    match form {
        Some(Emit::Json) => args.output.text(&document()?)?,
        Some(Emit::Asm) => args.output.text(&disasm::disassemble_packet(
            program,
            disasm::Style::Commented,
        ))?,
        None if shows_person => args.output.text(&disasm::disassemble_packet(
            program,
            disasm::Style::Commented,
        ))?,
        Some(Emit::Bpf) | None => {
            let bytes = insns_to_bytes(program.insns(), Endian::Little);
            args.output.raw(&bytes)?;
        }
    }
    if args.output.is_beside_document(global) && form != Some(Emit::Json) {
        print(document()?.as_bytes())?;
    }
    Ok(exit::OK)
}

/// The lengths, and the result of the proof and of the comparison.
fn summary(given_insns: usize, optimised: &Optimised) -> String {
    let after = counted(optimised.program.len(), "instruction");
    let judged = match optimised.outcome {
        Outcome::Unchanged => "the input: no better filter was found".to_owned(),
        Outcome::Unproved(reason) => {
            format!("the input: a better filter was found, but not proved: {reason}")
        }
        Outcome::Proved(comparison) => {
            let packets = counted(comparison.packets, "packet");
            let (taken, all) = (comparison.taken_outcomes, comparison.outcomes);
            format!(
                "proved for every packet\n\
                 the same values for {packets}, which take {taken} of {all} outcomes of branches"
            )
        }
    };
    format!("{given_insns} -> {after}, {judged}")
}

fn bug(difference: &Difference) -> Failure {
    let [given, result] = difference.rets;
    let bytes: String = difference
        .bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Failure::bug(
        format!("the optimised filter returns {result} instead of {given} for the packet {bytes}"),
        "please report this with the filter; no program was written",
    )
}
