//! Control flow graphs: programs as blocks that name each other, instead of counting instructions.
//!
//! Displacements make programs awkward to change: whatever is inserted moves everything after it. A
//! [`Cfg`] holds the same program as straight-line blocks with a named end; passes rewrite blocks and
//! a lineariser counts again afterwards. Blocks may be in any order, may be shared, and may be
//! unreachable; the graph has no cycle because classic BPF jumps only forward.
//!
//! The conversion keeps the meaning and nothing else: a program that is taken apart and put together
//! again may have its blocks in another order.

use tamis_abi::Endian;

use crate::insn::{Op, Operand, Test};
use crate::program::{Pc, Program};

/// The index of a block in its [`Cfg`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// Instructions that run one after the other, and the end of their sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Loads, stores and arithmetic; never a jump, a branch or a return.
    pub ops: Vec<Op>,
    /// The end: a return or a jump.
    pub end: End,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The program ends with this value.
    Ret(u32),
    /// The program ends with the value of A.
    RetA,
    /// Another block follows.
    Goto(BlockId),
    /// One of two blocks follows.
    Branch {
        /// The comparison of A.
        test: Test,
        /// Its right-hand side.
        operand: Operand,
        /// The block that follows if it holds.
        yes: BlockId,
        /// The block that follows if it doesn't.
        no: BlockId,
    },
}

/// A program as a graph of blocks; never empty, never cyclic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cfg {
    blocks: Vec<Block>,
    entry: BlockId,
    endian: Endian,
}

impl End {
    /// The blocks that may follow: the one of the holding test first.
    #[inline]
    pub fn successors(self) -> impl DoubleEndedIterator<Item = BlockId> {
        let (list, count) = match self {
            End::Ret(_) | End::RetA => ([BlockId(0); 2], 0),
            End::Goto(target) => ([target; 2], 1),
            End::Branch { yes, no, .. } => ([yes, no], 2),
        };
        (0..count).map(move |at| list[at])
    }
}

impl Block {
    /// Whether the block does nothing but end the program with a constant.
    pub fn is_return(&self) -> bool {
        self.ops.is_empty() && matches!(self.end, End::Ret(_))
    }
}

impl Cfg {
    /// A graph of one block that ends the program with this value, on machines of this byte order.
    pub fn returning(ret: u32, endian: Endian) -> Cfg {
        let block = Block {
            ops: Vec::new(),
            end: End::Ret(ret),
        };
        Cfg {
            blocks: vec![block],
            entry: BlockId(0),
            endian,
        }
    }

    /// The graph of a program. Code that no path reaches is kept; see [`reachable`](Cfg::reachable).
    /// Linear time.
    pub fn from_program(program: &Program) -> Cfg {
        let ops: Vec<Op> = (0..program.len()).map(|pc| program.op(Pc(pc))).collect();
        let block_of = number_blocks(&ops);
        let id = |pc: usize| BlockId(block_of[pc]);
        let mut blocks: Vec<Block> = Vec::new();
        let mut straight: Vec<Op> = Vec::new();
        for (pc, op) in ops.iter().enumerate() {
            let next = pc + 1;
            let end = match *op {
                Op::RetImm(ret) => End::Ret(ret),
                Op::RetA => End::RetA,
                Op::Jump(skip) => End::Goto(id(next + skip as usize)),
                Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                } => End::Branch {
                    test,
                    operand,
                    yes: id(next + usize::from(jt)),
                    no: id(next + usize::from(jf)),
                },
                other => {
                    straight.push(other);
                    if block_of[next] == block_of[pc] {
                        continue;
                    }
                    End::Goto(id(next))
                }
            };
            let ops = std::mem::take(&mut straight);
            blocks.push(Block { ops, end });
        }
        Cfg {
            blocks,
            entry: BlockId(0),
            endian: program.endian(),
        }
    }

    /// Adds a block. Its successors must exist already, so a graph that is built with this alone has
    /// no cycle.
    ///
    /// # Panics
    /// If a successor is not a block of this graph.
    pub fn push(&mut self, block: Block) -> BlockId {
        assert!(
            block.end.successors().all(|next| next.index() < self.len()),
            "a block is added after its successors"
        );
        self.blocks.push(block);
        BlockId(self.blocks.len() as u32 - 1)
    }

    /// The byte order of the machines that the program is for.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// The first block of the program.
    pub fn entry(&self) -> BlockId {
        self.entry
    }

    /// Makes the program begin with another block.
    ///
    /// # Panics
    /// If it is not a block of this graph.
    pub fn set_entry(&mut self, entry: BlockId) {
        assert!(entry.index() < self.len(), "the entry is a block");
        self.entry = entry;
    }

    /// How many blocks there are, reachable or not; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a graph is never empty")]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// A block.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// A block, to be changed. An end must not be made to lead back to the block itself or to one
    /// from which the block can be reached.
    pub fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.index()]
    }

    /// All blocks with their ids, reachable or not.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        (0..).map(BlockId).zip(&self.blocks)
    }

    /// For each block, whether a path from the entry leads to it. Linear time.
    pub fn reachable(&self) -> Vec<bool> {
        let mut seen = vec![false; self.len()];
        let mut open = vec![self.entry];
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut seen[id.index()], true) {
                open.extend(self.block(id).end.successors());
            }
        }
        seen
    }

    /// Removes the blocks that no path from the entry reaches; the others keep their order and get new
    /// ids, which come back by old one. Linear time.
    pub fn drop_unreachable(&mut self) -> Vec<Option<BlockId>> {
        let mut kept = 0;
        let reachable = self.reachable().into_iter();
        let new_ids: Vec<Option<BlockId>> = reachable
            .map(|reachable| {
                let id = reachable.then_some(BlockId(kept));
                kept += u32::from(reachable);
                id
            })
            .collect();
        let mut ids = new_ids.iter();
        self.blocks
            .retain(|_| ids.next().is_some_and(Option::is_some));
        let rename = |id: &mut BlockId| *id = new_ids[id.index()].unwrap_or(*id);
        for block in &mut self.blocks {
            match &mut block.end {
                End::Ret(_) | End::RetA => {}
                End::Goto(next) => rename(next),
                End::Branch { yes, no, .. } => {
                    rename(yes);
                    rename(no);
                }
            }
        }
        rename(&mut self.entry);
        new_ids
    }

    /// For each block, the reachable blocks that lead to it, ascending; a branch whose two sides are
    /// equal counts twice. Linear time.
    pub fn predecessors(&self) -> Vec<Vec<BlockId>> {
        let reachable = self.reachable();
        let mut predecessors = vec![Vec::new(); self.len()];
        for (id, block) in self.blocks() {
            if reachable[id.index()] {
                for next in block.end.successors() {
                    predecessors[next.index()].push(id);
                }
            }
        }
        predecessors
    }

    /// The reachable blocks, each after all that follow it. The blocks after a branch come in the
    /// order in which `visit` names them: the last is next to the branch unless it was there before.
    /// Linear time.
    pub fn postorder_by(
        &self,
        mut visit: impl FnMut(BlockId) -> [Option<BlockId>; 2],
    ) -> Vec<BlockId> {
        enum Step {
            Enter(BlockId),
            Leave(BlockId),
        }
        let mut seen = vec![false; self.len()];
        let mut order = Vec::with_capacity(self.len());
        let mut steps = vec![Step::Enter(self.entry)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Leave(id) => order.push(id),
                Step::Enter(id) => {
                    if !std::mem::replace(&mut seen[id.index()], true) {
                        steps.push(Step::Leave(id));
                        let [first, second] = visit(id);
                        for next in [second, first] {
                            if let Some(next) = next
                                && !seen[next.index()]
                            {
                                steps.push(Step::Enter(next));
                            }
                        }
                    }
                }
            }
        }
        order
    }

    /// The reachable blocks, each after all that follow it. Linear time.
    pub fn postorder(&self) -> Vec<BlockId> {
        self.postorder_by(|id| match self.block(id).end {
            End::Ret(_) | End::RetA => [None; 2],
            End::Goto(next) => [Some(next), None],
            End::Branch { yes, no, .. } => [Some(yes), Some(no)],
        })
    }

    /// The reachable blocks, each before all that follow it. Linear time.
    pub fn reverse_postorder(&self) -> Vec<BlockId> {
        let mut order = self.postorder();
        order.reverse();
        order
    }
}

