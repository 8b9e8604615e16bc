//! The embedded policies and sets.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Action, ActionKind, Arch, consts, signature, syscall};
use tamis_policy::embedded;
use tamis_rules::{IntervalSet, Ruleset};
use tamis_testkit::corpus;

use crate::{decide, parse, ruleset};

/// Selections of architectures of actual machines.
const SELECTIONS: [&[Arch]; 6] = [
    &[Arch::X86_64, Arch::X86, Arch::X32],
    &[Arch::Aarch64, Arch::Arm],
    &[Arch::Riscv64],
    &[Arch::S390x, Arch::S390],
    &[Arch::Ppc64le],
    &[Arch::Loongarch64],
];

fn policy(name: &str, arches: &[Arch]) -> Ruleset {
    ruleset(embedded(name).expect("it is embedded").text, arches)
}

#[test]
fn they_parse_without_a_word_on_every_machine() {
    for policy in embedded::ALL {
        let all: Vec<Arch> = Arch::all().collect();
        let each = all.iter().map(std::slice::from_ref);
        for arches in SELECTIONS.into_iter().chain(each).chain([all.as_slice()]) {
            let (parsed, sources) = parse(policy.text, arches);
            let told = tamis_diag::render::render(&parsed.diagnostics, &sources, false);
            assert!(told.is_empty(), "{} for {arches:?}:\n{told}", policy.name);
        }
    }
}

#[test]
fn containers_may_do_what_programs_need() {
    let rules = policy("container-default", SELECTIONS[0]);
    for name in [
        "read",
        "openat",
        "execve",
        "mmap",
        "clone",
        "vfork",
        "wait4",
        "socket",
        "connect",
        "futex",
        "ioctl",
        "fcntl",
        "getdents64",
        "statx",
        "rename",
        "prctl",
        "prlimit64",
        "getrandom",
        "rseq",
        "poll",
        "pipe2",
        "kill",
        "chown",
        "setgroups",
        "chroot",
        "mknod",
        "ptrace",
        "personality",
        "sysinfo",
        "uname",
        "fadvise64",
        "copy_file_range",
        "utimensat",
        "umask",
        "setpgid",
        "memfd_create",
    ] {
        assert_eq!(
            decide(&rules, Arch::X86_64, name, &[]),
            Action::ALLOW,
            "{name}"
        );
    }
}

#[test]
fn containers_may_not_reach_out() {
    let rules = policy("container-default", SELECTIONS[0]);
    for arch in SELECTIONS[0] {
        for name in [
            "mount",
            "umount2",
            "pivot_root",
            "setns",
            "unshare",
            "bpf",
            "perf_event_open",
            "init_module",
            "finit_module",
            "delete_module",
            "kexec_load",
            "reboot",
            "swapon",
            "add_key",
            "keyctl",
            "request_key",
            "open_by_handle_at",
            "userfaultfd",
            "iopl",
            "ioperm",
            "settimeofday",
            "clock_settime",
            "syslog",
            "quotactl",
            "acct",
            "io_uring_setup",
            "fsopen",
            "move_mount",
            "lookup_dcookie",
            "vhangup",
            "uselib",
        ] {
            if syscall::number(*arch, name).is_some() {
                let action = decide(&rules, *arch, name, &[]);
                assert_eq!(action, Action::errno(1), "{name} on {arch}");
            }
        }
        assert_eq!(decide(&rules, *arch, "clone3", &[]), Action::errno(38));
    }
}

