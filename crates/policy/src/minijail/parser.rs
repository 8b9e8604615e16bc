//! From lines of tokens to statements. A line with an error is omitted, and parsing continues with the next.
//!
//! The grammar is that of the compile tool; [`super::library`] finds features that the library lacks.

use tamis_abi::ArgIndex;
use tamis_diag::limits::{MAX_TOKENS, too_many_tokens};
use tamis_diag::{Diagnostic, SourceId, Span, suggest};
use tamis_rules::CmpOp;

use super::Dialect;
use super::ast::{
    Action, ActionWord, Atom, Call, Calls, Filter, Filters, Name, Operator, Statement,
    StatementKind, Value, ValueKind,
};
use super::lexer::{self, Token, TokenKind};
use crate::code;
use crate::limits::MAX_NESTING;
use crate::literal::c_integer;
use crate::sink::Sink;

const DIRECTIVES: [&str; 4] = ["@include", "@frequency", "@default", "@denylist"];
const ACTIONS: [(&str, ActionWord); 8] = [
    ("allow", ActionWord::Allow),
    ("kill", ActionWord::Kill),
    ("kill-process", ActionWord::KillProcess),
    ("kill-thread", ActionWord::KillThread),
    ("trap", ActionWord::Trap),
    ("trace", ActionWord::Trace),
    ("log", ActionWord::Log),
    ("user-notify", ActionWord::UserNotify),
];
const OPERATORS: [(&str, Operator); 7] = [
    ("==", Operator::Compare(CmpOp::Eq)),
    ("!=", Operator::Compare(CmpOp::Ne)),
    ("<", Operator::Compare(CmpOp::Lt)),
    ("<=", Operator::Compare(CmpOp::Le)),
    (">", Operator::Compare(CmpOp::Gt)),
    (">=", Operator::Compare(CmpOp::Ge)),
    ("&", Operator::AnyBit),
];

/// The result of a parser step; an error discards the line.
type Step<T> = Result<T, Box<Diagnostic>>;

/// The statements of a text.
pub(super) fn parse(
    source: SourceId,
    text: &str,
    dialect: Dialect,
    sink: &mut Sink,
) -> Vec<Statement> {
    // A line of a call has three tokens.
    let lines = text.lines().count().min(MAX_TOKENS / 3);
    let mut statements = Vec::with_capacity(lines);
    let mut take = |tokens: &[Token], sink: &mut Sink| {
        let mut line = Line {
            text,
            tokens,
            at: 0,
            depth: 0,
        };
        match line.statement() {
            Ok(statement) => statements.push(statement),
            Err(diagnostic) => sink.report(*diagnostic),
        }
    };
    let cut = lexer::each_line(source, text, dialect, sink, &mut take);
    if let Some(cut) = cut {
        sink.report(Diagnostic::error(code::MINIJAIL_LIMIT, too_many_tokens()).label(cut, ""));
    }
    statements
}

/// Whether a line resembles one of a policy: a directive, or a call with a filter.
pub(super) fn recognises(line: &str) -> bool {
    let word = |text: &str| {
        text.split(char::is_whitespace)
            .next()
            .unwrap_or("")
            .to_owned()
    };
    if DIRECTIVES.contains(&word(line).as_str()) {
        return true;
    }
    let Some((calls, filter)) = line.split_once(':') else {
        return false;
    };
    let filter = filter.trim_start();
    let is_call = |c: char| c.is_ascii_alphanumeric() || "_{}[]=,@ \t".contains(c);
    let verb = word(filter.split([';', ',', '}']).next().unwrap_or(""));
    let is_argument = verb
        .strip_prefix("arg")
        .is_some_and(|n| n.parse::<u8>().is_ok());
    let is_action = ACTIONS.iter().any(|(action, _)| *action == verb);
    let is_filter = is_argument || is_action || filter.starts_with('{');
    calls.chars().all(is_call) && (is_filter || verb == "1" || verb == "return")
}

/// One line.
struct Line<'l> {
    text: &'l str,
    /// At least one token.
    tokens: &'l [Token],
    at: usize,
    /// The count of open parentheses.
    depth: usize,
}

