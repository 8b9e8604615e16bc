//! Finding the shared library that replaces libseccomp.
//!
//! Cargo builds it beside the program. Packages install it under libseccomp's name in a folder below `lib/tamis`.

use std::env;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectKind, ObjectSymbol as _};
use tamis_kernel::search;
use tamis_scmp::Release;
use tamis_session::path_text::PathText;

use crate::cli::output::write_over_link;
use crate::cli::private::{is_one_path, state_folder};
use crate::cli::trust::{Span, weakness};
use crate::cli::{Failure, exit};

/// The file of the library. The name differs from libseccomp's, so that no program loads it by accident.
pub(crate) const FILE_NAME: &str = "libtamis_libseccomp.so";

/// The folder of the library and the Python module in packages, relative to the program's.
const INSTALLED: &str = "../lib/tamis/libseccomp";

/// The Python module with libseccomp's interface; it loads the library from its parent folder.
pub(crate) const PYTHON_MODULE: &str = include_str!("../../python/seccomp.py");

/// The path of the module, relative to the library's folder.
pub(crate) const PYTHON_MODULE_PATH: &str = "python3/seccomp.py";

/// The file of the library with the interface of libseccomp's main branch.
pub(crate) const NEXT_FILE_NAME: &str = "libtamis_libseccomp_next.so";

/// A function of that interface alone.
const NEXT_FUNCTION: &CStr = c"seccomp_notify_addfd";

/// The libseccomp release whose interface a library has.
pub(crate) fn release_of(library: &Path) -> Result<Release, Failure> {
    let bytes = fs::read(library).map_err(|error| failed(library, &error))?;
    Ok(match exports_function(&bytes, NEXT_FUNCTION) {
        true => Release::Next,
        false => Release::Reference,
    })
}

/// The given library, or the one of a release beside this program.
pub(crate) fn find(named: Option<&Path>, release: Release) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        return match path.is_file() {
            true => refuse_other(path).map(|()| path.to_owned()),
            false => Err(Failure::input(format!("{}: no such file", path.text()))),
        };
    }
    let program = env::current_exe().and_then(|path| path.canonicalize());
    let folder = program.as_deref().ok().and_then(Path::parent);
    // Packages contain the latest release only.
    let installed = Path::new(INSTALLED).join(soname());
    let installed = (release == Release::Reference).then_some(installed);
    let (file_name, package) = match release {
        Release::Reference => (FILE_NAME, "tamis-libseccomp"),
        Release::Next => (NEXT_FILE_NAME, "tamis-libseccomp-next"),
    };
    let built = ["", "deps"].map(|below| Path::new(below).join(file_name));
    let places = built.into_iter().chain(installed);
    let mut places = places.filter_map(|place| Some(folder?.join(place)));
    let Some(found) = places.find(|place| place.is_file()) else {
        return Err(Failure::usage(
            format!("{file_name} is not beside this program"),
            format!(
                "build it with `cargo build --release -p {package}`, or name it with --library FILE"
            ),
        ));
    };
    // In a shared folder another user could have placed the file.
    match weakness(&found, Span::Now).map_err(|error| failed(&found, &error))? {
        None => Ok(found),
        Some(why) => Err(weak(&found, &why)),
    }
}

/// Rejects a file that isn't tamis's library: one without libseccomp's functions, or libseccomp itself.
fn refuse_other(library: &Path) -> Result<(), Failure> {
    // Only tamis's library reads this variable.
    const VARIABLE: &[u8] = b"TAMIS_EXPLAIN";
    let bytes = fs::read(library).map_err(|error| failed(library, &error))?;
    let what = match (
        exports_function(&bytes, FUNCTION),
        contains(&bytes, VARIABLE),
    ) {
        (true, true) => return Ok(()),
        (true, false) => "libseccomp itself, and not tamis's library in its place",
        (false, _) => "no library with libseccomp's functions",
    };
    Err(Failure::usage(
        format!("{} is {what}", library.text()),
        format!("the library is called {FILE_NAME}"),
    ))
}

/// Whether a file is a shared library that contains a function's name. Executables contain it as well.
fn exports_function(bytes: &[u8], function: &CStr) -> bool {
    let Ok(file) = object::File::parse(bytes) else {
        return false;
    };
    let is_function = |symbol: object::Symbol<'_, '_>| {
        symbol.is_definition() && symbol.name_bytes() == Ok(function.to_bytes())
    };
    file.kind() == ObjectKind::Dynamic && file.dynamic_symbols().any(is_function)
}

