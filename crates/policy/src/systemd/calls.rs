//! Lists of calls: `SystemCallFilter=` and `SystemCallLog=`.
//!
//! The first assignment makes it an allow list or, with `~`, a deny list; further ones add to the list or, with the
//! other sign, remove from it.
//!
//! If it is uncertain whether a set has a member in this release of systemd, a word that permits calls excludes the
//! member and a word that denies calls includes it: of the two possible lists of systemd, the result is the stricter
//! one.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use tamis_abi::{Arch, consts, syscall};
use tamis_diag::{Diagnostic, Span, suggest};

use super::tables::{self, Membership};
use super::unit::{Assignment, Piece};
use super::value::Quotes;
use super::version::SystemdVersion;
use crate::code;
use crate::near::nearest_call;
use crate::sink::Sink;

/// The call that newer releases of systemd allow for their own use.
pub(super) const WRITE: &str = "write";

/// A list of calls.
#[derive(Clone, Debug)]
pub(super) struct CallList {
    /// Whether the list contains the calls that are not affected.
    pub(super) is_allow_list: bool,
    /// The entries by name.
    pub(super) calls: BTreeMap<String, Entry>,
    /// Calls that a later word removed from an allow list, with that word.
    pub(super) removed: BTreeMap<String, Span>,
    /// The first assignment.
    pub(super) span: Span,
    applied: LastWords,
}

/// The words that were applied last, all with one inversion and answer: repeating one of them changes nothing.
#[derive(Clone, Debug, Default)]
struct LastWords {
    is_inverted: bool,
    answer: Option<Answer>,
    names: HashSet<String>,
}

impl LastWords {
    /// Whether a word has an effect.
    fn is_new(&mut self, name: &str, is_inverted: bool, answer: Option<Answer>) -> bool {
        if (self.is_inverted, self.answer) != (is_inverted, answer) {
            *self = LastWords {
                is_inverted,
                answer,
                names: HashSet::new(),
            };
        }
        !self.names.contains(name) && self.names.insert(name.to_owned())
    }
}

/// The entry of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The call's own action, if the list has one.
    pub(super) answer: Option<Answer>,
    pub(super) span: Span,
}

/// The action for a call that is not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Answer {
    /// Kill the process.
    #[default]
    Kill,
    /// Return this errno.
    Errno(u16),
}

impl CallList {
    /// Whether systemd installs a filter for it: not for a deny list of nothing.
    pub(super) fn is_installed(&self) -> bool {
        self.is_allow_list || !self.calls.is_empty()
    }
}

/// The calls of sets by name.
pub(super) type Sets = BTreeMap<String, Rc<BTreeMap<&'static str, Membership>>>;

/// The context of parsing an assignment.
pub(super) struct Reading<'a> {
    /// The native architecture, which determines the errno numbers.
    pub(super) native: Arch,
    /// The release that determines sets and rules.
    pub(super) version: SystemdVersion,
    /// The action of denied calls without an explicit one.
    pub(super) usual: Answer,
    /// Whether calls may have errnos, and an allow list implies `@default`.
    pub(super) is_filter: bool,
    /// The sets used so far: a unit may name one often.
    pub(super) sets: &'a mut Sets,
    pub(super) sink: &'a mut Sink,
}

