//! Outcomes: what one system call number comes to, given the rules that are about it.
//!
//! The rules that apply to a number, in order, are a small program of their own: the first whose
//! condition holds decides. This file turns such a list into a decision. It tries the direct lowering
//! and ordered diagrams in a few orders of words, measures each, and keeps the best; which lowering is
//! best differs from policy to policy, and lists are short enough to try.

use tamis_abi::Word;

use crate::cost::{self, Measure};
use crate::dag::{Dag, NodeId};
use crate::diagram::{self, Case, Order};
use crate::direct;
use crate::formula::Formula;
use crate::hash::FastMap;

/// How much building one diagram may cost, per part of the formulas; keeps compiling near-linear.
const BUDGET_PER_PART: u64 = 64;

/// The decisions made so far: calls and architectures with the same list are decided once.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    known: FastMap<(Vec<Case>, u32), NodeId>,
}

impl Decisions {
    /// Adds the decision of the first case that holds, else `default`.
    pub(crate) fn decide(&mut self, dag: &mut Dag, cases: Vec<Case>, default: u32) -> NodeId {
        let key = (group(cases, default), default);
        if let Some(node) = self.known.get(&key) {
            return *node;
        }
        let node = lower(dag, &key.0, default);
        self.known.insert(key, node);
        node
    }
}

/// The best of all lowerings.
fn lower(dag: &mut Dag, cases: &[Case], default: u32) -> NodeId {
    let [first, ..] = cases else {
        return dag.ret(default);
    };
    if first.when == Formula::True {
        return dag.ret(first.ret);
    }
    let mut best = lower_directly(dag, cases, default);
    let mut best_measure = cost::measure(dag, best);
    let used = words_used(cases);
    if used.parts <= 1 {
        return best;
    }
    let budget = BUDGET_PER_PART * (used.parts + 16);
    for order in orders(&used) {
        let Some(node) = diagram::lower(dag, cases, default, &order, budget) else {
            continue;
        };
        let measure = cost::measure(dag, node);
        if rank(measure) < rank(best_measure) {
            (best, best_measure) = (node, measure);
        }
    }
    best
}

/// Smaller is better: executed steps first of all, but a step is not worth any length.
fn rank(measure: Measure) -> u64 {
    4 * measure.worst_steps + measure.mean_steps_x16 / 4 + measure.length_insns
}

/// Unites neighbours with one action, and drops cases that change nothing.
fn group(cases: Vec<Case>, default: u32) -> Vec<Case> {
    let mut groups: Vec<(Vec<Formula>, u32)> = Vec::new();
    for case in cases {
        match groups.last_mut() {
            Some((parts, ret)) if *ret == case.ret => parts.push(case.when),
            _ => groups.push((vec![case.when], case.ret)),
        }
    }
    let mut grouped: Vec<Case> = Vec::new();
    for (parts, ret) in groups {
        let when = Formula::any(parts);
        let is_last = when == Formula::True;
        if when != Formula::False {
            grouped.push(Case { when, ret });
        }
        if is_last {
            break;
        }
    }
    while grouped.last().is_some_and(|case| case.ret == default) {
        grouped.pop();
    }
    grouped
}

fn lower_directly(dag: &mut Dag, cases: &[Case], default: u32) -> NodeId {
    let mut decision = dag.ret(default);
    for case in cases.iter().rev() {
        let ret = dag.ret(case.ret);
        decision = direct::lower(dag, &case.when, ret, decision);
    }
    decision
}

/// Which words a list asks about, how often, and how many parts its formulas have.
struct Used {
    count: [u64; Word::COUNT],
    parts: u64,
}

fn words_used(cases: &[Case]) -> Used {
    let mut used = Used {
        count: [0; Word::COUNT],
        parts: 0,
    };
    let mut open: Vec<&Formula> = cases.iter().map(|case| &case.when).collect();
    while let Some(formula) = open.pop() {
        match formula {
            Formula::All(parts) | Formula::Any(parts) => open.extend(parts),
            Formula::In(word, set) => {
                used.count[word.index()] += 1;
                used.parts += set.intervals().len() as u64;
            }
            Formula::Asked { word, .. } => {
                used.count[word.index()] += 1;
                used.parts += 1;
            }
            Formula::True | Formula::False => {}
        }
    }
    used
}

/// The orders worth trying: as declared, reversed, the most asked word first, the least asked first.
fn orders(used: &Used) -> Vec<Order> {
    let mut declared: Order = [Word::NR; Word::COUNT];
    for (place, word) in declared.iter_mut().zip(Word::all()) {
        *place = word;
    }
    let mut reversed = declared;
    reversed.reverse();
    let mut often_first = declared;
    often_first.sort_by_key(|word| std::cmp::Reverse(used.count[word.index()]));
    let mut seldom_first = declared;
    seldom_first.sort_by_key(|word| used.count[word.index()]);
    let mut orders: Vec<Order> = Vec::new();
    for order in [declared, reversed, often_first, seldom_first] {
        let same = |other: &Order| {
            let asked = |order: &Order| -> Vec<Word> {
                let is_asked = |word: &Word| used.count[word.index()] > 0;
                order.iter().copied().filter(is_asked).collect()
            };
            asked(other) == asked(&order)
        };
        if !orders.iter().any(same) {
            orders.push(order);
        }
    }
    orders
}
