//! Replies to the notified calls of a command, on a thread of its own.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

use crate::listener::{Listener, ListenerError, Notification, Reply};
use crate::spawn::PendingListener;

/// The function that replies to notified calls.
pub(crate) type Answer<'a> = dyn FnMut(&Listener, &Notification) -> Reply + Send + 'a;

/// Replies to calls until the command has ended: then `has_ended` is set and `stop` is readable. Returns whether tasks
/// with the filter are left, whose calls get no more replies.
pub(crate) fn answer_until_end(
    pending: &PendingListener,
    has_ended: &AtomicBool,
    stop: &PipeReader,
    answer: &mut Answer<'_>,
) -> Result<bool, ListenerError> {
    let Some(listener) = pending.wait(has_ended)? else {
        return Ok(false);
    };
    while let Some(notification) = listener.receive(Some(stop.as_fd()))? {
        let reply = answer(&listener, &notification);
        // A caller that is gone needs no reply.
        listener.reply(notification.id, reply)?;
    }
    listener.has_tasks()
}
