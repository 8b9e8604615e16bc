//! Random systemd units: every directive that installs a filter, with systemd's peculiarities of parsing.
//!
//! Lists with signs, resets and repetitions; quotes, escapes and specifiers in words; errnos in all forms; unknown
//! words; continued lines, comments in between, comments like the titles of files, invalid lines; sections of other
//! units; drop-ins. systemd rejects a few of the units.

use crate::rng::Rng;
use crate::systemd::Unit;

const CALLS: [&str; 44] = [
    "read",
    "write",
    "openat",
    "ptrace",
    "mount",
    "umount2",
    "socket",
    "bind",
    "accept4",
    "sendto",
    "semget",
    "semop",
    "shmat",
    "msgrcv",
    "ipc",
    "socketcall",
    "clone",
    "clone3",
    "unshare",
    "setns",
    "mmap",
    "mmap2",
    "mprotect",
    "pkey_mprotect",
    "personality",
    "syslog",
    "swapon",
    "reboot",
    "clock_settime",
    "clock_adjtime64",
    "stime",
    "init_module",
    "iopl",
    "ioperm",
    "chmod",
    "fchmodat",
    "open",
    "openat2",
    "creat",
    "time",
    "getdents64",
    "_sysctl",
    "kill",
    "futex",
];
const SETS: [&str; 33] = [
    "@system-service",
    "@basic-io",
    "@file-system",
    "@io-event",
    "@ipc",
    "@keyring",
    "@memlock",
    "@module",
    "@mount",
    "@network-io",
    "@obsolete",
    "@pkey",
    "@privileged",
    "@process",
    "@raw-io",
    "@reboot",
    "@resources",
    "@sandbox",
    "@setuid",
    "@signal",
    "@swap",
    "@sync",
    "@timer",
    "@aio",
    "@chown",
    "@clock",
    "@cpu-emulation",
    "@debug",
    "@known",
    "@system-service",
    "@default",
    "@privileged",
    "@mount",
];
const UNKNOWN: [&str; 13] = [
    "raed",
    "READ",
    "@Mount",
    "@basic_io",
    "@mine",
    "@",
    "read,write",
    "%n",
    "%%",
    "$HOME",
    "ptrace;",
    "*",
    "~read",
];
const ERRNOS: [&str; 35] = [
    "EPERM",
    "eperm",
    "EAcces",
    "ENOSYS",
    "ENOTSUP",
    "EWOULDBLOCK",
    "EDEADLOCK",
    "EHWPOISON",
    "1",
    "0",
    "38",
    "255",
    "256",
    "4094",
    "4095",
    "4096",
    "65537",
    "010",
    "08",
    "0x1",
    "0X26",
    "0b11",
    "0o17",
    "+5",
    "-1",
    "-0",
    "kill",
    "KILL",
    "",
    "EPREM",
    "ECHO",
    "ERESTARTSYS",
    "E",
    "1.0",
    "99999999999999999999",
];
const SWITCHES: [&str; 11] = [
    "MemoryDenyWriteExecute",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "ProtectHostname",
    "ProtectKernelTunables",
    "ProtectKernelModules",
    "ProtectKernelLogs",
    "ProtectClock",
    "PrivateDevices",
    "LockPersonality",
    "DynamicUser",
];
const BOOLEANS: [&str; 12] = [
    "yes", "no", "true", "false", "1", "0", "on", "off", "Y", "N", "T", "F",
];
const NO_BOOLEANS: [&str; 8] = ["", "\"yes\"", "'1'", "maybe", "yes yes", "2", "ye\\s", "%n"];
const FAMILIES: [&str; 18] = [
    "AF_UNIX",
    "AF_INET",
    "AF_INET6",
    "AF_NETLINK",
    "AF_PACKET",
    "AF_VSOCK",
    "AF_ALG",
    "AF_XDP",
    "AF_LOCAL",
    "AF_MCTP",
    "af_inet",
    "AF_UNSPEC",
    "AF_MAX",
    "AF_NOPE",
    "INET",
    "1",
    "none",
    "PF_UNIX",
];
const NAMESPACES: [&str; 13] = [
    "user", "net", "mnt", "pid", "ipc", "uts", "cgroup", "time", "yes", "no", "usr", "USER", "1",
];
const ARCHES: [&str; 16] = [
    "native",
    "x86",
    "x86-64",
    "x32",
    "arm",
    "arm64",
    "x86_64",
    "i386",
    "s390x",
    "mips64-le-n32",
    "riscv64",
    "ppc64-le",
    "amd64",
    "aarch64",
    "NATIVE",
    "parisc",
];
/// Lines that are no assignments of the section, and lines that are nothing.
const OTHERS: [&str; 21] = [
    "",
    "# a comment",
    "; another \\",
    "nothing",
    "=yes",
    "[Unit]\nSystemCallFilter=read\n[Service]",
    "[Socket]\nProtectClock=yes\n[Service]",
    "[Service ]\nProtectHostname=yes\n[Service]",
    "[X-Mine]\nLockPersonality=yes\n[Service]",
    "Environment=\"A=B\" \\\n  # no\n C=D",
    "X-Mine=1",
    "systemcallfilter=read",
    "  \t",
    "[Service]",
    "\u{feff}",
    "ProtectClock",
    // Comments like the titles of `systemctl cat` except for blanks, the name or the preceding line.
    "\n# /dev/kvm is opened by the helper, see helper.conf",
    "\n# /usr/lib/systemd/system/y.service",
    "\n# /etc/systemd/system/x.socket.d/00.conf",
    "X-A=b\n# /etc/systemd/system/x.service",
    "X-A=b\n# /etc/systemd/system/x.service.d/00.conf\n[Service]",
];
/// Lines for which systemd rejects the unit.
const FATAL: [&str; 5] = [
    "[Service",
    "[\"Service\"]",
    "[Ser\\vice]",
    "DynamicUser=maybe",
    "DynamicUser=",
];

