//! What the policies stop, tried in the kernel: a program makes each call and compares the error.

use std::io::Write;
use std::process::{Command, Stdio};

use tamis_abi::{Arch, host, syscall};

use super::{NETWORKS, POLICIES, PYTHON, unless_installed};
use crate::TAMIS;

const PROBE: &str = include_str!("probe.py");

const CLONE_NEWUTS: u64 = 0x0400_0000;
const CLONE_THREAD: u64 = 0x0001_0000;
const BEYOND_32_BITS: u64 = 1 << 32;

/// A call with its arguments, and the error of the policy.
struct Probe {
    call: &'static str,
    args: &'static [u64],
    /// The settings in which the error is expected; in all others the call isn't the filter's to answer.
    when: Condition,
    error: &'static str,
}

/// Whether something holds with these values.
type Condition = fn(&Settings) -> bool;

/// The values of the parameters.
#[derive(Clone, Copy, Debug)]
struct Settings {
    policy: &'static str,
    network: &'static str,
    nested: bool,
    debug: bool,
}

impl Settings {
    fn text(&self) -> String {
        let word = |is_on| if is_on { "yes" } else { "no" };
        let (nested, debug) = (word(self.nested), word(self.debug));
        format!("network={},nested={nested},debug={debug}", self.network)
    }
}

const fn probe(
    call: &'static str,
    args: &'static [u64],
    error: &'static str,
    when: Condition,
) -> Probe {
    Probe {
        call,
        args,
        when,
        error,
    }
}

const ALWAYS: Condition = |_| true;
const UNLESS_NESTED: Condition = |own| !own.nested;
const UNLESS_DEBUGGED: Condition = |own| !own.debug;
const WITHOUT_SOCKETS: Condition = |own| own.network == "none";
const WITHOUT_TCP: Condition = |own| matches!(own.network, "none" | "unix");
const WITHOUT_UDP: Condition = |own| own.network != "full";
const TERMINAL: Condition = |own| own.policy == "agent";
const MACHINE: Condition = |own| own.policy != "agent";

