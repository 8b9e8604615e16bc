//! Names, types and widths of system call arguments.
//!
//! A filter sees every argument as 64 bits, but the kernel looks at the lower 32 only where the
//! argument's C type is that narrow, or where it hands a wider one to a function that takes fewer
//! bits. A filter that compares all 64 bits of such an argument can be bypassed: the caller sets bits of the
//! upper half, the comparison fails, and the kernel ignores them. [`width`] returns the number of significant
//! bits. Most follow from the types, the rest from the table `data/widths.csv`.
//!
//! The table describes the call as a 64-bit kernel implements it. Architectures change the order of arguments in
//! places; [`index`] returns the index of each one, or `None` without a fixed one.

use std::fmt;

use crate::arch::Arch;
use crate::data::ArgIndex;
use crate::generated::signatures::{ARGS, ENDS, SIGNATURES, WORDS};
use crate::generated::widths::WIDTHS;
use crate::syscall;

/// An argument of a system call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Arg {
    /// A number of a word, as below.
    name: u16,
    c_type: u16,
}

/// Makes an argument in one short word, for the generated table.
pub(crate) const fn arg(name: u16, c_type: u16) -> Arg {
    Arg { name, c_type }
}

/// The arguments of a call. The tables hold numbers instead of texts: pages with addresses are written when a program is
/// loaded.
pub(crate) struct Signature {
    call: u16,
    /// The number of arguments of this call and all before it.
    end: u16,
}

/// Makes a signature in one short word, for the generated table.
pub(crate) const fn signature(call: u16, end: u16) -> Signature {
    Signature { call, end }
}

impl Signature {
    fn name(&self) -> &'static str {
        word(self.call)
    }
}

/// The word of a number.
fn word(number: u16) -> &'static str {
    let number = usize::from(number);
    let start = number.checked_sub(1).map_or(0, |before| ENDS[before]);
    &WORDS[usize::from(start)..usize::from(ENDS[number])]
}

/// The arguments of the call in this place of the table.
fn args_at(index: usize) -> &'static [Arg] {
    let start = index
        .checked_sub(1)
        .map_or(0, |before| SIGNATURES[before].end);
    &ARGS[usize::from(start)..usize::from(SIGNATURES[index].end)]
}

/// How many bits of an argument the kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// The lower 16; the caller controls the others.
    Bits16,
    /// The lower 32; the caller controls the upper half.
    Bits32,
    /// All 64.
    Bits64,
}

impl Width {
    /// All of them, ascending.
    pub const ALL: [Width; 3] = [Width::Bits16, Width::Bits32, Width::Bits64];

    /// The number of bits: 16, 32 or 64.
    pub const fn bits(self) -> u32 {
        match self {
            Width::Bits16 => 16,
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }

    /// The largest value; also the mask of the bits.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The width of an unknown argument: that of the registers.
    ///
    /// A 64-bit kernel truncates the registers of a 32-bit call, but a filter sees the leftovers in their upper halves.
    pub const fn of_registers(arch: Arch) -> Width {
        if arch.has_64_bit_registers() {
            Width::Bits64
        } else {
            Width::Bits32
        }
    }
}

/// A negative 32-bit argument as compiled C passes it in a 64-bit register: where the convention for calls of functions leaves the
/// upper half open, code fills the register by an instruction of 32 bits, which clears it; elsewhere the sign is extended.
/// Other values are returned unchanged.
///
/// Some C libraries (musl) and languages (Go) widen arguments to `long` first, so both forms occur on every architecture.
///
/// ```
/// use tamis_abi::{Arch, signature};
/// assert_eq!(signature::passed(Arch::X86_64, -100i64 as u64), 0xffff_ff9c);
/// assert_eq!(signature::passed(Arch::Riscv64, 0xffff_ff9c), -100i64 as u64);
/// assert_eq!(signature::passed(Arch::X86_64, 7 << 32), 7 << 32);
/// ```
pub const fn passed(arch: Arch, value: u64) -> u64 {
    let low = value as u32;
    let extended = low.cast_signed() as i64 as u64;
    let is_negative = low.cast_signed() < 0;
    if !is_negative || (value != extended && value != low as u64) {
        return value;
    }
    if extends_sign(arch) {
        extended
    } else {
        low as u64
    }
}

/// Whether the convention for calls extends the sign of `int` to the whole register.
const fn extends_sign(arch: Arch) -> bool {
    matches!(
        arch,
        Arch::Riscv64
            | Arch::Loongarch64
            | Arch::Mips64
            | Arch::Mipsel64
            | Arch::Mips64n32
            | Arch::Mipsel64n32
            | Arch::Ppc64
            | Arch::Ppc64le
            | Arch::S390x
            | Arch::Parisc64
    )
}

/// Types of 16 bits on every architecture, without `const`.
const TYPES_OF_16_BITS: [&str; 2] = ["umode_t", "unsigned short"];

/// Types of 32 bits on every architecture, without `const`. Every other type counts as wide. Either mistake
/// allows a bypass: with too many bits, a caller can make a denying comparison fail; with too few, it can
/// make an allowing comparison hold. So a test has every type of the table classified.
const TYPES_OF_32_BITS: [&str; 19] = [
    "__s32",
    "__u32",
    "clockid_t",
    "enum landlock_rule_type",
    "gid_t",
    "int",
    "key_serial_t",
    "key_t",
    "mode_t",
    "mqd_t",
    "pid_t",
    "qid_t",
    "rwf_t",
    "s32",
    "timer_t",
    "u32",
    "uid_t",
    "unsigned",
    "unsigned int",
];

/// Types that have 64 bits even on 32-bit architectures, where they take two places.
const TYPES_OF_64_BITS: [&str; 3] = ["__u64", "loff_t", "u64"];

impl Arg {
    /// The name in the kernel's source, such as `flags`.
    pub fn name(&self) -> &'static str {
        word(self.name)
    }

