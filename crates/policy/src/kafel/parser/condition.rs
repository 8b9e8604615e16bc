//! Conditions. Parentheses may enclose a condition or a value, so the same functions parse both, and the kind is
//! checked at the use.

use tamis_diag::{Diagnostic, Span};
use tamis_rules::CmpOp;

use super::{Parser, Step};
use crate::code;
use crate::kafel::ast::{Bits, Comparison, Condition};
use crate::kafel::levels::{self, MAX_LEVELS};
use crate::kafel::lexer::TokenKind;

/// The deepest nesting of parentheses and negations. Comparisons of single bits add to it, and the total must stay
/// below the limit of a ruleset's text form.
const MAX_NESTING: usize = 100;

const COMPARISONS: [(&str, CmpOp); 6] = [
    ("==", CmpOp::Eq),
    ("!=", CmpOp::Ne),
    ("<", CmpOp::Lt),
    ("<=", CmpOp::Le),
    (">", CmpOp::Gt),
    (">=", CmpOp::Ge),
];

/// A parsed operand: a condition or a value.
enum Parsed {
    Condition(Condition),
    Bits(Bits),
}

impl Parser<'_> {
    /// Alternatives, separated by commas.
    pub(super) fn condition(&mut self) -> Step<Condition> {
        // An error may have left parentheses open.
        self.depth = 0;
        let start = self.at;
        let read = self.alternatives()?;
        let condition = self.checked_condition(read, start)?;
        if levels::of_condition(&condition) > MAX_LEVELS {
            let message = format!("more than {MAX_LEVELS} operators below each other");
            return Err(self.limit(self.span_from(start), message));
        }
        Ok(condition)
    }

    fn alternatives(&mut self) -> Step<Parsed> {
        self.joined(&[",", "||"], Condition::Any, Self::conjunction)
    }

    fn conjunction(&mut self) -> Step<Parsed> {
        self.joined(&["&&"], Condition::All, Self::negation)
    }

    /// One operand, or several joined into a condition.
    fn joined(
        &mut self,
        symbols: &[&str],
        join: fn(Vec<Condition>) -> Condition,
        operand: fn(&mut Self) -> Step<Parsed>,
    ) -> Step<Parsed> {
        let start = self.at;
        let first = operand(self)?;
        if !symbols.iter().any(|symbol| self.is_next(symbol)) {
            return Ok(first);
        }
        let mut all = vec![self.checked_condition(first, start)?];
        while symbols.iter().any(|symbol| self.take(symbol)) {
            let start = self.at;
            let next = operand(self)?;
            all.push(self.checked_condition(next, start)?);
        }
        Ok(Parsed::Condition(join(all)))
    }

    fn negation(&mut self) -> Step<Parsed> {
        if !self.is_next("!") {
            return self.comparison();
        }
        self.open()?;
        let start = self.at;
        let inner = self.negation()?;
        let inner = self.checked_condition(inner, start)?;
        self.depth -= 1;
        Ok(Parsed::Condition(Condition::Not(Box::new(inner))))
    }

    fn comparison(&mut self) -> Step<Parsed> {
        let start = self.at;
        let left = self.bit_or()?;
        let next = self.tokens.get(self.at).map(|token| token.kind);
        let found = COMPARISONS
            .iter()
            .find(|(symbol, _)| next == Some(TokenKind::Symbol(symbol)));
        let Some((_, op)) = found else {
            return Ok(left);
        };
        let left = self.checked_bits(left, start)?;
        self.at += 1;
        let middle = self.at;
        let right = self.bit_or()?;
        let right = self.checked_bits(right, middle)?;
        Ok(Parsed::Condition(Condition::Compare(Comparison {
            left,
            op: *op,
            right,
            span: self.span_from(start),
        })))
    }

    fn bit_or(&mut self) -> Step<Parsed> {
        self.joined_bits("|", Bits::Or, Self::bit_and)
    }

    fn bit_and(&mut self) -> Step<Parsed> {
        self.joined_bits("&", Bits::And, Self::operand)
    }

    fn joined_bits(
        &mut self,
        symbol: &str,
        join: fn(Vec<Bits>) -> Bits,
        operand: fn(&mut Self) -> Step<Parsed>,
    ) -> Step<Parsed> {
        let start = self.at;
        let first = operand(self)?;
        if !self.is_next(symbol) {
            return Ok(first);
        }
        let mut all = vec![self.checked_bits(first, start)?];
        while self.take(symbol) {
            let start = self.at;
            let next = operand(self)?;
            all.push(self.checked_bits(next, start)?);
        }
        Ok(Parsed::Bits(join(all)))
    }

    /// A number, constant or argument, or a condition or value in parentheses.
    fn operand(&mut self) -> Step<Parsed> {
        let next = self.tokens.get(self.at).map(|token| token.kind);
        match next {
            Some(TokenKind::Symbol("(")) => {
                self.open()?;
                let inner = self.alternatives()?;
                self.symbol(")", "an operator or `)`")?;
                self.depth -= 1;
                Ok(inner)
            }
            Some(TokenKind::Number) => {
                let (value, _) = self.number()?;
                Ok(Parsed::Bits(Bits::Number(value)))
            }
            _ => {
                let name = self.name("a condition such as `fd == 1`")?;
                Ok(Parsed::Bits(match self.constants.get(name.text.as_str()) {
                    Some((value, _)) => Bits::Number(*value),
                    None => Bits::Argument(name),
                }))
            }
        }
    }

    /// Consumes a parenthesis or `!`.
    fn open(&mut self) -> Step<()> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!("more than {MAX_NESTING} nested parentheses");
            return Err(self.limit(self.previous(), message));
        }
        Ok(())
    }

    fn checked_condition(&self, read: Parsed, start: usize) -> Step<Condition> {
        match read {
            Parsed::Condition(condition) => Ok(condition),
            Parsed::Bits(_) => {
                let diagnostic =
                    Diagnostic::error(code::KAFEL_SYNTAX, "a value where a condition is expected")
                        .label(self.span_from(start), "not a boolean")
                        .help("compare it: `flags & 1 != 0`");
                Err(Box::new(diagnostic))
            }
        }
    }

    fn checked_bits(&self, read: Parsed, start: usize) -> Step<Bits> {
        match read {
            Parsed::Bits(bits) => Ok(bits),
            Parsed::Condition(_) => {
                let diagnostic =
                    Diagnostic::error(code::KAFEL_SYNTAX, "a condition where a value is expected")
                        .label(self.span_from(start), "this is a boolean")
                        .help("combine conditions with `&&` and `||`");
                Err(Box::new(diagnostic))
            }
        }
    }

    fn span_from(&self, start: usize) -> Span {
        self.span_since(self.tokens[start].span)
    }
}