#[test]
fn containers_are_guarded_at_the_arguments() {
    let rules = policy("container-default", SELECTIONS[0]);
    let (sigchld, new_user, vsock) = (17, 0x1000_0000, 40);
    let allows = |arch, name, args: &[u64]| decide(&rules, arch, name, args) == Action::ALLOW;
    for arch in SELECTIONS[0] {
        assert!(allows(*arch, "clone", &[sigchld]));
        assert!(!allows(*arch, "clone", &[new_user | sigchld]));
        assert!(!allows(*arch, "socket", &[vsock]));
        assert!(
            !allows(*arch, "socket", &[1 << 32 | vsock]),
            "the kernel ignores the upper half"
        );
        assert!(allows(*arch, "personality", &[0xffff_ffff]));
        assert!(
            !allows(*arch, "personality", &[0x004_0000]),
            "ADDR_NO_RANDOMIZE"
        );
    }
    let (socket, connect) = (1, 3);
    assert!(!allows(Arch::X86, "socketcall", &[socket]));
    assert!(allows(Arch::X86, "socketcall", &[connect]));
    let s390x = policy("container-default", SELECTIONS[3]);
    assert_ne!(
        decide(&s390x, Arch::S390x, "clone", &[0, new_user]),
        Action::ALLOW
    );
}

#[test]
fn a_call_of_the_future_gets_enosys_in_containers() {
    let rules = policy("container-default", SELECTIONS[0]);
    for arch in SELECTIONS[0] {
        let last = syscall::last(*arch).expect("a table").0;
        let mut call = crate::call(*arch, "read", &[]);
        call.nr = last + 1;
        assert_eq!(rules.decide(&call).action, Action::errno(38), "{arch}");
    }
}

#[test]
fn pure_compute_makes_no_memory_executable_and_opens_nothing() {
    for arches in SELECTIONS {
        let rules = policy("pure-compute", arches);
        for arch in arches {
            for name in [
                "openat", "socket", "execve", "clone", "ptrace", "fork", "open", "kill",
            ] {
                if syscall::number(*arch, name).is_some() {
                    let action = decide(&rules, *arch, name, &[]);
                    assert_eq!(action, Action::KILL_PROCESS, "{name} on {arch}");
                }
            }
            let exec = decide(&rules, *arch, "mprotect", &[0, 0, 4]);
            assert_eq!(exec, Action::KILL_PROCESS, "{arch}");
            assert_eq!(
                decide(&rules, *arch, "mprotect", &[0, 0, 3]),
                Action::ALLOW,
                "{arch}"
            );
        }
    }
}

#[test]
fn network_service_runs_no_programs_and_no_writable_code() {
    let rules = policy("network-service", SELECTIONS[0]);
    let kind = |name, args: &[u64]| decide(&rules, Arch::X86_64, name, args).kind;
    assert_eq!(kind("execve", &[]), ActionKind::Errno);
    assert_eq!(kind("mmap", &[0, 0, 6]), ActionKind::Errno);
    assert_eq!(kind("mmap", &[0, 0, 5]), ActionKind::Allow);
    assert_eq!(kind("socket", &[2, 1]), ActionKind::Allow);
    assert_eq!(kind("socket", &[17, 3]), ActionKind::Errno);
    assert_eq!(kind("clone", &[0x3d_0f00]), ActionKind::Allow);
    assert_eq!(kind("clone", &[17]), ActionKind::Errno);
    assert_eq!(kind("ptrace", &[]), ActionKind::KillProcess);
    assert_eq!(kind("accept4", &[]), ActionKind::Allow);
}

/// MIPS has the numbers of SOCK_STREAM and SOCK_DGRAM the other way round.
#[test]
fn services_have_streams_and_datagrams_of_the_internet_on_every_machine() {
    let inet = 2;
    for arch in [Arch::X86_64, Arch::Aarch64, Arch::Mips64, Arch::Mipsel64] {
        let rules = policy("service", &[arch]);
        for call in ["socket", "socketpair"] {
            for kind in ["SOCK_STREAM", "SOCK_DGRAM"] {
                let value = consts::value(arch, kind).expect("a constant");
                let action = decide(&rules, arch, call, &[inet, value]);
                assert_eq!(action, Action::ALLOW, "{call}({kind}) on {arch}");
            }
            let raw = decide(&rules, arch, call, &[inet, 3]);
            assert_eq!(raw.kind, ActionKind::Errno, "{call}(SOCK_RAW) on {arch}");
        }
    }
}