impl Reading<'_> {
    /// Applies an assignment to the list.
    pub(super) fn assign(&mut self, list: &mut Option<CallList>, assignment: &Assignment) {
        if assignment.value.text().is_empty() {
            *list = None;
            return;
        }
        let (is_inverted, value) = assignment.value.without_tilde();
        let span = assignment.key.span();
        let is_new = list.is_none();
        let list = list.get_or_insert_with(|| CallList {
            is_allow_list: !is_inverted,
            calls: BTreeMap::new(),
            removed: BTreeMap::new(),
            span,
            applied: LastWords::default(),
        });
        if is_new && list.is_allow_list && self.is_filter {
            let certain = Membership::Certain;
            for call in tables::calls_from("@default", self.version, certain) {
                list.put(call, None, span);
            }
        }
        let words = value.words(Quotes::Kept);
        for word in &words.words {
            if let Some((name, answer)) = self.word(word.piece(), is_inverted)
                && list.applied.is_new(name, is_inverted, answer)
            {
                self.name(list, name, is_inverted, answer, word.span);
            }
        }
        if let Some(rest) = words.unfinished {
            self.sink.report(unfinished(rest));
        }
    }

    /// A word's name and answer, unless systemd ignores the word.
    fn word<'t>(
        &mut self,
        word: Piece<'t>,
        is_inverted: bool,
    ) -> Option<(&'t str, Option<Answer>)> {
        let Some((name, answer)) = word.text.split_once(':').filter(|_| self.is_filter) else {
            return Some((word.text, None));
        };
        if name.is_empty() {
            let message = "an errno without a system call";
            self.sink.report(
                Diagnostic::warning(code::SYSTEMD_VALUE, message)
                    .label(word.span, "systemd ignores this")
                    .help(format!("write `ptrace{}`", word.text)),
            );
            return None;
        }
        let parsed = match answer {
            "kill" => Some(Answer::Kill),
            _ => errno(answer, self.native).map(Answer::Errno),
        };
        let Some(parsed) = parsed else {
            let help = "write a name such as `EPERM`, a number up to 4094, or `kill`";
            let diagnostic = bad_answer(answer, word.span);
            self.sink.report(diagnostic.help(help));
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

    /// A similar name for an unknown one, unless the diagnostic is dropped.
    fn near(
        &self,
        name: &str,
        known: &mut dyn Iterator<Item = &'static str>,
    ) -> Option<&'static str> {
        match self.sink.wants_more() {
            true => suggest::nearest(name, known),
            false => None,
        }
    }

    fn name(
        &mut self,
        list: &mut CallList,
        name: &str,
        is_inverted: bool,
        answer: Option<Answer>,
        span: Span,
    ) {
        let word = Word {
            is_inverted,
            answer,
            span,
        };
        if name.starts_with('@') {
            if !tables::has_set(name, self.version) {
                self.unknown_set(name, span);
            }
            for (call, membership) in self.calls(name).iter() {
                let (call, membership) = (*call, *membership);
                let is_certain = membership == Membership::Certain;
                if is_certain || self.takes_possible(list, call, &word) {
                    list.take(call, &word);
                }
            }
            return;
        }
        if !syscall::is_known(name) && !tables::is_known(name) {
            let diagnostic = Diagnostic::warning(
                code::SYSTEMD_SYSCALL,
                format!("unknown system call `{name}`"),
            )
            .label(span, "systemd ignores this");
            let near = self.sink.wants_more().then(|| nearest_call(name)).flatten();
            let is_quoted = name.contains(['"', '\'']);
            self.sink.report(match near {
                _ if is_quoted => diagnostic.help("remove the quotes, which systemd keeps here"),
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help("`tamis tables syscalls` lists them; sets begin with `@`"),
            });
            return;
        }
        list.take(name, &word);
    }

    fn calls(&mut self, set: &str) -> Rc<BTreeMap<&'static str, Membership>> {
        if let Some(calls) = self.sets.get(set) {
            return Rc::clone(calls);
        }
        let calls = Rc::new(tables::calls(set, self.version));
        if !calls.is_empty() {
            self.sets.insert(set.to_owned(), Rc::clone(&calls));
        }
        calls
    }

    fn unknown_set(&mut self, name: &str, span: Span) {
        let version = self.version;
        let message = match tables::first_with_set(name) {
            Some(first) => format!("`{name}` is a set of systemd {first} and later"),
            None => format!("unknown set of calls `{name}`"),
        };
        let label = match tables::first_with_set(name) {
            Some(_) => format!("systemd {version} ignores this"),
            None => "systemd ignores this".to_owned(),
        };
        let diagnostic = Diagnostic::warning(code::SYSTEMD_SYSCALL, message).label(span, label);
        let near = self.near(name, &mut tables::set_names(version));
        self.sink.report(match near {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help("`systemd-analyze syscall-filter` lists them"),
        });
    }

    /// Whether a word includes a possible member of a set: only if that is stricter.
    fn takes_possible(&self, list: &CallList, call: &str, word: &Word) -> bool {
        if !self.is_filter {
            // Logging doesn't change whether a call is allowed.
            return !word.is_inverted;
        }
        if !word.is_inverted {
            return false;
        }
        let own = word.answer.unwrap_or(self.usual);
        match list.calls.get(call) {
            Some(Entry { answer: None, .. }) if list.is_allow_list => true,
            Some(entry) => own == Answer::Kill && entry.answer.unwrap_or(self.usual) != own,
            // Without the word it has the usual action, or `ENOSYS`.
            None if list.is_allow_list => {
                let may_be_errno = self.version.answers_unknown_calls_with_enosys();
                own == Answer::Kill && (self.usual != own || may_be_errno && word.answer.is_some())
            }
            None => true,
        }
    }
}

