//! The threads in the signal handler, and the waits of other threads for them.
//!
//! In the handler a thread has the host's FS base, so no handler of the guest may run there, and it makes calls that a
//! filter of the guest's own may deny. So a thread that gives the guest a handler waits until all threads in ours block
//! signals, and a thread that installs a filter for all threads waits until none is in ours.
//!
//! Several threads may install filters at once, and the second installation would no longer raise the signal. So calls
//! raise it until the first of these threads has waited. Threads that enter the handler meanwhile make no calls of ours
//! and wait for that. Then all calls are made as without a handler, including those that install the filters.
//!
//! A thread is counted only while no handler of the guest can run in it, so it can't leave uncounted, as by `longjmp`:
//! it is counted out before the guest's calls, and before its signal mask is restored, which is the last of our calls.
//! During that call the thread has a flag, which it clears at its next signal if it never comes back. Threads that
//! sleep until the supervisor answers are woken. A thread that waits for a handler is not waited for, since it blocks
//! signals; nor is a thread that waits for the first of those that install filters, since it has been counted out.

use std::arch::asm;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::text::{tamis_platform_guest_blocking_handler, tamis_platform_guest_call};
use super::{CALLS, HOST_FS, LET_PASS, SELECTOR, handler};
use crate::in_process::calls::{Calls, Thread};
use crate::sys::separate;

/// The number of counted threads, and above it the number of those that don't block signals.
static COUNTS: AtomicU64 = AtomicU64::new(0);
const ONE: u64 = 1;
const OPEN: u64 = 1 << 32;

/// Whether the handler blocks all signals, since the guest has handlers. Without it there is no mask to restore, which
/// saves a call.
static BLOCKS: AtomicBool = AtomicBool::new(false);

/// Whether a filter for all threads is about to be installed, or has been: no thread that enters the handler makes
/// calls of ours.
pub(super) static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// The number of new threads that are about to have dispatch.
pub(super) static STARTING: AtomicU32 = AtomicU32::new(0);

/// The flag for threads that need none.
pub(super) static NOBODY: AtomicU32 = AtomicU32::new(0);

/// All signals except ours.
static BLOCKED: u64 = !(1 << (libc::SIGSYS - 1));

/// The handling of calls.
pub(super) fn calls() -> &'static Calls<'static> {
    // SAFETY: set before calls could raise the signal, to data that outlives the guest: the frames of `run` are never
    // left here.
    unsafe { &*CALLS.load(Ordering::Relaxed) }
}

/// The FS base of this thread.
pub(super) fn fs_base() -> u64 {
    let fs_base: u64;
    // SAFETY: reads a register; the platform has checked for the instruction.
    unsafe { asm!("rdfsbase {}", out(reg) fs_base, options(nomem, nostack, preserves_flags)) };
    fs_base
}

fn set_fs_base(fs_base: u64) {
    // SAFETY: until the base is the host's again only this module's code runs here, which has no thread-locals.
    unsafe { asm!("wrfsbase {}", in(reg) fs_base, options(nostack, preserves_flags)) };
}

/// Switches a thread to the host's FS base, unless there is a filter for all threads: then it makes no calls of ours.
pub(super) fn enter(thread: &mut Thread) {
    let host = HOST_FS.load(Ordering::Relaxed);
    if thread.blocks {
        set_fs_base(host);
        COUNTS.fetch_add(ONE, Ordering::SeqCst);
    } else {
        // Handlers that already run have the FS base that they expect.
        COUNTS.fetch_add(ONE | OPEN, Ordering::SeqCst);
    }
    thread.is_inside = true;
    if is_stopped_everywhere() {
        leave(thread);
        return;
    }
    block_if_others_do(thread);
    set_fs_base(host);
}

/// Switches a thread to the guest's FS base.
pub(super) fn leave(thread: &mut Thread) {
    if !thread.is_inside {
        return;
    }
    thread.is_inside = false;
    if thread.blocks {
        COUNTS.fetch_sub(ONE, Ordering::SeqCst);
        set_fs_base(thread.fs_base);
    } else {
        set_fs_base(thread.fs_base);
        COUNTS.fetch_sub(ONE | OPEN, Ordering::SeqCst);
    }
}

/// The owner of a call that the handler makes, which filters identify by the call's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Owner {
    Ours = 0,
    Guests = 1,
}

/// Makes a call of ours from the handler.
pub(crate) fn make(nr: u32, args: [u64; 6]) -> i64 {
    call(Owner::Ours, nr, args)
}

/// Makes a call while handlers of the guest may run.
pub(crate) fn make_outside(thread: &mut Thread, whose: Owner, nr: u32, args: [u64; 6]) -> i64 {
    leave(thread);
    let result = call(whose, nr, args);
    enter(thread);
    result
}

