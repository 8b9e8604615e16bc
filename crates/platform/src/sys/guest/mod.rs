//! A forked child that becomes a guest, and the signal handler that catches its calls.
//!
//! Between the fork and the guest's first instruction the child only does what `signal-safety(7)` allows: other threads
//! of the parent may hold any lock. The handler runs on the guest's stack or signal stack, with the FS base of the
//! thread that forked: all threads of the guest share the supervisor's thread-locals of that thread.

mod handler;
mod inside;
mod memory;
mod text;

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, Ordering};

use tamis_kernel::install::{set_filter, set_no_new_privs};
use tamis_kernel::spawn::SpawnError;
use tamis_kernel::{Ended, Errno, Flags, affinity, poll};

use crate::error::{PlatformError, Unsupported};
use crate::in_process::calls::Calls;
use crate::in_process::filter;
use crate::in_process::{ChildSettings, Program, Signals};
use crate::sys::load::load;
use crate::sys::separate;
pub(crate) use inside::{Owner, block_in_handler, make, make_outside, sleep, stop_everywhere};
pub(crate) use memory::{read, write};
use text::{
    tamis_platform_guest_armed, tamis_platform_guest_call, tamis_platform_guest_called,
    tamis_platform_guest_enter, tamis_platform_guest_forwarded, tamis_platform_guest_handler,
    tamis_platform_guest_leave, tamis_platform_guest_restorer, tamis_platform_guest_returned,
};

const PAGE: u64 = 4096;

/// The most restarts of an interrupted call: more than signals come in a row before a call is received.
const REPEATS: i32 = 1024;
const SET_SYSCALL_USER_DISPATCH: i32 = 59;

/// The FS base of the thread that forked. This and the following are set in the child alone.
static HOST_FS: AtomicU64 = AtomicU64::new(0);
/// The handling of calls.
static CALLS: AtomicPtr<Calls<'static>> = AtomicPtr::new(ptr::null_mut());
/// The report to the parent.
static REPORT: AtomicPtr<Report> = AtomicPtr::new(ptr::null_mut());
/// The guest's first process.
static PID: AtomicI32 = AtomicI32::new(0);

/// Whether the kernel raises the signal for calls of threads with dispatch; the kernel reads it at each call.
pub(super) static SELECTOR: AtomicU8 = AtomicU8::new(BLOCK);
/// The values of the selector: calls are made, or raise the signal.
const LET_PASS: u8 = 0;
const BLOCK: u8 = 1;

/// Whether calls of more than the first thread raise the signal.
static HAS_THREADS: AtomicBool = AtomicBool::new(false);
/// The guest's own action for the signal, as words of [`Action`].
static OWN_ACTION: [AtomicU64; ACTION_WORDS] = [const { AtomicU64::new(0) }; ACTION_WORDS];
/// The words of [`Action`]: handler, flags, restorer, mask.
pub(crate) const ACTION_WORDS: usize = 4;

/// Sets the guest's own action for the signal, if a new one is given; returns the former.
pub(crate) fn own_action(new: Option<[u64; ACTION_WORDS]>) -> [u64; ACTION_WORDS] {
    let mut words = OWN_ACTION
        .each_ref()
        .map(|word| word.load(Ordering::Relaxed));
    if let Some(new) = new {
        for (place, (word, new)) in OWN_ACTION.iter().zip(words.iter_mut().zip(new)) {
            *word = place.swap(new, Ordering::Relaxed);
        }
    }
    words
}

/// The child's report if it fails: the step and the kernel's error.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Report {
    step: AtomicI32,
    pub(crate) errno: AtomicI32,
}

/// The steps of the child.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Step {
    Load = 1,
    Placement,
    Filter,
    Answer,
    Dispatch,
}

