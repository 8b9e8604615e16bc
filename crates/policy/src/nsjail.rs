//! Configurations of nsjail, whose policy is kafel's: protocol buffers as text, with the policy in strings.
//!
//! ```text
//! mode: ONCE
//! seccomp_string: "ALLOW { read, write, exit_group }"
//! seccomp_string: "DEFAULT KILL"
//! seccomp_log: true
//! ```
//!
//! nsjail joins the strings of `seccomp_string`, or reads the file of `seccomp_policy_file`, and installs kafel's filter.
//! The other fields don't concern system calls. The policy is parsed where it stands: everything else of the text becomes
//! blanks, so that each diagnostic has its place in the configuration.

use std::ops::Range;

use tamis_diag::{Diagnostic, SourceId, Sources, Span};

use crate::Parsed;
use crate::code;
use crate::front_end::{FrontEnd, ParseOptions, ParsedPolicy};
use crate::included::help_to_find;
use crate::installation::Installation;
use crate::kafel::{self, KafelOptions};
use crate::loader::Loader;

/// The language in the registry.
pub static FRONT_END: FrontEnd = FrontEnd {
    name: "nsjail",
    title: "a configuration of nsjail",
    plural: "configurations of nsjail",
    about: "A configuration of nsjail, with a kafel policy inside or beside it",
    extensions: &["cfg"],
    codes: crate::kafel::code::KAFEL,
    options: &[],
    uses_kernel: false,
    has_separate_default: true,
    ignores_byte_order_mark: false,
    recognises,
    parse: parse_for_any,
};

const STRING: &str = "seccomp_string";
const FILE: &str = "seccomp_policy_file";
const LOG: &str = "seccomp_log";
const LOG_FLAG: &str = "SECCOMP_FILTER_FLAG_LOG";

/// Whether a text has a field with a policy at the beginning of a line.
fn recognises(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        let behind = [STRING, FILE]
            .iter()
            .find_map(|field| line.strip_prefix(field));
        behind.is_some_and(|behind| behind.trim_start().starts_with([':', '[', '"', '\'']))
    })
}

/// The fields of a configuration that concern the filter.
#[derive(Default)]
struct Fields {
    /// The values of `seccomp_string`.
    strings: Vec<Literal>,
    /// The values of `seccomp_policy_file`, of which the last counts.
    files: Vec<Literal>,
    logs: bool,
}

/// A value: strings without other text between them, which are one.
struct Literal {
    /// The contents, quotation marks excluded.
    pieces: Vec<Range<usize>>,
    span: Span,
}

fn parse_for_any(
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    common: &ParseOptions,
) -> ParsedPolicy {
    let text = sources.get(root).text.clone();
    let failed = |diagnostic: Diagnostic| Parsed::new(None, vec![diagnostic]).into();
    let fields = match Scanner::new(root, &text).fields() {
        Ok(fields) => fields,
        Err(diagnostic) => return failed(*diagnostic),
    };
    let policy = match (fields.strings.as_slice(), fields.files.as_slice()) {
        ([], [.., file]) => load(sources, root, file, loader),
        ([], []) => Err(Box::new(without_policy(root))),
        (strings, []) => masked(&text, strings).map(|masked| {
            let name = sources.name(root).to_string();
            sources.add(name, masked)
        }),
        ([string, ..], [file, ..]) => {
            let message = "the configuration has a policy and the file of one";
            let diagnostic = Diagnostic::error(code::NSJAIL_POLICY, message)
                .label(string.span, "nsjail refuses both")
                .label(file.span, "the file")
                .help("remove one of the fields");
            Err(Box::new(diagnostic))
        }
    };
    let policy = match policy {
        Ok(policy) => policy,
        Err(diagnostic) => return failed(*diagnostic),
    };
    let options = KafelOptions {
        arches: common.arches_one_by_one(),
        strict: common.strict,
    };
    let parsed = kafel::parse(sources, policy, loader, &options);
    ParsedPolicy {
        installation: Installation {
            flags: fields
                .logs
                .then(|| LOG_FLAG.to_owned())
                .into_iter()
                .collect(),
            ..Installation::default()
        },
        ..parsed.into()
    }
}

