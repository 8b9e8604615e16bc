//! System call numbers and names per architecture.
//!
//! The tables contain every number that a kernel up to 7.2 has assigned, including removed calls and numbers that were
//! only reserved: a policy may name them, and a filter may meet them. A text is searched among the names of all
//! architectures by binary search; the number of a [`Name`] on an architecture is then one access to its table.

use crate::arch::Arch;
use crate::generated::syscalls::{NAME_COUNT, NAMES, table};
use crate::kernel_version::KernelVersion;

/// The newest kernel whose calls are in the tables.
pub const NEWEST_KERNEL: KernelVersion = KernelVersion::new(7, 2);

/// A system call number as a filter sees it: unsigned, with bit 30 set for x32 and with the base of
/// its convention for MIPS (o32 4000, n64 5000, n32 6000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nr(pub u32);

/// The numbers of one or more architectures. It contains addresses, and its tables contain none: pages with addresses
/// are written when a program is loaded.
pub(crate) struct Table {
    /// Sorted by number.
    pub(crate) calls: &'static [Call],
    /// The number of each of [`NAMES`]; [`NONE`] if it isn't the name of a call here.
    pub(crate) numbers: &'static [u32; NAME_COUNT],
}

/// No number: -1, which tracers write to skip a call, and which is never a call's number.
pub(crate) const NONE: u32 = u32::MAX;

/// The name of a call of some architecture. Ordered as the texts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u16);

impl Name {
    /// The name with this text, if any architecture has a call of it.
    ///
    /// ```
    /// use tamis_abi::{Arch, Nr, syscall::Name};
    /// let open = Name::find("open").unwrap();
    /// assert_eq!(open.number(Arch::X86_64), Some(Nr(2)));
    /// assert_eq!(open.number(Arch::Aarch64), None);
    /// assert_eq!(Name::find("opne"), None);
    /// ```
    pub fn find(text: &str) -> Option<Name> {
        let place = NAMES.binary_search(&text).ok()?;
        Some(Name(place as u16))
    }

    /// The name with this text when the tables are compiled.
    const fn find_const(text: &str) -> Name {
        let (mut low, mut high) = (0, NAME_COUNT);
        while low < high {
            let middle = low.midpoint(high);
            if is_less(NAMES[middle], text) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        assert!(!is_less(text, NAMES[low]), "the names have all calls");
        Name(low as u16)
    }

    /// The name of a number on an architecture: [`name`], without its text.
    ///
    /// ```
    /// use tamis_abi::{Arch, Nr, syscall::Name};
    /// let open = Name::of_number(Arch::X86_64, Nr(2)).unwrap();
    /// assert_eq!((open.text(), open.number(Arch::X86)), ("open", Some(Nr(5))));
    /// ```
    pub fn of_number(arch: Arch, nr: Nr) -> Option<Name> {
        table(arch)?.by_number(nr).map(|call| call.name)
    }

    /// The text.
    pub const fn text(self) -> &'static str {
        NAMES[self.0 as usize]
    }

    /// The number of the call on an architecture.
    pub fn number(self, arch: Arch) -> Option<Nr> {
        let number = table(arch)?.numbers[usize::from(self.0)];
        (number != NONE).then_some(Nr(number))
    }
}

const fn is_less(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut at = 0;
    while at < left.len() && at < right.len() {
        if left[at] != right[at] {
            return left[at] < right[at];
        }
        at += 1;
    }
    left.len() < right.len()
}

/// A row of a [`Table`].
pub(crate) struct Call {
    nr: u32,
    name: Name,
    since: KernelVersion,
}

/// The kernel version of calls whose first kernel is unknown.
const UNKNOWN: KernelVersion = KernelVersion::new(0, 0);