/// Runs a program as a guest, on this CPU, killed once `until` is readable.
pub(crate) fn run(
    program: &Program,
    how: &ChildSettings<'_>,
    calls: &Calls<'_>,
    until: Option<BorrowedFd<'_>>,
) -> Result<Ended, PlatformError> {
    let failed = |request| move |errno| PlatformError::Request { request, errno };
    let report = SharedReport::new().map_err(failed("mmap"))?;
    let kept = inherited();
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are writable. No handler of this process is to run in the child.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    // SAFETY: takes nothing.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child runs `become_guest` alone, which is async-signal-safe except for the memory that copying the
    // filter takes: the C library's fork leaves its allocator in order.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: filled above.
        let mask = unsafe { before.assume_init_ref() };
        die_with(parent);
        REPORT.store(report.0, Ordering::Relaxed);
        let failure = become_guest(program, how, calls, &kept, mask);
        report.get().errno.store(failure.1.0, Ordering::Release);
        report.get().step.store(failure.0 as i32, Ordering::Release);
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(127) };
    }
    let forked = Errno::last();
    // SAFETY: `before` was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    if pid < 0 {
        return Err(failed("fork")(forked));
    }
    let ended = wait(pid, until)?;
    let errno = Errno(report.get().errno.load(Ordering::Acquire));
    match report.get().step.load(Ordering::Acquire) {
        0 => Ok(ended),
        step if step == Step::Load as i32 => Err(PlatformError::Spawn(SpawnError::Exec(errno))),
        step if step == Step::Placement as i32 => Err(failed("sched_setaffinity")(errno)),
        step if step == Step::Dispatch as i32 => Err(failed("prctl")(errno)),
        step if step == Step::Answer as i32 => {
            let what = Unsupported::new("answering with a descriptor");
            Err(PlatformError::Unsupported(what))
        }
        _ => Err(failed("seccomp")(errno)),
    }
}

/// Waits for the child's end; kills it when `until` is readable, or this fails.
fn wait(pid: i32, until: Option<BorrowedFd<'_>>) -> Result<Ended, PlatformError> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let mut problem = (fd < 0).then(Errno::last);
    if let (Some(until), None) = (until, problem) {
        // SAFETY: the descriptor is new.
        let end = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        match poll::readable(&[until, end.as_fd()]) {
            Ok(1) => {}
            Ok(_) => kill(pid),
            Err(errno) => problem = Some(errno),
        }
    } else if fd >= 0 {
        // SAFETY: as above; it is closed.
        drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    }
    if problem.is_some() {
        kill(pid);
    }
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one number. The child has not been waited for yet.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid {
            break;
        }
        let errno = Errno::last();
        if errno.0 != libc::EINTR {
            return Err(PlatformError::Request {
                request: "waitpid",
                errno,
            });
        }
    }
    if let Some(errno) = problem {
        let request = "poll";
        return Err(PlatformError::Request { request, errno });
    }
    Ended::of_status(status).ok_or(PlatformError::Request {
        request: "waitpid",
        errno: Errno(libc::ECHILD),
    })
}

fn kill(pid: i32) {
    // SAFETY: takes numbers only; the child has not been waited for, so the number is its.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// The descriptors of this process that a program inherits, in order.
pub(crate) fn inherited() -> Vec<RawFd> {
    /// The fallback if there is no list.
    const ALL: std::ops::Range<RawFd> = 0..1024;
    let is_inherited = |fd: &RawFd| flags(*fd).is_some_and(|flags| flags & libc::FD_CLOEXEC == 0);
    let listed = std::fs::read_dir("/proc/self/fd").map(|entries| -> Vec<RawFd> {
        let number = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.ok()?.file_name().to_str()?.parse().ok()
        };
        entries.filter_map(number).collect()
    });
    let mut all = listed.unwrap_or_else(|_| ALL.collect());
    all.retain(is_inherited);
    all.sort_unstable();
    all
}

/// The flags of a descriptor, if there is one.
fn flags(fd: RawFd) -> Option<i32> {
    let args = [fd as u64, libc::F_GETFD as u64, 0, 0, 0, 0];
    let flags = make(libc::SYS_fcntl as u32, args);
    (flags >= 0).then_some(flags as i32)
}

/// Closes all descriptors of this process except these, which are sorted, in a descriptor table of its own. Descriptors
/// may have been opened since they were listed.
pub(crate) fn close_others(kept: &[RawFd]) -> Result<(), Errno> {
    const UNSHARE: u64 = 1 << 1;
    const LAST: u64 = u32::MAX as u64;
    let close = |first: u64, last: u64, flags: u64| {
        let args = [first, last, flags, 0, 0, 0];
        match make(libc::SYS_close_range as u32, args) {
            0 => Ok(()),
            errno => Err(Errno(-errno as i32)),
        }
    };
    let mut first = 0;
    close(kept.last().map_or(0, |fd| *fd as u64 + 1), LAST, UNSHARE)?;
    for fd in kept {
        let number = *fd as u64;
        if first < number {
            close(first, number - 1, 0)?;
        }
        first = number + 1;
        if flags(*fd).is_some_and(|flags| flags & libc::FD_CLOEXEC != 0) {
            close(number, number, 0)?;
        }
    }
    Ok(())
}

