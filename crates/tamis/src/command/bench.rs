//! `tamis bench`: the cost of filters on this machine.

mod cases;
mod doubts;
mod draw;
mod figures;
mod gap;
mod report;
mod timed_stacks;

use std::time::Instant;

use tamis_bpf::Program;
use tamis_kernel::InstallError;
use tamis_kernel::measure::{self, MeasureError, Progress, Rounds, TimedCalls};
use tamis_report::bench::BenchReport;

use crate::cli::chart::{self, ChartFile};
use crate::cli::load::LoadArgs;
use crate::cli::progress;
use crate::cli::target::TargetArgs;
use crate::cli::{Failure, Global, call, exit, input, output};
use cases::{CaseOptions, Cases};
use figures::SkippedFilters;
use report::Findings;

/// Time real system calls under filters
#[derive(clap::Args)]
#[command(after_help = "\
A filter is a policy or a program; a stack is a comma-separated list or a directory, the oldest filter \
first. Actions other than allow become errors, so that nothing is killed. The baselines are also \
measured: no filter, the empty filter, and the smallest filter that the kernel has to run for each \
call.
Calls without side effects are made as given, others with arguments replaced so that the kernel rejects \
them at once, or not at all. The report says what was replaced or omitted, and why.
Examples:
  tamis bench container-default
  tamis bench old.bpf new.bpf --calls read,mmap --chart cost.svg
  tamis bench service.tamis --counts trace.txt
  tamis bench service.bpf --sequence '3*read;write' --sequence 'poll;accept4;close'
  tamis bench --explain-gap --chart gap.html")]
pub(crate) struct Args {
    /// What to measure
    #[arg(required_unless_present = "explain_gap", value_name = "FILTER", value_parser = input::PolicyParser, hide_possible_values = true)]
    filters: Vec<String>,
    /// Measure the stages between no filter and a filter
    ///
    /// They are running a filter, an instruction, a mispredicted branch and another filter; they are compared with the
    /// compiler's cost model.
    #[arg(long, conflicts_with_all = ["filters", "calls", "sequences", "profiles", "objective", "effort", "top",
          "seed", "from", "arches", "strict", "kernel", "language_options"])]
    explain_gap: bool,
    /// The calls to time [default: those of the profile]
    ///
    /// `NAME` or `NAME(ARGUMENTS)`. Without a profile they are getpid, getppid, close and ioctl.
    #[arg(long, value_name = "CALLS")]
    calls: Vec<String>,
    /// Calls made in sequence, such as `3*read;write`; may be repeated
    ///
    /// The number is a weight.
    #[arg(
        long = "sequence",
        value_name = "[TIMES*]CALLS",
        hide_short_help = true
    )]
    sequences: Vec<String>,
    /// How many calls of the profile to time individually, not only in the mix
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 10,
        hide_short_help = true
    )]
    top: usize,
    /// The random seed of the order of the mix
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        hide_short_help = true
    )]
    seed: u64,
    /// How often to measure [default: until the minima are stable]
    ///
    /// Each filter; that takes 6 to 60 times.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Also draw a chart: .svg, or .html with the tables
    ///
    /// Of the added time per call.
    #[arg(long, value_name = "FILE", value_parser = chart::file_parser())]
    chart: Option<ChartFile>,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let rounds = args.rounds.map_or_else(Rounds::default, Rounds::exactly);
    args.chart
        .as_ref()
        .map_or(Ok(()), ChartFile::check_folder)?;
    if args.explain_gap {
        check_machine(&tamis_kernel::probe())?;
        let report = gap::analyse(rounds, &mut progress_printer(rounds, global))?;
        if let Some(file) = &args.chart {
            let (title, text) = ("tamis bench --explain-gap", report.to_string());
            file.write(title, &report.charts(), &text)?;
        }
        output::show(&report, global)?;
    } else {
        let report = measure(args, rounds, global)?;
        if let Some(file) = &args.chart {
            file.write("tamis bench", &[report.chart()], &report.to_string())?;
        }
        output::show(&report, global)?;
    }
    Ok(exit::OK)
}

