//! Linearisation: from blocks to a list of instructions.
//!
//! Blocks are placed from the last to the first. Every jump leads forward, so its target is already placed and the
//! distance is known exactly, in one pass and linear time. Conditional jumps reach 255 instructions. For a target
//! that is farther away, a landing is placed directly behind the jump: a copy of the return if the target is one,
//! else a `ja`. Later jumps to the same target use the nearest landing.
//!
//! The order is depth first. The smaller side of a branch is placed next to it, so that few other jumps cross the
//! larger side, whose jump is the longer one.

use tamis_abi::Endian;
use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::{Insn, InvalidProgram, Op, Operand, Program, Template, Test};

/// The program of the graph's reachable blocks. Linear time.
///
/// # Errors
/// The first reason why the program is invalid; it may be too long.
pub(crate) fn linearise(graph: &Cfg) -> Result<Program, InvalidProgram> {
    let ops = place(graph).ops.into_iter();
    Program::new(ops.map(Insn::from).collect(), graph.endian())
}

/// Instructions, and the place of each block among them.
pub(crate) struct Placed {
    pub(crate) ops: Vec<Op>,
    endian: Endian,
    /// For each block the index of its first instruction, counted from the last.
    home: Vec<Option<usize>>,
}

impl Placed {
    /// The program, with its comparisons with run-time variables marked.
    ///
    /// # Errors
    /// As [`linearise`].
    pub(crate) fn template(&self) -> Result<Template, InvalidProgram> {
        Template::new(&self.ops, self.endian)
    }

    /// The index of the first instruction of a block, if it is reachable.
    pub(crate) fn first_insn(&self, id: BlockId) -> Option<usize> {
        self.home[id.index()].map(|home| self.ops.len() - 1 - home)
    }
}

/// The blocks in the default order.
pub(crate) fn place(graph: &Cfg) -> Placed {
    let order = order(graph);
    let continues = continuations(graph, &order);
    in_order(graph, &with_continuations(&order, &continues))
}

/// The blocks in this order, which is from the last to the first: successors come before their predecessors.
pub(crate) fn in_order(graph: &Cfg, order: &[BlockId]) -> Placed {
    let mut line = Line {
        graph,
        reversed: Vec::with_capacity(2 * graph.len()),
        home: vec![None; graph.len()],
        landing: vec![None; graph.len()],
    };
    for id in order {
        line.place(*id);
    }
    line.reversed.reverse();
    Placed {
        ops: line.reversed,
        endian: graph.endian(),
        home: line.home,
    }
}

/// The order, changed so that each block directly follows, in the program, the block that falls into it.
fn with_continuations(order: &[BlockId], continues: &[Option<BlockId>]) -> Vec<BlockId> {
    let mut is_placed = vec![false; continues.len()];
    let mut placed = Vec::with_capacity(order.len());
    for id in order {
        let mut next = Some(*id);
        while let Some(id) = next.filter(|id| !is_placed[id.index()]) {
            is_placed[id.index()] = true;
            placed.push(id);
            next = continues[id.index()];
        }
    }
    placed
}

/// The number of instructions in each block and below it; shared instructions count once per path.
pub(crate) fn sizes(graph: &Cfg) -> Vec<u64> {
    let mut size = vec![0_u64; graph.len()];
    for id in graph.postorder() {
        let block = graph.block(id);
        let below: u64 = block.end.successors().map(|next| size[next.index()]).sum();
        size[id.index()] = (block.ops.len() as u64 + 1)
            .saturating_add(below)
            .min(1 << 60);
    }
    size
}

/// Depth first, successors before predecessors, the smaller side of a branch last.
fn order(graph: &Cfg) -> Vec<BlockId> {
    let size = sizes(graph);
    graph.postorder_by(|id| match graph.block(id).end {
        End::Branch { yes, no, .. } if size[yes.index()] < size[no.index()] => {
            [Some(no), Some(yes)]
        }
        End::Branch { yes, no, .. } => [Some(yes), Some(no)],
        End::Goto(next) => [Some(next), None],
        End::Ret(_) | End::RetA => [None, None],
    })
}

/// For each block the predecessor that falls into it: the first one that ends with an unconditional jump to it.
/// Returns have none, because they are copied.
fn continuations(graph: &Cfg, order: &[BlockId]) -> Vec<Option<BlockId>> {
    let mut continues = vec![None; graph.len()];
    for id in order {
        if let End::Goto(next) = graph.block(*id).end
            && !graph.block(next).is_return()
        {
            continues[next.index()].get_or_insert(*id);
        }
    }
    continues
}

struct Line<'a> {
    graph: &'a Cfg,
    /// The instructions placed so far, the last of the program first.
    reversed: Vec<Op>,
    /// For each block the index of its first instruction.
    home: Vec<Option<usize>>,
    /// For each block the index of the nearest instruction that a jump to it can target.
    landing: Vec<Option<usize>>,
}

