//! The rules of one system call in libseccomp's representation.
//!
//! For each number libseccomp has a graph of tests on 32-bit words and inserts every rule into it. A rule becomes a
//! chain of nodes, arguments ascending, high word before low word; a chain is merged with equal nodes of the graph.
//! Nodes of one *level* are alternatives, sorted; a node that does not decide passes the call to the next node of
//! its level, and the last one to the next node of the level above.
//!
//! So the action for a call that several rules match depends on this sorting and merging, not on the order in which
//! rules were added. This module rebuilds the graph, including refused merges; `prune` removes chains that a
//! shorter one makes redundant, and [`rules`](crate::rules) converts the graph to rules.

use std::collections::HashSet;

use tamis_abi::{Action, Arch};
use tamis_rules::{IntervalSet, Part};

use crate::condition::{Comparison, Condition, Conditions};
use crate::prune::Pruned;

/// The most rules of one system call in a [`CallTree::new`]: the most instructions of a program.
pub const MAX_RULES: usize = 4096;

/// An action in the graph, with the tag of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TaggedAction<T> {
    pub(crate) action: Action,
    pub(crate) tag: T,
}

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(u32);

/// The exit of a node for one outcome of its test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit<T> {
    /// The next node of the level, or of the level above.
    Fall,
    /// An action.
    Action(TaggedAction<T>),
    /// The level of this node.
    Level(NodeId),
}

/// The test of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WordTest {
    /// `word == value`
    Equal,
    /// `word & mask == value`
    Masked,
    /// `word > value`
    Above,
    /// `word >= value`
    AtLeast,
}

/// One test of one word.
#[derive(Clone, Debug)]
pub(crate) struct Node<T> {
    /// The argument, 0 to 5.
    pub(crate) arg: u8,
    /// Whether its upper half is tested.
    pub(crate) high: bool,
    pub(crate) test: WordTest,
    pub(crate) mask: u32,
    pub(crate) value: u32,
    /// Its sort key on a level.
    key: Key,
    /// The whole constant as written.
    whole: u64,
    pub(crate) yes: Exit<T>,
    pub(crate) no: Exit<T>,
    pub(crate) level: usize,
}

/// Nodes that are alternatives.
#[derive(Clone, Debug)]
struct Level {
    /// The nodes in the order in which they are tried.
    nodes: Vec<NodeId>,
    /// Whether this is the order of their keys. False after a search that began in the middle of a shared level.
    is_sorted: bool,
    /// The count of nodes with an exit to another level.
    inner: usize,
}

/// The sort key of a node on a level: the greater key is tried first.
pub(crate) type Key = (u8, bool, Rank, u32);

/// Comparisons on one word are tried in descending order of rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// `>` and `>=`: the larger constant first.
    Greater,
    /// `<` and `<=`: the smaller constant first.
    Less,
    /// `==`, `!=` and masks: the larger constant first.
    Equal,
}

/// The reason for refusing a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<T> {
    /// The rule with this tag has another action in the same place; libseccomp returns `EEXIST`.
    Conflict(T),
    /// There are more than [`MAX_RULES`] rules.
    TooMany,
    /// libseccomp would link a node of a shared level to itself and never return.
    Endless,
}

/// The result of adding a rule that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The rule is in the tree; rules that it makes redundant, or for an unconditional rule all others, are
    /// removed.
    Inserted,
    /// The same for a rule with conditions that makes all others redundant.
    Replaced,
    /// An unconditional rule or a shorter one with the same action makes it redundant.
    Ignored,
}

/// The rules of one system call.
///
/// ```
/// use tamis_abi::{Action, Arch, ArgIndex};
/// use tamis_scmp::{CallTree, Comparison, Condition, Conditions, Refusal};
/// let is = |arg, value| Condition { arg: ArgIndex::ALL[arg], comparison: Comparison::Eq, value };
/// let (one, two) = (Action::errno(1), Action::errno(2));
///
/// let mut tree = CallTree::new(Arch::X86_64);
/// tree.add(&Conditions::new(&[is(0, 5), is(1, 7)]).unwrap(), one, "first").unwrap();
/// let shorter = Conditions::new(&[is(0, 5)]).unwrap();
/// assert_eq!(tree.add(&shorter, two, "second"), Err(Refusal::Conflict("first")));
/// ```
#[derive(Clone, Debug)]
pub struct CallTree<T> {
    /// Whether arguments have 64 bits.
    wide: bool,
    /// The count of added rules, and how many there may be.
    rules: usize,
    most_rules: usize,
    nodes: Vec<Node<T>>,
    levels: Vec<Level>,
    /// A node of the top level, or the action for every call; `Fall` before the first rule.
    pub(crate) top: Exit<T>,
}

