//! Programs of sockets as blocks with a way out, and the blocks as programs.
//!
//! Edges lead to blocks with greater indexes, as jumps of classic BPF lead forward. The emitted blocks are ordered such
//! that all jumps lead forward; a branch whose target is beyond its 8-bit offset gets a `ja` after it.

use std::mem;

use tamis_abi::hash::WordHashMap;
use tamis_bpf::Insn;
use tamis_bpf::insn::{Operand, Test};
use tamis_bpf::packet::{Op, Program};

/// The index of a block; the first block is the entry.
pub(super) type BlockId = usize;

/// Instructions without jumps and returns, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Block {
    pub(super) ops: Vec<Op>,
    pub(super) end: End,
}

/// The way out of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    Goto(BlockId),
    Branch {
        test: Test,
        operand: Operand,
        holds: BlockId,
        fails: BlockId,
    },
    RetImm(u32),
    RetA,
}

impl End {
    /// The successors.
    pub(super) fn targets(self) -> impl DoubleEndedIterator<Item = BlockId> {
        let (first, second) = match self {
            End::Goto(to) => (Some(to), None),
            End::Branch { holds, fails, .. } => (Some(holds), Some(fails)),
            End::RetImm(_) | End::RetA => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The same way out with other targets.
    pub(super) fn map(self, mut to: impl FnMut(BlockId) -> BlockId) -> End {
        match self {
            End::Goto(next) => End::Goto(to(next)),
            End::Branch {
                test,
                operand,
                holds,
                fails,
            } => match (to(holds), to(fails)) {
                (holds, fails) if holds == fails => End::Goto(holds),
                (holds, fails) => End::Branch {
                    test,
                    operand,
                    holds,
                    fails,
                },
            },
            End::RetImm(_) | End::RetA => self,
        }
    }
}

/// A program as blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) blocks: Vec<Block>,
}

impl Graph {
    /// The blocks of a program.
    pub(super) fn from_program(program: &Program) -> Graph {
        let ops: Vec<Op> = program.ops().collect();
        let mut is_start = vec![false; ops.len() + 1];
        is_start[0] = true;
        for (pc, op) in ops.iter().enumerate() {
            let next = pc + 1;
            match *op {
                Op::Jump(skip) => is_start[next + skip as usize] = true,
                Op::Branch { jt, jf, .. } => {
                    is_start[next + usize::from(jt)] = true;
                    is_start[next + usize::from(jf)] = true;
                }
                Op::RetImm(_) | Op::RetA => {}
                _ => continue,
            }
            is_start[next] = true;
        }
        let mut block_at = vec![0; ops.len() + 1];
        for pc in 1..=ops.len() {
            block_at[pc] = block_at[pc - 1] + usize::from(is_start[pc]);
        }
        let mut blocks = Vec::new();
        let mut own = Vec::new();
        for (pc, op) in ops.iter().enumerate() {
            let next = pc + 1;
            let end = match *op {
                Op::Jump(skip) => Some(End::Goto(block_at[next + skip as usize])),
                Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                } => Some(End::Branch {
                    test,
                    operand,
                    holds: block_at[next + usize::from(jt)],
                    fails: block_at[next + usize::from(jf)],
                }),
                Op::RetImm(k) => Some(End::RetImm(k)),
                Op::RetA => Some(End::RetA),
                other => {
                    own.push(other);
                    is_start[next].then_some(End::Goto(block_at[next]))
                }
            };
            if let Some(end) = end {
                let ops = mem::take(&mut own);
                blocks.push(Block { ops, end });
            }
        }
        Graph { blocks }
    }

