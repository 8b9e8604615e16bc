//! Remove instructions whose result is never read.
//!
//! # Effect
//! A load, copy, store or calculation is removed if, on every path, its destination is overwritten, or the program
//! ends, before it is read.
//!
//! # Before/After
//! ```text
//! ld [16]                 ret allow
//! ret allow       ->
//! ```
//!
//! # Why it is sound
//! An instruction affects the rest of the program only by its result. The exception is a division by X, which is
//! kept, because dividing by zero ends the program.
//!
//! # Limits
//! It does not move an instruction to the one path that reads its result.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! Dead code elimination by liveness; libpcap's `opt_deadstores`.

use tamis_bpf::cfg::Cfg;

use crate::dataflow::live::{Live, may_end, written_by};

use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "drop-unused-results",
    summary: "remove instructions whose result nothing reads",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let mut live = vec![Live::default(); graph.len()];
    let mut changed = false;
    // The indices of the removed instructions of a block, descending.
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
