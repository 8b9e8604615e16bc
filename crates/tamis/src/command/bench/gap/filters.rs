//! The filters of a gap analysis: each has more of one feature and is otherwise alike.
//!
//! All allow every call, and all but the emulated chains read the first argument, so that the kernel must run them. The
//! argument of the timed calls is 0, or for [`tree`] a number below [`LEAVES`].

use tamis_abi::Action;
use tamis_bpf::{AluOp, Op, Operand, Program, Test};

use super::super::timed_stacks::program;

/// The byte offset of the low half of the first argument.
const ARG0: Op = Op::LoadData(if cfg!(target_endian = "big") { 20 } else { 16 });
const NR: Op = Op::LoadData(0);
const ALLOW: Op = Op::RetImm(Action::ALLOW.ret());
/// A value that no tested value equals.
const NOWHERE: u32 = 0x7fff_fff0;
/// The levels of the deepest tree; one more level would need jumps of more than 255.
pub(super) const MAX_DEPTH: u32 = 8;
/// The values that the deepest tree distinguishes.
pub(super) const LEAVES: u64 = 1 << MAX_DEPTH;

/// The instructions of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainKind {
    /// Loads of an argument.
    Load,
    /// Comparisons that fail, so that the next instruction follows.
    Compare,
    /// Alternating loads and comparisons, the usual content of filters.
    LoadAndCompare,
    /// Comparisons that hold and jump over an instruction.
    Jump,
    /// Arithmetic on the previous instruction's result.
    Arithmetic,
}

impl ChainKind {
    pub(super) const ALL: [ChainKind; 5] = [
        ChainKind::Load,
        ChainKind::Compare,
        ChainKind::LoadAndCompare,
        ChainKind::Jump,
        ChainKind::Arithmetic,
    ];

    /// The name of an instruction of the kind.
    pub(super) const fn name(self) -> &'static str {
        match self {
            ChainKind::Load => "an instruction: load",
            ChainKind::Compare => "an instruction: comparison that fails",
            ChainKind::LoadAndCompare => "an instruction: load and comparison in turn",
            ChainKind::Jump => "an instruction: comparison that holds",
            ChainKind::Arithmetic => "an instruction: arithmetic",
        }
    }
}
/// A filter that executes `len` instructions of a kind, and two more.
pub(super) fn chain(kind: ChainKind, len: usize) -> Program {
    let fails = Op::branch(Test::Eq, NOWHERE, 1, 0);
    let mut ops = vec![ARG0];
    for index in 0..len {
        match kind {
            ChainKind::Load => ops.push(ARG0),
            ChainKind::Compare => ops.push(fails),
            ChainKind::LoadAndCompare => ops.push(if index % 2 == 0 { ARG0 } else { fails }),
            ChainKind::Jump => ops.extend([Op::branch(Test::Ge, 0, 1, 0), ALLOW]),
            ChainKind::Arithmetic => ops.push(Op::Alu(AluOp::And, Operand::K(u32::MAX))),
        }
    }
    // The second is the target of the last comparison.
    ops.extend([ALLOW, ALLOW]);
    program(&ops)
}

/// A balanced tree over the first argument with `depth` levels, at most [`MAX_DEPTH`].
pub(super) fn tree(depth: u32) -> Program {
    fn grow(ops: &mut Vec<Op>, first: u32, depth: u32) {
        let Some(below) = depth.checked_sub(1) else {
            ops.push(ALLOW);
            return;
        };
        let half = 1_u32 << below;
        // A subtree of n levels has 2^n - 1 tests and 2^n returns.
        let len_left = (half << 1) - 1;
        ops.push(Op::branch(Test::Ge, first + half, len_left as u8, 0));
        grow(ops, first, below);
        grow(ops, first + half, below);
    }
    let mut ops = vec![ARG0];
    // For every depth, the values are spread over all leaves.
    let unused = MAX_DEPTH.saturating_sub(depth);
    ops.push(Op::Alu(AluOp::Rsh, Operand::K(unused)));
    grow(&mut ops, 0, depth.min(MAX_DEPTH));
    program(&ops)
}

/// A filter of `len` comparisons. On installation the kernel emulates all of them for each number, unless the filter
/// reads an argument first.
pub(super) fn installed(len: usize, is_emulated: bool) -> Program {
    let mut ops = vec![if is_emulated { NR } else { ARG0 }];
    ops.resize(len + 1, Op::branch(Test::Eq, NOWHERE, 1, 0));
    ops.extend([ALLOW, ALLOW]);
    program(&ops)
}

#[cfg(test)]
mod tests {
    use tamis_abi::SeccompData;
    use tamis_bpf::{Stack, cache, interp};

    use super::*;

    fn call(arg0: u64) -> SeccompData {
        SeccompData {
            args: [arg0, 0, 0, 0, 0, 0],
            ..SeccompData::default()
        }
    }

    #[test]
    fn a_chain_executes_what_it_says_and_cannot_be_skipped() {
        for kind in ChainKind::ALL {
            for len in [0, 1, 2, 7, 512] {
                let program = chain(kind, len);
                let run = interp::run(&program, &call(0));
                assert_eq!(
                    (run.ret, run.steps as usize),
                    (Action::ALLOW.ret(), len + 2)
                );
                assert!(!cache::is_cacheable(&program, 0, 1));
            }
        }
    }

    #[test]
    fn a_tree_asks_as_many_questions_as_it_has_levels() {
        for depth in 0..=MAX_DEPTH {
            let program = tree(depth);
            assert!(program.is_installable());
            for arg0 in [0, 1, 100, LEAVES - 1] {
                let run = interp::run(&program, &call(arg0));
                assert_eq!((run.ret, run.steps), (Action::ALLOW.ret(), depth + 3));
            }
        }
    }

    #[test]
    fn emulated_chains_can_be_skipped_for_every_number_and_others_for_none() {
        for len in [0, 2000] {
            for is_emulated in [true, false] {
                let stack = Stack::from(installed(len, is_emulated));
                assert!(stack.is_installable());
                assert_eq!(stack.is_cacheable(0, 39), is_emulated);
            }
        }
    }
}
