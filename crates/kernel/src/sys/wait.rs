//! Waiting for children and tracees, and sending signals.

use std::mem::MaybeUninit;

use crate::ended::Ended;
use crate::errno::Errno;
use crate::sys::check;

/// Of `peek`: reports of children and tracees of the calling thread.
const OWN: i32 = libc::WEXITED | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;

/// Blocks until a child or tracee *of the calling thread* has a report, without taking it; returns its number.
/// Children of other threads are ignored. Tracees also report stops.
pub(crate) fn peek_any() -> Result<libc::pid_t, Errno> {
    peek(libc::P_ALL, 0, OWN)
}

/// Whether a child or tracee *of the calling thread* has a report, or none is left: then nothing blocks that waits for one.
pub(crate) fn is_any_reported() -> bool {
    peek(libc::P_ALL, 0, OWN | libc::WNOHANG) != Ok(0)
}

/// Blocks until a child or tracee *of the calling thread* has a report, and takes it.
pub(crate) fn next_any() -> Result<(libc::pid_t, Event), Errno> {
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes one number.
        let returned =
            unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        match check(returned) {
            Ok(tid) => return Ok((tid, event(status))),
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Blocks until one of the descriptors has something to read or an error; returns the index of the first such.
pub(crate) fn poll(fds: &[i32]) -> Result<usize, Errno> {
    let entry = |fd: &i32| libc::pollfd {
        fd: *fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: Vec<libc::pollfd> = fds.iter().map(entry).collect();
    loop {
        let count = entries.len() as libc::nfds_t;
        // SAFETY: the list has this many entries.
        match check(unsafe { libc::poll(entries.as_mut_ptr(), count, -1) }) {
            Ok(_) => {}
            Err(Errno(libc::EINTR)) => continue,
            Err(errno) => return Err(errno),
        }
        if let Some(index) = entries.iter().position(|entry| entry.revents != 0) {
            return Ok(index);
        }
    }
}

/// Blocks until this child has ended, without taking its report.
pub(crate) fn peek_end(pid: libc::pid_t) -> Result<(), Errno> {
    let options = libc::WEXITED | libc::WNOWAIT;
    peek(libc::P_PID, pid as libc::id_t, options).map(|_| ())
}

/// Whether a filter that this process has inherited allows waiting for its children.
pub(crate) fn check_allowed(pid: libc::pid_t) -> Result<(), Errno> {
    let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    peek(libc::P_PID, pid as libc::id_t, options).map(|_| ())
}

/// Whether a task is a child or tracee *of the calling thread* and hasn't been reaped.
pub(crate) fn is_awaited(tid: libc::pid_t) -> bool {
    peek(libc::P_PID, tid as libc::id_t, OWN | libc::WNOHANG) != Err(Errno(libc::ECHILD))
}

fn peek(kind: libc::idtype_t, id: libc::id_t, options: i32) -> Result<libc::pid_t, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        // SAFETY: the kernel fills the structure on success.
        let returned = unsafe { libc::waitid(kind, id, info.as_mut_ptr(), options) };
        match check(returned) {
            // SAFETY: filled for a child's report, so that the process number is there.
            Ok(_) => return Ok(unsafe { info.assume_init_ref().si_pid() }),
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// An event of a child or tracee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Ended(Ended),
    /// Stopped by a signal, or at the `PTRACE_EVENT_*` with a number above 0.
    Stopped {
        signal: i32,
        event: i32,
    },
}

/// Takes the report of a child or tracee, if there is one, without blocking.
pub(crate) fn take(pid: libc::pid_t) -> Result<Option<Event>, Errno> {
    let mut status = 0;
    // SAFETY: the kernel writes one number.
    let returned = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG | libc::__WALL) };
    if check(returned)? == 0 {
        return Ok(None);
    }
    Ok(Some(event(status)))
}

/// Blocks until a child or tracee has a report, and takes it.
pub(crate) fn next(pid: libc::pid_t) -> Result<Event, Errno> {
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes one number.
        match check(unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) }) {
            Ok(_) => return Ok(event(status)),
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// The event of a `waitpid` status.
fn event(status: i32) -> Event {
    match Ended::of_status(status) {
        Some(ended) => Event::Ended(ended),
        None => Event::Stopped {
            signal: libc::WSTOPSIG(status),
            event: status >> 16,
        },
    }
}

/// Takes the stop of a tracee, if it has one, without blocking. Its end is returned, but left for its parent to
/// take.
pub(crate) fn take_stop(pid: libc::pid_t) -> Result<Option<Event>, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::WNOHANG | libc::__WALL;
    // SAFETY: the kernel fills the structure, with zeros if there is nothing to report.
    check(unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, info.as_mut_ptr(), options) })?;
    // SAFETY: filled above; zero is valid.
    let info = unsafe { info.assume_init_ref() };
    // SAFETY: a report of `waitid`, or zeros.
    let status = unsafe { info.si_status() };
    match info.si_code {
        0 => Ok(None),
        libc::CLD_EXITED => Ok(Some(Event::Ended(Ended::Exited(status as u8)))),
        libc::CLD_KILLED | libc::CLD_DUMPED => Ok(Some(Event::Ended(Ended::Signalled {
            signal: status,
            core_dumped: info.si_code == libc::CLD_DUMPED,
        }))),
        _ => take(pid),
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(pid: libc::pid_t, signal: i32) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::kill(pid, signal) }).map(|_| ())
}
