//! Results on standard output or in a file.
//!
//! A file is written under a temporary name beside the target and renamed, so that it is never incomplete. A closed
//! pipe ends the program silently, as usual on Unix.

use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tamis_diag::escape::harmless;
use tamis_diag::render::render;
use tamis_diag::{Diagnostic, Sources};
use tamis_kernel::execute::stdout_was_closed;
use tamis_profile::Profile;
use tamis_report::Document;
use tamis_report::diagnostics::{DiagnosticEntry, DiagnosticsReport};
use tamis_session::files;
use tamis_session::path_text::{PathText, path_of};

use super::failure::Failure;
use super::replace::{self, replace_file, replace_link};
use super::{Global, budget, is_new, message_as_is};

/// The destination of a command's result.
#[derive(clap::Args, Debug)]
pub struct OutputArgs {
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = None)]
    pub output: Option<PathBuf>,
}

/// The destination of the report on an executed command.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Write the report to this file, as a JSON document
    #[arg(short, long, value_name = "FILE", help_heading = None)]
    output: Option<PathBuf>,
}

impl ReportArgs {
    /// Whether a file is named.
    pub const fn is_given(&self) -> bool {
        self.output.is_some()
    }

    /// Fails if the folder doesn't exist: the command would run before the report is written.
    pub fn check_folder(&self) -> Result<(), Failure> {
        let file = self.output.clone();
        OutputArgs { output: file }.check_folder()
    }

    /// The file, opened for writing, or standard error.
    ///
    /// # Errors
    /// If the file can't be created.
    pub fn writer(&self) -> Result<Box<dyn Write + Send>, Failure> {
        let Some(path) = self.output.as_deref() else {
            return Ok(Box::new(io::stderr()));
        };
        match fs::File::create(path) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(Failure::environment(format!(
                "cannot write to {}: {error}",
                path.text()
            ))),
        }
    }

    /// Writes the report to the file or to standard error, because standard output belongs to the executed command.
    pub fn show(&self, report: &(impl Document + Display), global: &Global) -> Result<(), Failure> {
        match &self.output {
            Some(file) => OutputArgs::to(file.clone()).text(&document_json(report)?),
            None => {
                message_as_is(document_text(report, global)?.trim_end());
                Ok(())
            }
        }
    }
}

impl OutputArgs {
    /// The options for this file.
    pub const fn to(path: PathBuf) -> OutputArgs {
        OutputArgs { output: Some(path) }
    }

    /// The file; `None` for standard output, also called `-`.
    fn file(&self) -> Option<&Path> {
        self.output
            .as_deref()
            .filter(|path| *path != Path::new("-"))
    }

    /// Whether a file is named.
    pub const fn is_given(&self) -> bool {
        self.output.is_some()
    }

    /// Fails if the file is a folder or its folder doesn't exist, for commands that act before they write.
    pub fn check_folder(&self) -> Result<(), Failure> {
        if let Some(path) = self.file().filter(|path| path.is_dir()) {
            let message = format!("cannot write to {}: it is a folder", path.text());
            return Err(Failure::environment(message));
        }
        let folder = self.file().and_then(Path::parent);
        match folder.filter(|folder| *folder != Path::new("") && !folder.is_dir()) {
            Some(folder) => Err(Failure::environment(format!(
                "cannot write to {}: it is no folder",
                folder.text()
            ))),
            None => Ok(()),
        }
    }

    /// Whether the result goes to a terminal.
    pub fn is_terminal(&self) -> bool {
        self.file().is_none() && io::stdout().is_terminal()
    }

    /// Rejects the input as the file for the result.
    pub fn refuse_to_replace(&self, input: &str) -> Result<(), Failure> {
        let mut file = self.file().into_iter();
        file.try_for_each(|file| refuse_to_replace(file, "-o", input))
    }

    /// Rejects an input that may be a stack: a list or a folder.
    pub fn refuse_to_replace_any(&self, input: &str) -> Result<(), Failure> {
        let mut file = self.file().into_iter();
        file.try_for_each(|file| refuse_to_replace_any(file, "-o", input))
    }

    /// Whether the result is written to a file and, with `--json`, the document to standard output.
    pub fn is_beside_document(&self, global: &Global) -> bool {
        global.json && self.file().is_some()
    }

    /// Rejects a result on standard output that is not the document.
    pub fn refuse_beside_document(&self, global: &Global) -> Result<(), Failure> {
        match global.json && self.file().is_none() {
            true => Err(Failure::usage(
                "with `--json` the document goes to standard output, and nothing else does",
                "write the other form to a file with `-o FILE`, or leave `--json` out",
            )),
            false => Ok(()),
        }
    }

    /// Writes text.
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        self.write(text.as_bytes())
    }

    /// Writes raw bytes, but never to a terminal.
    pub fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.refuse_terminal()?;
        self.write(bytes)
    }

    /// Rejects the name of a policy as the file for a program: the user probably meant it as the input.
    pub fn refuse_to_replace_policy(&self) -> Result<(), Failure> {
        let Some(path) = self.file().filter(|path| path.is_file()) else {
            return Ok(());
        };
        let there = files::read_file(path).ok();
        match there.and_then(|there| there.policy_language()) {
            Some(language) => Err(Failure::usage(
                format!(
                    "the output would overwrite {}, {}",
                    path.text(),
                    language.title
                ),
                format!(
                    "`tamis compile {}` compiles it; `-o` names the output",
                    path.text()
                ),
            )),
            None => Ok(()),
        }
    }

    /// Refuses to write raw bytes to a terminal.
    pub fn refuse_terminal(&self) -> Result<(), Failure> {
        if self.is_terminal() {
            return Err(Failure::usage(
                "refusing to write a raw program to a terminal",
                "pipe the output or redirect it to a file; `tamis bpf disasm` shows it as text",
            ));
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self.file() {
            Some(path) => write_file(path, bytes),
            None => print(bytes),
        }
    }
}

