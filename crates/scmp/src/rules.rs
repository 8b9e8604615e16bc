//! From libseccomp's graph of tests to an ordered list of rules.
//!
//! Every path through the graph to an action is a rule; in the order in which the graph tries them the first match
//! decides. Along a path each half of an argument is restricted to a set of values or to a bit pattern. Impossible
//! paths are dropped, and paths of one rule that differ in only one argument are united if their order doesn't
//! matter: this turns the three nodes of `arg > 40` back into one comparison.

use tamis_abi::{Action, ArgIndex};
use tamis_rules::{CmpOp, IntervalSet, Operand, OperandSource, Part, Predicate, Test};

use crate::tree::{CallTree, Exit, NodeId, WordTest};

/// The most paths through the graph of one number; the kernel accepts 4096 instructions.
pub const MAX_PATHS: usize = 1 << 14;

/// A rule of one system call: if the predicate holds, the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRule<T> {
    /// The condition on the arguments.
    pub when: Predicate,
    /// The action.
    pub action: Action,
    /// The tag of its libseccomp rule.
    pub tag: T,
}

/// There are more than [`MAX_PATHS`] paths through the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooComplex;

/// The possible values of one argument on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bounds {
    /// The set of possible values; a subset of 32 bits if arguments have 32.
    set: IntervalSet<u64>,
    /// The bits tested by masks, and their values.
    mask: u64,
    bits: u64,
}

/// A path to an action.
#[derive(Clone, Debug)]
struct Way<T> {
    bounds: [Option<Bounds>; 6],
    action: Action,
    tag: T,
}

impl<T: Copy + Ord> CallTree<T> {
    /// The ordered list of rules: the first match decides.
    ///
    /// # Errors
    /// If there are more than [`MAX_PATHS`] paths.
    pub fn rules(&self) -> Result<Vec<CallRule<T>>, TooComplex> {
        let mut collector = Collector {
            tree: self,
            visited: 0,
            ways: Vec::new(),
        };
        collector.follow(self.top, &Default::default())?;
        let part = self.argument_part();
        let to_rule = |way: Way<T>| CallRule {
            when: way.predicate(part),
            action: way.action,
            tag: way.tag,
        };
        Ok(tidy(collector.ways).into_iter().map(to_rule).collect())
    }
}

struct Collector<'t, T> {
    tree: &'t CallTree<T>,
    /// Exits followed so far.
    visited: usize,
    ways: Vec<Way<T>>,
}