/// Arguments are such that no call would do anything if the filter allowed it.
const FORBIDDEN: &[Probe] = &[
    probe("io_uring_setup", &[0, 0], "ENOSYS", ALWAYS),
    probe("io_uring_enter", &[u64::MAX], "ENOSYS", ALWAYS),
    probe("io_uring_register", &[u64::MAX, 99], "ENOSYS", ALWAYS),
    probe("bpf", &[999], "ENOSYS", ALWAYS),
    probe("perf_event_open", &[0], "ENOSYS", ALWAYS),
    probe("userfaultfd", &[0xffff], "ENOSYS", ALWAYS),
    probe("add_key", &[0], "ENOSYS", ALWAYS),
    probe("request_key", &[0], "ENOSYS", ALWAYS),
    probe("keyctl", &[999], "ENOSYS", ALWAYS),
    probe("init_module", &[0, 0, 0], "ENOSYS", ALWAYS),
    probe("finit_module", &[u64::MAX, 0, 0], "ENOSYS", ALWAYS),
    probe("delete_module", &[0, 0], "ENOSYS", ALWAYS),
    probe("kexec_load", &[0, 999, 0, 0xffff], "ENOSYS", ALWAYS),
    probe("kexec_file_load", &[0, 0, 0, 0, 0xffff], "ENOSYS", ALWAYS),
    probe("ptrace", &[999, 1], "EPERM", UNLESS_DEBUGGED),
    probe(
        "process_vm_readv",
        &[1, 0, 0, 0, 0, 9],
        "ENOSYS",
        UNLESS_DEBUGGED,
    ),
    probe(
        "process_vm_writev",
        &[1, 0, 0, 0, 0, 9],
        "ENOSYS",
        UNLESS_DEBUGGED,
    ),
    probe("pidfd_getfd", &[u64::MAX, 0, 9], "ENOSYS", UNLESS_DEBUGGED),
    probe("kcmp", &[1, 1, 99], "ENOSYS", UNLESS_DEBUGGED),
    probe("mount", &[0], "EPERM", UNLESS_NESTED),
    probe("umount2", &[0, 0xffff], "EPERM", UNLESS_NESTED),
    probe("pivot_root", &[0, 0], "EPERM", UNLESS_NESTED),
    probe("setns", &[u64::MAX, 0], "EPERM", UNLESS_NESTED),
    probe("open_tree", &[u64::MAX, 0, 0xffff], "ENOSYS", UNLESS_NESTED),
    probe("fsopen", &[0, 99], "ENOSYS", UNLESS_NESTED),
    probe("move_mount", &[0, 0, 0, 0, 0xffff], "ENOSYS", UNLESS_NESTED),
    probe("mount_setattr", &[0, 0, 0, 0, 0], "ENOSYS", UNLESS_NESTED),
    probe("clone3", &[0, 0], "ENOSYS", UNLESS_NESTED),
    probe(
        "clone",
        &[CLONE_NEWUTS | CLONE_THREAD],
        "EPERM",
        UNLESS_NESTED,
    ),
    probe("unshare", &[CLONE_NEWUTS | 1], "EPERM", UNLESS_NESTED),
    probe("unshare", &[0x80], "EPERM", UNLESS_NESTED),
    // AF_ALG, AF_VSOCK, AF_PACKET, AF_BLUETOOTH, NETLINK_AUDIT.
    probe("socket", &[38, 5, 0], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[40, 1, 0], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[17, 3, 0], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[31, 3, 0], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[16, 3, 9], "EAFNOSUPPORT", ALWAYS),
    // Raw sockets, SOCK_PACKET, SCTP.
    probe("socket", &[2, 3, 1], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[10, 3, 58], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[2, 10, 0], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[2, 0x80803, 1], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[2, 1, 132], "EAFNOSUPPORT", ALWAYS),
    // The kernel ignores the upper half of an argument.
    probe(
        "socket",
        &[BEYOND_32_BITS | 38, 5, 0],
        "EAFNOSUPPORT",
        ALWAYS,
    ),
    probe("socket", &[1, 1, 0], "EAFNOSUPPORT", WITHOUT_SOCKETS),
    probe(
        "socket",
        &[BEYOND_32_BITS | 1, 1, 0],
        "EAFNOSUPPORT",
        WITHOUT_SOCKETS,
    ),
    probe("socketpair", &[1, 2, 0, 0], "EAFNOSUPPORT", WITHOUT_SOCKETS),
    probe("socketpair", &[1, 3, 0, 0], "EAFNOSUPPORT", WITHOUT_SOCKETS),
    probe("socketpair", &[30, 1, 0, 0], "EAFNOSUPPORT", ALWAYS),
    probe("socket", &[2, 1, 0], "EAFNOSUPPORT", WITHOUT_TCP),
    probe(
        "socket",
        &[BEYOND_32_BITS | 2, BEYOND_32_BITS | 1, 0],
        "EAFNOSUPPORT",
        WITHOUT_TCP,
    ),
    probe("socket", &[10, 1, 6], "EAFNOSUPPORT", WITHOUT_TCP),
    probe("socket", &[2, 2, 0], "EAFNOSUPPORT", WITHOUT_UDP),
    probe("socket", &[10, 2, 17], "EAFNOSUPPORT", WITHOUT_UDP),
    probe("socket", &[16, 3, 0], "EAFNOSUPPORT", WITHOUT_UDP),
    // TIOCSTI, TIOCLINUX, with a bit that the kernel ignores.
    probe("ioctl", &[u64::MAX, 0x5412, 0], "EPERM", TERMINAL),
    probe(
        "ioctl",
        &[u64::MAX, BEYOND_32_BITS | 0x541c, 0],
        "EPERM",
        TERMINAL,
    ),
    probe("swapon", &[0, 0xffff_ffff], "ENOSYS", MACHINE),
    probe("reboot", &[0, 0, 0], "ENOSYS", MACHINE),
    probe("quotactl", &[0xffff_ffff, 0], "ENOSYS", MACHINE),
    probe("quotactl_fd", &[u64::MAX, 0xffff_ffff], "ENOSYS", MACHINE),
];

/// The sockets that a setting offers.
const ALLOWED: &[(&str, &[u64], Condition)] = &[
    ("socketpair", &[1, 0x80801, 0], ALWAYS),
    ("socket", &[1, 0x80001, 0], |own| !WITHOUT_SOCKETS(own)),
    ("socket", &[1, 2, 0], |own| !WITHOUT_SOCKETS(own)),
    ("socket", &[BEYOND_32_BITS | 1, 5, 0], |own| {
        !WITHOUT_SOCKETS(own)
    }),
    ("socket", &[2, 0x80801, 6], |own| !WITHOUT_TCP(own)),
    ("socket", &[10, 1, 0], |own| !WITHOUT_TCP(own)),
    ("socket", &[2, 0x80802, 17], |own| !WITHOUT_UDP(own)),
    ("socket", &[16, 0x80003, 0], |own| !WITHOUT_UDP(own)),
    ("getpid", &[], ALWAYS),
    ("memfd_create", &[], ALWAYS),
];

