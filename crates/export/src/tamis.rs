//! Exporting: from a ruleset to a policy in the tamis language.
//!
//! A ruleset is listed call by call: its actions in order, each with its condition. Calls with the same list on all
//! architectures are at the top, others in `on` blocks. Numbers without a name are listed as numbers; their most
//! frequent action becomes `unknown`. The calls of one block are disjoint, so their order is free: conditions
//! first, then lists of names.
//!
//! The text has the same meaning and widths as the ruleset: comparisons at another width than the kernel's are
//! marked by `low(…)`, `high(…)` or `full(…)`. Callers that need a proof parse the text and compare.

mod condition;
pub(crate) mod exporter;
mod layout;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;

use tamis_abi::{Action, ActionKind, Arch, consts, errno, syscall};
use tamis_rules::{IntervalSet, Predicate, Ruleset, Section};

use layout::{Block, Statements};
use tamis_policy::tamis::ast::Verb;

/// The use of names in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Arguments and constants by name if they have one.
    Named,
    /// The same, with the width of every comparison spelled out, so that the text is the same for all
    /// architectures.
    Explicit,
    /// Calls and actions by name, arguments by index, everything else in numbers, every width spelled out: longer,
    /// but unambiguous.
    Literal,
}

/// A feature that the language can't express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TamisExportError {
    /// An action with data that the language doesn't support, or an errno that is too large.
    Action(Action),
    /// More values in a mask than the language supports.
    Values,
    /// The conditions of all calls together are longer than [`MAX_CONDITIONS_BYTES`].
    TooLong,
    /// Run-time variables, which this text form doesn't support.
    Variables,
}

/// The most text of conditions in a policy, in bytes. A condition is repeated for each of its calls, because names
/// and widths of arguments differ. Hundreds of copies of a long condition are unreadable, and parsing them takes
/// minutes.
pub const MAX_CONDITIONS_BYTES: usize = 256 << 10;

impl fmt::Display for TamisExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TamisExportError::Action(action) => {
                write!(f, "the tamis language has no action {action}")
            }
            TamisExportError::Values => {
                f.write_str("a set of values is too large for the tamis language")
            }
            TamisExportError::Variables => {
                f.write_str("the policy has run-time variables: bind them first")
            }
            TamisExportError::TooLong => write!(
                f,
                "the conditions of all calls need more than {} KiB of text",
                MAX_CONDITIONS_BYTES >> 10
            ),
        }
    }
}

impl Error for TamisExportError {}

/// A policy with the meaning of the ruleset.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_export::tamis::{Style, policy};
/// use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};
/// let rule = Rule {
///     syscalls: IntervalSet::from_iter([0..=1]),
///     when: Predicate::True,
///     action: Action::ALLOW,
///     origin: None,
/// };
/// let section = Section { arch: Arch::X86_64, rules: vec![rule], default: Action::errno(1) };
/// let ruleset = Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap();
/// let text = policy(&ruleset, Style::Named).unwrap();
/// assert!(text.ends_with("default errno(EPERM)\nbad-arch kill-process\n\nallow read, write\n"));
/// ```
///
/// # Errors
/// If the language can't express the ruleset, or the text would be too long.
pub fn policy(ruleset: &Ruleset, style: Style) -> Result<String, TamisExportError> {
    policy_with_notes(ruleset, style, &BTreeMap::new())
}

/// The same, with comments: the rules of calls with the same note stand below it.
///
/// # Errors
/// As [`policy`].
pub fn policy_with_notes(
    ruleset: &Ruleset,
    style: Style,
    notes: &BTreeMap<&'static str, String>,
) -> Result<String, TamisExportError> {
    if !ruleset.variables().is_empty() {
        return Err(TamisExportError::Variables);
    }
    let nothing = Section {
        arch: Arch::X86_64,
        rules: Vec::new(),
        default: ruleset.bad_arch,
    };
    let sections = match ruleset.sections() {
        // A policy has at least one architecture; one with the action of all others changes nothing.
        [] => std::slice::from_ref(&nothing),
        sections => sections,
    };
    let mut room = Room(MAX_CONDITIONS_BYTES);
    let listings: Result<Vec<Listing>, TamisExportError> = sections
        .iter()
        .map(|section| Listing::from_section(section, style, &mut room))
        .collect();
    let listings = listings?;
    let bad_arch = answer(ruleset.bad_arch, sections[0].arch)?;
    Ok(arrange(&listings, &bad_arch, notes))
}