/// A function of libseccomp. Its name with the terminating zero is in every file that defines or imports it.
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

/// A folder in which the dynamic linker finds the library under libseccomp's name.
///
/// The path stays in the environment of processes that outlive the command, so the folder is never removed, and only
/// this user and root can write there. Packages have such a folder; for another library it is created in the state
/// folder, with a copy.
#[derive(Debug)]
pub(crate) struct LinkerFolder {
    path: PathBuf,
    has_python_module: bool,
}

impl LinkerFolder {
    /// The folder for a library.
    ///
    /// # Errors
    /// If another user can write the library, or the folder can't be created.
    pub(crate) fn new(library: &Path) -> Result<LinkerFolder, Failure> {
        let cannot = |error| failed(library, &error);
        let library = library.canonicalize().map_err(cannot)?;
        let own = |path| LinkerFolder {
            path,
            has_python_module: false,
        };
        if library.file_name().is_some_and(|name| *name == *soname())
            && let Some(folder) = library.parent()
            && is_one_path(folder)
            && weakness(&library, Span::Lasting).map_err(cannot)?.is_none()
        {
            return Ok(own(folder.to_owned()));
        }
        if let Some(why) = weakness(&library, Span::Now).map_err(cannot)? {
            return Err(weak(&library, &why));
        }
        let bytes = fs::read(&library).map_err(cannot)?;
        let folder = state_folder(&format!("libseccomp/{:016x}", key(&library)))?;
        keep(&folder.join(soname()), &bytes)?;
        let module = folder.join(PYTHON_MODULE_PATH);
        if let Some(folder) = module.parent().filter(|folder| !folder.is_dir()) {
            let made = DirBuilder::new().mode(0o700).recursive(true).create(folder);
            made.map_err(|error| failed(folder, &error))?;
        }
        keep(&module, PYTHON_MODULE.as_bytes())?;
        Ok(own(folder))
    }

    /// Also makes the Python module available to the command.
    pub(crate) const fn add_python_module(&mut self) {
        self.has_python_module = true;
    }

    /// The command, run by `env` with the folder first in `LD_LIBRARY_PATH` and, if added, the Python module's first in
    /// `PYTHONPATH`.
    pub(crate) fn around(&self, command: &[OsString]) -> Vec<OsString> {
        let mut around = vec!["env".into(), before("LD_LIBRARY_PATH", &self.path)];
        let module = self.path.join(PYTHON_MODULE_PATH);
        if let Some(modules) = module.parent().filter(|_| self.has_python_module) {
            around.push(before("PYTHONPATH", modules));
        }
        around.extend_from_slice(command);
        around
    }
}

/// libseccomp's name in the dynamic section of programs.
fn soname() -> String {
    format!("libseccomp.so.{}", Release::default().version()[0])
}

/// A hash of a path: two libraries of one user have two folders. It is FNV-1a.
fn key(path: &Path) -> u64 {
    // The published constants of FNV-1a.
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Writes a file, unless it has this content: other commands may be using it.
fn keep(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    match fs::read(path).is_ok_and(|there| there == bytes) {
        true => Ok(()),
        false => write_over_link(path, bytes),
    }
}

/// The failure for a file that another user can change.
pub(crate) fn weak(path: &Path, why: &str) -> Failure {
    let message = format!("{} is not safe to use: {why}", path.text());
    let help = "install tamis where only this user and root can write, or change owner and mode";
    Failure::new(exit::ENVIRONMENT, message, Some(help.to_owned()))
}

/// A variable's value with a folder before the existing ones.
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

/// The failure to access a file.
pub(crate) fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("{}: {error}", path.text()))
}

/// A file with its own copy of libseccomp, which takes precedence over the library.
#[derive(Debug)]
pub(crate) enum PrivateCopy {
    /// The program or its interpreter.
    Program(PathBuf),
    /// A Python module.
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

/// Whether a file defines libseccomp's functions instead of importing them.
fn has_copy(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    contains(&bytes, FUNCTION.to_bytes_with_nul()) && !contains(&bytes, b"libseccomp.so.2\0")
}