impl BlockId {
    /// The id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// For each instruction the number of its block; one entry more for the end of the program.
fn number_blocks(ops: &[Op]) -> Vec<u32> {
    let mut starts = vec![false; ops.len() + 1];
    for (pc, op) in ops.iter().enumerate() {
        let next = pc + 1;
        match *op {
            Op::RetImm(_) | Op::RetA => starts[next] = true,
            Op::Jump(skip) => {
                starts[next] = true;
                starts[next + skip as usize] = true;
            }
            Op::Branch { jt, jf, .. } => {
                starts[next] = true;
                starts[next + usize::from(jt)] = true;
                starts[next + usize::from(jf)] = true;
            }
            _ => {}
        }
    }
    // The first instruction starts block 0 whether or not something jumps to it.
    starts[0] = false;
    let mut number = 0;
    starts
        .into_iter()
        .map(|starts| {
            number += u32::from(starts);
            number
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(ops: &[Op]) -> Program {
        Program::from_ops(ops, Endian::Little).unwrap()
    }
    #[test]
    fn blocks_begin_at_targets_and_after_ends() {
        let cfg = Cfg::from_program(&program(&[
            Op::LoadData(0),
            Op::branch(Test::Eq, 7, 1, 0),
            Op::LoadData(16),
            Op::Alu(crate::AluOp::And, Operand::K(1)),
            Op::RetA,
        ]));
        // The jump into the middle of the straight line splits it.
        let lengths: Vec<usize> = cfg.blocks().map(|(_, block)| block.ops.len()).collect();
        assert_eq!(lengths, [1, 1, 1]);
        assert_eq!(cfg.block(BlockId(1)).end, End::Goto(BlockId(2)));
    }

    #[test]
    fn unreachable_code_is_kept_and_known() {
        let cfg = Cfg::from_program(&program(&[Op::Jump(1), Op::RetImm(1), Op::RetImm(2)]));
        assert_eq!(cfg.reachable(), [true, false, true]);
        assert_eq!(cfg.predecessors()[2], [BlockId(0)]);
        assert_eq!(cfg.reverse_postorder(), [BlockId(0), BlockId(2)]);
    }

    #[test]
    fn reverse_postorder_puts_every_block_before_its_successors() {
        let cfg = Cfg::from_program(&program(&[
            Op::LoadData(0),
            Op::branch(Test::Gt, 7, 2, 0),
            Op::branch(Test::Eq, 3, 2, 0),
            Op::Jump(1),
            Op::branch(Test::Eq, 9, 0, 1),
            Op::RetImm(1),
            Op::RetImm(2),
        ]));
        let order = cfg.reverse_postorder();
        let place = |id: BlockId| order.iter().position(|other| *other == id);
        for id in &order {
            for next in cfg.block(*id).end.successors() {
                assert!(place(*id) < place(next), "{id:?} before {next:?}");
            }
        }
        assert_eq!(order.len(), cfg.len());
    }
}