    /// The C type in the kernel's source, such as `unsigned int` or `const char *`.
    pub fn c_type(&self) -> &'static str {
        word(self.c_type)
    }

    /// How many bits the type has on an architecture; a pointer has those of a register.
    pub fn declared_width(&self, arch: Arch) -> Width {
        let c_type = self.base_type();
        if TYPES_OF_16_BITS.contains(&c_type) {
            Width::Bits16
        } else if TYPES_OF_32_BITS.contains(&c_type) {
            Width::Bits32
        } else {
            Width::of_registers(arch)
        }
    }

    /// The type without a leading `const`.
    pub fn base_type(&self) -> &'static str {
        let c_type = self.c_type();
        c_type.strip_prefix("const ").unwrap_or(c_type)
    }

    /// Whether it is the mode of a file or, as of `umask`, the bits that modes don't get, which people write in octal.
    pub fn is_mode(&self) -> bool {
        matches!(self.base_type(), "umode_t" | "mode_t")
            || (self.name(), self.c_type()) == ("mask", "int")
    }

    /// Whether the argument takes two places on an architecture.
    pub fn is_split(&self, arch: Arch) -> bool {
        !arch.has_64_bit_registers() && TYPES_OF_64_BITS.contains(&self.base_type())
    }
}

impl fmt::Debug for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.c_type(), self.name())
    }
}

/// How many bits of an argument of a call the kernel reads on an architecture.
///
/// At most 32 where registers have 32 bits. x32 and MIPS n32 have the registers of 64-bit
/// architectures. Where it depends on other arguments, as with the `arg2` of `prctl`, the widest use
/// counts.
///
/// ```
/// use tamis_abi::{Arch, signature::{self, Width}};
/// let width = |arch, call, index: usize| {
///     signature::width(arch, call, &signature::args(call).unwrap()[index])
/// };
/// assert_eq!(width(Arch::X86_64, "ioctl", 1), Width::Bits32);
/// assert_eq!(width(Arch::X86_64, "ioctl", 2), Width::Bits64);
/// assert_eq!(width(Arch::X86, "ioctl", 2), Width::Bits32);
/// assert_eq!(width(Arch::X86_64, "writev", 0), Width::Bits32, "an unsigned long, but cut off");
/// assert_eq!(width(Arch::X86, "setuid", 0), Width::Bits16, "the call of the first kernels");
/// ```
pub fn width(arch: Arch, call: &str, arg: &Arg) -> Width {
    let start =
        WIDTHS.partition_point(|(name, argument, ..)| (*name, *argument) < (call, arg.name()));
    let cut = WIDTHS[start..]
        .iter()
        .take_while(|(name, argument, ..)| (*name, *argument) == (call, arg.name()))
        .find(|(_, _, arches, _)| arches.is_empty() || arches.contains(&arch));
    let declared = arg.declared_width(arch);
    cut.map_or(declared, |(.., width)| declared.min(*width))
}

