//! Tasks of this machine: their numbers in `/proc`, and their filters.

use std::{fs, io};

use tamis_kernel::DumpError;
use tamis_session::{Cause, Error};

/// The numeric names in a folder, in order.
///
/// # Errors
/// If the folder doesn't exist because the process has ended.
pub fn numbers(folder: &str) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(folder)?.flatten();
    let mut numbers: Vec<i32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The error if a process's filters can't be read.
pub fn unreadable(pid: i32, error: &DumpError) -> Error {
    let hint = match error {
        DumpError::NotPrivileged => Some("run it as root: `sudo tamis bpf dump …`"),
        DumpError::OwnFilter => Some("run it outside the container or service that is filtered"),
        DumpError::Traced { .. } => Some("end that debugger or tracer first"),
        DumpError::NotTraceable(_) => {
            Some("it needs CAP_SYS_PTRACE, and a security module may still forbid it")
        }
        _ => None,
    };
    Error::Message {
        message: format!("cannot read the filters of process {pid}: {error}"),
        hint: hint.map(str::to_owned),
        cause: match error {
            DumpError::NoTask | DumpError::Ended => Cause::Usage,
            _ => Cause::Environment,
        },
    }
}
