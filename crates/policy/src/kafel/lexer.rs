//! From texts to one list of tokens: included files replace their `#include`.
//!
//! As in kafel, an `#include` is allowed anywhere, even within a rule. Blanks stand before each of its files, and a
//! semicolon or a line feed ends it; the end of the text does not.

use std::sync::Arc;

use tamis_diag::limits::{MAX_TOKENS, too_many_tokens};
use tamis_diag::{Cursor, Diagnostic, SourceId, Sources, Span};

use crate::budget::Budget;
use crate::code;
use crate::included::{first_mistake, help_to_find, not_a_policy};
use crate::limits::MAX_INCLUDE_DEPTH;
use crate::loader::{Loaded, Loader};
use crate::sink::Sink;

/// A word or symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `#`, before `define`
    Hash,
    /// A name or keyword.
    Word,
    /// A number with an optional minus sign.
    Number,
    /// One of [`SYMBOLS`].
    Symbol(&'static str),
}

/// Longer ones first.
const SYMBOLS: [&str; 18] = [
    "||", "&&", "==", "!=", "<=", ">=", "<", ">", "|", "&", "!", "(", ")", "{", "}", "[", "]", ",",
];

/// The tokens of the root, already in the sources, and of its included files.
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

/// The beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beginning<'a> {
    /// Whether a line before the first statement is an `#include`.
    pub(super) has_include: bool,
    /// The text after blanks, comments and lines that begin with `#`.
    pub(super) statement: &'a str,
}

/// The beginning of a text.
pub(super) fn beginning(text: &str) -> Beginning<'_> {
    let mut rest = text.trim_start();
    let mut has_include = false;
    loop {
        let skipped = if rest.starts_with("//") || rest.starts_with('#') {
            let file = rest.strip_prefix("#include").map(str::trim_start);
            has_include |= file.is_some_and(|file| file.starts_with('"'));
            rest.find('\n')
        } else if let Some(behind) = rest.strip_prefix("/*") {
            Comment::scan(behind).inside.map(|length| length + 2)
        } else {
            let statement = rest;
            return Beginning {
                has_include,
                statement,
            };
        };
        rest = skipped.map_or("", |length| rest[length..].trim_start());
    }
}

/// The text after `/*`. A star and the following character form a unit, unless that is the slash that ends the comment.
struct Comment {
    /// The length up to and including the end.
    inside: Option<usize>,
    /// The positions of two stars before a slash that doesn't end it.
    stars: Vec<usize>,
}

impl Comment {
    fn scan(text: &str) -> Comment {
        let bytes = text.as_bytes();
        let mut stars = Vec::new();
        let mut at = 0;
        while let Some(found) = bytes[at..].iter().position(|byte| *byte == b'*') {
            let star = at + found;
            at = star + 2;
            match bytes.get(star + 1) {
                Some(b'/') => {
                    let inside = Some(at);
                    return Comment { inside, stars };
                }
                Some(b'*') if bytes.get(at) == Some(&b'/') => stars.push(star),
                Some(_) => {}
                None => break,
            }
        }
        let inside = None;
        Comment { inside, stars }
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
    /// Reads a file of the sources; `included_at` is absent for the root.
    fn file(&mut self, source: SourceId, included_at: Option<Span>) {
        let name = self.sources.name(source).clone();
        let text = self.sources.get(source).text.clone();
        if !self.budget.take(text.len(), included_at, self.sink) {
            return;
        }
        self.open.push(name);
        self.text(source, &text);
        self.open.pop();
    }

    fn text(&mut self, source: SourceId, text: &str) {
        let mut cursor = Cursor::new(source, text);
        while let Some(first) = cursor.first()
            && !self.sink.is_finished()
        {
            self.next(&mut cursor, first);
        }
    }

    /// Reads the blank, comment, directive or token that begins with `first`.
    fn next(&mut self, cursor: &mut Cursor<'_>, first: char) {
        if is_blank(first) || first == '\n' {
            cursor.take_char();
        } else if cursor.is_before("//") {
            cursor.take_line();
        } else if cursor.is_before("/*") {
            self.comment(cursor);
        } else if cursor.is_before("#include") {
            self.include(cursor);
        } else {
            let start = cursor.at();
            if self.tokens.len() >= MAX_TOKENS {
                let diagnostic = Diagnostic::error(code::KAFEL_LIMIT, too_many_tokens());
                return self
                    .sink
                    .stop(diagnostic.label(cursor.span_from(start), ""));
            }
            let kind = token(cursor, first);
            let span = cursor.span_from(start);
            match kind {
                Some(kind) => self.tokens.push(Token { kind, span }),
                None => self.unknown(first, span),
            }
        }
    }

    fn unknown(&mut self, first: char, span: Span) {
        let message = format!("unexpected character `{}`", first.escape_default());
        let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, message);
        let diagnostic = diagnostic.label(span, "not a valid token");
        self.sink.report(match first {
            '\r' => diagnostic.help("kafel takes lines that end by a line feed alone"),
            '_' => diagnostic.help("names begin with a letter"),
            _ => diagnostic,
        });
    }

