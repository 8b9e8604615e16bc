//! The names of values: constants of arguments, errors, signals.

use std::sync::OnceLock;

use tamis_abi::signature::{self, Arg};
use tamis_abi::{Arch, consts, errno, family};

/// The greatest error number plus 1.
const ERRORS: usize = 134;

/// The name of an error number of x86-64.
///
/// ```
/// use tamis_recorder::view::error_name;
/// assert_eq!(error_name(2), Some("ENOENT"));
/// assert_eq!(error_name(11), Some("EAGAIN"));
/// assert_eq!(error_name(4000), None);
/// ```
pub fn error_name(number: u16) -> Option<&'static str> {
    static NAMES: OnceLock<[Option<&'static str>; ERRORS]> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        /// Synonyms.
        const ALSO: [&str; 3] = ["EWOULDBLOCK", "EDEADLOCK", "ENOTSUP"];
        let mut names = [None; ERRORS];
        for (name, value) in consts::starting_with(Arch::X86_64, "E") {
            if errno::is_name(name)
                && !ALSO.contains(&name)
                && let Some(entry) = names.get_mut(value as usize)
            {
                *entry = Some(name);
            }
        }
        names
    });
    names.get(usize::from(number)).copied().flatten()
}

/// The name of a signal: `SIGCHLD`, `SIGRT_1`.
///
/// ```
/// use tamis_recorder::view::signal_name;
/// assert_eq!(signal_name(17), "SIGCHLD");
/// assert_eq!(signal_name(35), "SIGRT_3");
/// ```
pub fn signal_name(signal: i32) -> String {
    const FIRST_REAL_TIME: i32 = 32;
    let family = family::for_argument("kill", "sig");
    let name = family.and_then(|family| family.name(Arch::X86_64, signal as u64, 32));
    match name {
        Some(name) if signal < FIRST_REAL_TIME => name.to_owned(),
        _ if signal < FIRST_REAL_TIME => signal.to_string(),
        _ if signal == FIRST_REAL_TIME => "SIGRTMIN".to_owned(),
        _ => format!("SIGRT_{}", signal - FIRST_REAL_TIME),
    }
}

/// Flags of arguments that aren't in the table of [`family`], in the order of strace.
const FLAGS: &[(&[&str], &str, &[&str])] = &[
    (
        &["access", "faccessat", "faccessat2"],
        "mode",
        &["R_OK", "W_OK", "X_OK"],
    ),
    (
        &["faccessat2"],
        "flags",
        &["AT_SYMLINK_NOFOLLOW", "AT_EACCESS", "AT_EMPTY_PATH"],
    ),
    (
        &["wait4", "waitid"],
        "options",
        &["WNOHANG", "WUNTRACED", "WEXITED", "WCONTINUED", "WNOWAIT"],
    ),
    (
        &["getrandom"],
        "flags",
        &["GRND_NONBLOCK", "GRND_RANDOM", "GRND_INSECURE"],
    ),
    (
        &["renameat2"],
        "flags",
        &["RENAME_NOREPLACE", "RENAME_EXCHANGE", "RENAME_WHITEOUT"],
    ),
    (
        &["fchmodat2"],
        "flags",
        &["AT_SYMLINK_NOFOLLOW", "AT_EMPTY_PATH"],
    ),
    (
        &["close_range"],
        "flags",
        &["CLOSE_RANGE_UNSHARE", "CLOSE_RANGE_CLOEXEC"],
    ),
    (
        &["timer_settime", "timerfd_settime", "clock_nanosleep"],
        "flags",
        &["TIMER_ABSTIME"],
    ),
];

/// Values of arguments that aren't in the table of [`family`].
const VALUES: &[(&[&str], &str, &[&str])] = &[
    (
        &["getitimer", "setitimer"],
        "which",
        &["ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF"],
    ),
    (
        &["getrusage"],
        "who",
        &["RUSAGE_SELF", "RUSAGE_CHILDREN", "RUSAGE_THREAD"],
    ),
];

