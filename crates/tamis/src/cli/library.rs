//! Where the shared library that stands for libseccomp is.
//!
//! It is a file of its own beside the program: in cargo's target directory, where builds and tests leave it, or in
//! `lib/tamis` of the same prefix.

use std::env;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process;

use object::{Object as _, ObjectKind, ObjectSymbol as _};
use tamis_kernel::search;
use tamis_scmp::header;
use tamis_session::path_text::PathText;

use crate::cli::Failure;

/// The name of the library's file, which isn't libseccomp's: nothing finds it by mistake.
pub(crate) const FILE_NAME: &str = "libtamis_libseccomp.so";

/// The Python module with the names of libseccomp's: pure Python, which loads the library in the folder above its own.
pub(crate) const PYTHON_MODULE: &str = include_str!("../../python/seccomp.py");

/// Where the module is, from the library's folder.
pub(crate) const PYTHON_MODULE_PATH: &str = "python3/seccomp.py";

/// The library that the user names, or the one beside this program.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        return match path.is_file() {
            true => refuse_other(path).map(|()| path.to_owned()),
            false => Err(Failure::input(format!("{}: no such file", path.text()))),
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

/// Refuses a file that isn't tamis's library: one that doesn't define libseccomp's functions, or libseccomp itself.
fn refuse_other(library: &Path) -> Result<(), Failure> {
    // No other library asks for this variable.
    const VARIABLE: &[u8] = b"TAMIS_EXPLAIN";
    let bytes = fs::read(library).map_err(|error| failed(library, &error))?;
    let what = match (exports_function(&bytes), contains(&bytes, VARIABLE)) {
        (true, true) => return Ok(()),
        (true, false) => "libseccomp itself, and not tamis's library in its place",
        (false, _) => "no library with libseccomp's functions",
    };
    Err(Failure::usage(
        format!("{} is {what}", library.text()),
        format!("the library is called {FILE_NAME}"),
    ))
}

/// Whether a file is a shared library with libseccomp's function. An executable may name that as well.
fn exports_function(bytes: &[u8]) -> bool {
    let Ok(file) = object::File::parse(bytes) else {
        return false;
    };
    let is_function = |symbol: object::Symbol<'_, '_>| {
        symbol.is_definition() && symbol.name_bytes() == Ok(FUNCTION.to_bytes())
    };
    file.kind() == ObjectKind::Dynamic && file.dynamic_symbols().any(is_function)
}

/// A function of libseccomp. Its name, with the end, stands in what defines or asks for it.
const FUNCTION: &CStr = c"seccomp_rule_add_array";

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// The static library beside the shared one.
pub(crate) fn archive(library: &Path) -> Result<PathBuf, Failure> {
    let archive = library.with_extension("a");
    match archive.is_file() {
        true => Ok(archive),
        false => Err(Failure::usage(
            format!("{}: no such file", archive.text()),
            "`cargo build --release -p tamis-libseccomp` makes it; packages don't have it",
        )),
    }
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

    /// Adds the Python module.
    pub(crate) fn add_python_module(&self) -> Result<(), Failure> {
        let module = self.0.join(PYTHON_MODULE_PATH);
        let written = match module.parent() {
            Some(folder) => fs::create_dir(folder).and_then(|()| fs::write(&module, PYTHON_MODULE)),
            None => Ok(()),
        };
        written.map_err(|error| failed(&module, &error))
    }

    /// A command that runs another with the folder before those of its `LD_LIBRARY_PATH`, and with that of the Python
    /// module, if there is one, before those of its `PYTHONPATH`.
    pub(crate) fn around(&self, command: &[OsString]) -> Vec<OsString> {
        let mut around = vec!["env".into(), before("LD_LIBRARY_PATH", &self.0)];
        let module = self.0.join(PYTHON_MODULE_PATH);
        if let Some(modules) = module.parent().filter(|modules| modules.is_dir()) {
            around.push(before("PYTHONPATH", modules));
        }
        around.extend_from_slice(command);
        around
    }
}

/// The setting of a variable to a folder and those that the environment has in it.
fn before(variable: &str, folder: &Path) -> OsString {
    let mut setting = OsString::from(variable);
    setting.push("=");
    setting.push(folder);
    if let Some(others) = env::var_os(variable).filter(|others| !others.is_empty()) {
        setting.push(":");
        setting.push(others);
    }
    setting
}

impl Drop for LinkFolder {
    fn drop(&mut self) {
        // What can't be deleted is left in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The failure to access a file.
pub(crate) fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("{}: {error}", path.text()))
}

/// A file with a copy of libseccomp of its own, which a command would use in place of any library.
#[derive(Debug)]
pub(crate) enum PrivateCopy {
    /// The program, or the interpreter that runs it.
    Program(PathBuf),
    /// The module of the Python that runs it.
    PythonModule(PathBuf),
}

/// The copy that a command would use.
pub(crate) fn private_copy(program: &OsStr) -> Option<PrivateCopy> {
    let program = search::find(program).ok()?;
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
            search::find(OsStr::new(named)).ok()?
        }
        None => program,
    };
    if has_copy(&interpreter) {
        return Some(PrivateCopy::Program(interpreter));
    }
    let is_python = interpreter.file_name()?.to_str()?.starts_with("python");
    let prefix = interpreter
        .canonicalize()
        .ok()?
        .parent()?
        .parent()?
        .to_owned();
    let modules = is_python.then(|| python_modules(&prefix))?;
    let module = modules.into_iter().find(|module| has_copy(module));
    module.map(PrivateCopy::PythonModule)
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
    contains(&bytes, FUNCTION.to_bytes_with_nul()) && !contains(&bytes, b"libseccomp.so.2\0")
}