impl<T: Copy + Ord> CallTree<T> {
    /// A call without rules on an architecture. If registers or C's `long` have 32 bits there, libseccomp compares
    /// only the lower halves of arguments.
    pub fn new(arch: Arch) -> CallTree<T> {
        CallTree {
            wide: arch.is_64_bit(),
            rules: 0,
            most_rules: MAX_RULES,
            nodes: Vec::new(),
            levels: Vec::new(),
            top: Exit::Fall,
        }
    }

    /// The same without a limit of rules.
    pub fn of_any_size(arch: Arch) -> CallTree<T> {
        CallTree {
            most_rules: usize::MAX,
            ..CallTree::new(arch)
        }
    }

    /// The action for every call, if the rules are unconditional.
    pub fn unconditional(&self) -> Option<Action> {
        match self.top {
            Exit::Action(tagged) => Some(tagged.action),
            Exit::Fall | Exit::Level(_) => None,
        }
    }

    /// The tag of the rule whose action every call gets, if there is one.
    pub(crate) fn unconditional_tag(&self) -> Option<T> {
        match self.top {
            Exit::Action(tagged) => Some(tagged.tag),
            Exit::Fall | Exit::Level(_) => None,
        }
    }

    /// The count of tests in the tree.
    pub fn node_count(&self) -> usize {
        let mut seen = vec![false; self.nodes.len()];
        let mut open: Vec<NodeId> = Vec::new();
        let mut count = 0;
        let mut visit = |exit: Exit<T>, open: &mut Vec<NodeId>| {
            if let Exit::Level(at) = exit {
                for id in self.level(at) {
                    if !std::mem::replace(&mut seen[id.0 as usize], true) {
                        count += 1;
                        open.push(*id);
                    }
                }
            }
        };
        visit(self.top, &mut open);
        while let Some(id) = open.pop() {
            visit(self.exit(id, true), &mut open);
            visit(self.exit(id, false), &mut open);
        }
        count
    }

    /// The bits of an argument that are compared.
    pub(crate) fn argument_part(&self) -> Part {
        if self.wide { Part::Full } else { Part::Low }
    }

    /// The values that an argument can have.
    pub(crate) fn all_values(&self) -> IntervalSet<u64> {
        let last = if self.wide {
            u64::MAX
        } else {
            u64::from(u32::MAX)
        };
        [0..=last].into_iter().collect()
    }

