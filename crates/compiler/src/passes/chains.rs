//! Chains of equality tests of one value, for whoever knows the value.
//!
//! A list of values with an answer each is a chain of blocks that only ask `jeq`: each leads to the next if its
//! constant is not the value. Who comes with a value that is known would pass them one by one; here the block
//! that holds it, or the end of the chain, is looked up.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::{Operand, Test};

/// The chains of a graph, which grow from their ends to their beginnings.
pub(super) struct Chains {
    /// By block, if it is in a chain.
    links: Vec<Option<Link>>,
    /// By chain: where it leads if no constant is the value.
    ends: Vec<BlockId>,
    /// By chain: its first block so far.
    heads: Vec<BlockId>,
    /// By chain and constant, but for the blocks that were added since something was looked up.
    known: FxHashMap<(u32, u32), Asking>,
    /// Those, in order, with chain and constant.
    added: Vec<(BlockId, u32, u32)>,
}

/// The blocks of a chain that ask for one constant.
struct Asking {
    /// The one nearest to the end.
    last: BlockId,
    /// Those before it, each before the ones that come earlier in this list; mostly none.
    before: Vec<BlockId>,
}

#[derive(Clone, Copy)]
struct Link {
    chain: u32,
    /// How many blocks of the chain stand behind this one.
    behind: u32,
}

/// What a block of a chain asks for and where it leads: if it is that, and if it isn't.
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
    /// No chain yet.
    pub(super) fn new(graph: &Cfg) -> Chains {
        Chains {
            links: vec![None; graph.len()],
            ends: Vec::new(),
            heads: Vec::new(),
            known: FxHashMap::default(),
            added: Vec::new(),
        }
    }

    /// Adds a block, of which nothing changes any more, and nothing behind it.
    pub(super) fn add(&mut self, graph: &Cfg, id: BlockId) {
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

    /// Enters what was added into the table: mostly nobody knows a value, and nothing is looked up.
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
    pub(super) fn has(&self, id: BlockId) -> bool {
        self.links[id.index()].is_some()
    }

    /// Where a block of a chain leads if the value is this one; `None` if it is in no chain. Logarithmic in how
    /// often the chain asks for the value, and linear in the blocks that were added since the last time.
    pub(super) fn pass(&mut self, graph: &Cfg, id: BlockId, value: u32) -> Option<BlockId> {
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