/// Makes the kernel kill this process when its parent ends, even if that has happened.
fn die_with(parent: i32) {
    /// The parent of the first process of a namespace, as that process sees it.
    const OUTSIDE: i32 = 0;
    // SAFETY: numbers only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if ![parent, OUTSIDE].contains(&libc::getppid()) {
            libc::_exit(127);
        }
    }
}

/// Turns the child into the guest; returns only if that fails, with the reason.
fn become_guest(
    program: &Program,
    how: &ChildSettings<'_>,
    calls: &Calls<'_>,
    kept: &[RawFd],
    mask: &libc::sigset_t,
) -> (Step, Errno) {
    // SAFETY: takes nothing.
    let pid = unsafe { libc::getpid() };
    PID.store(pid, Ordering::Relaxed);
    CALLS.store(ptr::from_ref(calls).cast_mut().cast(), Ordering::Relaxed);
    HOST_FS.store(inside::fs_base(), Ordering::Relaxed);
    if let Some(Err(errno)) = how.cpu.map(affinity::stay_on) {
        return (Step::Placement, errno);
    }
    let (entry, stack) = match load(program, true) {
        Ok(found) => found,
        Err(errno) => return (Step::Load, errno),
    };
    if let Err(errno) = close_others(kept).and_then(|()| reset_signals(mask)) {
        return (Step::Load, errno);
    }
    let ips = [
        tamis_platform_guest_forwarded as *const () as u64,
        tamis_platform_guest_called as *const () as u64,
    ];
    let filters = filter::filters(how.filter, ips, pid);
    let Ok(filters) = filters else {
        return (Step::Filter, Errno(libc::E2BIG));
    };
    let installed = set_no_new_privs().and_then(|()| {
        let mut programs = filters.iter();
        programs.try_for_each(|one| set_filter(one.insns(), Flags::NONE).map(|_| ()))
    });
    if let Err(errno) = installed {
        return (Step::Filter, errno);
    }
    if how.signals == Signals::ByDispatch
        && let Err(errno) = dispatch()
    {
        return (Step::Dispatch, errno);
    }
    // SAFETY: the loaded program begins there, with this stack. Nothing of this function is used any more.
    unsafe { tamis_platform_guest_enter(entry, stack) }
}

/// Prepares this process for a guest whose supervisor is another process.
pub(super) fn prepare(calls: &Calls<'_>) -> Result<(), Errno> {
    // SAFETY: takes nothing.
    let pid = unsafe { libc::getpid() };
    PID.store(pid, Ordering::Relaxed);
    CALLS.store(ptr::from_ref(calls).cast_mut().cast(), Ordering::Relaxed);
    HOST_FS.store(inside::fs_base(), Ordering::Relaxed);
    install_handler()
}

/// Makes the calls of this thread raise the signal, and becomes the guest; returns only if that fails, with the reason.
pub(super) fn enter(entry: u64, stack: u64) -> Errno {
    match dispatch() {
        // SAFETY: the loaded program begins there, with this stack. Nothing of the caller is used any more.
        Ok(()) => unsafe { tamis_platform_guest_leave(entry, stack) },
        Err(errno) => errno,
    }
}

/// The return addresses of calls of the handler and of new threads, except those of the guest; and the address behind
/// the handler's return.
pub(crate) fn own_ips() -> [u64; 3] {
    [
        tamis_platform_guest_called as *const () as u64,
        tamis_platform_guest_armed as *const () as u64,
        tamis_platform_guest_returned as *const () as u64,
    ]
}

/// Makes all calls of this thread raise the signal, except those of the code above.
fn dispatch() -> Result<(), Errno> {
    const ON: u64 = 1;
    let first = tamis_platform_guest_call as *const () as u64;
    let len_bytes = tamis_platform_guest_enter as *const () as u64 - first;
    let args = [
        SET_SYSCALL_USER_DISPATCH as u64,
        ON,
        first,
        len_bytes,
        SELECTOR.as_ptr().addr() as u64,
        0,
    ];
    match make(libc::SYS_prctl as u32, args) {
        0 => Ok(()),
        errno => Err(Errno(-errno as i32)),
    }
}

