//! Stacks of seccomp filters on calls.

use std::hint::black_box;

use tamis_abi::{Endian, Nr, SeccompData, call, syscall};
use tamis_bpf::{Program, Stack, packet, stack};
use tamis_ebpf_vm::convert::seccomp_context;
use tamis_ebpf_vm::memory::Frames;
use tamis_engine::{Engine, Error, Evaluator, Options};
use tamis_fuzz::rng::Rng;
use tamis_report::engines::{EnginesCaseEntry, EvaluatedEntry, Row};
use tamis_vm::{Code, Seen};

use super::BenchArgs;
use super::extended::{self, Converted};
use super::kernel::{self, Kernel, Missing, Turn};
use super::race::Contestant;
use super::{ENGINES, EVALUATIONS, Measurement, agree, sum};
use crate::engine::{disagreement, unusable};
use tamis_cli::{Failure, call as cli_call};

/// Calls that filters treat differently: the usual ones, some with tests of arguments, and a call that is seldom
/// allowed.
const TYPICAL: [&str; 6] = [
    "read",
    "futex",
    "openat",
    "clone",
    "personality",
    "kexec_load",
];

/// Calls that are evaluated in sequence.
pub(super) struct CallCase {
    name: String,
    calls: Vec<SeccompData>,
}

/// An evaluator of the bytes of a call.
type ByBytes<'e> = Box<dyn FnMut(&[u8; 64]) -> u32 + 'e>;

/// The evaluators of a stack.
struct Evaluators {
    ours: Vec<(Row, Evaluator)>,
    /// With coverage.
    codes: Vec<Code>,
    /// For libpcap, if it accepts all filters.
    sockets: Option<Vec<packet::Program>>,
    /// As extended programs, if all can be converted.
    converted: Option<Converted>,
    /// In the kernel, if it accepts all filters.
    kernel: Option<Kernel>,
}

/// The calls of the arguments; by default typical calls and a mix of random numbers.
pub(super) fn cases(args: &BenchArgs) -> Result<Vec<CallCase>, Failure> {
    let arch = args.load.call_arch();
    let one = |call: SeccompData| CallCase {
        name: call::describe_briefly(&call),
        calls: vec![call; EVALUATIONS],
    };
    if !args.calls.is_empty() {
        let texts = args.calls.iter().flat_map(|calls| cli_call::split(calls));
        return texts
            .map(|text| cli_call::parse(text.trim(), arch).map(one))
            .collect();
    }
    let call = |Nr(nr): Nr| SeccompData {
        nr,
        arch: arch.audit(),
        ..SeccompData::default()
    };
    let typical = TYPICAL
        .iter()
        .filter_map(|name| syscall::number(arch, name));
    let mut cases: Vec<CallCase> = typical.map(call).map(one).collect();
    let numbers: Vec<Nr> = syscall::all(arch).map(|(nr, _)| nr).collect();
    let mut random = Rng::new(args.seed);
    let draw = |_| call(*random.choose(&numbers));
    cases.push(CallCase {
        name: "random numbers".to_owned(),
        calls: (0..EVALUATIONS).map(draw).collect(),
    });
    Ok(cases)
}

/// Times all evaluators of a stack.
pub(super) fn measure(
    name: &str,
    stack: &Stack,
    cases: &[CallCase],
    measurement: &mut Measurement,
) -> Result<EvaluatedEntry, Failure> {
    let evaluators = Evaluators::new(name, stack, measurement)?;
    let mut entries = Vec::with_capacity(cases.len());
    for (index, case) in cases.iter().enumerate() {
        let done = index as f64 / cases.len() as f64;
        measurement.progress.show(done, &case.name);
        entries.push(evaluators.case(name, stack, case, measurement)?);
    }
    let auto =
        Evaluator::new(stack, &Options::default()).map_err(|error| unusable(name, &error))?;
    let tables = evaluators.ours.iter();
    let table = tables.filter_map(|(_, one)| one.table()).next();
    Ok(EvaluatedEntry {
        name: name.to_owned(),
        length_insns: stack.programs().iter().map(Program::len).sum(),
        auto: auto.choice().to_string(),
        table_bytes: table.map(tamis_vm::cache::Table::size_bytes),
        prepared: measurement.prepared(evaluators.preparations(stack)),
        cases: entries,
    })
}

