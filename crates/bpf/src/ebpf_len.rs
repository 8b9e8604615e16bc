//! The length of a program inside the kernel.
//!
//! The kernel does not run classic BPF: `bpf_convert_filter` in `net/core/filter.c` translates every instruction to
//! one or more of extended BPF, without optimisation. The limit for all filters of a task counts these. Constant
//! blinding (`bpf_jit_harden`) comes later and is not counted.

use crate::insn::{AluOp, Op, Operand, Test};
use crate::program::Program;

/// The count of extended instructions before the first: A = 0, X = 0 and saving the context.
pub const PROLOGUE_INSNS: usize = 3;

/// The count of extended instructions of the converted program. Linear.
pub fn kernel_len_insns(program: &Program) -> usize {
    PROLOGUE_INSNS + program.ops().map(op_len_insns).sum::<usize>()
}

/// The count of extended instructions of one converted instruction: 1 to 5.
pub const fn op_len_insns(op: Op) -> usize {
    match op {
        Op::RetImm(_) => 2,
        // Zero-extend X, test it for zero, and two instructions for the exit, before the division.
        Op::Alu(AluOp::Div, Operand::X) => 5,
        Op::Branch {
            test,
            operand,
            jt,
            jf,
        } => {
            // The immediate of an extended comparison is signed.
            let extra_move = matches!(operand, Operand::K(k) if k >= 1 << 31) as usize;
            let is_one_sided = jf == 0 || (jt == 0 && !matches!(test, Test::Set));
            extra_move + if is_one_sided { 1 } else { 2 }
        }
        _ => 1,
    }
}

/// The count of extended instructions executed for one instruction; `is_taken` is whether the test of a branch
/// held. Two-sided branches are a conditional jump for one side, followed by an unconditional one for the other.
pub const fn op_executed_insns(op: Op, is_taken: bool) -> usize {
    match op {
        // The exit for zero is skipped.
        Op::Alu(AluOp::Div, Operand::X) => 3,
        Op::Branch {
            test, operand, jt, ..
        } => {
            let one_sided = op_len_insns(Op::Branch {
                test,
                operand,
                jt,
                jf: 0,
            });
            if is_taken {
                one_sided
            } else {
                op_len_insns(op)
            }
        }
        _ => op_len_insns(op),
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;

    use super::*;

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
