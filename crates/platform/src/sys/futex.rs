//! Waiting for a word of shared memory to change.

use std::sync::atomic::AtomicU32;

/// Blocks while the word has this value, until it is woken, a signal comes or a second has passed: the caller checks
/// again. Another user of the word may change it back between a check and the wait, without a wake-up.
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    let timeout = libc::timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    // SAFETY: the word is borrowed, so its memory stays mapped, and so is the timeout. Whatever the result, the caller
    // reads the word again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &raw const timeout,
        );
    }
}

/// Wakes all waiters for the word, in any process.
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the word's address only to find the waiters.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
