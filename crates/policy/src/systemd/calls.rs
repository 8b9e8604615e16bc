//! Lists of calls: `SystemCallFilter=` and `SystemCallLog=`.
//!
//! The first assignment makes it an allow list or, with `~`, a deny list; further ones add to the list or, with the
//! other sign, remove from it.

use std::collections::BTreeMap;

use tamis_abi::{Arch, consts, syscall};
use tamis_diag::{Diagnostic, Span, code, suggest};

use super::tables;
use super::unit::{Assignment, Word};
use crate::sink::Sink;

/// A list of calls.
#[derive(Clone, Debug)]
pub(super) struct CallList {
    /// Whether the list contains the calls that are not affected.
    pub(super) is_allow_list: bool,
    /// The entries by name.
    pub(super) calls: BTreeMap<String, Entry>,
    /// The first assignment.
    pub(super) span: Span,
}

/// The entry of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The call's own action, if the list has one.
    pub(super) answer: Option<Answer>,
    pub(super) span: Span,
}

/// The action for a call that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Kill the process.
    Kill,
    /// Return this errno.
    Errno(u16),
}

/// The context of parsing an assignment.
pub(super) struct Reading<'a> {
    /// The architecture whose errno numbers are used.
    pub(super) native: Arch,
    /// Whether calls may have errnos, and an allow list implies `@default`.
    pub(super) is_filter: bool,
    pub(super) sink: &'a mut Sink,
}

impl Reading<'_> {
    /// Applies an assignment to the list.
    pub(super) fn assign(&mut self, list: &mut Option<CallList>, assignment: &Assignment) {
        if assignment.words.is_empty() {
            *list = None;
            return;
        }
        let (words, is_inverted) = without_tilde(&assignment.words);
        let is_new = list.is_none();
        let list = list.get_or_insert_with(|| CallList {
            is_allow_list: !is_inverted,
            calls: BTreeMap::new(),
            span: assignment.key.span,
        });
        if is_new && list.is_allow_list && self.is_filter {
            for call in tables::calls("@default") {
                list.put(call, None, assignment.key.span);
            }
        }
        for word in words {
            if let Some((name, answer)) = self.word(word, is_inverted) {
                self.name(list, name, is_inverted, answer, word.span);
            }
        }
    }

    /// A word's name and answer, unless systemd ignores the word.
    fn word<'t>(&mut self, word: Word<'t>, is_inverted: bool) -> Option<(&'t str, Option<Answer>)> {
        let Some((name, answer)) = word.text.split_once(':').filter(|_| self.is_filter) else {
            return Some((word.text, None));
        };
        let Some(parsed) = parse_answer(answer, self.native) else {
            self.sink.report(bad_answer(answer, word.span));
            return None;
        };
        if !is_inverted {
            let message = "an errno for a call that is allowed";
            self.sink.report(
                Diagnostic::warning(code::SYSTEMD_VALUE, message)
                    .label(word.span, "systemd ignores the whole word")
                    .help(format!("write `~{}` in a separate assignment", word.text)),
            );
            return None;
        }
        Some((name, Some(parsed)))
    }

    fn name(
        &mut self,
        list: &mut CallList,
        name: &str,
        is_inverted: bool,
        answer: Option<Answer>,
        span: Span,
    ) {
        if name.starts_with('@') {
            if tables::set(name).is_none() {
                let diagnostic = Diagnostic::warning(
                    code::SYSTEMD_SYSCALL,
                    format!("unknown set of calls `{name}`"),
                )
                .label(span, "systemd ignores this");
                let near = suggest::nearest(name, tables::set_names());
                self.sink.report(match near {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help("`systemd-analyze syscall-filter` lists them"),
                });
            }
            for call in tables::calls(name) {
                list.take(call, is_inverted, answer, span);
            }
            return;
        }
        if !syscall::is_known(name) && !tables::calls("@known").contains(name) {
            let diagnostic = Diagnostic::warning(
                code::SYSTEMD_SYSCALL,
                format!("unknown system call `{name}`"),
            )
            .label(span, "systemd ignores this");
            let near = suggest::nearest(name, syscall::names());
            self.sink.report(match near {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help("`tamis tables syscalls` lists them; sets begin with `@`"),
            });
            return;
        }
        list.take(name, is_inverted, answer, span);
    }
}

impl CallList {
    fn put(&mut self, call: &str, answer: Option<Answer>, span: Span) {
        self.calls.insert(call.to_owned(), Entry { answer, span });
    }

    /// Adds or removes a call. An allow list may have calls with an errno.
    fn take(&mut self, call: &str, is_inverted: bool, answer: Option<Answer>, span: Span) {
        if is_inverted != self.is_allow_list || is_inverted && answer.is_some() {
            self.put(call, answer, span);
        } else {
            self.calls.remove(call);
        }
    }
}

/// The words without the `~` before the first, and whether there was one.
pub(super) fn without_tilde<'t>(words: &[Word<'t>]) -> (Vec<Word<'t>>, bool) {
    let Some(rest) = words.first().and_then(|first| first.text.strip_prefix('~')) else {
        return (words.to_vec(), false);
    };
    let mut words = words.to_vec();
    words[0].text = rest;
    words[0].span.start += 1;
    words.retain(|word| !word.text.is_empty());
    (words, true)
}

/// `kill`, or an errno by name or number.
pub(super) fn parse_answer(text: &str, native: Arch) -> Option<Answer> {
    if text == "kill" {
        return Some(Answer::Kill);
    }
    let is_name = text.starts_with('E') && text.chars().all(|c| c.is_ascii_alphanumeric());
    let number = match text.parse::<u64>() {
        Ok(number) => number,
        Err(_) if is_name => consts::value(native, text)?,
        Err(_) => return None,
    };
    let number = u16::try_from(number).ok()?;
    (1..=4095)
        .contains(&number)
        .then_some(Answer::Errno(number))
}

/// The error for an invalid action.
pub(super) fn bad_answer(text: &str, span: Span) -> Diagnostic {
    Diagnostic::warning(code::SYSTEMD_VALUE, format!("`{text}` is not an errno"))
        .label(span, "systemd ignores this")
        .help("write a name such as `EPERM`, a number from 1 to 4095, or `kill`")
}