    /// A node.
    pub(crate) fn node(&self, id: NodeId) -> &Node<T> {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node<T> {
        &mut self.nodes[id.0 as usize]
    }

    /// The nodes of the level that a node is on, in the order in which they are tried.
    pub(crate) fn level(&self, id: NodeId) -> &[NodeId] {
        &self.levels[self.node(id).level].nodes
    }

    /// Adds a rule: if all conditions hold, the action.
    ///
    /// A rule for a call with an unconditional rule is ignored; an unconditional rule replaces all conditional
    /// ones.
    ///
    /// # Errors
    /// If libseccomp refuses the rule. The tree is then modified and unusable.
    pub fn add(
        &mut self,
        conditions: &Conditions,
        action: Action,
        tag: T,
    ) -> Result<Added, Refusal<T>> {
        if let Exit::Action(_) = self.top {
            return Ok(Added::Ignored);
        }
        self.rules += 1;
        if self.rules > self.most_rules {
            return Err(Refusal::TooMany);
        }
        match (
            self.top,
            self.chain(conditions, TaggedAction { action, tag }),
        ) {
            (Exit::Level(_), Exit::Level(new)) => {
                if self.prune(new, action) == Pruned::NewIsRedundant {
                    return Ok(Added::Ignored);
                }
                let Exit::Level(top) = self.top else {
                    self.top = Exit::Level(new);
                    return Ok(Added::Replaced);
                };
                self.top = Exit::Level(self.merge(top, new)?);
            }
            (_, chain) => self.top = chain,
        }
        Ok(Added::Inserted)
    }

    /// Creates the nodes of a rule; an unconditional rule has none.
    fn chain(&mut self, conditions: &Conditions, tagged: TaggedAction<T>) -> Exit<T> {
        // From the last condition to the first, so that each exit already exists.
        let mut next = Exit::Action(tagged);
        for condition in conditions.iter().rev() {
            next = if self.wide {
                self.wide_condition(condition, next)
            } else {
                self.narrow_condition(condition, next)
            };
        }
        next
    }

    /// A condition on 32 bits: one node.
    fn narrow_condition(&mut self, condition: &Condition, next: Exit<T>) -> Exit<T> {
        let mask = condition.mask() as u32;
        if mask == 0 {
            return next;
        }
        let test = match condition.comparison {
            Comparison::Masked { .. } => WordTest::Masked,
            Comparison::Eq | Comparison::Ne => WordTest::Equal,
            Comparison::Gt | Comparison::Le => WordTest::Above,
            Comparison::Ge | Comparison::Lt => WordTest::AtLeast,
        };
        let (yes, no) = if condition.is_negative() {
            (Exit::Fall, next)
        } else {
            (next, Exit::Fall)
        };
        self.push(condition, false, test, yes, no)
    }

    /// A condition on 64 bits: the high word decides, or leads to the low word.
    fn wide_condition(&mut self, condition: &Condition, next: Exit<T>) -> Exit<T> {
        use WordTest::{Above, AtLeast, Equal, Masked};
        let fall = Exit::Fall;
        match condition.comparison {
            Comparison::Masked { .. } if condition.mask() == 0 => next,
            Comparison::Masked { .. } => {
                let low = self.push(condition, false, Masked, next, fall);
                self.push(condition, true, Masked, low, fall)
            }
            Comparison::Eq => {
                let low = self.push(condition, false, Equal, next, fall);
                self.push(condition, true, Equal, low, fall)
            }
            Comparison::Ne => {
                let low = self.push(condition, false, Equal, fall, next);
                self.push(condition, true, Equal, low, next)
            }
            Comparison::Gt | Comparison::Ge => {
                let test = match condition.comparison {
                    Comparison::Gt => Above,
                    _ => AtLeast,
                };
                let low = self.push(condition, false, test, next, fall);
                let same = self.push(condition, true, Equal, low, fall);
                self.push(condition, true, Above, next, same)
            }
            Comparison::Lt | Comparison::Le => {
                let test = match condition.comparison {
                    Comparison::Le => Above,
                    _ => AtLeast,
                };
                let low = self.push(condition, false, test, fall, next);
                let same = self.push(condition, true, Equal, low, next);
                self.push(condition, true, Above, fall, same)
            }
        }
    }

    /// Creates a node on a separate level.
    fn push(
        &mut self,
        condition: &Condition,
        high: bool,
        test: WordTest,
        yes: Exit<T>,
        no: Exit<T>,
    ) -> Exit<T> {
        let half = |whole: u64| {
            if high {
                (whole >> 32) as u32
            } else {
                whole as u32
            }
        };
        let id = NodeId(self.nodes.len() as u32);
        let arg = condition.arg.index() as u8;
        let mask = half(condition.mask());
        let value = half(condition.value) & mask;
        let rank = match condition.comparison {
            Comparison::Masked { .. } | Comparison::Eq | Comparison::Ne => Rank::Equal,
            Comparison::Lt | Comparison::Le => Rank::Less,
            Comparison::Gt | Comparison::Ge => Rank::Greater,
        };
        self.nodes.push(Node {
            arg,
            high,
            test,
            mask,
            value,
            key: key_of(arg, high, rank, value),
            whole: condition.value,
            yes,
            no,
            level: 0,
        });
        self.put_on_new_level(id);
        Exit::Level(id)
    }

    fn put_on_new_level(&mut self, id: NodeId) {
        self.node_mut(id).level = self.levels.len();
        self.levels.push(Level {
            nodes: vec![id],
            is_sorted: true,
            inner: usize::from(self.is_inner(id)),
        });
    }

    /// Moves a node of a chain to a level.
    fn put_on_level(&mut self, level: usize, position: usize, id: NodeId) {
        let is_inner = self.is_inner(id);
        let before = position.checked_sub(1);
        let before = before.map(|before| self.key(self.levels[level].nodes[before]));
        let sorts_here = before.is_none_or(|before| before >= self.key(id));
        let to = &mut self.levels[level];
        to.nodes.insert(position, id);
        to.is_sorted &= sorts_here;
        to.inner += usize::from(is_inner);
        self.node_mut(id).level = level;
    }

    /// Moves a node from its level to a separate one; returns its neighbour on the old level.
    pub(crate) fn unlink(&mut self, id: NodeId) -> Exit<T> {
        let is_inner = self.is_inner(id);
        let level = self.node(id).level;
        let position = self.position(id);
        let old = &mut self.levels[level];
        old.nodes.remove(position);
        old.inner -= usize::from(is_inner);
        let neighbour = old.nodes.get(position.saturating_sub(1)).copied();
        self.put_on_new_level(id);
        neighbour.map_or(Exit::Fall, Exit::Level)
    }

    /// The index of a node on its level.
    fn position(&self, id: NodeId) -> usize {
        let position = self.level(id).iter().position(|other| *other == id);
        position.expect("a node is on its level")
    }

    /// Whether a node has an exit to another level.
    fn is_inner(&self, id: NodeId) -> bool {
        let node = self.node(id);
        matches!(node.yes, Exit::Level(_)) || matches!(node.no, Exit::Level(_))
    }

    /// The nodes of a level that a search that has skipped nothing needs to compare with a node. If neither the
    /// node nor the level has exits to other levels, these are the nodes with its test, found by their keys.
    pub(crate) fn comparable(&self, at: NodeId, new: NodeId) -> Vec<NodeId> {
        let level = &self.levels[self.node(at).level];
        if !level.is_sorted || level.inner > 0 || self.is_inner(new) {
            return level.nodes.clone();
        }
        let places = self.places_of_test(&level.nodes, new);
        places.map(|place| level.nodes[place]).collect()
    }

    /// The indices on a sorted level of the nodes with the test of a node, ascending. The test may originate from
    /// any kind of comparison.
    fn places_of_test(&self, nodes: &[NodeId], new: NodeId) -> impl Iterator<Item = usize> {
        let node = self.node(new);
        let ranks = [Rank::Equal, Rank::Less, Rank::Greater].into_iter();
        let places = ranks.flat_map(move |rank| {
            let key = key_of(node.arg, node.high, rank, node.value);
            let first = nodes.partition_point(|id| self.key(*id) > key);
            let has_key = move |place: &usize| self.key(nodes[*place]) == key;
            (first..nodes.len()).take_while(has_key)
        });
        places.filter(move |place| self.same_test(nodes[*place], new))
    }

    /// Whether two nodes have the same test.
    pub(crate) fn same_test(&self, a: NodeId, b: NodeId) -> bool {
        let key = |id| {
            let node = self.node(id);
            (node.arg, node.high, node.test, node.value, node.mask)
        };
        key(a) == key(b)
    }

    /// The sort key of a node on a level.
    pub(crate) fn key(&self, id: NodeId) -> Key {
        self.node(id).key
    }

    /// A tagged action below an exit with another action than this.
    pub(crate) fn other_action(&self, exit: Exit<T>, action: Action) -> Option<TaggedAction<T>> {
        let mut seen = HashSet::new();
        let mut open = vec![exit];
        while let Some(exit) = open.pop() {
            match exit {
                Exit::Fall => {}
                Exit::Action(tagged) if tagged.action == action => {}
                Exit::Action(tagged) => return Some(tagged),
                Exit::Level(id) if !seen.insert(self.node(id).level) => {}
                Exit::Level(id) => {
                    let exits = |id: &NodeId| [self.node(*id).no, self.node(*id).yes];
                    open.extend(self.level(id).iter().rev().flat_map(exits));
                }
            }
        }
        None
    }

    /// Merges a chain into the level of `at`; returns the node that identifies the level afterwards.
    fn merge(&mut self, at: NodeId, new: NodeId) -> Result<NodeId, Refusal<T>> {
        let level = self.node(at).level;
        // The search begins at the node through which the level was reached, which need not be the
        // first: levels can be shared.
        let from = self.position(at);
        let place = self.place(&self.levels[level], from, new);
        let old = self.levels[level].nodes.get(place).copied();
        if let Some(old) = old.filter(|old| self.same_test(*old, new)) {
            self.merge_node(old, new)?;
            return Ok(at);
        }
        self.check_not_on(level, new)?;
        self.put_on_level(level, place, new);
        Ok(if place == from { new } else { at })
    }

    /// The index of the first node from `from` on that has the same test as a new node or a smaller key.
    fn place(&self, level: &Level, from: usize, new: NodeId) -> usize {
        let (nodes, key) = (&level.nodes[from..], self.key(new));
        let place = if level.is_sorted {
            let smaller = nodes.partition_point(|old| self.key(*old) >= key);
            let same = self.places_of_test(nodes, new).next();
            same.map_or(smaller, |same| same.min(smaller))
        } else {
            let stops = |old: &NodeId| self.same_test(*old, new) || self.key(*old) < key;
            nodes.iter().position(stops).unwrap_or(nodes.len())
        };
        from + place
    }

    /// Fails if a node is already on this level: it was put there through another exit to the same level, before
    /// the node where this search began.
    fn check_not_on(&self, level: usize, new: NodeId) -> Result<(), Refusal<T>> {
        if self.node(new).level == level {
            return Err(Refusal::Endless);
        }
        Ok(())
    }

    /// Merges a node and the nodes below it into a node with the same test.
    fn merge_node(&mut self, old: NodeId, new: NodeId) -> Result<(), Refusal<T>> {
        if old == new {
            return Ok(());
        }
        let is_leaf = |node: &Node<T>| {
            !matches!(node.yes, Exit::Level(_)) && !matches!(node.no, Exit::Level(_))
        };
        for outcome in [true, false] {
            let Exit::Action(tagged) = self.exit(new, outcome) else {
                continue;
            };
            match self.exit(old, outcome) {
                Exit::Action(earlier) if earlier.action != tagged.action => {
                    let (x, n) = (self.node(old), self.node(new));
                    // If a high word decides alone, the tighter constant takes precedence.
                    let tighter = if outcome {
                        n.whole > x.whole
                    } else {
                        n.whole < x.whole
                    };
                    let takes_over = n.high && tighter;
                    if is_leaf(x) || is_leaf(n) {
                        return Err(Refusal::Conflict(earlier.tag));
                    }
                    if takes_over {
                        self.set_exit(old, outcome, Exit::Action(tagged));
                    }
                }
                Exit::Action(_) => {}
                below => {
                    if let Some(other) = self.other_action(below, tagged.action) {
                        return Err(Refusal::Conflict(other.tag));
                    }
                    self.set_exit(old, outcome, Exit::Action(tagged));
                }
            }
        }
        for outcome in [true, false] {
            let Exit::Level(below) = self.exit(new, outcome) else {
                continue;
            };
            match self.exit(old, outcome) {
                Exit::Level(at) => {
                    let at = self.merge(at, below)?;
                    self.set_exit(old, outcome, Exit::Level(at));
                }
                Exit::Fall => self.set_exit(old, outcome, Exit::Level(below)),
                // A shorter chain already decides.
                Exit::Action(_) => return Ok(()),
            }
        }
        Ok(())
    }

    pub(crate) fn exit(&self, id: NodeId, outcome: bool) -> Exit<T> {
        let node = self.node(id);
        if outcome { node.yes } else { node.no }
    }

    pub(crate) fn set_exit(&mut self, id: NodeId, outcome: bool, exit: Exit<T>) {
        let was_inner = self.is_inner(id);
        let node = self.node_mut(id);
        if outcome {
            node.yes = exit;
        } else {
            node.no = exit;
        }
        let level = self.node(id).level;
        let is_inner = self.is_inner(id);
        let inner = &mut self.levels[level].inner;
        *inner = *inner + usize::from(is_inner) - usize::from(was_inner);
    }
}

/// The key of a node of this word, rank and value: of `<` and `<=` the smaller constant is greater.
fn key_of(arg: u8, high: bool, rank: Rank, value: u32) -> Key {
    let value = match rank {
        Rank::Less => !value,
        Rank::Equal | Rank::Greater => value,
    };
    (arg, high, rank, value)
}
