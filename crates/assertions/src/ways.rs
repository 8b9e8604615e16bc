//! Other ways to the effect of a call: data with reasons.
//!
//! A row concerns a check of a member's calls if some of them satisfy the member's condition; the other members are then
//! other ways to the same effect. Rows with conditions come first: if one covers all calls of a check, rows without
//! conditions don't concern it.

use tamis_policy::tamis::ast::{Condition, ConditionKind, Operand, OperandName};

/// Calls with the same effect.
pub(crate) struct Row {
    /// The effect: completes "it can …".
    pub(crate) effect: &'static str,
    /// Each of them has the effect.
    pub(crate) members: &'static [Member],
    /// Calls with this effect among others: they are ways for a check of a member, but no member is one for theirs.
    pub(crate) more: &'static [Member],
}

impl Row {
    /// Whether it concerns only calls that satisfy a condition.
    pub(crate) fn has_conditions(&self) -> bool {
        self.members.iter().any(|member| member.when.is_some())
    }
}

/// A member of a row.
pub(crate) struct Member {
    /// The call.
    pub(crate) call: &'static str,
    /// The condition under which it has the effect, in the language of policies.
    pub(crate) when: Option<&'static str>,
    /// The meaning of a check's own condition for it.
    pub(crate) arguments: Arguments,
    /// The part that a filter can't see, or the way to the effect.
    pub(crate) reason: &'static str,
}

/// The meaning of the condition of a check for another member of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// It has arguments of the same names and meaning.
    Same,
    /// The same, but it lacks an argument or counts it in another unit; a condition on that one is ignored.
    Nearly,
    /// Its arguments are in memory: it has the effect for any values that a filter sees.
    Memory,
    /// It has no such arguments, so it isn't a way if the check has a condition.
    Other,
}

const fn same(call: &'static str) -> Member {
    Member {
        call,
        when: None,
        arguments: Arguments::Same,
        reason: "",
    }
}

const fn nearly(call: &'static str, reason: &'static str) -> Member {
    Member {
        arguments: Arguments::Nearly,
        reason,
        ..same(call)
    }
}

const fn other(call: &'static str) -> Member {
    Member {
        arguments: Arguments::Other,
        ..same(call)
    }
}

const fn memory(call: &'static str, reason: &'static str) -> Member {
    Member {
        arguments: Arguments::Memory,
        reason,
        ..same(call)
    }
}

const fn when(call: &'static str, when: &'static str) -> Member {
    Member {
        when: Some(when),
        ..same(call)
    }
}

const fn when_because(call: &'static str, condition: &'static str, reason: &'static str) -> Member {
    Member {
        reason,
        ..when(call, condition)
    }
}

/// `clone3` has its flags in `struct clone_args`.
const CLONE3: Member = memory("clone3", "its flags are in memory");

macro_rules! namespaces {
    ($flag:literal, $effect:literal) => {
        Row {
            effect: $effect,
            members: &[
                when("clone", concat!("clone_flags & ", $flag, " != 0")),
                when("unshare", concat!("unshare_flags & ", $flag, " != 0")),
            ],
            more: &[CLONE3],
        }
    };
}

