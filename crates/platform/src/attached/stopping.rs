//! Stopping the tasks of a guest, and their first stops.
//!
//! While memory is changed, all threads that share it are stopped, invisibly to them: a call that the stop has ended is
//! restarted. The reports of creators show which tasks share memory; a new task's own first report may overtake its
//! creator's.

use std::collections::BTreeSet;
use std::fs;

use tamis_kernel::memory;
use tamis_kernel::tracee::{Event, Request, Stop, Stopped, TraceError, Tracee};
use tamis_kernel::{Errno, Status};

use super::tracer::Tracer;
use super::vfork::Wait;
use crate::patched::inject;
use crate::patched::stopper::{SharingTasks, TaskStopper, unless_ended};

impl Tracer<'_> {
    /// Returns a stopped task if it may go on. The first stop of a task that its creator hasn't reported yet is held
    /// back if calls are patched or counted, since the task's memory isn't known before.
    pub(super) fn known(&mut self, stopped: Stopped) -> Option<Stopped> {
        let tid = stopped.tracee().tid();
        if self.tasks.contains_key(&tid) {
            return Some(stopped);
        }
        if self.patching.is_some() || self.counting.is_some() {
            let reported = BTreeSet::new();
            self.held_back.push(FirstStop { stopped, reported });
            return None;
        }
        self.on_new(tid, creator(tid), None);
        Some(stopped)
    }

    /// Whether the first stop of a task waits for its creator's report.
    pub(super) fn is_held_back(&self, tid: i32) -> bool {
        self.held_back.iter().any(|held| held.tid() == tid)
    }

    /// Releases the first stop of a task whose creator has reported it.
    pub(super) fn take_up(&mut self, tid: i32) {
        for held in self.held_back.extract_if(.., |held| held.tid() == tid) {
            self.queue.push_back(held.report());
        }
    }

    /// The next deferred report.
    pub(super) fn next_queued(&mut self) -> Option<(Tracee, Event)> {
        let is_idle = self.queue.is_empty() && !self.held_back.is_empty();
        if is_idle && !self.is_ending && !self.child.has_event() {
            self.let_go();
        }
        self.queue.pop_front()
    }

    /// Notes that a task has reported. So it isn't creating any task that is held back: it would have reported that
    /// before.
    pub(super) fn has_reported(&mut self, tid: i32) {
        for held in &mut self.held_back {
            held.reported.insert(tid);
        }
    }

    /// Handles held-back tasks when there is no report, not even by their creators. A task that no other task may be
    /// creating is released without a known memory. Tasks that may be creating it are interrupted: their next report
    /// decides, and comes even if they only compute.
    fn let_go(&mut self) {
        for held in std::mem::take(&mut self.held_back) {
            let tid = held.tid();
            let is_creating = |one: &i32| {
                let may_be = !held.reported.contains(one)
                    && may_create(*one, self.vfork_parents.contains(*one))
                    && may_have_created(*one, tid);
                may_be && Tracee::of_this_thread(*one).interrupt().is_ok()
            };
            let creating: Vec<i32> = self.tasks.keys().copied().filter(is_creating).collect();
            // An interrupted task whose report has come meanwhile no longer runs.
            if creating.is_empty() && !self.child.has_event() {
                self.on_new(tid, creator(tid), None);
                self.queue.push_back(held.report());
            } else {
                self.interrupted.extend(creating);
                self.held_back.push(held);
            }
        }
    }

    /// The wait of a task for its child, if `tid` and all tasks with pending reports are stopped.
    fn wait(&self, parent: i32, tid: i32) -> Wait {
        let is_stopped = |child: i32| child == tid || self.queued_stop(child).is_some();
        let has_left = |child: i32| {
            let is_its = |(tracee, _): &&(Tracee, Event)| tracee.tid() == child;
            let mut reports = self.queue.iter().filter(is_its);
            reports.any(|(_, event)| match event {
                Event::Ended(_) => true,
                Event::Stopped(stopped) => stopped.stop() == Stop::Exec,
            })
        };
        self.vfork_parents.wait(parent, &is_stopped, &has_left)
    }

    /// Whether a task may wait for its child of `vfork`: it has no pending report that shows the contrary.
    fn may_wait(&self, tid: i32) -> bool {
        self.vfork_parents.contains(tid) && !self.is_queued(tid)
    }

    fn stop_all(&mut self, tids: &[i32]) -> Result<Vec<Stopped>, TraceError> {
        let mut stopped = Vec::new();
        for tid in tids {
            stopped.extend(unless_ended(self.stop(*tid))?);
        }
        Ok(stopped)
    }

    /// Stops a task, and defers its report.
    fn stop(&mut self, tid: i32) -> Result<Option<Stopped>, TraceError> {
        if !self.is_queued(tid) {
            let tracee = Tracee::of_this_thread(tid);
            tracee.interrupt()?;
            self.interrupted.insert(tid);
            let stop = self.next_stop(tid)?;
            self.queue.push_back((tracee, Event::Stopped(stop)));
        }
        Ok(self.queued_stop(tid))
    }

    /// Restarts the call of a task that was stopped in it without a signal. The task may have stopped for another
    /// reason first and for the interruption later, when it is no longer in that call.
    ///
    /// # Errors
    /// As [`Stopped::registers`].
    pub(super) fn make_again(&mut self, stopped: &Stopped) -> Result<(), TraceError> {
        let tid = stopped.tracee().tid();
        if stopped.stop() == Stop::Interrupted
            && self.interrupted.remove(&tid)
            && let Some(call) = inject::make_again(stopped)?
        {
            self.repeated.insert(tid, call);
        }
        Ok(())
    }

    fn is_queued(&self, tid: i32) -> bool {
        self.queue.iter().any(|(tracee, _)| tracee.tid() == tid)
    }

    fn queued_stop(&self, tid: i32) -> Option<Stopped> {
        self.queue.iter().find_map(|(tracee, event)| match event {
            Event::Stopped(stopped) if tracee.tid() == tid => Some(stopped.clone()),
            _ => None,
        })
    }
}