/// Rejects an input as the file of this option.
///
/// # Errors
/// If they are the same file.
pub fn refuse_to_replace(file: &Path, option: &str, input: &str) -> Result<(), Failure> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    match real(file).is_some() && real(file) == real(&path_of(input)) {
        true => Err(Failure::usage(
            format!("the output would overwrite the input {input}"),
            format!("name another file with `{option}`"),
        )),
        false => Ok(()),
    }
}

/// Rejects an input that may be a stack: a list or a folder.
pub fn refuse_to_replace_any(file: &Path, option: &str, input: &str) -> Result<(), Failure> {
    let (paths, _) = files::stack_paths(input)?;
    let mut paths = paths.iter();
    paths.try_for_each(|path| refuse_to_replace(file, option, path))
}

/// Writes a file atomically.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    budget::answered();
    replace_file(path, bytes, replace::FILE).map_err(|error| cannot_write(path, &error))
}

/// Writes a file for programs or services, which only its owner can write.
pub fn write_installed(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    budget::answered();
    replace_file(path, bytes, replace::INSTALLED_FILE).map_err(|error| cannot_write(path, &error))
}

/// Writes such a file in place of a link instead of following it.
pub fn write_over_link(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path.is_symlink() {
        fs::remove_file(path).map_err(|error| cannot_write(path, &error))?;
    }
    write_installed(path, bytes)
}

/// Makes a symbolic link, replacing a file of that name.
pub fn write_link(path: &Path, target: &Path) -> Result<(), Failure> {
    replace_link(path, target).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write {}: {error}", path.text()))
}

/// The width of running text on standard output: that of the terminal, up to 100 characters.
pub fn width_chars() -> usize {
    const MOST: usize = 100;
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((width, _)) => usize::from(width.0).clamp(1, MOST),
        None => MOST,
    }
}

/// Fails if standard output was closed: the runtime then opens `/dev/null` in its place.
pub fn check_stdout() -> io::Result<()> {
    match stdout_was_closed() {
        true => Err(io::Error::other("it is closed")),
        false => Ok(()),
    }
}

/// Writes to standard output; a closed pipe is not an error.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    budget::answered();
    if bytes.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    let written = check_stdout().and_then(|()| stdout.write_all(bytes));
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::environment(format!(
            "cannot write to standard output: {error}"
        ))),
        Ok(()) => Ok(()),
    }
}

/// Prints a report as a document or as text.
pub fn show(document: &(impl Document + Display), global: &Global) -> Result<(), Failure> {
    print(document_text(document, global)?.as_bytes())
}

/// Writes the result by the function. With `--json` the document contains the result and goes to standard output, and
/// the result is written only to a file.
pub fn show_beside(
    output: &OutputArgs,
    write: impl FnOnce(&OutputArgs) -> Result<(), Failure>,
    document: &impl Document,
    global: &Global,
) -> Result<(), Failure> {
    if !global.json || output.is_beside_document(global) {
        write(output)?;
    }
    match global.json {
        true => print(document_json(document)?.as_bytes()),
        false => Ok(()),
    }
}

/// A report as a document or as text.
pub fn document_text(
    document: &(impl Document + Display),
    global: &Global,
) -> Result<String, Failure> {
    let _stage = budget::stage("writing the result");
    match global.json {
        true => document_json(document),
        false => Ok(harmless(&document.to_string()).into_owned()),
    }
}

/// The warnings for the command's document.
static WARNINGS: Mutex<PendingWarnings> = Mutex::new(PendingWarnings {
    entries: Vec::new(),
    texts: Vec::new(),
});

/// Warnings that no document contains yet, as entries and as text.
struct PendingWarnings {
    entries: Vec<DiagnosticEntry>,
    texts: Vec<String>,
}

fn warnings() -> MutexGuard<'static, PendingWarnings> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds warnings to the command's document, without duplicates.
pub(super) fn keep_warnings(warnings: &[Diagnostic], sources: &Sources) {
    let text = render(warnings, sources, false);
    if !is_new(warnings, &text) {
        return;
    }
    let mut kept = self::warnings();
    kept.texts.push(text);
    let report = DiagnosticsReport::from_diagnostics(warnings, sources);
    kept.entries.extend(report.diagnostics);
}

/// The warnings that no document contained, because the result has a format of its own, such as a profile.
pub fn left_warnings() -> Vec<String> {
    std::mem::take(&mut warnings().texts)
}

/// A report as a document, with the warnings.
pub fn document_json(document: &impl Document) -> Result<String, Failure> {
    with_warnings(|warnings| tamis_report::json(document, warnings))
}

/// A profile as a document, with the warnings.
pub fn profile_json(profile: &Profile) -> Result<String, Failure> {
    with_warnings(|warnings| tamis_report::profile::json(profile, warnings))
}

fn with_warnings(
    text: impl FnOnce(&[DiagnosticEntry]) -> serde_json::Result<String>,
) -> Result<String, Failure> {
    let mut kept = warnings();
    kept.texts.clear();
    text(&kept.entries).map_err(|error| Failure::environment(format!("cannot write JSON: {error}")))
}