/// All rows, those with conditions first.
pub(crate) const ALL: &[Row] = &[
    namespaces!("CLONE_NEWUSER", "make user namespaces"),
    namespaces!("CLONE_NEWNS", "make mount namespaces"),
    namespaces!("CLONE_NEWNET", "make network namespaces"),
    namespaces!("CLONE_NEWPID", "make PID namespaces"),
    namespaces!("CLONE_NEWIPC", "make IPC namespaces"),
    namespaces!("CLONE_NEWUTS", "make UTS namespaces"),
    namespaces!("CLONE_NEWCGROUP", "make cgroup namespaces"),
    Row {
        effect: "make time namespaces",
        members: &[when("unshare", "unshare_flags & CLONE_NEWTIME != 0")],
        more: &[CLONE3],
    },
    Row {
        effect: "install filters",
        members: &[when("prctl", "option == PR_SET_SECCOMP"), other("seccomp")],
        more: &[],
    },
    Row {
        effect: "make memory writable and executable",
        members: &[
            when(
                "mprotect",
                "prot & (PROT_WRITE | PROT_EXEC) == PROT_WRITE | PROT_EXEC",
            ),
            when(
                "pkey_mprotect",
                "prot & (PROT_WRITE | PROT_EXEC) == PROT_WRITE | PROT_EXEC",
            ),
            when(
                "mmap",
                "prot & (PROT_WRITE | PROT_EXEC) == PROT_WRITE | PROT_EXEC",
            ),
            when(
                "mmap2",
                "prot & (PROT_WRITE | PROT_EXEC) == PROT_WRITE | PROT_EXEC",
            ),
        ],
        more: &[
            when_because(
                "shmat",
                "shmflg & SHM_EXEC != 0",
                "SHM_EXEC maps a segment executable",
            ),
            when_because(
                "personality",
                "personality & 0x400000 != 0 && personality != 0xffffffff",
                "READ_IMPLIES_EXEC makes readable memory executable",
            ),
        ],
    },
    Row {
        effect: "make memory executable",
        members: &[
            when("mprotect", "prot & PROT_EXEC != 0"),
            when("pkey_mprotect", "prot & PROT_EXEC != 0"),
        ],
        more: &[when_because(
            "personality",
            "personality & 0x400000 != 0 && personality != 0xffffffff",
            "READ_IMPLIES_EXEC makes readable memory executable",
        )],
    },
    Row {
        effect: "run the file of a descriptor",
        members: &[when("execveat", "flags & AT_EMPTY_PATH != 0")],
        more: &[Member {
            reason: "/proc/self/fd has the files of descriptors by path",
            ..other("execve")
        }],
    },
    Row {
        effect: "make pairs of sockets",
        members: &[
            when("socket", "family in {AF_UNIX, AF_TIPC}"),
            when("socketpair", "family in {AF_UNIX, AF_TIPC}"),
        ],
        more: &[],
    },
    Row {
        effect: "open files",
        members: &[
            same("open"),
            same("openat"),
            memory("openat2", "its flags are in memory"),
        ],
        more: &[same("open_by_handle_at"), other("creat")],
    },
    Row {
        effect: "run programs",
        members: &[same("execve"), same("execveat")],
        more: &[],
    },
    Row {
        effect: "make processes",
        members: &[same("clone"), CLONE3, other("fork"), other("vfork")],
        more: &[],
    },
    Row {
        effect: "send data",
        members: &[
            same("sendto"),
            same("sendmsg"),
            same("sendmmsg"),
            other("send"),
        ],
        more: &[],
    },
    Row {
        effect: "receive data",
        members: &[
            same("recvfrom"),
            same("recvmsg"),
            same("recvmmsg"),
            other("recv"),
        ],
        more: &[],
    },
    Row {
        effect: "write to descriptors",
        members: &[
            same("write"),
            same("writev"),
            same("pwrite64"),
            same("pwritev"),
            same("pwritev2"),
        ],
        more: &[
            same("sendto"),
            same("sendmsg"),
            same("sendmmsg"),
            other("sendfile"),
            other("splice"),
            other("vmsplice"),
            other("copy_file_range"),
        ],
    },
    Row {
        effect: "read from descriptors",
        members: &[
            same("read"),
            same("readv"),
            same("pread64"),
            same("preadv"),
            same("preadv2"),
        ],
        more: &[
            same("recvfrom"),
            same("recvmsg"),
            same("recvmmsg"),
            other("sendfile"),
            other("splice"),
            other("copy_file_range"),
        ],
    },
    Row {
        effect: "accept connections",
        members: &[same("accept"), same("accept4")],
        more: &[],
    },
    Row {
        effect: "mount file systems",
        members: &[other("mount")],
        more: &[other("move_mount"), other("fsmount")],
    },
    Row {
        effect: "unmount file systems",
        members: &[same("umount"), same("umount2")],
        more: &[],
    },
    Row {
        effect: "write the memory of other processes",
        members: &[other("process_vm_writev")],
        more: &[other("ptrace")],
    },
    Row {
        effect: "read the memory of other processes",
        members: &[other("process_vm_readv")],
        more: &[other("ptrace")],
    },
    Row {
        effect: "control other processes",
        members: &[other("ptrace")],
        more: &[other("process_vm_writev"), other("pidfd_getfd")],
    },
    Row {
        effect: "take descriptors of other processes",
        members: &[other("pidfd_getfd")],
        more: &[other("ptrace")],
    },
    Row {
        effect: "map files and memory",
        members: &[
            nearly("mmap", "its offset counts bytes"),
            nearly("mmap2", "its offset counts pages"),
        ],
        more: &[],
    },
    Row {
        effect: "change the protection of memory",
        members: &[same("mprotect"), same("pkey_mprotect")],
        more: &[],
    },
    Row {
        effect: "load modules",
        members: &[other("init_module"), other("finit_module")],
        more: &[],
    },
    Row {
        effect: "load kernels",
        members: &[other("kexec_load"), other("kexec_file_load")],
        more: &[],
    },
    Row {
        effect: "create device files",
        members: &[same("mknod"), same("mknodat")],
        more: &[],
    },
    Row {
        effect: "change modes of files",
        members: &[
            same("chmod"),
            same("fchmodat"),
            same("fchmodat2"),
            same("fchmod"),
        ],
        more: &[],
    },
    Row {
        effect: "change owners of files",
        members: &[
            same("chown"),
            same("fchownat"),
            same("fchown"),
            same("lchown"),
        ],
        more: &[],
    },
    Row {
        effect: "remove files",
        members: &[same("unlink"), same("unlinkat")],
        more: &[],
    },
    Row {
        effect: "rename files",
        members: &[same("rename"), same("renameat"), same("renameat2")],
        more: &[],
    },
    Row {
        effect: "make links",
        members: &[same("link"), same("linkat")],
        more: &[],
    },
    Row {
        effect: "make symbolic links",
        members: &[same("symlink"), same("symlinkat")],
        more: &[],
    },
    Row {
        effect: "make directories",
        members: &[same("mkdir"), same("mkdirat")],
        more: &[],
    },
    Row {
        effect: "signal processes",
        members: &[
            same("kill"),
            same("tkill"),
            same("tgkill"),
            same("rt_sigqueueinfo"),
            same("rt_tgsigqueueinfo"),
        ],
        more: &[same("pidfd_send_signal")],
    },
    Row {
        effect: "set the clock",
        members: &[same("settimeofday"), same("clock_settime")],
        more: &[other("adjtimex"), other("clock_adjtime")],
    },
    Row {
        effect: "set limits",
        members: &[other("setrlimit")],
        more: &[other("prlimit64")],
    },
];

