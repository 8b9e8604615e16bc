//! `tamis-lab packets bench`: the evaluators' times for the packets of a capture.

use tamis_cli::{Failure, Global, input};

use crate::engines::{TimingArgs, of_sockets};

/// Time evaluators of filters of sockets on the packets of a capture
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tcpdump -dd 'port 22' | tamis-lab packets bench - --packets capture.pcap")]
pub(crate) struct Args {
    /// Filters of sockets, or object files
    #[arg(required = true, value_name = "FILTER", value_parser = input::path_parser())]
    filters: Vec<String>,
    /// The capture, in the format pcap or pcapng
    #[arg(long, value_name = "FILE", value_parser = input::path_parser())]
    packets: String,
    /// The section of object files with the program [default: the only one]
    #[arg(long, value_name = "NAME")]
    section: Option<String>,
    #[command(flatten)]
    timing: TimingArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let section = args.section.as_deref();
    of_sockets(&args.filters, &args.packets, section, &args.timing, global)
}
