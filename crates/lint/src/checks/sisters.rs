//! Which architectures one kernel runs besides another.

use tamis_abi::Arch;

/// The architectures whose calls a 64-bit kernel of this one usually takes as well; x32, which shares
/// the audit value of x86_64, is not among them.
pub(super) const fn sisters(arch: Arch) -> &'static [Arch] {
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
