//! A forked child that becomes a guest, and the signal handler that catches its calls.
//!
//! Between the fork and the guest's first instruction the child only does what `signal-safety(7)` allows: other threads of
//! the parent may hold any lock. The handler runs on the guest's stack, or on the one that the guest has for signals, with
//! the FS base of the thread that forked: the thread-locals of the supervisor are those, for all threads of the guest.

mod memory;
mod text;

use std::arch::asm;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering,
};

use tamis_abi::{Arch, SeccompData};
use tamis_kernel::install::{set_filter, set_no_new_privs};
use tamis_kernel::spawn::SpawnError;
use tamis_kernel::{Ended, Errno, Flags, affinity, poll};

use crate::error::{PlatformError, Unsupported};
use crate::in_process::calls::{Calls, Outcome, Thread};
use crate::in_process::filter::{self, OURS};
use crate::in_process::{How, Program, Signals};
use crate::sys::load::load;
pub(crate) use memory::{read, write};
use text::{
    tamis_platform_guest_armed, tamis_platform_guest_call, tamis_platform_guest_call_32,
    tamis_platform_guest_called, tamis_platform_guest_cloned, tamis_platform_guest_enter,
    tamis_platform_guest_handler, tamis_platform_guest_leave, tamis_platform_guest_restorer,
};

const PAGE: u64 = 4096;

/// How the handler returns: at once; by `rt_sigreturn`; to its own `syscall` and then to where the guest was; to its own
/// `syscall`, for a call that doesn't return; to a handler of the guest.
const AT_ONCE: u32 = 0;
const BY_KERNEL: u32 = 1;
const AT_CALL: u32 = 2;
const AT_LAST_CALL: u32 = 3;
const AT_HANDLER: u32 = 4;
/// To a `syscall` for a thread that is to be caught like this one.
const AT_CLONE: u32 = 5;
/// As at a call, which is made again when it is interrupted.
const AT_REPEATED: u32 = 6;
/// How often it is made at most: more often than signals come in a row while nobody has received it.
const REPEATS: i32 = 1024;
/// Added if the thread has its mask already: which bit.
const HAS_MASK_BIT: u32 = 8;
const SET_SYSCALL_USER_DISPATCH: i32 = 59;
/// How much lower the stack is for a call to which the handler returns: the red zone, and the return address.
const BELOW: u64 = 136;

/// The FS base of the thread that forked. This and the following are set in the child alone.
static HOST_FS: AtomicU64 = AtomicU64::new(0);
/// Who answers.
static CALLS: AtomicPtr<Calls<'static>> = AtomicPtr::new(ptr::null_mut());
/// What its parent is told.
static REPORT: AtomicPtr<Report> = AtomicPtr::new(ptr::null_mut());
/// The guest's process.
static PID: AtomicI32 = AtomicI32::new(0);

/// Whether the kernel raises the signal for calls of threads with dispatch, which it reads at each.
pub(super) static SELECTOR: AtomicU8 = AtomicU8::new(BLOCK);
/// The values of the selector: calls are made, or raise the signal.
const LET_PASS: u8 = 0;
const BLOCK: u8 = 1;
/// How many threads are in the handler, or are about to have dispatch, and so make calls of our own.
pub(super) static IN_HANDLER: AtomicU32 = AtomicU32::new(0);

/// Whether our handler blocks all signals, since the guest has handlers, which must not run with the host's FS base. Without it
/// there is no mask to be set when it returns, which saves a call.
static BLOCKS: AtomicBool = AtomicBool::new(false);

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

