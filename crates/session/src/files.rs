//! Reading inputs and the files that they include: all the I/O of the crate. Paths are [text](crate::path_text) here, but
//! for those that a policy has.
//!
//! A path in a policy is relative to the folder of the file that names it. Policies that are deployed elsewhere than
//! they are kept name absolute paths; folders of the caller (`--include-dir`) say where such files are looked for
//! instead, by their last name. Nothing is read beyond [`MAX_SOURCE_BYTES`], whatever a path leads to.
//!
//! A policy is not trusted with the files of whoever compiles it: what it includes must be a regular file in the
//! policy's folder or in a folder of the caller, links followed. The check is by path, so it doesn't hold against
//! someone who exchanges these folders meanwhile. What the caller names, the policy itself among it, can be anything.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tamis_diag::{Diagnostic, Sources, code, suggest};
use tamis_policy::limits::MAX_SOURCE_BYTES;
use tamis_policy::loader::{Loaded, Loader};

use crate::error::Error;
use crate::input::Input;
use crate::path_text::{PathText, path_of};

/// Why a file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// It has more than [`MAX_SOURCE_BYTES`].
    TooLarge,
    /// It is a folder, a device, a pipe or a socket.
    NotRegular,
    /// It is included, and in no folder from which the policy may include files.
    Outside,
    /// The system says why.
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

/// Reads what a path names; `-` is standard input, the name of an embedded policy is that policy. A file of
/// such a name is `./NAME`: what a folder holds must not change what a name means.
///
/// # Errors
/// If it can't be read, or is too large.
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
/// If it can't be read, or is too large.
pub fn read_file(path: &Path) -> Result<Input, ReadError> {
    let bytes = read_bounded(File::open(path).map_err(ReadError::Io)?)?;
    Ok(Input::new(path.text(), bytes))
}

/// The files that an argument names, and whether they are a stack: a list with commas, the oldest filter first, or the
/// `.bpf` files of a folder, whose names give the order.
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
    // A variable that was not set must not make a stack smaller.
    if paths.iter().any(String::is_empty) {
        return Err(Error::usage(
            format!("`{argument}` has an empty file name"),
            "a stack is a list such as `old.bpf,new.bpf`, the oldest filter first",
        ));
    }
    Ok((paths, true))
}

/// Reads the files that a policy includes, and remembers them.
#[derive(Clone, Debug, Default)]
pub struct FileLoader {
    /// Where files are looked for that are not where a policy says, and from where they may be included.
    pub folders: Vec<PathBuf>,
    /// What was read, as paths that lead to it.
    pub files: Vec<PathBuf>,
    /// The policy's folder; empty for the working directory.
    own_folder: PathBuf,
}

impl FileLoader {
    /// A loader that looks in these folders as well.
    pub fn new(folders: &[PathBuf]) -> FileLoader {
        FileLoader {
            folders: folders.to_vec(),
            ..FileLoader::default()
        }
    }

    /// The file where it is found, beside the file that includes it or, if it is missing there or may not be read, in
    /// one of the folders.
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

    /// Reads a regular file if it is in one of the folders.
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

/// A folder without links in its path.
fn real_folder(folder: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(Path::new(".").join(folder))
}

/// Opens a regular file. Anything else is refused before it is opened, since that alone can wait forever or have an
/// effect; and if it is exchanged at that moment, after it.
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

/// One file has one name, however often `./` stands in its path.
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
