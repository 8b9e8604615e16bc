//! An initial file system as the kernel reads it: an archive of cpio's format `newc`.
//!
//! All belongs to root. Whatever a folder gets is written behind the folder, and a name that comes again replaces the
//! earlier file, as in the kernel's documentation of initial file systems.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;

/// An archive that is being written.
pub(super) struct Cpio<W> {
    to: W,
    folders: BTreeSet<PathBuf>,
    count: u32,
}

impl<W: Write> Cpio<W> {
    /// An empty archive.
    pub(super) fn new(to: W) -> Self {
        Cpio {
            to,
            folders: BTreeSet::new(),
            count: 0,
        }
    }

    /// A folder, and those that contain it.
    ///
    /// # Errors
    /// As the writer's.
    pub(super) fn folder(&mut self, path: &Path) -> io::Result<()> {
        let path = path.strip_prefix("/").unwrap_or(path);
        let ancestors: Vec<&Path> = path.ancestors().collect();
        for folder in ancestors.into_iter().rev() {
            let is_named = folder
                .components()
                .any(|part| matches!(part, std::path::Component::Normal(_)));
            if is_named && self.folders.insert(folder.to_owned()) {
                self.entry(folder, FOLDER | 0o755, 0, (0, 0), b"")?;
            }
        }
        Ok(())
    }

    /// A file with this content.
    ///
    /// # Errors
    /// As the writer's.
    pub(super) fn file(&mut self, path: &Path, permissions: u32, content: &[u8]) -> io::Result<()> {
        self.parent(path)?;
        let now = UNIX_EPOCH.elapsed().map_or(0, |age| age.as_secs());
        self.entry(path, FILE | permissions, now as u32, (0, 0), content)
    }

    /// A symbolic link.
    ///
    /// # Errors
    /// As the writer's.
    pub(super) fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        self.parent(path)?;
        self.entry(path, LINK | 0o777, 0, (0, 0), target.as_os_str().as_bytes())
    }

    /// A device for characters.
    ///
    /// # Errors
    /// As the writer's.
    pub(super) fn device(&mut self, path: &Path, number: (u32, u32)) -> io::Result<()> {
        self.parent(path)?;
        self.entry(path, DEVICE | 0o600, 0, number, b"")
    }

    /// All that a folder of this machine has, under the same names below the root; `is_wanted` gets these names.
    ///
    /// # Errors
    /// If something can't be read or written.
    pub(super) fn tree(
        &mut self,
        folder: &Path,
        is_wanted: &dyn Fn(&Path) -> bool,
    ) -> io::Result<()> {
        let mut waiting = vec![PathBuf::new()];
        while let Some(inner) = waiting.pop() {
            let mut entries = fs::read_dir(folder.join(&inner))?.collect::<io::Result<Vec<_>>>()?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let path = inner.join(entry.file_name());
                if is_wanted(&path) {
                    self.copy(&entry.path(), &path)?;
                    if entry.file_type()?.is_dir() {
                        waiting.push(path);
                    }
                }
            }
        }
        Ok(())
    }

    /// One file, folder or link of this machine.
    fn copy(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let data = fs::symlink_metadata(from)?;
        if data.is_dir() {
            return self.folder(to);
        }
        if data.is_symlink() {
            return self.link(to, &fs::read_link(from)?);
        }
        self.parent(to)?;
        let permissions = data.permissions().mode() & 0o7777;
        self.entry(
            to,
            FILE | permissions,
            data.mtime() as u32,
            (0, 0),
            &fs::read(from)?,
        )
    }

    fn parent(&mut self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |folder| self.folder(folder))
    }

    fn entry(
        &mut self,
        path: &Path,
        mode: u32,
        time: u32,
        device: (u32, u32),
        content: &[u8],
    ) -> io::Result<()> {
        let name = path
            .strip_prefix("/")
            .unwrap_or(path)
            .as_os_str()
            .as_bytes();
        self.count += 1;
        let size = u32::try_from(content.len()).map_err(io::Error::other)?;
        let fields = [
            self.count,
            mode,
            0,
            0,
            1,
            time,
            size,
            0,
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0,
        ];
        self.to.write_all(b"070701")?;
        for field in fields {
            write!(self.to, "{field:08x}")?;
        }
        self.to.write_all(name)?;
        // The head has 110 bytes; name and content end at multiples of four.
        self.to
            .write_all(&[0; 4][..padding(110 + name.len() + 1) + 1])?;
        self.to.write_all(content)?;
        self.to.write_all(&[0; 4][..padding(content.len())])
    }

    /// Writes the archive's end.
    ///
    /// # Errors
    /// As the writer's.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.entry(Path::new("TRAILER!!!"), 0, 0, (0, 0), b"")?;
        self.to.flush()?;
        Ok(self.to)
    }
}

const fn padding(len: usize) -> usize {
    len.wrapping_neg() % 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_once_and_before_their_files_and_all_is_aligned() {
        let mut archive = Cpio::new(Vec::new());
        archive
            .file(Path::new("/a/b/c"), 0o644, b"12345")
            .expect("memory");
        archive
            .link(Path::new("a/b/d"), Path::new("c"))
            .expect("memory");
        let bytes = archive.finish().expect("memory");
        assert_eq!(bytes.len() % 4, 0);
        let heads: Vec<usize> = bytes
            .windows(6)
            .enumerate()
            .filter(|(_, six)| six == b"070701")
            .map(|(at, _)| at)
            .collect();
        assert!(heads.iter().all(|at| at % 4 == 0));
        let name = |at: &usize| {
            let name = &bytes[at + 110..];
            String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default())
                .into_owned()
        };
        assert_eq!(
            heads.iter().map(name).collect::<Vec<_>>(),
            ["a", "a/b", "a/b/c", "a/b/d", "TRAILER!!!"]
        );
    }
}
