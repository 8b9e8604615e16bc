//! Replaces `@include` lines with the included files, like minijail: a file that is included twice counts twice.

use std::sync::Arc;

use tamis_diag::{Diagnostic, SourceId, Sources, Span};

use super::ast::{Name, Statement, StatementKind};
use super::{Dialect, lexer, library, parser};
use crate::budget::Budget;
use crate::code;
use crate::included::{first_mistake, help_to_find, not_a_policy};
use crate::limits::MAX_INCLUDE_DEPTH;
use crate::loader::Loader;
use crate::sink::Sink;

/// A policy with its included files.
#[derive(Debug)]
pub(super) struct Expanded {
    /// The lines with filters and defaults, in order.
    pub(super) statements: Vec<Statement>,
    /// The span of `@denylist` in the root.
    pub(super) denylist: Option<Span>,
    /// The frequency files, added to the sources.
    pub(super) frequencies: Vec<SourceId>,
    /// Whether minijail's library would also accept the policy.
    pub(super) is_for_library: bool,
}

/// Reads the root, already in the sources, and its included files.
pub(super) fn expand(
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    dialect: Dialect,
    sink: &mut Sink,
) -> Expanded {
    let mut expansion = Expansion {
        sources,
        loader,
        dialect,
        sink,
        open: Vec::new(),
        budget: Budget::new(code::MINIJAIL_LIMIT),
        expanded: Expanded {
            statements: Vec::new(),
            denylist: None,
            frequencies: Vec::new(),
            is_for_library: true,
        },
    };
    expansion.file(root, None);
    expansion.expanded
}

struct Expansion<'a> {
    sources: &'a mut Sources,
    loader: &'a mut dyn Loader,
    dialect: Dialect,
    sink: &'a mut Sink,
    /// The files from the root to the current one.
    open: Vec<Arc<str>>,
    budget: Budget,
    expanded: Expanded,
}