fn every_setting() -> impl Iterator<Item = Settings> {
    let switches = [(false, false), (true, false), (false, true), (true, true)];
    POLICIES.into_iter().flat_map(move |policy| {
        NETWORKS.into_iter().flat_map(move |network| {
            switches.into_iter().map(move |(nested, debug)| Settings {
                policy,
                network,
                nested,
                debug,
            })
        })
    })
}

/// The answers of the kernel to the lines, under the policy if there is one.
fn answers(settings: Option<&Settings>, lines: &[String]) -> Vec<String> {
    let mut command = match settings {
        Some(settings) => {
            let mut tamis = Command::new(TAMIS);
            let set = settings.text();
            tamis.args(["exec", "-p", settings.policy, "--set", &set, "--", PYTHON]);
            tamis
        }
        None => Command::new(PYTHON),
    };
    command
        .args(["-c", PROBE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("python starts");
    let mut input = child.stdin.take().expect("a pipe");
    input
        .write_all(lines.join("\n").as_bytes())
        .expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{settings:?}: {output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

fn line(arch: Arch, label: &str, call: &str, args: &[u64]) -> Option<String> {
    let number = syscall::number(arch, call)?.0;
    let args: Vec<String> = args.iter().map(u64::to_string).collect();
    Some(format!("{label} syscall {number} {}", args.join(" ")))
}

#[test]
fn each_forbidden_call_gets_the_documented_error() {
    unless_installed(&[PYTHON]);
    let arch = host::arch().expect("a known architecture");
    let all: Vec<(String, &Probe)> = FORBIDDEN
        .iter()
        .enumerate()
        .filter_map(|(index, own)| {
            let label = format!("{}#{index}", own.call);
            Some((line(arch, &label, own.call, own.args)?, own))
        })
        .collect();
    for settings in every_setting() {
        let expected = all.iter().filter(|(_, own)| (own.when)(&settings));
        let (lines, probes): (Vec<String>, Vec<&Probe>) = expected.cloned().unzip();
        let (natural, answers) = (answers(None, &lines), answers(Some(&settings), &lines));
        let mut differing = 0;
        for ((answer, natural), probe) in answers.iter().zip(&natural).zip(&probes) {
            let error = answer.split(' ').nth(1);
            assert_eq!(error, Some(probe.error), "{settings:?}: {answer}");
            differing += usize::from(answer != natural);
        }
        assert_eq!(answers.len(), probes.len());
        assert!(
            2 * differing > probes.len(),
            "the kernel alone has most of these answers"
        );
    }
}

#[test]
fn the_sockets_of_a_setting_work() {
    unless_installed(&[PYTHON]);
    let arch = host::arch().expect("a known architecture");
    for settings in every_setting() {
        let offered = ALLOWED.iter().filter(|(.., when)| when(&settings));
        let lines: Vec<String> = offered
            .filter_map(|(call, args, _)| line(arch, call, call, args))
            .collect();
        // A kernel without IPv6, or a null pointer, answers the same with and without the filter.
        assert_eq!(
            answers(Some(&settings), &lines),
            answers(None, &lines),
            "{settings:?}"
        );
    }
}

#[test]
fn calls_of_32_bits_of_x32_and_of_later_kernels_get_enosys() {
    unless_installed(&[PYTHON]);
    let arch = host::arch().expect("a known architecture");
    let next = syscall::last(arch).expect("a table").0 + 1;
    let mut lines = vec![
        format!("next syscall {next}"),
        format!("later syscall {}", next + 1000),
    ];
    if arch == Arch::X86_64 {
        // x32 has getpid and ptrace of its own numbers; int 0x80 has getpid as 20.
        lines.extend(["x32-getpid", "x32-ptrace"].map(|label| {
            let number = if label == "x32-getpid" { 39 } else { 521 };
            format!("{label} syscall {}", 0x4000_0000 | number)
        }));
        lines.push("x86-getpid int80 20".to_owned());
        lines.push("x86-ptrace int80 26".to_owned());
    }
    for settings in every_setting() {
        for answer in answers(Some(&settings), &lines) {
            assert!(answer.ends_with(" ENOSYS"), "{settings:?}: {answer}");
        }
    }
}