fn options(engine: Engine, is_cached: bool) -> Options {
    Options {
        engine,
        is_cached,
        ..Options::default()
    }
}

impl Evaluators {
    fn new(
        name: &str,
        stack: &Stack,
        measurement: &mut Measurement,
    ) -> Result<Evaluators, Failure> {
        let mut ours = Vec::new();
        for engine in ENGINES {
            // The reference interpreter has no entry points but the first instruction, so a table is of no use to it.
            let has_table = engine != Engine::Reference;
            for is_cached in [false, true].into_iter().take(1 + usize::from(has_table)) {
                let row = Row {
                    is_cached,
                    ..Row::plain(engine.name())
                };
                match Evaluator::new(stack, &options(engine, is_cached)) {
                    Ok(evaluator) => ours.push((row, evaluator)),
                    Err(error @ Error::Jit(_)) => {
                        measurement.leave_out(row.engine, None, &error.to_string());
                    }
                    Err(error) => return Err(unusable(name, &error)),
                }
            }
        }
        let programs = stack.programs();
        let socket = |program: &Program| packet::Program::new(program.insns().to_vec());
        let sockets: Result<Vec<_>, _> = programs.iter().map(socket).collect();
        let sockets = sockets.map_err(|error| {
            measurement.leave_out(Row::LIBPCAP, Some(name), &error.to_string());
        });
        let [interpreted, native] = extended::ROWS;
        let converted = Converted::new(stack).map_err(|reason| {
            measurement.leave_out(interpreted.engine, Some(name), &reason);
        });
        if let Some(error) = converted.iter().find_map(Converted::without_native) {
            measurement.leave_out(native.engine, None, &error.to_string());
        }
        let kernel = Kernel::of_stack(stack).map_err(|reason| {
            measurement.leave_out(kernel::ROW.engine, Some(name), &reason);
        });
        Ok(Evaluators {
            ours,
            converted: converted.ok(),
            kernel: kernel.ok(),
            codes: programs.iter().map(Code::of_program).collect(),
            sockets: sockets.ok(),
        })
    }

    /// The preparations of the evaluators.
    fn preparations<'a>(&'a self, stack: &'a Stack) -> Vec<Contestant<'a>> {
        let prepare = |(row, evaluator): &(Row, Evaluator)| {
            let options = options(evaluator.choice().engine, row.is_cached);
            let prepared = move || u32::from(Evaluator::new(black_box(stack), &options).is_ok());
            Contestant::new(*row, prepared)
        };
        let coverage = Contestant::new(Row::plain("coverage"), move || {
            let codes = black_box(stack).programs().iter().map(Code::of_program);
            codes.count() as u32
        });
        let ours = self.ours.iter().map(prepare);
        ours.chain([coverage]).collect()
    }

