//! Catching signals to forward to a child, and keeping `SIGCHLD` reports.
//!
//! The handler only counts the signal and writes a byte to a pipe, unless it is full: then there already is a byte
//! to wake the reader. It ignores signals from the terminal: they go to the whole foreground group, including the
//! child.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// `si_code` of signals sent by the kernel. Of the forwarded ones these are from the terminal, except for an alarm.
const SI_KERNEL: i32 = 0x80;

/// The count of each signal since it was [taken](take).
static COUNTS: [AtomicU32; MAX_SIGNAL + 1] = [const { AtomicU32::new(0) }; MAX_SIGNAL + 1];
const MAX_SIGNAL: usize = 64;

/// The byte that the handler writes to the pipe.
pub(crate) const WAKE: u8 = 1;

/// The write end of the pipe; -1 before the first use. It is never closed.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// The caught signals with their previous actions.
#[derive(Debug)]
pub(crate) struct SavedHandlers(Vec<(i32, libc::sigaction)>);

impl SavedHandlers {
    /// Catches these signals, except those that the process ignores, which a child also ignores.
    ///
    /// `pipe` must not block, and stay open for the rest of the process's life.
    pub(crate) fn new(signals: &[i32], pipe: RawFd) -> SavedHandlers {
        PIPE.store(pipe, Ordering::Release);
        // Discard signals from the end of an earlier run.
        take();
        let mut caught = Vec::new();
        for &signal in signals {
            let before = replace(signal, None);
            if before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = before;
            action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            replace(signal, Some(&action));
            caught.push((signal, before));
        }
        SavedHandlers(caught)
    }

    /// The caught signals.
    pub(crate) fn signals(&self) -> Vec<i32> {
        self.0.iter().map(|(signal, _)| *signal).collect()
    }
}

impl Drop for SavedHandlers {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            replace(*signal, Some(before));
        }
    }
}

/// The signals received since the last call, each as often as it was received.
pub(crate) fn take() -> Vec<i32> {
    let counts = COUNTS.iter().enumerate();
    let taken = counts.map(|(signal, count)| (signal as i32, count.swap(0, Ordering::AcqRel)));
    let taken = taken.filter(|(_, count)| *count > 0);
    taken
        .flat_map(|(signal, count)| std::iter::repeat_n(signal, count as usize))
        .collect()
}

/// Keeps the reports of ended children: this process may have inherited an ignored `SIGCHLD`, for which the kernel
/// drops the reports.
#[derive(Debug)]
pub(crate) struct ChildReports {
    /// Whether the process ignores the signal otherwise.
    pub(crate) is_ignored: bool,
}

/// The count of [`ChildReports`], and the action to be restored after the last one.
static REPORTS: Mutex<(usize, Option<libc::sigaction>)> = Mutex::new((0, None));

impl ChildReports {
    pub(crate) fn keep() -> ChildReports {
        let mut reports = REPORTS.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.0 == 0 {
            let before = replace(libc::SIGCHLD, None);
            let is_ignored = before.sa_sigaction == libc::SIG_IGN;
            let mut action = before;
            action.sa_flags &= !libc::SA_NOCLDWAIT;
            if is_ignored {
                action.sa_sigaction = libc::SIG_DFL;
            }
            if is_ignored || action.sa_flags != before.sa_flags {
                replace(libc::SIGCHLD, Some(&action));
                reports.1 = Some(before);
            }
        }
        reports.0 += 1;
        let before = reports.1.as_ref();
        ChildReports {
            is_ignored: before.is_some_and(|before| before.sa_sigaction == libc::SIG_IGN),
        }
    }
}

impl Drop for ChildReports {
    fn drop(&mut self) {
        let mut reports = REPORTS.lock().unwrap_or_else(PoisonError::into_inner);
        reports.0 -= 1;
        if reports.0 == 0
            && let Some(before) = reports.1.take()
        {
            replace(libc::SIGCHLD, Some(&before));
        }
    }
}

/// Sets the action of a signal, if one is given; returns the previous action.
fn replace(signal: i32, action: Option<&libc::sigaction>) -> libc::sigaction {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    let new = action.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null, an action returned by the kernel, or one with `on_signal`, which is async-signal-safe.
    // All zeros is a valid action, if the call fails for an invalid number.
    unsafe {
        libc::sigaction(signal, new, before.as_mut_ptr());
        before.assume_init()
    }
}

/// Ends this process by a signal, without a core dump; returns only if the signal isn't deadly.
pub(crate) fn raise_fatal(signal: i32) {
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the calls read only their arguments; all zeros is `SIG_DFL` with an empty mask, and an empty set of
    // signals before one is added.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        let default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        libc::sigaction(signal, &raw const default, ptr::null_mut());
        let mut unblocked = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigaddset(&raw mut unblocked, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const unblocked, ptr::null_mut());
        libc::raise(signal);
    }
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let byte = WAKE;
    // SAFETY: the kernel passes a valid `info`; `write` reads one byte and is async-signal-safe; `errno` of the
    // interrupted code is restored.
    unsafe {
        if (*info).si_code == SI_KERNEL && signal != libc::SIGALRM {
            return;
        }
        if let Some(count) = COUNTS.get(signal as usize) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        let errno = libc::__errno_location();
        let saved = *errno;
        libc::write(PIPE.load(Ordering::Acquire), (&raw const byte).cast(), 1);
        *errno = saved;
    }
}