/// The advice values for files, by number; s390 has others.
const ADVICE: [&str; 6] = [
    "POSIX_FADV_NORMAL",
    "POSIX_FADV_RANDOM",
    "POSIX_FADV_SEQUENTIAL",
    "POSIX_FADV_WILLNEED",
    "POSIX_FADV_DONTNEED",
    "POSIX_FADV_NOREUSE",
];

/// The argument of `fcntl`, which depends on its command; `None` if it has no names.
pub(super) fn of_control(arch: Arch, command: u32, value: u64) -> Option<String> {
    const F_SETFD: u32 = 2;
    const F_SETFL: u32 = 4;
    match command {
        F_SETFD => Some(joined(arch, &["FD_CLOEXEC"], value & 0xffff_ffff)),
        F_SETFL => Some(open_flags(arch, value & 0xffff_ffff)),
        _ => None,
    }
}

/// The flags that `fcntl` has returned; `None` for commands that return none, and for a descriptor without flags.
pub(super) fn got_by_control(arch: Arch, command: u32, result: u64) -> Option<String> {
    const F_GETFD: u32 = 1;
    const F_GETFL: u32 = 3;
    match command {
        F_GETFD if result == 0 => None,
        F_GETFD => Some(format!("flags {}", joined(arch, &["FD_CLOEXEC"], result))),
        F_GETFL => Some(format!("flags {}", open_flags(arch, result))),
        _ => None,
    }
}

/// The flags of opened files without the access mode, in the order of strace.
const OPEN: [&str; 16] = [
    "O_CREAT",
    "O_EXCL",
    "O_NOCTTY",
    "O_TRUNC",
    "O_APPEND",
    "O_NONBLOCK",
    "O_SYNC",
    "O_DSYNC",
    "O_ASYNC",
    "O_DIRECT",
    "O_LARGEFILE",
    "O_NOFOLLOW",
    "O_NOATIME",
    "O_CLOEXEC",
    "O_PATH",
    "O_TMPFILE",
];

/// A value by its names, with unnamed flags as a number; `None` if the argument has no names, or the value has none.
pub(super) fn symbol(arch: Arch, call: &str, arg: &Arg, value: u64) -> Option<String> {
    let bits = signature::width(arch, call, arg).bits();
    let value = value & (u64::MAX >> (64 - bits));
    if arg.name() == "flags" && matches!(call, "open" | "openat") {
        return Some(open_flags(arch, value));
    }
    if matches!((call, arg.name()), ("socket" | "socketpair", "type")) {
        return socket_type(arch, call, arg, value, bits);
    }
    if arg.name() == "advice" && call.starts_with("fadvise") {
        return ADVICE.get(value as usize).map(|name| (*name).to_owned());
    }
    if call == "ioctl" && arg.name() == "cmd" {
        let name = family::ioctl(arch, value, bits)?;
        // Two names of one number.
        let name = if name == "TIOCINQ" { "FIONREAD" } else { name };
        return Some(name.to_owned());
    }
    if call == "statx" {
        match arg.name() {
            "mask" => return Some(statx_mask(value)),
            "flags" => return Some(statx_flags(arch, value)),
            _ => {}
        }
    }
    if let Some((.., names)) = VALUES
        .iter()
        .find(|(calls, name, _)| calls.contains(&call) && *name == arg.name())
    {
        let mut names = names.iter();
        let cut = |known: u64| known & (u64::MAX >> (64 - bits));
        let is_it = |name: &&&str| consts::value(arch, name).map(cut) == Some(value);
        return names.find(is_it).map(|name| (*name).to_owned());
    }
    if let Some((.., names)) = FLAGS
        .iter()
        .find(|(calls, name, _)| calls.contains(&call) && *name == arg.name())
    {
        if value == 0 && arg.name() == "mode" {
            return Some("F_OK".to_owned());
        }
        return Some(joined(arch, names, value));
    }
    if call == "mount" && arg.name() == "flags" {
        return Some(mount_flags(arch, value));
    }
    if call.starts_with("futex") && arg.name() == "op" && value & FUTEX_CLOCK != 0 {
        let operation =
            family::for_argument(call, arg.name())?.name(arch, value & !FUTEX_CLOCK, bits)?;
        return Some(format!("{operation}|FUTEX_CLOCK_REALTIME"));
    }
    if call == "clone" && arg.name() == "clone_flags" {
        return Some(clone_flags(arch, value));
    }
    if arg.name().ends_with("dfd") {
        /// `AT_FDCWD`.
        const HERE: i32 = -100;
        return (value as i32 == HERE).then(|| "AT_FDCWD".to_owned());
    }
    of_family(arch, call, arg, value, bits)
}

