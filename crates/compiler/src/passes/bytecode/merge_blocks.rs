//! Merge equal blocks.
//!
//! # Effect
//! Blocks with the same instructions and the same end become one. Blocks are compared after their successors, so
//! equal tails merge from the end upwards; returns are the simplest case.
//!
//! # Before/After
//! ```text
//! a: ret allow            a: ret allow
//! b: ret allow    ->      (jumps to b go to a)
//! ```
//!
//! # Why it is sound
//! The effect of a block depends only on registers, memory and input, not on its position.
//!
//! # Limits
//! It does not split blocks to merge common ends of blocks that begin differently.
//!
//! # Cost
//! Linear, with hashing.
//!
//! # Prior art
//! libpcap's `intern_blocks`; minimisation of acyclic automata.

use tamis_bpf::cfg::{BlockId, Cfg, End};

use crate::passes::support::same_blocks::SameBlocks;
use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "merge-blocks",
    summary: "make blocks that do the same one block",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let order = cx.order(graph);
    let mut first = SameBlocks::new(graph);
    let mut stands_for: Vec<BlockId> = (0..graph.len() as u32).map(BlockId).collect();
    let mut changed = false;
    for id in order.iter().rev().copied() {
        let end = &mut graph.block_mut(id).end;
        match end {
            End::Goto(next) => *next = stands_for[next.index()],
            End::Branch { yes, no, .. } => {
                *yes = stands_for[yes.index()];
                *no = stands_for[no.index()];
            }
            End::Ret(_) | End::RetA => {}
        }
        if let Some(known) = first.find_or_add(graph, id) {
            let saved = graph.block(id).ops.len() + 1;
            if cx.apply(saved, || format!("block {} into {}", id.0, known.0)) {
                stands_for[id.index()] = known;
                changed = true;
            }
        }
    }
    graph.set_entry(stands_for[graph.entry().index()]);
    Changed::when(changed)
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_bytecode;

    #[test]
    fn returns_merge() {
        check_bytecode(
            &INFO,
            "ld [nr]\n\
             jeq #7, a, b\n\
             a: ret #allow\n\
             b: jeq #8, c, d\n\
             c: ret #allow\n\
             d: ret #errno(1)",
            "ld [nr]\n\
             jeq #7, a\n\
             jeq #8, a\n\
             ret #errno(1)\n\
             a: ret #allow",
        );
    }

    #[test]
    fn tails_merge_from_the_end_upwards() {
        check_bytecode(
            &INFO,
            "ld [nr]\n\
             jeq #7, a, b\n\
             a: ld [16]\n\
             jeq #1, yes1, no1\n\
             yes1: ret #allow\n\
             no1: ret #errno(1)\n\
             b: ld [16]\n\
             jeq #1, yes2, no2\n\
             yes2: ret #allow\n\
             no2: ret #errno(1)",
            "ld [nr]\n\
             jeq #7, tail, tail\n\
             tail: ld [16]\n\
             jeq #1, yes\n\
             ret #errno(1)\n\
             yes: ret #allow",
        );
    }
}
