//! Folders that only this user can write.
//!
//! The *state folder* persists after the command. It is below `XDG_STATE_HOME`, `~/.local/state` or, for root,
//! `/var/lib`, whichever only this user and root can write: `sudo` keeps another user's home. A *scratch folder* is
//! removed with the command. It is in the folder for temporary files if that is this user's own, or else in the state
//! folder, because a process that outlives the command may keep its path; a shared folder such as `/tmp` is the last
//! choice.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process;

use tamis_session::path_text::PathText as _;

use super::trust::{Span, nearest_folder, own_user, weakness};
use super::{Failure, exit};

/// Characters with a meaning in lists of paths for the dynamic linker or Python.
const SEPARATORS: &[u8] = b":;$\n";

/// Creates a folder in the state folder.
///
/// # Errors
/// If no folder is writable for this user and root alone.
pub fn state_folder(name: &str) -> Result<PathBuf, Failure> {
    let mut reasons = Vec::new();
    for place in places() {
        match made(&place.join("tamis").join(name)) {
            Ok(folder) => return Ok(folder),
            Err(reason) => reasons.push(reason),
        }
    }
    if reasons.is_empty() {
        reasons.push("neither HOME nor XDG_STATE_HOME names one".to_owned());
    }
    let message = format!(
        "no folder that only this user can write: {}",
        reasons.join("; ")
    );
    let help = "set XDG_STATE_HOME to a folder that only this user and root can write";
    Err(Failure::new(
        exit::ENVIRONMENT,
        message,
        Some(help.to_owned()),
    ))
}

/// The candidates for the state folder, the best first.
fn places() -> Vec<PathBuf> {
    let of_variable = |name| env::var_os(name).map(PathBuf::from);
    let home = of_variable("HOME").map(|home| home.join(".local/state"));
    let system = own_user()
        .is_ok_and(|own| own == 0)
        .then(|| "/var/lib".into());
    let all = [of_variable("XDG_STATE_HOME"), home, system];
    let places = all.into_iter().flatten();
    places.filter(|place| place.is_absolute()).collect()
}

/// Creates a folder, and its parents, for this user alone. Returns its path without links, or the reason why it isn't
/// safe.
fn made(folder: &Path) -> Result<PathBuf, String> {
    let cannot = |error: io::Error| format!("{}: {error}", folder.text());
    // Create nothing below a folder that another user could move.
    let there = nearest_folder(folder);
    if let Some(why) = weakness(&there, Span::Lasting).map_err(cannot)? {
        return Err(why);
    }
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(cannot)?;
    if let Some(why) = weakness(folder, Span::Lasting).map_err(cannot)? {
        return Err(why);
    }
    let real = fs::canonicalize(folder).map_err(cannot)?;
    match is_one_path(&real) {
        true => Ok(real),
        false => Err(format!(
            "{} has a character that separates paths",
            real.text()
        )),
    }
}

/// Whether a list of paths for the dynamic linker or Python can contain this path.
pub fn is_one_path(path: &Path) -> bool {
    let mut bytes = path.as_os_str().as_encoded_bytes().iter();
    !bytes.any(|byte| SEPARATORS.contains(byte))
}

/// A folder of one command; dropping it removes it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder that only this user can enter.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn new(purpose: &str) -> Result<Scratch, Failure> {
        let temporary = env::temp_dir();
        let is_own = temporary.is_absolute()
            && weakness(&temporary, Span::Lasting).is_ok_and(|why| why.is_none());
        let parent = match is_own {
            true => temporary,
            false => state_folder("scratch").unwrap_or(temporary),
        };
        new_folder(&parent, purpose).map(Scratch).map_err(|error| {
            Failure::environment(format!(
                "cannot make a folder in {}: {error}",
                parent.text()
            ))
        })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that can't be removed stays in a place that others can't write.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Creates a folder with an unused name. Other users may have taken some names, but not all.
fn new_folder(parent: &Path, purpose: &str) -> io::Result<PathBuf> {
    const MOST: u32 = 10_000;
    for attempt in 0..MOST {
        let name = format!("tamis-{purpose}-{}-{attempt}", process::id());
        let folder = parent.join(name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}
