//! `tamis bpf fuzz`: compare two filters on millions of generated calls.

mod kernel;
mod plain;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis_abi::SeccompData;
use tamis_bpf::{InvalidProgram, Program, Stack};
use tamis_fuzz::vectors::{self, Vector};
use tamis_fuzz::{Campaign, FilterCoverage, Found};
use tamis_kernel::interrupt::Interrupts;
use tamis_prover::{Limits, Stop, Subject};
use tamis_report::entry::WitnessEntry;
use tamis_report::fuzz::{CoverageEntry, FuzzReport, FuzzResult, KernelEntry};
use tamis_session::{Loaded, NamedProgram, Side, SideOptions};

use crate::cli::limits::parse_seconds;
use crate::cli::load::LoadArgs;
use crate::cli::output::{OutputArgs, refuse_to_replace_any, show};
use crate::cli::progress::Progress;
use crate::cli::side;
use crate::cli::{Failure, Global, budget, exit, input};

use self::plain::Engines;

/// Compare two filters on millions of generated calls
#[derive(clap::Args)]
#[command(after_help = "\
Each side is a policy, a program, or a stack: a comma-separated list, the oldest filter first, or a \
directory of .bpf files. A single policy is compared with its compiled filter, single programs with the \
result of `tamis optimize`. Calls are generated from the constants of both sides, guided by coverage of \
instructions and branches. The report lists the coverage; for the rest, the prover shows that no call \
reaches it, or finds a call that does. Finding no difference is not a proof: use `tamis prove`.
Ctrl-C ends the run and prints what was found until then.
Examples:
  tamis bpf fuzz policy.tamis
  tamis bpf fuzz old.bpf new.bpf --time 60
  tamis bpf fuzz profile.json theirs.bpf --evaluations 1000000 --seed 7 --export-vectors all.txt
  tamis bpf fuzz old.bpf new.bpf --no-coverage
  tamis bpf fuzz filter.bpf --running-kernel
Exit status: 1 if the sides differ for a call, or the kernel differs; 3 if some part was neither reached nor \
 proved unreachable.")]
pub(crate) struct Args {
    /// One side
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    left: String,
    /// The other side [default: LEFT compiled or optimised by tamis]
    #[arg(value_parser = input::PolicyParser, hide_possible_values = true)]
    right: Option<String>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    time: Option<Duration>,
    /// Stop after so many calls [default: 10000000]
    ///
    /// With --time as many as it allows.
    #[arg(long, value_name = "COUNT")]
    evaluations: Option<u64>,
    /// The random seed
    ///
    /// The same seed and number of calls give the same result.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Make random calls on the fastest engine, without a record of what they cover
    ///
    /// The coverage is that of the calls before them, and of the prover.
    #[arg(long, hide_short_help = true)]
    no_coverage: bool,
    /// Write a set of calls with the full coverage found, and what LEFT returns: records of 64 bytes of
    /// struct seccomp_data and the return value, little-endian
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    export_vectors: Option<PathBuf>,
    /// Also run the programs in the running kernel
    ///
    /// They run on a set of calls with the full coverage found.
    #[arg(long)]
    running_kernel: bool,
    /// An option for LEFT alone: of its language, or `from`, `include-dir` or `kernel`; may be repeated
    #[arg(long = "left", value_name = "NAME=VALUE", hide_short_help = true)]
    left_options: Vec<String>,
    /// The same for RIGHT
    #[arg(
        long = "right",
        value_name = "NAME=VALUE",
        requires = "right",
        hide_short_help = true
    )]
    right_options: Vec<String>,
    #[command(flatten)]
    load: LoadArgs,
}

/// The default number of calls.
const DEFAULT_EVALUATIONS: u64 = 10_000_000;
/// The number of calls between checks of the clock.
const SLICE: u64 = 1 << 18;

/// The limits of the prover for one uncovered place: about 50 ms, because there may be hundreds.
const LIMITS: Limits = Limits {
    max_nodes: 200_000,
    max_steps: 1_000_000,
    max_states: 50_000,
    max_gates: 200_000,
    max_conflicts: 500,
    max_paths: 10_000,
};

