//! Architectures: names, `AUDIT_ARCH_*` values, word size and byte order.
//!
//! The values are those of `include/uapi/linux/audit.h`: an ELF machine number with flags for 64 bit
//! and little endian. x32 has no value of its own: its calls arrive as x86_64 with numbers from
//! 0x40000000, see [`Arch::owns_number`].

use std::fmt;

/// The byte order of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// A system call convention that a filter can distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86 (i386).
    X86,
    /// 32-bit pointers on 64-bit x86: x86_64's audit value, numbers with bit 30 set.
    X32,
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit Arm, EABI.
    Arm,
    /// 64-bit RISC-V.
    Riscv64,
    /// 32-bit RISC-V.
    Riscv32,
    /// 64-bit LoongArch.
    Loongarch64,
    /// 64-bit PowerPC, little endian.
    Ppc64le,
    /// 64-bit PowerPC, big endian.
    Ppc64,
    /// 32-bit PowerPC.
    Ppc,
    /// 64-bit IBM Z.
    S390x,
    /// 31-bit IBM Z.
    S390,
    /// 32-bit MIPS (o32), big endian.
    Mips,
    /// 32-bit MIPS (o32), little endian.
    Mipsel,
    /// 64-bit MIPS (n64), big endian.
    Mips64,
    /// 64-bit MIPS (n64), little endian.
    Mipsel64,
    /// 32-bit pointers on 64-bit MIPS (n32), big endian.
    Mips64n32,
    /// 32-bit pointers on 64-bit MIPS (n32), little endian.
    Mipsel64n32,
    /// 32-bit PA-RISC.
    Parisc,
    /// 64-bit PA-RISC.
    Parisc64,
    /// Motorola 68000.
    M68k,
    /// SuperH, little endian.
    Sh,
    /// SuperH, big endian.
    Sheb,
}

/// One row of the table of architectures.
struct Info {
    arch: Arch,
    name: &'static str,
    aliases: &'static [&'static str],
    audit: u32,
}

const BITS_64: u32 = 0x8000_0000;
const LITTLE: u32 = 0x4000_0000;
const MIPS_N32: u32 = 0x2000_0000;

// A static, since it holds addresses: each crate that looks into a constant has a copy, which is written when the program is
// loaded.
static TABLE: [Info; 24] = {
    use Arch::{
        Aarch64, Arm, Loongarch64, M68k, Mips, Mips64, Mips64n32, Mipsel, Mipsel64, Mipsel64n32,
        Parisc, Parisc64, Ppc, Ppc64, Ppc64le, Riscv32, Riscv64, S390, S390x, Sh, Sheb, X32, X86,
        X86_64,
    };
    const fn row(
        arch: Arch,
        name: &'static str,
        aliases: &'static [&'static str],
        audit: u32,
    ) -> Info {
        Info {
            arch,
            name,
            aliases,
            audit,
        }
    }
    // In the order of the enum: `info` indexes by discriminant.
    [
        row(X86_64, "x86_64", &["amd64"], 62 | BITS_64 | LITTLE),
        row(X86, "x86", &["i386", "i686"], 3 | LITTLE),
        row(X32, "x32", &[], 62 | BITS_64 | LITTLE),
        row(Aarch64, "aarch64", &["arm64"], 183 | BITS_64 | LITTLE),
        row(Arm, "arm", &["armeabi"], 40 | LITTLE),
        row(Riscv64, "riscv64", &[], 243 | BITS_64 | LITTLE),
        row(Riscv32, "riscv32", &[], 243 | LITTLE),
        row(
            Loongarch64,
            "loongarch64",
            &["loong64"],
            258 | BITS_64 | LITTLE,
        ),
        row(Ppc64le, "ppc64le", &["powerpc64le"], 21 | BITS_64 | LITTLE),
        row(Ppc64, "ppc64", &["powerpc64"], 21 | BITS_64),
        row(Ppc, "ppc", &["powerpc"], 20),
        row(S390x, "s390x", &[], 22 | BITS_64),
        row(S390, "s390", &[], 22),
        row(Mips, "mips", &["mipso32"], 8),
        row(Mipsel, "mipsel", &["mipselo32"], 8 | LITTLE),
        row(Mips64, "mips64", &["mips64n64"], 8 | BITS_64),
        row(
            Mipsel64,
            "mipsel64",
            &["mips64el", "mips64le"],
            8 | BITS_64 | LITTLE,
        ),
        row(Mips64n32, "mips64n32", &[], 8 | BITS_64 | MIPS_N32),
        row(
            Mipsel64n32,
            "mipsel64n32",
            &["mips64eln32", "mips64p32le"],
            8 | BITS_64 | LITTLE | MIPS_N32,
        ),
        row(Parisc, "parisc", &["hppa"], 15),
        row(Parisc64, "parisc64", &["hppa64"], 15 | BITS_64),
        row(M68k, "m68k", &[], 4),
        row(Sh, "sh", &["sh4"], 42 | LITTLE),
        row(Sheb, "sheb", &["sh4eb"], 42),
    ]
};