/// Fails on a machine without installable filters.
fn check_machine(probe: &tamis_kernel::Probe) -> Result<(), Failure> {
    if probe.filter_mode.is_present() {
        return Ok(());
    }
    Err(Failure::environment(
        "this kernel has no seccomp filters, or an earlier filter denies them",
    ))
}

/// Measures the filters of the arguments.
fn measure(args: &Args, rounds: Rounds, global: &Global) -> Result<BenchReport, Failure> {
    let (subjects, profile) = timed_stacks::timed_stacks(args, global)?;
    let calls = args.calls.iter().flat_map(|calls| call::split(calls));
    let calls: Vec<String> = calls.collect();
    let cases = Cases::new(&CaseOptions {
        calls: &calls,
        sequences: &args.sequences,
        profile: profile.as_ref(),
        top: args.top,
        seed: args.seed,
    })?;
    let probe = tamis_kernel::probe();
    check_machine(&probe)?;
    let name = |subject: usize| subjects[subject].name.as_str();
    let refuse = |error: MeasureError| refusal(&error, &name);
    let stacks: Vec<Vec<Program>> = subjects
        .iter()
        .map(|subject| subject.installed.programs().to_vec())
        .collect();
    let mut workload = TimedCalls::default();
    for case in cases.iter() {
        workload.add(&case.made);
    }
    let mut on_progress = progress_printer(rounds, global);
    let measurement =
        measure::measure_workload(&stacks, &workload, rounds, &mut on_progress).map_err(refuse)?;
    let skipped = SkippedFilters::ask(&subjects, &cases).map_err(refuse)?;
    let findings = Findings {
        subjects: &subjects,
        cases: &cases,
        measurement: &measurement,
        skipped: &skipped,
        memory: &report::memory(&subjects),
        probe: &probe,
        seed: args.seed,
    };
    Ok(findings.report())
}

/// Prints the progress: by rounds, or by the time limit for new rounds.
fn progress_printer(rounds: Rounds, global: &Global) -> impl FnMut(Progress) {
    let mut line = progress::Progress::new(global);
    let start = Instant::now();
    move |progress| {
        let Progress {
            round,
            subject,
            subjects,
        } = progress;
        let in_round = subject as f64 / subjects.max(1) as f64;
        let by_rounds = (f64::from(round - 1) + in_round) / f64::from(rounds.max.max(1));
        let by_time = start.elapsed().as_secs_f64() / rounds.time.as_secs_f64();
        let words = format!("round {round}, filter {subject} of {subjects}");
        line.show(by_rounds.max(by_time), &words);
    }
}

/// The failure of a measurement.
fn refusal<'n>(error: &MeasureError, name: &dyn Fn(usize) -> &'n str) -> Failure {
    let (subject, help) = match error {
        // The answer is that of a filter made harmless, not the kernel's.
        MeasureError::Install {
            subject,
            filter,
            error: InstallError::NotAvailable,
        } if *filter > 0 => {
            let name = name(*subject);
            return Failure::usage(
                format!(
                    "nothing was measured: {name}: a filter of the stack denies seccomp, so the next can't \
                     be installed"
                ),
                "each filter of a stack except the newest must allow seccomp",
            );
        }
        MeasureError::Install { subject, error, .. } => (Some(*subject), Some(error.hint())),
        MeasureError::Died { subject, .. } | MeasureError::TimedOut { subject } => {
            (Some(*subject), None)
        }
        MeasureError::Start(_) | MeasureError::Pin(_) | MeasureError::NoNewPrivs(_) => {
            let help = "a sandbox of this process seems to deny it: check its profile";
            (None, Some(help.to_owned()))
        }
        _ => (None, None),
    };
    let name = subject.map_or_else(String::new, |subject| format!("{}: ", name(subject)));
    let code = match error {
        MeasureError::TooManyCalls => exit::USAGE,
        _ => exit::ENVIRONMENT,
    };
    Failure::new(code, format!("nothing was measured: {name}{error}"), help)
}
