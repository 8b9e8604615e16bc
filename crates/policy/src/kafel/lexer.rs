//! From texts to one list of tokens: included files stand where they are included.
//!
//! An `#include` counts wherever it stands, even within a rule: kafel reads files in the same way.

use std::sync::Arc;

use tamis_diag::{Diagnostic, SourceId, Sources, Span, code};

use crate::budget::Budget;
use crate::limits::MAX_INCLUDE_DEPTH;
use crate::loader::Loader;
use crate::sink::Sink;

/// A word or symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `#define`
    Define,
    /// A name or keyword.
    Word,
    /// A number, perhaps negative.
    Number,
    /// One of [`SYMBOLS`].
    Symbol(&'static str),
}

/// Longer ones first.
const SYMBOLS: [&str; 18] = [
    "||", "&&", "==", "!=", "<=", ">=", "<", ">", "|", "&", "!", "(", ")", "{", "}", "[", "]", ",",
];

/// The tokens of the root, which is among the sources, and of everything that it includes.
pub(super) fn tokens(
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    sink: &mut Sink,
) -> Vec<Token> {
    let mut lexer = Lexer {
        sources,
        loader,
        sink,
        open: Vec::new(),
        budget: Budget::new(code::KAFEL_LIMIT),
        tokens: Vec::new(),
    };
    lexer.file(root, None);
    lexer.tokens
}

/// The text behind blanks, comments and lines that begin with `#`.
pub(super) fn first_statement(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let skipped = if rest.starts_with("//") || rest.starts_with('#') {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else {
            return rest;
        };
        rest = skipped.map_or("", |length| rest[length..].trim_start());
    }
}

