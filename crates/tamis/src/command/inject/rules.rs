//! The syntax of the rules of `tamis inject`.
//!
//! ```text
//! rules  = rule { ( newline | ";" ) rule }
//! rule   = TARGET effect { when }
//! effect = "errno(" ERROR ")" | "return" INTEGER | "delay" DURATION | "kill"
//! when   = "first" N | "after" N | "every" N | "at" N
//! ```
//!
//! A target has the syntax of a rule in the tamis language: a call, a call with a condition, a set of calls. `#` begins
//! a comment. The policy compiler decides which calls a target matches: each rule becomes a policy, and all rules
//! together become the policy whose filter selects the calls.

use std::ops::Range;
use std::time::Duration;

use tamis_session::Input;

use crate::cli::Failure;
use crate::cli::sandbox::errno;

pub(super) const NAME: &str = "<rules>";

/// The text of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleText {
    /// The trimmed text.
    pub(super) text: String,
    /// The target in the tamis language: its range in the text of all rules.
    pub(super) target: Range<usize>,
    pub(super) effect: Effect,
    pub(super) when: Occurrences,
}

/// The effect of a rule on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The call is skipped and returns this value.
    Return(i64),
    /// The call is skipped and fails with this error.
    Errno(u16),
    /// The call is delayed by this time.
    Delay(Duration),
    Kill,
}

/// The matching calls that a rule changes, counted from 1 over all tasks of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrences {
    /// The number of unchanged calls before the first changed one.
    after: u64,
    /// The period of changed calls after that.
    every: u64,
    /// The last call that may be changed.
    last: u64,
}

impl Occurrences {
    const ALWAYS: Occurrences = Occurrences {
        after: 0,
        every: 1,
        last: u64::MAX,
    };

    /// Whether the call of this number is changed.
    pub(super) const fn fires(self, number: u64) -> bool {
        number > self.after
            && number <= self.last
            && (number - self.after).is_multiple_of(self.every)
    }
}

impl RuleText {
    /// The rule with its target moved by a number of bytes.
    fn behind(self, bytes: usize) -> RuleText {
        RuleText {
            target: self.target.start + bytes..self.target.end + bytes,
            ..self
        }
    }
}

/// Splits a text into rules.
pub(super) fn parse(text: &str) -> Result<Vec<RuleText>, Failure> {
    let mut rules = Vec::new();
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let mut start = line_start;
        for part in line.split('#').next().unwrap_or_default().split(';') {
            let indent = part.len() - part.trim_start().len();
            let rule = part.trim();
            if !rule.is_empty() {
                let parsed = parse_rule(rule).map_err(|problem| wrong(rule, &problem))?;
                rules.push(parsed.behind(start + indent));
            }
            start += part.len() + 1;
        }
        line_start += line.len();
    }
    match rules.is_empty() {
        true => Err(wrong(text.trim(), "there is no rule")),
        false => Ok(rules),
    }
}

fn wrong(rule: &str, problem: &str) -> Failure {
    Failure::usage(
        format!("the rule `{rule}`: {problem}"),
        "write a call, what becomes of it, and when: `openat errno(ENOSPC) every 3`, `read(fd == 0) delay 10ms`",
    )
}

fn parse_rule(text: &str) -> Result<RuleText, String> {
    let (target, rest) = split_target(text)?;
    let mut words = rest.split_whitespace();
    let effect = parse_effect(&mut words)?;
    let mut when = Occurrences::ALWAYS;
    while let Some(word) = words.next() {
        let number = words.next().and_then(|number| number.parse().ok());
        let number: u64 = number
            .filter(|number| *number > 0)
            .ok_or_else(|| format!("`{word}` needs a number above 0"))?;
        match word {
            "first" => when.last = number,
            "after" => when.after = number,
            "every" => when.every = number,
            "at" => (when.after, when.last) = (number - 1, number),
            _ => {
                return Err(format!(
                    "`{word}` is none of `first`, `after`, `every` and `at`"
                ));
            }
        }
    }
    Ok(RuleText {
        text: text.to_owned(),
        target: 0..target.len(),
        effect,
        when,
    })
}