/// Makes a row of a table in one line, for the place of a name among [`NAMES`]: searching thousands of names when the
/// tables are compiled takes seconds.
pub(crate) const fn call(nr: u32, name: u16, major: u16, minor: u16) -> Call {
    Call {
        nr,
        name: Name(name),
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
}

/// Whether the tables of an architecture are there. Those of x86-64, AArch64, their other calls, and the machine for which
/// the crate is compiled always are; the others with the feature `architectures`.
pub fn has_table(arch: Arch) -> bool {
    table(arch).is_some()
}

fn calls(arch: Arch) -> &'static [Call] {
    table(arch).map_or(&[], |table| table.calls)
}

/// The number of a named call on an architecture.
///
/// ```
/// use tamis_abi::{Arch, Nr, syscall};
/// assert_eq!(syscall::number(Arch::X86_64, "openat"), Some(Nr(257)));
/// assert_eq!(syscall::number(Arch::Aarch64, "open"), None);
/// ```
pub fn number(arch: Arch, name: &str) -> Option<Nr> {
    Name::find(name)?.number(arch)
}

/// The name of a number on an architecture; where a call has two names, the one that the kernel's
/// own table uses.
pub fn name(arch: Arch, nr: Nr) -> Option<&'static str> {
    Name::of_number(arch, nr).map(Name::text)
}

/// All calls of an architecture, ascending by number; each number once.
pub fn all(arch: Arch) -> impl Iterator<Item = (Nr, &'static str)> {
    calls(arch)
        .iter()
        .map(|call| (Nr(call.nr), call.name.text()))
}

/// How many calls of an architecture have a number in `first..=last`. Logarithmic.
pub fn count(arch: Arch, first: Nr, last: Nr) -> usize {
    let calls = calls(arch);
    let end = calls.partition_point(|call| call.nr <= last.0);
    let start = calls.partition_point(|call| call.nr < first.0);
    end.saturating_sub(start)
}

/// The largest number of an architecture. On Arm that is a private call far above the rest.
pub fn last(arch: Arch) -> Option<Nr> {
    calls(arch).last().map(|call| Nr(call.nr))
}

/// All names of all architectures, sorted, each once.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied()
}

/// Whether any architecture has a call of this name.
pub fn is_known(name: &str) -> bool {
    Name::find(name).is_some()
}

/// The kernel in which a call appeared on this architecture, if known.
///
/// If the sources give only an interval, its end: the result is never an older kernel. The age of the architecture
/// itself is not taken into account.
pub fn since(arch: Arch, nr: Nr) -> Option<KernelVersion> {
    let since = table(arch)?.by_number(nr)?.since;
    (since != UNKNOWN).then_some(since)
}

/// A call through a multiplexer, whose first argument selects the call.
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
    const MULTIPLEXERS: [Name; 2] = [Name::find_const("socketcall"), Name::find_const("ipc")];
    let find = |multiplexer: Name, calls: &[(u32, &str)]| {
        let nr = multiplexer.number(arch)?;
        let &(call, _) = calls.iter().find(|(_, known)| *known == name)?;
        Some(Multiplexed { nr, call })
    };
    let [socketcall, ipc] = MULTIPLEXERS;
    find(socketcall, &SOCKETCALL).or_else(|| find(ipc, &IPC))
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
    fn every_number_of_a_name_has_a_call() {
        for arch in Arch::all() {
            for nr in names().filter_map(|name| number(arch, name)) {
                assert!(name(arch, nr).is_some(), "{arch} {nr:?}");
            }
        }
    }

    #[test]
    fn a_second_name_leads_to_a_call_with_another_name() {
        let second = number(Arch::Arm, "arm_sync_file_range").unwrap();
        assert_eq!(number(Arch::Arm, "sync_file_range2"), Some(second));
        assert_eq!(name(Arch::Arm, second), Some("sync_file_range2"));
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
        let mut calls = SOCKETCALL.iter().chain(&IPC);
        assert!(calls.all(|(_, name)| is_known(name)));
        for arch in [Arch::Arm, Arch::Aarch64, Arch::Mips64, Arch::X32] {
            assert_eq!(multiplexed(arch, "accept"), None, "{arch}");
            assert_eq!(multiplexed(arch, "semop"), None, "{arch}");
        }
    }
}