impl TaskStopper for Tracer<'_> {
    fn next_stop(&mut self, tid: i32) -> Result<Stopped, TraceError> {
        loop {
            let (tracee, event) = self.child.next_event()?;
            match event {
                Event::Stopped(stopped) if tracee.tid() == tid => return Ok(stopped),
                event => {
                    let has_ended = tracee.tid() == tid;
                    self.queue.push_back((tracee, event));
                    if has_ended {
                        return Err(TraceError {
                            request: Request::Wait,
                            errno: Errno(libc::ESRCH),
                        });
                    }
                }
            }
        }
    }

    fn stop_others(&mut self, tid: i32) -> Result<Option<Vec<Stopped>>, TraceError> {
        let is_thread = |other: i32| {
            let exists = fs::exists(format!("/proc/{tid}/task/{other}"));
            exists.unwrap_or(false)
        };
        let all = self.tasks.keys().copied().filter(|other| *other != tid);
        let (threads, others): (Vec<i32>, Vec<i32>) = all.partition(|other| is_thread(*other));
        let shares = |other: &i32| memory::is_shared(tid, *other) == Ok(true);
        let is_waiting = |other: &i32| self.vfork_parents.contains(*other) || is_blocked(*other);
        if others.iter().any(shares) || threads.iter().any(is_waiting) {
            return Ok(None);
        }
        let stopped = self.stop_these(&threads)?;
        Ok((!stopped.iter().any(creates)).then_some(stopped))
    }

    fn stop_sharing(&mut self, tid: i32) -> Result<SharingTasks, TraceError> {
        let shares = |other: &i32| *other != tid && memory::is_shared(tid, *other) == Ok(true);
        let all = self.tasks.keys().copied().filter(shares);
        let (mut waiting, others): (Vec<i32>, Vec<i32>) = all.partition(|one| self.may_wait(*one));
        let (blocked, running): (Vec<i32>, Vec<i32>) =
            others.into_iter().partition(|one| is_blocked(*one));
        let mut stopped = self.stop_these(&running)?;
        // A task whose wait for its child is over may itself be the child of another.
        loop {
            let is_over = |one: &i32| self.wait(*one, tid) == Wait::Over;
            let (over, rest): (Vec<i32>, Vec<i32>) = waiting.into_iter().partition(is_over);
            waiting = rest;
            if over.is_empty() {
                break;
            }
            stopped.extend(self.stop_all(&over)?);
        }
        let lasts = |one: &i32| self.wait(*one, tid) == Wait::Lasts;
        let are_all = blocked.is_empty() && waiting.iter().all(lasts);
        Ok(SharingTasks {
            are_all: are_all && !stopped.iter().any(creates),
            stopped,
        })
    }

    fn stop_these(&mut self, tids: &[i32]) -> Result<Vec<Stopped>, TraceError> {
        let can_stop = |one: &i32| !self.may_wait(*one);
        let tids: Vec<i32> = tids.iter().copied().filter(can_stop).collect();
        self.stop_all(&tids)
    }

    fn run_on(&mut self, stopped: &Stopped) -> Result<(), TraceError> {
        let tid = stopped.tracee().tid();
        // If it has been killed meanwhile, its end is still to be handled.
        let is_stop = |event: &Event| matches!(event, Event::Stopped(_));
        self.queue
            .retain(|(tracee, event)| tracee.tid() != tid || !is_stop(event));
        self.make_again(stopped)?;
        stopped.clone().resume(self.resume_of(tid), None)
    }
}

/// The first stop of a task that its creator hasn't reported yet.
#[derive(Debug)]
pub(super) struct FirstStop {
    stopped: Stopped,
    /// Tasks that have reported another event since.
    reported: BTreeSet<i32>,
}

impl FirstStop {
    pub(super) fn tid(&self) -> i32 {
        self.stopped.tracee().tid()
    }

    fn report(self) -> (Tracee, Event) {
        (self.stopped.tracee(), Event::Stopped(self.stopped))
    }
}

