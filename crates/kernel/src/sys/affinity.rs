//! The CPUs of a thread: `sched_setaffinity(2)`.

use std::mem::MaybeUninit;

use crate::errno::Errno;
use crate::sys::check;

/// The affinity mask of a thread, in order; 0 is the calling thread.
pub(crate) fn get(tid: libc::pid_t) -> Result<Vec<usize>, Errno> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the kernel fills at most this size.
    check(unsafe { libc::sched_getaffinity(tid, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) })?;
    // SAFETY: filled above, and zero is valid.
    let set = unsafe { set.assume_init() };
    let cpus = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are below the size of the set.
    let is_in = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    Ok(cpus.filter(is_in).collect())
}

/// Keeps a thread on a CPU; 0 is the calling thread.
pub(crate) fn set(tid: libc::pid_t, cpu: usize) -> Result<(), Errno> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(Errno(libc::EINVAL));
    }
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: an empty set is all zeros, the number is below its size, and the kernel only reads it.
    let returned = unsafe {
        libc::CPU_SET(cpu, &mut *set.as_mut_ptr());
        libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), set.as_ptr())
    };
    check(returned).map(|_| ())
}
