//! Writing results: to standard output or to a file, completely or not at all.
//!
//! A file is written under a temporary name beside the target and renamed, so that nobody ever finds
//! half a filter. A closed pipe ends the program silently, as every Unix filter does.

use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// Where a command's result goes.
#[derive(clap::Args, Debug)]
pub(crate) struct OutputArgs {
    /// Write the result to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether the result would be shown to a person.
    pub(crate) fn is_terminal(&self) -> bool {
        self.output.is_none() && io::stdout().is_terminal()
    }

    /// Writes text.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        self.write(text.as_bytes())
    }

    /// Writes raw bytes, but never to a terminal.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_terminal() {
            return Err(Failure::usage(
                "refusing to write a raw program to a terminal",
                "name a file with `-o FILE`, pipe the output, or choose `--emit asm`",
            ));
        }
        self.write(bytes)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match &self.output {
            Some(path) => replace_file(path, bytes).map_err(|error| {
                Failure::environment(format!("cannot write {}: {error}", path.display()))
            }),
            None => print(bytes),
        }
    }
}

/// Writes to standard output; a reader that went away is not an error.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::environment(format!(
            "cannot write to standard output: {error}"
        ))),
        Ok(()) => Ok(()),
    }
}

/// Writes a document for programs: pretty JSON with a final newline.
pub(crate) fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    print(json(document)?.as_bytes())
}

/// A document for programs as text.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::environment(format!("cannot write JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

/// Replaces a file by one with this content; on failure the old one stays as it was. What isn't a
/// regular file (a device, a pipe, `/dev/stdout`) is written to directly.
fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, bytes);
    }
    // The file behind a symbolic link is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut temporary_name = path.file_name().unwrap_or_default().to_owned();
    temporary_name.push(format!(".tamis-{}", std::process::id()));
    let temporary = path.with_file_name(temporary_name);
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        // The write's own error is the one to report; a leftover is the lesser evil.
        let _ = fs::remove_file(&temporary);
    }
    written
}
