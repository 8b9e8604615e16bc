//! `tamis profile`: show, merge and convert profiles.

use std::cmp::Reverse;
use std::fmt::Write;

use clap::ValueEnum;
use tamis_abi::{Arch, Nr};
use tamis_profile::{Call, Profile};
use tamis_session::profile::call_name;

use crate::cli::arches::ArchParser;
use crate::cli::load::native_arch;
use crate::cli::output::{OutputArgs, profile_json};
use crate::cli::{Failure, Global, exit, input, parquet, profile};

/// Show, merge and convert profiles: how often calls are made
#[derive(clap::Args)]
#[command(after_help = "\
The format is detected from the content: tamis's own JSON, tables and logs of strace and perf, audit records, \
events of sysdig and falco, recordings of the security-profiles-operator, frequency files of minijail, and Parquet. With `-o`, `--json` or `merge` the sum is written as JSON, for \
`--counts` of other commands; otherwise the most frequent calls are listed. A run that is in several files counts once.
Examples:
  strace -c -f -o trace.txt PROGRAM
  tamis profile trace.txt
  tamis profile merge monday.json tuesday.json -o week.json
  tamis compile policy.tamis --counts week.json -o filter.bpf")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    input: Input,
    /// How many calls to show
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    top: usize,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    Merge(Merge),
}

/// Add up the profiles of many runs and machines, and write the sum
#[derive(clap::Args)]
#[command(after_help = "\
A run that `tamis record` has recorded has an id, and counts once, however often and in whatever order it is merged; what was \
merged can be merged again. Each call says in how many of the runs it was made. Sums that share only some of their runs are \
refused: the counts of a single run can't be taken out of a sum.
Examples:
  tamis profile merge web-*.json -o web.json
  tamis profile merge web-*.json --to parquet -o web.parquet
  tamis profile merge week1.json week2.json | tamis learn - -o web.tamis")]
struct Merge {
    #[command(flatten)]
    input: Input,
    /// The form of what is written: the sum as JSON, or the counts of every run as a table of Parquet
    #[arg(long, value_name = "FORM", default_value = "json")]
    to: Form,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of merged profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The sum
    Json,
    /// A row for each count of each run, which engines for tables read
    Parquet,
}

/// The profiles to read.
#[derive(clap::Args)]
struct Input {
    /// Profiles in any format, or `-` for standard input; counts add up
    #[arg(required = true, value_name = "FILE", value_parser = input::path_parser())]
    files: Vec<String>,
    /// The architecture of tables, which don't name it [default: this machine's]
    #[arg(long, hide_short_help = true, value_name = "ARCH", value_parser = ArchParser, hide_possible_values = true)]
    arch: Option<Arch>,
}

impl Input {
    fn arch(&self) -> Arch {
        self.arch.unwrap_or_else(native_arch)
    }

    fn refuse_to_replace(&self, output: &OutputArgs) -> Result<(), Failure> {
        for file in &self.files {
            output.refuse_to_replace(file)?;
        }
        Ok(())
    }

    /// The sum of the profiles.
    fn load(&self, output: &OutputArgs, global: &Global) -> Result<Profile, Failure> {
        self.refuse_to_replace(output)?;
        profile::load(&self.files, self.arch(), global)
    }
}

impl Merge {
    fn run(&self, global: &Global) -> Result<(), Failure> {
        if self.to == Form::Json {
            let profile = self.input.load(&self.output, global)?;
            return write(&profile, &self.output, global);
        }
        self.input.refuse_to_replace(&self.output)?;
        self.output.refuse_terminal()?;
        let fleet = profile::load_fleet(&self.input.files, self.input.arch(), global)?;
        self.output.raw(&parquet::bytes(&fleet)?)
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if let Some(Command::Merge(merge)) = &args.command {
        merge.run(global)?;
        return Ok(exit::OK);
    }
    let profile = args.input.load(&args.output, global)?;
    match global.json || args.output.is_given() {
        true => write(&profile, &args.output, global)?,
        false => args.output.text(&table(&profile, args.top))?,
    }
    Ok(exit::OK)
}

/// Writes the sum. A document includes the warnings about the profiles, a file doesn't.
fn write(profile: &Profile, output: &OutputArgs, global: &Global) -> Result<(), Failure> {
    let is_document = global.json && !output.is_beside_document(global);
    output.text(&match is_document {
        true => profile_json(profile)?,
        false => profile.to_json(),
    })
}

/// The table of the most frequent calls.
fn table(profile: &Profile, top: usize) -> String {
    let mut calls: Vec<(Arch, Nr, &Call)> = profile.calls().collect();
    calls.sort_by_key(|(arch, nr, call)| (Reverse(call.count), *arch, *nr));
    let total: u128 = calls
        .iter()
        .map(|(_, _, call)| u128::from(call.count))
        .sum();
    let runs = profile.run_count();
    let mut text = format!("calls made: {total}, different ones: {}", calls.len());
    if runs > 1 {
        let _ = write!(text, ", runs: {runs}");
    }
    text.push('\n');
    if calls.is_empty() {
        return text;
    }
    let column = |text: &str| match runs {
        0 | 1 => String::new(),
        _ => format!("{text:>8}"),
    };
    let _ = writeln!(text, "   share       count{}  call", column("in runs"));
    for (arch, nr, call) in calls.iter().take(top) {
        let share = call.count as f64 / total.max(1) as f64 * 100.0;
        let name = call_name(*arch, *nr);
        let seen = column(&profile.coverage(call).runs.to_string());
        let _ = writeln!(
            text,
            "{share:>6.2} %{:>12}{seen}  {arch} {name}",
            call.count
        );
    }
    if calls.len() > top {
        let _ = writeln!(text, "and {} more", calls.len() - top);
    }
    text
}