/// A unit for x86_64.
pub fn unit(rng: &mut Rng) -> Unit {
    let mut unit = Unit {
        text: lines(rng, 6),
        drop_ins: Vec::new(),
    };
    for _ in 0..rng.range(0..=5).saturating_sub(3) {
        let section = match rng.range(0..=39) {
            0 => "",
            1..=4 => "[Socket]\n",
            _ => "[Service]\n",
        };
        unit.drop_ins.push(format!("{section}{}", lines(rng, 3)));
    }
    unit
}

fn lines(rng: &mut Rng, most: u64) -> String {
    let mut text = String::new();
    for _ in 0..rng.range(1..=most) {
        if rng.chance(1, 6) {
            text.push_str(rng.choose::<&str>(&OTHERS));
            text.push('\n');
        }
        if rng.chance(1, 150) {
            text.push_str(rng.choose::<&str>(&FATAL));
            text.push('\n');
        }
        assignment(rng, &mut text);
        text.push_str(match rng.range(0..=60) {
            0 => "\r",
            1 => "\r\n",
            2 => "\n\r",
            3 => " \t \n",
            4 => "\\\n",
            5 => "\\\\\n",
            6 => "\0",
            7 => "\n\0",
            _ => "\n",
        });
    }
    text.push('\n');
    text
}

fn assignment(rng: &mut Rng, text: &mut String) {
    let list = |rng: &mut Rng, key: &'static str, word: fn(&mut Rng, bool) -> String, most: u64| {
        let is_inverted = rng.chance(2, 5);
        let count = match rng.chance(1, 12) {
            true => 0,
            false => rng.range(1..=most),
        };
        let words: Vec<String> = (0..count).map(|_| word(rng, is_inverted)).collect();
        (key, is_inverted, words)
    };
    let (key, is_inverted, words) = match rng.range(0..=15) {
        0..=5 => list(rng, "SystemCallFilter", filter_word, 5),
        6 => list(rng, "SystemCallLog", |rng, _| call(rng), 4),
        7 => {
            let errno = (*rng.choose(&ERRNOS)).to_owned();
            ("SystemCallErrorNumber", false, vec![errno])
        }
        8 => list(
            rng,
            "SystemCallArchitectures",
            |rng, _| (*rng.choose(&ARCHES)).to_owned(),
            3,
        ),
        9..=10 => list(
            rng,
            "RestrictAddressFamilies",
            |rng, _| (*rng.choose(&FAMILIES)).to_owned(),
            4,
        ),
        11 => list(
            rng,
            "RestrictNamespaces",
            |rng, _| (*rng.choose(&NAMESPACES)).to_owned(),
            3,
        ),
        12 => {
            let names = ["x86", "x86-64", "x86_64", "arm64", "", "\"x86\"", "i386"];
            let name = (*rng.choose(&names)).to_owned();
            ("Personality", false, vec![name])
        }
        _ => return switch(rng, text),
    };
    text.push_str(key);
    text.push_str(["=", "=", "=", "=", " = ", "= ", "\t="][rng.index(7)]);
    if rng.chance(1, 40) {
        text.push_str(rng.choose::<&str>(&["\"", "'", "\\", "~"]));
    }
    if is_inverted {
        text.push('~');
    }
    for (index, word) in words.iter().enumerate() {
        if index > 0 || rng.chance(1, 20) {
            text.push_str(space(rng));
        }
        text.push_str(&mangled(rng, word));
    }
}

fn switch(rng: &mut Rng, text: &mut String) {
    let name = *rng.choose(&SWITCHES);
    // Where systemd refuses other values, only few of the units shall have some.
    let value = match name != "DynamicUser" && rng.chance(1, 6) {
        true => *rng.choose(&NO_BOOLEANS),
        false => *rng.choose(&BOOLEANS),
    };
    text.push_str(&format!("{name}={value}"));
}

fn filter_word(rng: &mut Rng, is_inverted: bool) -> String {
    let call = call(rng);
    match rng.chance(if is_inverted { 2 } else { 1 }, 8) {
        true => format!("{call}:{}", rng.choose(&ERRNOS)),
        false => call,
    }
}

fn call(rng: &mut Rng) -> String {
    let word = match rng.range(0..=11) {
        0 => rng.choose(&UNKNOWN),
        1..=4 => rng.choose(&SETS),
        _ => rng.choose(&CALLS),
    };
    (*word).to_owned()
}

/// White space between words, perhaps with the end of a line.
fn space(rng: &mut Rng) -> &'static str {
    match rng.range(0..=30) {
        0 => "\t",
        1 => "  ",
        2 => " \\\n",
        3 => "\\\n  ",
        4 => " \\\n# a comment\n ",
        5 => "\\\n; a comment \\\n",
        6 => " \\\n\n",
        7 => "\u{a0}",
        8 => "\u{b}",
        _ => " ",
    }
}

/// A word, sometimes with quotes or escapes.
fn mangled(rng: &mut Rng, word: &str) -> String {
    let places: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
    let middle = match places.is_empty() {
        true => 0,
        false => *rng.choose(&places),
    };
    let (first, last) = word.split_at(middle);
    let quote = *rng.choose(&["\"", "'"]);
    match rng.range(0..=24) {
        0 => format!("{quote}{word}{quote}"),
        1 => format!("{first}{quote}{last}{quote}"),
        2 => format!("{first}\\{last}"),
        3 if rng.chance(1, 2) => format!("{first}{quote}{last}"),
        4 if rng.chance(1, 3) => format!("{first}\\ {last}"),
        _ => word.to_owned(),
    }
}
