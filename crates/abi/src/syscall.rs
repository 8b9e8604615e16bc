//! System call numbers and names per architecture.
//!
//! The tables know every number that a kernel up to 7.2 has assigned, including calls that were
//! removed and numbers that were only ever reserved: a policy may name them, and a filter may meet
//! them. Lookups are binary searches in static tables.

use crate::arch::Arch;
use crate::generated::syscalls::{NAMES, table};
use crate::kernel_version::KernelVersion;

/// A system call number as a filter sees it: unsigned, with bit 30 set for x32 and with the base of
/// its convention for MIPS (o32 4000, n64 5000, n32 6000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nr(pub u32);

/// The numbers of one or more architectures.
pub(crate) struct Table {
    /// Sorted by number.
    pub(crate) calls: &'static [Call],
    /// Indices into `calls`, sorted by name.
    pub(crate) by_name: &'static [u16],
    /// Other names of calls, sorted.
    pub(crate) second_names: &'static [(&'static str, u32)],
}

/// A row of a [`Table`].
pub(crate) struct Call {
    nr: u32,
    name: &'static str,
    since: KernelVersion,
}

/// The kernel version of calls whose first kernel is unknown.
const UNKNOWN: KernelVersion = KernelVersion::new(0, 0);

/// Makes a row of a table in one line.
pub(crate) const fn call(nr: u32, name: &'static str, major: u16, minor: u16) -> Call {
    Call {
        nr,
        name,
        since: KernelVersion::new(major, minor),
    }
}

impl Table {
    fn by_number(&self, nr: Nr) -> Option<&'static Call> {
        let index = self
            .calls
            .binary_search_by_key(&nr.0, |call| call.nr)
            .ok()?;
        Some(&self.calls[index])
    }

    fn by_name(&self, name: &str) -> Option<Nr> {
        if let Ok(index) = self
            .by_name
            .binary_search_by_key(&name, |&index| self.calls[usize::from(index)].name)
        {
            return Some(Nr(self.calls[usize::from(self.by_name[index])].nr));
        }
        let index = self
            .second_names
            .binary_search_by_key(&name, |&(second, _)| second)
            .ok()?;
        Some(Nr(self.second_names[index].1))
    }
}

/// The number of a named call on an architecture.
///
/// ```
/// use tamis_abi::{Arch, Nr, syscall};
/// assert_eq!(syscall::number(Arch::X86_64, "openat"), Some(Nr(257)));
/// assert_eq!(syscall::number(Arch::Aarch64, "open"), None);
/// ```
pub fn number(arch: Arch, name: &str) -> Option<Nr> {
    table(arch).by_name(name)
}

/// The name of a number on an architecture; where a call has two names, the one that the kernel's
/// own table uses.
pub fn name(arch: Arch, nr: Nr) -> Option<&'static str> {
    table(arch).by_number(nr).map(|call| call.name)
}

/// All calls of an architecture, ascending by number; each number once.
pub fn all(arch: Arch) -> impl Iterator<Item = (Nr, &'static str)> {
    table(arch)
        .calls
        .iter()
        .map(|call| (Nr(call.nr), call.name))
}

/// The largest number of an architecture. On Arm that is a private call far above the rest.
pub fn last(arch: Arch) -> Option<Nr> {
    table(arch).calls.last().map(|call| Nr(call.nr))
}

/// All names of all architectures, sorted, each once.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied()
}

/// Whether any architecture has a call of this name.
pub fn is_known(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

/// The kernel in which a call appeared on this architecture, if known.
///
/// Where the sources tell an interval only, its end: the call is never said to be older than it is.
/// That an architecture itself is younger than the call is not taken into account.
pub fn since(arch: Arch, nr: Nr) -> Option<KernelVersion> {
    let since = table(arch).by_number(nr)?.since;
    (since != UNKNOWN).then_some(since)
}

/// A way to a call through a multiplexer, whose first argument selects the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiplexed {
    /// The multiplexer: `socketcall` or `ipc`.
    pub nr: Nr,
    /// The selector. `ipc` looks at the lower 16 bits of its first argument only (the upper ones
    /// hold a version); `socketcall` looks at 32 bits.
    pub call: u32,
}

