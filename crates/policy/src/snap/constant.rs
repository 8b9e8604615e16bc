//! The constants that `snap-seccomp` knows, and their values. It has no others, whatever the kernel's headers have.

use tamis_abi::{Arch, consts};

/// The families of sockets, without `AF_` or `PF_` before them.
#[rustfmt::skip]
const FAMILIES: [&str; 41] = [
    "ALG", "APPLETALK", "ASH", "ATMPVC", "AX25", "BLUETOOTH", "BRIDGE", "CAIF", "CAN", "CONN", "ECONET", "IB",
    "IEEE802154", "INET", "INET6", "IPX", "IRDA", "ISDN", "IUCV", "KEY", "LLC", "LOCAL", "MPLS", "NETBEUI",
    "NETLINK", "NETROM", "NFC", "PACKET", "PHONET", "PPPOX", "QIPCRTR", "RDS", "ROSE", "RXRPC", "SECURITY",
    "SNA", "TIPC", "UNIX", "VSOCK", "WANPIPE", "X25",
];

/// The other names.
#[rustfmt::skip]
const OTHERS: [&str; 127] = [
    "CLONE_NEWIPC", "CLONE_NEWNET", "CLONE_NEWNS", "CLONE_NEWPID", "CLONE_NEWUSER", "CLONE_NEWUTS",
    "NETLINK_AUDIT", "NETLINK_CONNECTOR", "NETLINK_CRYPTO", "NETLINK_DNRTMSG", "NETLINK_ECRYPTFS",
    "NETLINK_FIB_LOOKUP", "NETLINK_FIREWALL", "NETLINK_GENERIC", "NETLINK_INET_DIAG", "NETLINK_IP6_FW",
    "NETLINK_ISCSI", "NETLINK_KOBJECT_UEVENT", "NETLINK_NETFILTER", "NETLINK_NFLOG", "NETLINK_RDMA",
    "NETLINK_ROUTE", "NETLINK_SCSITRANSPORT", "NETLINK_SELINUX", "NETLINK_SOCK_DIAG", "NETLINK_USERSOCK",
    "NETLINK_XFRM", "PRIO_PGRP", "PRIO_PROCESS", "PRIO_USER", "PR_CAPBSET_DROP", "PR_CAPBSET_READ",
    "PR_CAP_AMBIENT", "PR_CAP_AMBIENT_CLEAR_ALL", "PR_CAP_AMBIENT_IS_SET", "PR_CAP_AMBIENT_LOWER",
    "PR_CAP_AMBIENT_RAISE", "PR_GET_CHILD_SUBREAPER", "PR_GET_DUMPABLE", "PR_GET_ENDIAN", "PR_GET_FPEMU",
    "PR_GET_FPEXC", "PR_GET_KEEPCAPS", "PR_GET_NAME", "PR_GET_NO_NEW_PRIVS", "PR_GET_PDEATHSIG",
    "PR_GET_SECCOMP", "PR_GET_SECUREBITS", "PR_GET_THP_DISABLE", "PR_GET_TID_ADDRESS", "PR_GET_TIMERSLACK",
    "PR_GET_TIMING", "PR_GET_TSC", "PR_GET_UNALIGN", "PR_MCE_KILL", "PR_MCE_KILL_GET",
    "PR_MPX_DISABLE_MANAGEMENT", "PR_MPX_ENABLE_MANAGEMENT", "PR_SET_CHILD_SUBREAPER", "PR_SET_DUMPABLE",
    "PR_SET_ENDIAN", "PR_SET_FPEMU", "PR_SET_FPEXC", "PR_SET_KEEPCAPS", "PR_SET_MM", "PR_SET_MM_ARG_END",
    "PR_SET_MM_ARG_START", "PR_SET_MM_AUXV", "PR_SET_MM_BRK", "PR_SET_MM_END_CODE", "PR_SET_MM_END_DATA",
    "PR_SET_MM_ENV_END", "PR_SET_MM_ENV_START", "PR_SET_MM_EXE_FILE", "PR_SET_MM_START_BRK",
    "PR_SET_MM_START_CODE", "PR_SET_MM_START_DATA", "PR_SET_MM_START_STACK", "PR_SET_NAME",
    "PR_SET_NO_NEW_PRIVS", "PR_SET_PDEATHSIG", "PR_SET_PTRACER", "PR_SET_SECCOMP", "PR_SET_SECUREBITS",
    "PR_SET_THP_DISABLE", "PR_SET_TIMERSLACK", "PR_SET_TIMING", "PR_SET_TSC", "PR_SET_UNALIGN",
    "PR_TASK_PERF_EVENTS_DISABLE", "PR_TASK_PERF_EVENTS_ENABLE", "PTRACE_ATTACH", "PTRACE_CONT",
    "PTRACE_DETACH", "PTRACE_GETFPREGS", "PTRACE_GETFPXREGS", "PTRACE_GETREGS", "PTRACE_GETREGSET",
    "PTRACE_PEEKDATA", "PTRACE_PEEKUSER", "PTRACE_PEEKUSR", "Q_GETFMT", "Q_GETINFO", "Q_GETQUOTA", "Q_QUOTAOFF",
    "Q_QUOTAON", "Q_SETINFO", "Q_SETQUOTA", "Q_SYNC", "Q_XGETQSTAT", "Q_XGETQUOTA", "Q_XQUOTAOFF", "Q_XQUOTAON",
    "Q_XQUOTARM", "Q_XSETQLIM", "SOCK_DGRAM", "SOCK_PACKET", "SOCK_RAW", "SOCK_RDM", "SOCK_SEQPACKET",
    "SOCK_STREAM", "S_IFBLK", "S_IFCHR", "S_IFIFO", "S_IFREG", "S_IFSOCK", "TIOCSTI",
];

