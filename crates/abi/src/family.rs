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
    /// The prefix of the other names; none if empty.
    prefix: &'static str,
    /// The prefixes of other families' names that share the prefix.
    except: &'static [&'static str],
    /// Values are made of several constants, each a bit.
    is_flags: bool,
    /// The lowest bits that are one number beside the flags, and the names of its values.
    number: Option<(u64, &'static Family)>,
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
        number: None,
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
        number: None,
    }
}

/// Flags above a number in the lowest bits.
const fn beside(bits: u64, number: &'static Family, flags: Family) -> Family {
    Family {
        number: Some((bits, number)),
        ..flags
    }
}

const ADDRESS: Family = values(
    &["AF_UNSPEC", "AF_UNIX", "AF_NETLINK"],
    "AF_",
    &["AF_VSOCK_"],
);
const SOCKET_TYPE: Family = beside(
    0xf,
    &values(
        &[
            "SOCK_STREAM",
            "SOCK_DGRAM",
            "SOCK_RAW",
            "SOCK_RDM",
            "SOCK_SEQPACKET",
            "SOCK_DCCP",
            "SOCK_PACKET",
            "SOCK_TYPE_MASK",
        ],
        "",
        &[],
    ),
    SOCKET_FLAGS,
);
const SOCKET_FLAGS: Family = flags(&["SOCK_NONBLOCK", "SOCK_CLOEXEC"], "", &[]);
const OPEN: Family = beside(
    3,
    &values(&["O_WRONLY", "O_RDWR", "O_ACCMODE"], "", &[]),
    OPEN_FLAGS,
);
const OPEN_FLAGS: Family = flags(
    &[
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
const MAPPING: Family = beside(
    0xf,
    &values(
        &[
            "MAP_SHARED",
            "MAP_PRIVATE",
            "MAP_SHARED_VALIDATE",
            "MAP_TYPE",
        ],
        "",
        &[],
    ),
    MAPPING_FLAGS,
);
const MAPPING_FLAGS: Family = flags(
    &[
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
/// Flags of `clone3` only have no place in 32 bits. `CLONE_NEWTIME` is a bit of the signal's number, and has its name
/// in masks only, such as those of all namespaces.
const CLONING: Family = beside(
    0xff,
    &SIGNAL,
    flags(
        &[],
        "CLONE_",
        &["CLONE_ARGS_", "CLONE_CLEAR_SIGHAND", "CLONE_INTO_CGROUP"],
    ),
);
const SHARING: Family = flags(
    &[
        "CLONE_NEWTIME",
        "CLONE_VM",
        "CLONE_FS",
        "CLONE_FILES",
        "CLONE_SIGHAND",
        "CLONE_THREAD",
        "CLONE_SYSVSEM",
    ],
    "CLONE_NEW",
    &[],
);
const NAMESPACES: Family = flags(&[], "CLONE_NEW", &[]);
const SIGNAL: Family = values(
    &["SIGABRT", "SIGCHLD", "SIGIO", "SIGSYS"],
    "SIG",
    &["SIG_", "SIGEV_", "SIGSTKSZ"],
);
const CLOCK: Family = values(
    &[],
    "CLOCK_",
    &["CLOCK_EXT", "CLOCK_DEFAULT", "CLOCK_INT", "CLOCK_TX"],
);
const RESOURCE: Family = values(&["RLIMIT_NOFILE"], "RLIMIT_", &["RLIMIT_NLIMITS"]);
/// Messages of System V have names with this prefix, too.
const MESSAGE: Family = flags(
    &["MSG_DONTROUTE", "MSG_DONTWAIT", "MSG_NOSIGNAL"],
    "MSG_",
    &[
        "MSG_COPY",
        "MSG_EXCEPT",
        "MSG_INFO",
        "MSG_NOERROR",
        "MSG_STAT",
    ],
);
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
        "PR_RISCV_SCOPE_",
        "PR_SET_PTRACER_ANY",
        "PR_SHADOW_STACK_",
        "PR_TIMER_CREATE_RESTORE_IDS_",
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
    (&["accept4"], "flags", SOCKET_FLAGS),
    (&["fcntl", "fcntl64"], "cmd", FILE_CONTROL),
    (&["flock"], "cmd", flags(&[], "LOCK_", &[])),
    (&["prctl"], "option", PROCESS),
    (
        &["arch_prctl"],
        "option",
        values(&[], "ARCH_", &["ARCH_ENABLE", "ARCH_XCOMP_"]),
    ),
    (
        &["personality"],
        "personality",
        values(&["UNAME26"], "PER_", &[]),
    ),
    (&["clone"], "clone_flags", CLONING),
    (&["unshare"], "unshare_flags", SHARING),
    (&["setns"], "flags", NAMESPACES),
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
    (&["open", "openat", "open_by_handle_at"], "flags", OPEN),
    (&["mq_open"], "oflag", OPEN),
    (&["dup3"], "flags", flags(&["O_CLOEXEC"], "", &[])),
    (
        &["pipe2"],
        "flags",
        flags(&["O_NONBLOCK", "O_DIRECT", "O_CLOEXEC"], "", &[]),
    ),
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
/// The prefixes of such commands, the most usual first.
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
/// let family = family::for_argument("socket", "family").unwrap();
/// assert_eq!(family.name(Arch::X86_64, 1, 32), Some("AF_UNIX"));
/// assert_eq!(family::for_argument("read", "count"), None);
/// ```
pub fn for_argument(call: &str, argument: &str) -> Option<&'static Family> {
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

/// The constants that an argument's value is made of, compared on this many bits; `None` if one of its parts has no name.
///
/// ```
/// use tamis_abi::{Arch, family};
/// let names = |call, argument, value| family::names(Arch::X86_64, call, argument, value, 32);
/// assert_eq!(names("ioctl", "cmd", 0x5401).unwrap(), ["TCGETS"]);
/// assert_eq!(names("pipe2", "flags", 0x80800).unwrap(), ["O_NONBLOCK", "O_CLOEXEC"]);
/// assert_eq!(names("accept4", "flags", 1), None);
/// ```
pub fn names(
    arch: Arch,
    call: &str,
    argument: &str,
    value: u64,
    bits: u32,
) -> Option<Vec<&'static str>> {
    if (call, argument) == ("ioctl", "cmd") {
        return ioctl(arch, value, bits).map(|name| vec![name]);
    }
    let family = for_argument(call, argument)?;
    match family.name(arch, value, bits) {
        Some(whole) => Some(vec![whole]),
        None => family
            .flags(arch, value, bits)
            .filter(|flags| !flags.is_empty()),
    }
}

impl Family {
    /// The name of a value, compared on this many bits: 16, 32 or 64.
    pub fn name(&self, arch: Arch, value: u64, bits: u32) -> Option<&'static str> {
        match self.number {
            Some((number, _)) if value & number == 0 => self.own_name(arch, value, bits),
            Some((number, names)) if value & !number == 0 => names.own_name(arch, value, bits),
            Some(_) => None,
            None => self.own_name(arch, value, bits),
        }
    }

    /// The name among the constants that don't belong to the number beside them.
    fn own_name(&self, arch: Arch, value: u64, bits: u32) -> Option<&'static str> {
        let matches = |name: &&&str| {
            consts::value(arch, name).is_some_and(|known| cut(known, bits) == Some(value))
        };
        let preferred = self.preferred.iter().find(matches).copied();
        preferred.or_else(|| shortest(arch, self.prefix, self.except, value, bits))
    }

    /// The constants that make up a value of flags: that of the number in its lowest bits, if it has one, then one of each
    /// bit, ascending. `None` if one of its parts has no name, or if values of the family aren't flags.
    ///
    /// ```
    /// use tamis_abi::{Arch, family};
    /// let types = family::for_argument("socket", "type").unwrap();
    /// let raw = types.flags(Arch::X86_64, 0x80003, 32).unwrap();
    /// assert_eq!(raw, ["SOCK_RAW", "SOCK_CLOEXEC"]);
    /// ```
    pub fn flags(&self, arch: Arch, value: u64, bits: u32) -> Option<Vec<&'static str>> {
        self.named(arch, self.parts(value), bits)
    }

    /// The parts of a value of flags: the number in its lowest bits, if it isn't 0, then each bit.
    pub fn parts(&self, value: u64) -> impl Iterator<Item = u64> + use<> {
        let number = value & self.number_bits();
        let number_part = Some(number).filter(|number| *number != 0);
        number_part.into_iter().chain(bits_of(value & !number))
    }

    /// The parts of a mask: the bits of a number that have no name together, and the constants of the others. `None` if
    /// a flag has no name. In a family without flags the name of a value would imply more than its bits.
    ///
    /// ```
    /// use tamis_abi::{Arch, family};
    /// let flags = family::for_argument("mmap", "flags").unwrap();
    /// let mask = |mask| flags.mask(Arch::X86_64, mask, 32).unwrap();
    /// assert_eq!(mask(0x13), (3, vec!["MAP_FIXED"]));
    /// assert_eq!(mask(0x1f), (0, vec!["MAP_TYPE", "MAP_FIXED"]));
    /// ```
    pub fn mask(&self, arch: Arch, mask: u64, bits: u32) -> Option<(u64, Vec<&'static str>)> {
        if !self.is_flags {
            let mut flags = self.preferred.iter().filter(|name| name.ends_with("_FLAG"));
            let flag = flags.find(|name| consts::value(arch, name) == Some(mask))?;
            return Some((0, vec![flag]));
        }
        let number = mask & self.number_bits();
        // All bits of the number may have a name as such, and one may be a flag elsewhere, as `CLONE_NEWTIME` is.
        let is_whole = number == self.number_bits();
        let whole = || self.name(arch, number, bits).filter(|_| is_whole);
        let own = || self.own_name(arch, number, bits);
        let of_number = if number == 0 {
            None
        } else {
            whole().or_else(own)
        };
        let digits = if of_number.is_none() { number } else { 0 };
        let flags = self.named(arch, bits_of(mask & !number), bits)?;
        Some((digits, of_number.into_iter().chain(flags).collect()))
    }

    /// Whether the masked bits identify a number, so that its name describes the comparison exactly.
    pub fn tells_number(&self, mask: u64, value: u64, bits: u32) -> bool {
        match (self.is_flags, self.number_bits()) {
            (true, number) => value & number == 0 || mask & number == number,
            (false, _) => mask.count_ones() > bits / 2,
        }
    }

    /// The lowest bits that are a number: one of several values, not each bit by itself. 0 if there are none.
    pub fn number_bits(&self) -> u64 {
        self.number.map_or(0, |(bits, _)| bits)
    }

    /// A name for each part of a value of flags.
    fn named(
        &self,
        arch: Arch,
        parts: impl Iterator<Item = u64>,
        bits: u32,
    ) -> Option<Vec<&'static str>> {
        let names: Option<_> = parts.map(|part| self.name(arch, part, bits)).collect();
        names.filter(|_| self.is_flags)
    }
}

/// The bits that are set, ascending.
fn bits_of(value: u64) -> impl Iterator<Item = u64> {
    (0..64)
        .map(|bit| 1 << bit)
        .filter(move |bit| value & bit != 0)
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
mod tests;
