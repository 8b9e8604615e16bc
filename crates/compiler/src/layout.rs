//! Layout: from sections of rules to one decision about the whole call.
//!
//! For each section a sweep over the borders of the rules' number sets yields the elementary intervals of numbers,
//! each with the rules that apply, in order. Equal lists of rules are decided once. The decisions of all sections
//! that share an audit value (x86_64 and x32) form one line of numbers; numbers that no section owns are a bad
//! architecture. Neighbours with one decision merge into runs, and a search tree finds the run.
//!
//! Architecture and number are tested before anything else, so a number whose decision needs no argument is decided
//! by these two words alone. The kernel's cache of always-allowed numbers (5.11) detects exactly these numbers.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::hash::WordHashMap;
use tamis_abi::{Action, Arch, Nr, Word};
use tamis_rules::{Ruleset, Section};

use crate::cost::Prices;
use crate::dag::{Dag, Node, NodeId, Question};
use crate::decisions::Decisions;
use crate::diagram::Case;
use crate::formula::Formula;
use crate::tree::{Run, search, search_with};
use crate::weights::{DecisionKind, Weights};

/// The longest list of audit values that is tested one after the other.
const MAX_ARCH_CHAIN: usize = 4;

/// If the numbers of x32 and above have more runs than this, they get a tree of their own.
const MIN_TAIL_RUNS: usize = 8;

/// The decision of a whole ruleset, with the decision of each of its lists of rules.
#[derive(Debug)]
pub struct Layout {
    /// The graph.
    pub dag: Dag,
    /// The decision about a call.
    pub root: NodeId,
    /// Every distinct list of rules that tests arguments, with its decision, in order of section and number.
    pub decisions: Vec<RuleListDecision>,
}

/// The decision of the numbers with one list of rules.
#[derive(Debug)]
pub struct RuleListDecision {
    /// The architecture.
    pub arch: Arch,
    /// The rules that apply, as indices into the section's rules.
    pub rules: Vec<u32>,
    /// The numbers, as intervals.
    pub numbers: Vec<(u32, u32)>,
    /// The decision.
    pub node: NodeId,
}

/// The decision about the calls with one audit value.
pub struct Decided {
    audit: u32,
    weight: u64,
    /// The decision.
    pub node: NodeId,
}

/// Consecutive numbers with one decision.
#[derive(Clone, Copy)]
pub struct Piece {
    /// The first number.
    pub first: u32,
    /// The last number.
    pub last: u32,
    /// The architecture that owns the numbers, if known.
    pub arch: Option<Arch>,
    /// The decision.
    pub node: NodeId,
}

/// Lays out a ruleset. Near-linear in rules, unless many conditional rules apply to many numbers each.
pub(crate) fn lay_out(ruleset: &Ruleset, weights: &Weights<'_>) -> Layout {
    let mut dag = Dag::new();
    let mut decided_lists = Vec::new();
    let mut decisions = Decisions::new(weights.prices());
    let bad_arch = dag.ret(ruleset.bad_arch.ret());
    let mut lines: Vec<(u32, Vec<Piece>)> = Vec::new();
    for section in ruleset.sections() {
        let pieces = pieces(
            &mut dag,
            weights,
            &mut decisions,
            section,
            &mut decided_lists,
        );
        let audit = section.arch.audit();
        match lines.iter_mut().find(|(known, _)| *known == audit) {
            Some((_, line)) => line.extend(pieces),
            None => lines.push((audit, pieces)),
        }
    }
    let lines: Vec<Decided> = lines
        .into_iter()
        .map(|(audit, pieces)| number_line(&mut dag, weights, audit, pieces, bad_arch))
        .collect();
    let root = arch_dispatch(&mut dag, lines, bad_arch, weights.prices());
    Layout {
        dag,
        root,
        decisions: decided_lists,
    }
}

