//! The calls in progress.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tamis_abi::SeccompData;
use tamis_kernel::Ended;
use tamis_kernel::tracee::SignalInfo;

use super::decode::{Argument, Decoder};
use super::memory::Read;
use super::multiplexed;

/// A call that a task has entered.
#[derive(Clone, Debug)]
pub struct EnteredCall {
    /// The time of entry.
    pub time: SystemTime,
    /// The call as filters see it.
    pub data: SeccompData,
    /// The call that is shown, if the task makes it through a multiplexer.
    meant: SeccompData,
    /// The name.
    pub name: Arc<str>,
    /// The arguments.
    pub args: Vec<Argument>,
    /// The number of arguments known on entry.
    pub known: usize,
    /// Whether a filter or a tracer has denied it, so that the kernel didn't execute it.
    pub is_denied: bool,
    /// A note after its result: the ready descriptors, or the returned flags.
    pub note: Option<Arc<str>>,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The result; -4095 to -1 are errors.
    Returned(i64),
    /// Interrupted by a signal, with a kernel-internal error, -516 to -512.
    Interrupted(i64),
    /// The call never returned.
    Never,
}

impl Outcome {
    /// The error, if the outcome is one.
    pub fn errno(self) -> Option<u16> {
        match self {
            Outcome::Returned(result @ -4095..=-1) => Some(-result as u16),
            _ => None,
        }
    }
}

/// A receiver of the events of tasks.
pub trait Sink {
    /// A task has entered a call. Values that the kernel writes are [`Later`](super::DecodedValue::Later).
    fn entered(&mut self, task: i32, call: &EnteredCall);
    /// A task has left a call after this time.
    fn left(&mut self, task: i32, call: &EnteredCall, outcome: Outcome, took: Duration);
    /// A task has been created.
    fn created(&mut self, task: i32);
    /// A task is about to get a signal.
    fn signalled(&mut self, task: i32, signal: &SignalInfo);
    /// A task has ended.
    fn ended(&mut self, task: i32, how: Ended);
    /// A task is gone: another thread of its process, numbered `by`, has executed a program and taken its number.
    fn superseded(&mut self, task: i32, by: i32);
    /// The total number of lost events.
    fn lost(&mut self, count: u64);
    /// Time has passed, perhaps without an event.
    fn tick(&mut self);
    /// There are no more events.
    ///
    /// # Errors
    /// The first error of writing.
    fn finish(&mut self) -> io::Result<()>;
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn entered(&mut self, task: i32, call: &EnteredCall) {
        (**self).entered(task, call);
    }

    fn left(&mut self, task: i32, call: &EnteredCall, outcome: Outcome, took: Duration) {
        (**self).left(task, call, outcome, took);
    }

    fn created(&mut self, task: i32) {
        (**self).created(task);
    }

    fn signalled(&mut self, task: i32, signal: &SignalInfo) {
        (**self).signalled(task, signal);
    }

    fn ended(&mut self, task: i32, how: Ended) {
        (**self).ended(task, how);
    }

    fn superseded(&mut self, task: i32, by: i32) {
        (**self).superseded(task, by);
    }

    fn lost(&mut self, count: u64) {
        (**self).lost(count);
    }

    fn tick(&mut self) {
        (**self).tick();
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

/// The calls in progress, reported to a sink.
#[derive(Debug)]
pub struct CallTracker<S> {
    decoder: Decoder,
    pending: BTreeMap<i32, (EnteredCall, Duration)>,
    began: Instant,
    sink: S,
}

impl<S: Sink> CallTracker<S> {
    /// Reports to this sink.
    pub fn new(decoder: Decoder, sink: S) -> CallTracker<S> {
        CallTracker {
            decoder,
            pending: BTreeMap::new(),
            began: Instant::now(),
            sink,
        }
    }

    /// The sink.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// A task has entered a call.
    pub fn entered(&mut self, task: i32, data: &SeccompData, read: &Read<'_>) {
        let now = self.began.elapsed();
        self.entered_at(task, data, read, now);
    }

    /// The same, at a time of the caller's clock.
    pub fn entered_at(&mut self, task: i32, data: &SeccompData, read: &Read<'_>, at: Duration) {
        self.left_at(task, Outcome::Never, None, at);
        let seen = self.seen(data, read);
        self.sink.entered(task, &seen);
        // The first thread of a process may wait a long time for other threads before it is gone.
        if matches!(&*seen.name, "exit" | "exit_group") {
            self.sink.left(task, &seen, Outcome::Never, Duration::ZERO);
        } else {
            self.pending.insert(task, (seen, at));
        }
    }

    /// A filter or a tracer has denied a call with this result, and the task continues.
    pub fn denied(&mut self, task: i32, data: &SeccompData, read: &Read<'_>, result: i64) {
        let mut seen = self.seen(data, read);
        seen.is_denied = true;
        let meant = seen.meant;
        self.decoder.returned(&meant, &mut seen.args, result, None);
        self.sink.entered(task, &seen);
        let outcome = Outcome::Returned(result);
        self.sink.left(task, &seen, outcome, Duration::ZERO);
    }

    fn seen(&mut self, data: &SeccompData, read: &Read<'_>) -> EnteredCall {
        let meant = multiplexed::inner(data, read).unwrap_or(*data);
        let args = self.decoder.entered(&meant, read);
        let later = args.iter().position(|arg| arg.shown.is_later());
        EnteredCall {
            time: SystemTime::now(),
            data: *data,
            meant,
            name: self.decoder.name(&meant),
            known: later.unwrap_or(args.len()),
            args,
            is_denied: false,
            note: None,
        }
    }

    /// A task has left its call.
    pub fn left(&mut self, task: i32, outcome: Outcome, read: Option<&Read<'_>>) {
        let now = self.began.elapsed();
        self.left_at(task, outcome, read, now);
    }

    /// The same, at a time of the caller's clock.
    pub fn left_at(&mut self, task: i32, outcome: Outcome, read: Option<&Read<'_>>, at: Duration) {
        let Some((mut seen, began)) = self.pending.remove(&task) else {
            return;
        };
        let took = match outcome {
            Outcome::Never => Duration::ZERO,
            _ => at.saturating_sub(began),
        };
        let (result, read) = match outcome {
            Outcome::Returned(result) => (result, read),
            Outcome::Interrupted(_) | Outcome::Never => (0, None),
        };
        let data = seen.meant;
        self.decoder.returned(&data, &mut seen.args, result, read);
        seen.note = self.decoder.after_result(&data, result, read);
        self.sink.left(task, &seen, outcome, took);
    }

    /// A thread has executed a program and taken the number of its process.
    pub fn renumbered(&mut self, task: i32, former: i32) {
        self.left(task, Outcome::Never, None);
        if let Some(call) = self.pending.remove(&former) {
            self.pending.insert(task, call);
        }
        self.sink.superseded(task, former);
    }

    /// A task has been created.
    pub fn created(&mut self, task: i32) {
        self.sink.created(task);
    }

    /// A task is about to get a signal.
    pub fn signalled(&mut self, task: i32, signal: &SignalInfo) {
        self.sink.signalled(task, signal);
    }

    /// A task has ended, perhaps in a call.
    pub fn ended(&mut self, task: i32, how: Ended) {
        self.left(task, Outcome::Never, None);
        self.sink.ended(task, how);
    }
}
