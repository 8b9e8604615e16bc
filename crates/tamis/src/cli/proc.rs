//! What `/proc` tells of tasks.

use std::{fs, io};

/// The numbers among the names in a folder, in order.
///
/// # Errors
/// If there is no such folder: the process has ended.
pub(crate) fn numbers(folder: &str) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(folder)?.flatten();
    let mut numbers: Vec<i32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}