/// The condition of a rule for one call, in the form of the parentheses after the call's name.
///
/// # Errors
/// If the language can't express it.
pub fn condition(
    arch: Arch,
    call: Option<&str>,
    when: &Predicate,
    style: Style,
) -> Result<String, TamisExportError> {
    condition::text(arch, call, when, style)
}

/// An action in the language, with the errno's name on this architecture.
///
/// # Errors
/// If the language doesn't support the action's data.
pub fn answer(action: Action, arch: Arch) -> Result<String, TamisExportError> {
    let word = Verb::Plain(action.kind).word();
    match (action.kind, action.data) {
        (ActionKind::Errno, data) if data <= errno::MAX => match errno_name(data, arch) {
            Some(name) => Ok(format!("{word}({name})")),
            None => Ok(format!("{word}({data})")),
        },
        (ActionKind::Errno, _) => Err(TamisExportError::Action(action)),
        (_, 0) => Ok(word.to_owned()),
        (ActionKind::Trap | ActionKind::Trace, data) => Ok(format!("{word}({data})")),
        _ => Err(TamisExportError::Action(action)),
    }
}

/// The name of an errno value that filters plausibly return, in addition to those with the same number everywhere.
fn errno_name(value: u16, arch: Arch) -> Option<&'static str> {
    const OTHERS: [&str; 16] = [
        "ENOSYS",
        "ENAMETOOLONG",
        "ELOOP",
        "ENODATA",
        "EPROTO",
        "EOVERFLOW",
        "EOPNOTSUPP",
        "EAFNOSUPPORT",
        "EPROTONOSUPPORT",
        "ESOCKTNOSUPPORT",
        "ENOPROTOOPT",
        "ENETDOWN",
        "ENETUNREACH",
        "ETIMEDOUT",
        "ECONNREFUSED",
        "ECANCELED",
    ];
    let matches = |name: &&str| consts::value(arch, name) == Some(u64::from(value));
    errno::portable_name(value).or_else(|| OTHERS.into_iter().find(matches))
}

/// One action, with its condition in the language if there is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Clause {
    answer: String,
    when: Option<String>,
}

/// The remaining bytes for conditions.
struct Room(usize);

impl Room {
    /// Subtracts the size of the clauses of a call or some numbers.
    fn take(&mut self, clauses: Clauses) -> Result<Clauses, TamisExportError> {
        let lengths = clauses.iter().filter_map(|clause| clause.when.as_ref());
        let length: usize = lengths.map(String::len).sum();
        self.0 = self
            .0
            .checked_sub(length)
            .ok_or(TamisExportError::TooLong)?;
        Ok(clauses)
    }
}

/// The clauses of some calls: the first match decides; the last always matches.
type Clauses = Vec<Clause>;

/// The clauses of a section for a call.
struct Entry {
    nr: u32,
    clauses: Clauses,
    /// The same with every width spelled out, for use on several architectures.
    explicit: Clauses,
}

/// All clauses of a section, call by call.
struct Listing {
    arch: Arch,
    calls: BTreeMap<&'static str, Entry>,
    /// Numbers without a name that differ from most of them.
    odd: Vec<(IntervalSet<u32>, Clauses)>,
    default: String,
    /// The action of most numbers without a name, if it isn't the default.
    unknown: Option<String>,
}