/// Splits a rule after its target: a word, and parentheses directly after it.
fn split_target(text: &str) -> Result<(&str, &str), String> {
    let end_of_name = text.find([' ', '\t', '(']).unwrap_or(text.len());
    let behind = text[end_of_name..].trim_start();
    if !behind.starts_with('(') {
        return Ok((&text[..end_of_name], behind));
    }
    let start = text.len() - behind.len();
    let mut depth = 0;
    for (offset, character) in behind.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let end = start + offset + 1;
            return Ok((&text[..end], &text[end..]));
        }
    }
    Err("the condition lacks a closing `)`".to_owned())
}

fn parse_effect<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Effect, String> {
    let Some(word) = words.next() else {
        return Err("it doesn't say what becomes of the call".to_owned());
    };
    let mut operand = || {
        words
            .next()
            .ok_or_else(|| format!("`{word}` needs a value"))
    };
    let inside = word
        .strip_prefix("errno(")
        .and_then(|rest| rest.strip_suffix(')'));
    match (word, inside) {
        (_, Some(name)) => errno(name).map(Effect::Errno).ok_or_else(|| {
            format!("`{name}` is no error: write a name such as ENOSPC, or 1 to 4095")
        }),
        ("return", _) => {
            let text = operand()?;
            integer(text)
                .map(Effect::Return)
                .ok_or_else(|| format!("`{text}` is no number"))
        }
        ("delay", _) => {
            let text = operand()?;
            duration(text)
                .map(Effect::Delay)
                .ok_or_else(|| format!("`{text}` is no time: write `200us`, `10ms` or `2s`"))
        }
        ("kill", _) => Ok(Effect::Kill),
        _ => Err(format!(
            "`{word}` is none of `errno(…)`, `return`, `delay` and `kill`"
        )),
    }
}

/// Parses a decimal or hexadecimal number of 64 bits, which may be negative.
fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

fn duration(text: &str) -> Option<Duration> {
    let unit_start = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_start);
    let number: u64 = number.parse().ok()?;
    match unit {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

/// A policy with the action `notify` for the targets of these statements, which allows all other calls.
pub(super) fn policy(statements: &str) -> Input {
    Input::new(
        NAME,
        format!("{statements}\ndefault allow\nbad-arch allow\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fires(rule: &str) -> Vec<u64> {
        let when = parse_rule(rule).expect("a rule").when;
        (1..=12).filter(|number| when.fires(*number)).collect()
    }

    #[test]
    fn rules_say_which_call_changes() {
        assert_eq!(fires("read errno(EIO)"), (1..=12).collect::<Vec<_>>());
        assert_eq!(fires("read errno(EIO) every 3"), [3, 6, 9, 12]);
        assert_eq!(fires("read errno(EIO) first 2"), [1, 2]);
        assert_eq!(fires("read errno(EIO) after 10"), [11, 12]);
        assert_eq!(fires("read errno(EIO) at 5"), [5]);
        assert_eq!(fires("read errno(EIO) after 2 every 4 first 10"), [6, 10]);
    }

    #[test]
    fn targets_are_found_in_the_whole_text() {
        let text =
            "# a comment; with a semicolon\n openat kill ; read(fd == 0) kill\nwrite kill # too\n";
        let rules = parse(text).expect("three rules");
        let targets: Vec<&str> = rules
            .iter()
            .map(|rule| &text[rule.target.clone()])
            .collect();
        assert_eq!(targets, ["openat", "read(fd == 0)", "write"]);
    }

    #[test]
    fn a_target_may_have_a_condition() {
        let rule = parse_rule("write (fd in {1, 2} && (count > 3)) delay 10ms").expect("a rule");
        assert_eq!(
            rule.target.len(),
            "write (fd in {1, 2} && (count > 3))".len()
        );
        assert_eq!(rule.effect, Effect::Delay(Duration::from_millis(10)));
        let effect = |text: &str| parse_rule(text).map(|rule| rule.effect);
        assert_eq!(effect("getpid return -5"), Ok(Effect::Return(-5)));
        assert_eq!(
            effect("getpid return 0xffffffffffffffff"),
            Ok(Effect::Return(-1))
        );
        assert_eq!(effect("@file-system kill"), Ok(Effect::Kill));
        for wrong in [
            "read",
            "read(fd == 1 errno(EIO)",
            "read errno(EMISSPELT)",
            "read delay 5",
            "read return",
            "read kill every 0",
            "read kill sometimes 3",
        ] {
            assert!(parse_rule(wrong).is_err(), "{wrong}");
        }
    }
}
