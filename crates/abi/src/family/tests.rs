//! Names of values, and of other numbers.

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
        let numbers = family.number.map_or(&[][..], |(_, of)| of.preferred);
        for name in family.preferred.iter().chain(numbers) {
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
        for_argument(call, argument).and_then(|family| family.name(Arch::X86_64, value, 32))
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
    let clone = for_argument("clone", "clone_flags").unwrap();
    assert_eq!(
        clone.flags(Arch::X86_64, 0x1000_0000 | 0x2_0000, 64),
        Some(vec!["CLONE_NEWNS", "CLONE_NEWUSER"])
    );
    assert_eq!(clone.flags(Arch::X86_64, 1 << 60, 64), None);
    let domain = for_argument("socket", "family").unwrap();
    assert_eq!(domain.flags(Arch::X86_64, 1, 32), None);
}

fn shown(call: &str, argument: &str, value: u64) -> Option<String> {
    names(Arch::X86_64, call, argument, value, 32).map(|names| names.join("|"))
}

#[test]
fn a_number_beside_flags_is_not_taken_apart() {
    let cases = [
        ("socket", "type", 0x8_0003, "SOCK_RAW|SOCK_CLOEXEC"),
        ("socketpair", "type", 5, "SOCK_SEQPACKET"),
        ("mmap", "flags", 0x8_0003, "MAP_SHARED_VALIDATE|MAP_SYNC"),
        ("mmap", "flags", 0x22, "MAP_PRIVATE|MAP_ANONYMOUS"),
        ("openat", "flags", 0x42, "O_RDWR|O_CREAT"),
        ("openat", "flags", 3, "O_ACCMODE"),
        (
            "clone",
            "clone_flags",
            0x4111,
            "SIGCHLD|CLONE_VM|CLONE_VFORK",
        ),
    ];
    for (call, argument, value, names) in cases {
        assert_eq!(
            shown(call, argument, value).as_deref(),
            Some(names),
            "{call}"
        );
    }
}

#[test]
fn arguments_have_no_names_of_other_arguments() {
    let cases = [
        ("accept4", "flags", 1),
        ("dup3", "flags", 1),
        ("pipe2", "flags", 0x40),
        ("setns", "flags", 0x100),
        ("unshare", "unshare_flags", 0x1000),
        ("clone", "clone_flags", 0x91),
        ("clone", "clone_flags", 0x80),
        ("clone", "clone_flags", 0x1000_0080),
        ("prctl", "option", 0),
        ("prctl", "option", 0xffff_ffff),
        ("arch_prctl", "option", 17),
        ("kill", "sig", 8192),
    ];
    for (call, argument, value) in cases {
        assert_eq!(shown(call, argument, value), None, "{call} {argument}");
    }
    let flags = |value| shown("recvmsg", "flags", value).unwrap();
    assert_eq!(flags(0x2040), "MSG_DONTWAIT|MSG_ERRQUEUE");
    assert_eq!(flags(0x0b), "MSG_OOB|MSG_PEEK|MSG_CTRUNC");
    let namespace = shown("unshare", "unshare_flags", 0x80).unwrap();
    assert_eq!(namespace, "CLONE_NEWTIME");
}

#[test]
fn masks_have_no_names_of_values() {
    let mask = |call, argument, mask| {
        for_argument(call, argument)
            .unwrap()
            .mask(Arch::X86_64, mask, 32)
    };
    assert_eq!(mask("clone", "clone_flags", 3), Some((3, vec![])));
    let namespaces = vec!["CLONE_NEWTIME", "CLONE_NEWUSER"];
    assert_eq!(
        mask("clone", "clone_flags", 0x1000_0080),
        Some((0, namespaces))
    );
    assert_eq!(
        mask("clone", "clone_flags", 0x1ff),
        Some((0xff, vec!["CLONE_VM"]))
    );
    assert_eq!(mask("kill", "sig", 14), None);
    assert_eq!(mask("socket", "family", 1), None);
    assert_eq!(
        mask("futex", "op", 128),
        Some((0, vec!["FUTEX_PRIVATE_FLAG"]))
    );
}