/// The result of a campaign.
struct CampaignResult {
    found: Option<Found>,
    evaluations: u64,
    elapsed: Duration,
    coverage: Vec<FilterCoverage>,
    /// The calls that together have the full coverage found.
    kept: Vec<SeccompData>,
    /// Whether the time limit ended the campaign before its deterministic part was complete.
    is_cut_short: bool,
    /// The engine of random calls without coverage.
    engine: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if let Some(file) = &args.export_vectors {
        check_vectors(file, args)?;
    }
    let load = args.load.for_comparison();
    let own = SideOptions::parse(&args.left_options)?;
    let other = SideOptions::parse(&args.right_options)?;
    let left = side::read_alone(&args.left, &own, &load, global)?;
    let right = match &args.right {
        Some(right) => side::read_alone(right, &other, &load, global)?,
        None => counterpart(&left)?,
    };
    load.check_options(left.filters().iter().chain(right.filters()))?;
    // After an interrupt the findings are shown.
    let interrupts = Arc::new(Interrupts::catch());
    let ended = left.with_subject(|one| {
        right.with_subject(|other| campaign(args, [one, other], &interrupts, global))
    })?;
    let kernel = match args.running_kernel {
        true => Some(kernel::entries([&left, &right], &ended.kept)?),
        false => None,
    };
    let has_gaps = !ended.coverage.iter().all(FilterCoverage::is_complete);
    let report = report(args, [left.name, right.name], &ended, kernel);
    show(&report, global)?;
    drop(interrupts);
    Ok(match ended.found {
        Some(_) => exit::NO,
        None if report.is_contradicted() => exit::NO,
        None if has_gaps || ended.is_cut_short => exit::GAVE_UP,
        None => exit::OK,
    })
}

/// Rejects a file that can't be written, or is an input.
fn check_vectors(file: &Path, args: &Args) -> Result<(), Failure> {
    if file == Path::new("-") {
        return Err(Failure::usage(
            "--export-vectors is for a file: the report goes to standard output",
            "name a file, or `/dev/stderr`",
        ));
    }
    OutputArgs::to(file.to_owned()).check_folder()?;
    let sides = [Some(&args.left), args.right.as_ref()];
    let mut sides = sides.into_iter().flatten();
    sides.try_for_each(|side| refuse_to_replace_any(file, "--export-vectors", side))
}

/// The default other side: the compiled policy, or the optimised programs.
fn counterpart(side: &Side) -> Result<Side, Failure> {
    let (programs, what) = match side.filters() {
        [Loaded::Policy(policy)] => {
            let compiled = policy.compile(&budget::compile_options())?;
            let program = policy.program(&compiled)?.clone();
            (vec![program], "compiled")
        }
        filters => {
            let stack = stack(filters)?;
            let options = tamis_compiler::CompileOptions::default();
            let optimised = side::optimised(&stack, &options)?;
            (optimised.programs().to_vec(), "optimised")
        }
    };
    let name = format!("{}, {what}", side.name);
    Ok(Side::of_programs(name, programs))
}

/// The programs of a side without policies.
fn stack(filters: &[Loaded]) -> Result<Stack, Failure> {
    let programs = filters.iter().map(|filter| match filter {
        Loaded::Program(raw) => Ok(raw.clone()),
        Loaded::Policy(_) => Err(Failure::usage(
            "a stack with a policy in it has no default filter to be compared with",
            "name the other side, or compile the policy first",
        )),
    });
    side::stack(programs.collect::<Result<Vec<NamedProgram>, Failure>>()?)
}

