//! Drop blocks that no path reaches.
//!
//! # Effect
//! Removes every block that cannot be reached from the entry.
//!
//! # Before/After
//! ```text
//! ja 1                    ja 0
//! ret kill        ->      ret allow
//! ret allow
//! ```
//!
//! # Why it is sound
//! Unreachable code has no effect on the result.
//!
//! # Limits
//! It does not decide whether a branch can go only one way; the passes that remove branches do.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! Every optimiser.

use tamis_bpf::cfg::{BlockId, Cfg};

use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "drop-unreachable",
    summary: "remove blocks that no path reaches",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let order = cx.order(graph);
    let dead = graph.len() - order.len();
    if dead == 0 {
        return Changed::No;
    }
    let length = |id: BlockId| graph.block(id).ops.len() + 1;
    let all: usize = graph.blocks().map(|(id, _)| length(id)).sum();
    let reachable: usize = order.iter().map(|id| length(*id)).sum();
    let applied = cx.apply(all - reachable, || match dead {
        1 => "1 block".to_owned(),
        _ => format!("{dead} blocks"),
    });
    if applied {
        cx.renumber(&graph.drop_unreachable());
    }
    Changed::when(applied)
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_bytecode;

    #[test]
    fn dead_code_goes() {
        check_bytecode(
            &INFO,
            "ja live\n\
             ret #kill_process\n\
             live: ret #allow",
            "ret #allow",
        );
    }
}
