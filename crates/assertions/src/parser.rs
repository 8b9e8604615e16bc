//! From text to the syntax tree.
//!
//! Tokens, targets, conditions, actions and definitions are parsed by the parser of the policy language. An error ends
//! its statement, and parsing continues at the next one.
//!
//! ```ebnf
//! checks     = { statement } ;
//! statement  = "include" STRING | "param" CONSTANT "=" ( value | values ) | let | set
//!            | "on" names | "group" STRING "{" { "reason" text | "source" text | "on" names | check } "}" | check ;
//! text       = STRING { STRING } ;
//! check      = "never" "allow" [ "any" "way" ] targets | "always" "allow" targets | "expect" targets "->" action
//!            | ( "stricter" "than" | "looser" "than" | "equal" "to" ) STRING
//!            | "at" "most" NUMBER "instructions" | "cached" ":" names ;
//! ```

use tamis_diag::{Diagnostic, SourceId, Span};
use tamis_policy::sink::Sink;
use tamis_policy::tamis::ast::{Constant, Name, StatementKind as PolicyStatement};
use tamis_policy::tamis::parser::{
    Abandon, ParseResult, Parser, did_you_mean, is_constant_name, syntax,
};

use crate::ast::{
    Check, Group, GroupStatement, GroupStatementKind, Relation, Statement, StatementKind, Text,
};

/// The words that begin checks.
const CHECK_WORDS: [&str; 8] = [
    "never", "always", "expect", "stricter", "looser", "equal", "at", "cached",
];
/// The words that begin other statements.
const OTHER_WORDS: [&str; 6] = ["include", "param", "let", "set", "on", "group"];
/// The words that begin statements of groups besides checks.
const GROUP_WORDS: [&str; 3] = ["reason", "source", "on"];

/// Parses one file; errors are reported to the sink, and their statements are omitted.
pub fn parse(source: SourceId, text: &str, sink: &mut Sink) -> Vec<Statement> {
    Parser::new(source, text, begins_statement, sink).statements(false, statement)
}

fn begins_statement(word: &str) -> bool {
    let mut words = CHECK_WORDS.iter().chain(&OTHER_WORDS).chain(&GROUP_WORDS);
    words.any(|known| *known == word)
}

fn statement(parser: &mut Parser<'_>) -> ParseResult<Statement> {
    let start = parser.next_span();
    let word = parser.next_word().unwrap_or_default().to_owned();
    let kind = match word.as_str() {
        "include" => {
            parser.expect_word("include")?;
            StatementKind::Include(parser.quoted("a file name in quotes")?)
        }
        "param" => parameter(parser)?,
        "let" => definition(parser)?,
        "set" => StatementKind::Definition(parser.set_statement()?),
        "on" => StatementKind::On(on(parser)?),
        "group" => StatementKind::Group(group(parser)?),
        _ => match check(parser, &word)? {
            Some(check) => StatementKind::Check(check),
            None => return Err(unknown_statement(parser, &OTHER_WORDS)),
        },
    };
    Ok(Statement {
        kind,
        span: start.to(parser.last_span()),
    })
}

fn parameter(parser: &mut Parser<'_>) -> ParseResult<StatementKind> {
    parser.expect_word("param")?;
    let name = parser.expect_name("a name")?;
    if !is_constant_name(&name.text) {
        let upper = name.text.to_uppercase().replace('-', "_");
        let diagnostic = syntax(
            name.span,
            format!("`{name}` is not the name of a parameter"),
        )
        .note("parameters are constants, which are written in capitals")
        .help(format!("write `param {upper} = …`"));
        return Err(parser.abandon(diagnostic));
    }
    parser.expect_symbol("=")?;
    let constant = constant(parser)?;
    Ok(StatementKind::Parameter(name, constant))
}

/// A value, or a set of values in braces.
pub(crate) fn constant(parser: &mut Parser<'_>) -> ParseResult<Constant> {
    match parser.is_next("{") {
        true => Ok(Constant::Set(parser.braced_elements()?.0)),
        false => Ok(Constant::Value(parser.value()?)),
    }
}

fn definition(parser: &mut Parser<'_>) -> ParseResult<StatementKind> {
    let definition = parser.let_statement()?;
    if let PolicyStatement::Variable(declaration) = &definition {
        let name = declaration.name.text.to_uppercase();
        let diagnostic = syntax(
            declaration.name.span,
            "a run-time variable in a file of checks",
        )
        .note("checks hold for all values of the policy's variables")
        .help(format!(
            "declare a parameter of the checks: `param {name} = …`"
        ));
        return Err(parser.abandon(diagnostic));
    }
    Ok(StatementKind::Definition(definition))
}

