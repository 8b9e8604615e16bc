//! Exporting: from a ruleset to a policy in the tamis language.
//!
//! What a ruleset says is listed call by call: the answers in order, each with its condition. Calls with
//! the same list on all architectures stand at the top, the others in `on` blocks; numbers without a name
//! are listed as numbers, and what most of them get becomes `unknown`. Calls of one block are disjoint,
//! so that their order is free: conditions first, then lists of names.
//!
//! The text means what the ruleset means, with the same widths: where a comparison isn't of the kernel's
//! width, `low(…)`, `high(…)` or `full(…)` says so. The prover can't be used here; callers who need to
//! be sure parse the text and compare.

mod condition;
mod layout;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;

use tamis_abi::{Action, ActionKind, Arch, consts, errno, syscall};
use tamis_rules::{IntervalSet, Predicate, Ruleset, Section};

use super::ast::Verb;
use layout::{Block, Statements};

/// What is written by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Arguments and constants by their names wherever they have one.
    Named,
    /// The same, with the width of every comparison spelled out, so that it reads alike for all
    /// architectures.
    Explicit,
    /// Calls and actions by name, arguments by position, everything else in numbers, every width
    /// spelled out: longer, with nothing that could be misread.
    Literal,
}

/// Something that the language can't say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsayable {
    /// An action with data that it doesn't take, or too large an errno.
    Action(Action),
    /// More values in a mask than the language takes.
    Values,
    /// The conditions of the calls, each written out, are longer than [`MAX_CONDITIONS_BYTES`].
    TooLong,
    /// Run-time variables, which this text form doesn't name.
    Variables,
}

/// The most text of conditions in a policy, in bytes. A condition stands at every call that it is about,
/// because names and widths of arguments differ; nobody reads hundreds of copies of a long one, and
/// parsing them takes minutes.
pub const MAX_CONDITIONS_BYTES: usize = 256 << 10;

impl fmt::Display for Unsayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsayable::Action(action) => {
                write!(f, "the tamis language has no action {action}")
            }
            Unsayable::Values => f.write_str("a set of values is too large for the tamis language"),
            Unsayable::Variables => {
                f.write_str("the policy has run-time variables: bind them first")
            }
            Unsayable::TooLong => write!(
                f,
                "the conditions of all calls need more than {} KiB of text",
                MAX_CONDITIONS_BYTES >> 10
            ),
        }
    }
}

impl Error for Unsayable {}

/// A policy that means what the ruleset means.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_policy::tamis::export::{Style, policy};
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
/// If the language can't say it, or the text would be too long to be read.
pub fn policy(ruleset: &Ruleset, style: Style) -> Result<String, Unsayable> {
    if !ruleset.variables().is_empty() {
        return Err(Unsayable::Variables);
    }
    let nothing = Section {
        arch: Arch::X86_64,
        rules: Vec::new(),
        default: ruleset.bad_arch,
    };
    let sections = match ruleset.sections() {
        // A policy is for some architecture; one that is treated as any other makes no difference.
        [] => std::slice::from_ref(&nothing),
        sections => sections,
    };
    let mut room = Room(MAX_CONDITIONS_BYTES);
    let listings: Result<Vec<Listing>, Unsayable> = sections
        .iter()
        .map(|section| Listing::of(section, style, &mut room))
        .collect();
    let listings = listings?;
    let bad_arch = answer(ruleset.bad_arch, sections[0].arch)?;
    Ok(arrange(&listings, &bad_arch))
}

/// The condition of a rule about one call, as it stands in the parentheses behind the call's name.
///
/// # Errors
/// If the language can't say it.
pub fn condition(
    arch: Arch,
    call: Option<&str>,
    when: &Predicate,
    style: Style,
) -> Result<String, Unsayable> {
    condition::text(arch, call, when, style)
}

