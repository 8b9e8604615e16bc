//! Blocks by what they do, for passes that look for equal ones: found without a copy of any.

use std::hash::{Hash, Hasher};

use tamis_bpf::Op;
use tamis_bpf::cfg::{BlockId, Cfg, End};

use crate::hash::{FastHasher, Places};

/// Blocks of which no two are equal. They stay in the graph and must not change, or to something that nothing is
/// compared with.
#[derive(Default)]
pub(super) struct SameBlocks {
    known: Places,
}

impl SameBlocks {
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
            self.known.insert(hash, id.index());
        }
        known
    }

    fn find_hashed(&self, graph: &Cfg, hash: u64, ops: &[Op], end: End) -> Option<BlockId> {
        let place = self.known.find(hash, |place| {
            let block = graph.block(BlockId(place as u32));
            block.end == end && block.ops == ops
        });
        place.map(|place| BlockId(place as u32))
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
