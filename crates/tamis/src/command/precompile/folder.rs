//! Writing a folder of filters: a file for each filter, and an index of the combinations.
//!
//! A folder with an index of this format was written by tamis, and the files in the index are replaced. Other files
//! with the name of a new one are kept, unless `--force` is given.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;
use tamis_report::Document;
use tamis_report::precompile::PrecompileReport;
use tamis_session::path_text::PathText;

use crate::cli::Failure;
use crate::cli::output::write_file;
use crate::cli::replace::{FOLDER, make_folder};

pub(super) const INDEX: &str = "index.json";

/// The names of the filters' files.
pub(super) fn names(count: usize) -> Vec<String> {
    let width = count.saturating_sub(1).to_string().len();
    (0..count)
        .map(|index| format!("filter-{index:0width$}.bpf"))
        .collect()
}

/// Writes the files and the index, and removes other files of an earlier index.
pub(super) fn write(
    folder: &Path,
    files: &[(String, Vec<u8>)],
    index: &str,
    is_forced: bool,
) -> Result<(), Failure> {
    let shown = folder.text();
    make_folder(folder, FOLDER).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Failure::usage(
            format!("{shown} is not a directory"),
            "name a directory with `-o`: each filter is a file",
        ),
        _ => Failure::environment(format!("cannot make {shown}: {error}")),
    })?;
    let earlier = earlier(folder);
    let names = files.iter().map(|(name, _)| name.as_str()).chain([INDEX]);
    if !is_forced {
        for name in names.clone() {
            let is_ours = earlier.iter().any(|own| own == name);
            if !is_ours && fs::symlink_metadata(folder.join(name)).is_ok() {
                return Err(Failure::usage(
                    format!("{shown}/{name} was not created by `tamis precompile`"),
                    "name another directory with `-o`, or overwrite with `--force`",
                ));
            }
        }
    }
    for (name, bytes) in files {
        write_file(&folder.join(name), bytes)?;
    }
    write_file(&folder.join(INDEX), index.as_bytes())?;
    for name in earlier
        .iter()
        .filter(|own| !names.clone().any(|name| name == *own))
    {
        let path = folder.join(name);
        fs::remove_file(&path).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(Failure::environment(format!(
                "cannot remove {}: {error}",
                path.text()
            ))),
        })?;
    }
    Ok(())
}

/// The files of an earlier index, including the index; none if there is no such index.
fn earlier(folder: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(folder.join(INDEX)) else {
        return Vec::new();
    };
    let Ok(index) = serde_json::from_str::<Value>(&text) else {
        return Vec::new();
    };
    if index["schema"] != PrecompileReport::SCHEMA {
        return Vec::new();
    }
    let filters = index["filters"].as_array().into_iter().flatten();
    let files = filters.filter_map(|filter| filter["file"].as_str());
    let is_ours =
        |name: &&str| name.starts_with("filter-") && name.ends_with(".bpf") && !name.contains('/');
    files
        .filter(is_ours)
        .map(str::to_owned)
        .chain([INDEX.to_owned()])
        .collect()
}
