//! Errors for inputs that are neither a policy nor a program.
//!
//! Any file can be given as a policy by mistake. A parser of a guessed language would report an error for each line,
//! and none would name the mistake. Some files are recognised by their first bytes; others resemble no supported
//! language. An input that may be a policy with mistakes still gets the errors of its parser.

use tamis_abi::Arch;
use tamis_bpf::{InvalidProgram, Reason};
use tamis_diag::escape::on_one_line;
use tamis_diag::words::joined;
use tamis_diag::{Diagnostic, SourceId, Sources};
use tamis_policy::{front_end, tamis};

use crate::code;
use crate::error::Error;
use crate::input::Input;
use crate::kind::InputKind;

/// The first bytes of files that tamis doesn't read.
const BEGINNINGS: [(&[u8], &str); 11] = [
    (b"\x7fELF", "an executable or a library (ELF)"),
    (b"\x1f\x8b", "a file compressed by gzip"),
    (b"\xfd7zXZ", "a file compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets"),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets"),
    (b"<", "XML or HTML"),
    (b"%PDF", "a PDF document"),
];

/// The error for a text that was rejected by its parser and that tamis doesn't support. `is_guess` means that neither
/// the name nor the content of the file determined the kind.
pub(crate) fn text_refusal(
    source: SourceId,
    sources: &Sources,
    is_guess: bool,
    arch: Arch,
) -> Option<Error> {
    let text = sources.get(source).text.trim_start();
    let name = sources.name(source);
    if let Some(what) = by_beginning(text.as_bytes(), &BEGINNINGS) {
        return Some(refusal(name, Some(what)));
    }
    if is_script(text) && front_end::of_file(name, text).is_none() {
        return Some(refusal(name, Some("a script")));
    }
    // Profiles of tamis share the extension of container profiles.
    let may_be_profile = is_guess || text.contains("\"tamis-profile/");
    if may_be_profile && is_profile(source, sources, arch) {
        let what = "a profile of calls, which `--counts` and `tamis learn` take";
        return Some(refusal(name, Some(what)));
    }
    if !is_guess {
        return None;
    }
    if text.starts_with(['{', '[']) {
        return Some(refusal(name, Some("JSON of another kind")));
    }
    (!tamis::is_conceivable(text)).then(|| refusal(name, None))
}

/// The error for a binary file without the name of a program.
pub(crate) fn binary_refusal(input: &Input, invalid: Option<&InvalidProgram>) -> Option<Error> {
    if let Some(what) = by_beginning(&input.bytes, &BEGINNINGS) {
        return Some(refusal(&input.name, Some(what)));
    }
    // An invalid program can fail anywhere; a file without a single valid instruction isn't a program.
    let is_none = |invalid: &&InvalidProgram| {
        invalid.pc.0 == 0 && matches!(invalid.reason, Reason::IllegalCode(_))
    };
    invalid
        .filter(is_none)
        .map(|_| refusal(&input.name, Some("binary data other than a filter")))
}

/// The error for a binary file in place of a profile.
#[cfg(feature = "languages")]
pub(crate) fn profile_refusal(input: &Input) -> Error {
    let what = by_beginning(&input.bytes, &BEGINNINGS).unwrap_or("binary data");
    let name = on_one_line(&input.name);
    let message = format!("{name} has no counts of system calls: it looks like {what}");
    let diagnostic = Diagnostic::error(code::PROFILE_KIND, message).help(
        "`tamis record -o FILE -- PROGRAM` counts a program's calls, and so does `strace -c -f -o FILE PROGRAM`",
    );
    Error::diagnostic(diagnostic, Sources::new())
}

/// The description of the entry of `table` that the bytes begin with.
fn by_beginning(bytes: &[u8], table: &[(&[u8], &'static str)]) -> Option<&'static str> {
    let mut entries = table.iter();
    let entry = entries.find(|(start, _)| bytes.starts_with(start));
    entry.map(|(_, what)| *what)
}

/// Whether the first line of a text names an interpreter other than tamis.
fn is_script(text: &str) -> bool {
    let line = text.lines().next().unwrap_or("");
    line.starts_with("#!") && !line.contains("tamis")
}

/// Whether a text parses as a profile with calls.
#[cfg(feature = "languages")]
fn is_profile(source: SourceId, sources: &Sources, arch: Arch) -> bool {
    let profile = tamis_profile::read(sources, source, arch).profile;
    profile.is_some_and(|profile| profile.calls().next().is_some())
}

/// Without readers of profiles no text is one.
#[cfg(not(feature = "languages"))]
fn is_profile(_: SourceId, _: &Sources, _: Arch) -> bool {
    false
}

fn refusal(name: &str, what: Option<&str>) -> Error {
    let looks = what.map_or_else(String::new, |what| format!(": it looks like {what}"));
    let names = |is_program: bool| {
        let kinds = InputKind::all().filter(|kind| kind.is_program() == is_program);
        joined(&kinds.map(InputKind::name).collect::<Vec<_>>(), "and")
    };
    let diagnostic = Diagnostic::error(
        code::WRONG_KIND,
        format!(
            "{} is no policy or program that tamis reads{looks}",
            on_one_line(name)
        ),
    )
    .note(format!(
        "policies are read as {}; programs as {}",
        names(false),
        names(true)
    ))
    .help("if it is one of these, `--from KIND` says which");
    Error::diagnostic(diagnostic, Sources::new())
}
