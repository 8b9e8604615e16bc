//! Let a block fall into another one with the same end.
//!
//! # Effect
//! If a block ends with all instructions and the end of another block, these are removed, and the block continues
//! with the other.
//!
//! # Before/After
//! ```text
//! a: ld [16]              a: ld [16]
//!    jeq #1, c, d            ja b
//! b: jeq #1, c, d    ->   b: jeq #1, c, d
//! ```
//!
//! # Why it is sound
//! The same instructions run in the same order.
//!
//! # Limits
//! It adds no jumps: only one block can directly precede another, so a block with an unconditional predecessor gets
//! no second one. It does not consider returns, which are shared anyway, and it makes no new blocks of common tails.
//!
//! # Cost
//! Linear: only the few longest tails of each block are looked up.
//!
//! # Prior art
//! Cross-jumping, tail merging.

use tamis_bpf::cfg::{Cfg, End};

use crate::passes::support::same_blocks::SameBlocks;
use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "merge-tails",
    summary: "let blocks fall into a block that does what they do last",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

/// The most instructions of a block before the tail.
const MAX_OPS: usize = 8;

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let order = cx.order(graph);
    let mut is_entered_by_jump = vec![false; graph.len()];
    let mut wholes = SameBlocks::new(graph);
    for id in order.iter() {
        let block = graph.block(*id);
        if let End::Goto(next) = block.end {
            is_entered_by_jump[next.index()] = true;
        } else if matches!(block.end, End::Branch { .. }) {
            wholes.find_or_add(graph, *id);
        }
    }
    let mut changed = false;
    for id in order.iter().copied() {
        let block = graph.block(id);
        if !matches!(block.end, End::Branch { .. }) {
            continue;
        }
        let found = (1..=block.ops.len().min(MAX_OPS)).find_map(|at| {
            let other = wholes.find(graph, &block.ops[at..], block.end)?;
            (!is_entered_by_jump[other.index()]).then_some((at, other))
        });
        let Some((at, other)) = found else {
            continue;
        };
        let saved = block.ops.len() - at + 1;
        if cx.apply(saved, || format!("block {} into {}", id.0, other.0)) {
            let block = graph.block_mut(id);
            block.ops.truncate(at);
            block.end = End::Goto(other);
            is_entered_by_jump[other.index()] = true;
            changed = true;
        }
    }
    Changed::when(changed)
}
