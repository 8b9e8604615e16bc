//! Join two blocks that always run one after the other.
//!
//! # Effect
//! A block with only one predecessor, which jumps to it unconditionally, is appended to that predecessor.
//!
//! # Before/After
//! ```text
//! a: ld [16]              a: ld [16]
//!    ja b                    jeq #1, c, d
//! b: jeq #1, c, d    ->
//! ```
//!
//! # Why it is sound
//! The same instructions run in the same order.
//!
//! # Limits
//! It never copies a block with other predecessors.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! Every optimiser.

use tamis_bpf::cfg::{Cfg, End};

use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "join-blocks",
    summary: "append blocks to the only block that leads to them",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let order = cx.order(graph);
    let mut entered = vec![0_u32; graph.len()];
    for id in order.iter() {
        for next in graph.block(*id).end.successors() {
            entered[next.index()] += 1;
        }
    }
    let mut changed = false;
    // From the end, so that each block of a chain is moved once and not once per pair.
    for id in order.iter().rev().copied() {
        let End::Goto(next) = graph.block(id).end else {
            continue;
        };
        if entered[next.index()] == 1 && cx.apply(0, || format!("block {} to {}", next.0, id.0)) {
            let end = graph.block(next).end;
            let appended = std::mem::take(&mut graph.block_mut(next).ops);
            let block = graph.block_mut(id);
            block.ops.extend(appended);
            block.end = end;
            changed = true;
        }
    }
    Changed::when(changed)
}
