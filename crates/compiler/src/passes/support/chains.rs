//! Chains of equality tests of one value, for passes that know the value.
//!
//! A list of values with an action each is a chain of blocks that contain only `jeq`: each leads to the next if its
//! constant is not the value. Instead of following the blocks of a chain one by one, a lookup with a known value
//! returns the block with that constant, or the end of the chain.

use std::collections::hash_map::Entry;

use tamis_abi::hash::WordHashMap;
use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::{Operand, Test};

/// The chains of a graph, which are built from their ends to their beginnings.
pub(in crate::passes) struct Chains {
    /// By block, its place if it is in a chain.
    links: Vec<Option<Link>>,
    /// By chain, the target if no constant is the value.
    ends: Vec<BlockId>,
    /// By chain, its first block so far.
    heads: Vec<BlockId>,
    /// By chain and constant, the blocks that were added before the last lookup.
    known: WordHashMap<(u32, u32), Asking>,
    /// The blocks added since, in order, with chain and constant.
    added: Vec<(BlockId, u32, u32)>,
}

/// The blocks of a chain that test one constant.
struct Asking {
    /// The one nearest to the end of the chain.
    last: BlockId,
    /// The other blocks, from the nearest to the end to the farthest; usually none.
    before: Vec<BlockId>,
}

#[derive(Clone, Copy)]
struct Link {
    chain: u32,
    /// The number of blocks of the chain behind this one.
    behind: u32,
}

/// The constant that a block of a chain tests, and its targets if the value equals it and if not.
fn asked(graph: &Cfg, id: BlockId) -> Option<(u32, BlockId, BlockId)> {
    let block = graph.block(id);
    match block.end {
        End::Branch {
            test: Test::Eq,
            operand: Operand::K(k),
            yes,
            no,
        } if block.ops.is_empty() => Some((k, yes, no)),
        _ => None,
    }
}

impl Chains {
    /// A store without chains.
    pub(in crate::passes) fn new(graph: &Cfg) -> Chains {
        Chains {
            links: vec![None; graph.len()],
            ends: Vec::new(),
            heads: Vec::new(),
            known: WordHashMap::default(),
            added: Vec::new(),
        }
    }

    /// Adds a block; the block and all blocks behind it must not change any more.
    pub(in crate::passes) fn add(&mut self, graph: &Cfg, id: BlockId) {
        let Some((k, _, no)) = asked(graph, id) else {
            return;
        };
        let next = self.links[no.index()];
        let next = next.filter(|link| self.heads[link.chain as usize] == no);
        let (chain, behind) = match next {
            Some(link) => (link.chain, link.behind + 1),
            None => {
                self.ends.push(no);
                self.heads.push(id);
                (self.ends.len() as u32 - 1, 0)
            }
        };
        self.heads[chain as usize] = id;
        self.added.push((id, chain, k));
        self.links[id.index()] = Some(Link { chain, behind });
    }

    /// Adds the new blocks to the table. This is delayed until a lookup, because most chains have none.
    fn enter(&mut self) {
        for (id, chain, k) in self.added.drain(..) {
            match self.known.entry((chain, k)) {
                Entry::Occupied(known) => known.into_mut().before.push(id),
                Entry::Vacant(unknown) => {
                    unknown.insert(Asking {
                        last: id,
                        before: Vec::new(),
                    });
                }
            }
        }
    }

    /// Whether a block is in a chain.
    pub(in crate::passes) fn has(&self, id: BlockId) -> bool {
        self.links[id.index()].is_some()
    }

    /// The target of a block of a chain for this value; `None` if it is in no chain. Logarithmic in the number of
    /// tests of the value in the chain, and linear in the blocks added since the last lookup.
    pub(in crate::passes) fn pass(
        &mut self,
        graph: &Cfg,
        id: BlockId,
        value: u32,
    ) -> Option<BlockId> {
        let link = self.links[id.index()]?;
        self.enter();
        let is_there = |at: BlockId| {
            let there = self.links[at.index()];
            there.is_some_and(|there| there.behind <= link.behind)
        };
        let found = self.known.get(&(link.chain, value)).and_then(|asking| {
            let count = asking.before.partition_point(|at| is_there(*at));
            let nearest = asking.before[..count].last().copied();
            nearest.or_else(|| Some(asking.last).filter(|at| is_there(*at)))
        });
        match found {
            Some(at) => asked(graph, at).map(|(_, yes, _)| yes),
            None => Some(self.ends[link.chain as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;
    use tamis_bpf::cfg::Block;

    use super::*;

    #[test]
    fn a_value_is_found_from_wherever_the_chain_is_entered() {
        let mut graph = Cfg::returning(0, Endian::Little);
        let ret = |graph: &mut Cfg, ret| {
            graph.push(Block {
                ops: Vec::new(),
                end: End::Ret(ret),
            })
        };
        let end = ret(&mut graph, 0);
        let mut no = end;
        let mut blocks = Vec::new();
        for (k, answer) in [(3, 1), (2, 2), (3, 3), (1, 4), (3, 5), (3, 6)] {
            let yes = ret(&mut graph, answer);
            no = graph.push(Block {
                ops: Vec::new(),
                end: End::Branch {
                    test: Test::Eq,
                    operand: Operand::K(k),
                    yes,
                    no,
                },
            });
            blocks.push(no);
        }
        let mut chains = Chains::new(&graph);
        for id in &blocks {
            chains.add(&graph, *id);
        }
        let mut answer = |block: usize, value| {
            let to = chains.pass(&graph, blocks[block], value)?;
            Some(graph.block(to).end)
        };
        assert_eq!(answer(3, 3), Some(End::Ret(3)));
        assert_eq!(answer(1, 3), Some(End::Ret(1)));
        assert_eq!(answer(3, 1), Some(End::Ret(4)));
        assert_eq!(answer(2, 1), Some(End::Ret(0)));
        assert_eq!(answer(4, 3), Some(End::Ret(5)));
        assert_eq!(answer(5, 3), Some(End::Ret(6)));
        assert_eq!(answer(2, 3), Some(End::Ret(3)));
        assert_eq!(answer(0, 9), Some(End::Ret(0)));
        assert_eq!(chains.pass(&graph, end, 9), None);
    }
}
