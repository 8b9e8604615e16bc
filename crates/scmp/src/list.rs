//! How long libseccomp's own program for a filter is: its list of comparisons, `SCMP_FLTATR_CTL_OPTIMIZE` 1.
//!
//! libseccomp makes blocks of instructions: one for each architecture, one for each call, one for each test of an
//! argument, and one for each action. Blocks of architectures and calls follow each other, calls with the greater
//! priority first. A test or an action is placed behind the last block that jumps to it, once: blocks with the same
//! instructions, the same targets and the same contents of the accumulator are one. A jump over more than 255
//! instructions goes to a copy of the action, or to a long jump, behind its block.
//!
//! Only lengths are modelled: no program is made.

use std::collections::HashMap;

use tamis_abi::{Action, Arch};

use crate::db::{ArchRules, Db, Listed, is_tested};
use crate::tree::{CallTree, Exit, NodeId, WordTest};

/// The longest jump.
const MAX_JUMP_INSNS: usize = 255;

/// A word of the input.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Word {
    Nr,
    Arch,
    Arg { index: u8, high: bool },
}

/// The word in the accumulator, and the mask that was applied; `None` if it isn't known.
type Held = Option<(Word, u32)>;

/// The identity of a block: blocks with equal contents have the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Id(usize);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Op {
    Load(Word),
    And(u32),
    Test {
        test: WordTest,
        value: u32,
        /// Where it goes if it holds and if it doesn't; `None` for the next instruction.
        targets: [Option<Id>; 2],
    },
    Return(Action),
}

/// The instructions of a block, what the accumulator must hold before, and what it holds after.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Block {
    ops: Vec<Op>,
    needs: Held,
    leaves: Held,
}

impl Block {
    /// The jumps, with the instructions between each and the end of the block.
    fn jumps(&self) -> Vec<(usize, Id)> {
        let mut jumps = Vec::new();
        for (after, op) in self.ops.iter().rev().enumerate() {
            if let Op::Test { targets, .. } = op {
                jumps.extend(targets.iter().flatten().map(|target| (after, *target)));
            }
        }
        jumps
    }
}

/// A block in the program.
struct Placed {
    id: Id,
    length_insns: usize,
    jumps: Vec<(usize, Id)>,
    leaves: Held,
}

/// The blocks that were made, and the program.
#[derive(Default)]
struct List {
    blocks: Vec<Block>,
    known: HashMap<Block, Id>,
    /// The first blocks of the levels of the present call's tree, by what follows and what the accumulator holds.
    levels: HashMap<(usize, Id, Held), Id>,
    /// Whether each block has its place.
    is_placed: Vec<bool>,
    program: Vec<Placed>,
}

impl<T: Copy + Ord> Db<T> {
    /// The length of the program that libseccomp 2.6.1 makes of the filter, in instructions; it may be more than the
    /// kernel takes. A tree of tests that is shared between branches counts as often as libseccomp places it.
    ///
    /// ```
    /// use tamis_abi::{Action, Arch};
    /// use tamis_scmp::{Db, Exactness};
    /// let mut db = Db::new(Action::ALLOW, Arch::Aarch64, &[]);
    /// db.add_rule(Exactness::Exact, Action::errno(1), 0, &[], ()).unwrap();
    /// // Load and test the architecture, load and test the number, and three actions.
    /// assert_eq!(db.list_length_insns(Action::KILL_THREAD), 7);
    /// ```
    pub fn list_length_insns(&self, bad_arch: Action) -> usize {
        let mut list = List::default();
        let bad_arch = list.action(bad_arch);
        let default = list.action(self.default_action());
        let load = list.block(
            vec![Op::Load(Word::Arch)],
            None,
            Some((Word::Arch, u32::MAX)),
        );
        list.place(load);
        for (at, filter) in self.filters().iter().enumerate() {
            let others = self.filters().iter().enumerate();
            let sibling = others.clone().find(|(_, other)| {
                let pair = [Arch::X86_64, Arch::X32];
                let is_pair = pair.contains(&filter.arch()) && pair.contains(&other.arch());
                is_pair && other.arch() != filter.arch()
            });
            match sibling {
                // Both were placed with the first.
                Some((before, _)) if before < at => {}
                sibling => list.arch(filter, sibling.map(|(_, other)| other), default, bad_arch),
            }
        }
        list.place(bad_arch);
        list.follow_archs();
        list.pull_in();
        list.shorten_jumps();
        list.program.iter().map(|placed| placed.length_insns).sum()
    }
}

