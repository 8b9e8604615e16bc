//! Layout: from sections of rules to one decision about the whole call.
//!
//! Per section a sweep over the borders of the rules' number sets yields the elementary intervals of
//! numbers, each with the rules that apply, in order. Lists that occur again are decided once. The
//! decisions of all sections that share an audit value (x86_64 and x32) lie on one line of numbers;
//! what no section owns is a bad architecture. Neighbours with one decision merge into runs, and a
//! search tree finds the run.
//!
//! Architecture and number are asked about before anything else, so a number whose decision needs no
//! argument is decided by those two words alone: exactly what the kernel's cache of always-allowed
//! numbers (5.11) is able to see.

use std::collections::BTreeSet;

use tamis_abi::{Action, Arch, Nr, Word};
use tamis_rules::{Ruleset, Section};

use crate::dag::{Dag, Node, NodeId, Question};
use crate::diagram::Case;
use crate::formula::Formula;
use crate::hash::FastMap;
use crate::outcome::Decisions;
use crate::tree::{Run, search};
use crate::weights::Weights;

/// The longest list of audit values that is asked about one after the other.
const MAX_ARCH_CHAIN: usize = 4;

/// The decision of a whole ruleset, with what was decided on the way.
#[derive(Debug)]
pub struct Layout {
    /// The graph.
    pub dag: Dag,
    /// The decision about a call.
    pub root: NodeId,
    /// Every distinct list of rules that looks at arguments, and what became of it, in order of section
    /// and number.
    pub outcomes: Vec<Outcome>,
}

/// What the numbers with one list of rules come to.
#[derive(Debug)]
pub struct Outcome {
    /// The architecture.
    pub arch: Arch,
    /// The rules that apply, as indices into the section's rules.
    pub rules: Vec<u32>,
    /// The numbers, as intervals.
    pub numbers: Vec<(u32, u32)>,
    /// The decision.
    pub node: NodeId,
}

/// Numbers that follow each other, and their decision.
struct Piece {
    first: u32,
    last: u32,
    arch: Option<Arch>,
    node: NodeId,
}

/// Lays out a ruleset. Near-linear in rules, unless many conditional rules apply to many numbers each.
pub fn lay_out(ruleset: &Ruleset, weights: &Weights<'_>) -> Layout {
    let mut dag = Dag::new();
    let mut outcomes = Vec::new();
    let mut decisions = Decisions::default();
    let bad_arch = dag.ret(ruleset.bad_arch.ret());
    let mut lines: Vec<(u32, Vec<Piece>)> = Vec::new();
    for section in ruleset.sections() {
        let pieces = pieces(&mut dag, weights, &mut decisions, section, &mut outcomes);
        let audit = section.arch.audit();
        match lines.iter_mut().find(|(known, _)| *known == audit) {
            Some((_, line)) => line.extend(pieces),
            None => lines.push((audit, pieces)),
        }
    }
    let lines: Vec<(u32, NodeId)> = lines
        .into_iter()
        .map(|(audit, pieces)| (audit, number_line(&mut dag, weights, pieces, bad_arch)))
        .collect();
    let root = arch_dispatch(&mut dag, lines, bad_arch);
    Layout {
        dag,
        root,
        outcomes,
    }
}

/// Decides every number that the section owns.
fn pieces(
    dag: &mut Dag,
    weights: &Weights<'_>,
    decisions: &mut Decisions,
    section: &Section,
    outcomes: &mut Vec<Outcome>,
) -> Vec<Piece> {
    let formulas: Vec<Formula> = section
        .rules
        .iter()
        .map(|rule| Formula::of(&rule.when, true))
        .collect();
    let domain = Section::domain(section.arch);
    let mut known: FastMap<Vec<u32>, usize> = FastMap::default();
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
                outcomes.push(Outcome {
                    arch: section.arch,
                    rules: rules.to_vec(),
                    numbers: Vec::new(),
                    node,
                });
                known.insert(rules.to_vec(), outcomes.len() - 1);
                outcomes.len() - 1
            });
            outcomes[at].numbers.push((first, last));
            pieces.push(Piece {
                first,
                last,
                arch: Some(section.arch),
                node: outcomes[at].node,
            });
        }
    });
    pieces
}

/// The answer of a list of rules that is the same for every call. Most lists are of this kind, and need
/// not go through lowering.
fn constant(section: &Section, formulas: &[Formula], rules: &[u32]) -> Option<u32> {
    match rules.first() {
        None => Some(section.default.ret()),
        Some(rule) if formulas[*rule as usize] == Formula::True => {
            Some(section.rules[*rule as usize].action.ret())
        }
        Some(_) => None,
    }
}

/// Calls `visit` with every maximal interval of numbers to which the same rules apply, ascending; the
/// rules end with the first that always holds.
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

/// The decision by number; what no piece covers is a bad architecture.
fn number_line(
    dag: &mut Dag,
    weights: &Weights<'_>,
    mut pieces: Vec<Piece>,
    bad_arch: NodeId,
) -> NodeId {
    pieces.sort_by_key(|piece| piece.first);
    let mut line = Vec::with_capacity(pieces.len() + 2);
    let mut next = Some(0);
    for piece in pieces {
        if let Some(gap) = next.filter(|gap| *gap < piece.first) {
            line.push(Piece {
                first: gap,
                last: piece.first - 1,
                arch: None,
                node: bad_arch,
            });
        }
        next = piece.last.checked_add(1);
        line.push(piece);
    }
    if let Some(gap) = next {
        line.push(Piece {
            first: gap,
            last: u32::MAX,
            arch: None,
            node: bad_arch,
        });
    }
    let runs: Vec<Run> = line
        .iter()
        .map(|piece| Run {
            first: piece.first,
            weight: weight(dag, weights, piece),
            node: piece.node,
        })
        .collect();
    search(dag, Word::NR, &runs)
}

/// How much it counts that the piece is found quickly.
fn weight(dag: &Dag, weights: &Weights<'_>, piece: &Piece) -> u64 {
    let is_allowed = dag.node(piece.node) == Node::Ret(Action::ALLOW.ret());
    piece.arch.map_or(0, |arch| {
        weights.numbers(arch, Nr(piece.first), Nr(piece.last), is_allowed)
    })
}

/// The decision by audit value: in the order of the sections, or by a tree if there are many.
fn arch_dispatch(dag: &mut Dag, mut lines: Vec<(u32, NodeId)>, bad_arch: NodeId) -> NodeId {
    if lines.len() <= MAX_ARCH_CHAIN {
        return lines
            .into_iter()
            .rev()
            .fold(bad_arch, |rest, (audit, line)| {
                dag.ask(Word::ARCH, Question::Eq(audit), line, rest)
            });
    }
    lines.sort_unstable();
    let run = |first: u32, weight: u64, node: NodeId| Run {
        first,
        weight,
        node,
    };
    let mut runs = vec![run(0, 0, bad_arch)];
    for (audit, line) in lines {
        if runs.last().is_some_and(|last| last.first == audit) {
            runs.pop();
        }
        runs.push(run(audit, 1, line));
        runs.extend(audit.checked_add(1).map(|after| run(after, 0, bad_arch)));
    }
    search(dag, Word::ARCH, &runs)
}
