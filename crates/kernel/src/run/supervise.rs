//! Replies to the notified calls of a command, on a thread that polls for its listener.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::listener::{Listener, ListenerError, Notification, Reply};
use crate::spawn::PendingListener;

/// The function that replies to notified calls.
pub(crate) type Answer<'a> = dyn FnMut(&Listener, &Notification) -> Reply + Send + 'a;

/// The longest pause between polls for the listener.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Replies to calls until the command has ended: then `has_ended` is set and `stop` is readable.
pub(crate) fn answer_until_end(
    pending: &PendingListener,
    has_ended: &AtomicBool,
    stop: &PipeReader,
    answer: &mut Answer<'_>,
) -> Result<(), ListenerError> {
    let Some(listener) = find_listener(pending, has_ended)? else {
        return Ok(());
    };
    while let Some(notification) = listener.receive(Some(stop.as_fd()))? {
        let reply = answer(&listener, &notification);
        // A caller that is gone needs no reply.
        listener.reply(notification.id, reply)?;
    }
    Ok(())
}

/// The listener, once the child has installed it; `None` if the child ended before.
fn find_listener(
    pending: &PendingListener,
    has_ended: &AtomicBool,
) -> Result<Option<Listener>, ListenerError> {
    let mut pause = Duration::from_micros(50);
    loop {
        // In this order: an ended child may have left a listener, which must be closed.
        let is_last_look = has_ended.load(Ordering::Acquire);
        let listener = pending.take()?;
        if listener.is_some() || is_last_look {
            return Ok(listener);
        }
        thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}
