//! Flags of an installation, `SECCOMP_FILTER_FLAG_*`.

use std::fmt;
use std::ops::BitOr;

use tamis_abi::KernelVersion;

/// One flag of `seccomp(SECCOMP_SET_MODE_FILTER)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// Install the filter on all threads of the process. Kernel 3.17.
    Tsync,
    /// Write an audit record of every action except allow. Kernel 4.14.
    Log,
    /// Don't turn on the mitigation against speculative store bypass. Kernel 4.17.
    SpecAllow,
    /// Return a listener for the calls with the action notify. Kernel 5.0.
    NewListener,
    /// Make a failed [`Tsync`](Flag::Tsync) return `ESRCH` instead of a thread. Kernel 5.7.
    TsyncEsrch,
    /// Allow only deadly signals to interrupt a call that the listener has received. Kernel 5.19.
    WaitKillableRecv,
}

impl Flag {
    /// All flags, in the order of their introduction.
    pub const ALL: [Flag; 6] = [
        Flag::Tsync,
        Flag::Log,
        Flag::SpecAllow,
        Flag::NewListener,
        Flag::TsyncEsrch,
        Flag::WaitKillableRecv,
    ];

    /// The bit in the flags word.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The name after `SECCOMP_FILTER_FLAG_`, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Flag::Tsync => "tsync",
            Flag::Log => "log",
            Flag::SpecAllow => "spec_allow",
            Flag::NewListener => "new_listener",
            Flag::TsyncEsrch => "tsync_esrch",
            Flag::WaitKillableRecv => "wait_killable_recv",
        }
    }

    /// The flag with this name in the kernel's headers, such as `SECCOMP_FILTER_FLAG_LOG`.
    pub fn from_constant(name: &str) -> Option<Flag> {
        let name = name.strip_prefix("SECCOMP_FILTER_FLAG_")?;
        Flag::ALL
            .into_iter()
            .find(|flag| flag.name().to_ascii_uppercase() == name)
    }

    /// The first kernel that supports it.
    pub const fn since(self) -> KernelVersion {
        match self {
            Flag::Tsync => KernelVersion::new(3, 17),
            Flag::Log => KernelVersion::new(4, 14),
            Flag::SpecAllow => KernelVersion::new(4, 17),
            Flag::NewListener => KernelVersion::new(5, 0),
            Flag::TsyncEsrch => KernelVersion::new(5, 7),
            Flag::WaitKillableRecv => KernelVersion::new(5, 19),
        }
    }
}

/// A set of [`Flag`]s.
///
/// ```
/// use tamis_kernel::{Flag, Flags};
/// let flags = Flag::Log | Flag::Tsync;
/// assert!(flags.contains(Flag::Tsync));
/// assert_eq!(flags.to_string(), "tsync|log");
/// assert_eq!(Flags::NONE.to_string(), "none");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);

    /// The flags word for the kernel.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the flag is in the set.
    pub const fn contains(self, flag: Flag) -> bool {
        self.0 & flag.bit() != 0
    }

    /// The set without the flags of another.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// The flags in the set, in the order of [`Flag::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::ALL
            .into_iter()
            .filter(move |flag| self.contains(*flag))
    }
}

impl From<Flag> for Flags {
    fn from(flag: Flag) -> Flags {
        Flags(flag.bit())
    }
}

impl BitOr for Flag {
    type Output = Flags;

    fn bitor(self, other: Flag) -> Flags {
        Flags::from(self) | other
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOr<Flag> for Flags {
    type Output = Flags;

    fn bitor(self, flag: Flag) -> Flags {
        Flags(self.0 | flag.bit())
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Flag::name).collect();
        if names.is_empty() {
            f.write_str("none")
        } else {
            f.write_str(&names.join("|"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_kernels() {
        let expected = [
            (Flag::Tsync, libc::SECCOMP_FILTER_FLAG_TSYNC),
            (Flag::Log, libc::SECCOMP_FILTER_FLAG_LOG),
            (Flag::SpecAllow, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW),
            (Flag::NewListener, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER),
            (Flag::TsyncEsrch, libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH),
            (
                Flag::WaitKillableRecv,
                libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
            ),
        ];
        for (flag, bit) in expected {
            assert_eq!(libc::c_ulong::from(flag.bit()), bit, "{}", flag.name());
        }
    }

    #[test]
    fn constants_are_found_by_their_whole_name() {
        let found = |name| Flag::from_constant(name);
        assert_eq!(
            found("SECCOMP_FILTER_FLAG_SPEC_ALLOW"),
            Some(Flag::SpecAllow)
        );
        assert_eq!(found("SECCOMP_FILTER_FLAG_spec_allow"), None);
        assert_eq!(found("SPEC_ALLOW"), None);
    }
}