/// What the child tells if it fails: the step and the kernel's error.
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
    how: &How<'_>,
    calls: &Calls<'_>,
    until: Option<BorrowedFd<'_>>,
) -> Result<Ended, PlatformError> {
    let failed = |request| move |errno| PlatformError::Request { request, errno };
    let report = SharedReport::new().map_err(failed("mmap"))?;
    let last_fd = last_fd();
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are writable. No handler of this process is to run in the child.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    // SAFETY: takes nothing.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child runs `become_guest` alone, which is async-signal-safe but for the memory that copying the filter
    // takes: the C library's fork leaves its allocator in order.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: filled above.
        let mask = unsafe { before.assume_init_ref() };
        die_with(parent);
        REPORT.store(report.0, Ordering::Relaxed);
        let failure = become_guest(program, how, calls, last_fd, mask);
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

/// The highest descriptor of this process, as far as can be known.
pub(crate) fn last_fd() -> i32 {
    const UNKNOWN: i32 = 1024;
    /// What other threads may open until the fork.
    const MORE: i32 = 64;
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return UNKNOWN;
    };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers.max().unwrap_or(UNKNOWN) + MORE
}

/// Has the kernel kill this process when its parent ends, even if that has happened.
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

/// Turns the child into the guest; returns only the reason why it couldn't.
fn become_guest(
    program: &Program,
    how: &How<'_>,
    calls: &Calls<'_>,
    last_fd: i32,
    mask: &libc::sigset_t,
) -> (Step, Errno) {
    // SAFETY: takes nothing.
    let pid = unsafe { libc::getpid() };
    PID.store(pid, Ordering::Relaxed);
    CALLS.store(ptr::from_ref(calls).cast_mut().cast(), Ordering::Relaxed);
    note_fs_base();
    if let Some(Err(errno)) = how.cpu.map(affinity::stay_on) {
        return (Step::Placement, errno);
    }
    let (entry, stack) = match load(program, true) {
        Ok(found) => found,
        Err(errno) => return (Step::Load, errno),
    };
    close_on_exec(last_fd);
    if let Err(errno) = reset_signals(mask) {
        return (Step::Load, errno);
    }
    let called = tamis_platform_guest_called as *const () as u64;
    let filters = filter::filters(how.filter, called, pid);
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
    // SAFETY: what was loaded begins there, with this stack. Nothing of this function is used any more.
    unsafe { tamis_platform_guest_enter(entry, stack) }
}

fn note_fs_base() {
    let fs_base: u64;
    // SAFETY: reads a register; the platform has looked for the instruction.
    unsafe { asm!("rdfsbase {}", out(reg) fs_base, options(nomem, nostack, preserves_flags)) };
    HOST_FS.store(fs_base, Ordering::Relaxed);
}

/// Prepares this process for a guest whose supervisor is another process.
pub(super) fn prepare(calls: &Calls<'_>) -> Result<(), Errno> {
    // SAFETY: takes nothing.
    let pid = unsafe { libc::getpid() };
    PID.store(pid, Ordering::Relaxed);
    CALLS.store(ptr::from_ref(calls).cast_mut().cast(), Ordering::Relaxed);
    note_fs_base();
    install_handler()
}

/// Has the calls of this thread raise the signal, and becomes the guest; returns only the reason why it couldn't.
pub(super) fn enter(entry: u64, stack: u64) -> Errno {
    match dispatch() {
        // SAFETY: what was loaded begins there, with this stack. Nothing of the caller is used any more.
        Ok(()) => unsafe { tamis_platform_guest_leave(entry, stack) },
        Err(errno) => errno,
    }
}

/// Where the calls of the handler and of new threads return to.
pub(crate) fn own_ips() -> [u64; 3] {
    [
        tamis_platform_guest_called as *const () as u64,
        tamis_platform_guest_cloned as *const () as u64,
        tamis_platform_guest_armed as *const () as u64,
    ]
}

/// Has all calls of this thread raise the signal, but for those of the code above.
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

/// Has calls of this thread made as without a handler.
pub(crate) fn stop_dispatch() {
    const OFF: u64 = 0;
    let args = [SET_SYSCALL_USER_DISPATCH as u64, OFF, 0, 0, 0, 0];
    make(libc::SYS_prctl as u32, args);
    // No other thread needs ours.
    if !HAS_THREADS.load(Ordering::Relaxed) {
        let action = own_action(None);
        let args = [libc::SIGSYS as u64, action.as_ptr() as u64, 0, 8, 0, 0];
        make(libc::SYS_rt_sigaction as u32, args);
    }
}