    fn comment(&mut self, cursor: &mut Cursor<'_>) {
        let start = cursor.at();
        cursor.take(2);
        let opened = cursor.span_from(start);
        let comment = Comment::scan(cursor.rest());
        for pair in comment.stars {
            let start = cursor.at() + pair;
            self.open_comment(Span::new(opened.source, start, start + 2));
        }
        cursor.take(comment.inside.unwrap_or(usize::MAX));
        if comment.inside.is_some() {
            return;
        }
        let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, "a comment without an end")
            .label(opened, "it begins here")
            .help("end it by `*/`");
        self.sink.report(diagnostic);
    }

    /// Warns about `**/`, whose last two characters don't end a comment in kafel.
    fn open_comment(&mut self, stars: Span) {
        let message = "a comment that kafel does not end here";
        let diagnostic = Diagnostic::warning(code::KAFEL_COMMENT, message)
            .label(stars, "the comment continues behind the slash")
            .note("kafel consumes stars in pairs and treats the slash after a pair as text")
            .help("put a space before `*/`");
        self.sink.report(diagnostic);
    }

    /// Reads an `#include` and its files.
    fn include(&mut self, cursor: &mut Cursor<'_>) {
        let keyword = cursor.at();
        cursor.take("#include".len());
        let keyword = cursor.span_from(keyword);
        loop {
            let blanks = cursor.at();
            cursor.take_while(|c| is_blank(c) || c == '\r');
            let start = cursor.at();
            match cursor.first() {
                None => return self.unended_include(keyword),
                Some('\n') => return,
                Some(_) if cursor.take_symbol(&[";"]).is_some() => return,
                Some(_) => {}
            }
            let line = cursor.rest().lines().next().unwrap_or("");
            let path = line.strip_prefix('"').and_then(|path| path.split_once('"'));
            let Some((path, _)) = path.filter(|(path, _)| !path.is_empty()) else {
                cursor.take(line.len());
                let message = "`#include` without a file in quotes";
                let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, message)
                    .label(cursor.span_from(start), "")
                    .help("write `#include \"file.policy\"`");
                return self.sink.report(diagnostic);
            };
            cursor.take(path.len() + 2);
            if start == blanks {
                let message = format!("no blank before the file `{path}`");
                let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, message)
                    .label(cursor.span_from(start), "kafel refuses it here")
                    .help("put a space before the quote");
                self.sink.report(diagnostic);
            }
            self.included(path, cursor.span_from(start));
            if self.sink.is_finished() {
                return;
            }
        }
    }

    /// Reports an `#include` at the end of a text.
    fn unended_include(&mut self, keyword: Span) {
        let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, "an `#include` without an end")
            .label(keyword, "it continues to the end of the file")
            .help("end it by a semicolon or a line feed");
        self.sink.report(diagnostic);
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
                    .help(help_to_find(
                        path,
                        "paths are relative to the including file",
                    ));
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
        let text = self.sources.get(source).text.clone();
        match first_mistake(|sink| lex_alone(source, &text, sink)) {
            Some(mistake) => {
                let name = self.sources.name(source);
                let code = code::KAFEL_INCLUDE;
                let diagnostic = not_a_policy(code, name, span, self.sources, mistake);
                self.sink.report(diagnostic);
            }
            None => self.file(source, Some(span)),
        }
    }
}

