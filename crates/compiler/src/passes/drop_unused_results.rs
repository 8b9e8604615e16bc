//! Remove instructions whose result is never read.
//!
//! # What
//! A load, copy, store or calculation goes if its place is written again, or the program ends, before
//! anything reads it, on every path.
//!
//! # Before/After
//! ```text
//! ld [16]                 ret allow
//! ret allow       ->
//! ```
//!
//! # Why it is sound
//! Nothing but a result can influence what follows. A division by X is the exception, since dividing by
//! zero ends the program: it stays.
//!
//! # What it never does
//! It doesn't move an instruction to the only path that reads its result.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! Dead code elimination by liveness; libpcap's `opt_deadstores`.

use tamis_bpf::cfg::Cfg;

use crate::dataflow::live::{Live, may_end, written_by};

use super::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "drop-unused-results",
    summary: "remove instructions whose result nothing reads",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(super) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let mut live = vec![Live::default(); graph.len()];
    let mut changed = false;
    // The places of what goes from a block, descending.
    let mut gone: Vec<usize> = Vec::new();
    for id in cx.order(graph).iter().rev().copied() {
        let block = graph.block_mut(id);
        let mut read = Live::at_end(block.end, &live);
        for at in (0..block.ops.len()).rev() {
            let op = block.ops[at];
            let is_unused = !read.contains(written_by(op)) && !may_end(op);
            if is_unused && cx.apply(1, || format!("{op:?} in block {}", id.0)) {
                gone.push(at);
            } else {
                read = read.before(op);
            }
        }
        live[id.index()] = read;
        changed |= !gone.is_empty();
        if !gone.is_empty() {
            let mut places = 0..;
            block.ops.retain(|_| {
                let goes = gone.last().copied() == places.next();
                if goes {
                    gone.pop();
                }
                !goes
            });
        }
    }
    Changed::when(changed)
}
