//! The filters that a gap analysis is made of: each has more of one thing and is otherwise alike.
//!
//! All allow every call, and all but the emulated chains look at the first argument, so that the kernel must
//! run them. The calls that are made have 0 there, or for [`tree`] a number below [`LEAVES`].

use tamis_abi::Action;
use tamis_bpf::{AluOp, Op, Operand, Program, Test};

use super::super::timed_stacks::program;

/// The byte offset of the low half of the first argument.
const ARG0: Op = Op::LoadData(if cfg!(target_endian = "big") { 20 } else { 16 });
const NR: Op = Op::LoadData(0);
const ALLOW: Op = Op::RetImm(Action::ALLOW.ret());
/// What nothing that is looked at is ever equal to.
const NOWHERE: u32 = 0x7fff_fff0;
/// The levels of the deepest tree; another would take jumps of more than 255.
pub(super) const MAX_DEPTH: u32 = 8;
/// The values that the deepest tree tells apart.
pub(super) const LEAVES: u64 = 1 << MAX_DEPTH;

/// What a chain is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainKind {
    /// Loads of an argument.
    Load,
    /// Comparisons that fail, so that the next instruction follows.
    Compare,
    /// A load and a comparison in turn, the usual content of filters.
    LoadAndCompare,
    /// Comparisons that hold and jump over an instruction.
    Jump,
    /// Arithmetic, each on what the one before gave.
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

    /// What an instruction of it is called.
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
/// A filter that executes so many instructions of a kind, and two more.
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
    // The second is for the jump of the last comparison.
    ops.extend([ALLOW, ALLOW]);
    program(&ops)
}

/// A balanced tree over the first argument with so many levels, at most [`MAX_DEPTH`].
pub(super) fn tree(depth: u32) -> Program {
    fn grow(ops: &mut Vec<Op>, first: u32, depth: u32) {
        let Some(below) = depth.checked_sub(1) else {
            ops.push(ALLOW);
            return;
        };
        let half = 1_u32 << below;
        // A subtree of n levels has 2^n - 1 questions and 2^n answers.
        let len_left = (half << 1) - 1;
        ops.push(Op::branch(Test::Ge, first + half, len_left as u8, 0));
        grow(ops, first, below);
        grow(ops, first + half, below);
    }
    let mut ops = vec![ARG0];
    // Whatever the depth, the values are spread over all leaves.
    let unused = MAX_DEPTH.saturating_sub(depth);
    ops.push(Op::Alu(AluOp::Rsh, Operand::K(unused)));
    grow(&mut ops, 0, depth.min(MAX_DEPTH));
    program(&ops)
}

/// A filter of so many comparisons. Installing it takes the kernel through all of them for each number,
/// unless it looks at an argument first.
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
