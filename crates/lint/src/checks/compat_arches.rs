//! The other architectures whose programs the same kernel runs.

use tamis_abi::Arch;

use crate::context::{Access, Call};

/// The architectures whose calls a 64-bit kernel of this architecture usually supports, without x32, which shares
/// the audit value of x86_64.
pub(super) const fn compat_arches(arch: Arch) -> &'static [Arch] {
    match arch {
        Arch::X86_64 => &[Arch::X86],
        Arch::Aarch64 => &[Arch::Arm],
        Arch::S390x => &[Arch::S390],
        Arch::Ppc64 => &[Arch::Ppc],
        Arch::Mips64 => &[Arch::Mips, Arch::Mips64n32],
        Arch::Mipsel64 => &[Arch::Mipsel, Arch::Mipsel64n32],
        Arch::Parisc64 => &[Arch::Parisc],
        _ => &[],
    }
}

/// The most informative examples of calls that a filter allows.
const INFORMATIVE: [&str; 3] = ["execve", "openat", "socket"];

/// The most informative of the open calls; `None` if none is open.
pub(super) fn most_informative(calls: &[Call]) -> Option<Call> {
    let open = || calls.iter().filter(|call| call.access == Access::Open);
    let mut informative = INFORMATIVE.iter();
    let found = informative.find_map(|name| open().find(|call| call.name == *name));
    found.or_else(|| open().next()).copied()
}