impl Line<'_> {
    fn statement(&mut self) -> Step<Statement> {
        let first = self.tokens[0];
        let kind = if first.kind == TokenKind::Directive {
            self.at += 1;
            self.directive(first.span)?
        } else {
            let calls = self.calls()?;
            self.symbol(":", "`:` and a filter")?;
            let filters = self.filters()?;
            StatementKind::Filters { calls, filters }
        };
        if self.at < self.tokens.len() {
            return Err(self.unexpected("the end of the line"));
        }
        Ok(Statement {
            kind,
            span: first.span.to(self.previous()),
        })
    }

    fn directive(&mut self, span: Span) -> Step<StatementKind> {
        match self.text_of(span) {
            "@include" => self.path().map(StatementKind::Include),
            "@frequency" => self.path().map(StatementKind::Frequency),
            "@default" => self.action().map(StatementKind::Default),
            "@denylist" => self.denylist(span),
            other => {
                let diagnostic = syntax(span, format!("unknown directive `{other}`"));
                Err(Box::new(match suggest::nearest(other, DIRECTIVES) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help(format!("there are {}", DIRECTIVES.join(", "))),
                }))
            }
        }
    }

    /// Parses `@denylist`, which is a directive for the compile tool only if it is alone on the line.
    fn denylist(&self, span: Span) -> Step<StatementKind> {
        let behind = &self.text[span.end as usize..];
        let behind = behind.lines().next().unwrap_or("");
        if behind.is_empty() {
            return Ok(StatementKind::Denylist);
        }
        let rest = Span {
            start: span.end,
            end: span.end + behind.len() as u32,
            ..span
        };
        let message = "unexpected text after `@denylist`";
        let diagnostic = Diagnostic::error(code::MINIJAIL_SYNTAX, message)
            .label(rest, "the line must end here, without a space or comment")
            .help("put the comment on its own line");
        Err(Box::new(diagnostic))
    }

    fn path(&mut self) -> Step<Name> {
        let path = self.expect(TokenKind::Path, "a path that begins with `/` or `./`")?;
        Ok(self.name_at(path))
    }

    fn calls(&mut self) -> Step<Calls> {
        let (list, brace) = self.one_or_several(Self::call)?;
        Ok(Calls { list, brace })
    }

    fn filters(&mut self) -> Step<Filters> {
        let (list, brace) = self.one_or_several(Self::filter)?;
        Ok(Filters { list, brace })
    }

    /// An element, or several in braces.
    fn one_or_several<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Step<T>,
    ) -> Step<(Vec<T>, Option<Span>)> {
        if !self.take("{") {
            return Ok((vec![element(self)?], None));
        }
        let brace = self.previous();
        let mut list = vec![element(self)?];
        while self.take(",") {
            list.push(element(self)?);
        }
        self.symbol("}", "`,` or `}`")?;
        Ok((list, Some(brace)))
    }

    fn call(&mut self) -> Step<Call> {
        let name = self.expect(TokenKind::Name, "the name of a system call")?;
        let name = self.name_at(name);
        let qualifier = if self.take("[") {
            let bracket = self.previous();
            Some(Box::new((bracket, self.qualifier()?)))
        } else {
            None
        };
        Ok(Call { name, qualifier })
    }

    /// `arch=NAME,NAME]`.
    fn qualifier(&mut self) -> Step<Vec<Name>> {
        let key = self.expect(TokenKind::Name, "`arch=` and the names of architectures")?;
        if self.text_of(key) != "arch" {
            let message = format!("unknown qualifier `{}`", self.text_of(key));
            let diagnostic = Diagnostic::error(code::MINIJAIL_ARCH, message)
                .label(key, "")
                .help("the one qualifier is `arch`: `read[arch=x86_64,arm64]`");
            return Err(Box::new(diagnostic));
        }
        self.symbol("=", "`=`")?;
        let mut names = Vec::new();
        loop {
            let name = self.expect(TokenKind::Name, "the name of an architecture")?;
            names.push(self.name_at(name));
            if !self.take(",") {
                break;
            }
        }
        self.symbol("]", "`,` or `]`")?;
        Ok(names)
    }

    fn filter(&mut self) -> Step<Filter> {
        let start = self.at;
        let (condition, action) = if self.argument_index(self.at).is_some() {
            let condition = self.condition()?;
            let action = match self.take(";") {
                true => Some(self.action()?),
                false => None,
            };
            (Some(condition), action)
        } else {
            (None, Some(self.action()?))
        };
        Ok(Filter {
            condition,
            action,
            span: self.tokens[start].span.to(self.previous()),
        })
    }

    /// Alternatives of conjunctions.
    fn condition(&mut self) -> Step<Vec<Vec<Atom>>> {
        let mut alternatives = Vec::new();
        loop {
            let mut atoms = vec![self.atom()?];
            while self.take("&&") {
                atoms.push(self.atom()?);
            }
            alternatives.push(atoms);
            if !self.take("||") {
                return Ok(alternatives);
            }
        }
    }

    fn atom(&mut self) -> Step<Atom> {
        let Some(index) = self.argument_index(self.at) else {
            return Err(self.unexpected("an argument, `arg0` to `arg5`"));
        };
        let span = self.tokens[self.at].span;
        let Some(arg) = index.parse().ok().and_then(ArgIndex::new) else {
            let message = format!("there is no argument `arg{index}`");
            let diagnostic = Diagnostic::error(code::MINIJAIL_ARGUMENT, message)
                .label(span, "system calls have six, `arg0` to `arg5`");
            return Err(Box::new(diagnostic));
        };
        self.at += 1;
        let op = self.operator()?;
        let left = [span, self.previous()];
        let value = self.value()?;
        Ok(Atom {
            arg,
            op,
            value,
            left,
        })
    }

    /// The digits of an argument's name, if the token is one.
    fn argument_index(&self, at: usize) -> Option<&str> {
        let token = self.tokens.get(at)?;
        let digits = self.text_of(token.span).strip_prefix("arg")?;
        let is_index = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_index.then_some(digits)
    }

    fn operator(&mut self) -> Step<Operator> {
        let found = match self.tokens.get(self.at) {
            Some(token) if self.text_of(token.span) == "in" => Some(Operator::NoOtherBit),
            Some(token) => OPERATORS
                .iter()
                .find(|(symbol, _)| token.kind == TokenKind::Symbol(symbol))
                .map(|(_, op)| *op),
            None => None,
        };
        let Some(op) = found else {
            return Err(self.unexpected("an operator: == != < <= > >= & in"));
        };
        self.at += 1;
        Ok(op)
    }

    /// Constants separated by `|`.
    fn value(&mut self) -> Step<Value> {
        let first = self.constant()?;
        let mut operands = vec![first];
        while self.take("|") {
            operands.push(self.constant()?);
        }
        let span = operands[0].span.to(self.previous());
        Ok(match <[Value; 1]>::try_from(operands) {
            Ok([only]) => only,
            Err(operands) => Value {
                kind: ValueKind::Or(operands),
                span,
            },
        })
    }

    /// A number, a name or a value in parentheses, with an optional complement.
    fn constant(&mut self) -> Step<Value> {
        if self.take("~") {
            let sign = self.previous();
            if self.is_next("~") {
                return Err(self.unexpected("a constant: `~~` is not allowed"));
            }
            let inner = self.constant()?;
            return Ok(Value {
                span: sign.to(inner.span),
                kind: ValueKind::Complement(Box::new(inner)),
            });
        }
        if !self.take("(") {
            return self.single_constant();
        }
        let open = self.previous();
        if self.depth == MAX_NESTING {
            let message = format!("more than {MAX_NESTING} nested parentheses");
            let diagnostic = Diagnostic::error(code::MINIJAIL_LIMIT, message).label(open, "");
            return Err(Box::new(diagnostic));
        }
        self.depth += 1;
        let inner = self.value()?;
        self.depth -= 1;
        let close = self.symbol(")", "`|` or `)`")?;
        Ok(Value {
            kind: inner.kind,
            span: open.to(close),
        })
    }

    fn single_constant(&mut self) -> Step<Value> {
        let Some(token) = self.tokens.get(self.at).copied() else {
            return Err(self.unexpected("a number or the name of a constant"));
        };
        let text = self.text_of(token.span);
        let kind = match token.kind {
            TokenKind::Name => ValueKind::Name(text.to_owned()),
            TokenKind::Number => {
                let digits = text.strip_prefix('-');
                let size = c_integer(digits.unwrap_or(text)).map_err(|reason| {
                    let message = format!("`{text}` is not a number");
                    let diagnostic = Diagnostic::error(code::MINIJAIL_NUMBER, message);
                    Box::new(diagnostic.label(token.span, reason))
                })?;
                ValueKind::Number {
                    size,
                    is_negative: digits.is_some(),
                }
            }
            _ => return Err(self.unexpected("a number or the name of a constant")),
        };
        self.at += 1;
        Ok(Value {
            kind,
            span: token.span,
        })
    }

    fn action(&mut self) -> Step<Action> {
        let Some(token) = self.tokens.get(self.at).copied() else {
            return Err(self.unexpected("an action such as `allow` or `return EPERM`"));
        };
        self.at += 1;
        let word = self.text_of(token.span);
        if token.kind == TokenKind::Name && word == "return" {
            let follows = self.tokens.get(self.at).map(|token| token.kind);
            let has_value = matches!(follows, Some(TokenKind::Name | TokenKind::Number));
            let value = match has_value {
                true => Some(self.single_constant()?),
                false => None,
            };
            return Ok(Action {
                kind: ActionWord::Return(value.map(Box::new)),
                span: token.span.to(self.previous()),
            });
        }
        let is_one = token.kind == TokenKind::Number && c_integer(word) == Ok(1);
        let known = ACTIONS.iter().find(|(action, _)| *action == word);
        match known {
            Some((_, kind)) => Ok(Action {
                kind: kind.clone(),
                span: token.span,
            }),
            None if is_one => Ok(Action {
                kind: ActionWord::Allow,
                span: token.span,
            }),
            None => {
                let message = format!("`{word}` is not an action");
                let names = ACTIONS.iter().map(|(action, _)| *action).chain(["return"]);
                let near = suggest::nearest(word, names);
                let diagnostic =
                    Diagnostic::error(code::MINIJAIL_ACTION, message).label(token.span, "");
                Err(Box::new(match near {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help("write `allow` or `1`, `kill`, `return EPERM`, …"),
                }))
            }
        }
    }

    // Tokens.

    fn text_of(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn name_at(&self, span: Span) -> Name {
        Name {
            text: self.text_of(span).to_owned(),
            span,
        }
    }

    /// The span of the previous token, or of the first.
    fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn is_next(&self, symbol: &str) -> bool {
        let next = self.tokens.get(self.at).map(|token| token.kind);
        matches!(next, Some(TokenKind::Symbol(found)) if found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let is_next = self.is_next(symbol);
        self.at += usize::from(is_next);
        is_next
    }

    fn symbol(&mut self, symbol: &str, expected: &str) -> Step<Span> {
        match self.take(symbol) {
            true => Ok(self.previous()),
            false => Err(self.unexpected(expected)),
        }
    }

    fn expect(&mut self, kind: TokenKind, expected: &str) -> Step<Span> {
        match self.tokens.get(self.at) {
            Some(token) if token.kind == kind => {
                self.at += 1;
                Ok(token.span)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let (span, message) = match self.tokens.get(self.at) {
            Some(token) => {
                let text = self.text_of(token.span);
                (token.span, format!("unexpected `{text}`"))
            }
            None => {
                let last = self.previous();
                let end = last.after();
                (end, "unexpected end of the line".to_owned())
            }
        };
        let diagnostic = Diagnostic::error(code::MINIJAIL_SYNTAX, message);
        Box::new(diagnostic.label(span, format!("expected {expected}")))
    }
}

fn syntax(span: Span, message: String) -> Diagnostic {
    Diagnostic::error(code::MINIJAIL_SYNTAX, message).label(span, "")
}