/// The same, by the table of [`family`].
fn of_family(arch: Arch, call: &str, arg: &Arg, value: u64, bits: u32) -> Option<String> {
    let family = family::for_argument(call, arg.name())?;
    if let Some(name) = family.name(arch, value, bits) {
        return Some(name.to_owned());
    }
    // Returns unless the values are flags.
    family.flags(arch, 0, bits)?;
    let mut names = Vec::new();
    let mut rest = value;
    for part in family.parts(value) {
        if let Some(name) = family.name(arch, part, bits) {
            names.push(name.to_owned());
            rest &= !part;
        }
    }
    Some(with_rest(names, rest))
}

/// `FUTEX_CLOCK_REALTIME`, a flag of the operation.
const FUTEX_CLOCK: u64 = 0x100;

/// The flags of `mount`, in the order of strace, after the magic number of old programs in the upper half.
fn mount_flags(arch: Arch, value: u64) -> String {
    const OLD: u64 = 0xc0ed_0000;
    const OLD_MASK: u64 = 0xffff_0000;
    const NAMES: [&str; 25] = [
        "MS_RDONLY",
        "MS_NOSUID",
        "MS_NODEV",
        "MS_NOEXEC",
        "MS_SYNCHRONOUS",
        "MS_REMOUNT",
        "MS_MANDLOCK",
        "MS_DIRSYNC",
        "MS_NOSYMFOLLOW",
        "MS_NOATIME",
        "MS_NODIRATIME",
        "MS_BIND",
        "MS_MOVE",
        "MS_REC",
        "MS_SILENT",
        "MS_POSIXACL",
        "MS_UNBINDABLE",
        "MS_PRIVATE",
        "MS_SLAVE",
        "MS_SHARED",
        "MS_RELATIME",
        "MS_KERNMOUNT",
        "MS_I_VERSION",
        "MS_STRICTATIME",
        "MS_LAZYTIME",
    ];
    let is_old = value & OLD_MASK == OLD;
    let value = if is_old { value & !OLD_MASK } else { value };
    let (mut names, rest) = taken(arch, &NAMES, value);
    if is_old {
        names.insert(0, "MS_MGC_VAL".to_owned());
    }
    with_rest(names, rest)
}

/// The flags of `clone`, with the signal in the lowest byte.
pub(super) fn clone_flags(arch: Arch, value: u64) -> String {
    const SIGNAL: u64 = 0xff;
    const BITS: u32 = 64;
    let family = family::for_argument("clone", "clone_flags");
    let flags = (8..BITS).map(|bit| 1 << bit).filter(|bit| value & bit != 0);
    let (mut names, mut rest) = (Vec::new(), value & !SIGNAL);
    for bit in flags {
        if let Some(name) = family.and_then(|family| family.name(arch, bit, BITS)) {
            names.push(name.to_owned());
            rest &= !bit;
        }
    }
    if rest != 0 {
        names.push(format!("{rest:#x}"));
    }
    if value & SIGNAL != 0 {
        names.push(signal_name((value & SIGNAL) as i32));
    }
    with_rest(names, 0)
}

fn with_rest(mut names: Vec<String>, rest: u64) -> String {
    if rest != 0 {
        names.push(format!("{rest:#x}"));
    }
    match names.is_empty() {
        true => "0".to_owned(),
        false => names.join("|"),
    }
}

