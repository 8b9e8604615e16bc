//! Lines of LXC's policies: a name, an action and conditions.

use tamis_abi::{Action, ActionKind, ArgIndex};
use tamis_diag::{Diagnostic, Span};
use tamis_scmp::{Comparison, Condition};

use super::{Line, Read, code, kind};

/// The largest errno that libseccomp takes.
const MAX_ERRNO: u16 = 4094;
/// The most bytes of a value or mask that LXC reads.
const MAX_VALUE_BYTES: usize = 23;

/// The flag of `umount2` that the rule `reject_force_umount` denies, `MNT_FORCE`, and the errno.
const FORCE: u64 = 1;
const EACCES: u16 = 13;
const REJECT: &str = "reject_force_umount";

/// A line.
pub(super) struct Rule<'t> {
    /// The name of the call.
    pub(super) name: &'t str,
    /// The action.
    pub(super) action: Action,
    /// Conditions that must all hold.
    pub(super) conditions: Vec<Condition>,
}

impl<'t> Rule<'t> {
    /// Parses a line; a rule without an action has that of the list.
    pub(super) fn parse(line: Line<'t>, listed: Action) -> Read<Rule<'t>> {
        let end = line.text.find(' ').unwrap_or(line.text.len());
        let name = &line.text[..end];
        if name.is_empty() || name.contains(char::is_whitespace) {
            let message = "the name of a call, a space and an action are expected";
            return Err(mistake(
                line.whole(),
                message,
                "begin the line with the name, without tabs",
            ));
        }
        let stated = match line.text.get(end + 1..) {
            Some(_) => action(line, end + 1)?,
            None => None,
        };
        if name.starts_with(REJECT) {
            let only_forced = Condition {
                arg: ArgIndex::ALL[1],
                comparison: Comparison::Masked { mask: FORCE },
                value: FORCE,
            };
            conditions(line)?;
            return Ok(Rule {
                name: "umount2",
                action: Action::errno(EACCES),
                conditions: vec![only_forced],
            });
        }
        Ok(Rule {
            name,
            action: stated.unwrap_or(listed),
            conditions: conditions(line)?,
        })
    }
}

/// The action at a place of a line, before a comment or conditions; `None` if there is none.
pub(super) fn action(line: Line<'_>, at: usize) -> Read<Option<Action>> {
    let rest = &line.text[at..];
    let start = at + (rest.len() - rest.trim_start_matches(' ').len());
    let rest = line.text[start..].trim_end();
    if rest.is_empty() || rest.starts_with('#') {
        return Ok(None);
    }
    let word = rest.split([' ', '[', '#']).next().unwrap_or_default();
    let place = line.span(start..start + word.len().max(1));
    let Some(kind) = kind(word) else {
        let message = match word {
            "" => "conditions without an action".to_owned(),
            _ => format!("unknown action `{word}`"),
        };
        let help = "actions are kill, errno N, trap, allow and notify";
        return Err(mistake(place, message, help));
    };
    if kind != ActionKind::Errno {
        return Ok(Some(Action::new(kind, 0)));
    }
    let number = rest[word.len()..].trim_start_matches(' ');
    let number = number.split([' ', '[', '#']).next().unwrap_or_default();
    match number.parse() {
        Ok(errno) if errno <= MAX_ERRNO => Ok(Some(Action::errno(errno))),
        _ => Err(mistake(
            place,
            "`errno` needs a number from 0 to 4094",
            "write `errno 1` for EPERM",
        )),
    }
}

/// The conditions of a line, each in brackets.
fn conditions(line: Line<'_>) -> Read<Vec<Condition>> {
    let mut conditions = Vec::new();
    let Some(mut at) = line.text.find('[') else {
        return Ok(conditions);
    };
    while at < line.text.len() {
        let rest = &line.text[at..];
        let (Some(open), Some(close)) = (rest.find('['), rest.find(']')) else {
            let place = line.span(at..line.text.len());
            let message = "a condition, `[INDEX,VALUE,OPERATOR]`, is expected";
            return Err(mistake(
                place,
                message,
                "LXC refuses comments behind conditions",
            ));
        };
        let inside = at + open + 1..(at + close).max(at + open + 1);
        conditions.push(condition(&line.text[inside.clone()], line.span(inside))?);
        at += close + 1;
    }
    Ok(conditions)
}

/// The condition between brackets.
fn condition(text: &str, place: Span) -> Read<Condition> {
    let parts: Vec<&str> = text.split(',').collect();
    let (index, value, operator, mask) = match parts[..] {
        [index, value, operator] => (index, value, operator, "0"),
        [index, value, operator, mask] => (index, value, operator, mask),
        _ => {
            let message = "a condition has three or four parts";
            return Err(mistake(place, message, "write `[INDEX,VALUE,OPERATOR]`"));
        }
    };
    let wrong = |message: &str, help: &str| mistake(place, message, help);
    let arg = number(index.trim_start()).and_then(|index| ArgIndex::new(u8::try_from(index).ok()?));
    let arg =
        arg.ok_or_else(|| wrong("the index is none of 0 to 5", "calls have six arguments"))?;
    let help = "write a number of at most 64 bits, decimal or with 0x";
    let value = number(value).ok_or_else(|| wrong("the value is no number", help))?;
    let mask = number(mask).ok_or_else(|| wrong("the mask is no number", help))?;
    let comparison = match operator {
        "==" | "SCMP_CMP_EQ" => Comparison::Eq,
        "!=" | "SCMP_CMP_NE" => Comparison::Ne,
        "<" | "SCMP_CMP_LT" => Comparison::Lt,
        "<=" | "SCMP_CMP_LE" => Comparison::Le,
        ">" | "SCMP_CMP_GT" => Comparison::Gt,
        ">=" | "SCMP_CMP_GE" => Comparison::Ge,
        "&=" | "SCMP_CMP_MASKED_EQ" => Comparison::Masked { mask },
        _ => {
            let help = "operators are ==, !=, <, <=, >, >= and &=, without spaces";
            return Err(wrong("unknown operator", help));
        }
    };
    Ok(Condition {
        arg,
        comparison,
        value,
    })
}

/// A number of C: decimal, hexadecimal or octal.
fn number(text: &str) -> Option<u64> {
    if text.len() > MAX_VALUE_BYTES {
        return None;
    }
    let text = text.trim_start();
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn mistake(place: Span, message: impl Into<String>, help: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(code::LXC_RULE, message)
            .label(place, "")
            .help(help),
    )
}
