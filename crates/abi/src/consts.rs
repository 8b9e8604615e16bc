//! Symbolic constants: `O_CREAT`, `AF_INET`, `TIOCSTI`, `EPERM`.
//!
//! Values depend on the architecture: open flags, errno values, signals and ioctl numbers differ. A name
//! without a sourced value for an architecture has no value there, so that no guess is compared. Lookups are
//! binary searches in static tables, then steps through a block of 32 names. The tables hold no addresses: in a shared library each address is written when
//! the library is loaded, into memory of the process.

use crate::arch::Arch;
use crate::generated::constants::{LENGTHS, NAMES, STARTS, VALUES, overrides};

/// How many names share an entry of the tables of starts.
const BLOCK: usize = 32;

/// Values as bytes, found by blocks of names: most values are small, and an architecture has hundreds of its own.
///
/// A number has seven bits in each byte, the lowest first; all bytes but the last have the highest bit. A value is 0 if
/// there is none, else one more than the value with its sign in the lowest bit.
pub(crate) struct Packed {
    /// Where the bytes of each block begin, and the end of the last.
    pub(crate) starts: &'static [u16],
    pub(crate) bytes: &'static [u8],
}

impl Packed {
    /// The bytes of a block.
    fn block(&self, block: usize) -> &'static [u8] {
        let start = usize::from(self.starts[block]);
        let end = self.starts.get(block + 1);
        &self.bytes[start..end.map_or(self.bytes.len(), |end| usize::from(*end))]
    }
}

/// Takes the next number off.
fn number(bytes: &mut &[u8]) -> Option<u128> {
    let mut number = 0;
    let mut shift = 0;
    while let [byte, rest @ ..] = *bytes {
        *bytes = rest;
        number |= u128::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The value of a number.
fn unpacked(number: u128) -> Option<u64> {
    let folded = number.checked_sub(1)? as u64;
    Some((folded >> 1) ^ (folded & 1).wrapping_neg())
}

fn name(index: usize) -> &'static str {
    let first = index - index % BLOCK;
    let length = |index: usize| usize::from(LENGTHS[index]);
    let before: usize = (first..index).map(length).sum();
    let start = STARTS[index / BLOCK] as usize + before;
    &NAMES[start..start + length(index)]
}

/// The index of the first name that isn't less than a text.
fn first_from(text: &str) -> usize {
    let (mut low, mut high) = (0, LENGTHS.len());
    while low < high {
        let middle = low.midpoint(high);
        if name(middle) < text {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn index_of(text: &str) -> Option<usize> {
    let index = first_from(text);
    (index < LENGTHS.len() && name(index) == text).then_some(index)
}

/// The value of a constant on an architecture; negative values are sign-extended to 64 bits.
///
/// ```
/// use tamis_abi::{Arch, consts};
/// assert_eq!(consts::value(Arch::X86_64, "O_DIRECT"), Some(0x4000));
/// assert_eq!(consts::value(Arch::Arm, "O_DIRECT"), Some(0x10000));
/// assert_eq!(consts::value(Arch::X86_64, "AT_FDCWD"), Some(-100i64 as u64));
/// assert_eq!(consts::value(Arch::Aarch64, "ARCH_SET_FS"), None);
/// ```
pub fn value(arch: Arch, name: &str) -> Option<u64> {
    value_at(arch, index_of(name)?)
}

fn value_at(arch: Arch, index: usize) -> Option<u64> {
    let own = own_number(overrides(arch)?, index);
    unpacked(own.or_else(|| common_number(index))?)
}

/// The number of a value that differs.
fn own_number(differing: &Packed, index: usize) -> Option<u128> {
    let mut bytes = differing.block(index / BLOCK);
    let sought = (index % BLOCK) as u128 + 1;
    let mut place = 0;
    while let Some(distance) = number(&mut bytes) {
        let own = number(&mut bytes);
        place += distance;
        if place >= sought {
            return own.filter(|_| place == sought);
        }
    }
    None
}

/// The number of a value that holds elsewhere.
fn common_number(index: usize) -> Option<u128> {
    let mut bytes = VALUES.block(index / BLOCK);
    for _ in 0..index % BLOCK {
        number(&mut bytes)?;
    }
    number(&mut bytes)
}

/// The names that have a value on an architecture, sorted.
pub fn names(arch: Arch) -> impl Iterator<Item = &'static str> {
    let has_value = move |index: &usize| value_at(arch, *index).is_some();
    (0..LENGTHS.len()).filter(has_value).map(name)
}

/// The names with this beginning that have a value on an architecture, sorted, with their values.
pub fn starting_with(
    arch: Arch,
    prefix: &str,
) -> impl Iterator<Item = (&'static str, u64)> + use<'_> {
    let from = (first_from(prefix)..LENGTHS.len()).map(|index| (index, name(index)));
    from.take_while(move |(_, name)| name.starts_with(prefix))
        .filter_map(move |(index, name)| value_at(arch, index).map(|value| (name, value)))
}

/// Whether a constant of this name has a value on any architecture.
pub fn is_known(name: &str) -> bool {
    index_of(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_fill_their_text() {
        assert!((1..LENGTHS.len()).all(|index| name(index - 1) < name(index)));
        assert_eq!(
            name(LENGTHS.len() - 1).as_bytes().as_ptr_range().end,
            NAMES.as_bytes().as_ptr_range().end
        );
    }

    #[test]
    fn every_name_has_a_value_somewhere_and_overrides_say_something_new() {
        for index in 0..LENGTHS.len() {
            let name = name(index);
            assert!(is_known(name));
            assert!(
                Arch::all().any(|arch| value_at(arch, index).is_some()),
                "{name}"
            );
            for arch in Arch::all() {
                let own = overrides(arch).and_then(|own| own_number(own, index));
                assert_ne!(own, common_number(index), "{arch} {name}");
            }
        }
    }

    #[test]
    fn names_of_an_architecture_have_values_there() {
        for arch in Arch::all() {
            assert!(names(arch).count() > 5000, "{arch}");
            assert!(
                names(arch).all(|name| value(arch, name).is_some()),
                "{arch}"
            );
        }
    }

    #[test]
    fn audit_values_are_those_of_the_kernels_headers() {
        let renamed = [
            (Arch::X86, "I386"),
            (Arch::X32, "X86_64"),
            (Arch::Mips64n32, "MIPS64N32"),
            (Arch::Mipsel64n32, "MIPSEL64N32"),
            (Arch::Sh, "SHEL"),
            (Arch::Sheb, "SH"),
        ];
        for arch in Arch::all() {
            let renamed = renamed.iter().find(|(known, _)| *known == arch);
            let suffix = renamed.map_or(arch.name().to_uppercase(), |(_, name)| (*name).to_owned());
            let value = value(Arch::X86_64, &format!("AUDIT_ARCH_{suffix}"));
            assert_eq!(value, Some(u64::from(arch.audit())), "{arch}");
        }
    }

    #[test]
    fn architectures_that_went_their_own_ways_differ() {
        assert_eq!(value(Arch::X86_64, "ENOSYS"), Some(38));
        assert_eq!(value(Arch::Mips, "ENOSYS"), Some(89));
        assert_eq!(value(Arch::Parisc, "ENOSYS"), Some(251));
        assert_eq!(value(Arch::Mipsel, "SOCK_STREAM"), Some(2));
        assert_eq!(value(Arch::Ppc64le, "TIOCSTI"), Some(0x5412));
        assert_eq!(value(Arch::Ppc64le, "TCGETS"), Some(0x402c_7413));
    }
}
