//! From tokens to statements. A rule or statement with an error is omitted, and parsing continues after it.

mod condition;

use std::collections::HashMap;

use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::{Diagnostic, Sources, Span, suggest};

use super::ast::{Call, Entry, Name, Policy, Program, Rule};
use super::lexer::{Token, TokenKind};
use crate::code;
use crate::limits::{MAX_NAMES, MAX_RULES};
use crate::literal::c_integer;
use crate::sink::Sink;

/// The names of actions, and whether a number in parentheses follows.
const ACTIONS: [(&str, ActionKind, bool); 10] = [
    ("ALLOW", ActionKind::Allow, false),
    ("LOG", ActionKind::Log, false),
    ("USER_NOTIF", ActionKind::Notify, false),
    ("KILL", ActionKind::KillThread, false),
    ("KILL_THREAD", ActionKind::KillThread, false),
    ("KILL_PROCESS", ActionKind::KillProcess, false),
    ("DENY", ActionKind::KillThread, false),
    ("ERRNO", ActionKind::Errno, true),
    ("TRAP", ActionKind::Trap, true),
    ("TRACE", ActionKind::Trace, true),
];
/// The architectures of `ON`. Case does not matter.
const ARCHES: [(&str, Arch); 13] = [
    ("aarch64", Arch::Aarch64),
    ("amd64", Arch::X86_64),
    ("arm", Arch::Arm),
    ("arm64", Arch::Aarch64),
    ("i386", Arch::X86),
    ("m68k", Arch::M68k),
    ("mips", Arch::Mips),
    ("mips64", Arch::Mips64),
    ("mipso32", Arch::Mips),
    ("riscv64", Arch::Riscv64),
    ("rv64", Arch::Riscv64),
    ("x86", Arch::X86),
    ("x86_64", Arch::X86_64),
];
/// Words that cannot be names.
const KEYWORDS: [&str; 6] = ["POLICY", "USE", "DEFAULT", "SYSCALL", "ON", "define"];
/// The most arguments of a system call.
const MAX_ARGUMENTS: usize = 6;

/// The result of a parser step.
type Step<T> = Result<T, Box<Diagnostic>>;

/// Parses all tokens of a policy.
pub(super) fn parse(sources: &Sources, tokens: &[Token], sink: &mut Sink) -> Program {
    let mut parser = Parser {
        sources,
        tokens,
        at: 0,
        depth: 0,
        rules: 0,
        constants: HashMap::new(),
        policies: HashMap::new(),
        sink,
        program: Program::default(),
    };
    while parser.at < tokens.len() && !parser.sink.is_finished() {
        let start = parser.at;
        if let Err(diagnostic) = parser.statement() {
            parser.sink.report(*diagnostic);
            parser.skip(start);
        }
        // A token that begins no statement has already been reported; skip it.
        parser.at = parser.at.max(start + 1);
    }
    parser.program
}

/// Whether a statement begins with this word.
pub(super) fn begins_statement(word: &str) -> bool {
    let is_action = ACTIONS.iter().any(|(action, ..)| *action == word);
    is_action || ["POLICY", "USE", "DEFAULT"].contains(&word)
}

struct Parser<'a> {
    sources: &'a Sources,
    tokens: &'a [Token],
    at: usize,
    /// The count of open parentheses and negations.
    depth: usize,
    rules: usize,
    constants: HashMap<&'a str, (u64, Span)>,
    /// The index of each policy.
    policies: HashMap<&'a str, usize>,
    sink: &'a mut Sink,
    program: Program,
}

impl<'a> Parser<'a> {
    fn statement(&mut self) -> Step<()> {
        let token = self.tokens[self.at];
        match (token.kind, self.text(token)) {
            (TokenKind::Hash, _) => self.constant(),
            (_, "POLICY") => self.policy(),
            (_, "DEFAULT") => self.default(),
            _ => {
                let mut entries = self.entries();
                self.program.main.append(&mut entries);
                Ok(())
            }
        }
    }