/// The arguments of a call, in the order of x86_64 (or of the architectures that have it); `None`
/// if they are unknown. Use [`index`] for their places on an architecture.
pub fn args(name: &str) -> Option<&'static [Arg]> {
    let index = SIGNATURES
        .binary_search_by(|known| known.name().cmp(name))
        .ok()?;
    Some(args_at(index))
}

/// The place of a named argument of a call on an architecture.
///
/// `None` if the architecture lacks the call, if the call lacks the argument, or if it has no place
/// that is the same everywhere: on 32-bit architectures an argument of 64 bits takes two registers
/// (some align them), so neither it nor those after it have one; and old calls such as i386's
/// `mmap` take a pointer to their arguments instead.
///
/// ```
/// use tamis_abi::{Arch, ArgIndex, signature};
/// let flags = |arch| signature::index(arch, "clone", "clone_flags");
/// assert_eq!(flags(Arch::X86_64), ArgIndex::new(0));
/// assert_eq!(flags(Arch::S390x), ArgIndex::new(1));
/// ```
pub fn index(arch: Arch, call: &str, argument: &str) -> Option<ArgIndex> {
    syscall::number(arch, call)?;
    if takes_pointer_to_arguments(arch, call) {
        return None;
    }
    let args = args(call)?;
    let index = args.iter().position(|arg| arg.name() == argument)?;
    if args[..=index].iter().any(|arg| arg.is_split(arch)) {
        return None;
    }
    let index = if call == "clone" {
        clone_index(arch, index)
    } else {
        index
    };
    ArgIndex::new(u8::try_from(index).ok()?)
}

/// The argument of a call in a place on an architecture; `None` if none is known to stand there.
///
/// ```
/// use tamis_abi::{Arch, ArgIndex, signature};
/// let first = |arch| signature::at(arch, "clone", ArgIndex::ALL[0]).unwrap().name();
/// assert_eq!((first(Arch::X86_64), first(Arch::S390x)), ("clone_flags", "newsp"));
/// ```
pub fn at(arch: Arch, call: &str, place: ArgIndex) -> Option<&'static Arg> {
    let mut args = args(call)?.iter();
    args.find(|arg| index(arch, call, arg.name()) == Some(place))
}

/// `old_mmap` and `old_select` of the kernel's tables.
pub(crate) fn takes_pointer_to_arguments(arch: Arch, call: &str) -> bool {
    match call {
        "mmap" => matches!(arch, Arch::X86 | Arch::S390 | Arch::S390x | Arch::M68k),
        "mmap2" => arch == Arch::S390,
        "select" => matches!(arch, Arch::X86 | Arch::M68k),
        _ => false,
    }
}

