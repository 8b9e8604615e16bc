//! Filters of sockets, which load from packets.

use tamis_abi::Endian;
use tamis_bpf::disasm;
use tamis_bpf::program::insns_to_bytes;
use tamis_compiler::packet::{Difference, Optimised, Outcome, optimise};
use tamis_prover::Limits;
use tamis_report::disasm::DisasmReport;
use tamis_report::entry::counted;

use super::{Args, Emit};
use crate::cli::output::{document_json, print};
use crate::cli::{Failure, Global, budget, exit, message, packet};

pub(super) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let input = match args.inputs.as_slice() {
        [] => "-",
        [input] => input,
        _ => {
            return Err(Failure::usage(
                "filters of sockets are not a stack",
                "name one",
            ));
        }
    };
    let given = packet::load(input)?;
    let effort = budget::effort(Limits::default());
    let optimised = optimise(&given, &effort).map_err(|difference| bug(&difference))?;
    let form = args.form(global);
    let shows_person = args.emit.is_none() && args.output.is_terminal();
    let is_unproved = matches!(optimised.outcome, Outcome::Unproved(_));
    if args.compiler.stats || shows_person || is_unproved {
        message(&summary(given.len(), &optimised));
    }
    let program = &optimised.program;
    let document = || document_json(&DisasmReport::from_insns(program.insns()));
    let listing = || disasm::disassemble_packet(program, disasm::Style::Commented);
    match form {
        Some(Emit::Json) => args.output.text(&document()?)?,
        Some(Emit::Asm) => args.output.text(&listing())?,
        None if shows_person => args.output.text(&listing())?,
        Some(Emit::Annotation) => {
            return Err(Failure::usage(
                "crun has no annotation for filters of sockets",
                "choose `--emit bpf` or `--emit asm`",
            ));
        }
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

/// The lengths, and what is known of the result.
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