/// How a call is made through `socketcall` or `ipc` on architectures that have them; many of these
/// have a number of the call's own too, see [`number`].
///
/// A filter sees the selector but not the call's arguments, which are behind a pointer
/// (`socketcall`) or shifted by one (`ipc`).
///
/// ```
/// use tamis_abi::{Arch, Nr, syscall};
/// let socket = syscall::multiplexed(Arch::X86, "socket").unwrap();
/// assert_eq!((socket.nr, socket.call), (Nr(102), 1));
/// assert_eq!(syscall::multiplexed(Arch::X86_64, "socket"), None);
/// ```
pub fn multiplexed(arch: Arch, name: &str) -> Option<Multiplexed> {
    let find = |multiplexer: &str, calls: &[(u32, &str)]| {
        let &(call, _) = calls.iter().find(|(_, known)| *known == name)?;
        let nr = number(arch, multiplexer)?;
        Some(Multiplexed { nr, call })
    };
    find("socketcall", &SOCKETCALL).or_else(|| find("ipc", &IPC))
}

/// `include/uapi/linux/net.h`.
const SOCKETCALL: [(u32, &str); 20] = [
    (1, "socket"),
    (2, "bind"),
    (3, "connect"),
    (4, "listen"),
    (5, "accept"),
    (6, "getsockname"),
    (7, "getpeername"),
    (8, "socketpair"),
    (9, "send"),
    (10, "recv"),
    (11, "sendto"),
    (12, "recvfrom"),
    (13, "shutdown"),
    (14, "setsockopt"),
    (15, "getsockopt"),
    (16, "sendmsg"),
    (17, "recvmsg"),
    (18, "accept4"),
    (19, "recvmmsg"),
    (20, "sendmmsg"),
];

/// `include/uapi/linux/ipc.h`.
const IPC: [(u32, &str); 12] = [
    (1, "semop"),
    (2, "semget"),
    (3, "semctl"),
    (4, "semtimedop"),
    (11, "msgsnd"),
    (12, "msgrcv"),
    (13, "msgget"),
    (14, "msgctl"),
    (21, "shmat"),
    (22, "shmdt"),
    (23, "shmget"),
    (24, "shmctl"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_and_name_round_trips_on_every_architecture() {
        for arch in Arch::all() {
            let mut count = 0;
            for (nr, call) in all(arch) {
                assert_eq!(number(arch, call), Some(nr), "{arch} {call}");
                assert_eq!(name(arch, nr), Some(call), "{arch} {nr:?}");
                assert!(is_known(call), "{call}");
                count += 1;
            }
            assert!(count > 300, "{arch} has {count} calls");
        }
    }

    #[test]
    fn numbers_ascend_and_belong_to_their_architecture() {
        for arch in Arch::all() {
            let numbers: Vec<Nr> = all(arch).map(|(nr, _)| nr).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{arch}");
            assert!(numbers.iter().all(|nr| arch.owns_number(nr.0)), "{arch}");
            assert_eq!(last(arch), numbers.last().copied());
        }
    }

    #[test]
    fn every_second_name_leads_to_a_call_with_another_name() {
        for arch in Arch::all() {
            for &(second, nr) in table(arch).second_names {
                assert_eq!(number(arch, second), Some(Nr(nr)));
                assert_ne!(name(arch, Nr(nr)).unwrap(), second);
            }
        }
    }

    #[test]
    fn names_are_sorted_unique_and_each_exists_somewhere() {
        let names: Vec<&str> = names().collect();
        assert!(names.is_sorted_by(|a, b| a < b));
        for name in names {
            assert!(
                Arch::all().any(|arch| number(arch, name).is_some()),
                "{name}"
            );
        }
    }

    #[test]
    fn conventions_keep_their_base() {
        let read = |arch| number(arch, "read").unwrap().0;
        assert_eq!(read(Arch::X32), 0x4000_0000);
        assert_eq!(read(Arch::Mips), 4003);
        assert_eq!(read(Arch::Mipsel64), 5000);
        assert_eq!(read(Arch::Mips64n32), 6000);
    }

    #[test]
    fn since_depends_on_the_architecture() {
        let since = |arch, name| since(arch, number(arch, name).unwrap());
        assert_eq!(
            since(Arch::X86_64, "socket"),
            Some(KernelVersion::new(2, 0))
        );
        assert_eq!(since(Arch::X86, "socket"), Some(KernelVersion::new(4, 3)));
        assert_eq!(
            since(Arch::X86_64, "seccomp"),
            Some(KernelVersion::new(3, 17))
        );
    }

    #[test]
    fn multiplexers_exist_where_their_calls_may_have_no_number() {
        assert_eq!(number(Arch::X86, "accept"), None);
        assert!(multiplexed(Arch::X86, "accept").is_some());
        assert!(multiplexed(Arch::S390x, "semop").is_some());
        for arch in [Arch::Arm, Arch::Aarch64, Arch::Mips64, Arch::X32] {
            assert_eq!(multiplexed(arch, "accept"), None, "{arch}");
            assert_eq!(multiplexed(arch, "semop"), None, "{arch}");
        }
    }
}
