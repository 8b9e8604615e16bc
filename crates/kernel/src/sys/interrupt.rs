//! A handler that notes signals. Some time after the first, a signal's default action is back.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// How long after the first signal others are taken for the same wish.
const GRACE_NS: u64 = 500_000_000;

/// When the first arrived; 0 if none has.
static FIRST_NS: AtomicU64 = AtomicU64::new(0);

/// The actions before, for those signals that weren't ignored.
#[derive(Debug)]
pub(crate) struct SavedHandlers(Vec<(i32, libc::sigaction)>);

impl SavedHandlers {
    pub(crate) fn begin() -> SavedHandlers {
        FIRST_NS.store(0, Ordering::Release);
        let mut before = Vec::new();
        for signal in SIGNALS {
            let mut old = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: a null action only queries the present one; if that fails, `old` stays zeroed.
            let old = unsafe {
                libc::sigaction(signal, ptr::null(), old.as_mut_ptr());
                old.assume_init()
            };
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new = old;
            new.sa_sigaction = on_signal as *const () as libc::sighandler_t;
            // Without `SA_RESTART`, interrupted calls return early and their callers notice the signal.
            new.sa_flags = 0;
            // SAFETY: the handler is async-signal-safe.
            unsafe { libc::sigaction(signal, &raw const new, ptr::null_mut()) };
            before.push((signal, old));
        }
        SavedHandlers(before)
    }
}

impl Drop for SavedHandlers {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: the action is one that the kernel has returned.
            unsafe { libc::sigaction(*signal, ptr::from_ref(before), ptr::null_mut()) };
        }
    }
}

pub(crate) fn arrived() -> bool {
    FIRST_NS.load(Ordering::Acquire) != 0
}

extern "C" fn on_signal(signal: i32) {
    let now = now_ns();
    let first = FIRST_NS.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
    if first.is_err_and(|first| now.saturating_sub(first) > GRACE_NS) {
        // SAFETY: both functions are async-signal-safe. The signal is blocked here and ends the process afterwards.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

/// The monotonic time, never 0.
fn now_ns() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the clock exists, and its time is written to a structure of that type, which may be all zeros. The function is
    // async-signal-safe.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr());
        now.assume_init()
    };
    let seconds = now.tv_sec.cast_unsigned() * 1_000_000_000;
    (seconds + now.tv_nsec.cast_unsigned()).max(1)
}