/// Decides every number that the section owns.
fn pieces(
    dag: &mut Dag,
    weights: &Weights<'_>,
    decisions: &mut Decisions,
    section: &Section,
    decided_lists: &mut Vec<RuleListDecision>,
) -> Vec<Piece> {
    let formulas: Vec<Formula> = section
        .rules
        .iter()
        .map(|rule| Formula::from_predicate(&rule.when, true))
        .collect();
    let domain = Section::domain(section.arch);
    let mut known: WordHashMap<Vec<u32>, usize> = WordHashMap::default();
    let mut pieces = Vec::new();
    sweep(section, &formulas, |first, last, rules| {
        for (from, to) in domain.intervals() {
            let (first, last) = (first.max(*from), last.min(*to));
            if first > last {
                continue;
            }
            if let Some(ret) = constant(section, &formulas, rules) {
                pieces.push(Piece {
                    first,
                    last,
                    arch: Some(section.arch),
                    node: dag.ret(ret),
                });
                continue;
            }
            let at = known.get(rules).copied().unwrap_or_else(|| {
                let cases = rules.iter().map(|rule| Case {
                    when: formulas[*rule as usize].clone(),
                    ret: section.rules[*rule as usize].action.ret(),
                });
                let seen = weights.calls(section.arch, Nr(first), Nr(last));
                let node = decisions.decide(dag, cases.collect(), section.default.ret(), &seen);
                decided_lists.push(RuleListDecision {
                    arch: section.arch,
                    rules: rules.to_vec(),
                    numbers: Vec::new(),
                    node,
                });
                known.insert(rules.to_vec(), decided_lists.len() - 1);
                decided_lists.len() - 1
            });
            decided_lists[at].numbers.push((first, last));
            pieces.push(Piece {
                first,
                last,
                arch: Some(section.arch),
                node: decided_lists[at].node,
            });
        }
    });
    pieces
}

/// The action of a list of rules that is the same for every call. Most lists are of this kind and need no lowering.
fn constant(section: &Section, formulas: &[Formula], rules: &[u32]) -> Option<u32> {
    match rules.first() {
        None => Some(section.default.ret()),
        Some(rule) if formulas[*rule as usize] == Formula::True => {
            Some(section.rules[*rule as usize].action.ret())
        }
        Some(_) => None,
    }
}

/// Calls `visit` with every maximal interval of numbers that have the same rules, ascending; the list of rules ends
/// with the first unconditional one.
fn sweep(section: &Section, formulas: &[Formula], mut visit: impl FnMut(u32, u32, &[u32])) {
    let mut borders: Vec<(u64, u32, bool)> = Vec::new();
    for (index, rule) in (0..).zip(&section.rules) {
        if formulas[index as usize] == Formula::False {
            continue;
        }
        for (first, last) in rule.syscalls.intervals() {
            borders.push((u64::from(*first), index, true));
            borders.push((u64::from(*last) + 1, index, false));
        }
    }
    borders.sort_unstable();
    let end = u64::from(u32::MAX) + 1;
    let mut active: BTreeSet<u32> = BTreeSet::new();
    let mut applicable: Vec<u32> = Vec::new();
    let mut start = 0;
    let mut rest = borders.as_slice();
    while start < end {
        while let [(at, rule, begins), ..] = rest
            && *at == start
        {
            if *begins {
                active.insert(*rule);
            } else {
                active.remove(rule);
            }
            rest = &rest[1..];
        }
        let next = rest.first().map_or(end, |border| border.0);
        applicable.clear();
        for rule in &active {
            applicable.push(*rule);
            if formulas[*rule as usize] == Formula::True {
                break;
            }
        }
        visit(start as u32, (next - 1) as u32, &applicable);
        start = next;
    }
}

/// The decision by number; numbers outside all pieces are a bad architecture.
pub fn number_line(
    dag: &mut Dag,
    weights: &Weights<'_>,
    audit: u32,
    mut pieces: Vec<Piece>,
    bad_arch: NodeId,
) -> Decided {
    pieces.sort_by_key(|piece| piece.first);
    let mut hot: BTreeMap<Arch, Vec<u32>> = BTreeMap::new();
    for arch in pieces.iter().filter_map(|piece| piece.arch) {
        hot.entry(arch).or_insert_with(|| weights.hot(arch));
    }
    let mut line = Vec::with_capacity(pieces.len() + 2);
    let mut next = Some(0);
    let gap = |first: u32, last: u32| Piece {
        first,
        last,
        arch: None,
        node: bad_arch,
    };
    for piece in pieces {
        line.extend(
            next.filter(|from| *from < piece.first)
                .map(|from| gap(from, piece.first - 1)),
        );
        next = piece.last.checked_add(1);
        let hot = piece.arch.and_then(|arch| hot.get(&arch));
        split_at(piece, hot.map_or(&[], Vec::as_slice), &mut line);
    }
    line.extend(next.map(|from| gap(from, u32::MAX)));
    let runs: Vec<Run> = line
        .iter()
        .map(|piece| Run {
            first: piece.first,
            weight: weight(dag, weights, piece),
            node: piece.node,
        })
        .collect();
    let weight = runs
        .iter()
        .fold(0, |sum: u64, run| sum.saturating_add(run.weight));
    let runs = with_tail_decided(dag, runs, weights);
    let node = search_with(dag, Word::NR, &runs, weights.prices(), weights.effort());
    Decided {
        audit,
        weight,
        node,
    }
}

