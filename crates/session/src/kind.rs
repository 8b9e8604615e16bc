//! Kinds of inputs and their detection.
//!
//! The extension of the file determines the kind, otherwise its content does; `--from` overrides both. All commands
//! detect inputs here.

use std::path::Path;

use tamis_bpf::forms::{self, Form};
use tamis_diag::{Diagnostic, SourceId, Sources, suggest};
use tamis_policy::front_end::{self, FrontEnd};
use tamis_policy::tamis;

use crate::error::Error;
use crate::input::Input;

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A policy in this language.
    Policy(&'static FrontEnd),
    /// The text form of a ruleset.
    Rules,
    /// A program as text in this form.
    Text(&'static Form),
    /// A raw program: `struct sock_filter[]` without a header.
    Bpf,
}

/// The first word of a ruleset's text form.
const RULESET: &str = "ruleset";

impl InputKind {
    /// The tamis language.
    pub const TAMIS: InputKind = InputKind::Policy(&tamis::FRONT_END);

    const RULES: &str = "rules";
    const BPF: &str = "bpf";

    /// All kinds.
    pub fn all() -> impl Iterator<Item = InputKind> {
        let policies = front_end::ALL.into_iter().map(InputKind::Policy);
        let programs = forms::ALL.iter().map(InputKind::Text);
        policies
            .chain([InputKind::Rules])
            .chain(programs)
            .chain([InputKind::Bpf])
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<InputKind> {
        InputKind::all().find(|kind| kind.name() == name)
    }

    /// The kind with this name.
    ///
    /// # Errors
    /// If there is none; the error suggests a similar name.
    pub fn named(name: &str) -> Result<InputKind, Error> {
        InputKind::from_name(name).ok_or_else(|| {
            let names = || InputKind::all().map(InputKind::name);
            let hint = match suggest::nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
            };
            Error::usage(format!("there is no kind of input `{name}`"), hint)
        })
    }

    /// Whether the meaning of such inputs depends on the kernel's version.
    pub fn uses_kernel(self) -> bool {
        matches!(self, InputKind::Policy(front_end) if front_end.uses_kernel)
    }

    /// Whether the rules of such inputs mean the same without the default; programs have none.
    pub fn has_separate_default(self) -> bool {
        match self {
            InputKind::Policy(front_end) => front_end.has_separate_default,
            InputKind::Rules => true,
            InputKind::Text(_) | InputKind::Bpf => false,
        }
    }

    /// The value of `--from`.
    pub fn name(self) -> &'static str {
        match self {
            InputKind::Policy(front_end) => front_end.name,
            InputKind::Rules => InputKind::RULES,
            InputKind::Text(form) => form.name,
            InputKind::Bpf => InputKind::BPF,
        }
    }

    /// A description with an article.
    pub fn title(self) -> &'static str {
        match self {
            InputKind::Policy(front_end) => front_end.title,
            InputKind::Rules => "the text form of a ruleset",
            InputKind::Text(form) => form.title,
            InputKind::Bpf => "a raw program",
        }
    }

    /// A description in the plural, for sentences about options.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            InputKind::Policy(front_end) => front_end.plural,
            InputKind::Rules => "texts of rulesets",
            InputKind::Text(_) | InputKind::Bpf => "programs",
        }
    }

    /// A description for a list of kinds.
    pub fn about(self) -> &'static str {
        match self {
            InputKind::Policy(front_end) => front_end.about,
            InputKind::Rules => "The text form of a ruleset",
            InputKind::Text(form) => form.about,
            InputKind::Bpf => "A raw program: struct sock_filter[] without a header",
        }
    }

    /// Whether inputs of this kind are programs.
    pub fn is_program(self) -> bool {
        matches!(self, InputKind::Text(_) | InputKind::Bpf)
    }

    /// Whether a text resembles this kind.
    pub fn recognises(self, text: &str) -> bool {
        match self {
            InputKind::Policy(front_end) => (front_end.recognises)(text),
            InputKind::Rules => front_end::first_word(text) == RULESET,
            InputKind::Text(form) => (form.recognises)(text),
            // NUL is valid UTF-8, but occurs in no language.
            InputKind::Bpf => text.contains('\0'),
        }
    }

    /// The kind that a text resembles.
    pub fn of_text(text: &str) -> Option<InputKind> {
        if InputKind::Bpf.recognises(text) {
            return Some(InputKind::Bpf);
        }
        if (forms::DOCUMENT.recognises)(text) {
            return Some(InputKind::Text(forms::DOCUMENT));
        }
        let mut text_kinds = [InputKind::Rules].into_iter().chain(InputKind::all());
        text_kinds.find(|kind| kind.recognises(text))
    }
}

impl Input {
    /// The kind according to the extension or else the content. Other text is parsed as the tamis language, whose
    /// parser reports the expected syntax; other binary content is a program.
    pub fn kind(&self) -> InputKind {
        self.evident_kind().unwrap_or_else(|| self.guessed_kind())
    }

    /// The default if neither the extension nor the content determines the kind.
    pub(crate) fn guessed_kind(&self) -> InputKind {
        match self.text() {
            Some(_) => InputKind::TAMIS,
            None => InputKind::Bpf,
        }
    }

    /// The kind according to the extension or the content; `None` if it can only be guessed.
    pub(crate) fn evident_kind(&self) -> Option<InputKind> {
        let text = self.text();
        let extension = Path::new(&self.name).extension();
        match extension.and_then(|extension| extension.to_str()) {
            Some("rules") => return Some(InputKind::Rules),
            Some("bpf") => return Some(InputKind::Bpf),
            _ => {}
        }
        if text.is_some_and(forms::DOCUMENT.recognises) {
            return Some(InputKind::Text(forms::DOCUMENT));
        }
        if let Some(front_end) = front_end::of_file(&self.name, text.unwrap_or_default()) {
            return Some(InputKind::Policy(front_end));
        }
        let text = text?;
        match forms::of_file(&self.name) {
            Some(form) => Some(InputKind::Text(form)),
            None => InputKind::of_text(text),
        }
    }

    /// The policy language that the content resembles, regardless of the extension.
    pub fn policy_language(&self) -> Option<&'static FrontEnd> {
        match self.evident_kind()? {
            InputKind::Policy(language) if (language.recognises)(self.text()?) => Some(language),
            _ => None,
        }
    }

    /// The content as text; `None` if it isn't UTF-8.
    fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.bytes).ok();
        text.filter(|_| !self.bytes.contains(&0))
    }
}

/// The diagnostic for a text that was parsed as one kind and resembles another.
pub(crate) fn mistaken(kind: InputKind, source: SourceId, sources: &Sources) -> Option<Diagnostic> {
    let text = &sources.get(source).text;
    if kind.recognises(text) {
        return None;
    }
    let other = InputKind::of_text(text)?;
    let help = format!("use `--from {}`", other.name());
    let diagnostic = front_end::mistaken(source, kind.title(), other.title(), &help);
    Some(diagnostic)
}

#[cfg(test)]
mod tests;
