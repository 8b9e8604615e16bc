//! `tamis-lab platforms`: the ways to catch calls that work here, and their costs.

mod bench;
mod guest;
mod peer;

use tamis_kernel::interrupt::Interrupts;
use tamis_platform::{Caps, Family, Isolation, Platform};
use tamis_report::platforms::{CapsEntry, PlatformEntry, PlatformsReport};

use peer::Peer;
use tamis_cli::chart::{self, ChartFile};
use tamis_cli::progress::Progress;
use tamis_cli::{Failure, Global, exit, output};

/// List the ways to catch system calls, and measure them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis-lab platforms                          what works here, and why the rest doesn't
  tamis-lab platforms --bench                  what a call costs on each
  tamis-lab platforms --bench --chart costs.html
  tamis-lab platforms --bench --beside 'runsc=runsc --network=none do'
--bench runs a guest on each platform: a null call (getppid, answered), a call whose memory the supervisor reads (8 bytes), \
one whose memory it writes (read of a byte), a call that blocks (the shortest sleep), a page fault (with the call that gives the page back, which isn't caught), and fork, exit \
and wait; each with guest and supervisor on one CPU and on one each. Figures \
are minima and medians of batches, over rounds in which all take turns. Ctrl-C ends the measurement and prints what was measured until then; a chart that is there already stays.
Exit status: 3 if the measurement was interrupted.")]
pub(crate) struct Args {
    /// Measure what catching a call costs here
    #[arg(long)]
    bench: bool,
    /// How many rounds are measured
    #[arg(long, value_name = "N", default_value = "5", requires = "bench", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Measure these only; may be repeated
    #[arg(long, value_name = "NAME", requires = "bench")]
    platform: Vec<String>,
    /// Measure another program that runs the guest, too; may be repeated
    ///
    /// Its name and a command, to which the guest's path is added.
    #[arg(long, value_name = "NAME=COMMAND", requires = "bench", value_parser = Peer::parse)]
    beside: Vec<Peer>,
    /// Draw what was measured to this file, .svg or .html
    #[arg(long, value_name = "FILE", requires = "bench", value_parser = chart::file_parser())]
    chart: Option<ChartFile>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let mut report = PlatformsReport {
        platforms: Vec::new(),
        rounds: 0,
        figures: Vec::new(),
        advice: Vec::new(),
        notes: Vec::new(),
    };
    if let Some(unknown) = args
        .platform
        .iter()
        .find(|name| tamis_platform::by_name(name).is_none())
    {
        return Err(Failure::usage(
            format!("there is no platform `{unknown}`"),
            "`tamis-lab platforms` lists them",
        ));
    }
    let mut working = Vec::new();
    for platform in tamis_platform::all() {
        let entry = entry(*platform);
        let is_wanted =
            args.platform.is_empty() || args.platform.iter().any(|name| name == platform.name());
        if entry.works && is_wanted {
            working.push(*platform);
        }
        report.platforms.push(entry);
    }
    args.chart
        .as_ref()
        .map_or(Ok(()), ChartFile::check_folder)?;
    let mut is_whole = true;
    let mut interrupts = None;
    if args.bench {
        let rounds = usize::from(args.rounds);
        let progress = Progress::new(global);
        // Until the report is shown, an interrupt ends the measurement but keeps its results.
        let interrupts = interrupts.insert(Interrupts::catch());
        let measured = bench::measure(&working, &args.beside, rounds, interrupts, progress)?;
        report.rounds = usize::from(args.rounds);
        report.figures = measured.figures;
        report.advice = measured.advice;
        report.notes = measured.notes;
        is_whole = !measured.is_cut_short;
    }
    if let Some(chart) = &args.chart {
        // An existing chart may be of a whole measurement.
        if !is_whole && chart.exists() {
            let note = format!("{chart} stays as it was, since the measurement was interrupted");
            report.notes.push(note);
        } else {
            let title = "What catching a system call costs";
            chart.write(title, &report.charts(), &report.to_string())?;
        }
    }
    output::show(&report, global)?;
    drop(interrupts);
    Ok(match is_whole {
        true => exit::OK,
        false => exit::GAVE_UP,
    })
}

fn entry(platform: &dyn Platform) -> PlatformEntry {
    let unavailable = platform.probe().err();
    PlatformEntry {
        name: platform.name().to_owned(),
        works: unavailable.is_none(),
        remedy: unavailable.as_ref().and_then(|one| one.remedy),
        reason: unavailable.map(|one| one.reason),
        caps: caps(&platform.caps()),
    }
}

fn caps(caps: &Caps) -> CapsEntry {
    let (major, minor) = caps.min_kernel;
    CapsEntry {
        family: match caps.family {
            Family::Attached => "attached",
            Family::InProcess => "in-process",
            Family::Managed => "managed",
        },
        isolation: match caps.isolation {
            Isolation::None => "none",
            Isolation::Process => "process",
            Isolation::Vm => "vm",
        },
        min_kernel: format!("{major}.{minor}"),
        sees_results: caps.sees_results,
        sees_tasks: caps.sees_tasks,
        has_registers: caps.has_registers,
        replaces_calls: caps.replaces_calls,
        installs_descriptors: caps.installs_descriptors,
        has_threads: caps.has_threads,
        has_forks: caps.has_forks,
        has_exec: caps.has_exec,
        runs_dynamic: caps.runs_dynamic,
        catches_i386: caps.catches_i386,
        takes_filters: caps.takes_filters,
        patches_sites: caps.patches_sites,
        has_own_exe: caps.has_own_exe,
        is_signal_safe: caps.is_signal_safe,
        is_unprivileged: caps.is_unprivileged,
    }
}