impl List {
    fn block(&mut self, ops: Vec<Op>, needs: Held, leaves: Held) -> Id {
        let block = Block { ops, needs, leaves };
        if let Some(id) = self.known.get(&block) {
            return *id;
        }
        let id = Id(self.blocks.len());
        self.blocks.push(block.clone());
        self.is_placed.push(false);
        self.known.insert(block, id);
        id
    }

    fn action(&mut self, action: Action) -> Id {
        self.block(vec![Op::Return(action)], None, None)
    }

    /// Appends a block to the program.
    fn place(&mut self, id: Id) {
        let placed = self.placed(id, 0);
        self.program.push(placed);
    }

    /// A block with instructions before it.
    fn placed(&mut self, id: Id, before_insns: usize) -> Placed {
        self.is_placed[id.0] = true;
        let block = &self.blocks[id.0];
        Placed {
            id,
            length_insns: before_insns + block.ops.len(),
            jumps: block.jumps(),
            leaves: block.leaves,
        }
    }

    /// Places the blocks of an architecture, or of x86-64 and x32 together.
    fn arch<T: Copy + Ord>(
        &mut self,
        filter: &ArchRules<T>,
        sibling: Option<&ArchRules<T>>,
        default: Id,
        bad_arch: Id,
    ) {
        let arch = filter.arch();
        let is_alone = sibling.is_none() && matches!(arch, Arch::X86_64 | Arch::X32);
        let calls = self.calls(filter, sibling, default, is_alone);
        let first = calls.first().copied().unwrap_or(default);
        let convention = is_alone.then(|| self.convention(arch, first, bad_arch));
        let check = Op::Test {
            test: WordTest::Equal,
            value: arch.audit(),
            targets: [Some(convention.unwrap_or(first)), None],
        };
        let check = self.block(vec![check], None, None);
        for id in [Some(check), convention].into_iter().flatten().chain(calls) {
            self.place(id);
        }
    }

    /// Distinguishes x86-64 from x32 in a filter for one of them.
    fn convention(&mut self, arch: Arch, first: Id, bad_arch: Id) -> Id {
        let is_x32 = |targets| Op::Test {
            test: WordTest::AtLeast,
            value: Arch::X32_BIT,
            targets,
        };
        let mut ops = vec![Op::Load(Word::Nr)];
        if arch == Arch::X32 {
            ops.push(is_x32([Some(first), Some(bad_arch)]));
        } else {
            ops.push(is_x32([None, Some(first)]));
            ops.push(Op::Test {
                test: WordTest::Equal,
                value: u32::MAX,
                targets: [Some(first), Some(bad_arch)],
            });
        }
        self.block(ops, None, Some((Word::Nr, u32::MAX)))
    }

    /// The blocks of calls, in their order. The first loads the number, unless that was loaded before.
    fn calls<T: Copy + Ord>(
        &mut self,
        filter: &ArchRules<T>,
        sibling: Option<&ArchRules<T>>,
        default: Id,
        is_loaded: bool,
    ) -> Vec<Id> {
        let mut listed: Vec<Listed<'_, T>> = filter.entries().collect();
        listed.extend(sibling.into_iter().flat_map(ArchRules::entries));
        listed.sort_by_key(|call| std::cmp::Reverse(call.priority));
        let mut calls = Vec::with_capacity(listed.len());
        let mut next = default;
        for (at, call) in listed.iter().enumerate().rev() {
            let Some(tree) = call.tree.filter(|_| is_tested(call.number)) else {
                continue;
            };
            self.levels.clear();
            let test = Op::Test {
                test: WordTest::Equal,
                value: call.number,
                targets: [Some(self.exit(tree, tree.top, default, None)), Some(next)],
            };
            let nr = Some((Word::Nr, u32::MAX));
            next = match at == 0 && !is_loaded {
                true => self.block(vec![Op::Load(Word::Nr), test], None, nr),
                false => self.block(vec![test], nr, nr),
            };
            calls.push(next);
        }
        calls.reverse();
        calls
    }

