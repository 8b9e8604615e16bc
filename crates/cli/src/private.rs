//! Folders of tamis's own that nobody else can write.
//!
//! *The state folder* is for what outlives a command: it is never removed. It is below `XDG_STATE_HOME`, or
//! `~/.local/state`, or, for root, `/var/lib`, whichever only this user and root can write: `sudo` keeps the home of
//! another user. *Scratch folders* are for one command, and go with it. They lie in the folder for temporary files if
//! that is this user's alone, or else in the state folder, because a process that outlives the command may still have
//! their paths; in a folder for all only where there is nothing else.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process;

use tamis_session::path_text::PathText as _;

use super::trust::{Span, nearest_folder, own_user, weakness};
use super::{Failure, exit};

/// Characters that end a path, or stand for another, in a variable of the dynamic linker or of Python.
const SEPARATORS: &[u8] = b":;$\n";

/// A folder of the state folder, made if it isn't there.
///
/// # Errors
/// If there is no place that only this user and root can write.
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

/// The folders below which the state folder may be, the best first.
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

/// Makes a folder and those above it for this user alone; returns its path without links, or why it can't be used.
fn made(folder: &Path) -> Result<PathBuf, String> {
    let cannot = |error: io::Error| format!("{}: {error}", folder.text());
    // Nothing is made where somebody else could move it.
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

/// Whether a variable of the dynamic linker or of Python can name this path.
pub fn is_one_path(path: &Path) -> bool {
    let mut bytes = path.as_os_str().as_encoded_bytes().iter();
    !bytes.any(|byte| SEPARATORS.contains(byte))
}

/// A folder of one command, which is removed with the value.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder that only this user can enter.
    ///
    /// # Errors
    /// If none can be made.
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

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed stays where nobody else can write.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a folder by a name that nobody has taken. Others may take names in advance, but not all.
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
