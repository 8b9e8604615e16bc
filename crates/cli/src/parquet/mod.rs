//! Fleets of profiles as Parquet, the table format of analytics engines.
//!
//! `docs/book/fleets.md` lists the columns. Reading and writing need the feature `parquet`, because its crates take
//! long to build.

#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod write;

use std::fs::{self, File};
use std::io::Read;

#[cfg(feature = "parquet")]
pub use read::read;
use tamis_session::path_text::path_of;
#[cfg(feature = "parquet")]
pub use write::bytes;

const MAGIC: &[u8; 4] = b"PAR1";

/// Whether the first bytes of a file are those of Parquet. A pipe isn't opened: its bytes could not be read again.
pub fn is_parquet(path: &str) -> bool {
    let mut first = [0; 4];
    let is_file = fs::metadata(path_of(path)).is_ok_and(|metadata| metadata.is_file());
    let mut read = || File::open(path_of(path))?.read_exact(&mut first);
    is_file && read().is_ok() && &first == MAGIC
}

#[cfg(not(feature = "parquet"))]
mod absent {
    use tamis_profile::Fleet;

    use crate::Failure;

    fn failure() -> Failure {
        Failure::usage(
            "this tamis is built without Parquet",
            "build it with `--features parquet`",
        )
    }

    /// Always fails.
    pub fn read(_path: &str) -> Result<Fleet, Failure> {
        Err(failure())
    }

    /// Always fails.
    pub fn bytes(_fleet: &Fleet) -> Result<Vec<u8>, Failure> {
        Err(failure())
    }
}
#[cfg(not(feature = "parquet"))]
pub use absent::{bytes, read};