fn without_policy(root: SourceId) -> Diagnostic {
    Diagnostic::error(code::NSJAIL_POLICY, "the configuration has no policy")
        .label(Span::new(root, 0, 0), "nsjail installs no filter")
        .help("a policy is in `seccomp_string`, or in the file of `seccomp_policy_file`")
}

/// The file that the configuration names, as a source.
fn load(
    sources: &mut Sources,
    root: SourceId,
    file: &Literal,
    loader: &mut dyn Loader,
) -> Scanned<SourceId> {
    let (text, from) = (sources.get(root).text.clone(), sources.name(root).clone());
    let path: String = file
        .pieces
        .iter()
        .map(|piece| &text[piece.clone()])
        .collect();
    match loader.load(&path, &from) {
        Ok(loaded) => Ok(sources.add(loaded.name, loaded.text)),
        Err(reason) => {
            let message = format!("cannot read the policy `{path}`: {reason}");
            let diagnostic = Diagnostic::error(code::NSJAIL_POLICY, message)
                .label(file.span, "named here")
                .help(help_to_find(
                    &path,
                    "paths are relative to the configuration",
                ));
            Err(Box::new(diagnostic))
        }
    }
}

/// The text with blanks in place of everything that isn't in the strings, of the same length.
///
/// nsjail ends each string with a line feed, which ends comments of kafel; strings that are one value have nothing
/// between them.
fn masked(text: &str, strings: &[Literal]) -> Scanned<String> {
    let mut bytes: Vec<u8> = text
        .bytes()
        .map(|byte| if byte == b'\n' { b'\n' } else { b' ' })
        .collect();
    for literal in strings {
        for piece in &literal.pieces {
            unescape(
                &text[piece.clone()],
                &mut bytes[piece.clone()],
                literal.span,
            )?;
        }
        for pair in literal.pieces.windows(2) {
            let between = pair[0].end..pair[1].start;
            bytes[between].fill(b' ');
            let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii_whitespace());
            let (before, behind) = (&bytes[pair[0].clone()], &bytes[pair[1].clone()]);
            if is_word(before.last()) && is_word(behind.first()) {
                let message = "strings that are joined within a word";
                let diagnostic = Diagnostic::error(code::NSJAIL_SYNTAX, message)
                    .label(literal.span, "nothing stands between these strings")
                    .help("write a blank at the end of the first one");
                return Err(Box::new(diagnostic));
            }
        }
    }
    let ends = strings.iter().filter_map(|literal| literal.pieces.last());
    let starts = strings
        .iter()
        .skip(1)
        .filter_map(|literal| literal.pieces.first());
    for (last, next) in ends.zip(starts) {
        // A closing quotation mark becomes the line feed where the configuration has none.
        if !text[last.end..next.start].contains('\n') {
            bytes[last.end] = b'\n';
        }
    }
    Ok(String::from_utf8(bytes).expect("contents of strings, blanks and line feeds"))
}

/// Writes the content of a string, in which an escaped character has a blank before it.
fn unescape(content: &str, bytes: &mut [u8], span: Span) -> Scanned<()> {
    bytes.copy_from_slice(content.as_bytes());
    let mut at = 0;
    while let Some(backslash) = content[at..].find('\\') {
        at += backslash;
        bytes[at] = b' ';
        bytes[at + 1] = match bytes[at + 1] {
            b'n' => b'\n',
            b't' | b'r' | b'f' | b'v' => b' ',
            own @ (b'"' | b'\'' | b'\\') => own,
            _ => {
                let message = "an escape that kafel has no use for";
                let diagnostic = Diagnostic::error(code::NSJAIL_SYNTAX, message)
                    .label(span, "in this value")
                    .help("write the character itself");
                return Err(Box::new(diagnostic));
            }
        };
        at += 2;
    }
    Ok(())
}

/// Reads the fields at the top of a configuration.
struct Scanner<'t> {
    source: SourceId,
    text: &'t str,
    at: usize,
}

type Scanned<T> = Result<T, Box<Diagnostic>>;

