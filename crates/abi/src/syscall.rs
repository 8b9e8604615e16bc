//! System call numbers and names per architecture.

use crate::arch::Arch;

/// A system call number as a filter sees it: unsigned, with bit 30 set for x32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nr(pub u32);

/// The number of a named call on an architecture.
pub fn number(arch: Arch, name: &str) -> Option<Nr> {
    table(arch)
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(nr, _)| Nr(*nr))
}

/// The name of a number on an architecture.
pub fn name(arch: Arch, nr: Nr) -> Option<&'static str> {
    table(arch)
        .iter()
        .find(|(known, _)| *known == nr.0)
        .map(|(_, name)| *name)
}

fn table(_arch: Arch) -> &'static [(u32, &'static str)] {
    &[(0, "read"), (1, "write")]
}
