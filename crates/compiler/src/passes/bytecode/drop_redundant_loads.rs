//! Remove instructions that write a value already present.
//!
//! # Effect
//! A load, copy, store or calculation is removed if its destination already holds the same value, on every path to
//! it.
//!
//! # Before/After
//! ```text
//!    ld [16]                 ld [16]
//!    jeq #1, a, b            jeq #1, a, b
//! a: ld [16]         ->   a: jeq #2, c, d
//!    jeq #2, c, d
//! ```
//!
//! # Why it is sound
//! Values have the same name only if they are equal for every input; where paths with different values merge, the
//! value gets a new name. After a store the scratch word has the stored value, whether from A or from X.
//!
//! # Limits
//! It does not copy a value from another register, and changes nothing if only some of the paths provide the value.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! Global value numbering; libpcap's `opt_stmt`; gVisor's `bpf` optimiser, for straight-line code.

use tamis_bpf::cfg::Cfg;

use crate::dataflow::live::may_end;

use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "drop-redundant-loads",
    summary: "remove instructions that write what their place holds already",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let mut flow = cx.flow(graph);
    let mut changed = false;
    for id in cx.order(graph).iter().copied() {
        let Some(mut state) = flow.entry(id).filter(|_| flow.has_redundant(id)) else {
            continue;
        };
        let values = &mut flow.values;
        graph.block_mut(id).ops.retain(|op| {
            let is_redundant = state.step(*op, values) && !may_end(*op);
            let goes = is_redundant && cx.apply(1, || format!("{op:?} in block {}", id.0));
            changed |= goes;
            !goes
        });
    }
    cx.keep_flow(flow);
    Changed::when(changed)
}
