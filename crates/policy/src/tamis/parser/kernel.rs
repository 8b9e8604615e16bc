//! `known-until linux 6.18`: the kernel whose calls a policy has considered.

use tamis_abi::KernelVersion;
use tamis_diag::{Diagnostic, Span};

use super::{ParseResult, Parser, TokenKind};
use crate::code;
use crate::tamis::ast::StatementKind;

/// The only system with versions of calls.
const SYSTEM: &str = "linux";
const EXAMPLE: &str =
    "write the release whose calls the policy has considered: `known-until linux 6.18`";

impl Parser<'_> {
    /// `known-until linux 6.18`, or without `linux`.
    pub(super) fn known_until(&mut self) -> ParseResult<StatementKind> {
        let word = self.advance();
        let is_continued = self.tokens[self.at].indent.is_none();
        let token = self.tokens[self.at];
        if token.kind == TokenKind::Name && is_continued {
            let typed = self.text_of(token.span);
            if typed != SYSTEM {
                let message = match typed.eq_ignore_ascii_case(SYSTEM) {
                    true => format!("`{typed}` is written `{SYSTEM}`"),
                    false => format!("`{typed}` is no kernel with versions of calls"),
                };
                return Err(self.abandon(wrong(token.span, message)));
            }
            self.advance();
        }
        let token = self.tokens[self.at];
        if token.kind != TokenKind::Number || token.indent.is_some() {
            return Err(self.abandon(wrong(word, "`known-until` without a version of Linux")));
        }
        let span = self.advance();
        match version(self.text_of(span)) {
            Ok(version) => Ok(StatementKind::KnownUntil(version)),
            Err(message) => Err(self.abandon(wrong(span, message))),
        }
    }
}

/// A release with exactly two numbers.
fn version(text: &str) -> Result<KernelVersion, String> {
    let dots = text.matches('.').count();
    match (dots, text.parse::<KernelVersion>()) {
        (1, Ok(version)) => Ok(version),
        (0, Ok(_)) => Err(format!("`{text}` is a series of releases")),
        (_, Ok(_)) => Err(format!(
            "`{text}` has a patch level, and calls come with releases"
        )),
        (_, Err(_)) => Err(format!("`{text}` is no version of Linux")),
    }
}

fn wrong(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code::KNOWN_UNTIL, message)
        .label(span, "")
        .help(EXAMPLE)
}
