//! Parameters and the blocks that they select.

use super::{ParseResult, Parser, syntax};
use crate::tamis::ast::{Guard, Name, Parameter, StatementKind};
use crate::tamis::lexer::Token;

impl Parser<'_> {
    /// `param NAME: VALUE | VALUE = VALUE`
    pub(super) fn parameter(&mut self) -> ParseResult<StatementKind> {
        self.advance();
        let name = self.expect_name("the name of a parameter")?;
        self.expect_symbol(":")?;
        let mut values = vec![self.expect_name("a value")?];
        while self.take("|") {
            values.push(self.expect_name("a value")?);
        }
        if !self.take("=") {
            let diagnostic = syntax(name.span, format!("the parameter `{name}` has no default"))
                .help(format!("write it after the values: `= {}`", values[0]));
            return Err(self.abandon(diagnostic));
        }
        let default = self.expect_name("the default, one of the values")?;
        Ok(StatementKind::Parameter(Parameter {
            name,
            values,
            default,
        }))
    }

    /// `when NAME == VALUE { … }`, `when NAME in {VALUE, VALUE} { … }`
    pub(super) fn when_statement(&mut self) -> ParseResult<StatementKind> {
        self.advance();
        let guard = self.guard()?;
        self.expect_symbol("{")?;
        let body = self.nested(|own| Ok(own.statements(true, Parser::statement)))?;
        self.expect_symbol("}")?;
        Ok(StatementKind::When(guard, body))
    }

    fn guard(&mut self) -> ParseResult<Guard> {
        let parameter = self.expect_name("the name of a parameter")?;
        let is_negated = self.is_next("!=");
        if is_negated || self.is_next("==") {
            self.advance();
            let values = vec![self.expect_name("a value")?];
            return Ok(Guard {
                parameter,
                is_negated,
                values,
            });
        }
        let word = self.tokens[self.at];
        if self.text_of(word.span) != "in" {
            return Err(self.unexpected("`==`, `!=` or `in`"));
        }
        self.advance();
        let values = self.braced_values()?;
        Ok(Guard {
            parameter,
            is_negated,
            values,
        })
    }

    fn braced_values(&mut self) -> ParseResult<Vec<Name>> {
        self.expect_symbol("{")?;
        let values = self.names("a value")?;
        self.expect_symbol("}")?;
        Ok(values)
    }

    /// Whether `when` begins the condition of a call in another language: it follows the call on its line.
    pub(super) fn is_condition_of_call(&self, word: Token) -> bool {
        word.indent.is_none() && self.condition_begun_by("when").is_some()
    }
}
