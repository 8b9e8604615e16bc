//! Forwarding signals to a child.
//!
//! A signal handler must be async-signal-safe, so it counts signals and writes to a pipe, which a thread reads.
//! After the child has been reaped, its number may belong to another process. So signals are sent through a process
//! descriptor; on kernels without them, a mutex around the child prevents reaping while a signal is being sent.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};

use crate::errno::Errno;
use crate::sys::fd;
use crate::sys::process::Process;
use crate::sys::ptrace;
use crate::sys::signal::{self, SavedHandlers, WAKE};
use crate::sys::wait::{self, Event};
use crate::tracee::Resume;

use super::{SpawnError, Step};

/// The signals that are forwarded to the child when other processes send them to this one: those with a meaning defined
/// by the program. Not forwarded are faults, `SIGPIPE`, `SIGCHLD` and signals of this process's limits and timers,
/// which concern this process, and those of job control, which go to whole groups.
fn forwarded() -> Vec<i32> {
    let named = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGWINCH,
    ];
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    named.into_iter().chain(real_time).collect()
}

/// The pipe between the handler and the thread. It lives as long as the process: a handler may still write to it
/// after the run.
static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();

/// HeldChild by the child that gets the signals.
static TURN: Mutex<()> = Mutex::new(());

/// The byte that stops the thread.
const STOP: u8 = 0;

/// The process that receives the signals: only between fork and reaping.
type Target = Arc<Mutex<Option<Process>>>;

/// The means to send a child signals, from any thread and even after its end.
#[derive(Clone, Debug)]
pub struct Signaller {
    target: Target,
}

impl Signaller {
    /// Sends the child a signal.
    ///
    /// # Errors
    /// `ESRCH` if it has ended and been waited for, `EPERM` if it runs as another user.
    pub fn send(&self, signal: i32) -> Result<(), Errno> {
        match &*lock(&self.target) {
            Some(child) => child.kill(signal),
            None => Err(Errno(libc::ESRCH)),
        }
    }
}

/// Access to one child; signals are forwarded to it during the life of this value.
#[derive(Debug)]
pub(super) struct Forwarding {
    target: Target,
    active: Option<Active>,
}

/// Dropped in this order: the handlers must be removed before the thread ends.
#[derive(Debug)]
struct Active {
    caught: SavedHandlers,
    _thread: Thread,
    _turn: MutexGuard<'static, ()>,
}

/// The forwarding thread; dropping it ends it.
#[derive(Debug)]
struct Thread {
    stop: &'static PipeWriter,
    handle: Option<JoinHandle<()>>,
}

impl Forwarding {
    /// Starts forwarding if `wanted` and no other child receives the signals.
    pub(super) fn start(wanted: bool) -> Result<Forwarding, SpawnError> {
        let target = Target::default();
        let turn = match wanted.then(|| TURN.try_lock()) {
            Some(Ok(turn)) => Some(turn),
            Some(Err(TryLockError::Poisoned(poisoned))) => Some(poisoned.into_inner()),
            Some(Err(TryLockError::WouldBlock)) | None => None,
        };
        let active = match turn {
            Some(turn) => {
                let (reader, stop) = pipe().map_err(|error| Step::Pipe.failed_io(&error))?;
                let target = Arc::clone(&target);
                let handle = thread::Builder::new()
                    .name("tamis-signals".to_owned())
                    .spawn(move || forward(reader, &target))
                    .map_err(|error| Step::Thread.failed_io(&error))?;
                Some(Active {
                    caught: SavedHandlers::new(&forwarded(), stop.as_raw_fd()),
                    _thread: Thread {
                        stop,
                        handle: Some(handle),
                    },
                    _turn: turn,
                })
            }
            None => None,
        };
        Ok(Forwarding { target, active })
    }

