//! Reading inputs and the files that they include: all the I/O of the crate. Paths are represented as
//! [text](crate::path_text), except paths in policies.
//!
//! A path in a policy is relative to the folder of the file that contains it. Policies that are kept elsewhere than
//! they are deployed contain absolute paths; such files are searched by their last name in the caller's folders
//! (`--include-dir`). No file is read beyond [`MAX_SOURCE_BYTES`].
//!
//! An untrusted policy must not read arbitrary files of its compiler's user: an included file must be a regular file in
//! the policy's folder or in a folder of the caller, after links are followed. The check is by path, so it doesn't
//! protect against concurrent replacement of these folders. Files named by the caller, including the policy, are not
//! restricted.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tamis_diag::{Diagnostic, Sources, suggest};
use tamis_policy::limits::MAX_SOURCE_BYTES;
use tamis_policy::loader::{Loaded, Loader};

use crate::code;
use crate::error::Error;
use crate::input::Input;
use crate::path_text::{PathText, path_of};

/// The reason why a file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The file has more than [`MAX_SOURCE_BYTES`].
    TooLarge,
    /// The path is a folder, a device, a pipe or a socket.
    NotRegular,
    /// The included file is outside the permitted folders.
    Outside,
    /// The operating system's error.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::TooLarge => write!(f, "it has more than {MAX_SOURCE_BYTES} bytes"),
            ReadError::NotRegular => f.write_str("it is not a regular file"),
            ReadError::Outside => f.write_str(
                "it is outside of the policy's folder and of those that `--include-dir` names",
            ),
            ReadError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

/// Whether standard input was read: a second reader would find it empty.
static STDIN_IS_READ: AtomicBool = AtomicBool::new(false);

/// Reads a path, standard input (`-`) or an embedded policy by its name. A file with the name of an embedded policy is
/// `./NAME`, so the content of the working directory can't change the meaning of a name.
///
/// # Errors
/// If the input can't be read or is too large.
pub fn read(path: &str) -> Result<Input, Error> {
    if let Some(input) = Input::embedded(path) {
        return Ok(input);
    }
    let read = match path {
        "-" if STDIN_IS_READ.swap(true, Ordering::Relaxed) => {
            return Err(Error::usage(
                "standard input is named twice",
                "it can be read once: write one of the inputs to a file",
            ));
        }
        "-" => read_bounded(io::stdin().lock()).map(|bytes| Input::new("<stdin>", bytes)),
        _ => read_file(&path_of(path)),
    };
    read.map_err(|error| match error {
        ReadError::TooLarge => too_large(path),
        ReadError::Io(error) => unreadable(path, &error),
        error => Error::input(format!("cannot read {path}: {error}")),
    })
}

/// Reads a file.
///
/// # Errors
/// If the file can't be read or is too large.
pub fn read_file(path: &Path) -> Result<Input, ReadError> {
    let bytes = read_bounded(File::open(path).map_err(ReadError::Io)?)?;
    Ok(Input::new(path.text(), bytes))
}

/// The files that an argument names, and whether they form a stack: a comma-separated list, the oldest filter first, or
/// the `.bpf` files of a folder in the order of their names.
///
/// # Errors
/// If the folder can't be read or has no such file, or a name of the list is empty.
pub fn stack_paths(argument: &str) -> Result<(Vec<String>, bool), Error> {
    let path = path_of(argument);
    if path.is_dir() {
        return Ok((programs_in(&path)?, true));
    }
    if !argument.contains(',') || path.exists() {
        return Ok((vec![argument.to_owned()], false));
    }
    let paths = argument.split(',').map(|path| path.trim().to_owned());
    let paths: Vec<String> = paths.collect();
    // An unset shell variable must not remove a filter from the stack.
    if paths.iter().any(String::is_empty) {
        return Err(Error::usage(
            format!("`{argument}` has an empty file name"),
            "a stack is a list such as `old.bpf,new.bpf`, the oldest filter first",
        ));
    }
    Ok((paths, true))
}

/// Reads the files that a policy includes, and records their paths.
#[derive(Clone, Debug, Default)]
pub struct FileLoader {
    /// Additional folders of included files.
    pub folders: Vec<PathBuf>,
    /// The files that were read, as accessible paths.
    pub files: Vec<PathBuf>,
    /// The policy's folder; empty for the working directory.
    own_folder: PathBuf,
}

impl FileLoader {
    /// A loader with these additional folders.
    pub fn new(folders: &[PathBuf]) -> FileLoader {
        FileLoader {
            folders: folders.to_vec(),
            ..FileLoader::default()
        }
    }

