//! Recording by programs in the kernel: a command, or running processes.

use std::ffi::OsString;
use std::io;

use tamis_deploy::tasks::numbers;
use tamis_kernel::interrupt::Interrupts;
use tamis_kernel::spawn::{Spawn, SpawnError};
use tamis_kernel::{Ended, Errno};
use tamis_recorder::ebpf::{Recorder, Start};
use tamis_session::path_text::PathText;

use super::group::Group;
use super::watch::RecordingView;
use crate::cli::{Failure, exit};

/// Runs a command until it and its descendants have ended. Interrupts are caught from its start on.
pub(super) fn record_command(
    watch: &RecordingView<'_>,
    recorder: &Recorder,
    program: &OsString,
    arguments: &[OsString],
    interrupts: &mut Option<Interrupts>,
) -> Result<Ended, Failure> {
    let mut spawn = Spawn::new(program);
    spawn.args = arguments.to_vec();
    spawn.no_new_privs = false;
    spawn.forward_signals = true;
    // The command receives interrupts while it runs. Another one may follow before the recording is written.
    interrupts.get_or_insert_with(Interrupts::catch);
    let held = spawn.start().map_err(|error| refused(program, &error))?;
    recorder.record(held.pid(), Start::AtExec);
    let mut child = held.release();
    let ended = watch.during(|| child.wait()).map_err(|errno| {
        Failure::environment(format!("the command can't be waited for: {errno}"))
    })?;
    if let Some(error) = child.error() {
        return Err(refused(program, &error));
    }
    drop(child);
    wait_for_all(watch, recorder, interrupts);
    Ok(ended)
}

/// The failure to start a command.
pub(in crate::command) fn refused(program: &OsString, error: &SpawnError) -> Failure {
    let message = format!("{}: {error}", program.text());
    match error {
        SpawnError::Exec(Errno::ENOENT) => Failure::new(exit::NOT_FOUND, message, None),
        SpawnError::Exec(_) => Failure::new(exit::CANNOT_EXECUTE, message, None),
        _ => Failure::environment(message),
    }
}

/// Records all tasks of processes until they end, or until an interrupt.
pub(super) fn record_processes(
    watch: &RecordingView<'_>,
    recorder: &Recorder,
    pids: &[i32],
    interrupts: &mut Option<Interrupts>,
) -> Result<(), Failure> {
    choose(pids, |task| {
        recorder.record(task, Start::Now);
    })?;
    wait_for_all(watch, recorder, interrupts);
    Ok(())
}

/// Records all tasks of a control group until it is empty, or until an interrupt.
pub(super) fn record_group(
    watch: &RecordingView<'_>,
    recorder: &Recorder,
    group: &Group,
    interrupts: &mut Option<Interrupts>,
) {
    for pid in group.processes() {
        // The process may have ended; tasks that join the group are found by their calls.
        let _ = choose(&[pid], |task| {
            recorder.record(task, Start::Now);
        });
    }
    let interrupts = interrupts.get_or_insert_with(Interrupts::catch);
    watch.watch_until(|| group.is_empty() || interrupts.arrived());
}

/// Selects all tasks of processes.
pub(in crate::command) fn choose(pids: &[i32], mut choose: impl FnMut(i32)) -> Result<(), Failure> {
    for pid in pids {
        // Repeat, because a task may start another one before it is recorded itself.
        let mut known = Vec::new();
        loop {
            let tasks = tasks(*pid)?;
            let new: Vec<i32> = tasks
                .into_iter()
                .filter(|task| !known.contains(task))
                .collect();
            if new.is_empty() {
                break;
            }
            for task in &new {
                choose(*task);
            }
            known.extend(new);
        }
    }
    Ok(())
}

fn tasks(pid: i32) -> Result<Vec<i32>, Failure> {
    numbers(&format!("/proc/{pid}/task")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::input(format!("there is no process {pid}")),
        _ => Failure::environment(format!(
            "the threads of process {pid} can't be read: {error}"
        )),
    })
}

fn wait_for_all(
    watch: &RecordingView<'_>,
    recorder: &Recorder,
    interrupts: &mut Option<Interrupts>,
) {
    let interrupts = interrupts.get_or_insert_with(Interrupts::catch);
    watch.watch_until(|| recorder.live() == 0 || interrupts.arrived());
}
