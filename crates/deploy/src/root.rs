//! A file system below a root, as a program with that root sees it.
//!
//! Links are resolved within the root: absolute ones start there, and `..` stops there. Only regular files are read,
//! because reading others may block. Concurrent changes of the image are not protected against.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// The most links in a path; the kernel's limit.
const MAX_LINKS: usize = 40;

/// The root of a file system.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// The root at this path.
    ///
    /// # Errors
    /// If it doesn't exist.
    pub fn new(path: &Path) -> io::Result<Root> {
        path.metadata().map(|_| Root(path.to_owned()))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Whether it is the root of this process.
    pub fn is_own(&self) -> bool {
        fs::canonicalize(&self.0).is_ok_and(|real| real == Path::new("/"))
    }

    /// Resolves a path below the root. Parts that don't exist are kept.
    ///
    /// # Errors
    /// If the path has too many links.
    pub fn at(&self, inside: &Path) -> io::Result<PathBuf> {
        let mut left = reversed(inside);
        let mut at = PathBuf::new();
        let mut links = 0;
        while let Some(name) = left.pop() {
            match name.to_str() {
                Some("/") => at.clear(),
                Some("..") => {
                    at.pop();
                }
                _ => at.push(name),
            }
            let Ok(target) = fs::read_link(self.0.join(&at)) else {
                continue;
            };
            if at.as_os_str().is_empty() {
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::other("too many links"));
            }
            at.pop();
            left.extend(reversed(&target));
        }
        Ok(self.0.join(at))
    }

    /// Resolves the folders of a path, but not its last part, which may be a link.
    pub(crate) fn place(&self, inside: &Path) -> io::Result<PathBuf> {
        match (inside.parent(), inside.file_name()) {
            (Some(folder), Some(name)) => Ok(self.at(folder)?.join(name)),
            _ => self.at(inside),
        }
    }

    /// The candidates for a program of this name in these folders, up to the first that exists.
    pub(crate) fn search(&self, folders: &[String], name: &str) -> Option<Vec<String>> {
        let paths = folders.iter().map(|folder| format!("{folder}/{name}"));
        let mut paths: Vec<String> = paths.collect();
        let found = paths.iter().position(|path| {
            let real = self.at(Path::new(path)).and_then(|real| real.metadata());
            real.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        })?;
        paths.truncate(found + 1);
        Some(paths)
    }

    /// The content of a regular file.
    pub(crate) fn read(&self, inside: &Path) -> io::Result<Vec<u8>> {
        self.read_bounded(inside, u64::MAX)
    }

    /// The content of a regular file, up to this size.
    pub(crate) fn read_bounded(&self, inside: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
        let path = self.at(inside)?;
        if !path.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut bytes = Vec::new();
        let mut file = File::open(path)?.take(most_bytes.saturating_add(1));
        file.read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most_bytes {
            true => Err(io::Error::other(format!(
                "it has more than {most_bytes} bytes"
            ))),
            false => Ok(bytes),
        }
    }

    /// The names in a folder; none if it doesn't exist.
    pub(crate) fn names(&self, folder: &Path) -> Vec<String> {
        let entries = self.at(folder).and_then(fs::read_dir);
        let entries = entries.into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }
}

/// The parts of a path without `.`, in reverse order; the last is `/` if the path is absolute.
fn reversed(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts
        .rev()
        .map(|part| part.as_os_str().to_owned())
        .collect()
}
