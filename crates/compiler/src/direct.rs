//! Direct lowering: a formula as questions in the formula's own order.
//!
//! Continuation passing: a formula is lowered between two existing decisions, one for "holds" and one for "does not
//! hold". `all(a, b)` is lowered as `a` between (`b` between yes and no) and no. Nothing is copied, so the result is
//! linear in the formula. It may test a word twice, which [`diagram`](crate::diagram) does not; it is used when the
//! diagram reaches its limit.

use tamis_rules::IntervalSet;

use crate::dag::{Dag, NodeId};
use crate::expected_calls::ExpectedCalls;
use crate::formula::Formula;
use crate::split::{Effort, split};

/// Adds the decision that is `yes` where the formula holds and `no` elsewhere. Recurses as deep as the formula nests;
/// the length of lists is not limited. The samples weigh the values of words.
pub(crate) fn lower(
    dag: &mut Dag,
    formula: &Formula,
    yes: NodeId,
    no: NodeId,
    samples: &ExpectedCalls,
    effort: Effort,
) -> NodeId {
    match formula {
        Formula::True => yes,
        Formula::False => no,
        Formula::All(parts) => parts.iter().rev().fold(yes, |rest, part| {
            lower(dag, part, rest, no, samples, effort)
        }),
        Formula::Any(parts) => parts.iter().rev().fold(no, |rest, part| {
            lower(dag, part, yes, rest, samples, effort)
        }),
        Formula::In(word, set) => split(
            dag,
            *word,
            runs(set, yes, no),
            &samples.values(*word),
            effort,
        ),
        Formula::Asked {
            word,
            question,
            answer,
        } => {
            let (if_true, if_false) = if *answer { (yes, no) } else { (no, yes) };
            dag.ask(*word, *question, if_true, if_false)
        }
    }
}

/// First values and decisions: `yes` for elements of the set, `no` for all other values.
pub(crate) fn runs<T: Copy>(
    set: &IntervalSet<u32>,
    yes: T,
    no: T,
) -> impl Iterator<Item = (u32, T)> + Clone {
    let intervals = set.intervals();
    let begins_outside = intervals.first().is_none_or(|first| first.0 > 0);
    let inside_and_behind = intervals.iter().flat_map(move |(first, last)| {
        let behind = last.checked_add(1).map(|after| (after, no));
        std::iter::once((*first, yes)).chain(behind)
    });
    let before = begins_outside.then_some((0, no));
    before.into_iter().chain(inside_and_behind)
}
