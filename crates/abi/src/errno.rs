//! Names of errno values.
//!
//! The first 34 are the same on every architecture (`include/uapi/asm-generic/errno-base.h`); of the
//! others only [`consts`](crate::consts) can tell, because their values differ.

/// The names of 1, 2, … 34.
const BASE: [&str; 34] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
];

/// The name of an errno value that means the same on every architecture: 1 to 34.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arch, consts};

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
}