/// Has calls of all threads made as without a handler, and waits until none of them makes calls of ours; false if another
/// thread does that.
pub(crate) fn stop_everywhere() -> bool {
    const OWN: u32 = 1;
    if SELECTOR.swap(LET_PASS, Ordering::SeqCst) == LET_PASS {
        return false;
    }
    while IN_HANDLER.load(Ordering::SeqCst) > OWN {
        make(libc::SYS_sched_yield as u32, [0; 6]);
    }
    true
}

fn is_stopped_everywhere() -> bool {
    SELECTOR.load(Ordering::SeqCst) == LET_PASS
}

/// Closes what `execve` would.
fn close_on_exec(last_fd: i32) {
    for fd in 0..=last_fd {
        // SAFETY: numbers only; nobody else uses the descriptors of this process.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
                libc::close(fd);
            }
        }
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

/// Leaves ignored signals ignored, as `execve` does, and removes handlers and the stack for them.
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
    // SAFETY: a valid structure; the thread is on none of its stacks for signals.
    unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
    Ok(())
}

/// Installs our handler, and sets a mask that lets it run.
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
    sigaction(libc::SIGSYS, Some(&handler(0)), &mut Action::default())
}

/// Our handler, which blocks these signals.
fn handler(mask: u64) -> Action {
    const RESTORER: u64 = 0x0400_0000;
    Action {
        handler: tamis_platform_guest_handler as *const () as u64,
        flags: (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as u64 | RESTORER,
        restorer: tamis_platform_guest_restorer as *const () as u64,
        mask,
    }
}

/// All signals but ours.
static BLOCKED: u64 = !(1 << (libc::SIGSYS - 1));

/// The beginning of `siginfo_t` for `SIGSYS`.
#[repr(C)]
struct Info {
    signo: i32,
    errno: i32,
    code: i32,
    _padding: i32,
    call_address: u64,
    nr: i32,
    arch: u32,
}

/// Where `ucontext_t` has the registers of the arguments, as words.
const ARGS: [usize; 6] = [13, 14, 17, 7, 5, 6];
const RAX: usize = 18;
const RIP: usize = 21;
const MASK: usize = 37;
/// The flags of the stack for signals.
const STACK_FLAGS: usize = 3;

/// The length of `syscall`.
const SYSCALL_BYTES: u64 = 2;

/// Where the handler goes if it goes to one of the guest.
#[repr(C)]
struct Target {
    mask: u64,
    handler: u64,
}

/// Called by the handler; says how it is to return. The handler counts itself out, unless it returns by the kernel.
extern "sysv64" fn on_signal(
    info: &mut Info,
    context: &mut [u64; 40],
    fs_base: u64,
    target: &mut Target,
) -> u32 {
    IN_HANDLER.fetch_add(1, Ordering::SeqCst);
    let mask = context[MASK];
    let how = answer(info, context, fs_base, target);
    let has_mask = mask == context[MASK] && !BLOCKS.load(Ordering::SeqCst);
    match how {
        BY_KERNEL => {
            IN_HANDLER.fetch_sub(1, Ordering::SeqCst);
            how
        }
        AT_ONCE | AT_CALL | AT_LAST_CALL | AT_CLONE | AT_REPEATED if has_mask => {
            how | 1 << HAS_MASK_BIT
        }
        _ => how,
    }
}

fn answer(info: &mut Info, context: &mut [u64; 40], fs_base: u64, target: &mut Target) -> u32 {
    /// `SYS_SECCOMP`.
    const BY_FILTER: i32 = 1;
    /// `SYS_USER_DISPATCH`.
    const BY_DISPATCH: i32 = 2;
    /// The stack for signals is disarmed in handlers, and armed again by `rt_sigreturn`.
    const AUTODISARM: u64 = 1 << 31;
    // SAFETY: set before the filters were, to what outlives the guest: the frames of `run` are never left here.
    let calls = unsafe { &*CALLS.load(Ordering::Relaxed) };
    match info.code {
        BY_FILTER if info.errno == i32::from(OURS) => {}
        BY_DISPATCH if is_stopped_everywhere() => {
            context[RAX] = u64::from(info.nr as u32);
            context[RIP] = context[RIP].wrapping_sub(SYSCALL_BYTES);
            return BY_KERNEL;
        }
        BY_DISPATCH => {}
        code => return foreign(code, context, fs_base, target),
    }
    let call = SeccompData {
        nr: info.nr as u32,
        arch: info.arch,
        ip: info.call_address,
        args: ARGS.map(|place| context[place]),
    };
    let mut thread = Thread {
        fs_base,
        mask: context[MASK],
    };
    let outcome = calls.decide(&call, &mut thread);
    context[MASK] = thread.mask;
    match outcome {
        Outcome::Result(value) => context[RAX] = value as u64,
        Outcome::InGuest => {
            context[RAX] = u64::from(call.nr);
            return in_guest(&call, context);
        }
        Outcome::Again => {
            context[RAX] = u64::from(call.nr);
            context[RIP] = context[RIP].wrapping_sub(SYSCALL_BYTES);
        }
        Outcome::Kill => die(libc::SIGKILL),
        Outcome::Unsupported => {
            // SAFETY: set as above, and mapped as long as the guest lives.
            let report = unsafe { &*REPORT.load(Ordering::Relaxed) };
            report.step.store(Step::Answer as i32, Ordering::Release);
            die(libc::SIGKILL)
        }
        Outcome::Signal => die(libc::SIGSYS),
        Outcome::Trap(data) => {
            (info.code, info.errno) = (BY_FILTER, i32::from(data));
            return foreign(BY_FILTER, context, fs_base, target);
        }
    }
    match context[STACK_FLAGS] & AUTODISARM {
        // What a filter of the guest's allows that all threads have got meanwhile isn't known.
        0 if !is_stopped_everywhere() => AT_ONCE,
        _ => BY_KERNEL,
    }
}

/// The signal isn't for a call that is asked for: the guest's own action for it decides.
fn foreign(code: i32, context: &[u64; 40], fs_base: u64, target: &mut Target) -> u32 {
    const OWN_SIGNAL: u64 = 1 << (libc::SIGSYS - 1);
    const IGNORED: u64 = libc::SIG_IGN as u64;
    let [handler, flags, _, mask] = own_action(None);
    let is_sent = code <= 0;
    match handler {
        IGNORED if is_sent => return BY_KERNEL,
        0 | IGNORED => die(libc::SIGSYS),
        _ => {}
    }
    // It has interrupted the handler itself, where the guest's has nothing to stand on.
    if fs_base == HOST_FS.load(Ordering::Relaxed) {
        return BY_KERNEL;
    }
    if flags & u64::from(libc::SA_RESETHAND as u32) != 0 {
        own_action(Some([0; ACTION_WORDS]));
    }
    *target = Target {
        mask: (context[MASK] | mask) & !OWN_SIGNAL,
        handler,
    };
    AT_HANDLER
}

/// Has the guest make a call itself.
fn in_guest(call: &SeccompData, context: &mut [u64; 40]) -> u32 {
    const STACK: usize = 1;
    const FS_BASE: usize = 4;
    if call.arch == Arch::X86.audit() {
        return in_guest_32(call, context);
    }
    match i64::from(call.nr) {
        libc::SYS_rt_sigreturn => return AT_LAST_CALL,
        libc::SYS_fork | libc::SYS_execve | libc::SYS_execveat => return repeated(),
        libc::SYS_clone => {}
        _ => return AT_CALL,
    }
    // A new thread begins behind the call, too, on its own stack.
    let stack = call.args[STACK].wrapping_sub(BELOW);
    // SAFETY: as in `on_signal`.
    let calls = unsafe { &*CALLS.load(Ordering::Relaxed) };
    let has_fs_base = call.args[0] & libc::CLONE_SETTLS as u64 != 0;
    if has_fs_base {
        calls.forget(call.args[FS_BASE]);
    }
    if call.args[STACK] != 0 && write(stack, &context[RIP].to_ne_bytes()) == Ok(size_of::<u64>()) {
        context[ARGS[STACK]] = stack;
        if has_fs_base && calls.is_there() {
            HAS_THREADS.store(true, Ordering::Relaxed);
            return AT_CLONE;
        }
    }
    repeated()
}

/// For calls that nothing interrupts, unless a supervisor elsewhere is told of them.
fn repeated() -> u32 {
    // SAFETY: as in `on_signal`.
    let calls = unsafe { &*CALLS.load(Ordering::Relaxed) };
    match calls.is_there() {
        true => AT_REPEATED,
        false => AT_CALL,
    }
}

/// The same for a call of the 32-bit interface, which takes the register that our way back uses.
fn in_guest_32(call: &SeccompData, context: &mut [u64; 40]) -> u32 {
    const RSP: usize = 20;
    const CLONE: u32 = 120;
    const STACK: usize = 1;
    let stack = context[RSP].wrapping_sub(BELOW);
    let returns_once = call.nr != CLONE || call.args[STACK] == 0;
    if returns_once && write(stack, &context[RIP].to_ne_bytes()) == Ok(size_of::<u64>()) {
        context[RSP] = stack;
        context[RIP] = tamis_platform_guest_call_32 as *const () as u64;
    } else {
        context[RAX] = -i64::from(libc::ENOSYS) as u64;
    }
    BY_KERNEL
}

/// Ends the guest by a signal, or if its filter denies that, by an instruction that doesn't exist.
fn die(signal: i32) -> ! {
    let nothing = Action::default();
    let set = [signal as u64, ptr::from_ref(&nothing) as u64, 0, 8, 0, 0];
    make(libc::SYS_rt_sigaction as u32, set);
    let pid = PID.load(Ordering::Relaxed) as u64;
    make(libc::SYS_kill as u32, [pid, signal as u64, 0, 0, 0, 0]);
    std::process::abort()
}

/// Makes a call of the guest from the handler.
pub(crate) fn make(nr: u32, args: [u64; 6]) -> i64 {
    // SAFETY: what the call may do to this process, the guest may do, whose process it is.
    unsafe { tamis_platform_guest_call(u64::from(nr), args.as_ptr()) }
}

/// The same with an FS base: handlers of the guest may run during the call.
pub(crate) fn make_with(fs_base: u64, nr: u32, args: [u64; 6]) -> i64 {
    let host = HOST_FS.load(Ordering::Relaxed);
    let result: i64;
    let blocked = BLOCKS.load(Ordering::SeqCst);
    // It may wait for long, and makes no calls of ours meanwhile.
    IN_HANDLER.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: between the two no code but the call runs in this thread, and handlers of the guest, which expect that
    // base. The call is as above.
    unsafe {
        asm!(
            "wrfsbase r12",
            "call {call}",
            "wrfsbase r13",
            // Registers that the call keeps.
            in("r12") fs_base,
            in("r13") host,
            call = sym tamis_platform_guest_call,
            inlateout("rdi") u64::from(nr) => _,
            inlateout("rsi") args.as_ptr() => _,
            lateout("rax") result,
            clobber_abi("sysv64"),
        );
    }
    IN_HANDLER.fetch_add(1, Ordering::SeqCst);
    if !blocked && BLOCKS.load(Ordering::SeqCst) {
        block_all();
    }
    result
}

/// Blocks all signals; the mask is set when the handler returns.
fn block_all() {
    let args = [
        libc::SIG_SETMASK as u64,
        (&raw const BLOCKED).addr() as u64,
        0,
        8,
        0,
        0,
    ];
    make(libc::SYS_rt_sigprocmask as u32, args);
}

/// The guest is about to have a handler: from now on our handler blocks all signals. What runs without is waited for.
pub(crate) fn block_in_handler() {
    const OWN: u32 = 1;
    if BLOCKS.swap(true, Ordering::SeqCst) {
        // Another thread may be about to do this.
        block_all();
        return;
    }
    let own = handler(BLOCKED);
    let set = [
        libc::SIGSYS as u64,
        ptr::from_ref(&own).addr() as u64,
        0,
        8,
        0,
        0,
    ];
    make(libc::SYS_rt_sigaction as u32, set);
    block_all();
    while IN_HANDLER.load(Ordering::SeqCst) > OWN {
        make(libc::SYS_sched_yield as u32, [0; 6]);
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