    /// The engines for extended programs.
    fn converted_runs(&self) -> Vec<(Row, ByBytes<'_>)> {
        let Some(converted) = &self.converted else {
            return Vec::new();
        };
        let [interpreted, native] = extended::ROWS;
        let mut frames = Frames::default();
        let interpret = move |context: &_| converted.interpreted(context, &mut frames);
        let mut runs: Vec<(Row, ByBytes<'_>)> = vec![(interpreted, Box::new(interpret))];
        if converted.without_native().is_none() {
            let mut frames = Frames::default();
            let run = move |context: &_| converted.native(context, &mut frames);
            runs.push((native, Box::new(run)));
        }
        runs
    }

    fn case(
        &self,
        name: &str,
        stack: &Stack,
        case: &CallCase,
        measurement: &mut Measurement,
    ) -> Result<EnginesCaseEntry, Failure> {
        let inputs = Inputs::new(stack, &case.calls);
        let expected = inputs.expected.as_slice();
        let mut seen: Vec<Seen> = self.codes.iter().map(Code::nothing_seen).collect();
        let mut covered = |words: &[u32; 16]| {
            let filters = self.codes.iter().zip(&mut seen).rev();
            let runs = filters.map(|(code, seen)| code.run(words, seen));
            runs.fold(stack::NO_FILTER, stack::stricter)
        };
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for (row, evaluator) in &self.ours {
            let run = |image: &[u32; 16]| evaluator.run_image(image);
            agree(row, &inputs.images, expected, run)?;
            let images = &inputs.images;
            contestants.push(Contestant::new(*row, move || sum(images, run)));
        }
        for (row, mut run) in self.converted_runs() {
            agree(&row, &inputs.contexts, expected, &mut run)?;
            let contexts = &inputs.contexts;
            contestants.push(Contestant::new(row, move || sum(contexts, &mut run)));
        }
        let coverage = Row::plain("coverage");
        agree(&coverage, &inputs.words, expected, &mut covered)?;
        let words = &inputs.words;
        contestants.push(Contestant::new(coverage, || sum(words, &mut covered)));
        let mut is_other = false;
        if let (Some(library), Some(sockets)) = (&measurement.libpcap, &self.sockets) {
            let row = Row::plain(Row::LIBPCAP);
            let run = move |bytes: &[u8; 64]| {
                let filters = sockets.iter().rev();
                let runs = filters.map(|program| library.run(program, bytes, 64));
                runs.fold(stack::NO_FILTER, stack::stricter)
            };
            is_other = agree(&row, &inputs.bytes, expected, run).is_err();
            if !is_other {
                let bytes = &inputs.bytes;
                contestants.push(Contestant::new(row, move || sum(bytes, run)));
            }
        }
        // The kernel runs programs on one call.
        let turn = self.kernel.as_ref().zip(inputs.only());
        let turn = turn.map(|(kernel, call)| Turn {
            kernel,
            packet: call,
            value: kernel.verdict(call),
        });
        let raced = kernel::race_beside(contestants, turn, expected, measurement.rounds);
        let (outcome, missing) = raced;
        match missing {
            Some(Missing::OtherValue(ret)) => {
                return Err(disagreement(kernel::ROW, ret, expected[0]));
            }
            Some(Missing::Unable(reason)) => {
                measurement.leave_out(kernel::ROW.engine, Some(name), &reason);
            }
            None => {}
        }
        if is_other {
            let reason = format!("it gives other values for {}", case.name);
            measurement.leave_out(Row::LIBPCAP, Some(name), &reason);
        }
        Ok(outcome.entry(case.name.clone(), expected.len()))
    }
}

/// Calls in the evaluators' formats, and the values of the reference interpreter.
struct Inputs {
    images: Vec<[u32; 16]>,
    /// In the layout of little-endian machines.
    words: Vec<[u32; 16]>,
    /// In network byte order.
    bytes: Vec<[u8; 64]>,
    /// In the byte order of the programs' machines.
    contexts: Vec<[u8; 64]>,
    expected: Vec<u32>,
}

impl Inputs {
    fn new(stack: &Stack, calls: &[SeccompData]) -> Inputs {
        let endian = stack.endian().unwrap_or(Endian::Little);
        let images = |endian| calls.iter().map(move |call| call.image(endian));
        Inputs {
            images: images(endian).collect(),
            words: images(Endian::Little).collect(),
            bytes: images(endian).map(network_order).collect(),
            contexts: calls
                .iter()
                .map(|call| seccomp_context(call, endian))
                .collect(),
            expected: calls.iter().map(|call| stack.run(call).ret).collect(),
        }
    }

    /// The only call, if all are the same.
    fn only(&self) -> Option<&[u8; 64]> {
        let first = self.contexts.first()?;
        let is_first = |context| context == first;
        self.contexts.iter().all(is_first).then_some(first)
    }
}

/// The sixteen words in the byte order that libpcap's interpreter reads.
fn network_order(image: [u32; 16]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (place, word) in bytes.chunks_exact_mut(4).zip(image) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}