/// Whether a task has stopped because it creates another.
fn creates(stopped: &Stopped) -> bool {
    matches!(stopped.stop(), Stop::Fork | Stop::Vfork | Stop::Clone)
}

/// The process of a task, and that process's parent.
fn family(tid: i32) -> Option<(i32, i32)> {
    let task = Status::read(tid)?;
    let number = |name| i32::try_from(task.number(name)?).ok();
    Some((number("Tgid")?, number("PPid")?))
}

/// The creator of a task as far as `/proc` shows: its process, or that process's parent.
fn creator(tid: i32) -> Option<i32> {
    let (process, parent) = family(tid)?;
    Some(if process == tid { parent } else { process })
}

/// Whether a task may have created another: a thread of its process, or a process whose parent is the task's own
/// process or, by `CLONE_PARENT`, that process's parent.
fn may_have_created(tid: i32, new: i32) -> bool {
    let (Some((own, parent)), Some((process, new_parent))) = (family(tid), family(new)) else {
        return false;
    };
    match process == new {
        true => [own, parent].contains(&new_parent),
        false => own == process,
    }
}

/// Whether a task may be in a call that creates another. `/proc` doesn't show the call of a running task. A task that
/// waits for its child is in such a call, but has created that child already.
fn may_create(tid: i32, waits: bool) -> bool {
    /// `clone`, `fork`, `vfork` and `clone3` on x86-64, and in the 32-bit interface.
    const CALLS: [u32; 7] = [56, 57, 58, 435, 120, 2, 190];
    const X32: u32 = 0x4000_0000;
    let call = fs::read_to_string(format!("/proc/{tid}/syscall")).unwrap_or_default();
    let first = call.split_ascii_whitespace().next();
    first.is_some_and(|first| {
        let nr = first.parse::<u32>().map(|nr| nr & !X32);
        first == "running" || !waits && nr.is_ok_and(|nr| CALLS.contains(&nr))
    })
}

/// Whether a task waits without reaction to signals, such as for its child of `vfork`.
fn is_blocked(tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('D'))
}

#[cfg(test)]
mod tests {
    use std::io::{self, PipeReader, PipeWriter, Read};
    use std::os::fd::AsRawFd;

    use super::may_have_created;

    /// Processes that end once all writers of a pipe are closed: a child, a sibling that it makes by `CLONE_PARENT`,
    /// and its own child.
    struct Family {
        child: i32,
        sibling: i32,
        grandchild: i32,
        until: Option<PipeWriter>,
    }

    impl Family {
        fn new() -> io::Result<Family> {
            let ((end, until), (mut told, tell)) = (io::pipe()?, io::pipe()?);
            let child = process(0, &end, &until, || {
                let numbers = [
                    process(libc::CLONE_PARENT, &end, &until, || {}),
                    process(0, &end, &until, || {}),
                ];
                #[expect(unsafe_code, reason = "what a signal handler may do")]
                // SAFETY: so many bytes can be read there.
                unsafe {
                    let len_bytes = size_of_val(&numbers);
                    libc::write(tell.as_raw_fd(), numbers.as_ptr().cast(), len_bytes);
                }
            });
            let mut numbers = [[0; 4]; 2];
            told.read_exact(numbers.as_flattened_mut())?;
            let [sibling, grandchild] = numbers.map(i32::from_ne_bytes);
            Ok(Family {
                child,
                sibling,
                grandchild,
                until: Some(until),
            })
        }
    }

    impl Drop for Family {
        fn drop(&mut self) {
            self.until = None;
            for pid in [self.child, self.sibling] {
                #[expect(unsafe_code, reason = "no safe function waits for what none has made")]
                // SAFETY: takes no address. Both are children of this process, which no other code waits for.
                unsafe {
                    libc::waitpid(pid, std::ptr::null_mut(), 0)
                };
            }
        }
    }

    /// Makes a process that runs `run` and waits.
    fn process(flags: i32, end: &PipeReader, until: &PipeWriter, run: impl Fn()) -> i32 {
        let flags = i64::from(flags | libc::SIGCHLD);
        #[expect(unsafe_code, reason = "no safe function makes a sibling")]
        // SAFETY: as `fork`; the new process does what a signal handler may do, on its copy of the stack.
        unsafe {
            let pid = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
            if pid == 0 {
                run();
                let mut byte = 0_u8;
                libc::close(until.as_raw_fd());
                libc::read(end.as_raw_fd(), (&raw mut byte).cast(), 1);
                libc::_exit(0);
            }
            pid as i32
        }
    }

    #[test]
    fn who_may_have_created_a_process_is_its_parent_or_by_clone_parent_its_sibling() {
        let family = Family::new().expect("the processes");
        let own = std::process::id().cast_signed();
        assert!(may_have_created(own, family.child));
        assert!(may_have_created(family.child, family.grandchild));
        assert!(may_have_created(family.child, family.sibling));
        assert!(may_have_created(own, family.sibling), "as far as is known");
        assert!(!may_have_created(family.sibling, family.grandchild));
        assert!(!may_have_created(own, family.grandchild));
        assert!(!may_have_created(family.grandchild, family.child));
    }
}
