//! `tamis bpf dump`: the filters of a running process.

use std::fs;
use std::path::{Path, PathBuf};

use tamis_bpf::Program;
use tamis_deploy::tasks;
use tamis_kernel::dump;
use tamis_report::dump::DumpReport;
use tamis_session::path_text::PathText;

use crate::cli::output::{self, OutputArgs};
use crate::cli::replace::{FOLDER, make_folder};
use crate::cli::{Failure, Global, exit};

/// Read the filters of a running process
#[derive(clap::Args)]
#[command(after_help = "\
Filters are numbered from the oldest, 0. Without -o and --index they are listed. The process is stopped \
for a moment and then continues. The kernel shows filters only to processes with CAP_SYS_ADMIN and \
without a filter of their own.
Examples:
  tamis bpf dump --pid 4711
  tamis bpf dump --pid 4711 -o filters && tamis bpf decompile filters/*.bpf
  tamis bpf dump --pid 4711 --index 0 | tamis bpf disasm
Exit status: 1 if there are no filters to write.")]
pub(crate) struct Args {
    /// The process, or one of its threads
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,
    /// Write one filter to standard output, as a raw program
    #[arg(long, value_name = "NUMBER", conflicts_with = "output")]
    index: Option<usize>,
    /// Write every filter to a file in this directory: 00.bpf is the oldest
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let pid = args.pid;
    if args.output.as_deref() == Some(Path::new("-")) {
        return Err(Failure::usage(
            "-o names a folder, and standard output is none",
            "`--index NUMBER` writes one filter to standard output; a folder of that name is `./-`",
        ));
    }
    let filters = dump(pid).map_err(|error| tasks::unreadable(pid, &error))?;
    let mut code = exit::OK;
    if let Some(folder) = &args.output {
        if filters.is_empty() {
            global.notice(&format!(
                "process {pid} has no filters: nothing was written"
            ));
            code = exit::NO;
        } else {
            write_all(&filters, folder)?;
        }
    }
    if let Some(index) = args.index {
        let Some(filter) = filters.get(index) else {
            let message = format!(
                "process {pid} has no filter {index}: it has {}",
                filters.len()
            );
            return Err(Failure::usage(
                message,
                "the oldest filter has the number 0",
            ));
        };
        match global.json {
            true => output::show(&DumpReport::of_one(pid, index, filter), global)?,
            false => OutputArgs { output: None }.raw(&filter.to_bytes())?,
        }
    } else if global.json || args.output.is_none() {
        output::show(&DumpReport::from_filters(pid, &filters), global)?;
    }
    Ok(code)
}

/// Writes filters to files that sort from the oldest to the newest. The folder must contain no other filters, because
/// it stands for a stack.
pub(crate) fn write_all(filters: &[Program], folder: &Path) -> Result<(), Failure> {
    make_folder(folder, FOLDER)
        .map_err(|error| Failure::environment(format!("cannot make {}: {error}", folder.text())))?;
    // Padded so that names sort like numbers.
    let digits = filters.len().saturating_sub(1).to_string().len().max(2);
    let paths = (0..filters.len()).map(|index| folder.join(format!("{index:0digits$}.bpf")));
    let paths: Vec<PathBuf> = paths.collect();
    refuse_to_mix(&paths, folder)?;
    for (filter, path) in filters.iter().zip(paths) {
        OutputArgs { output: Some(path) }.raw(&filter.to_bytes())?;
    }
    Ok(())
}

/// Rejects a folder with other filters.
fn refuse_to_mix(paths: &[PathBuf], folder: &Path) -> Result<(), Failure> {
    let cannot_read =
        |error| Failure::environment(format!("cannot read {}: {error}", folder.text()));
    for entry in fs::read_dir(folder).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        let is_filter = path.extension().is_some_and(|extension| extension == "bpf");
        if is_filter && !paths.contains(&path) {
            return Err(Failure::usage(
                format!("{} is another filter in that directory", path.text()),
                "a directory is the stack of all filters in it: name an empty or a new one",
            ));
        }
    }
    Ok(())
}
