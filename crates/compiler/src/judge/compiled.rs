//! Checks of a compiled program in addition to the proof.
//!
//! The proof compares the program with a ruleset, which has no instructions. If the prover misreads an instruction,
//! it rejects correct programs; a wrong program passes only if its error and the misreading compensate each other.
//! Two cheap checks guard against this: a compiled program has only the few kinds of instructions that emission and the
//! passes make, and the reference interpreter and the evaluator of rulesets agree on calls near the constant of every
//! branch, within the limits of [`cover`].

use tamis_abi::VariableIndex;
use tamis_bpf::{AluOp, Op, Operand, Template, Test};
use tamis_prover::{Subject, decide_until};
use tamis_rules::{Input, Ruleset, Values};

use super::cover::cover;
use super::proved;
use crate::error::CompileError;
use crate::options::ProofEffort;

/// Judges whether a compiled program is equivalent to its ruleset, by the proof and the additional checks.
///
/// # Errors
/// If the prover finds a difference or reaches a limit, if the program has an instruction that the compiler does not
/// make, or if the program and the ruleset return different actions for a call.
pub fn compiled(
    template: &Template,
    ruleset: &Ruleset,
    effort: &ProofEffort,
) -> Result<(), CompileError> {
    let limits = effort.limits.for_insns(template.unbound().len());
    let given = Subject::Ruleset(ruleset);
    let made = Subject::Template(template);
    proved(decide_until(&given, &made, &limits, &effort.stop))?;
    check(template, ruleset)
}

/// Runs the additional checks on a proved program.
fn check(template: &Template, ruleset: &Ruleset) -> Result<(), CompileError> {
    for (pc, op) in template.unbound().ops().enumerate() {
        if !is_made(op) {
            let pc = tamis_bpf::Pc(pc);
            return Err(CompileError::Unexpected { pc, op });
        }
    }
    let values = values(ruleset);
    let program = template.bind(&values);
    let variables = Values::new(&values);
    let mut difference = None;
    cover(&program, &mut |call, actual_ret| {
        let expected_ret = ruleset.decide_with(call, &variables).action.ret();
        if expected_ret != actual_ret {
            difference = Some(CompileError::Miscompiled {
                witness: Box::new(Input {
                    data: *call,
                    variables,
                }),
                expected_ret,
                actual_ret,
            });
        }
        difference.is_none()
    });
    difference.map_or(Ok(()), Err)
}

/// Whether emission, or a pass over emitted programs, makes such instructions.
fn is_made(op: Op) -> bool {
    match op {
        Op::LoadData(_) | Op::LoadImm(_) | Op::LoadXImm(_) | Op::Tax => true,
        Op::Alu(alu, operand) => alu == AluOp::And && operand != Operand::X,
        Op::Branch { test, operand, .. } => test != Test::Set || operand != Operand::X,
        Op::Jump(_) | Op::RetImm(_) => true,
        Op::LoadMem(_) | Op::LoadXMem(_) | Op::Store(_) | Op::StoreX(_) => false,
        Op::LoadLen | Op::LoadXLen | Op::Neg | Op::Txa | Op::RetA => false,
    }
}

/// A value for each variable, all different.
fn values(ruleset: &Ruleset) -> Vec<u64> {
    let count = ruleset.variables().len().min(VariableIndex::COUNT) as u64;
    (0..count).map(|index| 0x0101 + index).collect()
}