/// Names that the kernel's headers for programs lack, or lack on some architectures. snapd 2.57 defines the requests of
/// ptrace itself.
const OWN: [(&str, u64); 12] = [
    ("AF_CONN", 123),
    ("PTRACE_GETFPREGS", 14),
    ("PTRACE_GETFPXREGS", 18),
    ("PTRACE_GETREGS", 12),
    ("PTRACE_PEEKUSER", 3),
    ("PTRACE_PEEKUSR", 3),
    ("Q_XGETQSTAT", 0x5805),
    ("Q_XGETQUOTA", 0x5803),
    ("Q_XQUOTAOFF", 0x5802),
    ("Q_XQUOTAON", 0x5801),
    ("Q_XQUOTARM", 0x5806),
    ("Q_XSETQLIM", 0x5804),
];

/// All names.
pub(super) fn names() -> impl Iterator<Item = String> {
    let families = FAMILIES
        .iter()
        .flat_map(|family| [format!("AF_{family}"), format!("PF_{family}")]);
    families.chain(OTHERS.iter().map(|name| (*name).to_owned()))
}

/// The value of a name; `None` for an unknown one.
pub(super) fn value(arch: Arch, name: &str) -> Option<u64> {
    let family = name
        .strip_prefix("AF_")
        .or_else(|| name.strip_prefix("PF_"));
    let name = match family.filter(|family| FAMILIES.contains(family)) {
        Some(family) => format!("AF_{family}"),
        None => (*OTHERS.iter().find(|known| **known == name)?).to_owned(),
    };
    let own = OWN.iter().find(|(known, _)| *known == name);
    consts::value(arch, &name).or(own.map(|(_, value)| *value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_value_on_every_architecture_of_snaps() {
        let arches = [
            Arch::X86_64,
            Arch::X86,
            Arch::Aarch64,
            Arch::Arm,
            Arch::Ppc64le,
            Arch::Riscv64,
            Arch::S390x,
        ];
        for arch in arches {
            for name in names() {
                assert!(value(arch, &name).is_some(), "{name} on {arch}");
            }
        }
        assert_eq!(value(Arch::X86_64, "PF_UNIX"), Some(1));
        assert_eq!(value(Arch::X86_64, "CLONE_NEWTIME"), None);
    }
}
