//! `tamis profile`: reading, merging and converting counts of calls.

use std::cmp::Reverse;
use std::fmt::Write;

use tamis_abi::{Arch, Nr};
use tamis_profile::{Call, Profile};
use tamis_session::profile::call_name;

use crate::cli::load::{ArchParser, native_arch};
use crate::cli::output::OutputArgs;
use crate::cli::{Failure, Global, exit, profile};

/// Show, merge and convert profiles: how often a program makes each call
#[derive(clap::Args)]
#[command(after_help = "\
The format is detected from the content: tamis's own JSON, tables of `strace -c` and `perf trace -s`, \
and frequency files of minijail. With `-o` or `--json` the merged profile is written as JSON, for \
`--profile` of other commands; otherwise the most frequent calls are listed.
Examples:
  strace -c -f -o trace.txt PROGRAM
  tamis profile trace.txt
  tamis profile monday.json tuesday.json -o week.json
  tamis compile policy.tamis --profile week.json -o filter.bpf")]
pub(crate) struct Args {
    /// Profiles in any format, or `-` for standard input; counts add up
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The architecture of tables, which don't name it [default: this machine's]
    #[arg(long, value_name = "ARCH", value_parser = ArchParser, hide_possible_values = true)]
    arch: Option<Arch>,
    /// How many calls to show
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    top: usize,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    for file in &args.files {
        args.output.refuse_to_replace(file)?;
    }
    let arch = args.arch.unwrap_or_else(native_arch);
    let profile = profile::load(&args.files, arch, global)?;
    let wants_json = global.json || args.output.output.is_some();
    args.output.text(&match wants_json {
        true => profile.to_json(),
        false => table(&profile, args.top),
    })?;
    Ok(exit::OK)
}

/// The most frequent calls, for a person.
fn table(profile: &Profile, top: usize) -> String {
    let mut calls: Vec<(Arch, Nr, &Call)> = profile.calls().collect();
    calls.sort_by_key(|(arch, nr, call)| (Reverse(call.count), *arch, *nr));
    let total: u128 = calls
        .iter()
        .map(|(_, _, call)| u128::from(call.count))
        .sum();
    let mut text = format!("calls made: {total}, different ones: {}\n", calls.len());
    if calls.is_empty() {
        return text;
    }
    text += "   share       count  call\n";
    for (arch, nr, call) in calls.iter().take(top) {
        let share = call.count as f64 / total.max(1) as f64 * 100.0;
        let name = call_name(*arch, *nr);
        let _ = writeln!(text, "{share:>6.2} %{:>12}  {arch} {name}", call.count);
    }
    if calls.len() > top {
        let _ = writeln!(text, "and {} more", calls.len() - top);
    }
    text
}
