//! Paths that only this user and root can change.
//!
//! A path for another program is used later than it is checked, perhaps by a process with more privileges than its
//! owner. Each folder of the path must therefore belong to this user or root and be writable for nobody else. A path
//! for immediate use may also be in a folder with the sticky bit, such as `/tmp`, where users can't move files of
//! others. A lasting path may not: such folders are emptied, and then anybody can create the path anew.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tamis_session::path_text::PathText as _;

/// The sticky bit: only owners move and remove files of the folder.
const STICKY: u32 = 0o1000;
/// The bits for writing by the group and by all others.
const GROUP_WRITES: u32 = 0o020;
const ALL_WRITE: u32 = 0o002;

/// The time for which a path must be safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// It is used at once.
    Now,
    /// It may be used at any time.
    Lasting,
}

/// The user of this process.
///
/// # Errors
/// If `/proc` can't be read.
pub fn own_user() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}

/// The user ID of root, the owner of `/`; `None` in a user namespace without root. There the kernel shows one user ID
/// for all outside users, so files of root can't be distinguished.
fn root_user() -> io::Result<Option<u32>> {
    let owner = fs::metadata("/")?.uid();
    let map = fs::read_to_string("/proc/self/uid_map")?;
    Ok(is_mapped(&map, owner).then_some(owner))
}

/// Whether a user namespace with this map has this user ID.
fn is_mapped(map: &str, user: u32) -> bool {
    let user = u64::from(user);
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) => {
                (first..first.saturating_add(count)).contains(&user)
            }
            _ => false,
        }
    })
}

/// The reason why another user can change a path, as a clause about the file or folder; `None` if none can.
///
/// The parts are checked from the root on, so that a checked part can't be changed afterwards.
///
/// # Errors
/// If the path doesn't exist.
pub fn weakness(path: &Path, span: Span) -> io::Result<Option<String>> {
    let path = fs::canonicalize(path)?;
    let own = own_user()?;
    let root = root_user()?;
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    for part in parts {
        let data = fs::symlink_metadata(part)?;
        let (owner, mode) = (data.uid(), data.mode());
        let is_held = span == Span::Now && data.is_dir() && mode & STICKY != 0 && part != path;
        // By convention a group with the user's own number has no other members.
        let by_group = mode & GROUP_WRITES != 0 && data.gid() != own;
        let why = if data.file_type().is_symlink() {
            "became a symbolic link".to_owned()
        } else if owner != own && Some(owner) != root {
            format!("belongs to user {owner}")
        } else if mode & ALL_WRITE != 0 && !is_held {
            "can be written by all users".to_owned()
        } else if by_group && !is_held {
            format!("can be written by group {}", data.gid())
        } else {
            continue;
        };
        return Ok(Some(format!("{} {why}", part.text())));
    }
    Ok(None)
}

/// The nearest existing folder of a path.
pub fn nearest_folder(path: &Path) -> PathBuf {
    let mut there = path.ancestors().filter(|folder| folder.is_dir());
    there.next().unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::private::Scratch;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn users_outside_a_namespace_are_nobody_in_it() {
        let initial = "         0          0 4294967295\n";
        let container = "         0       1000          1\n         1     100000      65536\n";
        for (map, user, is_there) in [
            (initial, 0, true),
            (initial, 65534, true),
            (container, 0, true),
            (container, 65534, true),
            (container, 65537, false),
            ("      1000       1000          1\n", 65534, false),
            ("", 0, false),
        ] {
            assert_eq!(is_mapped(map, user), is_there, "{map}{user}");
        }
    }

    /// The spans for which the folder itself is safe: without a place of the user it is in one with the sticky bit.
    fn spans(scratch: &Scratch) -> Vec<Span> {
        let mut spans = vec![Span::Now, Span::Lasting];
        spans.retain(|span| weakness(scratch.path(), *span).unwrap().is_none());
        assert!(spans.contains(&Span::Now));
        spans
    }

    #[test]
    fn folders_for_all_are_weak_and_sticky_ones_only_if_the_path_lasts() {
        let scratch = Scratch::new("trust").unwrap();
        let shared = scratch.path().join("shared");
        let file = shared.join("own/file");
        fs::create_dir_all(shared.join("own")).unwrap();
        fs::write(&file, "").unwrap();
        set(&shared.join("own"), 0o700);
        set(&file, 0o600);
        let weak_at = |mode: u32, span| {
            set(&shared, mode);
            let why = weakness(&file, span).unwrap();
            why.is_some_and(|why| why.starts_with(&*format!("{} can be", shared.text())))
        };
        for span in spans(&scratch) {
            assert!(!weak_at(0o755, span), "{span:?}");
            assert!(weak_at(0o777, span), "{span:?}");
            assert_eq!(weak_at(0o1777, span), span == Span::Lasting);
        }
    }

    #[test]
    fn a_file_for_all_is_weak_wherever_it_lies_and_by_whatever_name() {
        let scratch = Scratch::new("trust").unwrap();
        let (file, link) = (scratch.path().join("file"), scratch.path().join("link"));
        fs::write(&file, "").unwrap();
        symlink("file", &link).unwrap();
        for (mode, is_weak) in [(0o600, false), (0o644, false), (0o666, true), (0o602, true)] {
            set(&file, mode);
            for span in spans(&scratch) {
                let found = weakness(&link, span).unwrap();
                assert_eq!(found.is_some_and(|why| why.contains("file can")), is_weak);
            }
        }
    }
}
