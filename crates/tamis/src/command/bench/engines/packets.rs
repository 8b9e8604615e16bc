//! Filters of sockets on packets.

use std::hint::black_box;

use tamis_bpf::interp;
use tamis_bpf::packet::{Packet, Program};
use tamis_engine::{Engine, Error, Options, PacketEvaluator};
use tamis_report::engines::{EnginesCaseEntry, EvaluatedEntry, Row};

use super::race::{Contestant, race};
use super::{ENGINES, EVALUATIONS, Measurement, agree, sum};
use crate::cli::engine::{disagreement, unusable};
use crate::cli::{Failure, packet};

/// Packets that are evaluated one after the other.
struct PacketCase<'a> {
    name: String,
    packets: Vec<Packet<'a>>,
    expected: Vec<u32>,
}

/// Times all evaluators of a filter on one packet, the first that it accepts if there is one, and on the capture, which is
/// repeated if it is short.
pub(super) fn measure(
    name: &str,
    program: &Program,
    packets: &[Packet<'_>],
    measurement: &mut Measurement,
) -> Result<EvaluatedEntry, Failure> {
    let evaluators = evaluators(program, measurement)?;
    let is_accepted = |packet: &Packet<'_>| interp::run_packet(program, packet).ret != 0;
    let chosen = packets.iter().position(is_accepted).unwrap_or(0);
    let repeated = EVALUATIONS.div_ceil(packets.len());
    let cases = [
        (
            format!("packet {}", chosen + 1),
            vec![packets[chosen]; EVALUATIONS],
        ),
        ("the capture".to_owned(), packets.repeat(repeated)),
    ];
    let mut entries = Vec::with_capacity(cases.len());
    for (name_of_case, packets) in cases {
        measurement.progress.show(0.5, &name_of_case);
        let ret = |packet: &Packet<'_>| interp::run_packet(program, packet).ret;
        let case = PacketCase {
            name: name_of_case,
            expected: packets.iter().map(ret).collect(),
            packets,
        };
        entries.push(case.measure(name, program, &evaluators, measurement)?);
    }
    let auto = evaluator(program, Engine::Auto, Some(packets.len())).map_err(unusable)?;
    Ok(EvaluatedEntry {
        name: name.to_owned(),
        length_insns: program.len(),
        auto: auto.choice().to_string(),
        table_bytes: None,
        prepared: measurement.prepared(preparations(program, &evaluators)),
        cases: entries,
    })
}

fn evaluator(
    program: &Program,
    engine: Engine,
    evaluations: Option<usize>,
) -> Result<PacketEvaluator, Error> {
    let options = Options {
        engine,
        evaluations: evaluations.map(|count| count as u64),
        ..Options::default()
    };
    PacketEvaluator::new(program, &packet::KNOWN, &options)
}

fn evaluators(
    program: &Program,
    measurement: &mut Measurement,
) -> Result<Vec<PacketEvaluator>, Failure> {
    let mut ours = Vec::new();
    for engine in ENGINES {
        match evaluator(program, engine, None) {
            Ok(evaluator) => ours.push(evaluator),
            Err(error @ Error::Jit(_)) => {
                measurement.leave_out(engine.name(), None, &error.to_string());
            }
            Err(error) => return Err(unusable(error)),
        }
    }
    Ok(ours)
}

/// What makes them.
fn preparations<'a>(program: &'a Program, evaluators: &[PacketEvaluator]) -> Vec<Contestant<'a>> {
    let prepare = |one: &PacketEvaluator| {
        let engine = one.choice().engine;
        let prepared = move || u32::from(evaluator(black_box(program), engine, None).is_ok());
        Contestant::new(Row::plain(engine.name()), prepared)
    };
    evaluators.iter().map(prepare).collect()
}

impl PacketCase<'_> {
    fn measure(
        &self,
        filter: &str,
        program: &Program,
        evaluators: &[PacketEvaluator],
        measurement: &mut Measurement,
    ) -> Result<EnginesCaseEntry, Failure> {
        let packets = self.packets.as_slice();
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for evaluator in evaluators {
            let row = Row::plain(evaluator.choice().engine.name());
            let run = move |packet: &Packet<'_>| evaluator.run(packet);
            agree(&row, packets, &self.expected, run)?;
            contestants.push(Contestant::new(row, move || sum(packets, run)));
            // Only machine code looks packets up ahead.
            if evaluator.choice().engine != Engine::Jit {
                continue;
            }
            let batch = Row {
                is_batch: true,
                ..row
            };
            let rets = evaluator.run_batch(packets);
            let pairs = rets.iter().zip(&self.expected);
            if let Some((ret, expected)) = pairs.into_iter().find(|(ret, expected)| ret != expected)
            {
                return Err(disagreement(batch, *ret, *expected));
            }
            let run = move || {
                let rets = evaluator.run_batch(black_box(packets));
                rets.into_iter().fold(0, u32::wrapping_add)
            };
            contestants.push(Contestant::new(batch, run));
        }
        let mut is_other = false;
        if let Some(library) = &measurement.libpcap {
            let row = Row::plain(Row::LIBPCAP);
            let run =
                move |packet: &Packet<'_>| library.run(program, packet.bytes, packet.len_bytes);
            is_other = agree(&row, packets, &self.expected, run).is_err();
            if !is_other {
                contestants.push(Contestant::new(row, move || sum(packets, run)));
            }
        }
        let outcome = race(&mut contestants, measurement.rounds, packets.len());
        drop(contestants);
        if is_other {
            let reason = "it gives other values, as for values beside the bytes of a packet";
            measurement.leave_out(Row::LIBPCAP, Some(filter), reason);
        }
        Ok(outcome.entry(self.name.clone(), packets.len()))
    }
}
