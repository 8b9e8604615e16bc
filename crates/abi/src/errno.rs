//! Names of errno values.
//!
//! The first 34 are the same on every architecture (`include/uapi/asm-generic/errno-base.h`); for the others use
//! [`consts`], because their values differ.

use crate::arch::Arch;
use crate::consts;

/// The greatest error number: the kernel answers with this one where a filter has a greater (`MAX_ERRNO` of
/// `include/linux/err.h`).
pub const MAX: u16 = 4095;

/// The names of 1, 2, … 34.
const BASE: [&str; 34] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
];

/// The name of an errno value that is the same on every architecture: 1 to 34.
///
/// ```
/// use tamis_abi::errno;
/// assert_eq!(errno::portable_name(13), Some("EACCES"));
/// assert_eq!(errno::portable_name(38), None);
/// ```
pub fn portable_name(errno: u16) -> Option<&'static str> {
    let index = usize::from(errno).checked_sub(1)?;
    BASE.get(index).copied()
}

/// The error of a kernel that lacks a call.
///
/// ```
/// use tamis_abi::{Arch, errno};
/// assert_eq!((errno::enosys(Arch::X86_64), errno::enosys(Arch::Mips)), (38, 89));
/// ```
pub fn enosys(arch: Arch) -> u16 {
    const OF_MOST: u16 = 38;
    let value = consts::value(arch, "ENOSYS").and_then(|value| u16::try_from(value).ok());
    value.unwrap_or(OF_MOST)
}

/// Whether a constant of this name is an errno value, perhaps on some architectures only.
///
/// ```
/// use tamis_abi::errno;
/// assert!(errno::is_name("EPERM") && errno::is_name("EL2NSYNC"));
/// assert!(!errno::is_name("EPOLLIN") && !errno::is_name("AF_INET"));
/// ```
pub fn is_name(name: &str) -> bool {
    /// Other families of constants whose names begin as those of errors do.
    const OTHER_FAMILIES: [&str; 5] = ["ECCGET", "ECHO", "EPOLL", "EVIOC", "EXT"];
    const REGISTERS: [&str; 10] = [
        "EAX", "EBP", "EBX", "ECX", "EDI", "EDX", "EFL", "EIP", "ES", "ESI",
    ];
    let is_other = OTHER_FAMILIES.iter().any(|head| name.starts_with(head));
    name.starts_with('E')
        && !name.contains('_')
        && !is_other
        && !REGISTERS.contains(&name)
        && consts::is_known(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arch;

    #[test]
    fn the_names_have_these_values_on_every_architecture() {
        for arch in Arch::all() {
            for errno in 1..=34 {
                let name = portable_name(errno).expect("the table has 34 names");
                assert_eq!(
                    consts::value(arch, name),
                    Some(u64::from(errno)),
                    "{name} on {arch}"
                );
            }
        }
        assert_eq!(portable_name(0), None);
        assert_eq!(portable_name(35), None);
    }

    #[test]
    fn names_are_those_of_the_kernels_errors() {
        let is_name = |(name, _): &(&str, u64)| is_name(name);
        let errors = || consts::starting_with(Arch::X86_64, "E").filter(is_name);
        // EHWPOISON is the last; EWOULDBLOCK and EDEADLOCK leave two gaps.
        for value in (1..=133).filter(|value| ![41, 58].contains(value)) {
            assert!(errors().any(|(_, errno)| errno == value), "{value}");
        }
        for (name, value) in errors() {
            assert!((1..=133).contains(&value), "{name} {value}");
        }
        let count = errors().count();
        assert!((131..=135).contains(&count), "{count}: few have two names");
    }
}
