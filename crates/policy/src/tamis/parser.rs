//! From tokens to the syntax tree: statements. Conditions and values are in `expression`.
//!
//! A language whose statements have the same targets, actions and definitions brings its own parser of a statement
//! and the words that begin one: [`Parser::statements`] does the rest.
//!
//! Recursive descent with one token of lookahead. An error ends its statement: the parser reports it and continues at
//! the next line that seems to begin a statement (by its first word, or by an indentation not greater than that of the
//! broken one), so one run reports several errors. Recursion is bounded by [`MAX_NESTING`].

#![expect(
    clippy::missing_errors_doc,
    reason = "every error is an abandoned statement, which has been reported"
)]

mod choice;
mod expression;
mod kernel;

pub use expression::is_constant_name;

use tamis_abi::{ActionKind, signature, syscall};
use tamis_diag::{Diagnostic, SourceId, Span, suggest};
use tamis_rules::VariableWidth;

use super::ast::{
    Answer, Constant, Declaration, Fallback, Name, Policy, Statement, StatementKind, Target,
    TargetKind, Verb,
};
use super::lexer::{self, Token, TokenKind};
use crate::code;
use crate::front_end::{first_line, first_word};
use crate::limits::MAX_NESTING;
use crate::sink::Sink;

/// The words that begin statements, in addition to the verbs of rules.
const STATEMENT_WORDS: [&str; 11] = [
    "arch",
    "default",
    "bad-arch",
    "unknown",
    "known-until",
    "include",
    "let",
    "set",
    "on",
    "param",
    "when",
];

/// Parses one file; errors are reported to the sink, and their statements are omitted.
pub(super) fn parse(source: SourceId, text: &str, sink: &mut Sink) -> Policy {
    let mut parser = Parser::new(source, text, is_statement_word, sink);
    Policy {
        statements: parser.statements(false, Parser::statement),
    }
}

/// The mark of a statement that was abandoned after its error was reported.
#[derive(Clone, Copy, Debug)]
pub struct Abandon;

/// The result of parsing a part; an error has been reported.
pub type ParseResult<T> = Result<T, Abandon>;

/// The parser of one file.
#[derive(Debug)]
pub struct Parser<'a> {
    text: &'a str,
    /// Whether a word begins a statement.
    begins_statement: fn(&str) -> bool,
    tokens: Vec<Token>,
    /// The index of the next token; at most that of the last, which is the end.
    at: usize,
    /// The nesting depth of the current expression.
    depth: usize,
    /// The count of open braces.
    open_braces: usize,
    /// Whether the current statement is in an `on` block.
    is_in_on_block: bool,
    sink: &'a mut Sink,
}

