//! What a compiled program has to pass besides the proof.
//!
//! The proof compares it with a ruleset, which has no instructions. Should the prover misread one, it
//! refuses right programs; a wrong one passes only if what is wrong in it and what is misread make up for each
//! other. Two cheap checks leave no room for that: a compiled program has only the few kinds of
//! instructions that emission and the passes make of them, and the reference interpreter and the
//! evaluator of rulesets agree on calls near the constant of every branch ([`cover`], which says what it leaves open).

use tamis_abi::VariableIndex;
use tamis_bpf::{AluOp, Op, Operand, Template, Test};
use tamis_prover::{Subject, decide_until};
use tamis_rules::{Input, Ruleset, Values};

use super::cover::cover;
use super::proved;
use crate::error::CompileError;
use crate::options::ProofEffort;

/// Judges whether a compiled program means what its ruleset means: the proof, and what it has to pass besides.
///
/// # Errors
/// If the prover finds a difference or reaches a limit, or if the program has an instruction that the compiler doesn't
/// make, or answers a call otherwise than the ruleset.
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

/// Checks a compiled program whose meaning was proved.
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

/// Whether emission or a pass over what is emitted makes such instructions.
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

/// Some value for each variable, all different.
fn values(ruleset: &Ruleset) -> Vec<u64> {
    let count = ruleset.variables().len().min(VariableIndex::COUNT) as u64;
    (0..count).map(|index| 0x0101 + index).collect()
}
