//! Direct lowering: a formula as questions in the order in which it was written.
//!
//! Continuation passing: a formula is lowered *between* the decision for "holds" and the decision for
//! "doesn't", both of which exist already. `all(a, b)` is `a` between (`b` between yes and no) and no;
//! nothing is copied, so the result is linear in the formula, whatever it looks like. It may ask about
//! a word twice, which [`diagram`](crate::diagram) doesn't; it is what remains when that one gives up.

use tamis_rules::IntervalSet;

use crate::dag::{Dag, NodeId};
use crate::expected_calls::ExpectedCalls;
use crate::formula::Formula;
use crate::split::{Effort, split};

/// Adds the decision that is `yes` where the formula holds and `no` elsewhere. Recurses as deep as the
/// formula nests; lists of any length are fine. The samples weigh the values of words.
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

/// First values and decisions: `yes` for elements of the set, `no` between them.
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