impl Listing {
    fn from_section(
        section: &Section,
        style: Style,
        room: &mut Room,
    ) -> Result<Listing, TamisExportError> {
        let arch = section.arch;
        let mut calls = BTreeMap::new();
        for (nr, name) in syscall::all(arch) {
            // Skip aliases of the same number.
            if syscall::name(arch, nr) == Some(name) {
                let clauses = |style| clauses(section, nr.0, Some(name), style);
                let explicit = if style == Style::Named {
                    Style::Explicit
                } else {
                    style
                };
                let (clauses, explicit) = (room.take(clauses(style)?)?, clauses(explicit)?);
                calls.insert(
                    name,
                    Entry {
                        nr: nr.0,
                        clauses,
                        explicit,
                    },
                );
            }
        }
        let named: IntervalSet<u32> = syscall::all(arch).map(|(nr, _)| nr.0).collect();
        let unnamed = Section::domain(arch).difference(&named);
        let mut odd: BTreeMap<Clauses, Vec<(u32, u32)>> = BTreeMap::new();
        for (first, last) in pieces(section, &unnamed) {
            odd.entry(room.take(clauses(section, first, None, style)?)?)
                .or_default()
                .push((first, last));
        }
        let default = answer(section.default, arch)?;
        let size = |ranges: &[(u32, u32)]| {
            ranges
                .iter()
                .map(|(first, last)| u64::from(last - first) + 1)
                .sum::<u64>()
        };
        let usual = odd.iter().filter(|(clauses, _)| clauses.len() == 1);
        let usual = usual.max_by_key(|(_, ranges)| size(ranges));
        let usual = usual.map(|(clauses, _)| clauses[0].answer.clone());
        let unknown = usual.filter(|usual| *usual != default);
        let fallback = unknown.as_ref().unwrap_or(&default).clone();
        let is_odd = |clauses: &Clauses| clauses.len() > 1 || clauses[0].answer != fallback;
        let odd = odd
            .into_iter()
            .filter(|(clauses, _)| is_odd(clauses))
            .map(|(clauses, ranges)| {
                let ranges = ranges.into_iter().map(|(first, last)| first..=last);
                (ranges.collect(), clauses)
            })
            .collect();
        Ok(Listing {
            arch,
            calls,
            odd,
            default,
            unknown,
        })
    }
}

/// Splits a set of numbers at the bounds of rules.
fn pieces(section: &Section, set: &IntervalSet<u32>) -> Vec<(u32, u32)> {
    let mut starts: BTreeSet<u32> = BTreeSet::new();
    for (first, last) in section
        .rules
        .iter()
        .flat_map(|rule| rule.syscalls.intervals())
    {
        starts.insert(*first);
        starts.extend(last.checked_add(1));
    }
    let mut pieces = Vec::new();
    for (first, last) in set.intervals() {
        let mut from = *first;
        for start in starts.range(first..=last).filter(|start| *start > first) {
            pieces.push((from, start - 1));
            from = *start;
        }
        pieces.push((from, *last));
    }
    pieces
}

/// The clauses of a section for a number.
fn clauses(
    section: &Section,
    nr: u32,
    call: Option<&str>,
    style: Style,
) -> Result<Clauses, TamisExportError> {
    let mut clauses = Clauses::new();
    for rule in section
        .rules
        .iter()
        .filter(|rule| rule.syscalls.contains(nr))
    {
        let when = match &rule.when {
            Predicate::True => None,
            when => Some(condition::text(section.arch, call, when, style)?),
        };
        let decides = when.is_none();
        clauses.push(Clause {
            answer: answer(rule.action, section.arch)?,
            when,
        });
        if decides {
            return Ok(clauses);
        }
    }
    clauses.push(Clause {
        answer: answer(section.default, section.arch)?,
        when: None,
    });
    Ok(clauses)
}