/// The flags of `statx`: the lookup of the file, and the synchronisation.
fn statx_flags(arch: Arch, value: u64) -> String {
    const SYNC: [&str; 2] = ["AT_STATX_FORCE_SYNC", "AT_STATX_DONT_SYNC"];
    const NAMES: [&str; 3] = ["AT_SYMLINK_NOFOLLOW", "AT_NO_AUTOMOUNT", "AT_EMPTY_PATH"];
    let (mut names, rest) = taken(arch, &SYNC, value);
    if names.is_empty() {
        names.push("AT_STATX_SYNC_AS_STAT".to_owned());
    }
    let (flags, rest) = taken(arch, &NAMES, rest);
    names.extend(flags);
    with_rest(names, rest)
}

/// A socket option of `SOL_SOCKET`. A set option and a get option may share a number.
pub(super) fn socket_option(arch: Arch, call: &str, value: u64) -> Option<String> {
    let names = consts::starting_with(arch, "SO_");
    let is_other = |name: &str| match name {
        "SO_ATTACH_FILTER" => call == "getsockopt",
        "SO_GET_FILTER" => call != "getsockopt",
        // A second name of `SO_DETACH_FILTER`.
        "SO_DETACH_BPF" => true,
        name => name.ends_with("_NEW") || name.ends_with("_OLD"),
    };
    let names = names.filter(|(name, known)| *known == value && !is_other(name));
    names
        .map(|(name, _)| name.to_owned())
        .min_by_key(String::len)
}

/// The requested or returned attributes of `statx`.
pub(super) fn statx_mask(value: u64) -> String {
    const NAMES: [&str; 17] = [
        "STATX_ALL",
        "STATX_BASIC_STATS",
        "STATX_TYPE",
        "STATX_MODE",
        "STATX_NLINK",
        "STATX_UID",
        "STATX_GID",
        "STATX_ATIME",
        "STATX_MTIME",
        "STATX_CTIME",
        "STATX_INO",
        "STATX_SIZE",
        "STATX_BLOCKS",
        "STATX_BTIME",
        "STATX_MNT_ID",
        "STATX_DIOALIGN",
        "STATX_MNT_ID_UNIQUE",
    ];
    joined(Arch::X86_64, &NAMES, value)
}

/// The flags whose names begin with `prefix`.
pub(super) fn starting_with(prefix: &str, value: u64) -> String {
    let mut flags: Vec<(u64, &str)> = consts::starting_with(Arch::X86_64, prefix)
        .map(|(name, bit)| (bit, name))
        .filter(|(bit, _)| bit.is_power_of_two() && value & bit != 0)
        .collect();
    flags.sort_unstable();
    let rest = flags.iter().fold(value, |rest, (bit, _)| rest & !bit);
    with_rest(
        flags.into_iter().map(|(_, name)| name.to_owned()).collect(),
        rest,
    )
}