fn call(whose: Owner, nr: u32, args: [u64; 6]) -> i64 {
    // SAFETY: the guest may do to its own process whatever the call may do.
    unsafe { tamis_platform_guest_call(u64::from(nr), args.as_ptr(), whose as u64) }
}

/// Sleeps until a word that has this value changes, or longer if calls of ours are no longer permitted.
pub(crate) fn sleep(thread: &mut Thread, word: &AtomicU32, value: u32) {
    let wait = [
        word.as_ptr().addr() as u64,
        libc::FUTEX_WAIT as u64,
        u64::from(value),
        0,
        0,
        0,
    ];
    block_if_others_do(thread);
    if !is_stopped_everywhere() {
        make(libc::SYS_futex as u32, wait);
    }
    if is_stopped_everywhere() {
        leave(thread);
        while word.load(Ordering::Acquire) == value {
            hint::spin_loop();
        }
    }
    block_if_others_do(thread);
}

/// Blocks all signals in this thread; its mask is restored when the handler returns.
fn block_signals(thread: &mut Thread) {
    let set = (&raw const BLOCKED).addr() as u64;
    let args = [libc::SIG_SETMASK as u64, set, 0, 8, 0, 0];
    make(libc::SYS_rt_sigprocmask as u32, args);
    COUNTS.fetch_sub(OPEN, Ordering::SeqCst);
    thread.blocks = true;
}

fn block_if_others_do(thread: &mut Thread) {
    if BLOCKS.load(Ordering::SeqCst) {
        block_until_last_call(thread);
    }
}

/// Makes a thread in the handler block all signals until its last call: a signal before that would clear its flag.
pub(super) fn block_until_last_call(thread: &mut Thread) {
    if thread.is_inside && !thread.blocks {
        block_signals(thread);
    }
}

/// Makes our handler block all signals from now on, since the guest is about to have a handler. Waits for threads in
/// our handler that don't.
pub(crate) fn block_in_handler(thread: &mut Thread) {
    if !BLOCKS.swap(true, Ordering::SeqCst) {
        let blocking = tamis_platform_guest_blocking_handler as *const () as u64;
        let own = handler(blocking, BLOCKED);
        let own = (&raw const own).addr() as u64;
        let args = [libc::SIGSYS as u64, own, 0, 8, 0, 0];
        make(libc::SYS_rt_sigaction as u32, args);
    }
    block_if_others_do(thread);
    while COUNTS.load(Ordering::SeqCst) >= OPEN {
        wake_others();
    }
}

/// Wakes the sleeping threads, and yields.
fn wake_others() {
    hint::spin_loop();
    // In other guests no thread sleeps, and the guest's filter decides about such calls.
    if calls().is_there() {
        separate::wake_all();
        make(libc::SYS_sched_yield as u32, [0; 6]);
    }
}

/// Makes calls of all threads bypass the handler from now on, and counts this thread out. The first thread waits until
/// no other makes calls of ours.
pub(crate) fn stop_everywhere(thread: &mut Thread) {
    if !IS_STOPPED.swap(true, Ordering::SeqCst) {
        await_others(thread);
        leave(thread);
        SELECTOR.store(LET_PASS, Ordering::SeqCst);
    }
    await_stop(thread);
}

/// Waits until calls bypass the handler, if that is about to begin; then this thread makes no calls of ours any more.
pub(super) fn await_stop(thread: &mut Thread) {
    if is_stopped_everywhere() {
        leave(thread);
        while SELECTOR.load(Ordering::SeqCst) != LET_PASS {
            hint::spin_loop();
        }
    }
}

pub(super) fn is_stopped_everywhere() -> bool {
    IS_STOPPED.load(Ordering::SeqCst)
}

/// Waits until no thread but this one makes calls of ours.
fn await_others(thread: &mut Thread) {
    /// Some seconds. A thread that is about to return takes microseconds of running time; on a busy machine it may wait
    /// longer for a CPU. A thread that takes still longer runs a handler of the guest.
    const ROUNDS: u32 = 1 << 22;
    const ROUNDS_PER_YIELD: u32 = 1 << 10;
    let is_alone = |thread: &Thread| {
        let own = if thread.blocks { ONE } else { ONE | OPEN };
        COUNTS.load(Ordering::SeqCst) == own
    };
    while !is_alone(thread) {
        wake_others();
        // Another thread may wait for that.
        block_if_others_do(thread);
    }
    for round in 1..=ROUNDS {
        if STARTING.load(Ordering::SeqCst) == 0 && !separate::is_any_leaving() {
            return;
        }
        if round.is_multiple_of(ROUNDS_PER_YIELD) {
            make(libc::SYS_sched_yield as u32, [0; 6]);
        }
        hint::spin_loop();
    }
}
