//! The unsafe things that victims do: raw system calls and a handler for `SIGSYS`.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Makes a system call; the error number if it fails.
///
/// Victims only make calls that read no memory: `getppid` and `getpriority`.
pub(crate) fn call(nr: i64, args: [u64; 6]) -> Result<i64, i32> {
    let [a, b, c, d, e, f] = args;
    // SAFETY: neither of the two calls takes a pointer, and extra arguments are ignored.
    let returned = unsafe { libc::syscall(nr, a, b, c, d, e, f) };
    if returned == -1 {
        Err(errno())
    } else {
        Ok(returned)
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The number of `getpriority` on i386.
pub(crate) const I386_GETPRIORITY: u32 = 96;

/// Calls `getpriority` as an i386 program does; whether this machine can.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_i386(args: [u64; 6]) -> bool {
    let mut result = u64::from(I386_GETPRIORITY);
    // SAFETY: the call takes numbers only. `rbx` may not be named as an operand, so it is exchanged.
    // Without the entry for i386 the process gets SIGSEGV.
    unsafe {
        std::arch::asm!(
            "xchg {first}, rbx",
            "int 0x80",
            "xchg {first}, rbx",
            first = inout(reg) args[0] => _,
            inlateout("rax") result,
            in("rcx") args[1],
            in("rdx") args[2],
        );
    }
    result != u64::from(I386_GETPRIORITY)
}

/// Calls `getpriority` as an i386 program does; whether this machine can.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn call_i386(_args: [u64; 6]) -> bool {
    false
}

/// Restores the signals that `nohup` and a shell's background jobs ignore.
pub(crate) fn take_signals_of_terminals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: no handler is set.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// The calling thread's number.
pub(crate) fn thread() -> i32 {
    // SAFETY: takes no arguments.
    unsafe { libc::gettid() }
}

/// Changes to the user `nobody`.
pub(crate) fn drop_privileges() {
    // SAFETY: take no pointers.
    unsafe {
        libc::setgid(65534);
        libc::setuid(65534);
    }
}

/// Puts the next child of this thread into a namespace of processes of its own: whether that can be done.
pub(crate) fn unshare_processes() -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 }
}

/// Sends a signal to a process.
pub(crate) fn kill(pid: i32, signal: i32) {
    // SAFETY: takes no pointers.
    unsafe { libc::kill(pid, signal) };
}

/// Blocks for good.
pub(crate) fn pause() {
    // SAFETY: takes no arguments.
    unsafe { libc::pause() };
}

/// Waits for no event at all, for at most this time: the number of events, or the error number.
pub(crate) fn epoll_wait(limit_ms: i32) -> Result<i32, i32> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: the kernel writes at most one event.
    let count = unsafe {
        let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
        libc::epoll_wait(epoll, &raw mut event, 1, limit_ms)
    };
    if count < 0 { Err(errno()) } else { Ok(count) }
}

/// Waits for a signal that doesn't come, for at most this time: the error number.
pub(crate) fn wait_for_signal(limit_ms: i64) -> i32 {
    let limit = libc::timespec {
        tv_sec: 0,
        tv_nsec: limit_ms * 1_000_000,
    };
    // SAFETY: `sigemptyset` and `sigaddset` fill the set, and no result is written to a null address.
    let returned = unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGUSR1);
        libc::sigtimedwait(set.as_ptr(), ptr::null_mut(), &raw const limit)
    };
    assert!(returned < 0);
    errno()
}

/// Waits for an operation of an empty ring, for at most this time: the error number. `None` if there are no rings.
pub(crate) fn io_uring_wait(limit_ms: i64) -> Option<i32> {
    /// `IORING_ENTER_GETEVENTS` and `IORING_ENTER_EXT_ARG` of `linux/io_uring.h`.
    const FLAGS: u32 = 1 | 1 << 3;
    // `struct io_uring_params` in words, all of which may be 0.
    let mut parameters = [0_u32; 30];
    let limit = [0, limit_ms * 1_000_000];
    // `struct io_uring_getevents_arg`: no signals, and the address of the limit.
    let wait = [0_u64, 0, limit.as_ptr() as u64];
    // SAFETY: the structures have the sizes that the kernel reads and writes.
    let (ring, returned) = unsafe {
        let ring = libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr());
        let size = size_of_val(&wait);
        let wait = wait.as_ptr();
        let enter = libc::SYS_io_uring_enter;
        (ring, libc::syscall(enter, ring, 0, 1, FLAGS, wait, size))
    };
    (ring >= 0 && returned < 0).then(errno)
}

