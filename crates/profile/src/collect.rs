//! Shared parts of the parsers of tables: words with places, names of calls, errors.

use std::mem;

use tamis_abi::{Arch, Nr, entry_point, syscall};
use tamis_diag::{Code, Diagnostic, SourceId, Span, suggest};

use crate::code;
use crate::{Call, Format, Profile, Reading, Runs};

/// The most errors of one text that are reported.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// A part of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'t> {
    pub(crate) text: &'t str,
    /// The offset of its first byte in the whole text.
    pub(crate) start: usize,
}

impl<'t> Word<'t> {
    /// The parts between separators, without empty ones.
    pub(crate) fn split(self, is_separator: fn(char) -> bool) -> impl Iterator<Item = Word<'t>> {
        let mut start = self.start;
        let parts = self.text.split_inclusive(is_separator).map(move |part| {
            let text = part.strip_suffix(is_separator).unwrap_or(part);
            let word = Word { text, start };
            start += part.len();
            word
        });
        parts.filter(|word| !word.text.is_empty())
    }

    /// The parts between white space.
    pub(crate) fn words(self) -> impl Iterator<Item = Word<'t>> {
        self.split(char::is_whitespace)
    }

    /// The word without surrounding white space.
    pub(crate) fn trim(self) -> Word<'t> {
        let before = self.text.len() - self.text.trim_start().len();
        Word {
            text: self.text.trim(),
            start: self.start + before,
        }
    }
}

/// The lines of a text, including empty ones.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let word = Word {
            text: line.trim_end_matches(['\n', '\r']),
            start,
        };
        start += line.len();
        word
    })
}

/// Collects the counts and errors of one table.
pub(crate) struct Collector {
    source: SourceId,
    /// The architecture of the calls.
    pub(crate) arch: Arch,
    profile: Profile,
    /// The sum of the previous runs.
    runs: Profile,
    diagnostics: Vec<Diagnostic>,
    /// Whether there was an error, reported or not.
    has_failed: bool,
}

impl Collector {
    pub(crate) fn new(source: SourceId, arch: Arch) -> Collector {
        Collector {
            source,
            arch,
            profile: Profile::default(),
            runs: Profile::default(),
            diagnostics: Vec::new(),
            has_failed: false,
        }
    }

    /// Begins a new run.
    pub(crate) fn end_run(&mut self) {
        let profile = mem::take(&mut self.profile);
        self.runs.merge(&profile);
    }

    pub(crate) fn finish(mut self, format: Option<Format>) -> Reading {
        if !self.runs.is_empty() {
            self.end_run();
            self.profile = self.runs;
        }
        Reading {
            profile: (!self.has_failed).then_some(self.profile),
            format,
            diagnostics: self.diagnostics,
        }
    }

    /// The text's place.
    pub(crate) const fn source(&self) -> SourceId {
        self.source
    }

    /// Adds errors and fails.
    pub(crate) fn fail(&mut self, diagnostics: Vec<Diagnostic>) {
        self.has_failed = true;
        self.diagnostics.extend(diagnostics);
        self.diagnostics.truncate(MAX_DIAGNOSTICS);
    }

    fn span(&self, word: Word<'_>) -> Span {
        Span::new(self.source, word.start, word.start + word.text.len())
    }

    /// Whether the limit of reported errors is reached.
    fn is_full(&self) -> bool {
        self.diagnostics.len() >= MAX_DIAGNOSTICS
    }

    /// Reports an error.
    pub(crate) fn error(&mut self, code: Code, place: Word<'_>, message: String, label: &str) {
        self.has_failed = true;
        if !self.is_full() {
            let span = self.span(place);
            let diagnostic = Diagnostic::error(code, message).label(span, label);
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports an omitted part.
    pub(crate) fn warn(&mut self, code: Code, place: Word<'_>, message: &str, label: &str) {
        if !self.is_full() {
            let span = self.span(place);
            let diagnostic = Diagnostic::warning(code, message).label(span, label);
            self.diagnostics.push(diagnostic);
        }
    }

    /// Adds a warning.
    pub(crate) fn warn_of(&mut self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Parses a count.
    pub(crate) fn count(&mut self, word: Word<'_>) -> Option<u64> {
        let is_decimal = word.text.bytes().all(|byte| byte.is_ascii_digit());
        let count = word.text.parse().ok().filter(|_| is_decimal);
        if count.is_none() {
            let message = format!("`{}` is not a count", word.text.escape_debug());
            let label = "expected a whole number from 0 to 18446744073709551615";
            self.error(code::PROFILE_COUNT, word, message, label);
        }
        count
    }

    /// Adds to the count of a call; warns if the architecture lacks it.
    pub(crate) fn add(&mut self, name: Word<'_>, count: u64) {
        self.add_at(name, name, count);
    }

    /// The same for a name that isn't verbatim in the text; `place` is its place for warnings.
    pub(crate) fn add_at(&mut self, name: Word<'_>, place: Word<'_>, count: u64) {
        match number(self.arch, name.text) {
            Some(nr) => {
                let call = self.profile.call_mut(self.arch, nr);
                call.count = call.count.saturating_add(count);
            }
            None if !self.is_full() => {
                let span = self.span(place);
                let diagnostic = unknown_call(self.arch, name.text);
                let label = "the count of this call is ignored";
                self.diagnostics.push(Diagnostic {
                    severity: tamis_diag::Severity::Warning,
                    ..diagnostic.label(span, label)
                });
            }
            None => {}
        }
    }
}

impl Collector {
    /// The entry of a call after [`add`](Self::add); `None` if the architecture lacks it.
    pub(crate) fn call_mut(&mut self, name: Word<'_>) -> Option<&mut Call> {
        let nr = number(self.arch, name.text)?;
        Some(self.number_mut(self.arch, nr))
    }

    /// Sets the number of counted runs.
    pub(crate) fn set_run_count(&mut self, count: u64) {
        self.profile.set_runs(Runs {
            unnamed: count,
            ..Runs::default()
        });
    }

    /// The entry of a call by its number.
    pub(crate) fn number_mut(&mut self, arch: Arch, nr: Nr) -> &mut Call {
        self.profile.call_mut(arch, nr)
    }
}

/// The number of a call by its name in a table; `strace` writes calls without a name as `syscall_0x1f4`.
fn number(arch: Arch, name: &str) -> Option<Nr> {
    if let Some(digits) = name.strip_prefix("syscall_0x") {
        let nr = u32::from_str_radix(digits, 16).ok()?;
        return arch.owns_number(nr).then_some(Nr(nr));
    }
    syscall::number(arch, name)
}

/// The error for an unknown name of a call, without its place.
pub(crate) fn unknown_call(arch: Arch, name: &str) -> Diagnostic {
    let shown = name.escape_debug();
    let message = format!("`{shown}` is not a call of {arch}");
    let diagnostic = Diagnostic::error(code::PROFILE_CALL, message);
    if syscall::is_known(name) {
        return diagnostic.note("other architectures have a call of this name");
    }
    let known = || syscall::all(arch).map(|(_, name)| name);
    match entry_point::call_of(name).or_else(|| suggest::nearest(name, known())) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_place() {
        let text = "a  bc\r\n\n d";
        let words: Vec<(usize, &str)> = lines(text)
            .flat_map(Word::words)
            .map(|word| (word.start, word.text))
            .collect();
        assert_eq!(words, [(0, "a"), (3, "bc"), (9, "d")]);
        assert!(words.iter().all(|(at, word)| text[*at..].starts_with(word)));
    }
}
