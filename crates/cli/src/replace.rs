//! Replacing files safely in folders that other users can write.
//!
//! In a shared folder such as `/tmp`, other users can create a link, a pipe or a file with the name of a result. The
//! kernel protects against these only if `fs.protected_symlinks`, `fs.protected_regular` and `fs.protected_fifos` are
//! set; this module always rejects them. A link could lead to a file of this user, and a file would still belong to its
//! creator. Paths are resolved link by link, and the resolved file is opened without following links.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown, symlink,
};
use std::path::{Component, Path, PathBuf};

use super::trust::own_user;

/// The most links that are followed; the kernel's limit.
const MAX_LINKS: u32 = 40;
/// The most attempts to find an unused temporary name.
const MAX_ATTEMPTS: u32 = 100;

/// Replaces the content of a file; on failure the old file stays. A new file gets this mode, less the user's mask.
/// Devices, pipes and `/dev/stdout` are written directly.
pub(super) fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let real = resolve_links(path)?;
    if is_special(path) {
        return open_special(path, &real)?.write_all(bytes);
    }
    let old = fs::symlink_metadata(&real).ok();
    // The temporary file is never readable for users who couldn't read the old one.
    let mode = if old.is_some() { 0o600 } else { mode };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let (temporary, mut file) = create_beside(&real, |path| options.open(path))?;
    let written = file
        .write_all(bytes)
        .and_then(|()| old.map_or(Ok(()), |old| copy_ownership(&file, &old)))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, &real));
    written.inspect_err(|_| remove_leftover(&temporary))
}

/// Copies the owner and permissions of the replaced file. Only root can change the owner; for other users the new file
/// is their own, and the permissions of a different owner or group are dropped.
fn copy_ownership(file: &File, old: &Metadata) -> io::Result<()> {
    let is_given = fchown(file, Some(old.uid()), Some(old.gid())).is_ok();
    file.set_permissions(match is_given {
        true => old.permissions(),
        false => Permissions::from_mode(for_another_owner(old.mode())),
    })
}

/// A mode for a file of another owner and group: no set-user-ID, nobody else writes, and the group, which is another one,
/// has no more rights than all others.
fn for_another_owner(mode: u32) -> u32 {
    let others = mode & 0o5;
    mode & 0o700 | others << 3 | others
}

/// Opens a file for a result that is written piecewise, and truncates it.
pub fn create(path: &Path) -> io::Result<File> {
    let real = resolve_links(path)?;
    if is_special(path) {
        return open_special(path, &real);
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.custom_flags(libc::O_NOFOLLOW).open(real)
}

/// The mode of files before the user's mask.
pub const FILE: u32 = 0o666;
/// The mode of folders before the user's mask.
pub const FOLDER: u32 = 0o777;
/// The mode of files for programs and services: only the owner can write, whatever the mask.
pub const INSTALLED_FILE: u32 = 0o644;
/// The mode of folders for programs and services.
pub const INSTALLED_FOLDER: u32 = 0o755;

/// Creates a folder for results, and its parents, with this mode less the user's mask. An existing folder is accepted,
/// unless another user created it in a shared folder.
pub fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    if path == Path::new("") {
        return Ok(());
    }
    let real = resolve_links(path)?;
    DirBuilder::new().recursive(true).mode(mode).create(real)
}

/// Makes a link, replacing a file of that name.
pub(super) fn replace_link(path: &Path, target: &Path) -> io::Result<()> {
    let (temporary, ()) = create_beside(path, |path| symlink(target, path))?;
    fs::rename(&temporary, path).inspect_err(|_| remove_leftover(&temporary))
}

/// Whether the file exists and isn't regular.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file())
}

/// Opens a device or a pipe. Links below `/proc` are made by the kernel and may lead to files without a path.
fn open_special(path: &Path, real: &Path) -> io::Result<File> {
    let by_path = fs::metadata(path)?;
    let is_same = fs::symlink_metadata(real)
        .is_ok_and(|found| (found.dev(), found.ino()) == (by_path.dev(), by_path.ino()));
    let mut options = OpenOptions::new();
    options.write(true);
    match is_same {
        true => options.custom_flags(libc::O_NOFOLLOW).open(real),
        false => options.open(path),
    }
}

/// Resolves the symbolic links of a path, which needn't exist.
///
/// # Errors
/// If another user made a part of the path in a shared folder, or, for root, a link as its last part.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut at = PathBuf::new();
    let mut left = parts(&std::path::absolute(path)?);
    let mut links = 0;
    while let Some(part) = left.pop() {
        match part.components().next() {
            Some(Component::RootDir) => at = part,
            Some(Component::ParentDir) => {
                at.pop();
            }
            _ => {
                let found = at.join(&part);
                let Ok(data) = fs::symlink_metadata(&found) else {
                    at = found;
                    continue;
                };
                check(&data, &fs::metadata(&at)?, left.is_empty())?;
                if !data.is_symlink() {
                    at = found;
                    continue;
                }
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::other("too many levels of symbolic links"));
                }
                left.extend(parts(&fs::read_link(&found)?));
            }
        }
    }
    Ok(at)
}

/// The parts of a path in reverse order.
fn parts(path: &Path) -> Vec<PathBuf> {
    let named = path.components().filter(|part| *part != Component::CurDir);
    let parts = named.map(|part| PathBuf::from(part.as_os_str()));
    let mut parts: Vec<PathBuf> = parts.collect();
    parts.reverse();
    parts
}

/// Rejects files and links that another user made in a shared folder and, for root, every link of another user as the
/// last part.
fn check(data: &Metadata, folder: &Metadata, is_last: bool) -> io::Result<()> {
    const STICKY_AND_FOR_ALL: u32 = 0o1002;
    const ROOT: u32 = 0;
    let own = own_user()?;
    let is_for_all = folder.mode() & STICKY_AND_FOR_ALL == STICKY_AND_FOR_ALL;
    let is_foreign = data.uid() != own && data.uid() != folder.uid();
    let what = if data.is_symlink() { "link" } else { "file" };
    let why = match is_for_all && is_foreign {
        true => format!("it is a {what} of somebody else in a folder for all"),
        false if own == ROOT && is_last && data.is_symlink() && data.uid() != ROOT => {
            "it is a link of somebody else".to_owned()
        }
        false => return Ok(()),
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

fn remove_leftover(temporary: &Path) {
    // The original error is reported instead.
    let _ = fs::remove_file(temporary);
}

/// Makes a file by the function beside another one, and returns its name. The function must fail if the name exists, so
/// that nobody can place a link there.
pub(super) fn create_beside<T>(
    path: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let name = path.file_name().unwrap_or_default();
    for attempt in 0..MAX_ATTEMPTS {
        let mut temporary = name.to_owned();
        temporary.push(format!(".tamis-{}-{attempt}", std::process::id()));
        let temporary = path.with_file_name(temporary);
        match make(&temporary) {
            Ok(made) => return Ok((temporary, made)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}
