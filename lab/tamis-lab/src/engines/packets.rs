//! Filters of sockets on packets.

use std::hint::black_box;

use tamis_bpf::interp;
use tamis_bpf::packet::{Packet, Program};
use tamis_engine::{Engine, Error, ExtendedEvaluator, Options, PacketEvaluator};
use tamis_kernel::measure::Rounds;
use tamis_report::engines::{EnginesCaseEntry, EvaluatedEntry, Row};

use super::extended;
use super::kernel::{self, Kernel, Missing, Turn};
use super::race::Contestant;
use super::{ENGINES, EVALUATIONS, Measurement, agree, sum};
use crate::engine::{disagreement, unusable};
use tamis_cli::Failure;

use crate::packet;

/// The reason that an evaluator is left out.
const OTHER_VALUES: &str = "it gives other values, as for values beside the bytes of a packet";

/// Packets that are evaluated in sequence.
pub(super) struct PacketCase<'a> {
    pub(super) name: String,
    pub(super) packets: Vec<Packet<'a>>,
    pub(super) expected: Vec<u32>,
    /// Whether all packets are the same.
    pub(super) is_one: bool,
}

/// The evaluators of a filter.
struct Evaluators {
    ours: Vec<PacketEvaluator>,
    /// Evaluators of the filter as an extended program.
    extended: Vec<(Row, ExtendedEvaluator)>,
    kernel: Option<Kernel>,
}

