//! The symbolic constants of an argument, and the names of its values.
//!
//! The kernel's headers have several names for one number; the argument selects the name: 1 is `AF_UNIX` as a
//! socket's family and `SIGHUP` as a signal. The table covers the arguments that filters compare. If a value
//! has several names in its family, the usual one is returned.

use crate::arch::Arch;
use crate::consts;

/// The constants that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Names that go before all others, the most usual first.
    preferred: &'static [&'static str],
    /// What the other names begin with; none if empty.
    prefix: &'static str,
    /// What names of other families begin with that share the prefix.
    except: &'static [&'static str],
    /// Values are made of several constants, each a bit.
    is_flags: bool,
}

const fn values(
    preferred: &'static [&'static str],
    prefix: &'static str,
    except: &'static [&'static str],
) -> Family {
    Family {
        preferred,
        prefix,
        except,
        is_flags: false,
    }
}

const fn flags(
    preferred: &'static [&'static str],
    prefix: &'static str,
    except: &'static [&'static str],
) -> Family {
    Family {
        preferred,
        prefix,
        except,
        is_flags: true,
    }
}

const ADDRESS: Family = values(
    &["AF_UNSPEC", "AF_UNIX", "AF_NETLINK"],
    "AF_",
    &["AF_VSOCK_"],
);
const SOCKET_TYPE: Family = flags(
    &[
        "SOCK_STREAM",
        "SOCK_DGRAM",
        "SOCK_RAW",
        "SOCK_SEQPACKET",
        "SOCK_NONBLOCK",
        "SOCK_CLOEXEC",
        "SOCK_TYPE_MASK",
    ],
    "",
    &[],
);
const OPEN: Family = flags(
    &[
        "O_WRONLY",
        "O_RDWR",
        "O_CREAT",
        "O_EXCL",
        "O_NOCTTY",
        "O_TRUNC",
        "O_APPEND",
        "O_NONBLOCK",
        "O_DIRECT",
        "O_LARGEFILE",
        "O_DIRECTORY",
        "O_NOFOLLOW",
        "O_NOATIME",
        "O_CLOEXEC",
        "O_DSYNC",
        "O_PATH",
    ],
    "",
    &[],
);
const PROTECTION: Family = flags(&["PROT_READ", "PROT_WRITE", "PROT_EXEC"], "PROT_", &[]);
const MAPPING: Family = flags(
    &[
        "MAP_SHARED",
        "MAP_PRIVATE",
        "MAP_FIXED",
        "MAP_ANONYMOUS",
        "MAP_GROWSDOWN",
        "MAP_DENYWRITE",
        "MAP_LOCKED",
        "MAP_NORESERVE",
        "MAP_POPULATE",
        "MAP_NONBLOCK",
        "MAP_STACK",
        "MAP_HUGETLB",
        "MAP_SYNC",
        "MAP_FIXED_NOREPLACE",
    ],
    "",
    &[],
);
const CLONING: Family = flags(&[], "CLONE_", &["CLONE_ARGS_"]);
const SIGNAL: Family = values(
    &["SIGABRT", "SIGCHLD", "SIGIO", "SIGSYS"],
    "SIG",
    &["SIG_", "SIGEV_"],
);
const CLOCK: Family = values(
    &[],
    "CLOCK_",
    &["CLOCK_EXT", "CLOCK_DEFAULT", "CLOCK_INT", "CLOCK_TX"],
);
const RESOURCE: Family = values(&["RLIMIT_NOFILE"], "RLIMIT_", &["RLIMIT_NLIMITS"]);
const MESSAGE: Family = flags(&["MSG_DONTWAIT", "MSG_NOSIGNAL"], "MSG_", &[]);
const FILE_CONTROL: Family = values(
    &["F_DUPFD", "F_GETFD", "F_SETFD", "F_GETFL", "F_SETFL"],
    "F_",
    &[
        "F_RD", "F_WR", "F_UN", "F_EX", "F_SH", "F_LOCK", "F_TLOCK", "F_ULOCK", "F_TEST", "F_OK",
        "F_SEAL_", "F_OWNER_",
    ],
);
const PROCESS: Family = values(
    &[
        "PR_SET_PDEATHSIG",
        "PR_GET_PDEATHSIG",
        "PR_SET_NAME",
        "PR_SET_MM",
        "PR_SET_PTRACER",
    ],
    "PR_",
    &[
        "PR_SET_MM_",
        "PR_CAP_AMBIENT_",
        "PR_SCHED_CORE_",
        "PR_SPEC_",
        "PR_TAGGED_",
        "PR_MTE_",
        "PR_SVE_",
        "PR_SME_",
        "PR_FP_",
        "PR_UNALIGN_",
        "PR_FPEMU_",
        "PR_TIMING_",
        "PR_ENDIAN_",
        "PR_TSC_",
        "PR_MCE_KILL_",
        "PR_SYS_DISPATCH_",
        "PR_PAC_AP",
        "PR_RISCV_V_VSTATE",
        "PR_MDWE_",
        "PR_PPC_DEXCR_",
        "PR_FUTEX_HASH_",
        "PR_SET_VMA_",
        "PR_RISCV_CTX",
    ],
);
const TRACING: Family = values(
    &[
        "PTRACE_TRACEME",
        "PTRACE_CONT",
        "PTRACE_GETREGS",
        "PTRACE_SETREGS",
    ],
    "PTRACE_",
    &[
        "PTRACE_O_",
        "PTRACE_EVENT",
        "PTRACE_SYSCALL_INFO",
        "PTRACE_PEEKSIGINFO_",
    ],
);
const FUTEX: Family = values(
    &[
        "FUTEX_WAIT",
        "FUTEX_WAKE",
        "FUTEX_FD",
        "FUTEX_REQUEUE",
        "FUTEX_CMP_REQUEUE",
        "FUTEX_WAKE_OP",
        "FUTEX_LOCK_PI",
        "FUTEX_UNLOCK_PI",
        "FUTEX_TRYLOCK_PI",
        "FUTEX_WAIT_BITSET",
        "FUTEX_WAKE_BITSET",
        "FUTEX_WAIT_REQUEUE_PI",
        "FUTEX_CMP_REQUEUE_PI",
        "FUTEX_LOCK_PI2",
        "FUTEX_WAIT_PRIVATE",
        "FUTEX_WAKE_PRIVATE",
        "FUTEX_REQUEUE_PRIVATE",
        "FUTEX_CMP_REQUEUE_PRIVATE",
        "FUTEX_WAKE_OP_PRIVATE",
        "FUTEX_LOCK_PI_PRIVATE",
        "FUTEX_UNLOCK_PI_PRIVATE",
        "FUTEX_TRYLOCK_PI_PRIVATE",
        "FUTEX_WAIT_BITSET_PRIVATE",
        "FUTEX_WAKE_BITSET_PRIVATE",
        "FUTEX_WAIT_REQUEUE_PI_PRIVATE",
        "FUTEX_CMP_REQUEUE_PI_PRIVATE",
        "FUTEX_LOCK_PI2_PRIVATE",
        "FUTEX_PRIVATE_FLAG",
        "FUTEX_CLOCK_REALTIME",
    ],
    "",
    &[],
);
const AT: Family = flags(
    &[
        "AT_SYMLINK_NOFOLLOW",
        "AT_SYMLINK_FOLLOW",
        "AT_EMPTY_PATH",
        "AT_NO_AUTOMOUNT",
    ],
    "",
    &[],
);

