//! Folders of tests in the system's temporary folder, where other users can create any name first.
//!
//! A test of root that wrote to a predictable name would follow a link of another user. These folders are created by
//! the test or not at all, only their owner can write them, and they are removed when dropped. A test that runs in
//! cargo's folder has `CARGO_TARGET_TMPDIR` and needs none.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process;

/// A new folder of a test.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A folder that only this user can enter.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn new(name: &str) -> io::Result<Scratch> {
        Scratch::create(&env::temp_dir(), name, 0o700)
    }

    /// A folder that others can enter, for operations of a test as another user.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn open_to_readers(name: &str) -> io::Result<Scratch> {
        Scratch::create(&env::temp_dir(), name, 0o755)
    }

    fn create(parent: &Path, name: &str, mode: u32) -> io::Result<Scratch> {
        const MOST: u32 = 10_000;
        for attempt in 0..MOST {
            let folder = parent.join(format!("tamis-{name}-{}-{attempt}", process::id()));
            match DirBuilder::new().mode(mode).create(&folder) {
                Ok(()) => return Ok(Scratch(folder)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Only the owner can write the remaining files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_waits_there_is_not_taken() {
        let outer = Scratch::new("outer").unwrap();
        let name = |attempt| {
            let name = format!("tamis-x-{}-{attempt}", process::id());
            outer.path().join(name)
        };
        fs::create_dir(name(0)).unwrap();
        symlink("elsewhere", name(1)).unwrap();
        let folder = Scratch::create(outer.path(), "x", 0o700).unwrap();
        assert_eq!(folder.path(), name(2));
    }
}
