//! Removal of chains that are redundant because of a shorter chain with the same action.
//!
//! Before libseccomp merges a chain into a number's graph it walks both. A chain of the graph that contains all
//! tests of the new one, after others, and has the same action is removed, as the new one decides its calls. A new
//! chain that contains all tests of one in the graph, after others, is not added. This doesn't change the actions
//! of calls, but it does change the conflicts of later rules.
//!
//! Levels are shared: `a <= 5` reaches the next level by two branches, and six such conditions by 64. libseccomp walks
//! each path, in time exponential in the conditions. The result of a walk depends on the level, the node of the new
//! chain and the match so far, so here each is walked once until a removal changes the graph.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use tamis_abi::Action;

use crate::tree::{CallTree, Exit, NodeId};

/// The result of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pruned {
    /// The new chain has to be merged.
    Ready,
    /// The graph decides all calls of the new chain.
    NewIsRedundant,
}

/// The match of two chains so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Overlap {
    /// The last compared nodes have the same test.
    matched: bool,
    /// Some nodes on the path so far have the same test.
    matched_once: bool,
    /// The existing chain ends here.
    old_ends: bool,
    /// The new chain ends here.
    new_ends: bool,
    /// Nodes of the existing chain were skipped.
    old_skipped: bool,
    /// Nodes of the new chain were skipped.
    new_skipped: bool,
}

impl Overlap {
    fn absorb(&mut self, other: Overlap) {
        self.matched |= other.matched;
        self.matched_once |= other.matched_once;
        self.old_ends |= other.old_ends;
        self.new_ends |= other.new_ends;
        self.old_skipped |= other.old_skipped;
        self.new_skipped |= other.new_skipped;
    }
}

/// One search through a number's graph.
struct Search<'t, T> {
    tree: &'t mut CallTree<T>,
    /// The action of the new chain.
    action: Action,
    /// The chains that were removed.
    removals: usize,
    /// The results of walks through the graph as it is since the last removal.
    walked: HashMap<(usize, NodeId, Overlap), Overlap>,
}

impl<T: Copy + Ord> CallTree<T> {
    /// Removes the chains that a new chain makes redundant, or finds that the new chain is redundant.
    pub(crate) fn prune(&mut self, new: NodeId, action: Action) -> Pruned {
        let top = self.top;
        let mut search = Search {
            tree: self,
            action,
            removals: 0,
            walked: HashMap::new(),
        };
        let mut overlap = Overlap::default();
        search.walk(top, new, &mut overlap);
        if search.removals == 0 && overlap.matched && overlap.old_ends && overlap.new_skipped {
            Pruned::NewIsRedundant
        } else {
            Pruned::Ready
        }
    }

    /// Removes a node from its level, and then the nodes above that have no exits left; returns the resulting exit and
    /// whether anything was removed.
    ///
    /// Nothing is removed below the levels `without`, which were searched before: removed nodes only have paths to the
    /// target.
    fn remove(
        &mut self,
        from: Exit<T>,
        target: NodeId,
        without: &mut HashSet<usize>,
    ) -> (Exit<T>, bool) {
        let Exit::Level(at) = from else {
            return (from, false);
        };
        let level = self.node(at).level;
        if without.contains(&level) {
            return (from, false);
        }
        let mut removed = false;
        for id in self.level(at).to_vec() {
            if id != target {
                for outcome in [true, false] {
                    let (exit, below) = self.remove(self.exit(id, outcome), target, without);
                    self.set_exit(id, outcome, exit);
                    removed |= below;
                }
                let leads_nowhere =
                    self.node(id).yes == Exit::Fall && self.node(id).no == Exit::Fall;
                if !leads_nowhere {
                    if removed {
                        break;
                    }
                    continue;
                }
            }
            let neighbour = self.unlink(id);
            let exit = if id == at { neighbour } else { from };
            return (exit, true);
        }
        if !removed {
            without.insert(level);
        }
        (from, removed)
    }
}

