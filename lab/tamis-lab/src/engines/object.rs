//! Programs of object files on packets.

use std::hint::black_box;

use tamis_bpf::packet::Packet;
use tamis_ebpf_vm::Program;
use tamis_ebpf_vm::check::Checked;
use tamis_engine::{Engine, Error, ExtendedEvaluator};
use tamis_report::engines::{EnginesCaseEntry, EvaluatedEntry, Row};

use super::extended;
use super::kernel::{self, Kernel};
use super::packets::{PacketCase, cases};
use super::race::Contestant;
use super::{ENGINES, Measurement, agree, sum};
use crate::engine::unusable;
use tamis_cli::Failure;

use crate::object;

/// Times all evaluators of an extended program, used as a filter of a socket.
pub(super) fn measure(
    name: &str,
    program: Program,
    packets: &[Packet<'_>],
    measurement: &mut Measurement,
) -> Result<EvaluatedEntry, Failure> {
    let length_insns = program.insns().len();
    let kernel = Kernel::of_programs(std::slice::from_ref(&program)).map_err(|reason| {
        measurement.leave_out(kernel::ROW.engine, Some(name), &reason);
    });
    let checked = object::checked(program);
    let checked = checked.map_err(|reason| Failure::input(format!("{name}: {reason}")))?;
    let evaluators = evaluators(name, &checked, measurement)?;
    let auto = extended::evaluator(&checked, Engine::Auto, Some(packets.len()));
    let auto = auto.map_err(|error| unusable(name, &error))?;
    // Checked programs have no faults.
    let value = |packet: &Packet<'_>| auto.run_reference(packet).map_or(0, |run| run.ret as u32);
    let mut entries = Vec::new();
    for case in &cases(packets, value) {
        measurement.progress.show(0.5, &case.name);
        entries.push(timed(
            name,
            case,
            &evaluators,
            kernel.as_ref().ok(),
            measurement,
        )?);
    }
    Ok(EvaluatedEntry {
        name: name.to_owned(),
        length_insns,
        auto: auto.choice().to_string(),
        table_bytes: None,
        prepared: measurement.prepared(preparations(&checked, &evaluators)),
        cases: entries,
    })
}

fn evaluators(
    name: &str,
    checked: &Checked,
    measurement: &mut Measurement,
) -> Result<Vec<ExtendedEvaluator>, Failure> {
    let mut ours = Vec::new();
    for engine in ENGINES {
        match extended::evaluator(checked, engine, None) {
            Ok(evaluator) => ours.push(evaluator),
            Err(error @ Error::Jit(_)) => {
                measurement.leave_out(engine.name(), None, &error.to_string());
            }
            Err(error) => return Err(unusable(name, &error)),
        }
    }
    Ok(ours)
}

fn row(evaluator: &ExtendedEvaluator) -> Row {
    Row::plain(evaluator.choice().engine.name())
}

/// The preparations of the evaluators.
fn preparations<'a>(checked: &'a Checked, evaluators: &[ExtendedEvaluator]) -> Vec<Contestant<'a>> {
    let prepare = |one: &ExtendedEvaluator| {
        let engine = one.choice().engine;
        let prepared =
            move || u32::from(extended::evaluator(black_box(checked), engine, None).is_ok());
        Contestant::new(row(one), prepared)
    };
    evaluators.iter().map(prepare).collect()
}

/// Times a case.
fn timed(
    name: &str,
    case: &PacketCase<'_>,
    evaluators: &[ExtendedEvaluator],
    kernel: Option<&Kernel>,
    measurement: &mut Measurement,
) -> Result<EnginesCaseEntry, Failure> {
    let packets = case.packets.as_slice();
    let mut contestants: Vec<Contestant<'_>> = Vec::new();
    for evaluator in evaluators {
        let row = row(evaluator);
        agree(&row, packets, &case.expected, extended::run(evaluator))?;
        let mut run = extended::run(evaluator);
        contestants.push(Contestant::new(row, move || sum(packets, &mut run)));
    }
    let (entry, missing) = case.race(contestants, kernel, measurement.rounds);
    if let Some(reason) = missing {
        measurement.leave_out(kernel::ROW.engine, Some(name), &reason);
    }
    Ok(entry)
}
