//! Starting a child: everything that happens between `fork` and `exec`.
//!
//! Other threads of the parent may hold any lock at the moment of the fork, so the child may call only
//! async-signal-safe functions: no allocation, no panic, no formatting. All its inputs are in a [`Plan`] made
//! before the fork. From the first filter on, each system call may be denied, so it reports through a [`Page`] of
//! shared memory.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::Ordering;

use tamis_bpf::Insn;

use crate::errno::Errno;
use crate::flags::{Flag, Flags};
use crate::spawn::Body;
use crate::sys::execute::environment;
use crate::sys::page::Page;
use crate::sys::{check, seccomp, timing};

/// The progress of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Stage {
    /// Before any of the others.
    Start,
    /// Setting `no_new_privs`.
    NoNewPrivs,
    /// Installing a filter.
    Install,
    /// Executing the command; also the final state if that succeeds.
    Exec,
    /// `execve` has returned without an error, and without executing the command: a filter answered it with 0.
    Returned,
}

impl Stage {
    /// The stage in a [`Page`].
    pub(crate) fn load(page: &Page) -> Stage {
        match page.stage.load(Ordering::Acquire) {
            1 => Stage::NoNewPrivs,
            2 => Stage::Install,
            3 => Stage::Exec,
            4 => Stage::Returned,
            _ => Stage::Start,
        }
    }
}

/// A command in the form for `execve`.
pub(crate) struct Argv {
    candidates: Vec<Candidate>,
    _strings: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

/// A file that the program may be.
struct Candidate {
    path: CString,
    /// The arguments of a shell that runs the file, if it has no format that the kernel knows.
    script: Vec<*const libc::c_char>,
}

/// The shell of files without a format.
const SHELL: &CStr = c"/bin/sh";

impl Argv {
    /// The files that the program may be, in order, `argv[0]` and the arguments.
    pub(crate) fn new(files: Vec<CString>, name: CString, args: Vec<CString>) -> Argv {
        let strings: Vec<CString> = std::iter::once(name).chain(args).collect();
        let list = strings.iter().map(|string| string.as_ptr());
        let pointers: Vec<_> = list.chain([ptr::null()]).collect();
        let candidate = |path: CString| Candidate {
            script: [SHELL.as_ptr(), path.as_ptr()]
                .into_iter()
                .chain(pointers[1..].iter().copied())
                .collect(),
            path,
        };
        Argv {
            candidates: files.into_iter().map(candidate).collect(),
            _strings: strings,
            pointers,
        }
    }

    /// Executes the first file that exists, as `execvp` does. It returns only if that fails; the errno is 0 if a filter
    /// has answered with success, which the `execvp` of some C libraries takes for a missing file.
    fn execute(&self) -> Errno {
        let mut best = Errno::ENOENT;
        for candidate in &self.candidates {
            match execve(&candidate.path, &self.pointers) {
                Errno(libc::ENOEXEC) => return execve(SHELL, &candidate.script),
                Errno::EACCES => best = Errno::EACCES,
                Errno(
                    libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT,
                ) => {}
                errno => return errno,
            }
        }
        best
    }
}

/// Executes a file, with a list of arguments that ends with a null pointer.
fn execve(file: &CStr, list: &[*const libc::c_char]) -> Errno {
    // SAFETY: the path and all strings end with a zero byte, both lists with a null pointer. This process has no other
    // thread that changes the environment.
    let returned = unsafe { libc::execve(file.as_ptr(), list.as_ptr(), environment()) };
    check(returned).err().unwrap_or(Errno(0))
}

// SAFETY: the pointers are to heap memory that `strings` owns and that never changes.
unsafe impl Send for Argv {}
// SAFETY: as above.
unsafe impl Sync for Argv {}

/// The inputs of a child.
pub(crate) struct Plan<'a> {
    /// The command.
    pub(crate) argv: &'a Argv,
    /// The filters, the oldest first, with their flags.
    pub(crate) filters: &'a [(&'a [Insn], Flags)],
    /// Whether to set `no_new_privs` first.
    pub(crate) no_new_privs: bool,
    /// Signals to set to their default action.
    pub(crate) reset_signals: &'a [i32],
    /// Whether to ignore `SIGCHLD`.
    pub(crate) ignores_children: bool,
    /// The read end of a pipe: the child continues when it reads a byte from it.
    pub(crate) gate: BorrowedFd<'a>,
    /// Whether the child dies with its parent even after `exec`.
    pub(crate) die_with_parent: bool,
    /// Share the table of descriptors until `exec`, so that a listener appears in the parent.
    pub(crate) share_files: bool,
    /// The page for the report.
    pub(crate) page: &'a Page,
    /// Code that runs before `exec`, or instead.
    pub(crate) body: Option<&'a dyn Body>,
}

