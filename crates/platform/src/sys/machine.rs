//! What the machine can do, and signals for single threads.

use tamis_kernel::Errno;

/// Whether programs may read the FS base themselves. Kernel 5.9, on processors since 2012.
pub(crate) fn has_fs_base() -> bool {
    /// `HWCAP2_FSGSBASE` of `asm/hwcap2.h`.
    const FSGSBASE: u64 = 1 << 1;
    // SAFETY: reads a number from the auxiliary vector.
    let features = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    cfg!(target_arch = "x86_64") && features & FSGSBASE != 0
}

/// Sends a thread a signal.
pub(crate) fn signal_thread(tid: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    match unsafe { libc::syscall(libc::SYS_tkill, tid, signal) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}
