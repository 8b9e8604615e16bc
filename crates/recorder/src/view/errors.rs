//! The texts of errors, as `strace` prints them.
//!
//! The texts of glibc, for the errors of x86 and all architectures with the same numbers. C libraries differ in these
//! texts, so a static program must not use those of its own.

/// A line for each error from 1 on; two numbers have no text.
const TEXTS: &str = "\
Operation not permitted\n\
No such file or directory\n\
No such process\n\
Interrupted system call\n\
Input/output error\n\
No such device or address\n\
Argument list too long\n\
Exec format error\n\
Bad file descriptor\n\
No child processes\n\
Resource temporarily unavailable\n\
Cannot allocate memory\n\
Permission denied\n\
Bad address\n\
Block device required\n\
Device or resource busy\n\
File exists\n\
Invalid cross-device link\n\
No such device\n\
Not a directory\n\
Is a directory\n\
Invalid argument\n\
Too many open files in system\n\
Too many open files\n\
Inappropriate ioctl for device\n\
Text file busy\n\
File too large\n\
No space left on device\n\
Illegal seek\n\
Read-only file system\n\
Too many links\n\
Broken pipe\n\
Numerical argument out of domain\n\
Numerical result out of range\n\
Resource deadlock avoided\n\
File name too long\n\
No locks available\n\
Function not implemented\n\
Directory not empty\n\
Too many levels of symbolic links\n\
\n\
No message of desired type\n\
Identifier removed\n\
Channel number out of range\n\
Level 2 not synchronized\n\
Level 3 halted\n\
Level 3 reset\n\
Link number out of range\n\
Protocol driver not attached\n\
No CSI structure available\n\
Level 2 halted\n\
Invalid exchange\n\
Invalid request descriptor\n\
Exchange full\n\
No anode\n\
Invalid request code\n\
Invalid slot\n\
\n\
Bad font file format\n\
Device not a stream\n\
No data available\n\
Timer expired\n\
Out of streams resources\n\
Machine is not on the network\n\
Package not installed\n\
Object is remote\n\
Link has been severed\n\
Advertise error\n\
Srmount error\n\
Communication error on send\n\
Protocol error\n\
Multihop attempted\n\
RFS specific error\n\
Bad message\n\
Value too large for defined data type\n\
Name not unique on network\n\
File descriptor in bad state\n\
Remote address changed\n\
Can not access a needed shared library\n\
Accessing a corrupted shared library\n\
.lib section in a.out corrupted\n\
Attempting to link in too many shared libraries\n\
Cannot exec a shared library directly\n\
Invalid or incomplete multibyte or wide character\n\
Interrupted system call should be restarted\n\
Streams pipe error\n\
Too many users\n\
Socket operation on non-socket\n\
Destination address required\n\
Message too long\n\
Protocol wrong type for socket\n\
Protocol not available\n\
Protocol not supported\n\
Socket type not supported\n\
Operation not supported\n\
Protocol family not supported\n\
Address family not supported by protocol\n\
Address already in use\n\
Cannot assign requested address\n\
Network is down\n\
Network is unreachable\n\
Network dropped connection on reset\n\
Software caused connection abort\n\
Connection reset by peer\n\
No buffer space available\n\
Transport endpoint is already connected\n\
Transport endpoint is not connected\n\
Cannot send after transport endpoint shutdown\n\
Too many references: cannot splice\n\
Connection timed out\n\
Connection refused\n\
Host is down\n\
No route to host\n\
Operation already in progress\n\
Operation now in progress\n\
Stale file handle\n\
Structure needs cleaning\n\
Not a XENIX named type file\n\
No XENIX semaphores available\n\
Is a named type file\n\
Remote I/O error\n\
Disk quota exceeded\n\
No medium found\n\
Wrong medium type\n\
Operation canceled\n\
Required key not available\n\
Key has expired\n\
Key has been revoked\n\
Key was rejected by service\n\
Owner died\n\
State not recoverable\n\
Operation not possible due to RF-kill\n\
Memory page has hardware error\n";

/// The text of an error; empty if it has none.
pub(super) fn text(errno: u16) -> &'static str {
    let index = usize::from(errno).checked_sub(1);
    index
        .and_then(|index| TEXTS.lines().nth(index))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_text_for_each_error_that_has_a_name() {
        const GAPS: [u16; 2] = [41, 58];
        for errno in 0..200 {
            let has_text = (1..=133).contains(&errno) && !GAPS.contains(&errno);
            assert_eq!(!text(errno).is_empty(), has_text, "{errno}");
        }
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn texts_are_those_of_this_library() {
        for errno in (1..=133).filter(|errno| !text(*errno).is_empty()) {
            let system = std::io::Error::from_raw_os_error(errno.into()).to_string();
            assert_eq!(system, format!("{} (os error {errno})", text(errno)));
        }
    }
}
