//! `seccomp(2)`, the related `prctl(2)` options, and `uname(2)`.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

use tamis_bpf::Insn;

use crate::errno::Errno;
use crate::flags::Flags;
use crate::sys::check;

/// The kernel's return value of a successful installation.
pub type Answer = libc::c_long;

/// Installs instructions with `seccomp(SECCOMP_SET_MODE_FILTER)`; async-signal-safe.
///
/// The return value is 0, a listener with `NEW_LISTENER`, or the thread that could not be synchronised. The length
/// is truncated to 16 bits: callers check it.
///
/// # Errors
/// The kernel's.
pub fn set_filter(insns: &[Insn], flags: Flags) -> Result<Answer, Errno> {
    let program = libc::sock_fprog {
        len: insns.len() as libc::c_ushort,
        filter: insns.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    // SAFETY: `Insn` is `repr(C)` with the fields of `sock_filter`; the kernel reads `len` of them,
    // at most as many as there are, and writes nothing.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags.bits(),
            &raw const program,
        )
    };
    check(returned)
}

/// Tries an installation without a program: `EFAULT` if the kernel supports the flags, else `EINVAL`. It never
/// installs anything.
pub(crate) fn try_flags(flags: Flags) -> Errno {
    // SAFETY: with a null program the kernel fails after checking the flags.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags.bits(),
            ptr::null::<libc::sock_fprog>(),
        )
    };
    check(returned).err().unwrap_or(Errno(0))
}

/// Whether an installation with these flags reaches the kernel, or is at least refused: an earlier filter that answers
/// with errno 0 lets even that of no program succeed. Async-signal-safe.
pub(crate) fn is_answered_by_kernel(flags: Flags) -> bool {
    try_flags(flags) != Errno(0)
}

/// Whether the kernel supports an action, `SECCOMP_GET_ACTION_AVAIL`.
pub(crate) fn action_available(ret: u32) -> Result<(), Errno> {
    // SAFETY: the kernel reads one 32-bit word.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const ret,
        )
    };
    check(returned).map(|_| ())
}

/// The sizes of the kernel's notification structures, `SECCOMP_GET_NOTIF_SIZES`.
pub(crate) fn notification_sizes() -> Result<libc::seccomp_notif_sizes, Errno> {
    let mut sizes = MaybeUninit::<libc::seccomp_notif_sizes>::zeroed();
    // SAFETY: the kernel writes the three numbers of the structure.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_NOTIF_SIZES,
            0,
            sizes.as_mut_ptr(),
        )
    };
    check(returned)?;
    // SAFETY: zero is valid for all members and the kernel has filled them.
    Ok(unsafe { sizes.assume_init() })
}

/// `prctl(PR_GET_SECCOMP)`: the mode of the calling thread. Only safe to call in mode 0 or 2, as is every process
/// that reaches this code: in strict mode it would not have started.
pub(crate) fn mode() -> Result<i32, Errno> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) })
}

/// Permanently prevents the calling thread from gaining privileges by `execve`; async-signal-safe.
///
/// # Errors
/// The kernel's: an earlier filter may deny it.
pub fn set_no_new_privs() -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(|_| ())
}

/// Whether the calling thread has `no_new_privs`.
pub(crate) fn no_new_privs() -> Result<bool, Errno> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) }).map(|set| set == 1)
}

/// The release of the running kernel, such as `6.18.44`.
pub(crate) fn release() -> Option<String> {
    let mut names = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the kernel fills the structure.
    check(unsafe { libc::uname(names.as_mut_ptr()) }).ok()?;
    // SAFETY: filled above; the array is zero-terminated.
    let release = unsafe { CStr::from_ptr((*names.as_ptr()).release.as_ptr()) };
    Some(release.to_string_lossy().into_owned())
}