/// Writable and executable mappings are denied if a filter sees the protection; otherwise the call is denied.
#[test]
fn no_policy_of_ours_that_cares_maps_memory_to_be_written_and_executed() {
    let (write_exec, write, prot) = (6, 2, 2);
    for name in ["network-service", "pure-compute"] {
        for arch in Arch::all() {
            let rules = policy(name, &[arch]);
            for call in ["mmap", "mmap2", "mprotect", "pkey_mprotect"] {
                if syscall::number(arch, call).is_none() {
                    continue;
                }
                let allows = |value| {
                    let mut args = [0; 6];
                    args[prot] = value;
                    decide(&rules, arch, call, &args) == Action::ALLOW
                };
                let is_visible = signature::index(arch, call, "prot").is_some();
                assert!(!allows(write_exec), "{name}: {call} on {arch}");
                assert!(!allows(1 << 40 | write_exec), "{name}: {call} on {arch}");
                if call != "pkey_mprotect" {
                    assert_eq!(allows(write), is_visible, "{name}: {call} on {arch}");
                }
            }
        }
    }
}

/// The calls of a built-in set, over all architectures.
fn members(set: &str) -> BTreeSet<String> {
    let arches: Vec<Arch> = Arch::all().collect();
    let rules = ruleset(&format!("allow {set}"), &arches);
    let allowed = arches.iter().flat_map(|arch| {
        let rules = &rules;
        syscall::all(*arch)
            .filter(|(_, name)| decide(rules, *arch, name, &[]) == Action::ALLOW)
            .map(|(_, name)| name.to_owned())
    });
    allowed.collect()
}

#[test]
fn the_set_of_all_known_calls_is_every_table() {
    for arch in Arch::all() {
        let rules = ruleset("allow @known", &[arch]);
        let allowed = &rules.sections()[0].rules[0].syscalls;
        let table: IntervalSet<u32> = syscall::all(arch).map(|(nr, _)| nr.0).collect();
        assert_eq!(*allowed, table, "{arch}");
    }
}

#[test]
fn dangerous_sets_and_the_service_set_have_nothing_in_common() {
    let service = members("@system-service");
    for set in [
        "@clock",
        "@module",
        "@mount",
        "@raw-io",
        "@reboot",
        "@swap",
        "@cpu-emulation",
    ] {
        let common: Vec<String> = members(set).intersection(&service).cloned().collect();
        assert_eq!(common, [""; 0], "{set}");
    }
}

/// The sets of tamis differ from the known ones; this test documents the differences and checks that they are small.
#[test]
fn sets_resemble_those_that_people_know() {
    let text = corpus::text("systemd/systemd-252-syscall-sets.txt");
    let theirs = theirs(&text);
    for (set, theirs) in &theirs {
        if set == "@known" {
            continue;
        }
        let ours = members(set);
        let known: BTreeSet<String> = theirs
            .iter()
            .filter(|name| syscall::is_known(name))
            .cloned()
            .collect();
        let list = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
            a.difference(b).cloned().collect::<Vec<_>>().join(" ")
        };
        println!(
            "{set}: only ours: {}; only theirs: {}",
            list(&ours, &known),
            list(&known, &ours)
        );
        let common = ours.intersection(&known).count();
        assert!(
            2 * common >= ours.len().max(known.len()),
            "{set} has another meaning"
        );
    }
}

/// The sets of the corpus file, with nested sets expanded.
fn theirs(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut direct: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("    ") {
            Some(member) if !member.starts_with('#') => {
                direct
                    .entry(current.clone())
                    .or_default()
                    .push(member.to_owned());
            }
            None if line.starts_with('@') => current = line.to_owned(),
            _ => {}
        }
    }
    let expand = |set: &String| {
        let mut calls = BTreeSet::new();
        let mut open = vec![set.clone()];
        while let Some(name) = open.pop() {
            match direct.get(&name) {
                Some(members) => open.extend(members.iter().cloned()),
                None => drop(calls.insert(name)),
            }
        }
        (set.clone(), calls)
    };
    direct.keys().map(expand).collect()
}
