//! Answers to the calls that a filter with the action `notify` passes to user space: by a function, or by a policy.
//!
//! Each call is decoded by the tables: its name, its arguments by theirs, cut to the bits that the kernel reads. Memory
//! behind an argument isn't read: another thread could change it before the kernel reads it again, so an answer that
//! depends on it must not be [`Answer::Continue`].

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};

use tamis_abi::signature::{self, Width};
use tamis_abi::{ActionKind, Arch, Nr, SeccompData, call, syscall};
use tamis_kernel::Errno;
use tamis_kernel::listener::{Listener, Notification, Reply};

use crate::{Error, Policy};

/// The error of a call that a policy denies without one: the same number on every architecture.
const EPERM: u16 = 1;

/// A call that waits for its answer. `Display` shows it with the names of its arguments and their constants.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    listener: &'a Listener,
    notification: Notification,
}

/// The answer to a call.
#[derive(Debug)]
pub enum Answer {
    /// Skip the call; it returns this value.
    Return(i64),
    /// Skip the call; it fails with this error number.
    Errno(u16),
    /// Skip the call; it returns the number of a copy of this descriptor in the caller, closed on `execve`. Linux 5.14. If
    /// the caller has no room for it, or the kernel is older, the call fails with that error.
    Fd(OwnedFd),
    /// Execute the call. Linux 5.5.
    Continue,
}

/// Answers the calls of a listener by a function, one after the other, until no task with the filter is left.
///
/// The listener comes from [`Install::listener`](crate::Install::listener). The thread of this function must not need an answer
/// itself: it begins before the filter is installed, or the filter is another process's.
///
/// ```no_run
/// use tamis::{Answer, Install, Policy, install_with, supervise};
/// let text = "default allow\nnotify connect";
/// let filter = Policy::from_text("inline", text)?.compile()?;
/// let (give, take) = std::sync::mpsc::channel();
/// let supervisor = std::thread::spawn(move || {
///     let listener = take.recv().expect("a listener");
///     supervise(listener, |call| {
///         eprintln!("thread {}: {call}", call.thread());
///         Answer::Errno(111) // ECONNREFUSED
///     })
/// });
/// let installed = install_with(&filter, &Install::default().listener())?;
/// give.send(installed.listener.expect("requested"))?;
/// # drop(supervisor);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the descriptor isn't a listener, or the kernel rejects an answer, such as [`Answer::Continue`] before Linux 5.5.
pub fn supervise(
    listener: OwnedFd,
    mut answer: impl FnMut(&Call<'_>) -> Answer,
) -> Result<(), Error> {
    let listener = Listener::new(listener)?;
    while let Some(notification) = listener.receive(None)? {
        let call = Call {
            listener: &listener,
            notification,
        };
        let id = notification.id;
        let reply = match answer(&call) {
            Answer::Return(value) => Reply::Return(value),
            Answer::Errno(errno) => Reply::Errno(errno),
            Answer::Continue => Reply::Continue,
            Answer::Fd(fd) => match listener.reply_fd(id, fd.as_fd()) {
                Ok(_) => continue,
                Err(error) => Reply::Errno(number(error.errno)),
            },
        };
        listener.reply(id, reply)?;
    }
    Ok(())
}

/// An error of the kernel for a caller; `EPERM` for one that no call returns.
fn number(errno: Errno) -> u16 {
    u16::try_from(errno.0).unwrap_or(EPERM)
}

impl Call<'_> {
    /// The thread that made the call, as this process sees it; 0 if it can't.
    pub fn thread(&self) -> i32 {
        self.notification.thread
    }

    /// What the filter saw.
    pub fn data(&self) -> &SeccompData {
        &self.notification.call
    }

    /// The architecture; `None` if it is unknown.
    pub fn arch(&self) -> Option<Arch> {
        Arch::of_call(self.data().arch, self.data().nr)
    }

    /// The name; `None` if the tables lack the call.
    pub fn name(&self) -> Option<&'static str> {
        syscall::name(self.arch()?, Nr(self.data().nr))
    }

    /// An argument by its name in the kernel's source: the bits that the kernel reads, without sign.
    pub fn arg(&self, name: &str) -> Option<u64> {
        let (arch, call) = (self.arch()?, self.name()?);
        let place = signature::index(arch, call, name)?;
        let value = self.data().args[place.index()];
        let own = signature::at(arch, call, place)?;
        Some(match signature::width(arch, call, own) {
            Width::Bits16 => value & 0xffff,
            Width::Bits32 => value & 0xffff_ffff,
            Width::Bits64 => value,
        })
    }

    /// The answer of a policy: allowed calls are executed, others fail with the policy's error, or with `EPERM` where it
    /// kills, traps or traces. `None` if the action is `notify`, which leaves the answer to the caller, and of a policy
    /// with variables, whose values are unknown.
    ///
    /// A policy decides by numbers alone, so no other thread can change what it has seen.
    pub fn answer_by(&self, policy: &Policy) -> Option<Answer> {
        if !policy.ruleset().variables().is_empty() {
            return None;
        }
        let action = policy.ruleset().decide(self.data()).action;
        match action.kind {
            ActionKind::Allow | ActionKind::Log => Some(Answer::Continue),
            ActionKind::Notify => None,
            ActionKind::Errno => Some(Answer::Errno(action.data)),
            ActionKind::KillProcess
            | ActionKind::KillThread
            | ActionKind::Trap
            | ActionKind::Trace => Some(Answer::Errno(EPERM)),
        }
    }

    /// Gives the caller a copy of a descriptor, closed on `execve`, and returns its number there; the call still waits.
    /// Linux 5.9.
    ///
    /// # Errors
    /// If the caller is gone or has too many descriptors, or the kernel is older.
    pub fn add_fd(&self, fd: impl AsFd) -> Result<i32, Error> {
        Ok(self.listener.add_fd(self.notification.id, fd.as_fd())?)
    }

    /// Whether the call still waits, so that the number of its thread is still that of the caller.
    ///
    /// # Errors
    /// If the kernel fails.
    pub fn is_waiting(&self) -> Result<bool, Error> {
        Ok(self.listener.is_waiting(self.notification.id)?)
    }
}

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&call::describe_briefly(&call::without_leftovers(
            self.data(),
        )))
    }
}