/// clone(2): most architectures swap the last two arguments of x86_64's order (flags, stack, parent
/// tid, child tid, tls), s390 the first two.
const fn clone_index(arch: Arch, index: usize) -> usize {
    match (arch, index) {
        (Arch::S390 | Arch::S390x, 0 | 1) => 1 - index,
        (
            Arch::X86
            | Arch::Aarch64
            | Arch::Arm
            | Arch::Riscv64
            | Arch::Riscv32
            | Arch::Ppc64le
            | Arch::Ppc64
            | Arch::Ppc
            | Arch::Mips
            | Arch::Mipsel
            | Arch::Mips64
            | Arch::Mipsel64
            | Arch::Mips64n32
            | Arch::Mipsel64n32
            | Arch::Parisc
            | Arch::Parisc64,
            3 | 4,
        ) => 7 - index,
        _ => index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scalar types of 64 bits on 64-bit architectures: with the narrow types and pointers, every
    /// type of the table.
    const WIDE_TYPES: [&str; 10] = [
        "__u64",
        "aio_context_t",
        "cap_user_data_t",
        "cap_user_header_t",
        "loff_t",
        "long",
        "off_t",
        "size_t",
        "u64",
        "unsigned long",
    ];

    /// All calls with their arguments.
    fn all() -> impl Iterator<Item = (&'static str, &'static [Arg])> {
        let signatures = SIGNATURES.iter().enumerate();
        signatures.map(|(index, signature)| (signature.name(), args_at(index)))
    }

    #[test]
    fn every_type_in_the_table_is_classified() {
        for (call, args) in all() {
            for arg in args {
                let base = arg.base_type();
                let is_wide = base.contains('*') || WIDE_TYPES.contains(&base);
                let expected = match base {
                    _ if is_wide => Width::Bits64,
                    _ if TYPES_OF_16_BITS.contains(&base) => Width::Bits16,
                    _ => Width::Bits32,
                };
                let is_known = expected != Width::Bits32 || TYPES_OF_32_BITS.contains(&base);
                assert!(is_known, "{call}: {} {}", arg.c_type(), arg.name());
                assert_eq!(
                    arg.declared_width(Arch::Riscv64),
                    expected,
                    "{call} {}",
                    arg.name()
                );
                assert_eq!(arg.declared_width(Arch::Arm), expected.min(Width::Bits32));
            }
        }
    }

    #[test]
    fn what_the_kernel_cuts_off_is_narrower_than_its_type() {
        for (call, argument, arches, width) in &WIDTHS {
            let arg = args(call).and_then(|args| args.iter().find(|arg| arg.name() == *argument));
            let arg = arg.unwrap_or_else(|| panic!("{call} {argument}"));
            let arches: Vec<Arch> = match arches {
                [] => Arch::all()
                    .filter(|arch| arch.has_64_bit_registers())
                    .collect(),
                arches => arches.to_vec(),
            };
            for arch in arches {
                assert!(
                    *width < arg.declared_width(arch),
                    "{arch} {call} {argument}"
                );
                assert_eq!(
                    super::width(arch, call, arg),
                    *width,
                    "{arch} {call} {argument}"
                );
            }
        }
    }

    #[test]
    fn calls_with_a_successor_for_32_bit_ids_have_ids_of_16_bits() {
        for arch in Arch::all() {
            for (call, args) in all() {
                let has_successor = syscall::number(arch, &format!("{call}32")).is_some();
                let is_id = |arg: &&Arg| matches!(arg.c_type(), "uid_t" | "gid_t");
                for arg in args.iter().filter(is_id) {
                    let expected = match has_successor {
                        true => Width::Bits16,
                        false => Width::Bits32,
                    };
                    if syscall::number(arch, call).is_some() {
                        assert_eq!(
                            width(arch, call, arg),
                            expected,
                            "{arch} {call} {}",
                            arg.name()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn table_is_sorted_and_names_calls() {
        assert!(SIGNATURES.is_sorted_by(|a, b| a.name() < b.name()));
        for (call, args) in all() {
            assert!(syscall::is_known(call), "{call}");
            assert!(args.len() <= 6, "{call}");
        }
    }

    #[test]
    fn every_argument_of_a_64_bit_architecture_has_a_place_of_its_own() {
        for arch in Arch::all().filter(|&arch| arch.has_64_bit_registers()) {
            for (call, args) in all() {
                if syscall::number(arch, call).is_none() || takes_pointer_to_arguments(arch, call) {
                    continue;
                }
                let mut places: Vec<usize> = args
                    .iter()
                    .map(|arg| index(arch, call, arg.name()).unwrap().index())
                    .collect();
                places.sort_unstable();
                assert_eq!(places, (0..args.len()).collect::<Vec<_>>(), "{arch} {call}");
            }
        }
    }

    #[test]
    fn split_arguments_and_those_after_them_have_no_place() {
        let place = |arch, argument| index(arch, "pwrite64", argument).map(ArgIndex::index);
        assert_eq!(place(Arch::X86_64, "pos"), Some(3));
        assert_eq!(place(Arch::X32, "pos"), Some(3));
        assert_eq!(place(Arch::X86, "count"), Some(2));
        assert_eq!(place(Arch::X86, "pos"), None);
        assert_eq!(index(Arch::X86, "fadvise64", "advice"), None);
        assert_eq!(index(Arch::X86, "mmap", "prot"), None);
        assert_eq!(
            index(Arch::X86, "mmap2", "prot").map(ArgIndex::index),
            Some(2)
        );
    }
}