/// The names that two calls have for the same flags.
const FLAGS: [(&str, &str); 2] = [("clone", "clone_flags"), ("unshare", "unshare_flags")];

/// A condition with the names that another call has for the same arguments.
pub(crate) fn renamed(condition: &Condition, call: &str) -> Condition {
    let operand = |operand: &Operand| {
        let mut operand = operand.clone();
        let own = FLAGS.iter().find(|(own, _)| *own == call);
        if let (OperandName::Named(name), Some((_, flags))) = (&mut operand.name, own)
            && FLAGS.iter().any(|(_, known)| known == name)
        {
            *name = (*flags).to_owned();
        }
        operand
    };
    let each = |parts: &[Condition]| parts.iter().map(|part| renamed(part, call)).collect();
    let kind = match &condition.kind {
        ConditionKind::Literal(value) => ConditionKind::Literal(*value),
        ConditionKind::Not(inner) => ConditionKind::Not(Box::new(renamed(inner, call))),
        ConditionKind::All(parts) => ConditionKind::All(each(parts)),
        ConditionKind::Any(parts) => ConditionKind::Any(each(parts)),
        ConditionKind::Compare(left, mask, op, value) => {
            ConditionKind::Compare(operand(left), mask.clone(), *op, value.clone())
        }
        ConditionKind::Between(left, op, right) => {
            ConditionKind::Between(operand(left), *op, operand(right))
        }
        ConditionKind::In(left, mask, set) => {
            ConditionKind::In(operand(left), mask.clone(), set.clone())
        }
    };
    Condition {
        kind,
        span: condition.span,
    }
}

