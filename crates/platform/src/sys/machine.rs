//! What the machine can do, and signals for single threads.

use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};

use tamis_kernel::Errno;

/// Whether programs may read the FS base themselves. Kernel 5.9, on processors since 2012.
pub(crate) fn has_fs_base() -> bool {
    /// `HWCAP2_FSGSBASE` of `asm/hwcap2.h`.
    const FSGSBASE: u64 = 1 << 1;
    // SAFETY: reads a number from the auxiliary vector.
    let features = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    cfg!(target_arch = "x86_64") && features & FSGSBASE != 0
}

/// How many filters a task has, by its name in `/proc`. `None` if it has ended, or before kernel 5.9.
pub(crate) fn filters_count(task: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("Seccomp_filters:"));
    count?.trim().parse().ok()
}

/// Whether a task has other filters than these, as far as the kernel tells.
pub(crate) fn has_other_filters(tid: i32, ours: Option<u32>) -> bool {
    ours.is_some_and(|ours| filters_count(&tid.to_string()) != Some(ours))
}

/// Whether a task is about to get a signal.
pub(crate) fn has_signal(tid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let set = |name: &str| {
        let mut lines = status.lines();
        let mask = lines.find_map(|line| line.strip_prefix(name));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    };
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") != 0
}

/// A descriptor that is readable once this child has ended. Kernel 5.3.
pub(crate) fn end_of(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match fd {
        // SAFETY: the kernel has just made it.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }),
        _ => Err(Errno::last()),
    }
}

/// Sends a thread a signal.
pub(crate) fn signal_thread(tid: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    match unsafe { libc::syscall(libc::SYS_tkill, tid, signal) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}