/// The flags that are set, and the remaining bits.
pub(super) fn joined(arch: Arch, names: &[&'static str], value: u64) -> String {
    let (set, rest) = taken(arch, names, value);
    with_rest(set, rest)
}

fn taken(arch: Arch, names: &[&'static str], value: u64) -> (Vec<String>, u64) {
    let mut rest = value;
    let mut set = Vec::new();
    for name in names {
        let Some(flag) = consts::value(arch, name).filter(|flag| *flag != 0) else {
            continue;
        };
        if rest & flag == flag {
            rest &= !flag;
            set.push((*name).to_owned());
        }
    }
    (set, rest)
}

fn open_flags(arch: Arch, value: u64) -> String {
    const ACCESS: u64 = 3;
    let access = ["O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"][(value & ACCESS) as usize];
    let directory = consts::value(arch, "O_DIRECTORY").unwrap_or(0);
    let (mut names, rest) = taken(arch, &OPEN, value & !ACCESS);
    names.insert(0, access.to_owned());
    if directory != 0 && rest & directory != 0 {
        names.push("O_DIRECTORY".to_owned());
    }
    with_rest(names, rest & !directory)
}

/// A socket type in the lowest bits, with flags.
fn socket_type(arch: Arch, call: &str, arg: &Arg, value: u64, bits: u32) -> Option<String> {
    const TYPE: u64 = 0xf;
    let kind = family::for_argument(call, arg.name())?.name(arch, value & TYPE, bits)?;
    let (flags, rest) = taken(arch, &["SOCK_CLOEXEC", "SOCK_NONBLOCK"], value & !TYPE);
    let names = std::iter::once(kind.to_owned()).chain(flags).collect();
    Some(with_rest(names, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(call: &str, name: &str, value: u64) -> Option<String> {
        let arg = signature::args(call)?
            .iter()
            .find(|arg| arg.name() == name)?;
        super::symbol(Arch::X86_64, call, arg, value)
    }

    #[test]
    fn values_have_names_and_flags_are_taken_apart() {
        let name = |call, arg, value| symbol(call, arg, value).unwrap();
        assert_eq!(name("openat", "flags", 0o2_000_000), "O_RDONLY|O_CLOEXEC");
        assert_eq!(
            name("openat", "flags", 0x9_0800),
            "O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY"
        );
        assert_eq!(name("openat", "flags", 0x41_0002), "O_RDWR|O_TMPFILE");
        let mapping = name("mmap", "flags", 0x8_0003);
        assert_eq!(mapping, "MAP_SHARED_VALIDATE|MAP_SYNC");
        assert_eq!(name("accept4", "flags", 0x8_0001), "SOCK_CLOEXEC|0x1");
        assert_eq!(name("openat", "dfd", 0xffff_ff9c), "AT_FDCWD");
        assert_eq!(name("socket", "type", 0x8_0003), "SOCK_RAW|SOCK_CLOEXEC");
        assert_eq!(name("mmap", "prot", 0), "PROT_NONE");
        assert_eq!(name("mmap", "flags", 0x22), "MAP_PRIVATE|MAP_ANONYMOUS");
        assert_eq!(name("access", "mode", 0), "F_OK");
        assert_eq!(name("access", "mode", 5), "R_OK|X_OK");
        assert_eq!(
            name("clone", "clone_flags", 0x0120_0011),
            "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD"
        );
        assert_eq!(name("newfstatat", "flag", 0), "0");
        assert_eq!(name("wait4", "options", 0x8000_0001), "WNOHANG|0x80000000");
        assert_eq!(symbol("read", "count", 1), None);
        assert_eq!(name("mount", "flags", 0x4_4000), "MS_REC|MS_PRIVATE");
        assert_eq!(name("mount", "flags", 0xc0ed_0001), "MS_MGC_VAL|MS_RDONLY");
        assert_eq!(name("mount", "flags", 0x8000_0000), "0x80000000");
        assert_eq!(
            name("futex", "op", 0x189),
            "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME"
        );
        assert_eq!(symbol("futex", "op", 0x1ff), None);
    }

    #[test]
    fn what_is_set_and_what_is_got_have_their_own_names() {
        let option = |call, value| socket_option(Arch::X86_64, call, value).unwrap();
        assert_eq!(option("setsockopt", 26), "SO_ATTACH_FILTER");
        assert_eq!(option("getsockopt", 26), "SO_GET_FILTER");
        assert_eq!(option("setsockopt", 27), "SO_DETACH_FILTER");
        let got = |command, result| got_by_control(Arch::X86_64, command, result);
        assert_eq!(got(3, 0x402).as_deref(), Some("flags O_RDWR|O_APPEND"));
        assert_eq!(got(1, 1).as_deref(), Some("flags FD_CLOEXEC"));
        assert_eq!((got(1, 0), got(2, 1)), (None, None));
    }

    #[test]
    fn the_tables_are_about_arguments_and_constants_that_exist() {
        for (calls, name, names) in FLAGS {
            for call in *calls {
                let args = signature::args(call).unwrap_or_else(|| panic!("{call}"));
                // In a list of several calls, some may lack the argument.
                assert!(
                    args.iter().any(|arg| arg.name() == *name) || calls.len() > 1,
                    "{call} {name}"
                );
            }
            for name in *names {
                assert!(consts::is_known(name), "{name}");
            }
        }
        for name in OPEN {
            assert!(consts::is_known(name), "{name}");
        }
    }

    #[test]
    fn every_error_of_the_machine_has_one_name() {
        let named = (1..ERRORS as u16)
            .filter(|number| error_name(*number).is_some())
            .count();
        assert_eq!(named, ERRORS - 1 - 2, "two numbers were never given");
    }
}
