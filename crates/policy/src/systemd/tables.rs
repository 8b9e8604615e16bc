//! The lists in `data/`: systemd's sets of calls and its directives.

use std::collections::BTreeSet;
use std::sync::LazyLock;

const SETS: &str = include_str!("../../data/systemd-sets.txt");
const DIRECTIVES: &str = include_str!("../../data/systemd-directives.txt");

/// The names of errnos that systemd knows: those of the C library's `<errno.h>`, without the kernel's internal ones.
const ERRNOS: &str = "\
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG \
    EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED \
    ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN \
    EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED \
    EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN \
    ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET \
    ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK \
    ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN \
    ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOPNOTSUPP \
    EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG \
    EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE \
    ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL";

/// Whether systemd knows an errno by this name.
pub(super) fn is_errno_name(name: &str) -> bool {
    ERRNOS.split(' ').any(|errno| errno == name)
}

/// The members of a set, which may be other sets.
pub(super) fn set(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    row(SETS, name)
}

/// The names of all sets.
pub(super) fn set_names() -> impl Iterator<Item = &'static str> {
    rows(SETS).map(|(name, _)| name)
}

/// The calls of a set and of its nested sets.
pub(super) fn calls(set_name: &str) -> BTreeSet<&'static str> {
    let mut calls = BTreeSet::new();
    for member in set(set_name).into_iter().flatten() {
        match member.starts_with('@') {
            // Terminates: no set contains itself.
            true => calls.append(&mut self::calls(member)),
            false => drop(calls.insert(member)),
        }
    }
    calls
}

/// Whether systemd knows a call.
pub(super) fn is_known(call: &str) -> bool {
    static KNOWN: LazyLock<BTreeSet<&str>> = LazyLock::new(|| calls("@known"));
    KNOWN.contains(call)
}

/// The directives of a section.
pub(super) fn directives(section: &str) -> Option<impl Iterator<Item = &'static str>> {
    row(DIRECTIVES, section)
}

/// The names of all sections.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    rows(DIRECTIVES).map(|(name, _)| name)
}

fn row(table: &'static str, name: &str) -> Option<impl Iterator<Item = &'static str>> {
    let mut rows = rows(table);
    let (_, members) = rows.find(|(title, _)| *title == name)?;
    Some(members.split(' '))
}

fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_contain_sets_that_exist_and_none_itself() {
        fn check(name: &str, depth: usize) {
            assert!(depth < 5, "{name}");
            for member in set(name).expect("it exists") {
                if member.starts_with('@') {
                    check(member, depth + 1);
                }
            }
        }
        set_names().for_each(|name| check(name, 0));
        assert!(calls("@known").contains("read"));
        assert!(calls("@system-service").contains("futex"));
    }
}