/// Reports the mistakes in the tokens of a text, with all included files assumed empty.
fn lex_alone(source: SourceId, text: &str, sink: &mut Sink) {
    let empty = |path: &str, _from: &str| {
        Ok(Loaded {
            name: path.to_owned(),
            text: String::new(),
        })
    };
    let mut lexer = Lexer {
        sources: &mut Sources::new(),
        loader: &mut { empty },
        sink,
        open: Vec::new(),
        budget: Budget::new(code::KAFEL_LIMIT),
        tokens: Vec::new(),
    };
    lexer.text(source, text);
}

/// Consumes the token that begins with `first`, or one character if there is none.
fn token(cursor: &mut Cursor<'_>, first: char) -> Option<TokenKind> {
    if let Some(length) = number_length(cursor.rest()) {
        cursor.take(length);
        return Some(TokenKind::Number);
    }
    if first.is_ascii_alphabetic() {
        cursor.take_while(is_word);
        return Some(TokenKind::Word);
    }
    if cursor.take_symbol(&["#"]).is_some() {
        return Some(TokenKind::Hash);
    }
    let symbol = cursor.take_symbol(&SYMBOLS);
    if symbol.is_none() {
        cursor.take_char();
    }
    symbol.map(TokenKind::Symbol)
}

/// The length of the longest number at the start of a text; the following character begins another token.
fn number_length(text: &str) -> Option<usize> {
    let count = |text: &str, belongs: fn(&u8) -> bool| text.bytes().take_while(belongs).count();
    let prefixed = |prefix: &str, belongs| {
        let digits = count(text.strip_prefix(prefix)?, belongs);
        (digits > 0).then_some(prefix.len() + digits)
    };
    let hexadecimal = prefixed("0x", u8::is_ascii_hexdigit);
    let binary = prefixed("0b", |digit| matches!(digit, b'0' | b'1'));
    hexadecimal.or(binary).or_else(|| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        // Only decimal numbers can be negative.
        let is_none = digits.len() < text.len() && digits.starts_with('0');
        let length = count(digits, u8::is_ascii_digit);
        (!is_none && length > 0).then_some(text.len() - digits.len() + length)
    })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages about a text with empty included files.
    fn messages(text: &str) -> Vec<String> {
        let mut sources = Sources::new();
        let root = sources.add("a.kafel", text);
        let mut loader = |path: &str, _: &str| {
            let (name, text) = (path.to_owned(), String::new());
            Ok(Loaded { name, text })
        };
        let mut sink = Sink::new(false);
        tokens(&mut sources, root, &mut loader, &mut sink);
        let diagnostics = sink.into_diagnostics();
        diagnostics.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn an_include_ends_by_a_semicolon_or_a_line_feed() {
        for ended in [
            "#include \"a\";",
            "#include \"a\"\n",
            "#include \"a\" \"b\" ;",
            "#include;",
        ] {
            assert_eq!(messages(ended), [""; 0], "{ended}");
        }
        for unended in [
            "#include",
            "#include ",
            "#include \"a\"",
            "DEFAULT KILL #include \"a\" \"b\" ",
        ] {
            assert_eq!(
                messages(unended),
                ["an `#include` without an end"],
                "{unended}"
            );
        }
    }

    #[test]
    fn an_include_is_no_comment() {
        assert!(beginning("// c\n#include \"a.policy\"\n").has_include);
        assert!(!beginning("# include \"a.policy\" is a comment of minijail's\n").has_include);
        assert!(!beginning("#include the usual calls\n").has_include);
    }
}
