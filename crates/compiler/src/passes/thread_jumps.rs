//! Jump to where a jump leads.
//!
//! # What
//! An edge to a block that does nothing but decide where to go next leads there at once, if the decision
//! is known on that edge: because the block always goes on, because it repeats the test that was just
//! made, or because A was just found equal to a constant. A jump to a return becomes the return.
//!
//! # Before/After
//! ```text
//!    jeq #7, a, b            jeq #7, c, b
//! a: jge #5, c, d    ->
//! ```
//!
//! # Why it is sound
//! A block without instructions leaves registers and memory as they are, and a test that holds for a
//! value of A still holds for it one jump later.
//!
//! # What it never does
//! It doesn't copy instructions, and it doesn't know what A holds unless the edge itself says so.
//!
//! # Cost
//! Linear in the length of the chains followed; a chain is followed once per edge into it.
//!
//! # Prior art
//! Jump threading in every compiler; libpcap's `opt_j` and `fold_edge`.

use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::{Operand, Test};

use super::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "thread-jumps",
    summary: "let jumps to jumps, to returns and to decided branches lead to the end of the chain",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: false,
        never_slower: true,
    },
};

/// What an edge says about A.
#[derive(Clone, Copy)]
struct Known {
    test: Test,
    operand: Operand,
    holds: bool,
}

pub(super) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let mut changed = false;
    for id in graph.reverse_postorder().into_iter().rev() {
        let end = graph.block(id).end;
        let threaded = match end {
            End::Ret(_) | End::RetA => end,
            End::Goto(next) => {
                let next = follow(graph, next, None);
                let target = graph.block(next);
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
                let side = |next, holds| {
                    let known = Known {
                        test,
                        operand,
                        holds,
                    };
                    follow(graph, next, Some(known))
                };
                End::Branch {
                    test,
                    operand,
                    yes: side(yes, true),
                    no: side(no, false),
                }
            }
        };
        if threaded != end && cx.apply(0, || format!("block {}", id.0)) {
            graph.block_mut(id).end = threaded;
            changed = true;
        }
    }
    Changed::when(changed)
}

/// The block at the end of the chain of decisions that begins with `next`.
fn follow(graph: &Cfg, mut next: BlockId, known: Option<Known>) -> BlockId {
    loop {
        let block = graph.block(next);
        if !block.ops.is_empty() {
            return next;
        }
        next = match block.end {
            End::Goto(after) => after,
            End::Branch {
                test,
                operand,
                yes,
                no,
            } => match known.and_then(|known| known.answer(test, operand)) {
                Some(true) => yes,
                Some(false) => no,
                None => return next,
            },
            End::Ret(_) | End::RetA => return next,
        };
    }
}

impl Known {
    /// The answer to another test of the same A and X, if this one implies it.
    fn answer(self, test: Test, operand: Operand) -> Option<bool> {
        if test == self.test && operand == self.operand {
            return Some(self.holds);
        }
        match (self.test, self.operand, operand) {
            (Test::Eq, Operand::K(a), Operand::K(k)) if self.holds => Some(test.holds(a, k)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::BytecodePass;
    use super::super::testing::check_bytecode;

    const PASS: BytecodePass = BytecodePass {
        info: super::INFO,
        run: super::run,
    };

    #[test]
    fn a_repeated_test_is_not_asked_again() {
        check_bytecode(
            PASS,
            "ld [nr]\n\
             jeq #7, a, b\n\
             a: jeq #7, yes, no\n\
             b: jeq #7, yes, no\n\
             yes: ret #allow\n\
             no: ret #errno(1)",
            "ld [nr]\n\
             jeq #7, yes, no\n\
             no: ret #errno(1)\n\
             yes: ret #allow",
        );
    }

    #[test]
    fn a_value_known_exactly_decides_other_tests() {
        check_bytecode(
            PASS,
            "ld [nr]\n\
             jeq #7, a, no\n\
             a: jge #5, yes, no\n\
             yes: ret #allow\n\
             no: ret #errno(1)",
            "ld [nr]\n\
             jeq #7, yes, no\n\
             no: ret #errno(1)\n\
             yes: ret #allow",
        );
    }

    #[test]
    fn what_a_no_leaves_open_is_still_asked() {
        check_bytecode(
            PASS,
            "ld [nr]\n\
             jeq #7, yes, a\n\
             a: jge #5, yes, no\n\
             yes: ret #allow\n\
             no: ret #errno(1)",
            "ld [nr]\n\
             jeq #7, yes\n\
             jge #5, yes, no\n\
             no: ret #errno(1)\n\
             yes: ret #allow",
        );
    }
}
