//! Short lines: the best of all trees.
//!
//! The rest of a line after some answers is a subset of its runs: a comparison cuts a subset in two, an equality
//! question removes one value, a bit test separates two decisions. A short line has few subsets, and each is solved
//! once, the smaller before the larger. So equality questions may occur anywhere in the tree, removed values do not
//! restrict the questions below them, and no heuristic selects the values worth testing.

use tamis_abi::Word;

use super::bit_tests::two_decisions::separating_mask;
use super::{Span, question_cost};
use crate::cost::Prices;
use crate::dag::{Dag, NodeId, Question};

/// A set of runs: bit `i` is set if it contains the run with index `i`.
type Subset = u32;

/// A question about a subset, with the runs whose answer is yes.
#[derive(Clone, Copy)]
struct Choice {
    question: Question,
    yes: Subset,
}

/// Adds the tree of least cost. Exponential in the number of spans.
pub(super) fn build(dag: &mut Dag, word: Word, spans: &[Span], prices: Prices) -> NodeId {
    let all = (1 << spans.len()) - 1;
    let mut best = vec![(0, None); 1 << spans.len()];
    for subset in 1..=all {
        best[subset as usize] = cheapest(spans, prices, subset, |part| best[part as usize].0);
    }
    let choices: Vec<Option<Choice>> = best.into_iter().map(|(_, choice)| choice).collect();
    ask(dag, word, spans, &choices, all)
}

fn ask(
    dag: &mut Dag,
    word: Word,
    spans: &[Span],
    choices: &[Option<Choice>],
    subset: Subset,
) -> NodeId {
    let Some(Choice { question, yes }) = choices[subset as usize] else {
        return spans[subset.trailing_zeros() as usize].node;
    };
    let if_yes = ask(dag, word, spans, choices, subset & yes);
    let if_no = ask(dag, word, spans, choices, subset & !yes);
    dag.ask(word, question, if_yes, if_no)
}

/// The least cost of a subset and its first question, given the costs of all smaller subsets.
fn cheapest(
    spans: &[Span],
    prices: Prices,
    subset: Subset,
    cost: impl Fn(Subset) -> u32,
) -> (u32, Option<Choice>) {
    let members = || (0..spans.len()).filter(|at| subset >> at & 1 == 1);
    let first = subset.trailing_zeros() as usize;
    if members().all(|at| spans[at].node == spans[first].node) {
        return (0, None);
    }
    let weight = |part: Subset| -> u32 {
        let inside = members().filter(|at| part >> at & 1 == 1);
        inside.map(|at| spans[at].weight).sum()
    };
    let mut choices: Vec<Choice> = Vec::with_capacity(2 * spans.len());
    for at in members() {
        let from = Question::Ge(spans[at].first);
        choices.extend((at != first).then_some(Choice {
            question: from,
            yes: subset >> at << at,
        }));
        choices.extend(spans[at].is_single().then_some(Choice {
            question: Question::Eq(spans[at].first),
            yes: 1 << at,
        }));
    }
    choices.extend(bit_test(spans, subset));
    let costs = choices.into_iter().map(|choice| {
        let (yes, no) = (subset & choice.yes, subset & !choice.yes);
        let own = question_cost(prices, weight(yes), weight(no));
        (own + cost(yes) + cost(no), Some(choice))
    });
    costs.min_by_key(|(cost, _)| *cost).unwrap_or((0, None))
}

/// The bit test that decides a subset with two decisions.
fn bit_test(spans: &[Span], subset: Subset) -> Option<Choice> {
    let member = |at: &usize| subset >> at & 1 == 1;
    let members = || (0..spans.len()).filter(member);
    let one = spans[subset.trailing_zeros() as usize].node;
    let other = members()
        .map(|at| spans[at].node)
        .find(|node| *node != one)?;
    if members().any(|at| spans[at].node != one && spans[at].node != other) {
        return None;
    }
    [one, other].into_iter().find_map(|set| {
        let with = |is_set: bool| members().filter(move |at| (spans[*at].node == set) == is_set);
        let span = |at: usize| &spans[at];
        let mask = separating_mask(with(true).map(span), with(false).map(span))?;
        Some(Choice {
            question: Question::AnySet(mask),
            yes: with(true).fold(0, |yes, at| yes | 1 << at),
        })
    })
}
