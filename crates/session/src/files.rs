//! Reading inputs and the files that they include: all the I/O of the crate.
//!
//! A path in a policy is relative to the folder of the file that names it. Policies that are deployed elsewhere than
//! they are kept name absolute paths; folders of the caller (`--include-dir`) say where such files are looked for
//! instead, by their last name. Nothing is read beyond [`MAX_SOURCE_BYTES`], whatever a path leads to.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use tamis_diag::{Diagnostic, Sources, code, suggest};
use tamis_policy::limits::MAX_SOURCE_BYTES;
use tamis_policy::loader::{Loaded, Loader};

use crate::error::Error;
use crate::input::{Input, without_byte_order_mark};

/// Why a file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// It has more than [`MAX_SOURCE_BYTES`].
    TooLarge,
    /// The system says why.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::TooLarge => write!(f, "it has more than {MAX_SOURCE_BYTES} bytes"),
            ReadError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

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
        "-" => read_bounded(io::stdin().lock()).map(|bytes| Input::new("<stdin>", bytes)),
        _ => read_file(Path::new(path)),
    };
    read.map_err(|error| match error {
        ReadError::TooLarge => too_large(path),
        ReadError::Io(error) => unreadable(path, &error),
    })
}

/// Reads a file.
///
/// # Errors
/// If it can't be read, or is too large.
pub fn read_file(path: &Path) -> Result<Input, ReadError> {
    let bytes = read_bounded(File::open(path).map_err(ReadError::Io)?)?;
    Ok(Input::new(path.display().to_string(), bytes))
}

/// The files that an argument names, and whether they are a stack: a list with commas, the oldest filter first, or the
/// `.bpf` files of a folder, whose names give the order.
///
/// # Errors
/// If the folder can't be read or has no such file, or a name of the list is empty.
pub fn stack_paths(argument: &str) -> Result<(Vec<String>, bool), Error> {
    let path = Path::new(argument);
    if path.is_dir() {
        return Ok((programs_in(path)?, true));
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
    /// Where files are looked for that are not where a policy says.
    pub folders: Vec<PathBuf>,
    /// What was read, as paths that lead to it.
    pub files: Vec<PathBuf>,
}

impl FileLoader {
    /// A loader that looks in these folders as well.
    pub fn new(folders: &[PathBuf]) -> FileLoader {
        FileLoader {
            folders: folders.to_vec(),
            files: Vec::new(),
        }
    }
}

impl FileLoader {
    /// The file where it is found, beside the file that includes it or, if it is missing there, in one of the folders.
    fn find(&self, path: &Path, from: &Path) -> Result<(PathBuf, Input), ReadError> {
        let folder = from.parent().unwrap_or(Path::new(""));
        let beside = without_dots(&folder.join(path));
        let error = match read_file(&beside) {
            Ok(input) => return Ok((beside, input)),
            Err(error) => error,
        };
        let is_missing =
            matches!(&error, ReadError::Io(error) if error.kind() == ErrorKind::NotFound);
        for folder in self.folders.iter().filter(|_| is_missing) {
            let Some(last) = path.file_name() else { break };
            let elsewhere = without_dots(&folder.join(last));
            if let Ok(input) = read_file(&elsewhere) {
                return Ok((elsewhere, input));
            }
        }
        Err(error)
    }
}

impl Loader for FileLoader {
    fn load(&mut self, path: &str, from: &str) -> Result<Loaded, String> {
        let found = self.find(Path::new(path), Path::new(from));
        let (path, input) = found.map_err(|error| error.to_string())?;
        let text = String::from_utf8(input.bytes).map_err(|error| error.to_string())?;
        self.files.push(path);
        Ok(Loaded {
            name: input.name,
            text: without_byte_order_mark(&text).to_owned(),
        })
    }
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
    let cannot_read = |error| Error::input(format!("cannot read {}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        if path.extension().is_some_and(|extension| extension == "bpf") {
            paths.push(path.display().to_string());
        }
    }
    if paths.is_empty() {
        return Err(Error::usage(
            format!("{} has no .bpf files", folder.display()),
            "a directory is the stack of the programs in it, ordered by name, the oldest first",
        ));
    }
    paths.sort();
    Ok(paths)
}
