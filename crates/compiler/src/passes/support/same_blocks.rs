//! A set of blocks by content, for passes that look for equal blocks; it needs no copies of blocks.

use std::hash::{Hash, Hasher};

use tamis_abi::hash::WordHasher;
use tamis_bpf::Op;
use tamis_bpf::cfg::{Block, BlockId, Cfg, End};

use crate::hash::Places;

/// A set of different blocks. They remain in the graph and must not change, except to a content that is never looked
/// up.
pub(in crate::passes) struct SameBlocks {
    known: Places,
}

impl SameBlocks {
    /// An empty set, for the blocks of a graph.
    pub(in crate::passes) fn new(graph: &Cfg) -> SameBlocks {
        SameBlocks {
            known: Places::with_room(graph.len()),
        }
    }

    /// The block with these instructions and this end.
    pub(in crate::passes) fn find(&self, graph: &Cfg, ops: &[Op], end: End) -> Option<BlockId> {
        let eq = |place: usize| is_equal(graph, place, ops, end);
        let place = self.known.find(hash(ops, end), eq);
        place.map(|place| BlockId(place as u32))
    }

    /// The block that is equal to this one; adds this one if there is none.
    pub(in crate::passes) fn find_or_add(&mut self, graph: &Cfg, id: BlockId) -> Option<BlockId> {
        let Block { ops, end } = graph.block(id);
        let eq = |place: usize| is_equal(graph, place, ops, *end);
        let place = self.known.find_or_insert(hash(ops, *end), id.index(), eq);
        place.map(|place| BlockId(place as u32))
    }
}

fn is_equal(graph: &Cfg, place: usize, ops: &[Op], end: End) -> bool {
    let block = graph.block(BlockId(place as u32));
    block.end == end && block.ops == ops
}

fn hash(ops: &[Op], end: End) -> u64 {
    let mut hasher = WordHasher::default();
    end.hash(&mut hasher);
    for op in ops {
        op.hash(&mut hasher);
    }
    hasher.finish()
}