/// The effect of a word on calls.
struct Word {
    is_inverted: bool,
    answer: Option<Answer>,
    span: Span,
}

impl CallList {
    fn put(&mut self, call: &str, answer: Option<Answer>, span: Span) {
        self.calls.insert(call.to_owned(), Entry { answer, span });
    }

    /// Adds or removes a call. An allow list may have calls with an errno.
    fn take(&mut self, call: &str, word: &Word) {
        let Word {
            is_inverted,
            answer,
            span,
        } = *word;
        if is_inverted != self.is_allow_list || is_inverted && answer.is_some() {
            self.put(call, answer, span);
            self.removed.remove(call);
        } else if self.calls.remove(call).is_some() && self.is_allow_list {
            self.removed.insert(call.to_owned(), span);
        }
    }

    /// Adds `write` to the allowed calls, as systemd does for its own use. Returns the word that denied it and, with an
    /// errno in an allow list, whether systemd fails to start the service.
    pub(super) fn allow_write(&mut self) -> Option<WriteDenied> {
        if !self.is_allow_list {
            let denied = self.calls.remove(WRITE)?;
            return Some(WriteDenied::Ignored(denied.span));
        }
        match self.calls.get(WRITE) {
            Some(entry) if entry.answer.is_some() => Some(WriteDenied::Refused(entry.span)),
            Some(_) => None,
            None => {
                let removed = self.removed.remove(WRITE);
                self.put(WRITE, None, self.span);
                removed.map(WriteDenied::Ignored)
            }
        }
    }
}

/// A word that denies `write` in a release that doesn't permit it.
pub(super) enum WriteDenied {
    /// `write` stays allowed.
    Ignored(Span),
    /// The service doesn't start.
    Refused(Span),
}

/// The action of `SystemCallErrorNumber=`: nothing or `kill`, or an errno by name or number. `None` if systemd ignores
/// the text.
pub(super) fn usual_answer(text: &str, native: Arch) -> Option<Answer> {
    match text {
        "" | "kill" => Some(Answer::Kill),
        _ => {
            let number = errno(text, native).filter(|number| *number != 0);
            number.map(Answer::Errno)
        }
    }
}

/// An errno by name, in upper or lower case, or by number as systemd reads it: 0 to 4095.
pub(super) fn errno(text: &str, native: Arch) -> Option<u16> {
    let name = text.to_ascii_uppercase();
    let number = match tables::is_errno_name(&name) {
        true => consts::value(native, &name)?,
        false => integer(text)?,
    };
    u16::try_from(number).ok().filter(|number| *number <= 4095)
}

/// systemd's `safe_atoi` for non-negative numbers: `strtol` with base 0, where `010` is 8, and the prefixes `0b` and
/// `0o`.
fn integer(text: &str) -> Option<u64> {
    let text = text.trim_start_matches(C_SPACE);
    for (prefix, radix) in [("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return strtol(rest, Some(radix));
        }
    }
    strtol(text, None)
}

/// `isspace` of C.
const C_SPACE: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// `strtol` of a whole text, without a radix by its prefix. `None` for negative numbers, too.
fn strtol(text: &str, radix: Option<u32>) -> Option<u64> {
    let text = text.trim_start_matches(C_SPACE);
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match (radix, hexadecimal) {
        (Some(radix), _) => (text, radix),
        (None, Some(digits)) => (digits, 16),
        (None, None) if text.starts_with('0') => (text, 8),
        (None, None) => (text, 10),
    };
    // `from_str_radix` accepts a sign.
    let is_number = digits.chars().all(|digit| digit.is_digit(radix));
    let number = u64::from_str_radix(digits, radix).ok();
    number.filter(|number| is_number && (!is_negative || *number == 0))
}

/// The warning for an invalid errno, without a help.
pub(super) fn bad_answer(text: &str, span: Span) -> Diagnostic {
    Diagnostic::warning(code::SYSTEMD_VALUE, format!("`{text}` is not an errno"))
        .label(span, "systemd ignores this")
}

/// The warning for a last word without its end.
pub(super) fn unfinished(span: Span) -> Diagnostic {
    let message = "a quote without its other end";
    Diagnostic::warning(code::SYSTEMD_VALUE, message)
        .label(span, "systemd ignores this and what follows")
        .help("remove the quote, or add the other")
}