impl<T: Copy + Ord> Collector<'_, T> {
    fn follow(&mut self, exit: Exit<T>, bounds: &[Option<Bounds>; 6]) -> Result<(), TooComplex> {
        self.visited += 1;
        if self.visited > MAX_PATHS {
            return Err(TooComplex);
        }
        match exit {
            Exit::Fall => {}
            Exit::Action(tagged) => self.ways.push(Way {
                bounds: bounds.clone(),
                action: tagged.action,
                tag: tagged.tag,
            }),
            Exit::Level(at) => {
                for id in self.tree.level(at) {
                    for outcome in [true, false] {
                        let exit = self.tree.exit(*id, outcome);
                        if exit != Exit::Fall
                            && let Some(bounds) = self.confine(bounds, *id, outcome)
                        {
                            self.follow(exit, &bounds)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The bounds after a test with this outcome; `None` if it is impossible.
    fn confine(
        &self,
        bounds: &[Option<Bounds>; 6],
        id: NodeId,
        outcome: bool,
    ) -> Option<[Option<Bounds>; 6]> {
        let node = self.tree.node(id);
        let mut bounds = bounds.clone();
        let slot = &mut bounds[node.arg as usize];
        let before = slot.take().unwrap_or_else(|| Bounds {
            set: self.tree.all_values(),
            mask: 0,
            bits: 0,
        });
        let after = before.confine(node.test, node.high, (node.mask, node.value), outcome)?;
        *slot = Some(after);
        Some(bounds)
    }
}

/// Sorts paths by tag and unites them, without changing the action of any call: among consecutive paths with the
/// same action.
fn tidy<T: Copy + Ord>(mut ways: Vec<Way<T>>) -> Vec<Way<T>> {
    let mut tidied: Vec<Way<T>> = Vec::with_capacity(ways.len());
    for row in ways.chunk_by_mut(|a, b| a.action == b.action) {
        row.sort_by_key(|way| way.tag);
        for way in row {
            tidied.push(way.clone());
            while let [.., first, second] = tidied.as_mut_slice()
                && first.unite(second)
            {
                tidied.pop();
            }
        }
    }
    tidied
}

impl Bounds {
    fn confine(
        mut self,
        test: WordTest,
        high: bool,
        (mask, value): (u32, u32),
        outcome: bool,
    ) -> Option<Bounds> {
        let words = match test {
            WordTest::Equal => IntervalSet::single(value),
            WordTest::Above if value == u32::MAX => IntervalSet::empty(),
            WordTest::Above => [value + 1..=u32::MAX].into_iter().collect(),
            WordTest::AtLeast => [value..=u32::MAX].into_iter().collect(),
            WordTest::Masked => {
                debug_assert!(outcome, "libseccomp never asks for a mask not to match");
                let shift = if high { 32 } else { 0 };
                let (mask, bits) = (u64::from(mask) << shift, u64::from(value) << shift);
                let contradicts = (self.bits ^ bits) & self.mask & mask != 0;
                self.mask |= mask;
                self.bits |= bits;
                return (!contradicts).then_some(self);
            }
        };
        let words = if outcome { words } else { words.complement() };
        self.set = if high {
            let widen = |(first, last): &(u32, u32)| {
                u64::from(*first) << 32..=u64::from(*last) << 32 | 0xffff_ffff
            };
            let wide: IntervalSet<u64> = words.intervals().iter().map(widen).collect();
            self.set.intersection(&wide)
        } else {
            confine_low(&self.set, &words)
        };
        (!self.set.is_empty()).then_some(self)
    }
}

/// The values of a set whose low words are in another.
///
/// libseccomp tests a low word only if the high word is equal to a constant, or without a high word, so each
/// interval lies within one high word.
fn confine_low(set: &IntervalSet<u64>, words: &IntervalSet<u32>) -> IntervalSet<u64> {
    set.intervals()
        .iter()
        .flat_map(|(first, last)| {
            debug_assert_eq!(first >> 32, last >> 32, "one high word");
            let high = first & !0xffff_ffff;
            let (first, last) = (*first, *last);
            words.intervals().iter().map(move |(low, up)| {
                (high | u64::from(*low)).max(first)..=(high | u64::from(*up)).min(last)
            })
        })
        .collect()
}

impl<T: Copy + Ord> Way<T> {
    /// Becomes the path that is equivalent to both, if there is one; otherwise false.
    fn unite(&mut self, other: &Way<T>) -> bool {
        if self.action != other.action || self.tag != other.tag {
            return false;
        }
        let pairs = self.bounds.iter_mut().zip(&other.bounds);
        let mut differing = pairs.filter(|(a, b)| a != b);
        match (differing.next(), differing.next()) {
            (None, _) => true,
            (Some((Some(a), Some(b))), None) if a.mask == b.mask && a.bits == b.bits => {
                a.set = a.set.union(&b.set);
                true
            }
            _ => false,
        }
    }

    fn predicate(&self, part: Part) -> Predicate {
        let mut conditions = Vec::new();
        for (arg, bounds) in ArgIndex::ALL.into_iter().zip(&self.bounds) {
            let Some(bounds) = bounds else { continue };
            let operand = Operand {
                source: OperandSource::Arg(arg),
                part,
            };
            conditions.extend(membership(operand, &bounds.set).map(Predicate::Test));
            if bounds.mask != 0 {
                conditions.push(Predicate::Test(Test::Masked {
                    operand,
                    mask: bounds.mask,
                    value: bounds.bits,
                }));
            }
        }
        match conditions.len() {
            0 => Predicate::True,
            1 => conditions.remove(0),
            _ => Predicate::All(conditions),
        }
    }
}

/// The simplest membership test; `None` if every value is in the set.
fn membership(operand: Operand, set: &IntervalSet<u64>) -> Option<Test> {
    let max = operand.max();
    let compare = |op, value| Some(Test::Compare { operand, op, value });
    match *set.intervals() {
        [(0, last)] if last == max => None,
        [(first, last)] if first == last => compare(CmpOp::Eq, first),
        [(0, last)] => compare(CmpOp::Le, last),
        [(first, last)] if last == max => compare(CmpOp::Ge, first),
        [(0, below), (above, last)] if last == max && above - below == 2 => {
            compare(CmpOp::Ne, below + 1)
        }
        _ => Some(Test::In {
            operand,
            set: set.clone(),
        }),
    }
}
