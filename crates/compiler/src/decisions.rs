//! The decision for one system call number, given its rules.
//!
//! The rules for a number are an ordered list: the first whose condition holds decides. This file turns such a list
//! into a decision. It tries the direct lowering and ordered diagrams in several orders of words, then neighbours of
//! the best order; it measures each over the expected calls and keeps the best. Nodes that earlier lists have added
//! to the graph do not count as length, so of two equally fast orders the one that shares more nodes wins.

use std::collections::VecDeque;

use tamis_abi::Word;
use tamis_profile::Call;

use crate::cost::{self, Prices};
use crate::dag::{Dag, NodeId, Question, Walk};
use crate::diagram::{Case, Diagram, Order};
use crate::direct;
use crate::expected_calls::{self, ExpectedCall, ExpectedCalls};
use crate::formula::Formula;
use crate::hash::{Places, hash_of};
use crate::split::Effort;

/// The limit of work for one diagram, per part of the formulas; it keeps compilation near-linear.
const BUDGET_PER_PART: u64 = 64;

/// The most orders that are tried for a list of few parts; longer lists get fewer.
const MAX_ORDERS: u64 = 8;

/// The maximum number of parts of formulas for [`MAX_ORDERS`] orders.
const FEW_PARTS: u64 = 32;

/// The decisions made so far: calls and architectures with equal lists are decided once.
#[derive(Debug)]
pub(crate) struct Decisions {
    made: Vec<Made>,
    /// Indices of the decisions, by their lists.
    known: Places,
    ranking: Ranking,
    samples: ExpectedCalls,
    /// The diagram in the order being tried, and the best one so far.
    diagrams: [Diagram; 2],
}

/// A decision and the list it decides.
#[derive(Debug)]
struct Made {
    cases: Vec<Case>,
    default: u32,
    node: NodeId,
}

impl Decisions {
    /// A store without decisions.
    pub(crate) fn new(prices: Prices) -> Decisions {
        Decisions {
            made: Vec::new(),
            known: Places::default(),
            samples: ExpectedCalls::default(),
            ranking: Ranking {
                prices,
                is_kept: Vec::new(),
                walk: Walk::default(),
            },
            diagrams: [Diagram::default(), Diagram::default()],
        }
    }

    /// Adds the decision of the first case that holds, else `default`; `seen` are the recorded calls of these
    /// numbers.
    pub(crate) fn decide(
        &mut self,
        dag: &mut Dag,
        cases: Vec<Case>,
        default: u32,
        seen: &[&Call],
    ) -> NodeId {
        let cases = group(cases, default);
        let made = &self.made;
        let eq = |place: usize| made[place].default == default && made[place].cases == cases;
        let hash = hash_of(&(&cases, default));
        if let Some(place) = self.known.find_or_insert(hash, made.len(), eq) {
            return made[place].node;
        }
        let node = self.lower(dag, &cases, default, seen);
        self.ranking.keep(dag, node);
        self.made.push(Made {
            cases,
            default,
            node,
        });
        node
    }

    /// The best of all lowerings.
    fn lower(&mut self, dag: &mut Dag, cases: &[Case], default: u32, seen: &[&Call]) -> NodeId {
        let [first, ..] = cases else {
            return dag.ret(default);
        };
        if first.when == Formula::True {
            return dag.ret(first.ret);
        }
        self.samples.find(cases, default, seen);
        let samples = &self.samples;
        if let [case] = cases
            && let Some(when) = in_any_order(&case.when)
        {
            let (yes, no) = (dag.ret(case.ret), dag.ret(default));
            return direct::lower(dag, &when, yes, no, samples, self.ranking.effort());
        }
        let used = words_used(cases);
        let budget = BUDGET_PER_PART * (used.parts + 16);
        let mut ranked: Vec<NodeId> = Vec::new();
        let mut least: Option<u64> = None;
        let mut orders = Orders::new(&used);
        while let Some(order) = orders.next() {
            let [diagram, best] = &mut self.diagrams;
            if diagram.build(cases, default, &order, budget).is_none() {
                continue;
            }
            let node = diagram.emit(dag, samples.list(), Effort::Quick);
            // Orders with the same decision are equally good.
            if ranked.contains(&node) {
                continue;
            }
            ranked.push(node);
            let limit = least.unwrap_or(u64::MAX);
            if let Some(rank) = self.ranking.rank(dag, node, samples.list(), limit) {
                least = Some(rank);
                std::mem::swap(diagram, best);
                orders.add_neighbours(order);
            }
        }
        let direct = lower_directly(dag, cases, default, samples, Effort::Quick);
        // The direct lowering wins a tie.
        let is_diagram_better = least.is_some_and(|least| {
            let rank = self.ranking.rank(dag, direct, samples.list(), least + 1);
            rank.is_none()
        });
        if is_diagram_better {
            let [_, best] = &mut self.diagrams;
            best.emit(dag, samples.list(), self.ranking.effort())
        } else {
            lower_directly(dag, cases, default, samples, self.ranking.effort())
        }
    }
}

