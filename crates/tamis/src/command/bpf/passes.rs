//! `tamis bpf passes`: the catalogue of compiler passes.

use tamis_report::passes::PassesReport;

use crate::cli::output::show;
use crate::cli::{Failure, Global, exit};

/// List the compiler's passes
///
/// Passes are listed in the order in which they run. A second run of a pass changes nothing, unless the list
/// gives a reason.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis bpf passes
  tamis compile policy.tamis --passes merge-rules,drop-unreachable --remarks -o filter.bpf")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, global: &Global) -> Result<u8, Failure> {
    show(&PassesReport::of_registry(), global)?;
    Ok(exit::OK)
}
