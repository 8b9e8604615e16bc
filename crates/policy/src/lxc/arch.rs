//! Architectures of LXC's policies: their names, and those of a machine.

use tamis_abi::Arch;

/// The names in brackets, in lower case, each with its architecture.
const NAMES: [(&str, Arch); 16] = [
    ("x86", Arch::X86),
    ("x32", Arch::X32),
    ("x86_64", Arch::X86_64),
    ("arm", Arch::Arm),
    ("arm64", Arch::Aarch64),
    ("ppc64le", Arch::Ppc64le),
    ("ppc64", Arch::Ppc64),
    ("ppc", Arch::Ppc),
    ("mips64", Arch::Mips64),
    ("mips64n32", Arch::Mips64n32),
    ("mips", Arch::Mips),
    ("mipsel64", Arch::Mipsel64),
    ("mipsel64n32", Arch::Mipsel64n32),
    ("mipsel", Arch::Mipsel),
    ("s390x", Arch::S390x),
    ("s390", Arch::S390),
];

/// The other architectures of a machine's filter.
pub(super) const fn others(native: Arch) -> &'static [Arch] {
    match native {
        Arch::X86_64 => &[Arch::X86, Arch::X32],
        Arch::Aarch64 => &[Arch::Arm],
        Arch::Ppc64 => &[Arch::Ppc],
        Arch::Mips64 => &[Arch::Mips, Arch::Mips64n32],
        Arch::Mipsel64 => &[Arch::Mipsel, Arch::Mipsel64n32],
        _ => &[],
    }
}

/// The architecture of a name; `None` for an unknown one. A name is in lower or upper case.
pub(super) fn named(name: &str) -> Option<Arch> {
    let lower = name.to_ascii_lowercase();
    if name != lower && name != name.to_ascii_uppercase() && name != "X86_64" {
        return None;
    }
    let known = NAMES.iter().find(|(known, _)| *known == lower);
    known.map(|(_, arch)| *arch)
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name).chain(["all"])
}
