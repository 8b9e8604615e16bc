//! Conditions and values.
//!
//! From loosest to tightest: `,` and `||` and `&&` and `!` join conditions; `|`, `&`, `<<` and the
//! unary `~ -` join values. `&` binds tighter than a comparison, so `flags & MASK == 0` needs no
//! parentheses.

use tamis_diag::Diagnostic;
use tamis_rules::{CmpOp, Part};

use super::{ParseResult, Parser, syntax};
use crate::code;
use crate::tamis::ast::{
    Condition, ConditionKind, Element, Operand, OperandName, Set, Value, ValueKind,
};
use crate::tamis::lexer::TokenKind;
use tamis_diag::Span;

/// Whether a word has the form of a constant: no lower-case letters, no hyphens.
pub fn is_constant_name(word: &str) -> bool {
    !word
        .bytes()
        .any(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

impl Parser<'_> {
    /// `any { "," any }`: a conjunction.
    pub fn condition(&mut self) -> ParseResult<Condition> {
        self.conditions(",", ConditionKind::All, |parser| {
            parser.conditions("||", ConditionKind::Any, |parser| {
                parser.conditions("&&", ConditionKind::All, Self::factor)
            })
        })
    }

    fn conditions(
        &mut self,
        operator: &str,
        join: fn(Vec<Condition>) -> ConditionKind,
        operand: fn(&mut Self) -> ParseResult<Condition>,
    ) -> ParseResult<Condition> {
        let of = |parts, span| Condition {
            kind: join(parts),
            span,
        };
        self.joined(operator, operand, |condition| condition.span, of)
    }

    fn values(
        &mut self,
        operator: &str,
        join: fn(Vec<Value>) -> ValueKind,
        operand: fn(&mut Self) -> ParseResult<Value>,
    ) -> ParseResult<Value> {
        let of = |parts, span| Value {
            kind: join(parts),
            span,
        };
        self.joined(operator, operand, |value| value.span, of)
    }

    /// One operand of an operator, or several.
    fn joined<T>(
        &mut self,
        operator: &str,
        operand: fn(&mut Self) -> ParseResult<T>,
        span_of: fn(&T) -> Span,
        join: impl FnOnce(Vec<T>, Span) -> T,
    ) -> ParseResult<T> {
        let first = operand(self)?;
        if !self.is_next(operator) {
            return Ok(first);
        }
        let mut span = span_of(&first);
        let mut operands = vec![first];
        while self.take(operator) {
            let next = operand(self)?;
            span = span.to(span_of(&next));
            operands.push(next);
        }
        Ok(join(operands, span))
    }

    fn factor(&mut self) -> ParseResult<Condition> {
        let first = self.tokens[self.at];
        match (first.kind, self.text_of(first.span)) {
            (TokenKind::Symbol("!"), _) => {
                self.advance();
                let inner = self.nested(Self::factor)?;
                Ok(Condition {
                    span: first.span.to(inner.span),
                    kind: ConditionKind::Not(Box::new(inner)),
                })
            }
            (TokenKind::Symbol("("), _) => {
                self.advance();
                let inner = self.nested(Self::condition)?;
                let end = self.expect_symbol(")")?;
                Ok(Condition {
                    kind: inner.kind,
                    span: first.span.to(end),
                })
            }
            (TokenKind::Name, word @ ("true" | "false")) => {
                let kind = ConditionKind::Literal(word == "true");
                self.advance();
                Ok(Condition {
                    kind,
                    span: first.span,
                })
            }
            _ => self.test(),
        }
    }

    /// A comparison or a membership.
    fn test(&mut self) -> ParseResult<Condition> {
        let left = self.operand()?;
        let start = left.span;
        let mask = if self.take("&") {
            Some(self.mask()?)
        } else {
            None
        };
        if self.peek() == TokenKind::Name && self.text_of(self.tokens[self.at].span) == "in" {
            self.advance();
            let set = self.set()?;
            let end = match &set {
                Set::Braced(_, span) => *span,
                Set::Named(name) => name.span,
            };
            return Ok(Condition {
                kind: ConditionKind::In(left, mask, set),
                span: start.to(end),
            });
        }
        let Some(op) = CmpOp::ALL.into_iter().find(|op| self.is_next(op.symbol())) else {
            return Err(self.not_compared(&left, mask.as_ref()));
        };
        self.advance();
        if self.is_operand_next() {
            let right = self.operand()?;
            let span = start.to(right.span);
            if mask.is_some() || self.is_next("&") {
                let diagnostic = syntax(span, "a mask in a comparison of two arguments")
                    .help("compare whole arguments, or their halves with `low(…)` and `high(…)`");
                return Err(self.abandon(diagnostic));
            }
            return Ok(Condition {
                kind: ConditionKind::Between(left, op, right),
                span,
            });
        }
        let right = self.value()?;
        Ok(Condition {
            span: start.to(right.span),
            kind: ConditionKind::Compare(left, mask, op, right),
        })
    }

    fn not_compared(&mut self, left: &Operand, mask: Option<&Value>) -> super::Abandon {
        if self.is_next("=") {
            let span = self.tokens[self.at].span;
            let diagnostic = syntax(span, "`=` in a condition").help("compare with `==`");
            return self.abandon(diagnostic);
        }
        let Some(mask) = mask else {
            return self.unexpected("a comparison or `in`");
        };
        let span = left.span.to(mask.span);
        let written = self.text_of(span).to_owned();
        let diagnostic = syntax(span, "a masked argument is a number, not a condition")
            .help(format!("compare it: `{written} != 0`"));
        self.abandon(diagnostic)
    }

    /// A mask without `|`, which would resemble an operator of conditions.
    fn mask(&mut self) -> ParseResult<Value> {
        let mask = self.conjunction()?;
        if self.is_next("|") {
            let span = self.tokens[self.at].span;
            let diagnostic = syntax(span, "`|` in a mask without parentheses")
                .help("write `argument & (A | B) == …`");
            return Err(self.abandon(diagnostic));
        }
        Ok(mask)
    }

    /// Whether the next token is an argument rather than a constant: arguments are in lower case.
    fn is_operand_next(&self) -> bool {
        let token = self.tokens[self.at];
        token.kind == TokenKind::Name && !is_constant_name(self.text_of(token.span))
    }

    fn operand(&mut self) -> ParseResult<Operand> {
        let first = self.tokens[self.at];
        if !self.is_operand_next() {
            if matches!(first.kind, TokenKind::Name | TokenKind::Number) {
                let word = self.text_of(first.span).to_owned();
                let diagnostic = syntax(
                    first.span,
                    format!("`{word}` where an argument is expected"),
                )
                .note("constants are written in capitals, arguments in lower case")
                .help("write the argument on the left: `fd == 1`");
                return Err(self.abandon(diagnostic));
            }
            return Err(self.unexpected("an argument"));
        }
        self.advance();
        let part = match self.text_of(first.span) {
            "low" => Some(Part::Low),
            "high" => Some(Part::High),
            "full" => Some(Part::Full),
            _ => None,
        };
        if part.is_some() && self.take("(") {
            let name = self.expect_name("an argument")?;
            let (name, _) = self.operand_name(name.span)?;
            let end = self.expect_symbol(")")?;
            return Ok(Operand {
                name,
                part,
                span: first.span.to(end),
            });
        }
        let (name, span) = self.operand_name(first.span)?;
        Ok(Operand {
            name,
            part: None,
            span,
        })
    }

    /// The name of an operand after its first token, with its span including an index.
    fn operand_name(&mut self, first: Span) -> ParseResult<(OperandName, Span)> {
        let word = self.text_of(first).to_owned();
        if word == "arg" && self.take("[") {
            let number = self.tokens[self.at].span;
            let (index, _) = self.number()?;
            let end = self.expect_symbol("]")?;
            if index > 5 {
                let diagnostic = syntax(number, format!("there is no argument {index}"))
                    .help("calls have six arguments, `arg[0]` to `arg[5]`");
                return Err(self.abandon(diagnostic));
            }
            return Ok((OperandName::Indexed(index), first.to(end)));
        }
        let name = match word.as_str() {
            "ip" => OperandName::Ip,
            _ => OperandName::Named(word),
        };
        Ok((name, first))
    }

    fn set(&mut self) -> ParseResult<Set> {
        if self.is_next("{") {
            let (elements, span) = self.braced_elements()?;
            return Ok(Set::Braced(elements, span));
        }
        Ok(Set::Named(
            self.expect_name("`{` or the name of a set of values")?,
        ))
    }

    /// `{ element, … }` with its span.
    pub fn braced_elements(&mut self) -> ParseResult<(Vec<Element>, Span)> {
        let start = self.expect_symbol("{")?;
        let mut elements = Vec::new();
        while !self.is_next("}") {
            let first = self.value()?;
            elements.push(if self.take("..") {
                Element::Range(first, self.value()?)
            } else {
                Element::Value(first)
            });
            if !self.take(",") && !self.is_next("}") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        let end = self.advance();
        Ok((elements, start.to(end)))
    }

    /// `conjunction { "|" conjunction }`
    pub fn value(&mut self) -> ParseResult<Value> {
        self.values("|", ValueKind::Or, Self::conjunction)
    }

    /// `shift { "&" shift }`
    fn conjunction(&mut self) -> ParseResult<Value> {
        self.values("&", ValueKind::And, Self::shift)
    }

    fn shift(&mut self) -> ParseResult<Value> {
        let left = self.unary()?;
        if !self.take("<<") {
            return Ok(left);
        }
        let right = self.unary()?;
        Ok(Value {
            span: left.span.to(right.span),
            kind: ValueKind::Shift(Box::new(left), Box::new(right)),
        })
    }

    fn unary(&mut self) -> ParseResult<Value> {
        let first = self.tokens[self.at];
        let kind = match first.kind {
            TokenKind::Symbol("~") => ValueKind::Complement,
            TokenKind::Symbol("-") => ValueKind::Negative,
            _ => return self.primary(),
        };
        self.advance();
        let inner = self.nested(Self::unary)?;
        Ok(Value {
            span: first.span.to(inner.span),
            kind: kind(Box::new(inner)),
        })
    }

    fn primary(&mut self) -> ParseResult<Value> {
        let first = self.tokens[self.at];
        match first.kind {
            TokenKind::Number => {
                let (number, span) = self.number()?;
                let text = self.text_of(span).to_owned();
                Ok(Value {
                    kind: ValueKind::Number(number, text),
                    span,
                })
            }
            TokenKind::Name => {
                let name = self.name_at(self.tokens[self.at].span);
                self.advance();
                Ok(Value {
                    kind: ValueKind::Name(name.text),
                    span: name.span,
                })
            }
            TokenKind::Symbol("(") => {
                self.advance();
                let inner = self.nested(Self::value)?;
                let end = self.expect_symbol(")")?;
                Ok(Value {
                    kind: inner.kind,
                    span: first.span.to(end),
                })
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    /// An integer literal with its span.
    pub fn number(&mut self) -> ParseResult<(u64, Span)> {
        let span = self.expect(TokenKind::Number, "a number")?;
        let text = self.text_of(span);
        match parse_number(text) {
            Ok(number) => Ok((number, span)),
            Err(reason) => {
                let diagnostic = Diagnostic::error(
                    code::BAD_NUMBER,
                    format!("`{text}` is not a number"),
                )
                .label(span, reason)
                .help("numbers are decimal, or begin with 0x, 0o or 0b; `_` may separate digits");
                Err(self.abandon(diagnostic))
            }
        }
    }
}

/// The value of a literal, or the error.
fn parse_number(text: &str) -> Result<u64, &'static str> {
    let digits: String = text.chars().filter(|digit| *digit != '_').collect();
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o', ..] => (8, &digits[2..]),
        [b'0', b'b', ..] => (2, &digits[2..]),
        [b'0', b'0'..=b'9', ..] => {
            return Err("an octal number begins with 0o, a decimal one not with 0");
        }
        _ => (10, digits.as_str()),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err("not a digit in this base");
    }
    u64::from_str_radix(digits, radix).map_err(|_| "more than 64 bits")
}