/// The line with all numbers of x32 and above as one run, if these have many runs: they are rare, so a tree would
/// separate them first in any case, and two short lines are solved faster than a long one.
fn with_tail_decided(dag: &mut Dag, mut runs: Vec<Run>, weights: &Weights<'_>) -> Vec<Run> {
    let at = runs.partition_point(|run| run.first < Arch::X32_BIT);
    let is_border = runs.get(at).is_some_and(|run| run.first == Arch::X32_BIT);
    if is_border && runs.len() - at > MIN_TAIL_RUNS {
        let mut tail = runs.split_off(at);
        tail[0].first = 0;
        let weight = tail
            .iter()
            .fold(0, |sum: u64, run| sum.saturating_add(run.weight));
        runs.push(Run {
            first: Arch::X32_BIT,
            weight,
            node: search_with(dag, Word::NR, &tail, weights.prices(), weights.effort()),
        });
    }
    runs
}

/// Splits a piece so that each number in `alone`, ascending, is a piece of its own.
fn split_at(piece: Piece, alone: &[u32], line: &mut Vec<Piece>) {
    let mut first = piece.first;
    for nr in alone
        .iter()
        .filter(|nr| (piece.first..=piece.last).contains(nr))
    {
        if first < *nr {
            let last = nr - 1;
            line.push(Piece {
                first,
                last,
                ..piece
            });
        }
        line.push(Piece {
            first: *nr,
            last: *nr,
            ..piece
        });
        let Some(after) = nr.checked_add(1) else {
            return;
        };
        first = after;
    }
    if first <= piece.last {
        line.push(Piece { first, ..piece });
    }
}

/// The weight of a piece in the search for trees.
fn weight(dag: &Dag, weights: &Weights<'_>, piece: &Piece) -> u64 {
    let kind = match dag.node(piece.node) {
        Node::Ret(ret) if ret == Action::ALLOW.ret() => DecisionKind::Allowed,
        Node::Ret(_) => DecisionKind::Answered,
        // Code outside of the graph continues with questions about arguments.
        Node::Ask { .. } | Node::Continue(_) => DecisionKind::ByArguments,
    };
    piece.arch.map_or(0, |arch| {
        weights.numbers(arch, Nr(piece.first), Nr(piece.last), kind)
    })
}

/// The decision by audit value: a chain in order of weight, or a tree if there are many values.
pub fn arch_dispatch(
    dag: &mut Dag,
    mut lines: Vec<Decided>,
    bad_arch: NodeId,
    prices: Prices,
) -> NodeId {
    if lines.len() <= MAX_ARCH_CHAIN {
        lines.sort_by_key(|line| std::cmp::Reverse(line.weight));
        return lines.into_iter().rev().fold(bad_arch, |rest, line| {
            dag.ask(Word::ARCH, Question::Eq(line.audit), line.node, rest)
        });
    }
    lines.sort_unstable_by_key(|line| line.audit);
    let run = |first: u32, weight: u64, node: NodeId| Run {
        first,
        weight,
        node,
    };
    let mut runs = vec![run(0, 0, bad_arch)];
    for line in lines {
        if runs.last().is_some_and(|last| last.first == line.audit) {
            runs.pop();
        }
        runs.push(run(line.audit, line.weight, line.node));
        let after = line.audit.checked_add(1);
        runs.extend(after.map(|after| run(after, 0, bad_arch)));
    }
    search(dag, Word::ARCH, &runs, prices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::CompileOptions;

    #[test]
    fn a_decision_outside_of_the_graph_weighs_like_a_question_about_arguments() {
        let mut dag = Dag::new();
        let (refused, continued) = (dag.ret(0), dag.continue_at(0));
        let allowed = dag.ret(Action::ALLOW.ret());
        let asked = dag.ask(Word::IP_LOW, Question::Eq(1), allowed, refused);
        let options = CompileOptions::default();
        let weights = Weights::new(&options);
        let [refused, continued, asked] = [refused, continued, asked].map(|node| {
            let arch = Some(Arch::X86_64);
            let (first, last) = (0, 0);
            weight(
                &dag,
                &weights,
                &Piece {
                    first,
                    last,
                    arch,
                    node,
                },
            )
        });
        assert_eq!(continued, asked);
        assert_ne!(continued, refused);
    }
}
