//! Minijail's names of architectures; some differ from ours. Its tool compares the names after `arch=` exactly and
//! ignores the line if none matches.

use tamis_abi::Arch;

/// The names in `arch.h` and the tables of minijail's tool, which treats 64-bit PowerPC as one architecture.
const NAMES: [(&str, &[Arch]); 15] = [
    ("x86_64", &[Arch::X86_64]),
    ("x86", &[Arch::X86]),
    ("arm64", &[Arch::Aarch64]),
    ("arm", &[Arch::Arm]),
    ("riscv64", &[Arch::Riscv64]),
    ("loong64", &[Arch::Loongarch64]),
    ("mips", &[Arch::Mips]),
    ("mipsel", &[Arch::Mipsel]),
    ("mips64", &[Arch::Mips64]),
    ("mipsel64", &[Arch::Mipsel64]),
    ("parisc", &[Arch::Parisc]),
    ("ppc64", &[Arch::Ppc64, Arch::Ppc64le]),
    ("ppc", &[Arch::Ppc]),
    ("s390x", &[Arch::S390x]),
    ("s390", &[Arch::S390]),
];

/// The architectures of a minijail name; `None` for an unknown name.
pub(super) fn named(name: &str) -> Option<&'static [Arch]> {
    let mut rows = NAMES.into_iter();
    rows.find(|(known, _)| *known == name)
        .map(|(_, arches)| arches)
}

/// Minijail's name of an architecture, if it has one.
pub(super) fn name(arch: Arch) -> Option<&'static str> {
    let mut rows = NAMES.into_iter();
    rows.find(|(_, arches)| arches.contains(&arch))
        .map(|(name, _)| name)
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().map(|(name, _)| name)
}