/// Forks a child that executes the plan; returns its process number.
pub(crate) fn spawn(plan: &Plan<'_>) -> Result<libc::pid_t, Errno> {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // Handlers of this process must not run in the child.
    // SAFETY: both sets are writable; the calls can't fail with valid arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    // SAFETY: takes no arguments and can't fail.
    let parent = unsafe { libc::getpid() };
    let forked = fork(plan.share_files);
    if forked == Ok(0) {
        // SAFETY: filled by `pthread_sigmask` above.
        let mask = unsafe { before.assume_init_ref() };
        carry_out(plan, parent, mask);
    }
    // SAFETY: `before` was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    forked
}

fn fork(share_files: bool) -> Result<libc::pid_t, Errno> {
    if !share_files {
        // SAFETY: the child only runs `carry_out`, which is async-signal-safe.
        return check(unsafe { libc::fork() });
    }
    let flags = libc::c_long::from(libc::CLONE_FILES | libc::SIGCHLD);
    // On s390 the stack is the first argument.
    let (first, second) = if cfg!(target_arch = "s390x") {
        (0, flags)
    } else {
        (flags, 0)
    };
    // SAFETY: without a stack and `CLONE_VM`, it is a fork; the child only runs `carry_out`.
    let returned = unsafe { libc::syscall(libc::SYS_clone, first, second, 0, 0, 0) };
    check(returned).map(|pid| pid as libc::pid_t)
}

/// The child's life up to `exec`.
fn carry_out(plan: &Plan<'_>, parent: libc::pid_t, mask: &libc::sigset_t) -> ! {
    let page = plan.page;
    wait_at_gate(plan, parent);
    if let Some(Err(errno)) = plan.body.map(Body::prepare) {
        page.stage.store(Stage::Exec as u32, Ordering::Release);
        give_up(page, errno);
    }
    restore_signals(plan.reset_signals, plan.ignores_children, mask);
    if plan.no_new_privs {
        page.stage
            .store(Stage::NoNewPrivs as u32, Ordering::Release);
        if let Err(errno) = seccomp::set_no_new_privs() {
            give_up(page, errno);
        }
    }
    for (index, (insns, flags)) in plan.filters.iter().enumerate() {
        page.filter.store(index as u32, Ordering::Release);
        page.stage.store(Stage::Install as u32, Ordering::Release);
        if !seccomp::is_answered_by_kernel(*flags) {
            give_up(page, Errno(libc::ENOSYS));
        }
        match seccomp::set_filter(insns, *flags) {
            Ok(answer) if flags.contains(Flag::NewListener) => {
                page.listener.store(answer as i32, Ordering::Release);
            }
            Ok(_) => {}
            Err(errno) => give_up(page, errno),
        }
    }
    page.stage.store(Stage::Exec as u32, Ordering::Release);
    if let Some(errno) = plan.body.and_then(Body::run) {
        give_up(page, errno);
    }
    let errno = plan.argv.execute();
    if errno.0 == 0 {
        page.stage.store(Stage::Returned as u32, Ordering::Release);
    }
    give_up(page, errno)
}

/// Blocks until the parent releases the child; the child dies with its parent, either permanently or only until
/// then.
fn wait_at_gate(plan: &Plan<'_>, parent: libc::pid_t) {
    /// The parent of the first process of a namespace, as that process sees it.
    const OUTSIDE: libc::pid_t = 0;
    let mut byte = 0u8;
    // SAFETY: `read` has room for the one byte that it may write; the others take no pointers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if ![parent, OUTSIDE].contains(&libc::getppid()) {
            give_up(plan.page, Errno(libc::ESRCH));
        }
        loop {
            match check(libc::read(plan.gate.as_raw_fd(), (&raw mut byte).cast(), 1)) {
                Ok(1) => break,
                Ok(_) => give_up(plan.page, Errno(libc::ESRCH)),
                Err(Errno(libc::EINTR)) => {}
                Err(errno) => give_up(plan.page, errno),
            }
        }
        if !plan.die_with_parent {
            libc::prctl(libc::PR_SET_PDEATHSIG, 0, 0, 0, 0);
        }
    }
}

fn restore_signals(reset: &[i32], ignores_children: bool, mask: &libc::sigset_t) {
    // SAFETY: `signal` without a handler and `sigprocmask` with a valid set are harmless in a process with one
    // thread that is about to execute another program.
    unsafe {
        for signal in reset {
            libc::signal(*signal, libc::SIG_DFL);
        }
        if ignores_children {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut());
    }
}

/// Reports an error and ends the child, even where the filter denies `exit_group`.
fn give_up(page: &Page, errno: Errno) -> ! {
    page.errno.store(errno.0, Ordering::Release);
    // SAFETY: `_exit` only ends the process. It doesn't return, except under a filter that denies it.
    unsafe {
        libc::syscall(libc::SYS_exit_group, 127);
        libc::syscall(libc::SYS_exit, 127);
    }
    // Handlers of Rust's runtime for the signal of an abort can neither restore the default nor return under a filter that
    // denies all calls, and may repeat for ever.
    timing::illegal_instruction()
}
