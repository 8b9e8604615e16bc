//! The origin of a recording in its profile: the run's id, the machine and the program.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tamis_profile::{Origin, RunId, Runs};
use tamis_session::path_text::PathText;

/// The run of a command, or of running processes. Without an id it gets a random one.
pub(super) fn runs(id: Option<&RunId>, command: &[OsString], pids: &[i32]) -> Runs {
    let read = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.trim().to_owned()
    };
    let random = || RunId::new(&read("/proc/sys/kernel/random/uuid"));
    let Some(id) = id.cloned().or_else(random) else {
        return Runs::default();
    };
    let program = match (command.first(), pids.first()) {
        (Some(program), _) => {
            let name = Path::new(program).file_name();
            name.unwrap_or_default().text()
        }
        (None, Some(pid)) => read(&format!("/proc/{pid}/comm")),
        (None, None) => String::new(),
    };
    let machine = read("/proc/sys/kernel/hostname");
    Runs::one(id, Origin::new(&machine, &program))
}

/// Parses the value of `--run-id`.
pub(super) fn parse_id(text: &str) -> Result<RunId, &'static str> {
    RunId::new(text).ok_or("an id is text of 1 to 128 bytes without control characters")
}
