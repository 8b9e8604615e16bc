//! `tamis-lab engines`: evaluators in user space, their values, and their times for the same inputs.
//!
//! Every evaluator must first return the reference interpreter's value for every input. Then the evaluators are timed
//! in turns, and the fastest round of each counts. Nothing is installed, so no privileges are needed; without the right
//! to load programs the kernel has no row.

mod calls;
mod disasm;
pub(crate) mod eval;
mod extended;
mod kernel;
mod object;
mod packets;
mod race;

use std::hint::black_box;

use clap::Subcommand;
use tamis_cli::chart::{self, ChartFile};
use tamis_cli::load::LoadArgs;
use tamis_cli::target::TargetArgs;
use tamis_engine::Engine;
use tamis_kernel::measure::Rounds;
use tamis_pcap::Libpcap;
use tamis_report::engines::{AbsentEntry, EnginesReport, EvaluatedEntry, PreparedEntry, Row};
use tamis_session::files;

use crate::engine::disagreement;
use crate::object as objects;
use crate::packet::{self, Capture};
use race::{Contestant, race};
use tamis_cli::load::DEFAULT_POLICY;
use tamis_cli::progress::Progress;
use tamis_cli::{Failure, Global, exit, input, output, side};

/// The compared engines; the name of each is that of its row.
const ENGINES: [Engine; 3] = [Engine::Reference, Engine::Threaded, Engine::Jit];

/// The minimum of evaluations that are timed together.
const EVALUATIONS: usize = 4096;

/// The state shared by all measurements.
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

/// Fails if an evaluator's values differ from the expected ones.
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

/// Evaluate calls on an engine, show its machine code, or time all of them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis-lab engines bench container-default
  tamis-lab engines eval container-default read --engine jit
  tamis-lab engines disasm filter.bpf")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Subcommand)]
enum Command {
    Bench(BenchArgs),
    Eval(eval::Args),
    Disasm(disasm::Args),
}

/// Time evaluators in user space
///
/// These are the engines with and without the result cache, and libpcap's interpreter where it is installed. Needs no
/// rights; beside them stands the kernel's machine code where programs may be loaded.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis-lab engines bench container-default other.bpf
  tamis-lab engines bench filter.bpf --calls 'read,socket(AF_VSOCK)' --chart engines.svg")]
pub(crate) struct BenchArgs {
    /// What to measure [default: container-default]
    #[arg(value_name = "FILTER", value_parser = input::PolicyParser, hide_possible_values = true)]
    filters: Vec<String>,
    /// The calls to evaluate
    ///
    /// `NAME` or `NAME(ARGUMENTS)`. Without any they are read, some with tests of arguments, and random numbers.
    #[arg(long, value_name = "CALLS")]
    calls: Vec<String>,
    /// The seed of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    timing: TimingArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// How evaluators are timed.
#[derive(clap::Args)]
pub(crate) struct TimingArgs {
    /// How often to measure [default: until the minima are stable]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Also draw a chart of the time of an evaluation: .svg, or .html with the tables
    #[arg(long, value_name = "FILE", value_parser = chart::file_parser())]
    chart: Option<ChartFile>,
}

impl TimingArgs {
    /// Measures, draws the chart and shows the report.
    fn report(
        &self,
        title: &str,
        global: &Global,
        measure: impl FnOnce(&mut Measurement) -> Result<Vec<EvaluatedEntry>, Failure>,
    ) -> Result<u8, Failure> {
        let rounds = self.rounds.map_or_else(Rounds::default, Rounds::exactly);
        let chart = self.chart.as_ref();
        chart.map_or(Ok(()), ChartFile::check_folder)?;
        let mut measurement = Measurement::new(rounds, global);
        let filters = measure(&mut measurement)?;
        let absent = measurement.absent;
        let report = EnginesReport { filters, absent };
        if let Some(file) = chart {
            file.write(title, &report.charts(), &report.to_string())?;
        }
        output::show(&report, global)?;
        Ok(exit::OK)
    }
}

/// Runs a command of the group.
pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Bench(args) => of_seccomp(args, global),
        Command::Eval(args) => eval::run(args, global),
        Command::Disasm(args) => disasm::run(args, global),
    }
}

/// Times evaluators of the filters of the arguments, or of the default policy.
fn of_seccomp(args: &BenchArgs, global: &Global) -> Result<u8, Failure> {
    let default = [DEFAULT_POLICY.to_owned()];
    let filters = match args.filters.as_slice() {
        [] => &default,
        filters => filters,
    };
    args.timing
        .report("tamis-lab engines bench", global, |measurement| {
            let (stacks, _) = side::named_stacks(filters, &args.load, &args.target, global)?;
            let cases = calls::cases(args)?;
            stacks
                .iter()
                .map(|(name, stack)| calls::measure(name, stack, &cases, measurement))
                .collect()
        })
}

/// Times evaluators of filters of sockets, or of programs of object files, on the packets of a capture.
pub(crate) fn of_sockets(
    filters: &[String],
    capture: &str,
    section: Option<&str>,
    timing: &TimingArgs,
    global: &Global,
) -> Result<u8, Failure> {
    let capture = Capture::read(capture)?;
    let packets: Vec<_> = capture.packets().collect();
    if packets.is_empty() {
        return Err(Failure::input("the capture has no packets"));
    }
    timing.report("tamis-lab packets bench", global, |measurement| {
        let measure = |path: &String| {
            let input = files::read(path)?;
            match objects::program(&input, section)? {
                Some(program) => object::measure(path, program, &packets, measurement),
                None => packets::measure(path, &packet::of_input(&input)?, &packets, measurement),
            }
        };
        filters.iter().map(measure).collect()
    })
}
