//! Splitting: several filters that are together equivalent to one that is too long.
//!
//! Each part decides a share of the calls and allows all others. The strictest action of a stack wins, so the parts
//! together decide all calls. Shares are halves: of the architectures, then of an architecture's numbers at a border
//! between rules. The arguments of one number are never split.

use tamis_abi::{Action, Arch};
use tamis_bpf::Program;
use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};

use tamis_compiler::CompileError;

/// The calls of one part.
struct Share {
    /// The numbers by architecture.
    numbers: Vec<(Arch, IntervalSet<u32>)>,
    /// Whether the part decides architectures without a section.
    has_bad_arch: bool,
}

/// Programs that decide shares of a ruleset, each made by `fit`, which returns `None` for a share that is too long;
/// `None` if a single number is too long.
pub(super) fn split(
    ruleset: &Ruleset,
    fit: &mut impl FnMut(&Ruleset) -> Result<Option<Program>, CompileError>,
) -> Result<Option<Vec<Program>>, CompileError> {
    let sections = ruleset.sections().iter();
    let whole = Share {
        numbers: sections
            .map(|section| (section.arch, Section::domain(section.arch)))
            .collect(),
        has_bad_arch: true,
    };
    let mut open = vec![whole];
    let mut programs = Vec::new();
    while let Some(share) = open.pop() {
        if let Some(program) = fit(&part(ruleset, &share))? {
            programs.push(program);
            continue;
        }
        match halves(ruleset, share) {
            Some((first, second)) => open.extend([second, first]),
            None => return Ok(None),
        }
    }
    Ok(Some(programs))
}

/// The ruleset for the calls of a share, which allows all others.
fn part(ruleset: &Ruleset, share: &Share) -> Ruleset {
    let allow_all = |arch| Section {
        arch,
        rules: Vec::new(),
        default: Action::ALLOW,
    };
    let sections = ruleset.sections().iter().map(|section| {
        let own = share.numbers.iter().find(|(arch, _)| *arch == section.arch);
        let Some((arch, numbers)) = own else {
            return allow_all(section.arch);
        };
        let others = Section::domain(*arch).difference(numbers);
        let mut rules = Vec::new();
        if !others.is_empty() {
            rules.push(Rule {
                syscalls: others,
                when: Predicate::True,
                action: Action::ALLOW,
                origin: None,
            });
        }
        rules.extend(section.rules.iter().cloned());
        Section {
            arch: *arch,
            rules,
            default: section.default,
        }
    });
    let bad_arch = match share.has_bad_arch {
        true => ruleset.bad_arch,
        false => Action::ALLOW,
    };
    match Ruleset::new(sections.collect(), bad_arch) {
        Ok(part) => part,
        Err(_) => unreachable!("the architectures are those of a ruleset"),
    }
}

/// Two shares that together are this one; `None` if it can't be divided.
fn halves(ruleset: &Ruleset, mut share: Share) -> Option<(Share, Share)> {
    if share.numbers.len() > 1 {
        let numbers = share.numbers.split_off(share.numbers.len() / 2);
        let second = Share {
            numbers,
            has_bad_arch: false,
        };
        return Some((share, second));
    }
    let (arch, numbers) = share.numbers.first()?;
    let borders = borders(ruleset.section(*arch)?, numbers);
    let cut = *borders.get(borders.len() / 2)?;
    let below: IntervalSet<u32> = [0..=cut.checked_sub(1)?].into_iter().collect();
    let first = Share {
        numbers: vec![(*arch, numbers.intersection(&below))],
        has_bad_arch: share.has_bad_arch,
    };
    let second = Share {
        numbers: vec![(*arch, numbers.difference(&below))],
        has_bad_arch: false,
    };
    Some((first, second))
}

/// The numbers of a share, without its smallest, where rules that test arguments begin or have ended, ascending.
fn borders(section: &Section, numbers: &IntervalSet<u32>) -> Vec<u32> {
    let conditional = section.rules.iter();
    let conditional = conditional.filter(|rule| rule.when != Predicate::True);
    let intervals = conditional.flat_map(|rule| rule.syscalls.intervals());
    let mut borders: Vec<u32> = intervals
        .flat_map(|(first, last)| [Some(*first), last.checked_add(1)])
        .flatten()
        .filter(|border| numbers.contains(*border))
        .collect();
    borders.sort_unstable();
    borders.dedup();
    let smallest = numbers.intervals().first().map(|(first, _)| *first);
    borders.retain(|border| Some(*border) != smallest);
    borders
}