impl Expansion<'_> {
    /// Reads a file of the sources; `included_at` is absent for the root.
    fn file(&mut self, source: SourceId, included_at: Option<Span>) {
        let name = self.sources.name(source).clone();
        let text = self.sources.get(source).text.clone();
        if !self.budget.take(text.len(), included_at, self.sink) {
            return;
        }
        self.open.push(name.clone());
        let before = self.sink.len();
        let mut statements = parser::parse(source, &text, self.dialect, self.sink);
        if let Some(include) = included_at
            && statements.is_empty()
            && let Some(mistake) = self.sink.first_place_after(before)
        {
            self.sink.truncate(before);
            self.refuse(source, include, mistake);
        }
        let says = |statement: &&Statement| matches!(statement.kind, StatementKind::Denylist);
        let denylist = statements.iter().find(says).map(|statement| statement.span);
        match included_at {
            None => self.expanded.denylist = denylist,
            Some(include) => self.check_kind(include, denylist),
        }
        let is_include =
            |statement: &Statement| matches!(statement.kind, StatementKind::Include(_));
        if self.expanded.statements.is_empty() && !statements.iter().any(is_include) {
            // Retains in place, because the list may have a million statements.
            statements.retain(|statement| self.takes(statement, &text, &name));
            self.expanded.statements = statements;
        } else {
            for statement in statements {
                if self.takes(&statement, &text, &name) {
                    self.expanded.statements.push(statement);
                }
            }
        }
        self.open.pop();
    }

    /// Checks a statement, follows it if it names a file, and returns whether it belongs to the policy.
    fn takes(&mut self, statement: &Statement, text: &str, name: &Arc<str>) -> bool {
        if self.sink.is_finished() {
            return false;
        }
        if let Some(objection) = library::objection(statement) {
            match self.dialect {
                Dialect::C => self.sink.report(objection),
                Dialect::Python => self.expanded.is_for_library = false,
            }
        }
        if self.dialect == Dialect::C
            && let Some(objection) = library::misspelling(statement, text)
        {
            self.sink.report(objection);
        }
        match &statement.kind {
            StatementKind::Denylist => false,
            StatementKind::Include(path) => {
                self.include(path, name);
                false
            }
            StatementKind::Frequency(path) => {
                self.frequency(path, name);
                false
            }
            StatementKind::Default(_) | StatementKind::Filters { .. } => true,
        }
    }

    /// Reports an included file of the other kind: deny lists may include only deny lists, allow lists only allow
    /// lists.
    fn check_kind(&mut self, include: Span, denylist: Option<Span>) {
        let diagnostic = match (self.expanded.denylist, denylist) {
            (Some(root), None) => Diagnostic::error(
                code::MINIJAIL_DENYLIST,
                "a deny list includes an allow list",
            )
            .label(include, "this file has no `@denylist`")
            .label(root, "the policy is a deny list"),
            (None, Some(span)) => Diagnostic::error(
                code::MINIJAIL_DENYLIST,
                "an allow list includes a deny list",
            )
            .label(include, "this file has `@denylist`")
            .label(span, "here"),
            _ => return,
        };
        let help = "write `@denylist` in all of the files or in none";
        self.sink.report(diagnostic.help(help));
    }

    fn include(&mut self, path: &Name, from: &str) {
        let depth = match self.dialect {
            Dialect::C => 2,
            Dialect::Python => MAX_INCLUDE_DEPTH,
        };
        if self.open.len() == depth {
            let (code, message) = match self.dialect {
                Dialect::C => (
                    code::MINIJAIL_NOT_IN_DIALECT,
                    "an included file includes another".to_owned(),
                ),
                Dialect::Python => (
                    code::MINIJAIL_LIMIT,
                    format!("files include each other more than {MAX_INCLUDE_DEPTH} deep"),
                ),
            };
            let diagnostic = Diagnostic::error(code, message);
            self.sink
                .report(diagnostic.label(path.span, "this one is not included"));
            return;
        }
        let Some((name, text)) = self.load(path, from) else {
            return;
        };
        if self.open.iter().any(|open| **open == *name) {
            let message = format!("`{}` includes itself", path.text);
            let diagnostic = Diagnostic::error(code::MINIJAIL_CYCLE, message)
                .label(path.span, "included here")
                .note(format!("included from: {}", self.open.join(" → ")));
            self.sink.report(diagnostic);
            return;
        }
        let source = self.sources.add(name, text);
        let text = self.sources.get(source).text.clone();
        let lex = |sink: &mut Sink| {
            lexer::each_line(source, &text, self.dialect, sink, &mut |_, _| {});
        };
        match first_mistake(lex) {
            Some(mistake) => self.refuse(source, path.span, mistake),
            None => self.file(source, Some(path.span)),
        }
    }

    /// Reports an included file that is no policy.
    fn refuse(&mut self, source: SourceId, include: Span, mistake: Span) {
        let name = self.sources.name(source);
        let code = code::MINIJAIL_INCLUDE;
        let diagnostic = not_a_policy(code, name, include, self.sources, mistake);
        self.sink.report(diagnostic);
    }

    /// Reads an included file; reports a failure.
    fn load(&mut self, path: &Name, from: &str) -> Option<(String, String)> {
        // The library resolves paths relative to its working directory.
        let from = match self.dialect {
            Dialect::C => "",
            Dialect::Python => from,
        };
        match self.loader.load(&path.text, from) {
            Ok(loaded) => Some((loaded.name, loaded.text)),
            Err(reason) => {
                let message = format!("cannot include `{}`: {reason}", path.text);
                let relative = match self.dialect {
                    Dialect::C => "paths are relative to the working directory of tamis",
                    Dialect::Python => "paths are relative to the including file",
                };
                let diagnostic = Diagnostic::error(code::MINIJAIL_INCLUDE, message)
                    .label(path.span, "included here")
                    .help(help_to_find(&path.text, relative));
                self.sink.report(diagnostic);
                None
            }
        }
    }

    /// Adds a frequency file to the sources. It doesn't affect the meaning of the filter.
    fn frequency(&mut self, path: &Name, from: &str) {
        match self.loader.load(&path.text, from) {
            Ok(loaded) => {
                if self
                    .budget
                    .take(loaded.text.len(), Some(path.span), self.sink)
                {
                    let source = self.sources.add(loaded.name, loaded.text);
                    self.expanded.frequencies.push(source);
                }
            }
            Err(reason) => {
                let message = format!("no counts from `{}`: {reason}", path.text);
                let diagnostic = Diagnostic::warning(code::MINIJAIL_INCLUDE, message)
                    .label(path.span, "this line is ignored");
                self.sink.report(diagnostic);
            }
        }
    }
}
