//! Pairs of conditional rules with a common number and common calls.

use tamis_abi::Arch;
use tamis_analysis::find;
use tamis_prover::{Function, LimitReached};
use tamis_rules::{IntervalSet, Predicate, Rule, Section};

use crate::context::Context;
use crate::finding::Example;
use crate::rules_view::condition;

/// The most pairs compared in one section: a policy with more rules for one call is generated.
const MAX_PAIRS: usize = 20_000;

/// Two overlapping rules, neither of which covers the other.
pub(super) struct Overlap<'a> {
    pub(super) arch: Arch,
    pub(super) earlier: &'a Rule,
    pub(super) later: &'a Rule,
    /// A call that both match.
    pub(super) both: Example,
    /// A call that only the later one matches.
    pub(super) later_alone: Example,
}

/// All overlaps in the selected sections.
pub(super) fn overlaps<'a>(
    context: &mut Context<'a>,
    wanted: impl Fn(&Rule, &Rule) -> bool,
) -> Result<Vec<Overlap<'a>>, LimitReached> {
    let mut found = Vec::new();
    let Some(policy) = context.policy() else {
        return Ok(found);
    };
    for section in policy.sections() {
        for (earlier, later, nr) in pairs(section) {
            context.space.check_stop()?;
            if wanted(earlier, later) {
                let functions = [
                    for_number(context, section.arch, nr, earlier)?,
                    for_number(context, section.arch, nr, later)?,
                ];
                found.extend(overlap(context, section.arch, [earlier, later], functions)?);
            }
        }
    }
    Ok(found)
}

/// Conditional rules that share a number, with that number.
fn pairs(section: &Section) -> Vec<(&Rule, &Rule, u32)> {
    let conditional: Vec<&Rule> = section
        .rules
        .iter()
        .filter(|rule| !matches!(rule.when, Predicate::True | Predicate::False))
        .collect();
    let mut pairs = Vec::new();
    for (index, later) in conditional.iter().enumerate() {
        for earlier in &conditional[..index] {
            if let Some(nr) = common(&earlier.syscalls, &later.syscalls) {
                pairs.push((*earlier, *later, nr));
                if pairs.len() == MAX_PAIRS {
                    return pairs;
                }
            }
        }
    }
    pairs
}

/// The smallest number of both.
fn common(a: &IntervalSet<u32>, b: &IntervalSet<u32>) -> Option<u32> {
    let of_a = a.intervals().iter().map(|(first, _)| *first);
    let of_b = b.intervals().iter().map(|(first, _)| *first);
    // The smallest common element is the beginning of an interval.
    of_a.chain(of_b)
        .filter(|nr| a.contains(*nr) && b.contains(*nr))
        .min()
}

fn for_number(
    context: &mut Context,
    arch: Arch,
    nr: u32,
    rule: &Rule,
) -> Result<Function, LimitReached> {
    let number = IntervalSet::single(nr);
    condition(&mut context.space, arch, &number, &rule.when)
}

fn overlap<'a>(
    context: &Context,
    arch: Arch,
    [earlier, later]: [&'a Rule; 2],
    functions: [Function; 2],
) -> Result<Option<Overlap<'a>>, LimitReached> {
    let find = |wanted: [u32; 2]| {
        let found = find(&context.space, &functions, &|values| values == wanted)?;
        Ok(found.map(|found| context.answer(&found.data)))
    };
    let examples = [find([1, 0])?, find([1, 1])?, find([0, 1])?];
    let [Some(_), Some(both), Some(later_alone)] = examples else {
        return Ok(None);
    };
    Ok(Some(Overlap {
        arch,
        earlier,
        later,
        both,
        later_alone,
    }))
}