/// Runs a campaign within the given limits.
fn campaign(
    args: &Args,
    subjects: [&Subject<'_>; 2],
    interrupts: &Arc<Interrupts>,
    global: &Global,
) -> Result<CampaignResult, Failure> {
    let start = Instant::now();
    let mut campaign = Campaign::new(subjects, args.seed).map_err(too_long)?;
    let (noted, time) = (Arc::clone(interrupts), args.time);
    let stop =
        Stop::when(move || noted.arrived() || time.is_some_and(|time| start.elapsed() >= time));
    let limit = match (args.evaluations, args.time) {
        (Some(limit), _) => limit,
        (None, None) => DEFAULT_EVALUATIONS,
        (None, Some(_)) => u64::MAX,
    };
    // Deterministic calls come first.
    let found = campaign.run_waiting(&stop);
    let is_unfinished = found.is_none() && campaign.is_waiting();
    let engines = match args.no_coverage {
        true => Some(Engines::new(campaign.side_programs())),
        false => None,
    };
    let budget = Budget {
        limit,
        start,
        time,
        stop: &stop,
    };
    let mut progress = Progress::new(global);
    let found = found.or_else(|| search(&mut campaign, engines.as_ref(), &budget, &mut progress));
    drop(progress);
    let ended = CampaignResult {
        evaluations: campaign.evaluations(),
        elapsed: start.elapsed(),
        coverage: match found {
            Some(_) => Vec::new(),
            None => campaign.coverage(),
        },
        kept: campaign.kept().collect(),
        found,
        is_cut_short: is_unfinished || interrupts.arrived(),
        engine: engines.map(|engines| engines.to_string()),
    };
    if interrupts.arrived() {
        global.notice("interrupted: what was found until then");
    }
    if let Some(path) = &args.export_vectors {
        let inputs = campaign.kept().chain(found.map(|found| found.data));
        let vector = |data| Vector {
            ret: subjects[0].answer(&SeccompData::into(data)),
            data,
        };
        let bytes = vectors::write(inputs.map(vector));
        OutputArgs::to(path.clone()).raw(&bytes)?;
    }
    Ok(ended)
}

/// The limits of a search.
struct Budget<'a> {
    /// The most calls.
    limit: u64,
    start: Instant,
    /// The most time since the start.
    time: Option<Duration>,
    stop: &'a Stop,
}

impl Budget<'_> {
    /// The used fraction of the limits, from 0 to 1.
    fn used(&self, evaluations: u64) -> f64 {
        let by_calls = evaluations as f64 / self.limit.max(1) as f64;
        let by_time = self.time.map_or(0.0, |time| {
            self.start.elapsed().as_secs_f64() / time.as_secs_f64()
        });
        by_calls.max(by_time)
    }
}

/// Runs the calls that the prover finds, then random calls.
fn search(
    campaign: &mut Campaign<'_>,
    engines: Option<&Engines>,
    budget: &Budget<'_>,
    progress: &mut Progress,
) -> Option<Found> {
    progress.show(0.0, "what the prover knows");
    if let Err(found) = campaign.prove_coverage(&LIMITS, budget.stop) {
        return Some(found);
    }
    while campaign.evaluations() < budget.limit && !budget.stop.is_asked_for() {
        let slice = SLICE.min(budget.limit - campaign.evaluations());
        let found = match engines {
            Some(engines) => engines.run(campaign, slice),
            None => campaign.run(slice),
        };
        if found.is_some() {
            return found;
        }
        let evaluations = campaign.evaluations();
        let words = format!("{} million calls", evaluations / 1_000_000);
        progress.show(budget.used(evaluations), &words);
    }
    None
}

fn too_long(_: InvalidProgram) -> Failure {
    Failure::gave_up(
        format!(
            "gave up: compiled without optimisation, the policy has more than {} instructions",
            Program::MAX_INPUT_INSNS
        ),
        Some("compare its compiled filter instead: `tamis compile`".to_owned()),
    )
}

fn report(
    args: &Args,
    [left, right]: [String; 2],
    ended: &CampaignResult,
    kernel: Option<Vec<KernelEntry>>,
) -> FuzzReport {
    FuzzReport {
        left,
        right,
        seed: args.seed,
        evaluations: ended.evaluations,
        seconds: args.time.map(|_| ended.elapsed.as_secs_f64()),
        result: match ended.found {
            Some(found) => FuzzResult::Different {
                witness: WitnessEntry::new(&found.data.into(), found.left, found.right),
            },
            None => FuzzResult::NoDifferenceFound,
        },
        coverage: ended
            .coverage
            .iter()
            .map(CoverageEntry::from_coverage)
            .collect(),
        kernel,
        is_cut_short: ended.is_cut_short,
        engine: ended.engine.clone(),
    }
}