/// The cases of a program: one packet (the first accepted one, else the first), and the capture, repeated if it is
/// short.
pub(super) fn cases<'p>(
    packets: &[Packet<'p>],
    value: impl Fn(&Packet<'_>) -> u32,
) -> [PacketCase<'p>; 2] {
    let expected: Vec<u32> = packets.iter().map(value).collect();
    let chosen = expected.iter().position(|ret| *ret != 0).unwrap_or(0);
    let repeated = EVALUATIONS.div_ceil(packets.len());
    [
        PacketCase {
            name: format!("packet {}", chosen + 1),
            packets: vec![packets[chosen]; EVALUATIONS],
            expected: vec![expected[chosen]; EVALUATIONS],
            is_one: true,
        },
        PacketCase {
            name: "the capture".to_owned(),
            packets: packets.repeat(repeated),
            expected: expected.repeat(repeated),
            is_one: false,
        },
    ]
}

/// Times all evaluators of a filter.
pub(super) fn measure(
    name: &str,
    program: &Program,
    packets: &[Packet<'_>],
    measurement: &mut Measurement,
) -> Result<EvaluatedEntry, Failure> {
    let evaluators = Evaluators::new(name, program, measurement)?;
    let cases = cases(packets, |packet| interp::run_packet(program, packet).ret);
    let mut entries = Vec::with_capacity(cases.len());
    for case in &cases {
        measurement.progress.show(0.5, &case.name);
        entries.push(case.measure(name, program, &evaluators, measurement)?);
    }
    let auto = evaluator(program, Engine::Auto, Some(packets.len()))
        .map_err(|error| unusable(name, &error))?;
    Ok(EvaluatedEntry {
        name: name.to_owned(),
        length_insns: program.len(),
        auto: auto.choice().to_string(),
        table_bytes: None,
        prepared: measurement.prepared(preparations(program, &evaluators.ours)),
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

impl Evaluators {
    fn new(
        name: &str,
        program: &Program,
        measurement: &mut Measurement,
    ) -> Result<Evaluators, Failure> {
        let mut ours = Vec::new();
        for engine in ENGINES {
            match evaluator(program, engine, None) {
                Ok(evaluator) => ours.push(evaluator),
                Err(error @ Error::Jit(_)) => {
                    measurement.leave_out(engine.name(), None, &error.to_string());
                }
                Err(error) => return Err(unusable(name, &error)),
            }
        }
        let mut others = Vec::new();
        let engines = extended::ROWS
            .into_iter()
            .zip([Engine::Threaded, Engine::Jit]);
        match extended::of_packet_filter(program) {
            Ok(checked) => {
                for (row, engine) in engines {
                    match extended::evaluator(&checked, engine, None) {
                        Ok(evaluator) => others.push((row, evaluator)),
                        Err(error) => {
                            measurement.leave_out(row.engine, None, &error.to_string());
                        }
                    }
                }
            }
            Err(reason) => measurement.leave_out(extended::ROWS[0].engine, Some(name), &reason),
        }
        let kernel = Kernel::of_packet_filter(program).map_err(|reason| {
            measurement.leave_out(kernel::ROW.engine, Some(name), &reason);
        });
        Ok(Evaluators {
            ours,
            extended: others,
            kernel: kernel.ok(),
        })
    }
}

/// The preparations of the evaluators.
fn preparations<'a>(program: &'a Program, evaluators: &[PacketEvaluator]) -> Vec<Contestant<'a>> {
    let prepare = |one: &PacketEvaluator| {
        let engine = one.choice().engine;
        let prepared = move || u32::from(evaluator(black_box(program), engine, None).is_ok());
        Contestant::new(Row::plain(engine.name()), prepared)
    };
    evaluators.iter().map(prepare).collect()
}

impl PacketCase<'_> {
    /// The engines of tamis; fails if one differs from the reference interpreter.
    fn ours<'c>(&'c self, ours: &'c [PacketEvaluator]) -> Result<Vec<Contestant<'c>>, Failure> {
        let packets = self.packets.as_slice();
        let mut contestants = Vec::new();
        for evaluator in ours {
            let row = Row::plain(evaluator.choice().engine.name());
            let run = move |packet: &Packet<'_>| evaluator.run(packet);
            agree(&row, packets, &self.expected, run)?;
            contestants.push(Contestant::new(row, move || sum(packets, run)));
            // Only machine code prefetches the packets of a batch.
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
        Ok(contestants)
    }

    fn measure(
        &self,
        filter: &str,
        program: &Program,
        evaluators: &Evaluators,
        measurement: &mut Measurement,
    ) -> Result<EnginesCaseEntry, Failure> {
        let packets = self.packets.as_slice();
        let mut contestants = self.ours(&evaluators.ours)?;
        // Other evaluators have less metadata of a packet, so they may return other values.
        let mut others: Vec<&'static str> = Vec::new();
        for (row, evaluator) in &evaluators.extended {
            if agree(row, packets, &self.expected, extended::run(evaluator)).is_err() {
                others.push(row.engine);
                continue;
            }
            let mut run = extended::run(evaluator);
            contestants.push(Contestant::new(*row, move || sum(packets, &mut run)));
        }
        if let Some(library) = &measurement.libpcap {
            let row = Row::plain(Row::LIBPCAP);
            let run =
                move |packet: &Packet<'_>| library.run(program, packet.bytes, packet.len_bytes);
            match agree(&row, packets, &self.expected, run) {
                Ok(()) => contestants.push(Contestant::new(row, move || sum(packets, run))),
                Err(_) => others.push(row.engine),
            }
        }
        let kernel = evaluators.kernel.as_ref();
        let (entry, missing) = self.race(contestants, kernel, measurement.rounds);
        for engine in others {
            measurement.leave_out(engine, Some(filter), OTHER_VALUES);
        }
        if let Some(reason) = missing {
            measurement.leave_out(kernel::ROW.engine, Some(filter), &reason);
        }
        Ok(entry)
    }

    /// Times evaluators, with the kernel if it is given; also returns the reason that the kernel is left out.
    pub(super) fn race<'c>(
        &'c self,
        contestants: Vec<Contestant<'c>>,
        kernel: Option<&'c Kernel>,
        rounds: Rounds,
    ) -> (EnginesCaseEntry, Option<String>) {
        let turn = kernel.filter(|_| self.is_one).map(|kernel| Turn {
            kernel,
            packet: self.packets[0].bytes,
            value: kernel.value(self.packets[0].bytes),
        });
        let (outcome, missing) = kernel::race_beside(contestants, turn, &self.expected, rounds);
        let reason = missing.map(|missing| match missing {
            // A classifier's packet has more metadata than a file's.
            Missing::OtherValue(_) => OTHER_VALUES.to_owned(),
            Missing::Unable(reason) => reason,
        });
        (
            outcome.entry(self.name.clone(), self.expected.len()),
            reason,
        )
    }
}