impl Arch {
    /// The bit that marks x32 calls in an x86_64 number, `__X32_SYSCALL_BIT`.
    pub const X32_BIT: u32 = 0x4000_0000;

    const fn info(self) -> &'static Info {
        &TABLE[self as usize]
    }

    /// All architectures.
    pub fn all() -> impl Iterator<Item = Arch> {
        TABLE.iter().map(|info| info.arch)
    }

    /// The name used in all text forms.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The aliases in [`from_name`](Self::from_name).
    pub const fn aliases(self) -> &'static [&'static str] {
        self.info().aliases
    }

    /// The architecture with this name or alias.
    ///
    /// ```
    /// use tamis_abi::Arch;
    /// assert_eq!(Arch::from_name("amd64"), Some(Arch::X86_64));
    /// ```
    pub fn from_name(name: &str) -> Option<Arch> {
        TABLE
            .iter()
            .find(|info| info.name == name || info.aliases.contains(&name))
            .map(|info| info.arch)
    }

    /// The `AUDIT_ARCH_*` value that a filter sees; x32 shares x86_64's.
    pub const fn audit(self) -> u32 {
        self.info().audit
    }

    /// The architecture of a call: the number distinguishes x32 from x86_64.
    pub fn of_call(audit: u32, nr: u32) -> Option<Arch> {
        TABLE
            .iter()
            .map(|info| info.arch)
            .find(|arch| arch.audit() == audit && arch.owns_number(nr))
    }

    /// Whether a number belongs to this architecture, not to the one with the same audit value: x32 owns
    /// `0x40000000..=0xfffffffe`, x86_64 the rest, other architectures everything.
    ///
    /// Number -1 belongs to x86_64: tracers write it to skip a call.
    pub const fn owns_number(self, nr: u32) -> bool {
        let is_x32 = nr >= Arch::X32_BIT && nr != u32::MAX;
        match self {
            Arch::X32 => is_x32,
            Arch::X86_64 => !is_x32,
            _ => true,
        }
    }

    /// Whether `long` and pointers have 64 bits: false for x32 and MIPS n32, which run 32-bit
    /// programs on wider registers.
    pub const fn is_64_bit(self) -> bool {
        let runs_32_bit_programs = matches!(self, Arch::X32 | Arch::Mips64n32 | Arch::Mipsel64n32);
        self.audit() & BITS_64 != 0 && !runs_32_bit_programs
    }

    /// Whether the registers that pass arguments have 64 bits: true for x32 and MIPS n32, too.
    pub const fn has_64_bit_registers(self) -> bool {
        self.audit() & BITS_64 != 0
    }

    /// The byte order.
    pub const fn endian(self) -> Endian {
        if self.audit() & LITTLE != 0 {
            Endian::Little
        } else {
            Endian::Big
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_enum_order() {
        for (index, arch) in Arch::all().enumerate() {
            assert_eq!(arch as usize, index);
        }
    }

    #[test]
    fn names_and_aliases_are_unique() {
        let mut names: Vec<&str> = Arch::all()
            .flat_map(|a| a.aliases().iter().copied().chain([a.name()]))
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn x32_and_x86_64_split_the_numbers_of_one_audit_value() {
        for nr in [
            0,
            1,
            0x3fff_ffff,
            0x4000_0000,
            0x8000_0000,
            u32::MAX - 1,
            u32::MAX,
        ] {
            assert_ne!(
                Arch::X32.owns_number(nr),
                Arch::X86_64.owns_number(nr),
                "{nr:#x}"
            );
        }
        assert_eq!(Arch::of_call(0xc000_003e, u32::MAX), Some(Arch::X86_64));
        assert_eq!(Arch::of_call(0xc000_003e, 0x4000_0000), Some(Arch::X32));
    }
}
