//! The architecture that a program has once it is compiled: from a compiler's description of its target.
//!
//! [`Target`] is such a description in Rust's terms from any source: cargo passes it to build scripts, and
//! [`host`](crate::host) has that of this code. This is the only table from those terms to [`Arch`].
//!
//! x32 is the native architecture of programs that are built for x86_64 with pointers of 32 bits: their calls have
//! x86_64's audit value and bit 30 set in the number. It is never that of a machine: an x32 program runs on a
//! kernel for x86_64, which runs programs of x86_64 and x86 as well ([`Arch::with_compat`]).

use crate::arch::{Arch, Endian};

/// The target of a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Rust's name of the processor, `target_arch`.
    pub arch: &'a str,
    /// The byte order, `target_endian`.
    pub endian: Endian,
    /// The width of a pointer in bits, `target_pointer_width`.
    pub pointer_bits: u32,
}

impl Target<'_> {
    /// The architecture of the programs; `None` if filters can't distinguish it, such as big-endian Arm, whose calls
    /// have the audit value of little-endian ones.
    ///
    /// ```
    /// use tamis_abi::{Arch, Endian, target::Target};
    /// let target = Target { arch: "x86_64", endian: Endian::Little, pointer_bits: 32 };
    /// assert_eq!(target.native_arch(), Some(Arch::X32));
    /// ```
    pub fn native_arch(&self) -> Option<Arch> {
        let is_little = self.endian == Endian::Little;
        let arch = match (self.arch, self.pointer_bits) {
            ("x86_64", 32) => Arch::X32,
            ("powerpc64", _) if is_little => Arch::Ppc64le,
            ("mips" | "mips32r6", _) if is_little => Arch::Mipsel,
            ("mips" | "mips32r6", _) => Arch::Mips,
            ("mips64" | "mips64r6", 32) if is_little => Arch::Mipsel64n32,
            ("mips64" | "mips64r6", 32) => Arch::Mips64n32,
            ("mips64" | "mips64r6", _) if is_little => Arch::Mipsel64,
            ("mips64" | "mips64r6", _) => Arch::Mips64,
            (name, _) => Arch::from_name(name)?,
        };
        (arch.endian() == self.endian).then_some(arch)
    }
}

impl Arch {
    /// This architecture, and behind it those whose programs the kernel of its machines may run as well.
    pub const fn with_compat(self) -> &'static [Arch] {
        match self {
            Arch::X86_64 => &[Arch::X86_64, Arch::X86, Arch::X32],
            Arch::X32 => &[Arch::X32, Arch::X86_64, Arch::X86],
            Arch::Aarch64 => &[Arch::Aarch64, Arch::Arm],
            Arch::S390x => &[Arch::S390x, Arch::S390],
            Arch::Ppc64 => &[Arch::Ppc64, Arch::Ppc],
            Arch::Mips64 => &[Arch::Mips64, Arch::Mips, Arch::Mips64n32],
            Arch::Mips64n32 => &[Arch::Mips64n32, Arch::Mips64, Arch::Mips],
            Arch::Mipsel64 => &[Arch::Mipsel64, Arch::Mipsel, Arch::Mipsel64n32],
            Arch::Mipsel64n32 => &[Arch::Mipsel64n32, Arch::Mipsel64, Arch::Mipsel],
            Arch::X86 => &[Arch::X86],
            Arch::Arm => &[Arch::Arm],
            Arch::Riscv64 => &[Arch::Riscv64],
            Arch::Riscv32 => &[Arch::Riscv32],
            Arch::Loongarch64 => &[Arch::Loongarch64],
            Arch::Ppc64le => &[Arch::Ppc64le],
            Arch::Ppc => &[Arch::Ppc],
            Arch::S390 => &[Arch::S390],
            Arch::Mips => &[Arch::Mips],
            Arch::Mipsel => &[Arch::Mipsel],
            Arch::Parisc => &[Arch::Parisc],
            Arch::Parisc64 => &[Arch::Parisc64],
            Arch::M68k => &[Arch::M68k],
            Arch::Sh => &[Arch::Sh],
            Arch::Sheb => &[Arch::Sheb],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rust_calls_an_architecture_is_known() {
        use Endian::{Big, Little};
        let known = [
            ("x86_64", Little, 64, Some(Arch::X86_64)),
            ("x86_64", Little, 32, Some(Arch::X32)),
            ("x86", Little, 32, Some(Arch::X86)),
            ("powerpc64", Big, 64, Some(Arch::Ppc64)),
            ("powerpc64", Little, 64, Some(Arch::Ppc64le)),
            ("powerpc", Big, 32, Some(Arch::Ppc)),
            ("mips", Big, 32, Some(Arch::Mips)),
            ("mips32r6", Little, 32, Some(Arch::Mipsel)),
            ("mips64", Little, 64, Some(Arch::Mipsel64)),
            ("mips64", Big, 32, Some(Arch::Mips64n32)),
            ("aarch64", Little, 64, Some(Arch::Aarch64)),
            ("riscv64", Little, 64, Some(Arch::Riscv64)),
            ("loongarch64", Little, 64, Some(Arch::Loongarch64)),
            ("s390x", Big, 64, Some(Arch::S390x)),
            ("aarch64", Big, 64, None),
            ("hexagon", Little, 32, None),
        ];
        for (arch, endian, pointer_bits, expected) in known {
            let target = Target {
                arch,
                endian,
                pointer_bits,
            };
            assert_eq!(target.native_arch(), expected, "{target:?}");
        }
    }

    #[test]
    fn an_architecture_is_the_first_of_those_that_its_kernel_runs() {
        for arch in Arch::all() {
            let runs = arch.with_compat();
            assert_eq!(runs[0], arch);
            assert!(runs.iter().all(|other| other.endian() == arch.endian()));
        }
    }
}
