//! Symbolic constants: `O_CREAT`, `AF_INET`, `TIOCSTI`, `EPERM`.
//!
//! Values depend on the architecture: open flags, errno values, signals and ioctl numbers differ. A name
//! without a sourced value for an architecture has no value there, so that no guess is compared. Lookups are
//! binary searches in static tables. The tables hold no addresses: in a shared library each address is written when
//! the library is loaded, into memory of the process.

use crate::arch::Arch;
use crate::generated::constants::{ENDS, NAMES, VALUES, overrides};

/// Stands for no value in the tables; no constant has it.
pub(crate) const ABSENT: u64 = 0x8000_0000_0000_0001;

fn name(index: usize) -> &'static str {
    let start = index.checked_sub(1).map_or(0, |before| ENDS[before]);
    &NAMES[start as usize..ENDS[index] as usize]
}

/// The index of the first name that isn't less than a text.
fn first_from(text: &str) -> usize {
    let (mut low, mut high) = (0, ENDS.len());
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
    (index < ENDS.len() && name(index) == text).then_some(index)
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
    let overrides = overrides(arch);
    let value = match overrides.binary_search_by_key(&index, |&(index, _)| usize::from(index)) {
        Ok(found) => overrides[found].1,
        Err(_) => VALUES[index],
    };
    (value != ABSENT).then_some(value)
}

/// The names that have a value on an architecture, sorted.
pub fn names(arch: Arch) -> impl Iterator<Item = &'static str> {
    let has_value = move |index: &usize| value_at(arch, *index).is_some();
    (0..ENDS.len()).filter(has_value).map(name)
}

/// The names with this beginning that have a value on an architecture, sorted, with their values.
pub fn starting_with(
    arch: Arch,
    prefix: &str,
) -> impl Iterator<Item = (&'static str, u64)> + use<'_> {
    let from = (first_from(prefix)..ENDS.len()).map(|index| (index, name(index)));
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
    fn names_and_overrides_are_sorted() {
        assert!((1..ENDS.len()).all(|index| name(index - 1) < name(index)));
        for arch in Arch::all() {
            assert!(
                overrides(arch).is_sorted_by(|(a, _), (b, _)| a < b),
                "{arch}"
            );
        }
    }

    #[test]
    fn every_name_has_a_value_somewhere_and_overrides_say_something_new() {
        for (index, common) in VALUES.iter().enumerate() {
            let name = name(index);
            assert!(is_known(name));
            assert!(
                Arch::all().any(|arch| value_at(arch, index).is_some()),
                "{name}"
            );
            for arch in Arch::all() {
                let has_override = |&&(at, _): &&(u16, u64)| usize::from(at) == index;
                if let Some((_, value)) = overrides(arch).iter().find(has_override) {
                    assert_ne!(value, common, "{arch} {name}");
                }
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