fn on(parser: &mut Parser<'_>) -> ParseResult<Vec<Name>> {
    parser.expect_word("on")?;
    parser.names("an architecture")
}

fn group(parser: &mut Parser<'_>) -> ParseResult<Group> {
    parser.expect_word("group")?;
    let title = parser.quoted("a title in quotes")?;
    parser.expect_symbol("{")?;
    let body = parser.statements(true, group_statement);
    parser.expect_symbol("}")?;
    Ok(Group { title, body })
}

fn group_statement(parser: &mut Parser<'_>) -> ParseResult<GroupStatement> {
    let start = parser.next_span();
    let word = parser.next_word().unwrap_or_default().to_owned();
    let kind = match word.as_str() {
        "reason" => GroupStatementKind::Reason(text(parser, "reason")?),
        "source" => GroupStatementKind::Source(text(parser, "source")?),
        "on" => GroupStatementKind::On(on(parser)?),
        _ => match check(parser, &word)? {
            Some(check) => GroupStatementKind::Check(check),
            None if OTHER_WORDS.contains(&word.as_str()) => {
                let diagnostic = syntax(start, format!("`{word}` inside a group"))
                    .note("a group contains `reason`, `source`, `on` and checks")
                    .help("write it before the group");
                return Err(parser.abandon(diagnostic));
            }
            None => return Err(unknown_statement(parser, &GROUP_WORDS)),
        },
    };
    Ok(GroupStatement {
        kind,
        span: start.to(parser.last_span()),
    })
}

fn text(parser: &mut Parser<'_>, word: &str) -> ParseResult<Text> {
    parser.expect_word(word)?;
    let mut parts = vec![parser.quoted("a text in quotes")?.text];
    while parser.is_quoted_next() {
        parts.push(parser.quoted("a text in quotes")?.text);
    }
    Ok(Text { parts })
}

/// A check that begins with this word; `None` if no check does.
fn check(parser: &mut Parser<'_>, word: &str) -> ParseResult<Option<Check>> {
    let relation = Relation::ALL
        .into_iter()
        .find(|relation| relation.words()[0] == word);
    if let Some(relation) = relation {
        for word in relation.words() {
            parser.expect_word(word)?;
        }
        let reference = parser.quoted("a policy or program in quotes")?;
        return Ok(Some(Check::Compare(relation, reference)));
    }
    Ok(Some(match word {
        "never" => {
            parser.expect_word("never")?;
            parser.expect_word("allow")?;
            let any_way = parser.take_word("any");
            if any_way {
                parser.expect_word("way")?;
            }
            let targets = parser.targets()?;
            Check::Never { any_way, targets }
        }
        "always" => {
            parser.expect_word("always")?;
            parser.expect_word("allow")?;
            Check::Always(parser.targets()?)
        }
        "expect" => {
            parser.expect_word("expect")?;
            let targets = parser.targets()?;
            parser.expect_symbol("->")?;
            Check::Expect(targets, parser.action()?)
        }
        "at" => {
            parser.expect_word("at")?;
            parser.expect_word("most")?;
            let (count, _) = parser.number()?;
            parser.expect_word("instructions")?;
            Check::AtMost(count)
        }
        "cached" => {
            parser.expect_word("cached")?;
            parser.expect_symbol(":")?;
            Check::Cached(parser.names("a system call")?)
        }
        _ => return Ok(None),
    }))
}

fn unknown_statement(parser: &mut Parser<'_>, others: &'static [&'static str]) -> Abandon {
    let span: Span = parser.next_span();
    let known = CHECK_WORDS.iter().chain(others).copied();
    let diagnostic: Diagnostic = match parser.next_word().map(str::to_owned) {
        Some(word) if tamis_abi::syscall::is_known(&word) => {
            syntax(span, format!("`{word}` is not a statement")).help(format!(
                "write `never allow {word}` or `always allow {word}`"
            ))
        }
        Some(word) => syntax(span, format!("`{word}` is not a statement")).help(did_you_mean(
            &word,
            known,
            "statements begin with",
        )),
        None => return parser.unexpected("a statement"),
    };
    parser.abandon(diagnostic)
}