    /// `#define NAME NUMBER`
    fn constant(&mut self) -> Step<()> {
        self.at += 1;
        if !self.word_is("define") {
            let diagnostic = self.unexpected("`define`");
            let help = "the directives are `#define` and `#include`; comments begin with `//`";
            return Err(Box::new(diagnostic.help(help)));
        }
        self.at += 1;
        let name = self.name("the name of the constant")?;
        let key = self.sources.snippet(name.span);
        let (value, _) = self.number().inspect_err(|_| {
            // Avoids further errors at its uses.
            self.constants.entry(key).or_insert((0, name.span));
        })?;
        match self.constants.get(key) {
            Some((earlier, place)) if *earlier != value => {
                let message = format!("`{key}` has another value already");
                let diagnostic = Diagnostic::error(code::KAFEL_TWICE, message)
                    .label(name.span, format!("{value:#x} here"))
                    .label(*place, format!("{earlier:#x} here"));
                Err(Box::new(diagnostic))
            }
            Some(_) => Ok(()),
            None if self.constants.len() == MAX_NAMES => {
                Err(self.limit(name.span, format!("more than {MAX_NAMES} constants")))
            }
            None => {
                self.constants.insert(key, (value, name.span));
                Ok(())
            }
        }
    }

    /// `POLICY NAME { ENTRIES }`
    fn policy(&mut self) -> Step<()> {
        self.at += 1;
        let name = self.name("the name of the policy")?;
        self.symbol("{", "`{` and the body of the policy")?;
        let entries = match self.is_next("}") {
            true => Vec::new(),
            false => self.entries(),
        };
        // Added even with an error, so that its uses are not reported as unknown.
        self.add_policy(name, entries);
        self.symbol("}", "`,` or `}`")?;
        Ok(())
    }

    fn add_policy(&mut self, name: Name, entries: Vec<Entry>) {
        let key = self.sources.snippet(name.span);
        if let Some(earlier) = self.policies.get(key) {
            let earlier = self.program.policies[*earlier].name.span;
            let diagnostic =
                Diagnostic::error(code::KAFEL_TWICE, format!("a second policy `{key}`"))
                    .label(name.span, "")
                    .label(earlier, "the first");
            return self.sink.report(diagnostic);
        }
        if self.policies.len() == MAX_NAMES {
            let diagnostic = self.limit(name.span, format!("more than {MAX_NAMES} policies"));
            return self.sink.stop(*diagnostic);
        }
        self.policies.insert(key, self.program.policies.len());
        self.program.policies.push(Policy { name, entries });
    }

    /// `DEFAULT ACTION`
    fn default(&mut self) -> Step<()> {
        let start = self.tokens[self.at].span;
        self.at += 1;
        let action = self.action()?;
        let span = self.span_since(start);
        if let Some((_, earlier)) = self.program.default {
            let diagnostic = Diagnostic::error(code::KAFEL_TWICE, "a second default action")
                .label(span, "")
                .label(earlier, "the first");
            return Err(Box::new(diagnostic));
        }
        self.program.default = Some((action, span));
        Ok(())
    }

    /// Uses and blocks, separated by commas.
    fn entries(&mut self) -> Vec<Entry> {
        self.list(Self::entry)
    }

    /// Parts separated by commas; those with errors are omitted.
    fn list<T>(&mut self, part: fn(&mut Self) -> Step<T>) -> Vec<T> {
        let mut parts = Vec::new();
        loop {
            let start = self.at;
            match part(self) {
                Ok(part) => parts.push(part),
                Err(diagnostic) => {
                    self.sink.report(*diagnostic);
                    self.skip(start);
                }
            }
            if self.sink.is_finished() || !self.take(",") {
                return parts;
            }
        }
    }

