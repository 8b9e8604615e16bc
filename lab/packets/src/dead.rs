//! Removal of instructions with dead results, except those that may end the program: a load outside of the packet
//! returns 0, which drops the packet.

use super::graph::{End, Graph};
use super::values::{A, Values, X, effect};

/// Per block, the live places at its entry, as bits: those that are read before they are written.
pub(super) fn live_at_entry(graph: &Graph) -> Vec<u32> {
    let mut live = vec![0; graph.blocks.len()];
    for (id, block) in graph.blocks.iter().enumerate().rev() {
        let at_end = live_at_end(block.end, &live);
        live[id] = block.ops.iter().rev().fold(at_end, |live, op| {
            let (reads, written) = effect(*op);
            live & !written.map_or(0, |place| 1 << place) | reads
        });
    }
    live
}

/// The places that are read by a block's end or after it.
fn live_at_end(end: End, live_at_entry: &[u32]) -> u32 {
    let behind = end.targets().fold(0, |live, to| live | live_at_entry[to]);
    let own = match end {
        End::Branch {
            operand: tamis_bpf::Operand::X,
            ..
        } => 1 << A | 1 << X,
        End::Branch { .. } | End::RetA => 1 << A,
        End::Goto(_) | End::RetImm(_) => 0,
    };
    behind | own
}

/// Removes dead instructions.
pub(super) fn remove_dead(graph: &mut Graph) {
    let mut values = Values::default();
    let entries = values.entries(graph);
    let live = live_at_entry(graph);
    for (block, entry) in graph.blocks.iter_mut().zip(entries) {
        let Some(mut state) = entry else {
            continue;
        };
        let may_end: Vec<bool> = block
            .ops
            .iter()
            .map(|op| values.step(&mut state, *op))
            .collect();
        let mut live = live_at_end(block.end, &live);
        let mut kept = Vec::with_capacity(block.ops.len());
        for (op, may_end) in block.ops.iter().zip(may_end).rev() {
            let (reads, written) = effect(*op);
            let written = written.map_or(0, |place| 1 << place);
            if may_end || written & live != 0 {
                kept.push(*op);
                live = live & !written | reads;
            }
        }
        kept.reverse();
        block.ops = kept;
    }
}
