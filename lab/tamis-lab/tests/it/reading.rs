//! Captures and objects of unknown origin take memory and time in proportion to their size.

use std::fs;
use std::path::{Path, PathBuf};

use tamis_testkit::generate::hostile::readers;
use tamis_testkit::limited;

use crate::TAMIS_LAB;

#[test]
fn readers_take_memory_and_time_in_proportion_to_their_files() {
    let mut all = readers::all(4_000_000);
    all.retain(readers::Reading::is_of_lab);
    assert!(all.len() >= 7, "{}", all.len());
    let mut failures = Vec::new();
    for (index, reading) in all.iter().enumerate() {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("reading-{index}"));
        failures.extend(limited::failure(Path::new(TAMIS_LAB), &folder, reading));
        let _ = fs::remove_dir_all(&folder);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
