//! Stopping the tasks of a guest, and their first stops.
//!
//! While memory is changed, all threads that have it are stopped, and none of them may notice: a call that the stop has ended is
//! made again. Who has the memory is known from the reports of creators, and a new task's own may overtake that.

use std::fs;

use tamis_kernel::Errno;
use tamis_kernel::memory;
use tamis_kernel::tracee::{Event, Request, Stop, Stopped, TraceError, Tracee};

use super::lenders::Wait;
use super::tracer::Tracer;
use crate::patched::inject;

impl Tracer<'_> {
    /// A stopped task, if it may go on: the first stop of one whose creator hasn't reported it waits for that, where it matters whose
    /// memory it has.
    pub(super) fn known(&mut self, stopped: Stopped) -> Option<Stopped> {
        let tid = stopped.tracee().tid();
        if self.tasks.contains_key(&tid) {
            return Some(stopped);
        }
        if self.patching.is_some() || self.counting.is_some() {
            self.held_back.push(stopped);
            return None;
        }
        self.on_new(tid, creator(tid), None);
        Some(stopped)
    }

    /// Whether the first stop of a task waits for its creator's report.
    pub(super) fn is_held_back(&self, tid: i32) -> bool {
        let mut held_back = self.held_back.iter();
        held_back.any(|held| held.tracee().tid() == tid)
    }

    /// A task that was created may go on.
    pub(super) fn take_up(&mut self, tid: i32) {
        let is_it = |held: &mut Stopped| held.tracee().tid() == tid;
        for held in self.held_back.extract_if(.., is_it) {
            self.queue.push_back((held.tracee(), Event::Stopped(held)));
        }
    }

    /// A task has ended or has executed a program, and may have been the creator of one that was held back, which it doesn't report any
    /// more: then nobody knows whose memory that has.
    pub(super) fn let_go(&mut self) {
        for held in std::mem::take(&mut self.held_back) {
            let tid = held.tracee().tid();
            let creator = creator(tid);
            let is_there = |process: &i32| self.tasks.contains_key(process) && may_create(*process);
            if !self.is_ending && creator.as_ref().is_some_and(is_there) {
                self.held_back.push(held);
                continue;
            }
            self.on_new(tid, creator, None);
            self.queue.push_back((held.tracee(), Event::Stopped(held)));
        }
    }

    /// The next stop of a task; reports of others are left for later.
    ///
    /// # Errors
    /// `ESRCH` if it has ended.
    pub(crate) fn next_stop(&mut self, tid: i32) -> Result<Stopped, TraceError> {
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

    /// Stops all other tasks with the memory of this one, which is stopped; they go on when their reports are handled.
    /// `None` if one can't be stopped at once, is creating another, or belongs to another process: one of both may wait
    /// for the other, as after `vfork`, and not stop before.
    ///
    /// # Errors
    /// As [`Tracee::interrupt`], but for tasks that have ended.
    pub(crate) fn stop_others(&mut self, tid: i32) -> Result<Option<Vec<Stopped>>, TraceError> {
        let is_thread = |other: i32| {
            let exists = fs::exists(format!("/proc/{tid}/task/{other}"));
            exists.unwrap_or(false)
        };
        let all = self.tasks.keys().copied().filter(|other| *other != tid);
        let (threads, others): (Vec<i32>, Vec<i32>) = all.partition(|other| is_thread(*other));
        let shares = |other: &i32| memory::is_shared(tid, *other) == Ok(true);
        let is_waiting = |other: &i32| self.lenders.contains(*other) || is_blocked(*other);
        if others.iter().any(shares) || threads.iter().any(is_waiting) {
            return Ok(None);
        }
        let stopped = self.stop_these(&threads)?;
        Ok((!stopped.iter().any(creates)).then_some(stopped))
    }

    /// Stops all other tasks with the memory of this one, which is stopped, those of other processes, too; they go on when their
    /// reports are handled. None is stopped that waits for its child of `vfork`: while that is stopped it doesn't run.
    ///
    /// # Errors
    /// As [`Tracee::interrupt`], but for tasks that have ended.
    pub(crate) fn stop_sharing(&mut self, tid: i32) -> Result<Sharing, TraceError> {
        let shares = |other: &i32| *other != tid && memory::is_shared(tid, *other) == Ok(true);
        let all = self.tasks.keys().copied().filter(shares);
        let (mut waiting, others): (Vec<i32>, Vec<i32>) = all.partition(|one| self.may_wait(*one));
        let (blocked, running): (Vec<i32>, Vec<i32>) =
            others.into_iter().partition(|one| is_blocked(*one));
        let mut stopped = self.stop_these(&running)?;
        // One that has its memory back may be the child of another.
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
        Ok(Sharing {
            are_all: are_all && !stopped.iter().any(creates),
            stopped,
        })
    }

    /// Whether a task waits for its child, where this one is stopped, and all whose reports are still to be handled.
    fn wait(&self, lender: i32, tid: i32) -> Wait {
        let is_stopped = |child: i32| child == tid || self.queued_stop(child).is_some();
        let has_left = |child: i32| {
            let is_its = |(tracee, _): &&(Tracee, Event)| tracee.tid() == child;
            let mut reports = self.queue.iter().filter(is_its);
            reports.any(|(_, event)| match event {
                Event::Ended(_) => true,
                Event::Stopped(stopped) => stopped.stop() == Stop::Exec,
            })
        };
        self.lenders.wait(lender, &is_stopped, &has_left)
    }

    /// Stops these tasks in the same way, but for those that have ended and those that may wait for a child of `vfork`.
    ///
    /// # Errors
    /// As [`Tracee::interrupt`].
    pub(crate) fn stop_these(&mut self, tids: &[i32]) -> Result<Vec<Stopped>, TraceError> {
        let can_stop = |one: &i32| !self.may_wait(*one);
        let tids: Vec<i32> = tids.iter().copied().filter(can_stop).collect();
        self.stop_all(&tids)
    }

    /// Whether a task may wait for its child of `vfork`: no report of its own says otherwise.
    fn may_wait(&self, tid: i32) -> bool {
        self.lenders.contains(tid) && !self.is_queued(tid)
    }

    fn stop_all(&mut self, tids: &[i32]) -> Result<Vec<Stopped>, TraceError> {
        let mut stopped = Vec::new();
        for tid in tids {
            stopped.extend(unless_ended(self.stop(*tid))?);
        }
        Ok(stopped)
    }

    /// Stops a task, and leaves its report for later.
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

    /// Has a task that was stopped with others run on.
    ///
    /// # Errors
    /// As [`Stopped::resume`].
    pub(crate) fn run_on(&mut self, stopped: &Stopped) -> Result<(), TraceError> {
        let tid = stopped.tracee().tid();
        // Its end, if it has been killed meanwhile, is still to be handled.
        let is_stop = |event: &Event| matches!(event, Event::Stopped(_));
        self.queue
            .retain(|(tracee, event)| tracee.tid() != tid || !is_stop(event));
        self.make_again(stopped)?;
        stopped.clone().resume(self.resume_of(tid), None)
    }

    /// Has a task that was stopped in a call make it again, since it got no signal. It may have stopped for another reason first, and
    /// for this only later; and it may be elsewhere now.
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

/// Tasks with the memory of another.
pub(crate) struct Sharing {
    pub(crate) stopped: Vec<Stopped>,
    /// Whether all that can run are among them, and none of them is creating another, whose report comes first.
    pub(crate) are_all: bool,
}

/// What has been found out or done about a task: nothing if it has been killed meanwhile. That isn't the end of who is handled, which may be
/// another.
pub(crate) fn unless_ended<T: Default>(of_task: Result<T, TraceError>) -> Result<T, TraceError> {
    match of_task {
        Err(error) if error.errno == Errno(libc::ESRCH) => Ok(T::default()),
        of_task => of_task,
    }
}

/// Whether a task has stopped because it creates another.
fn creates(stopped: &Stopped) -> bool {
    matches!(stopped.stop(), Stop::Fork | Stop::Vfork | Stop::Clone)
}

/// The task that has created one: its process, or that process's parent.
fn creator(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let field = |name: &str| -> Option<i32> {
        let lines = status.lines();
        let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        values.next()?.trim().parse().ok()
    };
    let process = field("Tgid")?;
    match process == tid {
        true => field("PPid"),
        false => Some(process),
    }
}

/// Whether a thread of a process may be in a call that creates a task: of threads that run, the kernel doesn't tell.
fn may_create(process: i32) -> bool {
    /// `clone`, `fork`, `vfork` and `clone3` on x86-64, and in the 32-bit interface.
    const CALLS: [u32; 7] = [56, 57, 58, 435, 120, 2, 190];
    const X32: u32 = 0x4000_0000;
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.any(|thread| {
        let call = fs::read_to_string(thread.path().join("syscall")).unwrap_or_default();
        let first = call.split_ascii_whitespace().next();
        first.is_some_and(|first| {
            let nr = first.parse::<u32>().map(|nr| nr & !X32);
            first == "running" || nr.is_ok_and(|nr| CALLS.contains(&nr))
        })
    })
}

/// Whether a task waits for something that signals don't end: such as its child of `vfork`.
fn is_blocked(tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('D'))
}
