//! Replies to user notifications.
//!
//! Callers and this thread wake each other on the same CPU where the kernel supports it (`SYNC_WAKE_UP`, 6.6). With
//! `WAIT_KILLABLE_RECV` (5.19) only fatal signals interrupt a call that has been received; on older kernels a call that
//! a signal interrupts is received again. The module `interrupted` restarts calls that were interrupted before that.

use std::collections::BTreeMap;
use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tamis_kernel::listener::{Listener, ListenerError, Notification, Received, Reply};
use tamis_kernel::spawn::{PendingListener, Signaller};
use tamis_kernel::{Errno, affinity};

use super::interrupted::ForwardedCalls;
use crate::error::{PlatformError, Unsupported};
use crate::patched::channels::Channels;
use crate::remote::Remote;
use crate::supervisor::{Answer, Supervisor};
use crate::task::{Space, Task, TaskId};

/// The delayed answers, by their times and the numbers of their calls.
type DelayedAnswers = BTreeMap<(Instant, u64), (Notification, Answer)>;

/// The context for answering notifications.
pub(super) struct Responder<'a> {
    pub(super) supervisor: &'a dyn Supervisor,
    pub(super) pending: &'a PendingListener,
    /// Set after the guest's end.
    pub(super) has_ended: &'a AtomicBool,
    /// Readable after the guest's end.
    pub(super) stop: &'a PipeReader,
    pub(super) signaller: &'a Signaller,
    /// The CPU to stay on.
    pub(super) cpu: Option<usize>,
    /// The calls that the kernel executes.
    pub(super) forwarded: &'a ForwardedCalls<'a>,
}

impl Responder<'_> {
    /// Replies until the guest has ended. Kills the guest on return if it hasn't ended.
    pub(super) fn run(&self, channels: Option<&Channels<'_>>) -> Result<(), PlatformError> {
        let _guard = KillOnDrop(self.signaller);
        if let Some(cpu) = self.cpu {
            affinity::stay_on(cpu).map_err(|errno| PlatformError::Request {
                request: "sched_setaffinity",
                errno,
            })?;
        }
        let Some(mut listener) = self.pending.wait(self.has_ended)? else {
            return Ok(());
        };
        // Older kernels wake callers without this hint.
        let _ = listener.set_sync_wake_up(true);
        let mut later = DelayedAnswers::new();
        loop {
            let stop = Some(self.stop.as_fd());
            let next = later.first_key_value().map(|((time, _), _)| *time);
            let (call, answer) = match listener.receive_before(stop, next)? {
                Received::Call(notification) => {
                    let answer = self.ask(&listener, &notification, channels);
                    let forwarded = match (channels, answer.makes_calls()) {
                        (Some(channels), true) => channels.forward(&notification),
                        _ => Ok(()),
                    };
                    // A guest can prevent its tracing. Then its calls that would create a task that outlives the
                    // supervisor fail.
                    let answer = forwarded
                        .map_or_else(|error| Answer::Errno(error.errno.0 as u16), |()| answer);
                    (notification, answer)
                }
                Received::TimedOut => match later.pop_first() {
                    Some((_, answer)) => answer,
                    None => continue,
                },
                // No task has the filter, though some may still be exiting.
                Received::Ended => return Ok(()),
            };
            if !self.reply(&listener, call, answer, &mut later)? {
                return self.await_stop();
            }
        }
    }

    /// The supervisor's answer to a call.
    fn ask(
        &self,
        listener: &Listener,
        notification: &Notification,
        channels: Option<&Channels<'_>>,
    ) -> Answer {
        if let Some(answer) = channels.and_then(|channels| channels.answer(notification)) {
            return answer;
        }
        let mut task = WaitingTask {
            space: WaitingMemory {
                listener,
                id: notification.id,
                remote: Remote {
                    tid: notification.thread,
                },
            },
        };
        self.supervisor.call(&mut task, &notification.call)
    }

    /// Kills the guest, and keeps the listener until it has ended: without it, calls would fail visibly.
    fn await_stop(&self) -> Result<(), PlatformError> {
        let _ = self.signaller.send(libc::SIGKILL);
        tamis_kernel::poll::readable(&[self.stop.as_fd()])
            .map(|_| ())
            .map_err(|errno| PlatformError::Request {
                request: "poll",
                errno,
            })
    }
    /// Replies to a call, or schedules its reply; false if the guest is to be killed.
    fn reply(
        &self,
        listener: &Listener,
        call: Notification,
        answer: Answer,
        later: &mut DelayedAnswers,
    ) -> Result<bool, PlatformError> {
        let id = call.id;
        // This is done before the reply: the call may be interrupted right after it.
        match answer {
            Answer::Forward => self.forwarded.add(call.thread, call.call),
            _ => self.forwarded.remove(call.thread),
        }
        let reply = match answer {
            Answer::Return(value) => Reply::Return(value),
            Answer::Errno(errno) => Reply::Errno(errno),
            Answer::Forward => Reply::Continue,
            Answer::ForwardWith(_) => {
                let what = Unsupported::new("replacing a call by another");
                return Err(PlatformError::Unsupported(what));
            }
            Answer::Descriptor(fd) => match listener.reply_fd(id, fd.as_fd()) {
                Ok(_) => return Ok(true),
                // The guest has reached its limit of descriptors.
                Err(ListenerError {
                    errno: Errno(errno @ libc::EMFILE),
                    ..
                }) => Reply::Errno(errno as u16),
                Err(error) => return Err(error.into()),
            },
            Answer::Kill => return Ok(false),
            Answer::Later(time, answer) => {
                later.insert((Instant::now() + time, id), (call, *answer));
                return Ok(true);
            }
        };
        listener.reply(id, reply)?;
        Ok(true)
    }
}

/// Kills the guest, if it hasn't ended.
struct KillOnDrop<'a>(&'a Signaller);

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(libc::SIGKILL);
    }
}

/// A task that waits for a reply.
struct WaitingTask<'a> {
    space: WaitingMemory<'a>,
}

impl Task for WaitingTask<'_> {
    fn id(&self) -> TaskId {
        TaskId(self.space.remote.tid)
    }

    fn space(&self) -> &dyn Space {
        &self.space
    }
}

/// Memory of a task, as long as that task waits: afterwards its number may belong to another.
struct WaitingMemory<'a> {
    listener: &'a Listener,
    id: u64,
    remote: Remote,
}

impl WaitingMemory<'_> {
    fn check(&self, len_bytes: usize) -> Result<usize, Errno> {
        match self.listener.is_waiting(self.id) {
            Ok(true) => Ok(len_bytes),
            _ => Err(Errno(libc::ESRCH)),
        }
    }
}

impl Space for WaitingMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let len_bytes = self.remote.read(address, buffer)?;
        self.check(len_bytes)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
        // Checked before and after: a caller of this kernel can be killed in between, and its number reused by another
        // process. A write to that process can't be undone, but is reported as an error.
        self.check(0)?;
        let len_bytes = self.remote.write(address, bytes)?;
        self.check(len_bytes)
    }
}