    /// Whether signals are forwarded.
    pub(super) const fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// The signals with handlers that the child must reset before it executes.
    pub(super) fn reset_in_child(&self) -> Vec<i32> {
        let caught = self
            .active
            .iter()
            .flat_map(|active| active.caught.signals());
        // The Rust runtime ignores SIGPIPE; commands expect the default.
        caught.chain([libc::SIGPIPE]).collect()
    }

    /// Creates the child with this function; signals received meanwhile are forwarded to it.
    pub(super) fn spawn(
        &self,
        spawn: impl FnOnce() -> Result<libc::pid_t, SpawnError>,
    ) -> Result<libc::pid_t, SpawnError> {
        let mut target = lock(&self.target);
        let pid = spawn()?;
        *target = Some(Process::new(pid));
        Ok(pid)
    }

    /// Takes the report of the child or of one of its descendants; if the child has ended, it is reaped, and
    /// signals are no longer forwarded.
    pub(super) fn reap(&self, pid: libc::pid_t) -> Result<Option<Event>, Errno> {
        let mut target = lock(&self.target);
        let event = wait::take(pid)?;
        let is_child = target.as_ref().is_some_and(|child| child.pid() == pid);
        if is_child && matches!(event, Some(Event::Ended(_))) {
            *target = None;
        }
        Ok(event)
    }

    /// Blocks until the child or a tracee of this thread has a report, and takes it as [`reap`](Self::reap) does.
    pub(super) fn reap_next(&self) -> Result<(libc::pid_t, Event), Errno> {
        let is_exact = lock(&self.target).as_ref().is_none_or(Process::is_exact);
        if !is_exact {
            loop {
                let tid = wait::peek_any()?;
                if let Some(event) = self.reap(tid)? {
                    return Ok((tid, event));
                }
            }
        }
        let (tid, event) = wait::next_any()?;
        if matches!(event, Event::Ended(_)) {
            let mut target = lock(&self.target);
            if target.as_ref().is_some_and(|child| child.pid() == tid) {
                *target = None;
            }
        }
        Ok((tid, event))
    }

    /// The means to send the child signals.
    pub(super) fn signaller(&self) -> Signaller {
        Signaller {
            target: Arc::clone(&self.target),
        }
    }

    /// Kills a child that can't be waited for as usual, unless it has already been reaped; if it can't be waited
    /// for at all, the parent of this process reaps it.
    pub(super) fn give_up(&self) {
        let Some(child) = lock(&self.target).take() else {
            return;
        };
        if child.kill(libc::SIGKILL).is_err() {
            return;
        }
        while let Ok(Event::Stopped { .. }) = wait::next(child.pid()) {
            let _ = ptrace::resume(child.pid(), Resume::Run, 0);
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // If the pipe is full, the thread is reading it. No other error is possible while the read end is open,
        // which it always is.
        let mut stop = self.stop;
        while stop.write_all(&[STOP]).is_err() {
            thread::yield_now();
        }
        if let Some(handle) = self.handle.take() {
            // The thread never panics.
            let _ = handle.join();
        }
    }
}

fn pipe() -> io::Result<&'static (PipeReader, PipeWriter)> {
    if let Some(pipe) = PIPE.get() {
        return Ok(pipe);
    }
    let pipe = io::pipe()?;
    // The handler may run on the thread that reads the pipe.
    fd::set_nonblocking(pipe.1.as_fd())?;
    Ok(PIPE.get_or_init(|| pipe))
}

/// Sends every signal from the handler to the target, until `STOP`.
fn forward(mut pipe: &PipeReader, target: &Target) {
    let mut bytes = [WAKE; 256];
    loop {
        let len_bytes = match pipe.read(&mut bytes) {
            Ok(len_bytes) => len_bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(_) => return,
        };
        for signal in signal::take() {
            if let Some(child) = &*lock(target) {
                // It fails if the child changed its user or has just ended; both can be ignored.
                let _ = child.kill(signal);
            }
        }
        if bytes[..len_bytes].contains(&STOP) {
            return;
        }
    }
}

fn lock(target: &Target) -> MutexGuard<'_, Option<Process>> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}
