//! A command under a platform that reports its calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tamis_abi::SeccompData;
use tamis_kernel::Ended;
use tamis_kernel::tracee::SignalInfo;
use tamis_platform::{Answer, Space, Supervisor, Task, TaskId};

use super::decode::Decoder;
use super::follow::{CallTracker, Outcome, Sink};

/// The supervisor of a [watched](tamis_platform::watching) command: it forwards and reports every call.
pub struct CallWatcher<S> {
    state: Mutex<State<S>>,
    first_has_ended: AtomicBool,
}

struct State<S> {
    following: CallTracker<S>,
    first: Option<i32>,
}

impl<S: Sink> CallWatcher<S> {
    /// Reports to this sink.
    pub fn new(decoder: Decoder, sink: S) -> CallWatcher<S> {
        let state = State {
            following: CallTracker::new(decoder, sink),
            first: None,
        };
        CallWatcher {
            state: Mutex::new(state),
            first_has_ended: AtomicBool::new(false),
        }
    }

    /// Whether the first process has ended, even if others live.
    pub fn first_has_ended(&self) -> bool {
        self.first_has_ended.load(Ordering::Acquire)
    }

    /// Calls `work` with the sink.
    pub fn with_sink<R>(&self, work: impl FnOnce(&mut S) -> R) -> R {
        work(self.state().following.sink())
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader of memory; reads no bytes from unmapped memory.
fn reader(space: &dyn Space) -> impl Fn(u64, &mut [u8]) -> usize + '_ {
    |address, buffer| space.read(address, buffer).unwrap_or(0)
}

impl<S: Sink + Send> Supervisor for CallWatcher<S> {
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
        let read = reader(task.space());
        self.state().following.entered(task.id().0, call, &read);
        Answer::Forward
    }

    fn result(&self, task: &mut dyn Task, _call: &SeccompData, result: i64) -> i64 {
        let read = reader(task.space());
        let outcome = Outcome::Returned(result);
        self.state()
            .following
            .left(task.id().0, outcome, Some(&read));
        result
    }

    fn interrupted(&self, task: TaskId, _call: &SeccompData, code: i64) {
        let outcome = Outcome::Interrupted(code);
        self.state().following.left(task.0, outcome, None);
    }

    fn signalled(&self, task: TaskId, signal: &SignalInfo) {
        self.state().following.signalled(task.0, signal);
    }

    fn started(&self, task: TaskId, _parent: Option<TaskId>) {
        let mut state = self.state();
        state.first.get_or_insert(task.0);
        state.following.created(task.0);
    }

    fn renumbered(&self, task: TaskId, former: TaskId) {
        self.state().following.renumbered(task.0, former.0);
    }

    fn ended(&self, task: TaskId, how: Ended) {
        let mut state = self.state();
        state.following.ended(task.0, how);
        if state.first == Some(task.0) {
            self.first_has_ended.store(true, Ordering::Release);
        }
    }
}
