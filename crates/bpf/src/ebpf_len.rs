//! The length of a program inside the kernel.
//!
//! The kernel [converts](crate::convert) every instruction to one or more of extended BPF. The limit for all filters of
//! a task counts these, and so do estimates of the cost of a call. All counts are lengths of the conversion's results.

use crate::convert::{PROLOGUE, Step, expand};
use crate::extended::code;
use crate::insn::Op;
use crate::program::Program;

/// The count of extended instructions before the first: A = 0, X = 0 and saving the context.
pub const PROLOGUE_INSNS: usize = PROLOGUE.len();

/// The count of extended instructions of the converted program. Linear.
pub fn kernel_len_insns(program: &Program) -> usize {
    PROLOGUE_INSNS + program.ops().map(op_len_insns).sum::<usize>()
}

/// The count of extended instructions of one converted instruction: 1 to 5.
pub fn op_len_insns(op: Op) -> usize {
    let mut len_insns = 0;
    expand(op, &mut |_| len_insns += 1);
    len_insns
}

/// The count of extended instructions executed for one instruction; `is_taken` is whether the test of a branch
/// held. Two-sided branches are a conditional jump for one side, followed by an unconditional one for the other.
///
/// A division by X is counted as one by another value than 0.
pub fn op_executed_insns(op: Op, is_taken: bool) -> usize {
    let (mut executed, mut has_left, mut skipped) = (0, false, 0);
    expand(op, &mut |Step { insn, skip }| {
        if skipped > 0 {
            skipped -= 1;
        } else if !has_left {
            executed += 1;
            has_left = is_taken && skip.is_some();
            if skip.is_none() && insn.code & code::CLASS == code::JMP {
                skipped = insn.offset;
            }
        }
    });
    executed
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;

    use super::*;
    use crate::convert::convert;
    use crate::insn::{AluOp, Operand, Test};

    fn branch_len(test: Test, k: u32, jt: u8, jf: u8) -> usize {
        let operand = Operand::K(k);
        op_len_insns(Op::Branch {
            test,
            operand,
            jt,
            jf,
        })
    }

    #[test]
    fn the_shortest_filter_has_five_instructions() {
        let program = Program::new(vec![Op::RetImm(0).into()], Endian::Little).unwrap();
        assert_eq!(kernel_len_insns(&program), 5);
    }

    #[test]
    fn the_count_is_the_length_of_the_converted_program() {
        let (test, operand) = (Test::Set, Operand::K(1 << 31));
        let (jt, jf) = (0, 1);
        let branch = Op::Branch {
            test,
            operand,
            jt,
            jf,
        };
        let ops = [
            Op::LoadData(0),
            Op::Alu(AluOp::Div, Operand::X),
            branch,
            Op::RetA,
            Op::RetImm(1),
        ];
        let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
        let converted = convert(&program).unwrap();
        assert_eq!(kernel_len_insns(&program), converted.len());
        assert_eq!(converted.len(), 3 + 1 + 5 + 3 + 1 + 2);
        assert_eq!(op_executed_insns(ops[1], false), 3);
        assert_eq!(
            [true, false].map(|taken| op_executed_insns(branch, taken)),
            [2, 3]
        );
    }

    #[test]
    fn a_branch_that_falls_through_on_one_side_is_one_instruction() {
        for test in [Test::Eq, Test::Gt, Test::Ge] {
            assert_eq!(branch_len(test, 1, 5, 0), 1);
            assert_eq!(branch_len(test, 1, 0, 5), 1);
            assert_eq!(branch_len(test, 1, 5, 5), 2);
        }
        assert_eq!(branch_len(Test::Set, 1, 5, 0), 1);
        assert_eq!(branch_len(Test::Set, 1, 0, 5), 2);
    }

    #[test]
    fn only_the_no_side_of_a_two_sided_branch_runs_both_jumps() {
        let runs = |jt, jf, is_taken| {
            let (test, operand) = (Test::Eq, Operand::K(1));
            op_executed_insns(
                Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                },
                is_taken,
            )
        };
        assert_eq!((runs(3, 5, true), runs(3, 5, false)), (1, 2));
        assert_eq!((runs(0, 5, true), runs(0, 5, false)), (1, 1));
        assert_eq!((runs(5, 0, true), runs(5, 0, false)), (1, 1));
    }

    #[test]
    fn a_large_constant_costs_a_move() {
        assert_eq!(branch_len(Test::Eq, 0x7fff_ffff, 0, 0), 1);
        assert_eq!(branch_len(Test::Eq, 0x8000_0000, 0, 0), 2);
        assert_eq!(branch_len(Test::Eq, 0xc000_003e, 1, 1), 3);
    }
}