/// Ranks decisions, given those in use.
#[derive(Debug)]
struct Ranking {
    prices: Prices,
    /// By node, whether a decision in use contains it.
    is_kept: Vec<bool>,
    walk: Walk,
}

impl Ranking {
    /// The effort for the decision that is kept.
    fn effort(&self) -> Effort {
        match self.prices.is_about_length() {
            true => Effort::Short,
            false => Effort::Thorough,
        }
    }

    /// Marks a decision as used.
    fn keep(&mut self, dag: &Dag, node: NodeId) {
        self.walk.go_below(dag, [node]);
        self.is_kept.resize(dag.len(), false);
        for id in self.walk.ids() {
            self.is_kept[id.index()] = true;
        }
    }

    /// The rank of a decision, if it is below the limit. Smaller is better. Expected steps count most, but length
    /// counts too; if the objective is length, an instruction outweighs all steps. Mispredictions do not count:
    /// orders that save some make decisions much longer.
    fn rank(
        &mut self,
        dag: &Dag,
        node: NodeId,
        samples: &[ExpectedCall],
        limit: u64,
    ) -> Option<u64> {
        /// More than the steps of any decision, in sixteenths.
        const ANY_STEPS: u64 = 1 << 32;
        let is_kept = |node: NodeId| self.is_kept.get(node.index()) == Some(&true);
        let measure = cost::measure(dag, node, &mut self.walk, |node| !is_kept(node));
        let length = match self.prices.is_about_length() {
            true => ANY_STEPS * measure.length_insns,
            false => measure.length_insns,
        };
        let fixed = 2 * measure.worst_steps + length;
        let limit = limit.checked_sub(fixed)?;
        let mean_steps_x16 = expected_calls::mean_steps_x16(dag, node, samples, limit)?;
        Some(mean_steps_x16 + fixed)
    }
}

/// The formula with its upper halves last, if a search for an order is useless: it tests every word once, and is a
/// plain conjunction or disjunction. The tests of upper halves can then be shared.
fn in_any_order(formula: &Formula) -> Option<Formula> {
    let (Formula::All(parts) | Formula::Any(parts)) = formula else {
        return Some(formula.clone());
    };
    let mut words = Vec::new();
    for part in parts {
        let (Formula::In(word, _) | Formula::Asked { word, .. }) = part else {
            return None;
        };
        if words.contains(word)
            || matches!(part, Formula::Asked { question, .. } if is_about_two(*question))
        {
            return None;
        }
        words.push(*word);
    }
    let mut parts = parts.clone();
    parts.sort_by_key(|part| match part {
        Formula::In(word, _) | Formula::Asked { word, .. } => is_upper(*word),
        _ => false,
    });
    Some(match formula {
        Formula::All(_) => Formula::All(parts),
        _ => Formula::Any(parts),
    })
}

fn is_about_two(question: Question) -> bool {
    matches!(question, Question::EqWord(_) | Question::GeWord(_))
}

/// The orders to try: initial ones, and neighbours of the best so far.
struct Orders<'a> {
    used: &'a Used,
    open: VecDeque<Order>,
    tried: Vec<Order>,
    most: usize,
}

