//! From text to a ruleset.

use std::sync::Arc;

use tamis_abi::{Action, ActionKind, Arch, ArgIndex, VariableIndex, syscall};
use tamis_diag::limits::MAX_DIAGNOSTICS;
use tamis_diag::{Diagnostic, SourceId, Sources, Span, sort_by_place, suggest};

use super::MAX_DEPTH;
use super::lex::{Token, TokenKind, lex};
use crate::code;
use crate::predicate::{CmpOp, Operand, OperandSource, Part, Predicate, Test};
use crate::ruleset::{DuplicateArch, Origin, Rule, Ruleset, Section};
use crate::set::IntervalSet;
use crate::variable::{Variable, VariableWidth};

/// Parses the text form of a ruleset.
///
/// ```
/// use tamis_diag::Sources;
/// let text = "ruleset bad-arch kill_thread\nsection x86_64 default errno(1)\n  0..2: allow\n";
/// let mut sources = Sources::new();
/// let source = sources.add("example", text);
/// let ruleset = tamis_rules::text::parse(&sources, source).unwrap();
/// assert_eq!(ruleset.to_string(), text);
/// ```
///
/// # Errors
/// The errors, each with its place, up to a limit; a line with an error is skipped.
pub fn parse(sources: &Sources, source: SourceId) -> Result<Ruleset, Vec<Diagnostic>> {
    let text = Arc::clone(&sources.get(source).text);
    let (tokens, mut diagnostics) = lex(&text, source);
    let mut parser = Parser {
        text: &text,
        tokens,
        next: 0,
        depth: 0,
    };
    let mut bad_arch = None;
    let mut sections: Vec<Section> = Vec::new();
    let mut variables: Vec<Variable> = Vec::new();
    while parser.next < parser.tokens.len() && diagnostics.len() < MAX_DIAGNOSTICS {
        match parser.line(bad_arch.is_some(), &variables, sections.last_mut()) {
            Ok(Line::Header(action)) => bad_arch = Some(action),
            Ok(Line::Variable(variable)) => variables.push(variable),
            Ok(Line::Section(section)) => sections.push(section),
            Ok(Line::Rule) => {}
            Err(diagnostic) => {
                diagnostics.push(*diagnostic);
                parser.skip_line();
            }
        }
    }
    let Some(bad_arch) = bad_arch else {
        if diagnostics.is_empty() {
            diagnostics.push(Diagnostic::error(code::RULESET_SYNTAX, "the text is empty"));
        }
        sort_by_place(&mut diagnostics);
        return Err(diagnostics);
    };
    if variables.len() > VariableIndex::COUNT {
        let message = format!("more than {} variables", VariableIndex::COUNT);
        diagnostics.push(Diagnostic::error(code::RULESET_SYNTAX, message));
    }
    if !diagnostics.is_empty() {
        sort_by_place(&mut diagnostics);
        return Err(diagnostics);
    }
    let ruleset = Ruleset::new(sections, bad_arch);
    let ruleset = ruleset.map(|ruleset| ruleset.with_variables(variables));
    ruleset.map_err(|DuplicateArch(arch)| {
        let message = format!("two sections for {arch}");
        vec![Diagnostic::error(code::RULESET_SYNTAX, message)]
    })
}

/// The kinds of lines.
enum Line {
    Header(Action),
    Variable(Variable),
    Section(Section),
    /// A rule, already added to its section.
    Rule,
}

