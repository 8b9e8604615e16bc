//! The oldest supported glibc of the shared library, as documented in the book: it must not rise unnoticed.
//!
//! The library is linked with the glibc of the release machine, and requires the versions of its functions.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::shell;
use crate::tidy::root;

/// The release in `docs/book/start.md`.
const OLDEST: (u32, u32) = (2, 34);

/// Refuses a library that needs a later one.
///
/// # Errors
/// If it does, or its symbols can't be read.
pub(super) fn check(library: &Path) -> Result<()> {
    let line = format!("LC_ALL=C objdump -T '{}'", library.display());
    let symbols = shell(&line, &root())?;
    let needed = newest(&symbols).context("the library needs no glibc")?;
    let (major, minor) = needed;
    ensure!(
        needed <= OLDEST,
        "{} needs glibc {major}.{minor}: make the release on an older system, or change `OLDEST` and docs/book/start.md",
        library.display()
    );
    Ok(())
}

/// The latest version among `(GLIBC_2.34)` and the like.
fn newest(symbols: &str) -> Option<(u32, u32)> {
    let names = symbols.split("GLIBC_").skip(1);
    let versions = names.filter_map(|rest| {
        let version = rest
            .split(|c: char| c != '.' && !c.is_ascii_digit())
            .next()?;
        let mut numbers = version.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let symbols = "0 DF *UND* 0 (GLIBC_2.4) a\n0 w DF *UND* 0 (GLIBC_2.34) b\n0 (GLIBC_2.3.4) c\n0 (GLIBC_PRIVATE) d\n";
        assert_eq!(newest(symbols), Some((2, 34)));
        assert_eq!(newest("0 DF *UND* 0 Base a"), None);
    }
}