/// An action as the language writes it, with the name that an errno has on this architecture.
///
/// # Errors
/// If the action has data that the language has no place for.
pub fn answer(action: Action, arch: Arch) -> Result<String, Unsayable> {
    const MAX_ERRNO: u16 = 4095;
    let word = Verb::Plain(action.kind).word();
    match (action.kind, action.data) {
        (ActionKind::Errno, data) if data <= MAX_ERRNO => match errno_name(data, arch) {
            Some(name) => Ok(format!("{word}({name})")),
            None => Ok(format!("{word}({data})")),
        },
        (ActionKind::Errno, _) => Err(Unsayable::Action(action)),
        (_, 0) => Ok(word.to_owned()),
        (ActionKind::Trap | ActionKind::Trace, data) => Ok(format!("{word}({data})")),
        _ => Err(Unsayable::Action(action)),
    }
}

/// The name of an errno value that filters may well return, beyond those that are the same everywhere.
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

/// One answer, with the condition in the language if there is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Clause {
    answer: String,
    when: Option<String>,
}

/// How many bytes conditions may still take.
struct Room(usize);

impl Room {
    /// Makes room for what was said about a call, or some numbers.
    fn take(&mut self, clauses: Clauses) -> Result<Clauses, Unsayable> {
        let lengths = clauses.iter().filter_map(|clause| clause.when.as_ref());
        let length: usize = lengths.map(String::len).sum();
        self.0 = self.0.checked_sub(length).ok_or(Unsayable::TooLong)?;
        Ok(clauses)
    }
}

/// What happens to some calls: the first clause that matches decides; the last always does.
type Clauses = Vec<Clause>;

/// What a section says about a call.
struct Entry {
    nr: u32,
    clauses: Clauses,
    /// The same with every width spelled out, to be alike for several architectures.
    explicit: Clauses,
}

/// Everything that a section says, call by call.
struct Listing {
    arch: Arch,
    calls: BTreeMap<&'static str, Entry>,
    /// Numbers without a name that are treated differently from most of them.
    odd: Vec<(IntervalSet<u32>, Clauses)>,
    default: String,
    /// What most numbers without a name get, if that isn't the default.
    unknown: Option<String>,
}

impl Listing {
    fn of(section: &Section, style: Style, room: &mut Room) -> Result<Listing, Unsayable> {
        let arch = section.arch;
        let mut calls = BTreeMap::new();
        for (nr, name) in syscall::all(arch) {
            // The number may have an older name; that one says the same.
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

/// Splits a set of numbers where rules begin or end.
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

/// What a section answers to a number.
fn clauses(
    section: &Section,
    nr: u32,
    call: Option<&str>,
    style: Style,
) -> Result<Clauses, Unsayable> {
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

/// The policy of these listings: what they share at the top, the rest in blocks.
fn arrange(listings: &[Listing], bad_arch: &str) -> String {
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
            // Where a policy is for one architecture, numbers are its own.
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
        arrange_call(name, listings, &mut blocks);
    }
    let arches: Vec<&str> = listings.iter().map(|listing| listing.arch.name()).collect();
    let mut head = Statements::default();
    head.list("arch", &arches);
    head.line(&format!("default {default}"));
    head.line(&format!("bad-arch {bad_arch}"));
    if let Some(unknown) = unknown {
        head.line(&format!("unknown {unknown}"));
    }
    // What depends on arguments first, the long lists last.
    let top = blocks.remove(&Vec::new()).unwrap_or_default();
    let (conditional, plain) = top.split();
    let mut text = head.into_text() + &conditional.into_text(&[]);
    for (indices, block) in blocks {
        let arches: Vec<&str> = indices.iter().map(|index| arches[*index]).collect();
        text.push_str(&block.into_text(&arches));
    }
    text + &plain.into_text(&[])
}

/// The clauses that sections have in common for a call, and which sections; the order is theirs.
type Alike<'a> = Vec<(&'a Clauses, Vec<usize>)>;

/// Puts what is said about a call into the blocks of the architectures that say the same.
fn arrange_call(name: &str, listings: &[Listing], blocks: &mut BTreeMap<Vec<usize>, Block>) {
    let alike = |choose: fn(&Entry) -> &Clauses| {
        let mut alike: Alike<'_> = Vec::new();
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
        blocks.entry(indices).or_default().call(name, place, shown);
    }
}

/// The text that comes most often; of several the first.
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