impl<T: Copy + Ord> Search<'_, T> {
    /// Compares a level of the graph with a node of the new chain.
    fn walk(&mut self, old: Exit<T>, new: NodeId, state: &mut Overlap) {
        let is_broken = state.matched_once && !state.matched;
        let Exit::Level(at) = old else {
            return;
        };
        if is_broken {
            return;
        }
        let key = (self.tree.node(at).level, new, *state);
        if let Some(known) = self.walked.get(&key) {
            *state = *known;
            return;
        }
        let removals = self.removals;
        self.walk_level(at, new, state);
        if self.removals == removals {
            self.walked.insert(key, *state);
        }
    }

    /// The same for a level with nodes and a match that isn't broken.
    fn walk_level(&mut self, at: NodeId, new: NodeId, state: &mut Overlap) {
        let mut found = *state;
        let mut stopped = false;
        let olds = if state.old_skipped || state.new_skipped {
            self.tree.level(at).to_vec()
        } else {
            self.tree.comparable(at, new)
        };
        for old in olds {
            if self.compare(old, new, *state, &mut found).is_break() {
                stopped = true;
                break;
            }
        }
        found.matched &= stopped;
        if found.matched {
            state.absorb(found);
        } else {
            state.matched = false;
        }
    }

    /// Compares two nodes; breaks if the rest of the level can be skipped.
    fn compare(
        &mut self,
        old: NodeId,
        new: NodeId,
        state: Overlap,
        found: &mut Overlap,
    ) -> ControlFlow<()> {
        if self.tree.same_test(old, new) {
            return self.compare_equal(old, new, state, found);
        }
        let skips_old = self.tree.key(old) < self.tree.key(new);
        if skips_old && state.new_skipped || !skips_old && state.old_skipped {
            return ControlFlow::Break(());
        }
        for outcome in [true, false] {
            let skipped = if skips_old { old } else { new };
            let Exit::Level(below) = self.tree.exit(skipped, outcome) else {
                continue;
            };
            let mut next = Overlap {
                matched: false,
                old_skipped: state.old_skipped || skips_old,
                new_skipped: state.new_skipped || !skips_old,
                ..state
            };
            let level = self.tree.node(old).level;
            if skips_old {
                self.walk(Exit::Level(below), new, &mut next);
            } else {
                self.walk(Exit::Level(old), below, &mut next);
            }
            if next.matched {
                found.absorb(next);
                return ControlFlow::Break(());
            }
            if self.tree.node(old).level != level {
                // The node was removed.
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// Follows two nodes with the same test.
    fn compare_equal(
        &mut self,
        old: NodeId,
        new: NodeId,
        state: Overlap,
        found: &mut Overlap,
    ) -> ControlFlow<()> {
        let is_leaf =
            |exits: [Exit<T>; 2]| !exits.iter().any(|exit| matches!(exit, Exit::Level(_)));
        let exits = |tree: &CallTree<T>, id| [tree.exit(id, true), tree.exit(id, false)];
        let (olds, news) = (exits(self.tree, old), exits(self.tree, new));
        found.matched = true;
        found.matched_once = true;
        found.new_ends |= is_leaf(news);
        found.old_ends |= is_leaf(olds);
        let has_more = |(old, new): (&Exit<T>, &Exit<T>)| *old != Exit::Fall && *new == Exit::Fall;
        if olds.iter().zip(&news).any(has_more) {
            return ControlFlow::Break(());
        }
        let action = |exit: &Exit<T>| match exit {
            Exit::Action(tagged) => Some(tagged.action),
            Exit::Fall | Exit::Level(_) => None,
        };
        let answers_differ = |(old, new)| action(old) != action(new);
        if found.new_ends && found.old_ends && olds.iter().zip(&news).any(answers_differ) {
            return ControlFlow::Break(());
        }
        let level = self.tree.node(old).level;
        for (outcome, exit) in [true, false].into_iter().zip(news) {
            let Exit::Level(below) = exit else { continue };
            let mut next = Overlap {
                matched: true,
                matched_once: true,
                ..state
            };
            self.walk(self.tree.exit(old, outcome), below, &mut next);
            if next.matched {
                found.absorb(next);
            }
            if self.tree.node(old).level != level {
                // The node was removed.
                return ControlFlow::Continue(());
            }
        }
        self.remove_or_stop(old, *found)
    }

    /// Removes a longer existing chain, or stops at a shorter one.
    fn remove_or_stop(&mut self, old: NodeId, found: Overlap) -> ControlFlow<()> {
        let removes = found.new_ends && found.old_skipped;
        let stops = found.old_ends && found.new_skipped;
        if !found.matched || !removes && !stops {
            return ControlFlow::Continue(());
        }
        let other = self.tree.other_action(Exit::Level(old), self.action);
        if other.is_some() {
            return ControlFlow::Continue(());
        }
        if removes {
            let (top, removed) = self.tree.remove(self.tree.top, old, &mut HashSet::new());
            self.tree.top = top;
            if removed {
                self.removals += 1;
                self.walked.clear();
            }
            if top == Exit::Fall {
                return ControlFlow::Break(());
            }
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(())
    }
}
