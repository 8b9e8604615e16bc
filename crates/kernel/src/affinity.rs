//! CPU affinity of threads.

use std::fs;

use crate::errno::Errno;
use crate::sys::affinity;

/// The CPUs in the affinity mask of the calling thread, in order.
///
/// # Errors
/// The error of `sched_getaffinity`: a filter may deny it.
pub fn allowed() -> Result<Vec<usize>, Errno> {
    affinity::get(0)
}

/// Keeps the calling thread, and threads and processes that it starts, on a CPU.
///
/// # Errors
/// `EINVAL` if there is no such CPU, or the thread may not run there.
pub fn stay_on(cpu: usize) -> Result<(), Errno> {
    affinity::set(0, cpu)
}

/// Keeps another thread on a CPU.
///
/// # Errors
/// As [`stay_on`], and `ESRCH` if it is gone.
pub fn keep_on(tid: i32, cpu: usize) -> Result<(), Errno> {
    affinity::set(tid, cpu)
}

/// The CPU that a thread runs on or ran on last; `None` if it is gone or without `/proc`.
pub fn current_cpu(tid: i32) -> Option<usize> {
    /// `processor` in `proc_pid_stat(5)`, counted from the state, which is the first after the name.
    const PROCESSOR: usize = 36;
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    // The name may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(PROCESSOR)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_is_kept() {
        let own = std::thread::spawn(|| {
            for cpu in allowed().unwrap() {
                stay_on(cpu).unwrap();
                assert_eq!(allowed(), Ok(vec![cpu]));
                assert!(current_cpu(std::process::id() as i32).is_some());
            }
            stay_on(usize::MAX)
        });
        assert_eq!(own.join().unwrap(), Err(Errno(libc::EINVAL)));
        assert_eq!(current_cpu(i32::MAX), None);
    }
}