/// The policy of these listings: common clauses at the top, the rest in blocks.
fn arrange(listings: &[Listing], bad_arch: &str, notes: &BTreeMap<&'static str, String>) -> String {
    let defaults: Vec<&String> = listings.iter().map(|listing| &listing.default).collect();
    let default = &most_common(&defaults);
    let all_same = listings
        .iter()
        .all(|listing| listing.unknown == listings[0].unknown);
    let unknown = listings[0].unknown.as_ref().filter(|_| all_same);
    let mut blocks: BTreeMap<Vec<usize>, Block> = BTreeMap::new();
    for (index, listing) in listings.iter().enumerate() {
        let own_default = Some(&listing.default).filter(|own| *own != default);
        let own_unknown = listing.unknown.as_ref().filter(|_| !all_same);
        if own_default.is_some() || own_unknown.is_some() {
            let block = blocks.entry(vec![index]).or_default();
            block.fallback("default", own_default);
            block.fallback("unknown", own_unknown);
        }
        for (numbers, clauses) in &listing.odd {
            // A policy for one architecture can use its numbers.
            let place = if listings.len() == 1 {
                Vec::new()
            } else {
                vec![index]
            };
            blocks.entry(place).or_default().numbers(numbers, clauses);
        }
    }
    let names: BTreeSet<&str> = listings
        .iter()
        .flat_map(|listing| listing.calls.keys().copied())
        .collect();
    for name in names {
        let note = notes.get(name).map_or("", String::as_str);
        arrange_call(name, note, listings, &mut blocks);
    }
    let arches: Vec<&str> = listings.iter().map(|listing| listing.arch.name()).collect();
    let mut head = Statements::default();
    head.list("arch", &arches);
    head.line(&format!("default {default}"));
    head.line(&format!("bad-arch {bad_arch}"));
    if let Some(unknown) = unknown {
        head.line(&format!("unknown {unknown}"));
    }
    // Conditions first, the long lists last.
    let top = blocks.remove(&Vec::new()).unwrap_or_default();
    let (conditional, plain) = match notes.is_empty() {
        true => top.split(),
        // What belongs to a note stays together.
        false => (top, Block::default()),
    };
    let mut text = head.into_text() + &conditional.into_text(&[]);
    for (indices, block) in blocks {
        let arches: Vec<&str> = indices.iter().map(|index| arches[*index]).collect();
        text.push_str(&block.into_text(&arches));
    }
    text + &plain.into_text(&[])
}

/// The distinct clauses for a call, each with its sections, in the order of the sections.
type SharedClauses<'a> = Vec<(&'a Clauses, Vec<usize>)>;

/// Adds the clauses of a call to the blocks of the architectures that share them.
fn arrange_call(
    name: &str,
    note: &str,
    listings: &[Listing],
    blocks: &mut BTreeMap<Vec<usize>, Block>,
) {
    let alike = |choose: fn(&Entry) -> &Clauses| {
        let mut alike: SharedClauses<'_> = Vec::new();
        for (index, listing) in listings.iter().enumerate() {
            let Some(clauses) = listing.calls.get(name).map(choose) else {
                continue;
            };
            match alike.iter_mut().find(|(known, _)| *known == clauses) {
                Some((_, indices)) => indices.push(index),
                None => alike.push((clauses, vec![index])),
            }
        }
        alike
    };
    let (plain, explicit) = (
        alike(|entry| &entry.clauses),
        alike(|entry| &entry.explicit),
    );
    let alike = if explicit.len() < plain.len() {
        explicit
    } else {
        plain
    };
    let is_everywhere = alike.len() == 1;
    for (clauses, indices) in alike {
        let falls_through = |index: &usize| {
            clauses.last().map(|last| &last.answer) == Some(&listings[*index].default)
        };
        let skips_last = indices.iter().all(falls_through);
        let shown = &clauses[..clauses.len() - usize::from(skips_last)];
        let place = listings[indices[0]].calls[name].nr;
        let indices = if is_everywhere { Vec::new() } else { indices };
        let block = blocks.entry(indices).or_default();
        block.call(name, note, place, shown);
    }
}

/// The most frequent text; the first of several.
fn most_common(texts: &[&String]) -> String {
    let mut best = (0, String::new());
    for text in texts {
        let count = texts.iter().filter(|other| *other == text).count();
        if count > best.0 {
            best = (count, (*text).clone());
        }
    }
    best.1
}
