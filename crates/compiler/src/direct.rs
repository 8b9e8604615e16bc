//! Direct lowering: a formula as questions in the order in which it was written.
//!
//! Continuation passing: a formula is lowered *between* the decision for "holds" and the decision for
//! "doesn't", both of which exist already. `all(a, b)` is `a` between (`b` between yes and no) and no;
//! nothing is copied, so the result is linear in the formula, whatever it looks like. It may ask about
//! a word twice, which [`diagram`](crate::diagram) doesn't; it is what remains when that one gives up.

use tamis_abi::Word;
use tamis_rules::IntervalSet;

use crate::cost::Prices;
use crate::dag::{Dag, NodeId};
use crate::formula::Formula;
use crate::options::Objective;
use crate::tree::{Run, search};

/// Adds the decision that is `yes` where the formula holds and `no` elsewhere. Recurses as deep as the
/// formula nests; lists of any length are fine.
pub(crate) fn lower(dag: &mut Dag, formula: &Formula, yes: NodeId, no: NodeId) -> NodeId {
    match formula {
        Formula::True => yes,
        Formula::False => no,
        Formula::All(parts) => parts
            .iter()
            .rev()
            .fold(yes, |rest, part| lower(dag, part, rest, no)),
        Formula::Any(parts) => parts
            .iter()
            .rev()
            .fold(no, |rest, part| lower(dag, part, yes, rest)),
        Formula::In(word, set) => member(dag, *word, set, yes, no),
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

/// The weight of a single value against that of a longer run: policies name the values they expect.
const SINGLE_WEIGHT: u64 = 4;

/// The weight of a run of `count` values of an argument, about whose distribution nothing is known.
pub(crate) fn value_weight(count: u32) -> u64 {
    if count == 1 { SINGLE_WEIGHT } else { 1 }
}

fn member(dag: &mut Dag, word: Word, set: &IntervalSet<u32>, yes: NodeId, no: NodeId) -> NodeId {
    let mut runs = Vec::with_capacity(2 * set.intervals().len() + 1);
    let mut add = |first: u32, last: u32, node| {
        runs.push(Run {
            first,
            weight: value_weight((last - first).saturating_add(1)),
            node,
        });
    };
    let mut next = Some(0);
    for (first, last) in set.intervals() {
        if let Some(gap) = next.filter(|gap| gap < first) {
            add(gap, first - 1, no);
        }
        add(*first, *last, yes);
        next = last.checked_add(1);
    }
    if let Some(gap) = next {
        add(gap, u32::MAX, no);
    }
    search(dag, word, &runs, Prices::of(Objective::Steps))
}