/// Suffixes of names that differ in the width of times, sizes or identities alone.
const WIDTHS: [&str; 4] = ["_time64", "_time32", "64", "32"];

/// The name without a suffix for the width.
pub(crate) fn without_width(call: &str) -> &str {
    WIDTHS
        .iter()
        .find_map(|suffix| call.strip_suffix(suffix))
        .unwrap_or(call)
}

/// Operations of io_uring, with the calls that they are: `include/uapi/linux/io_uring.h`.
const OPERATIONS: [(&str, &[&str]); 33] = [
    ("IORING_OP_READV", &["read", "readv", "preadv", "preadv2"]),
    (
        "IORING_OP_WRITEV",
        &["write", "writev", "pwritev", "pwritev2"],
    ),
    ("IORING_OP_READ", &["pread64"]),
    ("IORING_OP_WRITE", &["pwrite64"]),
    ("IORING_OP_FSYNC", &["fsync", "fdatasync"]),
    ("IORING_OP_SYNC_FILE_RANGE", &["sync_file_range"]),
    ("IORING_OP_SENDMSG", &["sendmsg", "sendmmsg"]),
    ("IORING_OP_RECVMSG", &["recvmsg", "recvmmsg"]),
    ("IORING_OP_SEND", &["sendto", "send"]),
    ("IORING_OP_RECV", &["recvfrom", "recv"]),
    ("IORING_OP_ACCEPT", &["accept", "accept4"]),
    ("IORING_OP_CONNECT", &["connect"]),
    ("IORING_OP_FALLOCATE", &["fallocate"]),
    ("IORING_OP_OPENAT", &["open", "openat", "creat"]),
    ("IORING_OP_OPENAT2", &["openat2"]),
    ("IORING_OP_CLOSE", &["close"]),
    ("IORING_OP_STATX", &["statx"]),
    ("IORING_OP_FADVISE", &["fadvise64"]),
    ("IORING_OP_MADVISE", &["madvise"]),
    ("IORING_OP_EPOLL_CTL", &["epoll_ctl"]),
    ("IORING_OP_SPLICE", &["splice"]),
    ("IORING_OP_TEE", &["tee"]),
    ("IORING_OP_SHUTDOWN", &["shutdown"]),
    ("IORING_OP_RENAMEAT", &["rename", "renameat", "renameat2"]),
    ("IORING_OP_UNLINKAT", &["unlink", "unlinkat", "rmdir"]),
    ("IORING_OP_MKDIRAT", &["mkdir", "mkdirat"]),
    ("IORING_OP_SYMLINKAT", &["symlink", "symlinkat"]),
    ("IORING_OP_LINKAT", &["link", "linkat"]),
    ("IORING_OP_SETXATTR", &["setxattr", "fsetxattr"]),
    ("IORING_OP_SOCKET", &["socket"]),
    ("IORING_OP_BIND", &["bind"]),
    ("IORING_OP_LISTEN", &["listen"]),
    ("IORING_OP_FTRUNCATE", &["ftruncate"]),
];

/// The call that makes a ring. A ring with a thread of the kernel that polls needs no other.
pub(crate) const RING: &str = "io_uring_setup";

/// The operation of a ring that is a call.
pub(crate) fn operation(call: &str) -> Option<&'static str> {
    OPERATIONS
        .iter()
        .find(|(_, calls)| calls.contains(&call))
        .map(|(operation, _)| *operation)
}

#[cfg(test)]
mod tests {
    use tamis_abi::syscall;

    use super::*;

    #[test]
    fn every_name_is_a_call() {
        let members = ALL
            .iter()
            .flat_map(|row| row.members.iter().chain(row.more));
        let calls = members.map(|member| member.call);
        let ring = OPERATIONS.iter().flat_map(|(_, calls)| *calls).copied();
        for call in calls.chain(ring).chain([RING]) {
            assert!(syscall::is_known(call), "{call}");
        }
    }

    #[test]
    fn rows_with_conditions_come_first() {
        assert!(ALL.is_sorted_by_key(|row| !row.has_conditions()));
    }
}