    /// Per block, the number of edges from reachable blocks to it; the entry has one more.
    pub(super) fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.blocks.len()];
        uses[0] = 1;
        for (id, block) in self.blocks.iter().enumerate() {
            if uses[id] > 0 {
                block.end.targets().for_each(|to| uses[to] += 1);
            }
        }
        uses
    }

    /// Skips empty blocks, merges equal blocks, and joins a block with its only predecessor.
    pub(super) fn tidy(&mut self) {
        // From the last block on, each block leads to the representatives of its targets.
        let mut stands_for: Vec<BlockId> = (0..self.blocks.len()).collect();
        let mut known: WordHashMap<Block, BlockId> = WordHashMap::default();
        for id in (0..self.blocks.len()).rev() {
            let block = &mut self.blocks[id];
            block.end = block.end.map(|to| stands_for[to]);
            if let (true, End::Goto(to)) = (block.ops.is_empty(), block.end) {
                stands_for[id] = to;
                if id == 0 {
                    self.blocks[0] = self.blocks[to].clone();
                }
                continue;
            }
            stands_for[id] = *known.entry(block.clone()).or_insert(id);
        }
        let uses = self.uses();
        for id in (0..self.blocks.len()).rev() {
            if let End::Goto(to) = self.blocks[id].end
                && uses[id] > 0
                && uses[to] == 1
            {
                let Block { ops, end } = self.blocks[to].clone();
                self.blocks[id].ops.extend(ops);
                self.blocks[id].end = end;
            }
        }
    }

    /// The shorter of the programs for two orders of the blocks.
    pub(super) fn insns(&self) -> Vec<Insn> {
        let candidates = [true, false].map(|holds_first| self.insns_in(&self.order(holds_first)));
        let [first, second] = candidates;
        if second.len() < first.len() {
            second
        } else {
            first
        }
    }

    /// The reachable blocks in topological order.
    fn order(&self, holds_first: bool) -> Vec<BlockId> {
        let mut order = Vec::new();
        let mut is_seen = vec![false; self.blocks.len()];
        // A block is appended after all its successors.
        let mut walk = vec![(0, false)];
        while let Some((id, is_done)) = walk.pop() {
            if is_done {
                order.push(id);
                continue;
            }
            if mem::replace(&mut is_seen[id], true) {
                continue;
            }
            walk.push((id, true));
            let targets = self.blocks[id].end.targets().map(|to| (to, false));
            if holds_first {
                walk.extend(targets);
            } else {
                walk.extend(targets.rev());
            }
        }
        order.reverse();
        order
    }

    fn insns_in(&self, order: &[BlockId]) -> Vec<Insn> {
        let mut tail = Tail {
            insns: Vec::new(),
            starts: vec![0; self.blocks.len()],
        };
        for id in order.iter().rev() {
            let block = &self.blocks[*id];
            match block.end {
                End::RetImm(k) => tail.push(Op::RetImm(k)),
                End::RetA => tail.push(Op::RetA),
                End::Goto(to) if tail.skip(to) == 0 => {}
                End::Goto(to) => self.jump(&mut tail, to),
                End::Branch {
                    test,
                    operand,
                    holds,
                    fails,
                } => {
                    let mut to = [tail.skip(holds), tail.skip(fails)];
                    // A `ja` moves the other target by one instruction, so the other side may need a `ja` too.
                    for (side, target) in [(0, holds), (1, fails), (0, holds)] {
                        if to[side] > usize::from(u8::MAX) {
                            self.jump(&mut tail, target);
                            to[side] = 0;
                            to[1 - side] += 1;
                        }
                    }
                    let [jt, jf] = to.map(|skip| skip as u8);
                    tail.push(Op::Branch {
                        test,
                        operand,
                        jt,
                        jf,
                    });
                }
            }
            block.ops.iter().rev().for_each(|op| tail.push(*op));
            tail.starts[*id] = tail.insns.len();
        }
        tail.insns.reverse();
        tail.insns
    }

    /// A jump to a block, or a copy of its return if the block is nothing else.
    fn jump(&self, tail: &mut Tail, to: BlockId) {
        let block = &self.blocks[to];
        tail.push(match block.end {
            End::RetImm(k) if block.ops.is_empty() => Op::RetImm(k),
            End::RetA if block.ops.is_empty() => Op::RetA,
            _ => Op::Jump(tail.skip(to) as u32),
        });
    }
}

/// The end of a program, the last instruction first.
struct Tail {
    insns: Vec<Insn>,
    /// Per block, the number of instructions from its first one to the program's end.
    starts: Vec<usize>,
}

impl Tail {
    fn push(&mut self, op: Op) {
        self.insns.push(op.into());
    }

    /// The instructions between the next one and a block.
    fn skip(&self, to: BlockId) -> usize {
        self.insns.len() - self.starts[to]
    }
}
