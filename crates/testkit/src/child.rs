//! Child processes that install filters, with a time limit.
//!
//! A mistake in a filter, or a bug of the kernel, can make a child wait for ever, even without a reaction to signals.
//! The test then fails with a message, and the test run does not hang.

use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::patience;

/// The limit on a usual machine. The slowest child needs some seconds on an idle one.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs a command to its end and captures its output; its standard input is that of the command.
///
/// # Errors
/// If it can't be started.
///
/// # Panics
/// If it takes longer than five minutes of a usual machine; it is killed, if it can be.
#[track_caller]
pub fn output(command: &mut Command) -> io::Result<Output> {
    let limit = patience::scaled(LIMIT);
    match output_within(command, limit)? {
        Some(output) => Ok(output),
        None => panic!(
            "{command:?} has not ended after {limit:?} and was killed. If it is still there, the kernel hangs: \
             see \"Many filters freed at once\" in docs/book/kernel.md"
        ),
    }
}

/// The same with a limit; `None` after the limit, when `SIGKILL` has been sent, whether or not the child died.
fn output_within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut streams = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    // These threads outlive a child that can't be killed; the test process ends without them.
    thread::spawn(move || {
        let errors = thread::spawn(move || all_of(streams.1.as_mut()));
        let stdout = all_of(streams.0.as_mut());
        let stderr = errors.join().expect("no panic");
        // After the limit there is no receiver.
        let _ = sender.send((stdout, stderr));
    });
    match receiver.recv_timeout(limit) {
        Ok((stdout, stderr)) => {
            let (stdout, stderr) = (stdout?, stderr?);
            let status = child.wait()?;
            Ok(Some(Output {
                status,
                stdout,
                stderr,
            }))
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            child.kill()?;
            Ok(None)
        }
    }
}

fn all_of(stream: Option<&mut impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Copies a program that is executed next. Another process writes the copy: a child that this one forks meanwhile would
/// hold a file that is open for writing, and the kernel refuses to execute such a file.
///
/// # Panics
/// If it can't be copied.
pub fn copy_program(from: impl AsRef<std::path::Path>, to: impl AsRef<std::path::Path>) {
    let mut copy = Command::new("cp");
    let status = copy.arg("--").arg(from.as_ref()).arg(to.as_ref()).status();
    assert!(status.is_ok_and(|status| status.success()), "{copy:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_is_captured_and_what_does_not_is_killed() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::null());
            command
        };
        let output = output(&mut shell("echo out; echo err >&2; exit 3")).expect("it starts");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&output.stdout[..], &output.stderr[..]),
            (&b"out\n"[..], &b"err\n"[..])
        );
        let waits = output_within(&mut shell("exec sleep 1000"), Duration::ZERO);
        assert!(waits.expect("it starts").is_none());
    }
}