impl<'a> Parser<'a> {
    /// The parser of a text whose statements begin with certain words.
    pub fn new(
        source: SourceId,
        text: &'a str,
        begins_statement: fn(&str) -> bool,
        sink: &'a mut Sink,
    ) -> Parser<'a> {
        Parser {
            text,
            begins_statement,
            tokens: lexer::tokens(source, text, sink),
            at: 0,
            depth: 0,
            open_braces: 0,
            is_in_on_block: false,
            sink,
        }
    }

    /// Statements up to the end of the file or, inside a block, up to its closing brace.
    pub fn statements<T>(
        &mut self,
        inside_block: bool,
        statement: fn(&mut Self) -> ParseResult<T>,
    ) -> Vec<T> {
        let base = self.open_braces;
        let mut statements = Vec::new();
        loop {
            let is_over = self.peek() == TokenKind::End || self.sink.is_finished();
            if is_over || inside_block && self.is_next("}") {
                return statements;
            }
            let start = self.at;
            match statement(self) {
                Ok(statement) => statements.push(statement),
                Err(Abandon) => self.recover(start, base, inside_block),
            }
        }
    }

    /// Skips to the possible beginning of the statement after the one that began at `start`.
    fn recover(&mut self, start: usize, base: usize, inside_block: bool) {
        if self.at == start {
            self.advance();
        }
        let broken_indent = self.tokens[start].indent.unwrap_or(0);
        loop {
            let token = self.tokens[self.at];
            let ends_block = inside_block && self.open_braces <= base && self.is_next("}");
            let begins_statement = token.indent.is_some_and(|indent| {
                let is_word = token.kind == TokenKind::Name;
                let begins = || (self.begins_statement)(self.text_of(token.span));
                is_word && (indent <= broken_indent || begins())
            });
            if token.kind == TokenKind::End || ends_block || begins_statement {
                self.open_braces = base;
                return;
            }
            self.advance();
        }
    }

    fn statement(&mut self) -> ParseResult<Statement> {
        let first = self.tokens[self.at];
        let word = match first.kind {
            TokenKind::Name => self.text_of(first.span),
            _ => "",
        };
        let kind = if let Some(verb) = Verb::from_word(word) {
            let answer = self.answer(verb)?;
            StatementKind::Rule(answer, self.targets()?)
        } else {
            match word {
                "arch" => {
                    self.advance();
                    StatementKind::Arch(self.names("an architecture")?)
                }
                "default" => self.fallback(Fallback::Default)?,
                "bad-arch" => self.fallback(Fallback::BadArch)?,
                "unknown" => self.fallback(Fallback::Unknown)?,
                "known-until" => self.known_until()?,
                "include" => {
                    self.advance();
                    StatementKind::Include(self.quoted("a file name in quotes")?)
                }
                "let" => self.let_statement()?,
                "set" => self.set_statement()?,
                "on" => self.on_statement()?,
                "param" => self.parameter()?,
                "when" if !self.is_condition_of_call(first) => self.when_statement()?,
                _ => return Err(self.not_a_statement(first)),
            }
        };
        let last = self.tokens[self.at.saturating_sub(1)];
        Ok(Statement {
            kind,
            span: first.span.to(last.span),
        })
    }

    fn fallback(&mut self, fallback: Fallback) -> ParseResult<StatementKind> {
        self.advance();
        Ok(StatementKind::Fallback(fallback, self.action()?))
    }

    /// A text in quotes, without them.
    pub fn quoted(&mut self, what: &str) -> ParseResult<Name> {
        let span = self.expect(TokenKind::Text, what)?;
        let text = self.text_of(span);
        Ok(Name {
            text: text[1..text.len() - 1].to_owned(),
            span,
        })
    }

    /// An action.
    pub fn action(&mut self) -> ParseResult<Answer> {
        let word = self.expect(TokenKind::Name, "an action")?;
        self.at -= 1;
        let Some(verb) = Verb::from_word(self.text_of(word)) else {
            let typed = self.text_of(word).to_owned();
            let known = Verb::ALL.into_iter().map(Verb::word);
            let diagnostic = syntax(word, format!("`{typed}` is not an action"))
                .help(did_you_mean(&typed, known, "the actions are"));
            return Err(self.abandon(diagnostic));
        };
        self.answer(verb)
    }

    /// An action; the next token is its verb.
    fn answer(&mut self, verb: Verb) -> ParseResult<Answer> {
        let word = self.advance();
        let takes_value = matches!(
            verb,
            Verb::Plain(ActionKind::Errno | ActionKind::Trap | ActionKind::Trace)
        );
        let mut span = word;
        let mut data = None;
        if takes_value && self.take("(") {
            data = Some(self.value()?);
            span = span.to(self.expect_symbol(")")?);
        } else if verb == Verb::Plain(ActionKind::Errno) {
            let diagnostic = syntax(word, "`errno` without a value").help(
                "write the errno in parentheses, such as `errno(ENOSYS)`, or `deny` for EPERM",
            );
            return Err(self.abandon(diagnostic));
        }
        Ok(Answer { verb, data, span })
    }

    /// `let NAME = …`, or `let name: u32`.
    pub fn let_statement(&mut self) -> ParseResult<StatementKind> {
        self.advance();
        let name = self.expect_name("a name")?;
        if self.take(":") {
            return self.declaration(name).map(StatementKind::Variable);
        }
        if !expression::is_constant_name(&name.text) {
            let upper = name.text.to_uppercase().replace('-', "_");
            let diagnostic = syntax(name.span, format!("`{name}` is not the name of a constant"))
                .note("constants are written in capitals, arguments of calls in lower case")
                .help(format!(
                    "write `let {upper} = …`, or `let {name}: u32` if its value is only known at run time"
                ));
            return Err(self.abandon(diagnostic));
        }
        self.expect_symbol("=")?;
        let constant = if self.is_next("{") {
            Constant::Set(self.braced_elements()?.0)
        } else {
            Constant::Value(self.value()?)
        };
        Ok(StatementKind::Let(name, constant))
    }

    /// The declaration after the colon: `u32`, `u64[4]`, `u32 in 3..1023`.
    fn declaration(&mut self, name: Name) -> ParseResult<Declaration> {
        if expression::is_constant_name(&name.text) || name.text.contains('-') {
            let lower = name.text.to_lowercase().replace('-', "_");
            let diagnostic = syntax(name.span, format!("`{name}` is not the name of a variable"))
                .note("variables are written in lower case, constants in capitals")
                .help(format!("write `let {lower}: …`"));
            return Err(self.abandon(diagnostic));
        }
        let width = self.expect(TokenKind::Name, "`u32` or `u64`")?;
        let Some(width) = VariableWidth::from_name(self.text_of(width)) else {
            let diagnostic = syntax(width, "variables are `u32` or `u64`");
            return Err(self.abandon(diagnostic));
        };
        let mut count = None;
        if self.take("[") {
            count = Some(self.number()?.0);
            self.expect_symbol("]")?;
        }
        let is_ranged = self.peek() == TokenKind::Name
            && self.tokens[self.at].indent.is_none()
            && self.text_of(self.tokens[self.at].span) == "in";
        let mut range = None;
        if is_ranged {
            self.advance();
            let first = self.value()?;
            self.expect_symbol("..")?;
            range = Some((first, self.value()?));
        }
        Ok(Declaration {
            name,
            width,
            count,
            range,
        })
    }

    /// `set @name = { … }`.
    pub fn set_statement(&mut self) -> ParseResult<StatementKind> {
        self.advance();
        let span = self.expect(TokenKind::SetName, "a set's name such as `@mine`")?;
        let name = self.name_at(span);
        self.expect_symbol("=")?;
        self.expect_symbol("{")?;
        let mut members = Vec::new();
        while !self.is_next("}") {
            members.push(match self.peek() {
                TokenKind::SetName | TokenKind::Name => {
                    let span = self.advance();
                    self.name_at(span)
                }
                _ => return Err(self.unexpected("a system call or a set")),
            });
            if !self.take(",") && !self.is_next("}") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        self.advance();
        Ok(StatementKind::Set(name, members))
    }

    fn on_statement(&mut self) -> ParseResult<StatementKind> {
        let word = self.advance();
        if self.is_in_on_block {
            let diagnostic = syntax(word, "`on` inside an `on` block")
                .help("write the blocks one after the other");
            return Err(self.abandon(diagnostic));
        }
        let arches = self.names("an architecture")?;
        self.expect_symbol("{")?;
        self.is_in_on_block = true;
        let body = self.statements(true, Parser::statement);
        self.is_in_on_block = false;
        self.expect_symbol("}")?;
        Ok(StatementKind::On(arches, body))
    }

    /// One name or several, separated by commas.
    pub fn names(&mut self, what: &str) -> ParseResult<Vec<Name>> {
        let mut names = vec![self.expect_name(what)?];
        while self.take(",") {
            names.push(self.expect_name(what)?);
        }
        Ok(names)
    }

    /// Targets separated by commas.
    pub fn targets(&mut self) -> ParseResult<Vec<Target>> {
        let mut targets = vec![self.target()?];
        while self.take(",") {
            targets.push(self.target()?);
        }
        Ok(targets)
    }

    fn target(&mut self) -> ParseResult<Target> {
        let first = self.tokens[self.at];
        let word = self.text_of(first.span);
        let kind = match first.kind {
            TokenKind::SetName => TargetKind::Set(self.name_at(first.span)),
            TokenKind::Name if word == "nr" => return self.numbers(),
            TokenKind::Name if !(self.begins_statement)(word) || syscall::is_known(word) => {
                TargetKind::Call(self.name_at(first.span))
            }
            _ => return Err(self.unexpected("a system call, a `@set` or `nr`")),
        };
        self.advance();
        self.conditioned(kind, first.span)
    }

    fn numbers(&mut self) -> ParseResult<Target> {
        let word = self.advance();
        let first = self.value()?;
        let last = if self.take("..") {
            Some(self.value()?)
        } else {
            None
        };
        let end = last.as_ref().unwrap_or(&first).span;
        self.conditioned(TargetKind::Numbers(first, last), word.to(end))
    }

    /// A target with its optional condition.
    fn conditioned(&mut self, kind: TargetKind, span: Span) -> ParseResult<Target> {
        if !self.take("(") {
            return Ok(Target {
                kind,
                when: None,
                span,
            });
        }
        let when = self.condition()?;
        let end = self.expect_symbol(")")?;
        if let TargetKind::Set(set) = &kind {
            let diagnostic = syntax(when.span, "a condition on a set of calls")
                .note("different calls have different arguments")
                .help(format!(
                    "name the calls of `{set}` that the condition applies to"
                ));
            return Err(self.abandon(diagnostic));
        }
        Ok(Target {
            kind,
            when: Some(when),
            span: span.to(end),
        })
    }

    /// A condition as written, if this word follows a call and seems to begin one: it is an argument, or begins a
    /// condition in another language.
    fn condition_begun_by(&self, word: &str) -> Option<String> {
        let before = self.tokens[self.at.checked_sub(1)?];
        let call = self.text_of(before.span);
        let mut args = signature::args(call)?.iter();
        let argument = match word {
            "if" | "when" | "where" => args.next(),
            _ => args.find(|arg| arg.name() == word),
        }?;
        Some(format!("{call}({} == 1)", argument.name()))
    }

    fn not_a_statement(&mut self, token: Token) -> Abandon {
        let typed = self.text_of(token.span).to_owned();
        let diagnostic = match token.kind {
            TokenKind::End => syntax(token.span, "a statement is missing"),
            _ => syntax(token.span, format!("`{typed}` is not a statement")),
        };
        let words = || STATEMENT_WORDS.into_iter().chain(Verb::ALL.map(Verb::word));
        let diagnostic = if syscall::is_known(&typed) {
            diagnostic.help(format!(
                "write an action before it, `allow {typed}`, or a comma"
            ))
        } else if let Some(condition) = self.condition_begun_by(&typed) {
            diagnostic.help(format!("write a condition in parentheses: `{condition}`"))
        } else {
            diagnostic.help(did_you_mean(&typed, words(), "statements begin with"))
        };
        self.abandon(diagnostic)
    }

    // Tokens.

    /// The next token, if it is a word.
    pub fn next_word(&self) -> Option<&str> {
        let token = self.tokens[self.at];
        (token.kind == TokenKind::Name).then(|| self.text_of(token.span))
    }

    /// The span of the next token.
    pub fn next_span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// The span of the last consumed token.
    pub fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// Whether a text in quotes is next.
    pub fn is_quoted_next(&self) -> bool {
        self.peek() == TokenKind::Text
    }

    /// The end of the text.
    pub fn expect_end(&mut self) -> ParseResult<()> {
        match self.peek() {
            TokenKind::End => Ok(()),
            _ => Err(self.unexpected("the end")),
        }
    }

    /// Consumes a word if it is next.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.next_word() == Some(word);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes a word.
    pub fn expect_word(&mut self, word: &str) -> ParseResult<Span> {
        match self.take_word(word) {
            true => Ok(self.last_span()),
            false => Err(self.unexpected(&format!("`{word}`"))),
        }
    }

    fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    /// Whether a symbol is next.
    pub fn is_next(&self, symbol: &str) -> bool {
        matches!(self.peek(), TokenKind::Symbol(found) if found == symbol)
    }

    fn text_of(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn name_at(&self, span: Span) -> Name {
        Name {
            text: self.text_of(span).to_owned(),
            span,
        }
    }

    /// Consumes the next token, except the end.
    fn advance(&mut self) -> Span {
        let token = self.tokens[self.at];
        match token.kind {
            TokenKind::Symbol("{") => self.open_braces += 1,
            TokenKind::Symbol("}") => self.open_braces = self.open_braces.saturating_sub(1),
            _ => {}
        }
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token.span
    }

    /// Consumes a symbol if it is next.
    pub fn take(&mut self, symbol: &str) -> bool {
        let found = self.is_next(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind, what: &str) -> ParseResult<Span> {
        if self.peek() == kind {
            Ok(self.advance())
        } else {
            Err(self.unexpected(what))
        }
    }

    /// A name.
    pub fn expect_name(&mut self, what: &str) -> ParseResult<Name> {
        let span = self.expect(TokenKind::Name, what)?;
        Ok(self.name_at(span))
    }

    /// A symbol.
    pub fn expect_symbol(&mut self, symbol: &'static str) -> ParseResult<Span> {
        self.expect(TokenKind::Symbol(symbol), &format!("`{symbol}`"))
    }

    /// Reports the next token, in whose place something else is expected.
    pub fn unexpected(&mut self, expected: &str) -> Abandon {
        let token = self.tokens[self.at];
        let found = match token.kind {
            TokenKind::End => "the end of the file".to_owned(),
            _ => format!("`{}`", self.text_of(token.span)),
        };
        self.abandon(syntax(
            token.span,
            format!("expected {expected}, found {found}"),
        ))
    }

    /// Reports an error, unless the lexer already did.
    pub fn abandon(&mut self, diagnostic: Diagnostic) -> Abandon {
        if self.peek() != TokenKind::Broken {
            self.sink.report(diagnostic);
        }
        Abandon
    }

    /// Runs a parser one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth == MAX_NESTING {
            let span = self.tokens[self.at].span;
            let diagnostic = Diagnostic::error(
                code::TAMIS_LIMIT,
                format!("expression nested more than {MAX_NESTING} levels deep"),
            )
            .label(span, "one level too many");
            return Err(self.abandon(diagnostic));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }
}

/// Whether a text begins with a statement.
pub(super) fn recognises(text: &str) -> bool {
    let word = first_word(text);
    word.len() < first_line(text).len() && is_statement_word(word)
}

/// The fewest letters of a first word that may be a misspelt statement: most words of two or three letters resemble
/// `on` or `set`.
const MIN_MISSPELT_CHARS: usize = 4;

/// Whether a text that doesn't begin with a statement may still be a policy with a mistake at its beginning: its first
/// word is the name of a call or similar to that of a statement, or half of its lines begin with statements.
pub(super) fn is_conceivable(text: &str) -> bool {
    let separates = |c: char| c.is_whitespace() || c == ',' || c == '(';
    let first = first_line(text).split(separates).next().unwrap_or("");
    let words = || STATEMENT_WORDS.into_iter().chain(Verb::ALL.map(Verb::word));
    let is_near =
        || first.len() >= MIN_MISSPELT_CHARS && suggest::nearest(first, words()).is_some();
    let is_set = first.starts_with('@');
    if first.is_empty()
        || is_set
        || is_statement_word(first)
        || syscall::is_known(first)
        || is_near()
    {
        return true;
    }
    let is_comment = |line: &str| line.starts_with('#') || line.starts_with("//");
    let is_counted = |line: &&str| {
        !line.trim().is_empty() && !is_comment(line) && !line.starts_with([' ', '\t', '}'])
    };
    let lines = text.lines().filter(is_counted);
    let (mut statements, mut others) = (0_usize, 0_usize);
    for line in lines {
        match recognises(line) {
            true => statements += 1,
            false => others += 1,
        }
    }
    statements >= others
}

fn is_statement_word(word: &str) -> bool {
    STATEMENT_WORDS.contains(&word) || Verb::from_word(word).is_some()
}

/// A syntax error with an unlabelled span.
pub fn syntax(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code::TAMIS_SYNTAX, message).label(span, "")
}

/// The nearest of the known words, or all of them.
pub fn did_you_mean<'a>(
    typed: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    otherwise: &str,
) -> String {
    match suggest::nearest(typed, known.clone()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => {
            let all: Vec<String> = known.map(|word| format!("`{word}`")).collect();
            format!("{otherwise} {}", all.join(", "))
        }
    }
}
