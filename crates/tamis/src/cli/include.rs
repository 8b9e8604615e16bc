//! Reading the files that policies include.
//!
//! A path is relative to the folder of the file that names it. Policies that are deployed elsewhere than
//! they are kept name absolute paths; `--include-dir` says where such files are looked for instead, by
//! their last name.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use tamis_policy::loader::{Loaded, Loader};

use super::input::{Input, ReadError};

/// Reads included files from the file system.
pub(crate) struct FileLoader<'a> {
    /// Where files are looked for that are not where a policy says.
    pub(crate) folders: &'a [PathBuf],
}

impl Loader for FileLoader<'_> {
    fn load(&mut self, path: &str, from: &str) -> Result<Loaded, String> {
        let folder = Path::new(from).parent().unwrap_or(Path::new(""));
        let mut read = Input::read_file(&without_dots(&folder.join(path)));
        for folder in self.folders {
            let Err(ReadError::Io(error)) = &read else {
                break;
            };
            if let (ErrorKind::NotFound, Some(name)) = (error.kind(), Path::new(path).file_name()) {
                let elsewhere = Input::read_file(&without_dots(&folder.join(name)));
                read = elsewhere.or(read);
            }
        }
        let input = read.map_err(|error| error.to_string())?;
        let text = String::from_utf8(input.bytes).map_err(|error| error.to_string())?;
        Ok(Loaded {
            name: input.name,
            text,
        })
    }
}

/// One file has one name, however often `./` stands in its path.
fn without_dots(path: &Path) -> PathBuf {
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}
