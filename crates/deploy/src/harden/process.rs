//! The main process of a running service, and its filters.

use std::fs;

use tamis_abi::{Action, Arch, call};
use tamis_bpf::{Program, interp};
use tamis_kernel::{DumpError, dump};

use tamis_session::Error;

use super::Running;
use crate::root::Root;
use crate::tasks;

/// The given process, or the oldest one of the service, with its filters; `None` if none is running or wanted, or the
/// service is that of an image.
///
/// # Errors
/// If the filters can't be read.
pub(super) fn find(
    running: Running,
    root: &Root,
    unit: &str,
) -> Result<Option<(i32, Vec<Program>)>, Error> {
    match running {
        Running::Given(pid) => {
            let filters = dump(pid).map_err(|error| tasks::unreadable(pid, &error))?;
            return Ok(Some((pid, filters)));
        }
        Running::Found if root.is_own() => {}
        Running::Found | Running::Ignored => return Ok(None),
    }
    let mut pids = tasks::numbers("/proc").unwrap_or_default();
    pids.retain(|pid| is_of_unit(*pid, unit));
    pids.sort_by_cached_key(|pid| (started(*pid), *pid));
    for pid in pids {
        match dump(pid) {
            Ok(filters) => return Ok(Some((pid, filters))),
            Err(DumpError::NoTask | DumpError::Ended) => {}
            Err(error) => {
                return Err(Error::environment(format!(
                    "cannot read the filters of process {pid} of {unit}: {error}; --no-process goes by the unit alone"
                )));
            }
        }
    }
    Ok(None)
}

/// The start time of a process, in ticks since boot.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain any character; the start time is field 22, the 20th after the name.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

/// Whether a process is in the control group of a system unit.
fn is_of_unit(pid: i32, unit: &str) -> bool {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.any(|path| {
        let mut folders = path.split('/');
        !path.starts_with("/user.slice/") && folders.any(|folder| folder == unit)
    })
}

/// Rejects a filter that denies executing the service's program.
pub(super) fn check_execve(filter: &Program, arch: Arch, unit: &str) -> Result<(), Error> {
    let Ok(call) = call::parse("execve()", arch) else {
        return Ok(());
    };
    let action = Action::from_ret(interp::run(filter, &call).ret);
    match action.kind.executes() {
        true => Ok(()),
        false => Err(Error::usage(
            format!(
                "{unit} can't be hardened: the filter answers execve with {action}, so nothing would start"
            ),
            "if that is of a filter that the service installs itself, --no-process goes by the unit alone",
        )),
    }
}