/// Boxed because results are passed through every level and errors are rare.
type Parse<T> = Result<T, Box<Diagnostic>>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn line(
        &mut self,
        has_header: bool,
        variables: &[Variable],
        section: Option<&mut Section>,
    ) -> Parse<Line> {
        let line = if !has_header {
            self.expect("ruleset")?;
            self.expect("bad-arch")?;
            Line::Header(self.action()?)
        } else if section.is_none() && self.accept("variable") {
            Line::Variable(self.variable(variables)?)
        } else if self.accept("section") {
            let arch = self.arch()?;
            self.expect("default")?;
            Line::Section(Section {
                arch,
                rules: Vec::new(),
                default: self.action()?,
            })
        } else if let Some(section) = section {
            let rule = self.rule(section.arch)?;
            section.rules.push(rule);
            Line::Rule
        } else {
            return Err(self.unexpected("`section`"));
        };
        if self.peek().kind != TokenKind::Newline {
            return Err(self.unexpected("the end of the line"));
        }
        self.next += 1;
        Ok(line)
    }

    fn variable(&mut self, earlier: &[Variable]) -> Parse<Variable> {
        let start = self.peek().span;
        let name = self.text()?;
        let element = match self.peek().kind {
            TokenKind::Integer(_) => Some(self.integer_u32()?),
            _ => None,
        };
        let Some(width) = VariableWidth::from_name(self.snippet(self.peek().span)) else {
            return Err(self.unexpected("`u32` or `u64`"));
        };
        self.next += 1;
        let first = self.integer()?;
        self.expect("..")?;
        if self
            .integer_value()
            .is_none_or(|last| last < first || last > width.max())
        {
            return Err(
                self.unexpected("a last value that is within the width and not below the first")
            );
        }
        let variable = Variable {
            name,
            element,
            width,
            range: (first, self.integer()?),
        };
        if variable.can_follow(earlier) {
            return Ok(variable);
        }
        let message = "the variable can't be declared here";
        let diagnostic = Diagnostic::error(code::RULESET_SYNTAX, message)
            .label(start, "")
            .note(
                "a name is a word of letters, digits and `_` that no other variable has, except the elements \
                 of a set, which are numbered from 0 in order and have one width and one range",
            );
        Err(Box::new(diagnostic))
    }

    fn rule(&mut self, arch: Arch) -> Parse<Rule> {
        let syscalls = self.numbers(arch)?;
        let when = if self.accept("if") {
            self.predicate()?
        } else {
            Predicate::True
        };
        self.expect(":")?;
        let action = self.action()?;
        let origin = if self.accept("@") {
            Some(self.origin()?)
        } else {
            None
        };
        Ok(Rule {
            syscalls,
            when,
            action,
            origin,
        })
    }

    fn numbers(&mut self, arch: Arch) -> Parse<IntervalSet<u32>> {
        if self.accept("all") {
            return Ok(IntervalSet::full());
        }
        if self.accept("none") {
            return Ok(IntervalSet::empty());
        }
        let mut ranges = Vec::new();
        loop {
            if self.peek().kind == TokenKind::Word {
                let nr = self.syscall(arch)?;
                ranges.push(nr..=nr);
            } else {
                let first = self.integer_u32()?;
                let last = if self.accept("..") {
                    self.integer_u32()?
                } else {
                    first
                };
                ranges.push(first..=last);
            }
            if !self.accept(",") {
                return Ok(ranges.into_iter().collect());
            }
        }
    }

    fn syscall(&mut self, arch: Arch) -> Parse<u32> {
        let span = self.peek().span;
        let name = self.snippet(span);
        match syscall::number(arch, name) {
            Some(nr) => {
                self.next += 1;
                Ok(nr.0)
            }
            None => {
                let message = format!("{arch} has no system call `{name}`");
                Err(Box::new(
                    Diagnostic::error(code::RULESET_SYNTAX, message).label(span, ""),
                ))
            }
        }
    }

    fn predicate(&mut self) -> Parse<Predicate> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.unexpected("a predicate nested less deeply"));
        }
        let predicate = if self.accept("true") {
            Predicate::True
        } else if self.accept("false") {
            Predicate::False
        } else if self.accept("not") {
            self.expect("(")?;
            let inner = self.predicate()?;
            self.expect(")")?;
            Predicate::Not(Box::new(inner))
        } else if self.accept("all") {
            Predicate::All(self.predicates()?)
        } else if self.accept("any") {
            Predicate::Any(self.predicates()?)
        } else {
            Predicate::Test(self.test()?)
        };
        self.depth -= 1;
        Ok(predicate)
    }

    fn predicates(&mut self) -> Parse<Vec<Predicate>> {
        self.expect("(")?;
        let mut parts = Vec::new();
        while !self.accept(")") {
            if !parts.is_empty() {
                self.expect(",")?;
            }
            parts.push(self.predicate()?);
        }
        Ok(parts)
    }

    fn test(&mut self) -> Parse<Test> {
        let operand = self.operand()?;
        if self.accept("&") {
            let mask = self.integer()?;
            self.expect("==")?;
            return Ok(Test::Masked {
                operand,
                mask,
                value: self.integer()?,
            });
        }
        if self.accept("in") {
            return Ok(Test::In {
                operand,
                set: self.value_set()?,
            });
        }
        let op = self.comparison()?;
        if let TokenKind::Integer(value) = self.peek().kind {
            self.next += 1;
            return Ok(Test::Compare { operand, op, value });
        }
        Ok(Test::Between {
            left: operand,
            op,
            right: self.operand()?,
        })
    }

    fn value_set(&mut self) -> Parse<IntervalSet<u64>> {
        self.expect("{")?;
        let mut ranges = Vec::new();
        while !self.accept("}") {
            if !ranges.is_empty() {
                self.expect(",")?;
            }
            let first = self.integer()?;
            let last = if self.accept("..") {
                self.integer()?
            } else {
                first
            };
            ranges.push(first..=last);
        }
        Ok(ranges.into_iter().collect())
    }

    fn comparison(&mut self) -> Parse<CmpOp> {
        match CmpOp::ALL.into_iter().find(|op| self.accept(op.symbol())) {
            Some(op) => Ok(op),
            None => Err(self.unexpected("a comparison")),
        }
    }

    fn operand(&mut self) -> Parse<Operand> {
        let word = self.snippet(self.peek().span);
        let (source, part) = word.split_once('.').unwrap_or((word, ""));
        let numbered = |prefix| source.strip_prefix(prefix)?.parse::<u8>().ok();
        let source = match (numbered("arg"), numbered("var")) {
            (Some(index), _) => ArgIndex::new(index).map(OperandSource::Arg),
            (_, Some(index)) => VariableIndex::new(index.into()).map(OperandSource::Variable),
            _ if source == "ip" => Some(OperandSource::Ip),
            _ => None,
        };
        let part = match part {
            "" => Some(Part::Full),
            "low" => Some(Part::Low),
            "high" => Some(Part::High),
            _ => None,
        };
        let (Some(source), Some(part)) = (source, part) else {
            return Err(self.unexpected(
                "an operand (`arg0` … `arg5`, `ip`, `var0` …, with `.low` or `.high`)",
            ));
        };
        self.next += 1;
        Ok(Operand { source, part })
    }

    fn action(&mut self) -> Parse<Action> {
        let name = self.snippet(self.peek().span);
        let Some(kind) = ActionKind::from_name(name) else {
            let known = ActionKind::ALL.map(ActionKind::name);
            let mut diagnostic = self.unexpected("an action");
            if let Some(near) = suggest::nearest(name, known) {
                diagnostic.help = Some(format!("did you mean `{near}`?"));
            }
            return Err(diagnostic);
        };
        self.next += 1;
        if !self.accept("(") {
            return Ok(Action::new(kind, 0));
        }
        let Some(data) = self
            .integer_value()
            .and_then(|value| u16::try_from(value).ok())
        else {
            return Err(self.unexpected("an integer below 65536"));
        };
        self.next += 1;
        self.expect(")")?;
        Ok(Action::new(kind, data))
    }

    fn arch(&mut self) -> Parse<Arch> {
        match Arch::from_name(self.snippet(self.peek().span)) {
            Some(arch) => {
                self.next += 1;
                Ok(arch)
            }
            None => Err(self.unexpected("an architecture")),
        }
    }

    fn origin(&mut self) -> Parse<Origin> {
        let file = self.text()?;
        self.expect(":")?;
        let line = self.integer_u32()?;
        self.expect(":")?;
        Ok(Origin {
            file,
            line,
            column: self.integer_u32()?,
        })
    }

    fn text(&mut self) -> Parse<Arc<str>> {
        let TokenKind::Text(text) = &self.peek().kind else {
            return Err(self.unexpected("a quoted name"));
        };
        let text = text.as_str().into();
        self.next += 1;
        Ok(text)
    }

    fn integer(&mut self) -> Parse<u64> {
        let value = self
            .integer_value()
            .ok_or_else(|| self.unexpected("an integer"))?;
        self.next += 1;
        Ok(value)
    }

    fn integer_u32(&mut self) -> Parse<u32> {
        let value = self
            .integer_value()
            .and_then(|value| u32::try_from(value).ok());
        let value = value.ok_or_else(|| self.unexpected("a 32-bit integer"))?;
        self.next += 1;
        Ok(value)
    }

    fn integer_value(&self) -> Option<u64> {
        match self.peek().kind {
            TokenKind::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// Consumes the next token if it is this keyword or punctuation.
    fn accept(&mut self, word: &str) -> bool {
        let token = self.peek();
        let is_plain = matches!(token.kind, TokenKind::Word | TokenKind::Punctuation);
        let accepted = is_plain && self.snippet(token.span) == word;
        self.next += usize::from(accepted);
        accepted
    }

    fn expect(&mut self, word: &str) -> Parse<()> {
        if self.accept(word) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{word}`")))
        }
    }

    /// The next token; the last one is a newline and is never consumed within a line.
    fn peek(&self) -> &Token {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn snippet(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let span = self.peek().span;
        let found = match self.snippet(span) {
            "" | "\n" => "the end of the line".to_owned(),
            text => format!("`{text}`"),
        };
        let message = format!("expected {expected}, found {found}");
        Box::new(Diagnostic::error(code::RULESET_SYNTAX, message).label(span, ""))
    }

    fn skip_line(&mut self) {
        self.depth = 0;
        while self.next < self.tokens.len() {
            self.next += 1;
            if self.tokens[self.next - 1].kind == TokenKind::Newline {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<Ruleset, Vec<Diagnostic>> {
        let mut sources = Sources::new();
        let source = sources.add("test", text);
        parse(&sources, source)
    }

    const EVERY_FORM: &str = "\
ruleset bad-arch kill_process
section x86_64 default errno(1)
  read, 5..9: allow @ \"a \\\"b\\\".tamis\":3:14
  all: trap(65535)
  none if false: kill_thread
  write if not(any(all(), arg0.low in {0x1, 0x5..0x9}, arg5 & 0xff == 0x3)): log
  write if all(ip.high >= 0x80000000, arg1 < arg2, arg3.high != arg4.low): notify
  write if arg0 <= 0xffffffffffffffff: trace(7)
section x32 default allow
";

    #[test]
    fn every_form_prints_as_it_was_parsed() {
        assert_eq!(parse_text(EVERY_FORM).unwrap().to_string(), EVERY_FORM);
    }

    #[test]
    fn every_truncation_and_every_lost_token_is_handled() {
        for (at, c) in EVERY_FORM.char_indices() {
            let _ = parse_text(&EVERY_FORM[..at]);
            let without = [&EVERY_FORM[..at], &EVERY_FORM[at + c.len_utf8()..]].concat();
            let _ = parse_text(&without);
        }
    }

    #[test]
    fn mistakes_on_several_lines_are_all_reported() {
        let text = "ruleset bad-arch allow\nsection x86_64 default alow\nsection x86 default allow\n\
                    1 if argh == 1: allow\n 2 if arg0 = 1: allow\n ? 3: allow\n4: errno(70000)\n";
        let messages: Vec<String> = parse_text(text)
            .unwrap_err()
            .into_iter()
            .map(|d| d.message)
            .collect();
        assert_eq!(messages.len(), 5, "{messages:#?}");
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_an_overflow() {
        let depth = 100_000;
        let text = format!(
            "ruleset bad-arch allow\nsection x86 default allow\n1 if {}true{}: allow\n",
            "not(".repeat(depth),
            ")".repeat(depth)
        );
        assert!(parse_text(&text).is_err());
    }
}
