//! Copies of short blocks that frequent calls reach by a jump.
//!
//! A conditional jump reaches 255 instructions. If a shared block is farther away, the branch needs a `ja`, which
//! costs one step per call that takes it. A copy of a short block adds little length: the edge of a frequent call
//! gets a copy that can be placed directly behind the branch.
//!
//! ```text
//!         jset #0xffffff7e, l57           jset #0xffffff7e, l57
//!         ja   l312                       ld   [28]
//!   …                              →      jeq  #0, l232, l57
//!   l312: ld   [28]                  …
//!         jeq  #0, l232, l57
//! ```
//!
//! The caller orders the blocks again and measures whether the copy pays, since the copy may need jumps of its own.
//! Linear in the executed instructions of the calls.

use std::collections::BTreeSet;

use crate::meter::Workload;
use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::{Op, Pc, Program, interp};

use crate::linearise::Placed;

/// The longest copied block, in instructions before its end.
const MAX_OPS: usize = 2;

/// An edge from one block to another.
type Edge = (BlockId, BlockId);

/// The edges to short blocks that calls running the program take through a `ja`, ascending.
pub(crate) fn edges(
    graph: &Cfg,
    placed: &Placed,
    program: &Program,
    calls: &Workload,
    has_bitmap: bool,
) -> Vec<Edge> {
    if !program.ops().any(|op| matches!(op, Op::Jump(_))) {
        return Vec::new();
    }
    let mut block_at = vec![None; program.len()];
    for (id, _) in graph.blocks() {
        if let Some(first) = placed.first_insn(id) {
            block_at[first] = Some(id);
        }
    }
    let mut edges = BTreeSet::new();
    let alone = std::slice::from_ref(program);
    for sample in calls.samples() {
        if has_bitmap && sample.is_cached(alone) {
            continue;
        }
        let mut from = graph.entry();
        interp::run_traced(program, &sample.data, &mut |pc| {
            from = block_at[pc.0].unwrap_or(from);
            let Op::Jump(skip) = program.op(Pc(pc.0)) else {
                return;
            };
            let lands = Some(pc.0 + 1 + skip as usize);
            let mut next = graph.block(from).end.successors();
            if let Some(to) = next.find(|to| placed.first_insn(*to) == lands) {
                edges.insert((from, to));
            }
        });
    }
    edges.retain(|(_, to)| {
        let block = graph.block(*to);
        block.ops.len() <= MAX_OPS && !matches!(block.end, End::Goto(_))
    });
    edges.into_iter().collect()
}

/// Makes a copy of the target block for each of these edges.
pub(crate) fn copy(graph: &mut Cfg, edges: &[Edge]) {
    for (from, to) in edges {
        let own = graph.push(graph.block(*to).clone());
        let redirect = |id: &mut BlockId| {
            if id == to {
                *id = own;
            }
        };
        match &mut graph.block_mut(*from).end {
            End::Branch { yes, no, .. } => [yes, no].into_iter().for_each(redirect),
            End::Goto(next) => redirect(next),
            End::Ret(_) | End::RetA => {}
        }
    }
}