struct Lexer<'a> {
    sources: &'a mut Sources,
    loader: &'a mut dyn Loader,
    sink: &'a mut Sink,
    /// The files from the root to the current one.
    open: Vec<Arc<str>>,
    budget: Budget,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    /// Reads a file that is among the sources; `included_at` is absent for the root.
    fn file(&mut self, source: SourceId, included_at: Option<Span>) {
        let name = self.sources.name(source).clone();
        let text = self.sources.get(source).text.clone();
        if !self.budget.take(text.len(), included_at, self.sink) {
            return;
        }
        self.open.push(name);
        let mut at = 0;
        while at < text.len() && !self.sink.is_finished() {
            at = self.next(source, &text, at);
        }
        self.open.pop();
    }

    /// Reads what stands at `at`, and returns the place behind it.
    fn next(&mut self, source: SourceId, text: &str, at: usize) -> usize {
        let rest = &text[at..];
        let span = |start: usize, end: usize| Span {
            source,
            start: start as u32,
            end: end as u32,
        };
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_whitespace() {
            return at + first.len_utf8();
        }
        if rest.starts_with("//") {
            return at + rest.find('\n').unwrap_or(rest.len());
        }
        if rest.starts_with("/*") {
            return self.comment(text, at, span);
        }
        if let Some(directive) = rest.strip_prefix('#') {
            let word = directive.trim_start_matches([' ', '\t']);
            let start = at + rest.len() - word.len();
            let end = start + word_length(word);
            return match &text[start..end] {
                "define" => {
                    self.push(TokenKind::Define, span(at, end));
                    end
                }
                "include" => self.include(text, end, span),
                _ => {
                    let message = "unknown directive";
                    let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, message)
                        .label(span(at, end), "")
                        .help(
                            "the directives are `#define` and `#include`; comments begin with `//`",
                        );
                    self.sink.report(diagnostic);
                    at + rest.find('\n').unwrap_or(rest.len())
                }
            };
        }
        let Some((kind, length)) = token(rest) else {
            let message = format!("unexpected character `{}`", first.escape_default());
            let end = at + first.len_utf8();
            let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, message);
            self.sink
                .report(diagnostic.label(span(at, end), "not a valid token"));
            return end;
        };
        self.push(kind, span(at, at + length));
        at + length
    }

    fn push(&mut self, kind: TokenKind, span: Span) {
        self.tokens.push(Token { kind, span });
    }

    /// The place behind a comment that begins at `at`.
    fn comment(&mut self, text: &str, at: usize, span: impl Fn(usize, usize) -> Span) -> usize {
        let Some(length) = text[at + 2..].find("*/") else {
            let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, "a comment without an end")
                .label(span(at, at + 2), "it begins here")
                .help("end it by `*/`");
            self.sink.report(diagnostic);
            return text.len();
        };
        let end = at + 2 + length + 2;
        let stars = text[at + 2..end - 1].bytes().rev();
        let stars = stars.take_while(|byte| *byte == b'*').count();
        if stars % 2 == 0 {
            let message = "a comment that kafel does not end here";
            let diagnostic = Diagnostic::warning(code::KAFEL_COMMENT, message)
                .label(span(end - 2, end), "tamis ends the comment here")
                .note("kafel consumes stars in pairs and treats the slash after a pair as text")
                .help("put a space before `*/`");
            self.sink.report(diagnostic);
        }
        end
    }

    /// Reads the files that are named behind an `#include`, and returns the place behind it.
    fn include(&mut self, text: &str, at: usize, span: impl Fn(usize, usize) -> Span) -> usize {
        let mut at = at;
        loop {
            let rest = text[at..].trim_start_matches([' ', '\t', '\r']);
            at = text.len() - rest.len();
            if rest.is_empty() || rest.starts_with('\n') {
                return at;
            }
            if rest.starts_with(';') {
                return at + 1;
            }
            let line = rest.lines().next().unwrap_or("");
            let path = line.strip_prefix('"').and_then(|path| path.split_once('"'));
            let Some((path, _)) = path.filter(|(path, _)| !path.is_empty()) else {
                let message = "`#include` without a file in quotes";
                let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, message)
                    .label(span(at, at + line.len()), "")
                    .help("write `#include \"file.policy\"`");
                self.sink.report(diagnostic);
                return at + line.len();
            };
            let end = at + path.len() + 2;
            self.included(path, span(at, end));
            if self.sink.is_finished() {
                return text.len();
            }
            at = end;
        }
    }

    fn included(&mut self, path: &str, span: Span) {
        if self.open.len() == MAX_INCLUDE_DEPTH {
            let message = format!("files include each other more than {MAX_INCLUDE_DEPTH} deep");
            let diagnostic = Diagnostic::error(code::KAFEL_LIMIT, message);
            self.sink
                .stop(diagnostic.label(span, "this one is not included"));
            return;
        }
        let from = self.open.last().cloned().unwrap_or_default();
        let loaded = match self.loader.load(path, &from) {
            Ok(loaded) => loaded,
            Err(reason) => {
                let message = format!("cannot include `{path}`: {reason}");
                let diagnostic = Diagnostic::error(code::KAFEL_INCLUDE, message)
                    .label(span, "included here")
                    .help("paths are relative to the including file");
                return self.sink.report(diagnostic);
            }
        };
        if self.open.iter().any(|open| **open == *loaded.name) {
            let diagnostic =
                Diagnostic::error(code::KAFEL_INCLUDE, format!("`{path}` includes itself"))
                    .label(span, "included here")
                    .note(format!("included from: {}", self.open.join(" → ")));
            return self.sink.report(diagnostic);
        }
        let source = self.sources.add(loaded.name, loaded.text);
        self.file(source, Some(span));
    }
}

/// The token at the beginning of a text that begins with neither blank nor comment, and its length.
fn token(text: &str) -> Option<(TokenKind, usize)> {
    let bytes = text.as_bytes();
    match bytes[0] {
        b'-' if bytes.get(1).is_some_and(u8::is_ascii_digit) => {
            Some((TokenKind::Number, 1 + word_length(&text[1..])))
        }
        b'0'..=b'9' => Some((TokenKind::Number, word_length(text))),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => Some((TokenKind::Word, word_length(text))),
        _ => SYMBOLS
            .into_iter()
            .find(|symbol| text.starts_with(symbol))
            .map(|symbol| (TokenKind::Symbol(symbol), symbol.len())),
    }
}

fn word_length(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .count()
}