/// The families, by call and argument. A call of `*` is any other call.
const TABLE: &[(&[&str], &str, Family)] = &[
    (&["socket", "socketpair"], "family", ADDRESS),
    (&["socket", "socketpair"], "type", SOCKET_TYPE),
    (&["accept4"], "flags", SOCKET_TYPE),
    (&["fcntl", "fcntl64"], "cmd", FILE_CONTROL),
    (&["flock"], "cmd", flags(&[], "LOCK_", &[])),
    (&["prctl"], "option", PROCESS),
    (
        &["arch_prctl"],
        "option",
        values(&[], "ARCH_", &["ARCH_ENABLE"]),
    ),
    (
        &["personality"],
        "personality",
        values(&["UNAME26"], "PER_", &[]),
    ),
    (&["clone"], "clone_flags", CLONING),
    (&["unshare"], "unshare_flags", CLONING),
    (&["setns"], "flags", CLONING),
    (
        &["mmap", "mmap2", "mprotect", "pkey_mprotect"],
        "prot",
        PROTECTION,
    ),
    (&["mmap", "mmap2"], "flags", MAPPING),
    (&["mremap"], "flags", flags(&[], "MREMAP_", &[])),
    (
        &["msync"],
        "flags",
        flags(&["MS_ASYNC", "MS_INVALIDATE", "MS_SYNC"], "", &[]),
    ),
    (
        &["mount"],
        "flags",
        flags(
            &[
                "MS_RDONLY",
                "MS_NOSUID",
                "MS_NODEV",
                "MS_NOEXEC",
                "MS_REMOUNT",
                "MS_BIND",
                "MS_MOVE",
                "MS_REC",
            ],
            "",
            &[],
        ),
    ),
    (
        &["madvise", "process_madvise"],
        "behavior",
        values(&[], "MADV_", &[]),
    ),
    (&["open", "openat", "dup3", "pipe2"], "flags", OPEN),
    (&["ptrace"], "request", TRACING),
    (&["futex", "futex_time64"], "op", FUTEX),
    (
        &["getsockopt", "setsockopt"],
        "level",
        values(&["SOL_SOCKET", "SOL_IP", "SOL_TCP"], "SOL_", &[]),
    ),
    (&["shutdown"], "how", values(&[], "SHUT_", &[])),
    (&["lseek", "_llseek"], "whence", values(&[], "SEEK_", &[])),
    (&["epoll_ctl"], "op", values(&[], "EPOLL_CTL_", &[])),
    (
        &["epoll_create1"],
        "flags",
        flags(&["EPOLL_CLOEXEC"], "", &[]),
    ),
    (
        &["rt_sigprocmask", "sigprocmask"],
        "how",
        values(&["SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK"], "", &[]),
    ),
    (&["socketcall"], "call", values(&[], "SYS_", &[])),
    (
        &["keyctl"],
        "option",
        values(
            &["KEYCTL_GET_KEYRING_ID"],
            "KEYCTL_",
            &[
                "KEYCTL_CAPS",
                "KEYCTL_KDF",
                "KEYCTL_MOVE_",
                "KEYCTL_SUPPORTS",
            ],
        ),
    ),
    (
        &["seccomp"],
        "op",
        values(
            &[
                "SECCOMP_SET_MODE_STRICT",
                "SECCOMP_SET_MODE_FILTER",
                "SECCOMP_GET_ACTION_AVAIL",
                "SECCOMP_GET_NOTIF_SIZES",
            ],
            "",
            &[],
        ),
    ),
    (
        &["seccomp"],
        "flags",
        flags(&[], "SECCOMP_FILTER_FLAG_", &[]),
    ),
    (
        &["getpriority", "setpriority"],
        "which",
        values(&["PRIO_PROCESS", "PRIO_PGRP", "PRIO_USER"], "", &[]),
    ),
    (
        &["getrlimit", "setrlimit", "prlimit64", "ugetrlimit"],
        "resource",
        RESOURCE,
    ),
    (&["eventfd2"], "flags", flags(&[], "EFD_", &[])),
    (
        &["memfd_create"],
        "flags",
        flags(
            &["MFD_CLOEXEC", "MFD_ALLOW_SEALING", "MFD_HUGETLB"],
            "",
            &[],
        ),
    ),
    (&["fallocate"], "mode", flags(&[], "FALLOC_FL_", &[])),
    (
        &["membarrier"],
        "cmd",
        values(&[], "MEMBARRIER_CMD_", &["MEMBARRIER_CMD_FLAG"]),
    ),
    (
        &[
            "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg",
        ],
        "flags",
        MESSAGE,
    ),
    (
        &["waitid"],
        "which",
        values(&["P_ALL", "P_PID", "P_PGID", "P_PIDFD"], "", &[]),
    ),
    (
        &["inotify_init1"],
        "flags",
        flags(&["IN_CLOEXEC", "IN_NONBLOCK"], "", &[]),
    ),
    (
        &["timerfd_create"],
        "flags",
        flags(&["TFD_CLOEXEC", "TFD_NONBLOCK"], "", &[]),
    ),
    (&["timerfd_create"], "clockid", CLOCK),
    (
        &["signalfd4"],
        "flags",
        flags(&["SFD_CLOEXEC", "SFD_NONBLOCK"], "", &[]),
    ),
    (&["unlinkat"], "flag", flags(&["AT_REMOVEDIR"], "", &[])),
    (&["newfstatat", "fchownat", "name_to_handle_at"], "flag", AT),
    (&["statx", "utimensat", "linkat", "execveat"], "flags", AT),
    (&["*"], "which_clock", CLOCK),
    (&["*"], "sig", SIGNAL),
    (&["*"], "dfd", values(&["AT_FDCWD"], "", &[])),
];

