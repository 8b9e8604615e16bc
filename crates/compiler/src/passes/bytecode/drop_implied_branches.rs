//! Remove tests with a known outcome.
//!
//! # Effect
//! A branch becomes a jump if the tested value, and the tests passed on all paths so far, imply the outcome:
//! `jge #0`, a range inside an earlier one, a bit cleared by a mask.
//!
//! # Before/After
//! ```text
//!    jge #10, a, b           jge #10, a, b
//! a: jgt #4, c, d    ->   a: ja c
//! ```
//!
//! # Why it is sound
//! Where paths merge, only facts common to all paths are kept. Facts are about values, not about registers: they
//! remain true after another word is loaded.
//!
//! # Limits
//! It keeps a test whose outcome is known only on some paths.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! Value range propagation; the kernel verifier's `reg_bounds_sync`, which keeps intervals and known bits consistent.

use tamis_bpf::cfg::{Cfg, End};

use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "drop-implied-branches",
    summary: "replace branches whose answer follows from what was tested before by jumps",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let flow = cx.flow(graph);
    let mut changed = false;
    for id in cx.order(graph).iter().copied() {
        let (Some(answer), End::Branch { yes, no, .. }) = (flow.answer(id), graph.block(id).end)
        else {
            continue;
        };
        if cx.apply(1, || format!("block {}", id.0)) {
            graph.block_mut(id).end = End::Goto(if answer { yes } else { no });
            changed = true;
        }
    }
    cx.keep_flow(flow);
    Changed::when(changed)
}
