//! Replaces `include` statements with the included files, and selected blocks with their statements.
//!
//! A file counts once: a second include adds nothing. This can't change the meaning, since the rules are already
//! present earlier and the first match decides. A file that includes itself is an error. The files of other languages are
//! only found here: [`foreign`](super::foreign) reads them.

use std::collections::HashSet;
use std::sync::Arc;

use tamis_diag::{Diagnostic, SourceId, Sources, Span};

use super::ast::{Name, Policy, Statement, StatementKind};
use super::{lexer, parser};
use crate::code;
use crate::front_end::{self, FrontEnd};
use crate::included::{first_mistake, help_to_find, not_of_language};
use crate::limits::{MAX_INCLUDE_DEPTH, MAX_SOURCE_BYTES};
use crate::loader::Loader;
use crate::sink::Sink;

/// A language with `include` statements.
#[derive(Debug)]
pub struct IncludingLanguage<S> {
    /// A file of the language with its article: `a policy`.
    pub file: &'static str,
    /// Parses the statements of one file.
    pub parse: fn(SourceId, &str, &mut Sink) -> Vec<S>,
    /// The statement that stands for an included file in another language; `None` if there are none.
    pub foreign: Option<fn(Name) -> S>,
}

/// An included file in another language.
#[derive(Clone, Copy, Debug)]
pub struct ForeignFile {
    /// The path in the `include` statement.
    pub(super) path: Span,
    pub(super) source: SourceId,
    pub(super) front_end: &'static FrontEnd,
}

/// The statements of a file and of those that it includes.
#[derive(Debug)]
pub struct Expanded<S> {
    /// In order, with one for each file in another language.
    pub statements: Vec<S>,
    /// Those files.
    pub foreign: Vec<ForeignFile>,
}

/// Policies in the tamis language.
pub(super) const POLICIES: IncludingLanguage<Statement> = IncludingLanguage {
    file: "a policy",
    parse: |source, text, sink| {
        let Policy { statements } = parser::parse(source, text, sink);
        statements
    },
    foreign: Some(|path| Statement {
        span: path.span,
        kind: StatementKind::Include(path),
    }),
};

/// What a statement contributes.
#[derive(Debug)]
pub enum Placed<S> {
    /// The statements of the file with this path.
    Include(Name),
    /// These statements, each of which is placed in turn.
    Block(Vec<S>),
    /// Itself.
    Statement(S),
    /// Nothing.
    Nothing,
}

/// Places a statement.
pub type Place<'a, S> = dyn FnMut(S, &mut Sink) -> Placed<S> + 'a;

/// The statements of the root and of its included files, in order.
pub fn expand<S>(
    language: &IncludingLanguage<S>,
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    place: &mut Place<'_, S>,
    sink: &mut Sink,
) -> Expanded<S> {
    let mut expansion = Expansion {
        language,
        sources,
        loader,
        place,
        sink,
        open: Vec::new(),
        done: HashSet::new(),
        source_bytes: 0,
        statements: Vec::new(),
        foreign: Vec::new(),
    };
    expansion.file(root, None);
    Expanded {
        statements: expansion.statements,
        foreign: expansion.foreign,
    }
}

/// The language of a file that has the extension and the look of one other than tamis.
fn other_language(name: &str, text: &str) -> Option<&'static FrontEnd> {
    let found = front_end::of_file(name, text)?;
    let is_other = found.name != super::FRONT_END.name && !parser::recognises(text);
    (is_other && (found.recognises)(text)).then_some(found)
}

struct Expansion<'a, S> {
    language: &'a IncludingLanguage<S>,
    sources: &'a mut Sources,
    loader: &'a mut dyn Loader,
    place: &'a mut Place<'a, S>,
    sink: &'a mut Sink,
    /// The files from the root to the current one.
    open: Vec<Arc<str>>,
    /// The completely read files.
    done: HashSet<Arc<str>>,
    source_bytes: usize,
    statements: Vec<S>,
    foreign: Vec<ForeignFile>,
}