impl Orders<'_> {
    fn new(used: &Used) -> Orders<'_> {
        let most = (MAX_ORDERS * FEW_PARTS / used.parts.max(FEW_PARTS)).max(4);
        Orders {
            used,
            open: orders(used),
            tried: Vec::with_capacity(most as usize),
            most: most as usize,
        }
    }

    /// The next order that was not tried yet.
    fn next(&mut self) -> Option<Order> {
        while self.tried.len() < self.most {
            let order = self.open.pop_front()?;
            if !self.tried.contains(&order) {
                self.tried.push(order);
                return Some(order);
            }
        }
        None
    }

    /// Adds the neighbours of an order.
    fn add_neighbours(&mut self, order: Order) {
        let count = self.used.count.iter().filter(|count| **count > 0).count();
        self.open.extend(neighbours(order, count));
    }
}

/// Merges neighbours with one action, and drops cases that have no effect.
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

fn lower_directly(
    dag: &mut Dag,
    cases: &[Case],
    default: u32,
    samples: &ExpectedCalls,
    effort: Effort,
) -> NodeId {
    let mut decision = dag.ret(default);
    for case in cases.iter().rev() {
        let ret = dag.ret(case.ret);
        decision = direct::lower(dag, &case.when, ret, decision, samples, effort);
    }
    decision
}

/// The words that a list tests, the number of tests of each, and the number of parts of its formulas.
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

/// The initial orders: as declared, reversed, by number of tests descending and ascending; each of them also with all
/// upper halves last, where their tests can be shared. Words without tests are at the end.
fn orders(used: &Used) -> VecDeque<Order> {
    let mut declared: Order = [Word::NR; Word::COUNT];
    for (place, word) in declared.iter_mut().zip(Word::all()) {
        *place = word;
    }
    let count = |word: &Word| used.count[word.index()];
    declared.sort_by_key(|word| count(word) == 0);
    let asked = declared.iter().take_while(|word| count(word) > 0).count();
    let mut reversed = declared;
    reversed[..asked].reverse();
    let mut often_first = declared;
    often_first[..asked].sort_by_key(|word| std::cmp::Reverse(count(word)));
    let mut seldom_first = declared;
    seldom_first[..asked].sort_by_key(count);
    let mut orders = VecDeque::with_capacity(8);
    for order in [declared, reversed, often_first, seldom_first] {
        let mut upper_last = order;
        upper_last[..asked].sort_by_key(|word| is_upper(*word));
        for order in [order, upper_last] {
            if !orders.contains(&order) {
                orders.push_back(order);
            }
        }
    }
    orders
}

fn is_upper(word: Word) -> bool {
    word.index() >= Word::IP_LOW.index() && word.index() % 2 == 1
}

/// The orders with one of the first words moved to the front, or two neighbours among them swapped.
fn neighbours(order: Order, count: usize) -> impl Iterator<Item = Order> {
    let swapped = (1..count).map(move |at| {
        let mut order = order;
        order.swap(at - 1, at);
        order
    });
    let moved = (2..count).map(move |at| {
        let mut order = order;
        order[..=at].rotate_right(1);
        order
    });
    swapped.chain(moved)
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, ArgIndex, SeccompData};
    use tamis_rules::IntervalSet;

    use super::*;
    use crate::options::Objective;

    #[test]
    fn many_values_with_an_answer_each_are_decided_by_a_tree() {
        let word = Word::arg_low(ArgIndex::ALL[1]);
        let other = Action::errno(1).ret();
        let answer = |n: u16| Action::errno(n + 2).ret();
        let value = |n: u16| 7 * u32::from(n) + 3;
        let case = |n| Case {
            when: Formula::In(word, IntervalSet::single(value(n))),
            ret: answer(n),
        };
        for count in [9, 300, 1000] {
            let mut dag = Dag::new();
            let mut decisions = Decisions::new(Prices::for_objective(Objective::Steps));
            let node = decisions.decide(&mut dag, (0..count).map(case).collect(), other, &[]);
            let decided =
                |value| dag.evaluate(node, &SeccompData::default().with_word(word, value));
            for n in 0..count {
                assert_eq!(decided(value(n)), answer(n));
                assert_eq!(decided(value(n) + 1), other);
            }
            let measure = cost::measure(&dag, node, &mut Walk::default(), |_| true);
            let depth = u64::from(2 * count.ilog2());
            assert!(measure.worst_steps <= depth + 2, "{count}: {measure:?}");
        }
    }
}
