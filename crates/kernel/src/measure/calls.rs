//! Which system calls can be timed, and with which arguments.
//!
//! A timed call is made thousands of times: it must not block, end the process or change anything
//! outside of it. Some calls are like that as they are. For others there are *stand-ins*: arguments
//! that make the kernel refuse at once, a descriptor that isn't open or an address of zero. All others
//! are not made at all.

use tamis_abi::{Arch, SeccompData, syscall};

/// A descriptor that isn't open: far above any limit.
const NO_FD: u64 = 0x7fff_ffff;
/// `FUTEX_WAKE`.
const FUTEX_WAKE: u64 = 1;

/// A system call that may be made any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// Its arguments; those that it doesn't have are 0.
    pub args: [u64; 6],
}

/// What is timed where nobody says otherwise.
pub const DEFAULT: [&str; 4] = ["getpid", "getppid", "close", "ioctl"];

/// Calls that take no argument, or any.
const AS_THEY_ARE: [&str; 8] = [
    "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "umask",
];

/// Calls whose first argument is a descriptor that is looked up before anything else is done.
const OF_A_DESCRIPTOR: [&str; 24] = [
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "close",
    "fstat",
    "lseek",
    "ioctl",
    "fcntl",
    "fsync",
    "getdents64",
    "dup",
    "recvfrom",
    "sendto",
    "recvmsg",
    "sendmsg",
    "accept4",
    "connect",
    "bind",
    "listen",
    "getsockname",
    "epoll_wait",
];

/// Calls whose other arguments make them return at once.
const REFUSED_OTHERWISE: [(&str, [u64; 6]); 4] = [
    ("futex", [0, FUTEX_WAKE, 1, 0, 0, 0]),
    ("poll", [0, 0, 0, 0, 0, 0]),
    ("clock_gettime", [0, 0, 0, 0, 0, 0]),
    ("openat", [NO_FD, 0, 0, 0, 0, 0]),
];

/// Calls that are never made, and why.
const NEVER: [(&str, &[&str]); 4] = [
    (
        "it would end the measuring process",
        &[
            "exit",
            "exit_group",
            "kill",
            "tkill",
            "tgkill",
            "execve",
            "execveat",
            "rt_sigreturn",
        ],
    ),
    (
        "it would start a process each time",
        &["fork", "vfork", "clone", "clone3"],
    ),
    (
        "it would block",
        &[
            "pause",
            "nanosleep",
            "clock_nanosleep",
            "rt_sigsuspend",
            "wait4",
            "waitid",
            "select",
        ],
    ),
    (
        "it would change the process or the machine",
        &[
            "munmap",
            "mmap",
            "mremap",
            "brk",
            "mprotect",
            "reboot",
            "mount",
            "umount2",
            "swapon",
            "swapoff",
            "setuid",
            "setgid",
            "sethostname",
            "settimeofday",
            "init_module",
            "sync",
        ],
    ),
];

/// The reason for calls that no list names.
const NOT_KNOWN: &str = "no arguments are known with which it does nothing";

impl Call {
    /// The call with this name in the form in which it can be made any number of times.
    ///
    /// # Errors
    /// Why it is not made.
    pub fn find(name: &str) -> Result<Call, &'static str> {
        let same = |known: &&&'static str| **known == name;
        if let Some(name) = AS_THEY_ARE.iter().find(same) {
            return Ok(Call { name, args: [0; 6] });
        }
        if let Some(name) = OF_A_DESCRIPTOR.iter().find(same) {
            let args = [NO_FD, 0, 0, 0, 0, 0];
            return Ok(Call { name, args });
        }
        let otherwise = REFUSED_OTHERWISE.iter().find(|(known, _)| *known == name);
        if let Some((name, args)) = otherwise {
            return Ok(Call { name, args: *args });
        }
        let never = NEVER.iter().find(|(_, names)| names.contains(&name));
        Err(never.map_or(NOT_KNOWN, |(reason, _)| reason))
    }

    /// As a filter sees it; `None` if the architecture has no such call.
    pub fn data(&self, arch: Arch) -> Option<SeccompData> {
        Some(SeccompData {
            nr: syscall::number(arch, self.name)?.0,
            arch: arch.audit(),
            ip: 0,
            args: self.args,
            ..SeccompData::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_exists_and_is_in_one_list() {
        let others = REFUSED_OTHERWISE.iter().map(|(name, _)| *name);
        let never = NEVER.iter().flat_map(|(_, names)| names.iter().copied());
        let mut names: Vec<&str> = AS_THEY_ARE.into_iter().chain(OF_A_DESCRIPTOR).collect();
        names.extend(others.chain(never));
        for name in &names {
            assert!(syscall::is_known(name), "{name}");
        }
        let len = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), len);
    }

    #[test]
    fn what_ends_or_blocks_is_refused_with_its_reason() {
        for name in ["exit_group", "execve", "fork", "munmap", "reboot"] {
            assert_ne!(Call::find(name), Err(NOT_KNOWN), "{name}");
            assert!(Call::find(name).is_err(), "{name}");
        }
        assert_eq!(Call::find("keyctl"), Err(NOT_KNOWN));
    }
}
