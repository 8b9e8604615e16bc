//! Writing results: to standard output or to a file, completely or not at all.
//!
//! A file is written under a temporary name beside the target and renamed, so that nobody ever finds
//! half a filter. A closed pipe ends the program silently, as every Unix filter does.

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

/// Where a command's result goes.
#[derive(clap::Args, Debug)]
pub struct OutputArgs {
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = None)]
    pub output: Option<PathBuf>,
}

/// Where the report on a command goes that was run.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Write the report to this file, as a JSON document
    #[arg(short, long, value_name = "FILE", help_heading = None)]
    output: Option<PathBuf>,
}

impl ReportArgs {
    /// Whether there is a file to write.
    pub const fn is_given(&self) -> bool {
        self.output.is_some()
    }

    /// Fails if the file's folder doesn't exist: the command is run before it is written.
    pub fn check_folder(&self) -> Result<(), Failure> {
        let file = self.output.clone();
        OutputArgs { output: file }.check_folder()
    }

    /// Reports on a command, whose standard output is its own: to the file or else to standard error.
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
    /// To this file.
    pub const fn to(path: PathBuf) -> OutputArgs {
        OutputArgs { output: Some(path) }
    }

    /// The file to write; `None` for standard output, which is also called `-`.
    fn file(&self) -> Option<&Path> {
        self.output
            .as_deref()
            .filter(|path| *path != Path::new("-"))
    }

    /// Whether there is a file to write.
    pub const fn is_given(&self) -> bool {
        self.output.is_some()
    }

    /// Fails if the file's folder doesn't exist or it is a folder itself, for commands that do something before they write.
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

    /// Whether the result would be shown to a person.
    pub fn is_terminal(&self) -> bool {
        self.file().is_none() && io::stdout().is_terminal()
    }

    /// Refuses to replace the input by the result.
    pub fn refuse_to_replace(&self, input: &str) -> Result<(), Failure> {
        let mut file = self.file().into_iter();
        file.try_for_each(|file| refuse_to_replace(file, "-o", input))
    }

    /// The same of an argument that may name a stack: a list or a folder.
    pub fn refuse_to_replace_any(&self, input: &str) -> Result<(), Failure> {
        let mut file = self.file().into_iter();
        file.try_for_each(|file| refuse_to_replace_any(file, "-o", input))
    }

    /// Whether the result is written to a file and, with `--json`, the document about it to standard output.
    pub fn is_beside_document(&self, global: &Global) -> bool {
        global.json && self.file().is_some()
    }

    /// Refuses to write a form of the result other than the document to standard output, where the document goes.
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

    /// Refuses to replace a policy by a program, before it is made: who gives its name to `-o` means the input.
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

/// Refuses to replace an input by the file that this option names.
fn refuse_to_replace(file: &Path, option: &str, input: &str) -> Result<(), Failure> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    match real(file).is_some() && real(file) == real(&path_of(input)) {
        true => Err(Failure::usage(
            format!("the output would overwrite the input {input}"),
            format!("name another file with `{option}`"),
        )),
        false => Ok(()),
    }
}

/// The same of an argument that may name a stack: a list or a folder.
pub fn refuse_to_replace_any(file: &Path, option: &str, input: &str) -> Result<(), Failure> {
    let (paths, _) = files::stack_paths(input)?;
    let mut paths = paths.iter();
    paths.try_for_each(|path| refuse_to_replace(file, option, path))
}

/// Writes a file completely or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    budget::answered();
    replace_file(path, bytes, replace::FILE).map_err(|error| cannot_write(path, &error))
}

/// Writes a file that programs or services use: nobody else may write it.
pub fn write_installed(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    budget::answered();
    replace_file(path, bytes, replace::INSTALLED_FILE).map_err(|error| cannot_write(path, &error))
}

/// The same, in the place of what has its name: a link there is replaced, and the file that it leads to stays.
pub fn write_over_link(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path.is_symlink() {
        fs::remove_file(path).map_err(|error| cannot_write(path, &error))?;
    }
    write_installed(path, bytes)
}

/// Makes a symbolic link, in the place of what has its name.
pub fn write_link(path: &Path, target: &Path) -> Result<(), Failure> {
    replace_link(path, target).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write {}: {error}", path.text()))
}

/// How many characters a line of running text should have on standard output: as many as a terminal shows, up to a hundred.
pub fn width_chars() -> usize {
    const MOST: usize = 100;
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((width, _)) => usize::from(width.0).clamp(1, MOST),
        None => MOST,
    }
}

/// Fails if nobody gets what is written to standard output: the runtime has `/dev/null` in its place if it was closed.
pub fn check_stdout() -> io::Result<()> {
    match stdout_was_closed() {
        true => Err(io::Error::other("it is closed")),
        false => Ok(()),
    }
}

/// Writes to standard output; a reader that went away is not an error.
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

/// Prints a document, for programs or for people.
pub fn show(document: &(impl Document + Display), global: &Global) -> Result<(), Failure> {
    print(document_text(document, global)?.as_bytes())
}

/// Writes a result by the function. With `--json` the document, which has it, goes to standard output, and the result
/// is written only to a file.
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

/// A document as text, for programs or for people.
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

/// The warnings of the command, for its document.
static WARNINGS: Mutex<Kept> = Mutex::new(Kept {
    entries: Vec::new(),
    texts: Vec::new(),
});

/// Warnings that no document has had yet, for programs and for people.
struct Kept {
    entries: Vec<DiagnosticEntry>,
    texts: Vec<String>,
}

fn warnings() -> MutexGuard<'static, Kept> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps warnings for the command's document, unless it has them already.
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

/// The texts of warnings that were kept for a document, and there was none: some results have forms of their own, such as a
/// profile.
pub fn left_warnings() -> Vec<String> {
    std::mem::take(&mut warnings().texts)
}

/// A document for programs, with the warnings so far.
pub fn document_json(document: &impl Document) -> Result<String, Failure> {
    with_warnings(|warnings| tamis_report::json(document, warnings))
}

/// A profile as a document, with the warnings so far.
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
