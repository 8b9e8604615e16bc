//! Answering the notified calls of a command.
//!
//! The listener comes into being in the child, when it installs its last filter, and any system call
//! with which the child could send or announce it may itself be waiting for the supervisor. So the
//! child makes none: until it executes the command it shares the table of descriptors with the
//! parent, in which the listener appears, and it tells its number through shared memory, at which the
//! parent looks every now and then. This needs no rights beyond those for installing the filter, where
//! fetching the descriptor with `pidfd_getfd` would need those of a tracer.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::errno::Errno;
use crate::notify::{Listener, Notification, Reply};
use crate::sys::fd;
use crate::sys::page::SharedPage;

/// What answers notified calls.
pub(crate) type Answer<'a> = dyn FnMut(&Listener, &Notification) -> Reply + Send + 'a;

/// Waits at most this long between looks for the listener.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Answers calls until the command has ended: then `has_ended` is set and `stop` can be read.
pub(crate) fn answer_until_end(
    page: &SharedPage,
    has_ended: &AtomicBool,
    stop: &PipeReader,
    answer: &mut Answer<'_>,
) -> Result<(), Errno> {
    let Some(listener) = find_listener(page, has_ended) else {
        return Ok(());
    };
    while let Some(notification) = listener.receive(Some(stop.as_fd()))? {
        let reply = answer(&listener, &notification);
        // A caller that is gone needs no answer.
        listener.reply(notification.id, reply)?;
    }
    Ok(())
}

/// The listener, once the child has it; `None` if the child ended without.
fn find_listener(page: &SharedPage, has_ended: &AtomicBool) -> Option<Listener> {
    let mut pause = Duration::from_micros(50);
    loop {
        // In this order: a child that has ended may have left a listener behind, to be closed.
        let is_last_look = has_ended.load(Ordering::Acquire);
        let listener = page.listener.swap(-1, Ordering::AcqRel);
        if listener >= 0 {
            return Listener::new(fd::adopt(listener)).ok();
        }
        if is_last_look {
            return None;
        }
        thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}
