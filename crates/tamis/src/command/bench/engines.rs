//! `tamis bench --engines`: what evaluators in user space take for the same inputs.
//!
//! Every evaluator first gives the reference interpreter's value for every input. Then all take turns, round by round, and
//! the fastest round of each counts. Nothing is installed, so no rights are needed; without those to load programs the
//! kernel is missing.

mod calls;
mod extended;
mod kernel;
mod object;
mod packets;
mod race;

use std::hint::black_box;

use tamis_engine::Engine;
use tamis_kernel::measure::Rounds;
use tamis_pcap::Libpcap;
use tamis_report::engines::{AbsentEntry, EnginesReport, EvaluatedEntry, PreparedEntry, Row};
use tamis_session::files;

use super::{Args, timed_stacks};
use crate::cli::engine::disagreement;
use crate::cli::load::DEFAULT_POLICY;
use crate::cli::object as cli_object;
use crate::cli::packet::{self, Capture};
use crate::cli::progress::Progress;
use crate::cli::{Failure, Global};
use race::{Contestant, race};

/// The engines that are compared; the name of each is that of its row.
const ENGINES: [Engine; 3] = [Engine::Reference, Engine::Threaded, Engine::Jit];

/// At least so many evaluations are timed together.
const EVALUATIONS: usize = 4096;

/// What all measurements have in common.
struct Measurement {
    rounds: Rounds,
    libpcap: Option<Libpcap>,
    absent: Vec<AbsentEntry>,
    progress: Progress,
}

impl Measurement {
    fn new(rounds: Rounds, global: &Global) -> Measurement {
        let mut measurement = Measurement {
            rounds,
            libpcap: None,
            absent: Vec::new(),
            progress: Progress::new(global),
        };
        match Libpcap::open() {
            Ok(libpcap) => measurement.libpcap = Some(libpcap),
            Err(reason) => measurement.leave_out(Row::LIBPCAP, None, &reason),
        }
        measurement
    }

    /// Notes that an evaluator doesn't run, on a filter or on all.
    fn leave_out(&mut self, engine: &'static str, filter: Option<&str>, reason: &str) {
        let entry = AbsentEntry {
            engine,
            filter: filter.map(str::to_owned),
            reason: reason.to_owned(),
        };
        if !self.absent.contains(&entry) {
            self.absent.push(entry);
        }
    }

    /// The times of preparing evaluators.
    fn prepared(&self, mut contestants: Vec<Contestant<'_>>) -> Vec<PreparedEntry> {
        let outcome = race(&mut contestants, self.rounds, 1);
        let entry = |(row, ns): (Row, f64)| PreparedEntry {
            row,
            min_us: ns / 1000.0,
        };
        outcome.times.into_iter().map(entry).collect()
    }
}

/// Refuses an evaluator with other values than those expected.
fn agree<I>(
    row: &Row,
    inputs: &[I],
    expected: &[u32],
    mut run: impl FnMut(&I) -> u32,
) -> Result<(), Failure> {
    for (input, expected) in inputs.iter().zip(expected) {
        let ret = run(input);
        if ret != *expected {
            return Err(disagreement(row, ret, *expected));
        }
    }
    Ok(())
}

/// The sum of the values for all inputs.
fn sum<I>(inputs: &[I], mut run: impl FnMut(&I) -> u32) -> u32 {
    let add = |sum: u32, input| sum.wrapping_add(run(black_box(input)));
    inputs.iter().fold(0, add)
}

/// Measures the filters that the user named, or the policy that is used where none is given.
pub(super) fn measure(
    args: &Args,
    rounds: Rounds,
    global: &Global,
) -> Result<EnginesReport, Failure> {
    let mut measurement = Measurement::new(rounds, global);
    let filters = match &args.packets {
        Some(capture) => of_sockets(args, capture, &mut measurement)?,
        None => of_seccomp(args, &mut measurement, global)?,
    };
    let absent = measurement.absent;
    Ok(EnginesReport { filters, absent })
}

fn of_seccomp(
    args: &Args,
    measurement: &mut Measurement,
    global: &Global,
) -> Result<Vec<EvaluatedEntry>, Failure> {
    let default = [DEFAULT_POLICY.to_owned()];
    let filters = match args.filters.as_slice() {
        [] => &default,
        filters => filters,
    };
    let (stacks, _) = timed_stacks::stacks(filters, args, global)?;
    let cases = calls::cases(args)?;
    stacks
        .iter()
        .map(|(name, stack)| calls::measure(name, stack, &cases, measurement))
        .collect()
}

fn of_sockets(
    args: &Args,
    capture: &str,
    measurement: &mut Measurement,
) -> Result<Vec<EvaluatedEntry>, Failure> {
    if args.filters.is_empty() {
        return Err(Failure::usage(
            "there is no filter to run on the packets",
            "name filters of sockets, such as the output of `tcpdump -dd`",
        ));
    }
    let capture = Capture::read(capture)?;
    let packets: Vec<_> = capture.packets().collect();
    if packets.is_empty() {
        return Err(Failure::input("the capture has no packets"));
    }
    let measure = |path: &String| {
        let input = files::read(path)?;
        match cli_object::program(&input, args.section.as_deref())? {
            Some(program) => object::measure(path, program, &packets, measurement),
            None => packets::measure(path, &packet::of_input(&input)?, &packets, measurement),
        }
    };
    args.filters.iter().map(measure).collect()
}
