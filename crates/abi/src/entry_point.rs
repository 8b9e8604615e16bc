//! The names that the kernel gives to the functions behind system calls.
//!
//! Tracing events, stack traces and headers show them: `newuname`, `sys_newfstat`, `__x64_sys_read`, `__NR_read`. They
//! are not names of calls here, and only serve to suggest the name that was meant.

use crate::syscall::Name;

/// The prefixes of the names of functions, and of calls in C.
const PREFIXES: [&str; 14] = [
    "sys_enter_",
    "sys_exit_",
    "__x64_sys_",
    "__x32_compat_sys_",
    "__ia32_compat_sys_",
    "__ia32_sys_",
    "__arm64_compat_sys_",
    "__arm64_sys_",
    "__do_sys_",
    "__se_sys_",
    "compat_sys_",
    "__NR_",
    "SYS_",
    "sys_",
];

/// The kernel's suffixes of functions of calls with narrower times or identities.
const SUFFIXES: [&str; 4] = ["_time32", "_time64", "32", "16"];

/// Functions whose names differ otherwise (`SYSCALL_DEFINE` in `fs/stat.c`, `kernel/sys.c`, `fs/namespace.c` …).
const FUNCTIONS: [(&str, &str); 12] = [
    ("llseek", "_llseek"),
    ("mmap_pgoff", "mmap2"),
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newstat", "stat"),
    ("newuname", "uname"),
    ("old_mmap", "mmap"),
    ("old_readdir", "readdir"),
    ("old_select", "select"),
    ("olduname", "oldolduname"),
    ("sysctl", "_sysctl"),
    ("umount", "umount2"),
];

/// The call whose function in the kernel, number or tracing event has this name; `None` if the name is that of a call.
///
/// ```
/// use tamis_abi::entry_point::call_of;
/// assert_eq!(call_of("newuname"), Some("uname"));
/// assert_eq!(call_of("__x64_sys_newfstat"), Some("fstat"));
/// assert_eq!(call_of("__NR_read"), Some("read"));
/// assert_eq!(call_of("utimensat_time32"), Some("utimensat"));
/// assert_eq!(call_of("read"), None);
/// ```
pub fn call_of(function: &str) -> Option<&'static str> {
    if Name::find(function).is_some() {
        return None;
    }
    let bare = PREFIXES
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix))
        .unwrap_or(function);
    let differing = FUNCTIONS.iter().find(|(name, _)| *name == bare);
    let call = |text: &str| Name::find(text).map(Name::text);
    let narrower = || {
        let shorter = SUFFIXES
            .iter()
            .filter_map(|suffix| bare.strip_suffix(suffix));
        shorter.into_iter().find_map(call)
    };
    differing
        .map(|(_, name)| *name)
        .or_else(|| call(bare))
        .or_else(narrower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_leads_to_a_call() {
        for (function, name) in FUNCTIONS {
            assert!(Name::find(name).is_some(), "{function}: {name}");
        }
    }

    #[test]
    fn a_call_of_some_architecture_is_meant_itself() {
        for name in ["read", "umount", "olduname", "sendfile64", "chown32"] {
            assert_eq!(call_of(name), None);
        }
        assert_eq!(call_of("sys_umount"), Some("umount2"));
        assert_eq!(call_of("nothing_like_it"), None);
    }
}