/// The least number that is the command of a device or socket: smaller ones have many meanings.
const MIN_IOCTL: u64 = 0x1000;
/// What names of such commands begin with, the most usual first.
const IOCTL_PREFIXES: [&str; 17] = [
    "TC",
    "TIOC",
    "FIO",
    "SIOC",
    "KVM_",
    "TUN",
    "BLK",
    "FS_IOC_",
    "FICLONE",
    "FIDEDUPE",
    "UFFDIO_",
    "NS_GET_",
    "VHOST_",
    "VFIO_",
    "LOOP_",
    "PERF_EVENT_IOC_",
    "RND",
];

/// The family of an argument of a call, by their names.
///
/// ```
/// use tamis_abi::{Arch, family};
/// let family = family::of("socket", "family").unwrap();
/// assert_eq!(family.name(Arch::X86_64, 1, 32), Some("AF_UNIX"));
/// assert_eq!(family::of("read", "count"), None);
/// ```
pub fn of(call: &str, argument: &str) -> Option<&'static Family> {
    TABLE
        .iter()
        .find(|(calls, arg, _)| *arg == argument && (calls.contains(&call) || *calls == ["*"]))
        .map(|(_, _, family)| family)
}

/// The name of an `ioctl` command, compared on this many bits. The kernel looks at 32; as a constant of C a command may
/// be negative, so that more bits belong to another number.
///
/// ```
/// use tamis_abi::{Arch, family};
/// assert_eq!(family::ioctl(Arch::X86_64, 0x5401, 64), Some("TCGETS"));
/// assert_ne!(family::ioctl(Arch::X86_64, 0x8000_0000, 32), None);
/// assert_eq!(family::ioctl(Arch::X86_64, 0x8000_0000, 64), None);
/// ```
pub fn ioctl(arch: Arch, command: u64, bits: u32) -> Option<&'static str> {
    if command < MIN_IOCTL {
        return None;
    }
    IOCTL_PREFIXES
        .into_iter()
        .find_map(|prefix| shortest(arch, prefix, &[], command, bits))
}

