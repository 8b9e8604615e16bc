//! Where the shared library that stands for libseccomp is.
//!
//! It is a file of its own beside the program: in cargo's target directory, where builds and tests leave it, or in
//! `lib/tamis` of the same prefix.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process;

use tamis_scmp::header;

use crate::cli::Failure;

/// The name of the library's file, which isn't libseccomp's: nothing finds it by mistake.
pub(crate) const FILE_NAME: &str = "libtamis_libseccomp.so";

/// The library that the user names, or the one beside this program.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        return match path.is_file() {
            true => Ok(path.to_owned()),
            false => Err(Failure::input(format!("{}: no such file", path.display()))),
        };
    }
    let program = env::current_exe().and_then(|path| path.canonicalize());
    let folder = program.as_deref().ok().and_then(Path::parent);
    let places = folder
        .map(|folder| ["", "deps", "../lib/tamis"].map(|below| folder.join(below).join(FILE_NAME)));
    let found = places.into_iter().flatten().find(|place| place.is_file());
    found.ok_or_else(|| {
        Failure::usage(
            format!("{FILE_NAME} is not beside this program"),
            "build it with `cargo build --release -p tamis-libseccomp`, or name it with --library FILE",
        )
    })
}

/// A folder in which the dynamic linker finds the library by libseccomp's name; deleted with the value.
#[derive(Debug)]
pub(crate) struct LinkFolder(PathBuf);

impl LinkFolder {
    /// A new folder that only this user can enter.
    pub(crate) fn new(library: &Path) -> Result<LinkFolder, Failure> {
        let library = library
            .canonicalize()
            .map_err(|error| failed(library, &error))?;
        let folder = env::temp_dir().join(format!("tamis-libseccomp-{}", process::id()));
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| failed(&folder, &error))?;
        let folder = LinkFolder(folder);
        let link = folder
            .0
            .join(format!("libseccomp.so.{}", header::VERSION[0]));
        symlink(library, &link).map_err(|error| failed(&link, &error))?;
        Ok(folder)
    }

    /// A command that runs another with the folder before those of its `LD_LIBRARY_PATH`.
    pub(crate) fn around(&self, command: &[OsString]) -> Vec<OsString> {
        let mut folders = OsString::from("LD_LIBRARY_PATH=");
        folders.push(&self.0);
        if let Some(others) = env::var_os("LD_LIBRARY_PATH").filter(|others| !others.is_empty()) {
            folders.push(":");
            folders.push(others);
        }
        let mut around = vec!["env".into(), folders];
        around.extend_from_slice(command);
        around
    }
}

impl Drop for LinkFolder {
    fn drop(&mut self) {
        // What can't be deleted is left in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("{}: {error}", path.display()))
}

/// The file with a copy of libseccomp of its own that a command would use in place of any library: the program, or
/// the module of the Python that runs it.
pub(crate) fn private_copy(program: &OsStr) -> Option<PathBuf> {
    let program = on_path(program)?;
    let start = first_bytes(&program)?;
    let interpreter = match start.strip_prefix(b"#!") {
        Some(line) => {
            let line = line.split(|byte| *byte == b'\n').next()?;
            let words = String::from_utf8_lossy(line).into_owned();
            let mut words = words.split_whitespace();
            let first = words.next()?;
            let named = match first.ends_with("/env") {
                true => words.next()?,
                false => first,
            };
            on_path(OsStr::new(named))?
        }
        None => program,
    };
    if has_copy(&interpreter) {
        return Some(interpreter);
    }
    let is_python = interpreter.file_name()?.to_str()?.starts_with("python");
    let prefix = interpreter
        .canonicalize()
        .ok()?
        .parent()?
        .parent()?
        .to_owned();
    let modules = is_python.then(|| python_modules(&prefix))?;
    modules.into_iter().find(|module| has_copy(module))
}

/// The path of a program, looked for as a shell does.
fn on_path(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(program.into());
    }
    let folders = env::var_os("PATH")?;
    let mut places = env::split_paths(&folders).map(|folder| folder.join(program));
    places.find(|place| place.is_file())
}

fn first_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(256).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The modules named `seccomp` of a Python with this prefix.
fn python_modules(prefix: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let is_module = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("seccomp.") && name.ends_with(".so")
    };
    let versions = entries(&prefix.join("lib")).map(|entry| entry.path());
    let folders = versions
        .flat_map(|version| ["dist-packages", "site-packages"].map(|name| version.join(name)));
    let files = folders.flat_map(|folder| {
        entries(&folder)
            .map(|entry| entry.path())
            .collect::<Vec<_>>()
    });
    files.filter(is_module).collect()
}

/// Whether a file defines libseccomp's functions instead of asking for the library.
fn has_copy(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    let contains = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    contains(b"seccomp_rule_add_array\0") && !contains(b"libseccomp.so.2\0")
}
