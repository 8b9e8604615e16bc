//! Waiting for a word of shared memory to change.

use std::ptr;
use std::sync::atomic::AtomicU32;

/// Blocks while the word has this value, until it is woken or a signal comes: the caller looks again.
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    let timeout = ptr::null::<libc::timespec>();
    // SAFETY: the word is borrowed, so its memory stays mapped; there is no timeout to be read. Whatever is returned,
    // the caller looks at the word again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            timeout,
        );
    }
}

/// Wakes whoever waits for the word, in whatever process.
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the word's address only to find those who wait.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