impl Family {
    /// What a value is called, compared on this many bits: 16, 32 or 64.
    pub fn name(&self, arch: Arch, value: u64, bits: u32) -> Option<&'static str> {
        let matches = |name: &&&str| {
            consts::value(arch, name).is_some_and(|known| cut(known, bits) == Some(value))
        };
        let preferred = self.preferred.iter().find(matches).copied();
        preferred.or_else(|| shortest(arch, self.prefix, self.except, value, bits))
    }

    /// The constants of one bit each that make up a value of flags, ascending; `None` if one of its bits
    /// has no name, or if values of the family aren't flags.
    pub fn flags(&self, arch: Arch, value: u64, bits: u32) -> Option<Vec<&'static str>> {
        let set = (0..64).map(|bit| 1 << bit).filter(|bit| value & bit != 0);
        self.is_flags
            .then(|| set.map(|bit| self.name(arch, bit, bits)).collect())
            .flatten()
    }
}

/// The shortest name with a prefix for a value; of several the first.
fn shortest(
    arch: Arch,
    prefix: &str,
    except: &[&str],
    value: u64,
    bits: u32,
) -> Option<&'static str> {
    if prefix.is_empty() {
        return None;
    }
    consts::starting_with(arch, prefix)
        .filter(|(_, known)| cut(*known, bits) == Some(value))
        .map(|(name, _)| name)
        .filter(|name| !except.iter().any(|other| name.starts_with(other)))
        .filter(|name| {
            !["_MAX", "_MASK", "_SHIFT"]
                .iter()
                .any(|end| name.ends_with(end))
        })
        .min_by_key(|name| name.len())
}