impl Line<'_> {
    fn place(&mut self, id: BlockId) {
        let block = self.graph.block(id);
        match block.end {
            End::Ret(ret) => self.push(Op::RetImm(ret)),
            End::RetA => self.push(Op::RetA),
            End::Goto(next) => self.place_goto(next),
            End::Branch {
                test,
                operand,
                yes,
                no,
            } => self.place_branch(test, operand, yes, no),
        }
        for op in block.ops.iter().rev() {
            self.push(*op);
        }
        let first = Some(self.reversed.len() - 1);
        self.home[id.index()] = first;
        self.landing[id.index()] = first;
    }

    fn push(&mut self, op: Op) {
        self.reversed.push(op);
    }

    /// The number of instructions that a jump placed now would skip.
    fn distance(&self, target: BlockId) -> usize {
        let landing = self.landing[target.index()].expect("successors are placed first");
        self.reversed.len() - 1 - landing
    }

    fn place_goto(&mut self, next: BlockId) {
        if self.distance(next) > 0 {
            self.place_landing(next);
        }
    }

    /// Places a landing for the target: a copy of its return, or a jump to it.
    fn place_landing(&mut self, target: BlockId) {
        let block = self.graph.block(target);
        let op = match block.end {
            End::Ret(ret) if block.ops.is_empty() => Op::RetImm(ret),
            End::RetA if block.ops.is_empty() => Op::RetA,
            _ => {
                // An unconditional jump reaches every distance, so it leads to the block itself and not to another
                // landing.
                let home = self.home[target.index()].expect("successors are placed first");
                Op::Jump((self.reversed.len() - 1 - home) as u32)
            }
        };
        self.push(op);
        self.landing[target.index()] = Some(self.reversed.len() - 1);
    }

    fn place_branch(&mut self, test: Test, operand: Operand, yes: BlockId, no: BlockId) {
        loop {
            let (jt, jf) = (self.distance(yes), self.distance(no));
            if let (Ok(jt), Ok(jf)) = (u8::try_from(jt), u8::try_from(jf)) {
                return self.push(Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                });
            }
            self.place_landing(if jt > jf { yes } else { no });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::SeccompData;
    use tamis_bpf::cfg::Block;
    use tamis_bpf::interp;

    /// A chain of `count` comparisons with the number; their common target `hit` is far away from most of them.
    fn chain(count: u32, hit: Block, miss: Block) -> Cfg {
        let mut graph = Cfg::returning(0, Endian::Little);
        let hit = graph.push(hit);
        let mut next = graph.push(miss);
        for k in (0..count).rev() {
            let ops = if k == 0 {
                vec![Op::LoadData(0)]
            } else {
                Vec::new()
            };
            next = graph.push(Block {
                ops,
                end: End::Branch {
                    test: Test::Eq,
                    operand: Operand::K(k * 3),
                    yes: hit,
                    no: next,
                },
            });
        }
        graph.set_entry(next);
        graph
    }

    fn run(program: &Program, nr: u32) -> interp::Execution {
        let data = SeccompData {
            nr,
            ..SeccompData::default()
        };
        interp::run(program, &data)
    }

    fn ret(ret: u32) -> Block {
        Block {
            ops: Vec::new(),
            end: End::Ret(ret),
        }
    }

    #[test]
    fn far_returns_are_copied_and_cost_no_step() {
        let count = 3000;
        let program = linearise(&chain(count, ret(1), ret(2))).unwrap();
        for k in 0..count {
            assert_eq!(
                (run(&program, k * 3).ret, run(&program, k * 3 + 1).ret),
                (1, 2)
            );
            assert_eq!(run(&program, k * 3).steps, k + 3);
        }
        // One copy per 255 instructions, the load and the last return.
        let most = count as usize + count as usize / 250 + 3;
        assert!(program.len() <= most, "{}", program.len());
    }

    #[test]
    fn far_blocks_are_reached_by_one_jump() {
        let count = 3000;
        let hit = Block {
            ops: vec![Op::LoadData(4)],
            end: End::RetA,
        };
        let program = linearise(&chain(count, hit, ret(2))).unwrap();
        for k in 0..count {
            assert_eq!(
                (run(&program, k * 3).ret, run(&program, k * 3 + 1).ret),
                (0, 2)
            );
            assert!(run(&program, k * 3).steps <= k + 5);
        }
    }

    #[test]
    fn taking_apart_and_putting_together_keeps_length_and_meaning() {
        let graph = chain(700, ret(1), ret(2));
        let program = linearise(&graph).unwrap();
        let again = linearise(&Cfg::from_program(&program)).unwrap();
        assert_eq!(again.len(), program.len());
        for nr in 0..2100 {
            assert_eq!(run(&again, nr).ret, run(&program, nr).ret);
        }
    }
}