/// Sends a signal to a thread of this process.
pub(crate) fn kill_thread(tid: i32, signal: i32) {
    // SAFETY: takes numbers only.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) };
}

/// Whether a descriptor is closed on `execve`.
pub(crate) fn closes_on_exec(fd: i32) -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::fcntl(fd, libc::F_GETFD) & libc::FD_CLOEXEC != 0 }
}

/// Writes to a descriptor by number.
pub(crate) fn write(fd: i32, bytes: &[u8]) {
    // SAFETY: the kernel reads as many bytes as there are.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

/// Ignores a signal.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: takes no handler.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Whether a signal is ignored.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the kernel fills the structure; zero is valid.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Handles a signal by doing nothing, but keeps the call that it interrupts from being restarted.
pub(crate) fn handle(signal: i32) {
    extern "C" fn nothing(_: i32) {}
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zero is valid for all members; the handler does nothing.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = nothing as *const () as libc::sighandler_t;
        libc::sigaction(signal, action.as_ptr(), ptr::null_mut());
    }
}

/// Has a signal interrupt this process again and again, or never if the time is 0.
pub(crate) fn interrupt_every_us(time_us: i64) {
    handle(libc::SIGALRM);
    let interval = libc::timeval {
        tv_sec: 0,
        tv_usec: time_us,
    };
    let timer = libc::itimerval {
        it_interval: interval,
        it_value: interval,
    };
    // SAFETY: the kernel reads the structure.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

/// The type of the names of limits, which the C libraries define differently.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// Lowers or raises a limit up to its hard one.
pub(crate) fn limit(resource: Resource, value: u64) {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the kernel fills the structure, and reads it again.
    unsafe {
        libc::getrlimit(resource, limit.as_mut_ptr());
        (*limit.as_mut_ptr()).rlim_cur = value;
        libc::setrlimit(resource, limit.as_ptr());
    }
}

/// Closes inherited descriptors beyond the standard streams: the limit of descriptors is about numbers.
pub(crate) fn close_inherited() {
    // SAFETY: called at the start of a victim, which has opened nothing yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

static TRAPPED: AtomicBool = AtomicBool::new(false);
static DATA: AtomicI32 = AtomicI32::new(0);
static NR: AtomicI32 = AtomicI32::new(0);
static ARCH: AtomicI32 = AtomicI32::new(0);

/// Handles `SIGSYS` by recording its data.
pub(crate) fn catch_traps() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zero is valid for all members; the handler only stores to atomics.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = on_sigsys as *const () as libc::sighandler_t;
        (*action.as_mut_ptr()).sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGSYS, action.as_ptr(), ptr::null_mut());
    }
}

/// Data, number and architecture of the trap that happened, if one did.
pub(crate) fn trapped() -> Option<(i32, i32, u32)> {
    let load = |cell: &AtomicI32| cell.load(Ordering::SeqCst);
    TRAPPED
        .load(Ordering::SeqCst)
        .then(|| (load(&DATA), load(&NR), load(&ARCH) as u32))
}

extern "C" fn on_sigsys(_: i32, info: *const libc::siginfo_t, _: *const libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`, whose union begins after three numbers at the
    // alignment of a pointer, for `SIGSYS` with an address and two numbers.
    let (data, nr, arch) = unsafe {
        let union = (3 * size_of::<i32>()).next_multiple_of(align_of::<usize>());
        let numbers = info.byte_add(union + size_of::<usize>()).cast::<i32>();
        ((*info).si_errno, numbers.read(), numbers.add(1).read())
    };
    DATA.store(data, Ordering::SeqCst);
    NR.store(nr, Ordering::SeqCst);
    ARCH.store(arch, Ordering::SeqCst);
    TRAPPED.store(true, Ordering::SeqCst);
}

/// Forks a child that installs something and makes a call, traces it, and returns the message of the first
/// `SECCOMP_RET_TRACE` stop, if there is one.
pub(crate) fn trace_message(child: impl FnOnce()) -> Option<u64> {
    // SAFETY: the victim has one thread, so the child may do anything. The tracing requests concern that child alone
    // and pass buffers of the right size.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
            child();
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(pid, &raw mut status, 0);
        let options = libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_EXITKILL;
        libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options);
        libc::ptrace(libc::PTRACE_CONT, pid, 0, 0);
        libc::waitpid(pid, &raw mut status, 0);
        if status >> 16 != libc::PTRACE_EVENT_SECCOMP {
            return None;
        }
        let mut message: libc::c_ulong = 0;
        libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut message);
        Some(message)
    }
}