    /// The block after a branch of a tree: an action, the first test of a level, or the next block.
    fn exit<T: Copy + Ord>(
        &mut self,
        tree: &CallTree<T>,
        exit: Exit<T>,
        next: Id,
        held: Held,
    ) -> Id {
        match exit {
            Exit::Fall => next,
            Exit::Action(tagged) => self.action(tagged.action),
            Exit::Level(at) => {
                let key = (tree.node(at).level, next, held);
                if let Some(first) = self.levels.get(&key) {
                    return *first;
                }
                let first = self.level(tree, at, next, held);
                self.levels.insert(key, first);
                first
            }
        }
    }

    /// The first block of a level. The last test goes on with `next`.
    fn level<T: Copy + Ord>(
        &mut self,
        tree: &CallTree<T>,
        at: NodeId,
        next: Id,
        mut held: Held,
    ) -> Id {
        let nodes = tree.level(at);
        let mut begun = Vec::with_capacity(nodes.len());
        for id in nodes {
            let node = tree.node(*id);
            let word = Word::Arg {
                index: node.arg,
                high: node.high,
            };
            let mut ops = Vec::new();
            let mut needs = held;
            let mut mask = match held {
                Some((known, mask)) if known == word && node.mask & mask == node.mask => mask,
                _ => {
                    ops.push(Op::Load(word));
                    needs = None;
                    u32::MAX
                }
            };
            if mask != node.mask {
                mask = node.mask;
                ops.push(Op::And(mask));
            }
            held = Some((word, mask));
            begun.push((*id, ops, needs, held));
        }
        let mut next = next;
        for (id, mut ops, needs, leaves) in begun.into_iter().rev() {
            let node = tree.node(id);
            let targets = [true, false]
                .map(|outcome| Some(self.exit(tree, tree.exit(id, outcome), next, leaves)));
            let test = match node.test {
                WordTest::Masked => WordTest::Equal,
                test => test,
            };
            ops.push(Op::Test {
                test,
                value: node.value,
                targets,
            });
            next = self.block(ops, needs, leaves);
        }
        next
    }

    /// Lets the tests of architectures that don't hold go to the next one, and the last to the action at the end.
    fn follow_archs(&mut self) {
        let mut next = self.program.last().map(|placed| placed.id);
        for placed in self.program.iter_mut().rev() {
            let ops = &self.blocks[placed.id.0].ops;
            if let [
                Op::Test {
                    targets: [_, None], ..
                },
            ] = ops.as_slice()
            {
                placed.jumps.extend(next.map(|next| (0, next)));
                next = Some(placed.id);
            }
        }
    }

    /// Places the other blocks, each after a block that jumps to it, the last jumps first. If the accumulator doesn't
    /// hold the word that a block needs, it is loaded again.
    fn pull_in(&mut self) {
        let mut at = self.program.len();
        while let Some(last) = at.checked_sub(1) {
            let jumps = &self.program[last].jumps;
            let open = jumps.iter().find(|(_, target)| !self.is_placed[target.0]);
            let Some((_, target)) = open.copied() else {
                at = last;
                continue;
            };
            let needs = self.blocks[target.0].needs;
            let before_insns = match needs {
                Some((_, mask)) if needs != self.program[last].leaves => {
                    1 + usize::from(mask != u32::MAX)
                }
                _ => 0,
            };
            let placed = self.placed(target, before_insns);
            self.program.insert(at, placed);
            at += 1;
        }
    }

    /// Places copies of the targets, or long jumps to them, of one instruction, behind blocks with jumps that are too
    /// long.
    fn shorten_jumps(&mut self) {
        for at in (0..self.program.len()).rev() {
            loop {
                let jumps = std::mem::take(&mut self.program[at].jumps);
                let before = self.program.len();
                for (after_insns, target) in &jumps {
                    if !self.is_near(at, *after_insns, *target) {
                        let copy = Placed {
                            id: *target,
                            length_insns: 1,
                            jumps: Vec::new(),
                            leaves: None,
                        };
                        self.program.insert(at + 1, copy);
                    }
                }
                self.program[at].jumps = jumps;
                if self.program.len() == before {
                    break;
                }
            }
        }
    }

    fn is_near(&self, at: usize, after_insns: usize, target: Id) -> bool {
        let mut distance_insns = after_insns;
        for placed in &self.program[at + 1..] {
            if placed.id == target {
                return distance_insns <= MAX_JUMP_INSNS;
            }
            distance_insns += placed.length_insns;
            if distance_insns > MAX_JUMP_INSNS {
                return false;
            }
        }
        false
    }
}