/// A constant on this many bits, if it fits: negative ones do if they are small.
fn cut(value: u64, bits: u32) -> Option<u64> {
    let max = u64::MAX >> (64 - bits);
    let is_small_negative = value >= !(max >> 1);
    (is_small_negative || value <= max).then_some(value & max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature;

    #[test]
    fn the_table_is_about_arguments_and_constants_that_exist() {
        for (calls, argument, family) in TABLE {
            for call in calls.iter().filter(|call| **call != "*") {
                let args = signature::args(call).unwrap_or_else(|| panic!("{call}"));
                assert!(
                    args.iter().any(|arg| arg.name() == *argument),
                    "{call} {argument}"
                );
            }
            for name in family.preferred {
                assert!(consts::is_known(name), "{name}");
            }
            let has_prefix = consts::starting_with(Arch::X86_64, family.prefix)
                .next()
                .is_some();
            assert!(family.prefix.is_empty() || has_prefix, "{}", family.prefix);
        }
        for prefix in IOCTL_PREFIXES {
            assert!(
                consts::starting_with(Arch::X86_64, prefix).next().is_some(),
                "{prefix}"
            );
        }
    }

    #[test]
    fn values_have_the_usual_names() {
        let name = |call, argument, value| {
            of(call, argument).and_then(|family| family.name(Arch::X86_64, value, 32))
        };
        assert_eq!(name("socket", "family", 40), Some("AF_VSOCK"));
        assert_eq!(name("prctl", "option", 1), Some("PR_SET_PDEATHSIG"));
        assert_eq!(name("prctl", "option", 38), Some("PR_SET_NO_NEW_PRIVS"));
        assert_eq!(name("prctl", "option", 24), Some("PR_CAPBSET_DROP"));
        assert_eq!(
            name("keyctl", "option", 1),
            Some("KEYCTL_JOIN_SESSION_KEYRING")
        );
        assert_eq!(name("prlimit64", "resource", 7), Some("RLIMIT_NOFILE"));
        assert_eq!(name("fcntl", "cmd", 3), Some("F_GETFL"));
        assert_eq!(name("kill", "sig", 9), Some("SIGKILL"));
        assert_eq!(name("openat", "dfd", 0xffff_ff9c), Some("AT_FDCWD"));
        assert_eq!(name("ptrace", "request", 0x4206), Some("PTRACE_SEIZE"));
        assert_eq!(name("futex", "op", 129), Some("FUTEX_WAKE_PRIVATE"));
        assert_eq!(ioctl(Arch::X86_64, 0x5413, 32), Some("TIOCGWINSZ"));
    }

    #[test]
    fn flags_are_taken_apart() {
        let clone = of("clone", "clone_flags").unwrap();
        assert_eq!(
            clone.flags(Arch::X86_64, 0x1000_0000 | 0x2_0000, 64),
            Some(vec!["CLONE_NEWNS", "CLONE_NEWUSER"])
        );
        assert_eq!(clone.flags(Arch::X86_64, 1 << 60, 64), None);
        let domain = of("socket", "family").unwrap();
        assert_eq!(domain.flags(Arch::X86_64, 1, 32), None);
    }
}
