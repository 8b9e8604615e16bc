//! Blocks by what they do, for passes that look for equal ones: found without a copy of any.

use std::hash::{Hash, Hasher};

use tamis_bpf::Op;
use tamis_bpf::cfg::{BlockId, Cfg, End};

use crate::hash::{FastHasher, FastMap};

/// Blocks of which no two are equal. They stay in the graph and must not change, or to something that nothing is
/// compared with.
pub(super) struct SameBlocks {
    /// By hash, the block that was added last.
    last: FastMap<u64, BlockId>,
    /// By block, the one with the same hash that was added before.
    before: Vec<Option<BlockId>>,
}

impl SameBlocks {
    /// No blocks of this graph yet.
    pub(super) fn new(graph: &Cfg) -> SameBlocks {
        let mut last = FastMap::default();
        last.reserve(graph.len());
        SameBlocks {
            last,
            before: vec![None; graph.len()],
        }
    }

    /// The block with these instructions and this end.
    pub(super) fn find(&self, graph: &Cfg, ops: &[Op], end: End) -> Option<BlockId> {
        self.find_hashed(graph, hash(ops, end), ops, end)
    }

    /// The block that is equal to this one; adds this one if there is none.
    pub(super) fn find_or_add(&mut self, graph: &Cfg, id: BlockId) -> Option<BlockId> {
        let block = graph.block(id);
        let hash = hash(&block.ops, block.end);
        let known = self.find_hashed(graph, hash, &block.ops, block.end);
        if known.is_none() {
            self.before[id.index()] = self.last.insert(hash, id);
        }
        known
    }

    fn find_hashed(&self, graph: &Cfg, hash: u64, ops: &[Op], end: End) -> Option<BlockId> {
        let mut next = self.last.get(&hash).copied();
        while let Some(id) = next {
            let block = graph.block(id);
            if block.end == end && block.ops == ops {
                return Some(id);
            }
            next = self.before[id.index()];
        }
        None
    }
}

fn hash(ops: &[Op], end: End) -> u64 {
    let mut hasher = FastHasher::default();
    end.hash(&mut hasher);
    for op in ops {
        op.hash(&mut hasher);
    }
    hasher.finish()
}
