//! `--undo`: removes the files of this command, also if some are missing.
//!
//! The unit may be missing or masked, the filter or the drop-in may be missing, and the drop-in may have been edited:
//! lines by others are printed, because they are removed with it. Files that this command didn't write stay, with a
//! note. A filter without its drop-in stays if another file of the folder refers to it.

use std::fs;
use std::io;
use std::path::Path;

use tamis_session::Error;
use tamis_session::path_text::PathText;

use super::commands::DIRECTIVES;
use super::settings::is_own_key;
use super::{FILTER, HEADER, Places, is_own_text};

/// The kind of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    Nothing,
    File,
    /// A folder, a link, a pipe.
    Other,
}

impl FileState {
    fn at(path: &Path) -> Result<FileState, Error> {
        match path.symlink_metadata() {
            Ok(data) if data.is_file() => Ok(FileState::File),
            Ok(_) => Ok(FileState::Other),
            Err(error) if is_missing(&error) => Ok(FileState::Nothing),
            Err(error) => Err(failed(path, &error)),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::environment(format!("{}: {error}", path.text()))
}

/// The result of `--undo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The paths of the removed files.
    pub removed: Vec<String>,
    /// Findings for the user.
    pub notes: Vec<String>,
}

/// Removes the drop-in and the filter of a unit, which may not exist.
///
/// # Errors
/// If there is nothing to remove, the drop-in is somebody else's, or a file can't be removed.
pub fn undo(places: &Places, unit: &str, exists: bool) -> Result<Removal, Error> {
    let drop_in = FileState::at(&places.drop_in)?;
    let filter = FileState::at(&places.filter)?;
    let [drop_in_path, filter_path] = [&places.drop_in, &places.filter].map(|path| path.text());
    if drop_in == FileState::Nothing && filter == FileState::Nothing {
        if !exists {
            return Err(Error::input(format!("there is no unit {unit}")));
        }
        return Err(Error::input(format!("{unit} has no {drop_in_path}")));
    }
    let mut notes = Vec::new();
    let mut removed = Vec::new();
    match drop_in {
        FileState::Nothing => notes.push(format!("there was no {drop_in_path}")),
        FileState::File => {
            let text =
                fs::read(&places.drop_in).map_err(|error| failed(&places.drop_in, &error))?;
            let text = String::from_utf8_lossy(&text);
            if !is_own_text(&text) {
                return Err(not_ours(&drop_in_path));
            }
            notes.extend(lines_of_others(&text, &drop_in_path));
            remove(&places.drop_in)?;
            removed.push(drop_in_path);
        }
        FileState::Other => return Err(not_ours(&drop_in_path)),
    }
    let user = match drop_in {
        FileState::Nothing => user_of_filter(&places.filter),
        _ => None,
    };
    match (filter, user) {
        (FileState::Nothing, _) => notes.push(format!("{filter_path} was gone already")),
        (FileState::Other, _) => notes.push(format!("{filter_path} is no regular file and stays")),
        (FileState::File, Some(user)) => {
            notes.push(format!("{filter_path} stays, {user} names it"));
        }
        (FileState::File, None) => {
            remove(&places.filter)?;
            removed.push(filter_path);
        }
    }
    // The folder may contain other files.
    let _ = places.drop_in.parent().map(fs::remove_dir);
    Ok(Removal { removed, notes })
}

fn not_ours(path: &str) -> Error {
    Error::usage(
        format!("{path} was not written by tamis"),
        "remove it yourself",
    )
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if !is_missing(&error) => Err(failed(path, &error)),
        _ => Ok(()),
    }
}

/// A note on lines of the drop-in that this command didn't write.
fn lines_of_others(text: &str, path: &str) -> Option<String> {
    let is_own = |line: &&str| {
        let key = line.split('=').next().unwrap_or_default().trim();
        let is_frame = line.is_empty() || line.starts_with(HEADER) || *line == "[Service]";
        is_frame || DIRECTIVES.contains(&key) || is_own_key(key)
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !is_own(line))
        .collect();
    (!lines.is_empty()).then(|| {
        format!(
            "{path} was edited, and these lines go with it: {}",
            lines.join("; ").escape_debug()
        )
    })
}

/// A file of the folder that refers to the filter.
fn user_of_filter(filter: &Path) -> Option<String> {
    let entries = fs::read_dir(filter.parent()?).ok()?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let names = |path: &Path| {
        let is_drop_in = path
            .extension()
            .is_some_and(|extension| extension == "conf");
        is_drop_in && path.is_file() && {
            let text = fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(FILTER)
        }
    };
    files.find(|path| names(path)).map(|path| path.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_are_those_that_this_command_never_writes() {
        let own = format!("{HEADER}: x\n[Service]\nSystemCallFilter=\nExecStart=\nExecStart=/e\n");
        assert_eq!(lines_of_others(&own, "p"), None);
        let edited = format!("{own}Nice=5\n # mine\n");
        let note = lines_of_others(&edited, "p").unwrap();
        assert!(
            note.ends_with("these lines go with it: Nice=5; # mine"),
            "{note}"
        );
    }
}