    /// Finds the file beside the including file or, if it is missing or not permitted there, in one of the folders.
    fn find(&self, path: &Path, from: &Path) -> Result<(PathBuf, Input), ReadError> {
        let beside = without_dots(&folder_of(from).join(path));
        let error = match self.read_permitted(&beside) {
            Ok(input) => return Ok((beside, input)),
            Err(error) => error,
        };
        let is_elsewhere = match &error {
            ReadError::Io(error) => error.kind() == ErrorKind::NotFound,
            error => matches!(error, ReadError::Outside),
        };
        for folder in self.folders.iter().filter(|_| is_elsewhere) {
            let Some(last) = path.file_name() else { break };
            let elsewhere = without_dots(&folder.join(last));
            if let Ok(input) = self.read_permitted(&elsewhere) {
                return Ok((elsewhere, input));
            }
        }
        Err(error)
    }

    /// Reads a regular file in a permitted folder.
    fn read_permitted(&self, path: &Path) -> Result<Input, ReadError> {
        let real = fs::canonicalize(path).map_err(ReadError::Io)?;
        let folders = std::iter::once(&self.own_folder).chain(&self.folders);
        let mut real_folders = folders.filter_map(|folder| real_folder(folder).ok());
        if !real_folders.any(|folder| real.starts_with(folder)) {
            return Err(ReadError::Outside);
        }
        let bytes = read_bounded(open_regular(&real)?)?;
        Ok(Input::new(path.text(), bytes))
    }

    fn loaded(&mut self, path: PathBuf, input: Input) -> Result<Loaded, String> {
        let text = String::from_utf8(input.bytes).map_err(|error| error.to_string())?;
        self.files.push(path);
        Ok(Loaded {
            name: input.name,
            text,
        })
    }
}

impl Loader for FileLoader {
    fn begin(&mut self, root: &str) {
        self.own_folder = folder_of(&path_of(root)).to_owned();
    }

    fn load(&mut self, path: &str, from: &str) -> Result<Loaded, String> {
        let found = self.find(Path::new(path), &path_of(from));
        let (path, input) = found.map_err(|error| error.to_string())?;
        self.loaded(path, input)
    }

    fn load_given(&mut self, path: &str) -> Result<Loaded, String> {
        let path = without_dots(&path_of(path));
        let input = read_file(&path).map_err(|error| error.to_string())?;
        self.loaded(path, input)
    }
}

/// The folder of a file; empty for the working directory.
fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// The canonical path of a folder, without links.
fn real_folder(folder: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(Path::new(".").join(folder))
}

/// Opens a regular file. The type is checked before opening, because opening a device or pipe may block or have
/// effects, and again after it in case of a concurrent replacement.
fn open_regular(path: &Path) -> Result<File, ReadError> {
    let refuse = |metadata: fs::Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(ReadError::NotRegular),
    };
    fs::metadata(path).map_err(ReadError::Io).and_then(refuse)?;
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(ReadError::Io)?;
    file.metadata().map_err(ReadError::Io).and_then(refuse)?;
    Ok(file)
}

/// Removes `./`, so that each file has one path.
fn without_dots(path: &Path) -> PathBuf {
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}

fn read_bounded(reader: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let mut bounded = reader.take(MAX_SOURCE_BYTES as u64 + 1);
    bounded.read_to_end(&mut bytes).map_err(ReadError::Io)?;
    if bytes.len() > MAX_SOURCE_BYTES {
        Err(ReadError::TooLarge)
    } else {
        Ok(bytes)
    }
}

fn unreadable(path: &str, error: &io::Error) -> Error {
    if path.is_empty() {
        let message = "the name of an input is empty";
        return Error::usage(message, "is a variable of a script not set?");
    }
    let message = format!("cannot read {path}: {error}");
    let embedded = tamis_policy::embedded::ALL.map(|policy| policy.name);
    match suggest::nearest(path, embedded) {
        Some(name) if error.kind() == ErrorKind::NotFound => Error::usage(
            message,
            format!("did you mean the embedded policy `{name}`?"),
        ),
        _ => Error::input(message),
    }
}

fn too_large(path: &str) -> Error {
    let message = format!("{path} has more than {MAX_SOURCE_BYTES} bytes");
    let diagnostic =
        Diagnostic::error(code::FILE_TOO_LARGE, message).help("check the path: policies are small");
    Error::diagnostic(diagnostic, Sources::new())
}

/// The raw programs in a folder, by name.
fn programs_in(folder: &Path) -> Result<Vec<String>, Error> {
    let cannot_read = |error| Error::input(format!("cannot read {}: {error}", folder.text()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        if path.extension().is_some_and(|extension| extension == "bpf") {
            paths.push(path.text());
        }
    }
    if paths.is_empty() {
        return Err(Error::usage(
            format!("{} has no .bpf files", folder.text()),
            "a directory is the stack of the programs in it, ordered by name, the oldest first",
        ));
    }
    paths.sort();
    Ok(paths)
}