/// Makes calls of this thread bypass the handler.
pub(crate) fn stop_dispatch() {
    const OFF: u64 = 0;
    let args = [SET_SYSCALL_USER_DISPATCH as u64, OFF, 0, 0, 0, 0];
    make(libc::SYS_prctl as u32, args);
    // No other thread needs our handler.
    if !HAS_THREADS.load(Ordering::Relaxed) {
        let action = own_action(None);
        let args = [libc::SIGSYS as u64, action.as_ptr() as u64, 0, 8, 0, 0];
        make(libc::SYS_rt_sigaction as u32, args);
    }
}

/// The structure of `rt_sigaction`.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

fn sigaction(signal: i32, new: Option<&Action>, old: &mut Action) -> Result<(), Errno> {
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: both structures are the kernel's; handlers are those of this module or none.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            new,
            ptr::from_mut(old),
            size_of::<u64>(),
        )
    };
    match returned {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// Leaves ignored signals ignored, as `execve` does, and removes handlers and the signal stack.
pub(super) fn remove_handlers() -> Result<(), Errno> {
    const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;
    let mut old = Action::default();
    for signal in SIGNALS {
        let is_known = sigaction(signal, None, &mut old).is_ok();
        if is_known && old.handler > libc::SIG_IGN as u64 {
            sigaction(signal, Some(&Action::default()), &mut Action::default())?;
        }
    }
    let none = libc::stack_t {
        ss_sp: ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: a valid structure; the thread is on none of its signal stacks.
    unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
    Ok(())
}

/// Installs our handler, and sets a mask that permits it.
fn reset_signals(mask: &libc::sigset_t) -> Result<(), Errno> {
    install_handler()?;
    // SAFETY: valid sets.
    unsafe {
        let mut mask = *mask;
        libc::sigdelset(&raw mut mask, libc::SIGSYS);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut());
    }
    Ok(())
}

/// Removes handlers, and installs ours.
fn install_handler() -> Result<(), Errno> {
    remove_handlers()?;
    let handler_address = tamis_platform_guest_handler as *const () as u64;
    let ours = handler(handler_address, 0);
    sigaction(libc::SIGSYS, Some(&ours), &mut Action::default())
}

/// Our handler at this address, which blocks these signals.
fn handler(address: u64, mask: u64) -> Action {
    const RESTORER: u64 = 0x0400_0000;
    Action {
        handler: address,
        flags: (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as u64 | RESTORER,
        restorer: tamis_platform_guest_restorer as *const () as u64,
        mask,
    }
}

/// Ends this process by a signal, or, if its filter denies that, by an invalid instruction.
fn die(signal: i32) -> ! {
    reset_action(signal);
    if let Some(pid) = process() {
        make(libc::SYS_kill as u32, [pid, signal as u64, 0, 0, 0, 0]);
    }
    std::process::abort()
}

/// Gives a signal its default action; returns whether that was possible.
fn reset_action(signal: i32) -> bool {
    let nothing = Action::default();
    let set = [signal as u64, ptr::from_ref(&nothing) as u64, 0, 8, 0, 0];
    make(libc::SYS_rt_sigaction as u32, set) == 0
}

/// The number of this process. A guest with a stub creates other processes with its memory and the handler: those get
/// their number from the kernel, unless a filter denies that.
fn process() -> Option<u64> {
    match separate::is_separate() {
        true => make(libc::SYS_getpid as u32, [0; 6])
            .try_into()
            .ok()
            .filter(|pid| *pid > 0),
        false => u64::try_from(PID.load(Ordering::Relaxed)).ok(),
    }
}

/// The calling thread's number, or its process's if the guest's filter denies `gettid`.
pub(crate) fn thread() -> i32 {
    match make(libc::SYS_gettid as u32, [0; 6]) {
        tid if tid > 0 => tid as i32,
        _ => PID.load(Ordering::Relaxed),
    }
}

/// A report that parent and child share.
#[derive(Debug)]
pub(crate) struct SharedReport(*mut Report);

// SAFETY: the memory isn't bound to a thread, and holds atomics only.
unsafe impl Sync for SharedReport {}

impl SharedReport {
    pub(crate) fn new() -> Result<SharedReport, Errno> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping affects no other.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), PAGE as usize, access, flags, -1, 0) };
        match mapped {
            libc::MAP_FAILED => Err(Errno::last()),
            mapped => Ok(SharedReport(mapped.cast())),
        }
    }

    pub(crate) const fn get(&self) -> &Report {
        // SAFETY: mapped as long as `self` lives, and zeros are a value.
        unsafe { &*self.0 }
    }
}

impl Drop for SharedReport {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to `self`.
        unsafe { libc::munmap(self.0.cast(), PAGE as usize) };
    }
}
