//! Reading `/proc`.

use std::{fs, io};

/// The numeric names in a folder, in order.
///
/// # Errors
/// If the folder doesn't exist because the process has ended.
pub(crate) fn numbers(folder: &str) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(folder)?.flatten();
    let mut numbers: Vec<i32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}