impl<'t> Scanner<'t> {
    const fn new(source: SourceId, text: &'t str) -> Scanner<'t> {
        Scanner {
            source,
            text,
            at: 0,
        }
    }

    fn fields(mut self) -> Scanned<Fields> {
        let mut fields = Fields::default();
        loop {
            self.skip(&[',', ';']);
            let start = self.at;
            let name = self.word();
            if name.is_empty() {
                return match self.peek() {
                    None => Ok(fields),
                    Some(_) => Err(self.mistake(start, "the name of a field is expected")),
                };
            }
            self.skip(&[':']);
            match (name, self.peek()) {
                (_, Some('{' | '<')) => self.message()?,
                (_, Some('[')) => {
                    for literal in self.list()? {
                        fields.add(name, literal);
                    }
                }
                (_, Some('"' | '\'')) => {
                    let literal = self.literal()?;
                    fields.add(name, literal);
                }
                (LOG, _) => fields.logs = matches!(self.word(), "true" | "True" | "t" | "1"),
                _ if self.word().is_empty() => {
                    return Err(self.mistake(start, "the field has no value"));
                }
                _ => {}
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Skips blanks, comments and these characters.
    fn skip(&mut self, others: &[char]) {
        while let Some(next) = self.peek() {
            if next == '#' {
                let rest = &self.text[self.at..];
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if next.is_whitespace() || others.contains(&next) {
                self.at += next.len_utf8();
            } else {
                return;
            }
        }
    }

    /// A name, number or name of a value.
    fn word(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let is_part =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+' | '/');
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Strings that follow each other.
    fn literal(&mut self) -> Scanned<Literal> {
        let start = self.at;
        let mut pieces = Vec::new();
        while let Some(mark @ ('"' | '\'')) = self.peek() {
            let begin = self.at + 1;
            let mut rest = self.text[begin..].char_indices();
            let end = loop {
                match rest.next() {
                    Some((_, '\\')) => drop(rest.next()),
                    Some((at, c)) if c == mark => break begin + at,
                    Some((_, '\n')) | None => {
                        return Err(self.mistake(self.at, "a string without an end in its line"));
                    }
                    Some(_) => {}
                }
            };
            pieces.push(begin..end);
            self.at = end + 1;
            self.skip(&[]);
        }
        let end = pieces.last().map_or(start, |piece| piece.end + 1);
        Ok(Literal {
            pieces,
            span: Span::new(self.source, start, end),
        })
    }

    /// The strings of a list; other elements are skipped.
    fn list(&mut self) -> Scanned<Vec<Literal>> {
        let start = self.at;
        self.at += 1;
        let mut literals = Vec::new();
        loop {
            self.skip(&[',']);
            match self.peek() {
                Some(']') => {
                    self.at += 1;
                    return Ok(literals);
                }
                Some('"' | '\'') => literals.push(self.literal()?),
                Some('{' | '<') => self.message()?,
                _ if self.word().is_empty() => {
                    return Err(self.mistake(start, "a list without an end"));
                }
                _ => {}
            }
        }
    }

    /// Skips a message with everything in it.
    fn message(&mut self) -> Scanned<()> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            self.skip(&[',', ';', ':', '[', ']']);
            match self.peek() {
                Some('{' | '<') => depth += 1,
                Some('}' | '>') => depth -= 1,
                Some('"' | '\'') => {
                    self.literal()?;
                    continue;
                }
                _ if self.word().is_empty() => {
                    return Err(self.mistake(start, "braces without an end"));
                }
                _ => continue,
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn mistake(&self, start: usize, message: &str) -> Box<Diagnostic> {
        let len = self.text[start..].chars().next().map_or(0, char::len_utf8);
        let span = Span::new(self.source, start, start + len);
        Box::new(Diagnostic::error(code::NSJAIL_SYNTAX, message).label(span, ""))
    }
}

impl Fields {
    fn add(&mut self, name: &str, literal: Literal) {
        match name {
            STRING => self.strings.push(literal),
            FILE => self.files.push(literal),
            _ => {}
        }
    }
}
