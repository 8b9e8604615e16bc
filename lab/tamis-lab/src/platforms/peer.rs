//! Another program that runs a guest, such as gVisor's `runsc`, for comparison with the platforms.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tamis_kernel::{Ended, affinity};
use tamis_platform::Placement;

/// The time limit of a run.
const LIMIT: Duration = Duration::from_secs(60);
/// The interval between checks for the end, which take time from the guest.
const PAUSE: Duration = Duration::from_millis(20);

/// A command that gets the guest's path as its last argument.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) name: String,
    words: Vec<String>,
}

impl Peer {
    /// Parses `NAME=COMMAND`, with words between spaces.
    pub(super) fn parse(text: &str) -> Result<Peer, String> {
        let (name, command) = text.split_once('=').ok_or("it has the form NAME=COMMAND")?;
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        match (name.is_empty(), words.is_empty()) {
            (false, false) => Ok(Peer {
                name: name.to_owned(),
                words,
            }),
            _ => Err("it has the form NAME=COMMAND".to_owned()),
        }
    }

    /// Runs the guest on these CPUs.
    pub(super) fn run(&self, guest: &Path, placement: Placement) -> Result<Ended, String> {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .arg(guest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A process starts on the CPUs of its parent's thread.
        let spawn = || match placement {
            Placement::Same(cpu) => match affinity::stay_on(cpu) {
                Ok(()) => command.spawn().map_err(|error| error.to_string()),
                Err(errno) => Err(errno.to_string()),
            },
            _ => command.spawn().map_err(|error| error.to_string()),
        };
        let spawned = thread::scope(|scope| scope.spawn(spawn).join());
        let spawned = spawned.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut child = spawned.map_err(|problem| format!("{}: {problem}", self.words[0]))?;
        let start = Instant::now();
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => {
                    return Ended::of_status(status.into_raw())
                        .ok_or_else(|| "it has no end".to_owned());
                }
                None if start.elapsed() > LIMIT => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("it didn't end within {LIMIT:?}"));
                }
                None => thread::sleep(PAUSE),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_name_and_a_command() {
        let peer = Peer::parse("runsc=runsc --platform=systrap do").unwrap();
        assert_eq!(peer.name, "runsc");
        assert_eq!(peer.words, ["runsc", "--platform=systrap", "do"]);
        for wrong in ["runsc", "=runsc", "runsc=", "runsc= "] {
            assert!(Peer::parse(wrong).is_err(), "{wrong}");
        }
    }
}