impl<S> Expansion<'_, S> {
    /// Reads a file of the sources; `included_at` is absent for the root.
    fn file(&mut self, source: SourceId, included_at: Option<Span>) {
        let name = self.sources.name(source).clone();
        let text = self.sources.get(source).text.clone();
        self.source_bytes += text.len();
        if self.source_bytes > MAX_SOURCE_BYTES {
            let diagnostic = Diagnostic::error(
                code::FILE_TOO_LARGE,
                format!(
                    "{} of more than {} MiB",
                    self.language.file,
                    MAX_SOURCE_BYTES >> 20
                ),
            );
            self.sink.report(match included_at {
                Some(span) => diagnostic.label(span, "with this file"),
                None => diagnostic.note(format!("{name} has {} bytes", text.len())),
            });
            return;
        }
        self.open.push(name.clone());
        let before = self.sink.len();
        let statements = (self.language.parse)(source, &text, self.sink);
        if let Some(include) = included_at
            && statements.is_empty()
        {
            self.hide_mistakes(before, source, include);
        }
        for statement in statements {
            self.place(statement, &name);
        }
        self.open.pop();
        self.done.insert(name);
    }

    /// Adds what a statement of a file contributes.
    fn place(&mut self, statement: S, file: &str) {
        match (self.place)(statement, self.sink) {
            Placed::Include(path) => self.include(&path, file),
            Placed::Block(statements) => {
                for statement in statements {
                    self.place(statement, file);
                }
            }
            Placed::Statement(statement) => self.statements.push(statement),
            Placed::Nothing => {}
        }
    }

    fn include(&mut self, path: &Name, from: &str) {
        if self.open.len() == MAX_INCLUDE_DEPTH {
            self.sink.report(
                Diagnostic::error(
                    code::TAMIS_LIMIT,
                    format!("files include each other more than {MAX_INCLUDE_DEPTH} deep"),
                )
                .label(path.span, "this one is not included"),
            );
            return;
        }
        let loaded = match self.loader.load(&path.text, from) {
            Ok(loaded) => loaded,
            Err(reason) => {
                self.sink.report(
                    Diagnostic::error(
                        code::INCLUDE_FAILED,
                        format!("cannot include `{path}`: {reason}"),
                    )
                    .label(path.span, "included here")
                    .help(help_to_find(
                        &path.text,
                        "paths are relative to the including file",
                    )),
                );
                return;
            }
        };
        if self.open.iter().any(|open| **open == *loaded.name) {
            self.sink.report(
                Diagnostic::error(code::INCLUDE_CYCLE, format!("`{path}` includes itself"))
                    .label(path.span, "included here")
                    .note(format!("included from: {}", self.open.join(" → "))),
            );
            return;
        }
        if self.done.contains(loaded.name.as_str()) {
            return;
        }
        // Some editors write a byte order mark.
        let own = loaded.text.strip_prefix('\u{feff}').unwrap_or(&loaded.text);
        let source = self.sources.add(loaded.name, own);
        let text = self.sources.get(source).text.clone();
        if let Some(statement) = self.language.foreign
            && let Some(front_end) = other_language(self.sources.name(source), &text)
        {
            self.done.insert(self.sources.name(source).clone());
            self.foreign.push(ForeignFile {
                path: path.span,
                source,
                front_end,
            });
            self.statements.push(statement(path.clone()));
            return;
        }
        let lex = |sink: &mut Sink| drop(lexer::tokens(source, &text, sink));
        match first_mistake(lex) {
            Some(mistake) => self.refuse(source, path.span, mistake),
            None => self.file(source, Some(path.span)),
        }
    }

    /// Replaces the diagnostics of an included file without any statement.
    fn hide_mistakes(&mut self, before: usize, source: SourceId, include: Span) {
        if let Some(mistake) = self.sink.first_place_after(before) {
            self.sink.truncate(before);
            self.refuse(source, include, mistake);
        }
    }

    fn refuse(&mut self, source: SourceId, include: Span, mistake: Span) {
        let name = self.sources.name(source);
        let code = code::INCLUDE_FAILED;
        let diagnostic = not_of_language(
            self.language.file,
            code,
            name,
            include,
            self.sources,
            mistake,
        );
        self.sink.report(diagnostic);
    }
}