    fn entry(&mut self) -> Step<Entry> {
        if self.word_is("USE") {
            self.at += 1;
            let name = self.name("the name of a policy")?;
            return self.used(&name).map(Entry::Use);
        }
        let action = self.action()?;
        self.symbol("{", "`{` and the calls that get the action")?;
        let rules = match self.is_next("}") {
            true => Vec::new(),
            false => self.list(Self::rule),
        };
        self.symbol("}", "`,` or `}`")?;
        Ok(Entry::Block { action, rules })
    }

    /// The earlier policy with this name.
    fn used(&self, name: &Name) -> Step<usize> {
        if let Some(index) = self.policies.get(name.text.as_str()) {
            return Ok(*index);
        }
        let diagnostic =
            Diagnostic::error(code::KAFEL_POLICY, format!("no policy `{}`", name.text))
                .label(name.span, "not defined above");
        let known = self.policies.keys().copied();
        Err(Box::new(match suggest::nearest(&name.text, known) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help("define it above this line, or include the file that does"),
        }))
    }

    fn action(&mut self) -> Step<Action> {
        let Some(token) = self.tokens.get(self.at).copied() else {
            return Err(self.unexpected("an action such as `ALLOW` or `ERRNO(1)`"));
        };
        let word = self.text(token);
        let Some((_, kind, takes_number)) = ACTIONS.iter().find(|(name, ..)| *name == word) else {
            if token.kind != TokenKind::Word {
                return Err(self.unexpected("`POLICY`, `USE`, `DEFAULT` or an action"));
            }
            let diagnostic =
                Diagnostic::error(code::KAFEL_ACTION, format!("`{word}` is not an action"))
                    .label(token.span, "");
            let names = ACTIONS.iter().map(|(name, ..)| *name);
            let near = suggest::nearest(word, names.chain(KEYWORDS));
            return Err(Box::new(match near {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help("write `ALLOW`, `KILL`, `ERRNO(1)`, …"),
            }));
        };
        self.at += 1;
        if !takes_number {
            return Ok(Action::new(*kind, 0));
        }
        self.symbol("(", "`(` and a number")?;
        let (value, span) = self.number()?;
        self.symbol(")", "`)`")?;
        match u16::try_from(value) {
            Ok(data) => Ok(Action::new(*kind, data)),
            Err(_) => {
                let diagnostic =
                    Diagnostic::error(code::KAFEL_NUMBER, "the data of an action has 16 bits")
                        .label(span, "this is larger, or negative");
                Err(Box::new(diagnostic))
            }
        }
    }

    fn rule(&mut self) -> Step<Rule> {
        let start = self.tokens.get(self.at).map(|token| token.span);
        self.rules += 1;
        if self.rules > MAX_RULES {
            let message = format!("more than {MAX_RULES} rules");
            let diagnostic = self.limit(start.unwrap_or_else(|| self.previous()), message);
            self.sink.stop(*diagnostic.clone());
            return Err(diagnostic);
        }
        let call = self.call()?;
        let arguments = match self.take("(") {
            true => Some(self.arguments()?),
            false => None,
        };
        let guard = match self.word_is("ON") {
            true => Some(self.guard()?),
            false => None,
        };
        let condition = match self.take("{") {
            true if self.take("}") => None,
            true => {
                let condition = self.condition()?;
                self.symbol("}", "an operator or `}`")?;
                Some(condition)
            }
            false => None,
        };
        Ok(Rule {
            call,
            arguments,
            guard,
            condition,
            span: start.map_or_else(|| self.previous(), |start| self.span_since(start)),
        })
    }

    fn call(&mut self) -> Step<Call> {
        if self.word_is("SYSCALL") {
            self.at += 1;
            self.symbol("[", "`[` and the number of a call")?;
            let (value, span) = self.number()?;
            self.symbol("]", "`]`")?;
            return call_number(value, span).map(Call::Number);
        }
        let name = self.name("the name of a system call")?;
        match self.constants.get(name.text.as_str()) {
            Some((value, _)) => call_number(*value, name.span).map(Call::Number),
            None => Ok(Call::Named(name)),
        }
    }

    /// Names of arguments up to the closing parenthesis.
    fn arguments(&mut self) -> Step<Vec<Name>> {
        let mut names: Vec<Name> = Vec::new();
        if self.take(")") {
            return Ok(names);
        }
        loop {
            let name = self.name("the name of an argument")?;
            let problem = if names.len() == MAX_ARGUMENTS {
                Some("system calls have six arguments")
            } else if names.iter().any(|earlier| earlier.text == name.text) {
                Some("two arguments of one name")
            } else {
                None
            };
            if let Some(problem) = problem {
                let diagnostic = Diagnostic::error(code::KAFEL_ARGUMENT, problem);
                return Err(Box::new(diagnostic.label(name.span, "")));
            }
            names.push(name);
            if !self.take(",") {
                break;
            }
        }
        self.symbol(")", "`,` or `)`")?;
        Ok(names)
    }

    /// `ON NAME` or `ON { NAME, NAME }`.
    fn guard(&mut self) -> Step<Vec<Arch>> {
        self.at += 1;
        if !self.take("{") {
            return Ok(vec![self.arch()?]);
        }
        let mut arches: Vec<Arch> = Vec::new();
        loop {
            let arch = self.arch()?;
            if arches.contains(&arch) {
                let diagnostic =
                    Diagnostic::error(code::KAFEL_ARCH, format!("{arch} for the second time"));
                return Err(Box::new(diagnostic.label(self.previous(), "")));
            }
            arches.push(arch);
            if !self.take(",") {
                break;
            }
        }
        self.symbol("}", "`,` or `}`")?;
        Ok(arches)
    }

    fn arch(&mut self) -> Step<Arch> {
        let name = self.name("the name of an architecture")?;
        let found = ARCHES
            .iter()
            .find(|(known, _)| name.text.eq_ignore_ascii_case(known));
        if let Some((_, arch)) = found {
            return Ok(*arch);
        }
        let message = format!("unknown architecture `{}`", name.text);
        let diagnostic = Diagnostic::error(code::KAFEL_ARCH, message)
            .label(name.span, "kafel has no such architecture");
        let names = || ARCHES.iter().map(|(name, _)| *name);
        Err(Box::new(match suggest::nearest(&name.text, names()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => {
                let names: Vec<&str> = names().collect();
                diagnostic.help(format!("there are {}", names.join(", ")))
            }
        }))
    }

    // Error recovery.

    /// Skips the part with an error that begins at `start`: to the comma or brace that ends it, or the next
    /// statement.
    fn skip(&mut self, start: usize) {
        let count = |symbol| {
            let tokens = self.tokens[start..self.at].iter();
            tokens
                .filter(|token| token.kind == TokenKind::Symbol(symbol))
                .count()
        };
        let mut braces = count("{").saturating_sub(count("}"));
        let mut parentheses = count("(").saturating_sub(count(")"));
        while let Some(token) = self.tokens.get(self.at).copied() {
            let word = self.text(token);
            match token.kind {
                TokenKind::Symbol("}") if braces == 0 => return,
                TokenKind::Symbol(",") if braces == 0 && parentheses == 0 => return,
                TokenKind::Symbol("(") => parentheses += 1,
                TokenKind::Symbol(")") => parentheses = parentheses.saturating_sub(1),
                TokenKind::Symbol("{") => braces += 1,
                TokenKind::Symbol("}") => {
                    braces -= 1;
                    parentheses = 0;
                }
                TokenKind::Hash => return,
                TokenKind::Word if self.at > start => {
                    let is_certain = word == "POLICY" || word == "DEFAULT";
                    if is_certain || braces == 0 && begins_statement(word) {
                        return;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    // Tokens.

    fn text(&self, token: Token) -> &'a str {
        self.sources.snippet(token.span)
    }

    /// The span of the previous token, or of the first.
    fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// The span from `start` to the previous token, or `start` alone if an included file begins or ends between
    /// them.
    fn span_since(&self, start: Span) -> Span {
        let end = self.previous();
        match start.source == end.source {
            true => start.to(end),
            false => start,
        }
    }

    fn is_next(&self, symbol: &str) -> bool {
        let next = self.tokens.get(self.at).map(|token| token.kind);
        matches!(next, Some(TokenKind::Symbol(found)) if found == symbol)
    }

    fn word_is(&self, word: &str) -> bool {
        let next = self.tokens.get(self.at).copied();
        next.is_some_and(|token| token.kind == TokenKind::Word && self.text(token) == word)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let is_next = self.is_next(symbol);
        self.at += usize::from(is_next);
        is_next
    }

    fn symbol(&mut self, symbol: &str, what: &str) -> Step<Span> {
        match self.take(symbol) {
            true => Ok(self.previous()),
            false => Err(self.unexpected(what)),
        }
    }

    /// A word that is not a keyword.
    fn name(&mut self, what: &str) -> Step<Name> {
        let token = self.tokens.get(self.at).copied();
        let is_name = |token: &Token| {
            let text = self.text(*token);
            let is_keyword = KEYWORDS.contains(&text) || begins_statement(text);
            token.kind == TokenKind::Word && !is_keyword
        };
        let Some(token) = token.filter(is_name) else {
            return Err(self.unexpected(what));
        };
        self.at += 1;
        Ok(Name {
            text: self.text(token).to_owned(),
            span: token.span,
        })
    }

    fn number(&mut self) -> Step<(u64, Span)> {
        let token = self.tokens.get(self.at).copied();
        let Some(token) = token.filter(|token| token.kind == TokenKind::Number) else {
            let diagnostic = self.unexpected("a number");
            let text = token.map(|token| self.text(token));
            let is_constant = text.is_some_and(|text| self.constants.contains_key(text));
            return Err(match is_constant {
                true => {
                    Box::new(diagnostic.note("constants stand for calls and in conditions only"))
                }
                false => diagnostic,
            });
        };
        self.at += 1;
        let text = self.text(token);
        match integer(text) {
            Ok(value) => Ok((value, token.span)),
            Err(reason) => {
                let message = format!("`{text}` is not a number");
                let diagnostic = Diagnostic::error(code::KAFEL_NUMBER, message);
                Err(Box::new(diagnostic.label(token.span, reason)))
            }
        }
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let diagnostic = match self.tokens.get(self.at).copied() {
            Some(token) => {
                let message = format!("unexpected `{}`", self.text(token));
                Diagnostic::error(code::KAFEL_SYNTAX, message)
                    .label(token.span, format!("expected {expected}"))
            }
            None => {
                let end = self.previous();
                let span = end.after();
                Diagnostic::error(code::KAFEL_SYNTAX, "unexpected end of the policy")
                    .label(span, format!("expected {expected}"))
            }
        };
        Box::new(diagnostic)
    }

    fn limit(&self, span: Span, message: String) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(code::KAFEL_LIMIT, message).label(span, ""))
    }
}

/// The number of a call. Negative numbers are 32-bit.
fn call_number(value: u64, span: Span) -> Step<u32> {
    match (u32::try_from(value), i32::try_from(value as i64)) {
        (Ok(number), _) => Ok(number),
        (_, Ok(number)) => Ok(number as u32),
        _ => {
            let diagnostic =
                Diagnostic::error(code::KAFEL_NUMBER, "a system-call number has 32 bits")
                    .label(span, "this number has more");
            Err(Box::new(diagnostic))
        }
    }
}

/// The value of a number as the lexer delimits them.
fn integer(text: &str) -> Result<u64, &'static str> {
    const TOO_LARGE: &str = "more than 64 bits";
    if let Some(digits) = text.strip_prefix('-') {
        let size = c_integer(digits)?;
        return match size > 1 << 63 {
            true => Err(TOO_LARGE),
            false => Ok(size.wrapping_neg()),
        };
    }
    match text.strip_prefix("0b") {
        Some(digits) => u64::from_str_radix(digits, 2).map_err(|_| TOO_LARGE),
        None => c_integer(text),
    }
}
