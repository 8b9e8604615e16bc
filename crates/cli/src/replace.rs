//! Files in the place of others, also where somebody else has put something.
//!
//! In a folder for all, such as `/tmp`, anybody can make a link, a pipe or a file by a name that will be written. The kernel
//! refuses these where it is asked to (`fs.protected_symlinks`, `fs.protected_regular`, `fs.protected_fifos`); here they are
//! refused everywhere: a link would lead to a file of ours, and a file would stay its owner's, who can change it later. A
//! path is followed link by link, and what was found is opened without following another.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown, symlink,
};
use std::path::{Component, Path, PathBuf};

use super::trust::own_user;

/// How many links are followed, as by the kernel.
const MAX_LINKS: u32 = 40;
/// How many names for a temporary file are tried.
const MAX_ATTEMPTS: u32 = 100;

/// Replaces a file by one with this content; on failure the old one stays as it was. One that wasn't there gets this mode, less
/// the user's mask. What isn't a regular file (a device, a pipe, `/dev/stdout`) is written to directly.
pub(super) fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let real = behind_links(path)?;
    if is_special(path) {
        return open_special(path, &real)?.write_all(bytes);
    }
    let old = fs::symlink_metadata(&real).ok();
    // What replaces a file that others can't read is never there for them.
    let mode = if old.is_some() { 0o600 } else { mode };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let (temporary, mut file) = create_beside(&real, |path| options.open(path))?;
    let written = file
        .write_all(bytes)
        .and_then(|()| old.map_or(Ok(()), |old| take_after(&file, &old)))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, &real));
    written.inspect_err(|_| remove_leftover(&temporary))
}

/// Gives a file the owner and permissions of the one that it replaces. Only root may give a file away; for others the new one
/// is theirs, as if the old had been removed, and what its mode gave to another owner and group is given to nobody.
fn take_after(file: &File, old: &Metadata) -> io::Result<()> {
    let is_given = fchown(file, Some(old.uid()), Some(old.gid())).is_ok();
    file.set_permissions(match is_given {
        true => old.permissions(),
        false => Permissions::from_mode(old.mode() & OWN_BITS),
    })
}

/// Opens a file for a result that is written while it comes, without what it had.
pub fn create(path: &Path) -> io::Result<File> {
    let real = behind_links(path)?;
    if is_special(path) {
        return open_special(path, &real);
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.custom_flags(libc::O_NOFOLLOW).open(real)
}

/// The bits of a mode that don't depend on who owns the file: no set-user-ID, and nobody else writes.
const OWN_BITS: u32 = 0o755;
/// The modes of files and folders for whoever the user's mask lets write.
pub const FILE: u32 = 0o666;
/// As above, for folders.
pub const FOLDER: u32 = 0o777;
/// Those of files and folders that programs and services use: nobody else writes them, whatever the mask.
pub const INSTALLED_FILE: u32 = 0o644;
/// As above, for folders.
pub const INSTALLED_FOLDER: u32 = 0o755;

/// Makes a folder for results, and those above it, with this mode less the user's mask. One that exists stays, unless
/// another user has put it into a folder for all.
pub fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    if path == Path::new("") {
        return Ok(());
    }
    let real = behind_links(path)?;
    DirBuilder::new().recursive(true).mode(mode).create(real)
}

/// Makes a link in the place of what has its name.
pub(super) fn replace_link(path: &Path, target: &Path) -> io::Result<()> {
    let (temporary, ()) = create_beside(path, |path| symlink(target, path))?;
    fs::rename(&temporary, path).inspect_err(|_| remove_leftover(&temporary))
}

/// Whether something other than a regular file is there.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file())
}

/// Opens a device or a pipe. Links below `/proc` lead to files that may have no path, and only the kernel makes them.
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

/// The path of what is behind the symbolic links of a path, also if it doesn't exist yet.
///
/// # Errors
/// Something of somebody else in a folder for all; for root, a link of somebody else that is the last part.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
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

/// The parts of a path, the first last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let named = path.components().filter(|part| *part != Component::CurDir);
    let parts = named.map(|part| PathBuf::from(part.as_os_str()));
    let mut parts: Vec<PathBuf> = parts.collect();
    parts.reverse();
    parts
}

/// Refuses what somebody else has put into a folder for all, and whatever link of somebody else that root would write
/// through.
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
    // The error before is the one to report; a leftover is the lesser evil.
    let _ = fs::remove_file(temporary);
}

/// What a function makes in the folder of another file, and its name. The function must fail if there is something, so
/// that nobody can place a link where the file will be.
fn create_beside<T>(
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
