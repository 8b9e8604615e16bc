//! Finding the file of a program as a shell does.
//!
//! The search is that of `execvp`: a name with a slash is a path, any other is searched in the folders of `PATH`. It
//! runs before any filter is installed, because a filter may deny its calls; afterwards a single `execve` suffices. It
//! checks permissions and executes nothing, so a file in an unknown format is found too.

use std::env;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::errno::Errno;
use crate::sys;

/// The folders where `PATH` isn't set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file of a program: a path if it has a slash, else the first file in `PATH` that may be executed.
///
/// # Errors
/// `EACCES` if the only files of this name may not be executed or a folder may not be searched, else `ENOENT`.
///
/// ```
/// use std::path::Path;
/// use tamis_kernel::search;
/// assert_eq!(search::find("./x".as_ref()).as_deref(), Ok(Path::new("./x")));
/// assert!(search::find("sh".as_ref()).is_ok_and(|path| path.is_absolute()));
/// ```
pub fn find(program: &OsStr) -> Result<PathBuf, Errno> {
    let bytes = program.as_bytes();
    if bytes.is_empty() {
        return Err(Errno::ENOENT);
    }
    if bytes.contains(&b'/') {
        return Ok(PathBuf::from(program));
    }
    first_executable(candidates(program))
}

/// The first of these files that may be executed.
fn first_executable(files: impl IntoIterator<Item = PathBuf>) -> Result<PathBuf, Errno> {
    let mut best = Errno::ENOENT;
    for file in files {
        match may_execute(&file) {
            Ok(()) => return Ok(file),
            Err(Errno::EACCES) => best = Errno::EACCES,
            Err(_) => {}
        }
    }
    Err(best)
}

/// The files that a program may be, in the order of the search: itself if its name has a slash.
pub(crate) fn candidates(program: &OsStr) -> Vec<PathBuf> {
    let name = program.as_bytes();
    if name.is_empty() || name.contains(&b'/') {
        return vec![PathBuf::from(program)];
    }
    let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    in_folders(program, &path)
}

/// The files of this name in the folders of a search path.
fn in_folders(program: &OsStr, path: &OsStr) -> Vec<PathBuf> {
    let folders = env::split_paths(path);
    folders.map(|folder| folder.join(program)).collect()
}

fn may_execute(file: &Path) -> Result<(), Errno> {
    let text = CString::new(file.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))?;
    sys::execute::may_execute(&text)?;
    // Folders may be searched, which is the same right.
    match file.is_dir() {
        true => Err(Errno::EACCES),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_file_is_not_found_and_a_path_is_not_looked_for() {
        let find = |name: &str| find(OsStr::new(name));
        assert_eq!(find(""), Err(Errno::ENOENT));
        assert_eq!(find("/no/such/file"), Ok(PathBuf::from("/no/such/file")));
    }

    /// The search path is the test's own: that of the user may have folders that may not be searched.
    #[test]
    fn the_search_path_is_searched_in_its_order() {
        let find_in =
            |name: &str, path: &str| first_executable(in_folders(name.as_ref(), path.as_ref()));
        assert_eq!(find_in("no program has this name", "/"), Err(Errno::ENOENT));
        assert_eq!(find_in("null", "/none:/dev"), Err(Errno::EACCES));
        assert_eq!(find_in("sh", "/dev:/bin"), Ok(PathBuf::from("/bin/sh")));
    }

    #[test]
    fn folders_are_no_programs() {
        assert_eq!(may_execute(Path::new("/")), Err(Errno::EACCES));
        assert_eq!(may_execute(Path::new("/dev/null")), Err(Errno::EACCES));
    }
}
