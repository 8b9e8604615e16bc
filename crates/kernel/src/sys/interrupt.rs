//! A handler that notes signals. After the first, the signal's default action is back.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

static ARRIVED: AtomicBool = AtomicBool::new(false);

/// The actions before, for those signals that weren't ignored.
#[derive(Debug)]
pub(crate) struct Noted(Vec<(i32, libc::sigaction)>);

impl Noted {
    pub(crate) fn begin() -> Noted {
        ARRIVED.store(false, Ordering::Release);
        let mut before = Vec::new();
        for signal in SIGNALS {
            let mut old = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: a null action only asks for the present one, which all zeros stand for if that fails.
            let old = unsafe {
                libc::sigaction(signal, ptr::null(), old.as_mut_ptr());
                old.assume_init()
            };
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new = old;
            new.sa_sigaction = on_signal as *const () as libc::sighandler_t;
            // Calls that wait return early, so that whoever waits looks.
            new.sa_flags = libc::SA_RESETHAND;
            // SAFETY: the handler only stores a flag, which is async-signal-safe.
            unsafe { libc::sigaction(signal, &raw const new, ptr::null_mut()) };
            before.push((signal, old));
        }
        Noted(before)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: the action is one that the kernel has returned.
            unsafe { libc::sigaction(*signal, ptr::from_ref(before), ptr::null_mut()) };
        }
    }
}

pub(crate) fn arrived() -> bool {
    ARRIVED.load(Ordering::Acquire)
}

extern "C" fn on_signal(_signal: i32) {
    ARRIVED.store(true, Ordering::Release);
}
