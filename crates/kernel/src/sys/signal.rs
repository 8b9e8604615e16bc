//! Catching signals that are meant for a child, and not ignoring those about one.
//!
//! The handler only counts the signal and writes a byte to a pipe, unless that is full: then the reader has
//! one to wake it. It ignores what the terminal sends: that goes to the whole foreground group, so that the
//! child has it already.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// `si_code` of signals that the kernel sends; of those forwarded, the terminal's, but for an alarm.
const SI_KERNEL: i32 = 0x80;

/// How often each signal came since it was [taken](take).
static COUNTS: [AtomicU32; MAX_SIGNAL + 1] = [const { AtomicU32::new(0) }; MAX_SIGNAL + 1];
const MAX_SIGNAL: usize = 64;

/// What the handler writes to the pipe.
pub(crate) const WAKE: u8 = 1;

/// The write end of the pipe; -1 before the first use. It is never closed.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// The signals that are caught, and what was done with them before.
#[derive(Debug)]
pub(crate) struct Caught(Vec<(i32, libc::sigaction)>);

impl Caught {
    /// Catches these signals, except those that the process ignores: a child inherits that.
    ///
    /// `pipe` must not block, and stay open for the rest of the process's life.
    pub(crate) fn new(signals: &[i32], pipe: RawFd) -> Caught {
        PIPE.store(pipe, Ordering::Release);
        // What came at the end of another run was not for this one.
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
        Caught(caught)
    }

    /// Which they are.
    pub(crate) fn signals(&self) -> Vec<i32> {
        self.0.iter().map(|(signal, _)| *signal).collect()
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            replace(*signal, Some(before));
        }
    }
}

/// The signals that came since the last time, each as often as it did.
pub(crate) fn take() -> Vec<i32> {
    let counts = COUNTS.iter().enumerate();
    let taken = counts.map(|(signal, count)| (signal as i32, count.swap(0, Ordering::AcqRel)));
    let taken = taken.filter(|(_, count)| *count > 0);
    taken
        .flat_map(|(signal, count)| std::iter::repeat_n(signal, count as usize))
        .collect()
}

/// While one of these lives, children that end leave a report: whoever starts this process may have set
/// it up to ignore `SIGCHLD`, and then the kernel drops the reports.
#[derive(Debug)]
pub(crate) struct ChildReports {
    /// Whether the process ignores the signal otherwise.
    pub(crate) is_ignored: bool,
}

/// How many [`ChildReports`] there are, and the action to be put back after the last of them.
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

/// Sets the action of a signal, if one is given; the action before.
fn replace(signal: i32, action: Option<&libc::sigaction>) -> libc::sigaction {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    let new = action.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null, an action that the kernel gave out, or one with `on_signal`, which is
    // async-signal-safe. All zeros is a valid action, should the call fail for a bad number.
    unsafe {
        libc::sigaction(signal, new, before.as_mut_ptr());
        before.assume_init()
    }
}

/// Ends this process by a signal, without a core dump; returns only if the signal doesn't do that.
pub(crate) fn raise_fatal(signal: i32) {
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the calls read what they are given and nothing else; all zeros is `SIG_DFL` with an
    // empty mask, and an empty set of signals before one is added.
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
    // SAFETY: the kernel passes a valid `info`; `write` reads one byte and is async-signal-safe;
    // `errno` is the interrupted code's and is put back.
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
