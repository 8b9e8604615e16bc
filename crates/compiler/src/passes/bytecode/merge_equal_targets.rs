//! Replace a branch with two equal targets.
//!
//! # Effect
//! A branch with the same block on both sides becomes an unconditional jump.
//!
//! # Before/After
//! ```text
//! jeq #7, a, a    ->      ja a
//! ```
//!
//! # Why it is sound
//! A test changes neither registers nor memory.
//!
//! # Limits
//! It does not compare blocks: `merge-blocks` merges equal ones.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! gVisor's `bpf` optimiser; libpcap's `opt_j`.

use tamis_bpf::cfg::{BlockId, Cfg, End};

use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "merge-equal-targets",
    summary: "replace branches that go to the same block either way by jumps",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let mut changed = false;
    for id in (0..graph.len() as u32).map(BlockId) {
        if let End::Branch { yes, no, .. } = graph.block(id).end
            && yes == no
            && cx.apply(1, || format!("block {}", id.0))
        {
            graph.block_mut(id).end = End::Goto(yes);
            changed = true;
        }
    }
    Changed::when(changed)
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_bytecode;

    #[test]
    fn a_branch_with_one_target_becomes_a_jump() {
        check_bytecode(
            &INFO,
            "ld [nr]\n\
             jeq #7, end, end\n\
             end: ret #allow",
            "ld [nr]\n\
             ret #allow",
        );
    }

    #[test]
    fn equal_blocks_are_not_its_business() {
        check_bytecode(
            &INFO,
            "ld [nr]\n\
             jeq #7, a, b\n\
             a: ret #allow\n\
             b: ret #allow",
            "ld [nr]\n\
             jeq #7, a, b\n\
             b: ret #allow\n\
             a: ret #allow",
        );
    }
}
