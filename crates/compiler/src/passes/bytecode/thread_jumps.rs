//! Redirect jumps past blocks with a known outcome.
//!
//! # Effect
//! An edge is redirected past blocks whose outcome is known on that edge: because they end with a jump, or because
//! the tests on the path to the edge imply the outcome, even if the block has to test on other edges. Instructions
//! are skipped if no later instruction reads their results, or if their destinations already hold these. A jump to a
//! return becomes the return.
//!
//! # Before/After
//! ```text
//!    jeq #7, a, b            jeq #7, c, b
//! a: jge #5, c, d    ->
//! ```
//!
//! # Why it is sound
//! Every value that is read behind the new target is the same on both paths. Edges are changed from the end of the
//! program to its beginning, so the set of values read behind a target is final, and the facts at an edge come from
//! unchanged blocks.
//!
//! # Limits
//! It does not copy instructions, and it never skips a division by X, which may end the program.
//!
//! # Cost
//! Linear: the number of blocks passed is bounded by a multiple of the number of edges; if that is not enough, a
//! second run finds more. A known value passes a chain of equality tests in one step.
//!
//! # Prior art
//! Jump threading in every compiler; libpcap's `opt_j` and `fold_edge`.

use tamis_bpf::cfg::{BlockId, Cfg, End};

use crate::dataflow::flow::Flow;
use crate::dataflow::live::{Live, may_end};
use crate::dataflow::state::State;
use crate::dataflow::value::Place;

use crate::passes::support::chains::Chains;
use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "thread-jumps",
    summary: "let jumps to jumps, to returns and to decided branches lead to the end of the chain",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: false,
        never_slower: true,
    },
};

/// The most blocks that are passed, on average per edge.
const PASSED_PER_BLOCK: usize = 32;

/// The most instructions of a block that are checked.
const MAX_OPS: usize = 8;

struct Threader<'a> {
    graph: &'a mut Cfg,
    flow: Flow,
    live: Vec<Live>,
    chains: Chains,
    budget: usize,
}

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let order = cx.order(graph);
    let mut threader = Threader {
        flow: cx.flow(graph),
        live: vec![Live::default(); graph.len()],
        chains: Chains::new(graph),
        budget: PASSED_PER_BLOCK * order.len(),
        graph,
    };
    let mut changed = false;
    for id in order.iter().rev().copied() {
        let end = threader.graph.block(id).end;
        let threaded = threader.threaded(id);
        if threaded != end && cx.apply(0, || format!("block {}", id.0)) {
            threader.graph.block_mut(id).end = threaded;
            changed = true;
        }
        Live::note(&mut threader.live, id, threader.graph.block(id));
        threader.chains.add(threader.graph, id);
    }
    cx.keep_flow(threader.flow);
    Changed::when(changed)
}

impl Threader<'_> {
    /// The end of a block, with its edges redirected as far as possible.
    fn threaded(&mut self, id: BlockId) -> End {
        let end = self.graph.block(id).end;
        match end {
            End::Ret(_) | End::RetA => end,
            End::Goto(next) => {
                let Some(state) = self.flow.at_end(id) else {
                    return end;
                };
                let next = self.follow(next, &state);
                let target = self.graph.block(next);
                match target.end {
                    End::Ret(_) | End::RetA if target.ops.is_empty() => target.end,
                    _ => End::Goto(next),
                }
            }
            End::Branch {
                test,
                operand,
                yes,
                no,
            } => {
                let mut side = |next, holds| {
                    if !self.may_pass(next) || self.flow.is_undecided(next) {
                        self.budget = self.budget.saturating_sub(1);
                        return next;
                    }
                    let state = self.flow.along(id, holds);
                    state.map_or(next, |state| self.follow(next, &state))
                };
                End::Branch {
                    test,
                    operand,
                    yes: side(yes, true),
                    no: side(no, false),
                }
            }
        }
    }

    /// The farthest block that an edge with this state can be redirected to.
    fn follow(&mut self, target: BlockId, state: &State) -> BlockId {
        let mut farthest = target;
        let mut there = *state;
        let mut at = target;
        while let Some(next) = self.step(at, &mut there) {
            let mut read = self.live[next.index()].places();
            let values = &self.flow.values;
            if read.all(|place| state.get(place, values) == there.get(place, values)) {
                farthest = next;
            }
            at = next;
        }
        farthest
    }

    /// Whether a block has a known successor in some state.
    fn may_pass(&self, id: BlockId) -> bool {
        let block = self.graph.block(id);
        let ends = matches!(block.end, End::Ret(_) | End::RetA);
        !ends && block.ops.len() <= MAX_OPS && !block.ops.iter().any(|op| may_end(*op))
    }

    /// The successor of a block that is entered in this state, which becomes the state at its end; `None` if it is
    /// not known.
    fn step(&mut self, id: BlockId, state: &mut State) -> Option<BlockId> {
        self.budget = self.budget.checked_sub(1)?;
        if !self.may_pass(id) {
            return None;
        }
        let values = &mut self.flow.values;
        if self.chains.has(id)
            && let Some(value) = state.constant(state.get(Place::A, values), values)
            && let Some(next) = self.chains.pass(self.graph, id, value)
        {
            return Some(next);
        }
        let block = self.graph.block(id);
        for op in &block.ops {
            state.step(*op, values);
        }
        match block.end {
            End::Goto(next) => Some(next),
            End::Branch {
                test,
                operand,
                yes,
                no,
            } => state
                .answer(test, operand, values)
                .map(|answer| if answer { yes } else { no }),
            End::Ret(_) | End::RetA => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_bytecode;

    /// Compares the result of the pass for branches on the number that lead to `yes` or `no`.
    fn check(branches: &str, threaded: &str) {
        check_bytecode(
            &INFO,
            &format!("ld [nr]\n{branches}\nyes: ret #allow\nno: ret #errno(1)"),
            &format!("ld [nr]\n{threaded}\nno: ret #errno(1)\nyes: ret #allow"),
        );
    }

    #[test]
    fn a_repeated_test_is_not_asked_again() {
        check(
            "jeq #7, a, b\n\
             a: jeq #7, yes, no\n\
             b: jeq #7, yes, no",
            "jeq #7, yes, no",
        );
    }

    #[test]
    fn a_value_known_exactly_decides_other_tests() {
        check("jeq #7, a, no\na: jge #5, yes, no", "jeq #7, yes, no");
    }

    #[test]
    fn what_a_no_leaves_open_is_still_asked() {
        check(
            "jeq #7, yes, a\na: jge #5, yes, no",
            "jeq #7, yes\njge #5, yes, no",
        );
    }
}
