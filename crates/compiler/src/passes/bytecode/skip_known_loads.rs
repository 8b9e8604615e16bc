//! Enter a block behind the loads that an edge doesn't need.
//!
//! # Effect
//! If on one side of a branch the registers already hold the values that the first instructions of the next block load,
//! but not on other edges into that block, the block is split: the side leads behind the loads.
//!
//! # Before/After
//! ```text
//!    ld [16]                 ld [16]
//!    jeq #1, a, b            jeq #1, a2, b
//! b: ld [24]                 b: ld [24]
//!    jeq #2, a, c    ->         jeq #2, a, c
//! a: ld [16]                 a: ld [16]
//!    jeq #3, d, e            a2: jeq #3, d, e
//! ```
//!
//! # Why it is sound
//! Every value that is read behind the entry is the same as if the instructions before it had run.
//!
//! # Limits
//! It does not change blocks that end with an unconditional jump: the first part of a split block falls into the
//! second, and a block that fell into it before would need a jump. It never skips a division by X, which may end the
//! program.
//!
//! # Cost
//! Linear: the first few instructions of a block are checked, once per edge into it.
//!
//! # Prior art
//! Partial redundancy elimination, without code motion.

use tamis_abi::hash::WordHashMap;
use tamis_bpf::cfg::{Block, BlockId, Cfg, End};

use crate::dataflow::flow::Flow;
use crate::dataflow::live::{Live, may_end};
use crate::dataflow::state::State;

use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "skip-known-loads",
    summary: "let edges that bring what a block loads first lead behind the loads",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

/// The most instructions at the beginning of a block that are checked.
const MAX_OPS: usize = 8;

/// One side of a branch that can enter the next block behind this many instructions.
struct Entry {
    from: BlockId,
    holds: bool,
    behind: usize,
}

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let mut flow = cx.flow(graph);
    let mut live = vec![Live::default(); graph.len()];
    // The same at the end of each block, including the values read behind its new entries.
    let mut live_at_end = live.clone();
    let mut entries: WordHashMap<BlockId, Vec<Entry>> = WordHashMap::default();
    let order = cx.order(graph);
    for id in order.iter().rev().copied() {
        let block = graph.block(id);
        let mut at_end = Live::at_end(block.end, &live);
        let (End::Branch { yes, no, .. }, Some(state)) = (block.end, flow.at_end(id)) else {
            live_at_end[id.index()] = at_end;
            live[id.index()] = at_end.before_all(&block.ops);
            continue;
        };
        for (holds, next) in [(true, yes), (false, no)] {
            if graph.block(next).ops.is_empty() {
                continue;
            }
            let read_last = live_at_end[next.index()];
            let entry = farthest_entry(graph.block(next), &state, read_last, &mut flow);
            let Some((behind, read)) = entry else {
                continue;
            };
            if flow.along(id, holds).is_none() {
                continue;
            }
            if cx.apply(0, || format!("{behind} instructions of block {}", next.0)) {
                at_end = at_end.with(read);
                let from = id;
                let entry = Entry {
                    from,
                    holds,
                    behind,
                };
                entries.entry(next).or_default().push(entry);
            }
        }
        live_at_end[id.index()] = at_end;
        live[id.index()] = at_end.before_all(&graph.block(id).ops);
    }
    for id in order.iter() {
        if let Some(entries) = entries.remove(id) {
            split(graph, *id, &entries);
        }
    }
    cx.keep_flow(flow);
    Changed::when(graph.len() > live.len())
}

/// The number of instructions of a block that can be skipped in this state, and the places read from there on, given
/// those read at its end.
fn farthest_entry(
    block: &Block,
    before: &State,
    read_last: Live,
    flow: &mut Flow,
) -> Option<(usize, Live)> {
    let count = block.ops.len().min(MAX_OPS);
    let count = block.ops[..count]
        .iter()
        .take_while(|op| !may_end(**op))
        .count();
    let mut read = read_last.before_all(&block.ops[count..]);
    let mut reads = [read; MAX_OPS];
    for (at, op) in block.ops[..count].iter().enumerate().rev() {
        reads[at] = read;
        read = read.before(*op);
    }
    let mut state = *before;
    let mut farthest = None;
    for (at, op) in block.ops[..count].iter().enumerate() {
        state.step(*op, &mut flow.values);
        let mut places = reads[at].places();
        let values = &flow.values;
        if places.all(|place| state.get(place, values) == before.get(place, values)) {
            farthest = Some((at + 1, reads[at]));
        }
    }
    farthest
}

/// Splits a block at its new entries and redirects the edges to them.
fn split(graph: &mut Cfg, id: BlockId, entries: &[Entry]) {
    let mut places: Vec<usize> = entries.iter().map(|entry| entry.behind).collect();
    places.sort_unstable();
    places.dedup();
    for place in places.into_iter().rev() {
        let block = graph.block_mut(id);
        let ops = block.ops.split_off(place);
        let end = block.end;
        let tail = graph.push(Block { ops, end });
        graph.block_mut(id).end = End::Goto(tail);
        for entry in entries.iter().filter(|entry| entry.behind == place) {
            if let End::Branch { yes, no, .. } = &mut graph.block_mut(entry.from).end {
                *(if entry.holds { yes } else { no }) = tail;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_bytecode;

    #[test]
    fn what_a_new_entry_reads_is_not_skipped_before_it() {
        // Behind the new entry of `c`, X is read with the value that `b` leaves, which was not read before.
        check_bytecode(
            &INFO,
            "ld [16]\n\
             jge #1, b, no\n\
             b: ldx #7\n\
             jge #2, c, no\n\
             c: ldx #7\n\
             jeq x, yes, no\n\
             yes: ret #allow\n\
             no: ret #errno(1)",
            "ld [16]\n\
             jlt #1, no\n\
             ldx #7\n\
             jlt #2, no\n\
             jeq x, yes\n\
             no: ret #errno(1)\n\
             yes: ret #allow",
        );
    }
}
