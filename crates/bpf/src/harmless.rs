//! Programs for measurements: the same cost as the original, without killing.
//!
//! A measured filter may kill on the measured calls. Here every action except `ALLOW` becomes an error. The
//! instructions stay where they are: a constant answer is replaced in place, and `ret A` becomes a jump to a
//! common tail at the end, so that no distance changes. A program with `ret A` therefore takes three more
//! steps where it used to end with it.
//!
//! A division by X is refused: by zero it kills without a return that could be replaced.

use std::error;
use std::fmt;

use tamis_abi::{Action, ActionKind};

use crate::insn::{AluOp, Insn, Op, Operand, Test};
use crate::program::{Pc, Program};

/// The bits of the action in a return value.
const ACTION_MASK: u32 = 0xffff_0000;

/// Why a program has no harmless form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarmlessError {
    /// It would have more instructions than a filter may have: this many.
    TooLong {
        /// The length with the tail.
        len_insns: usize,
    },
    /// It divides by X here, which kills if X is 0.
    DividesByX(Pc),
}

impl fmt::Display for HarmlessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HarmlessError::TooLong { len_insns } => write!(
                f,
                "without killing actions it has {len_insns} instructions, a filter at most {}",
                Program::MAX_INSNS
            ),
            HarmlessError::DividesByX(pc) => write!(
                f,
                "instruction {} divides by X, which kills if X is 0",
                pc.0
            ),
        }
    }
}

impl error::Error for HarmlessError {}

/// The program with every action except `ALLOW` replaced by an error number, at most 4095.
///
/// Linear in the length.
///
/// # Errors
/// See [`HarmlessError`].
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::{Op, Program, harmless::harmless};
/// let kill = Program::new(vec![Op::RetImm(0).into()], Endian::Little).unwrap();
/// assert_eq!(harmless(&kill, 38).unwrap().op(tamis_bpf::Pc(0)), Op::RetImm(0x0005_0026));
/// ```
pub fn harmless(program: &Program, errno: u16) -> Result<Program, HarmlessError> {
    let denied = Action::errno(errno).ret();
    let is_allow = |ret: u32| Action::from_ret(ret).kind == ActionKind::Allow;
    let mut insns = Vec::with_capacity(program.len());
    let mut needs_tail = false;
    for (pc, op) in program.ops().enumerate() {
        insns.push(match op {
            Op::RetImm(ret) if !is_allow(ret) => Op::RetImm(denied).into(),
            Op::RetA => {
                needs_tail = true;
                Op::Jump((program.len() - pc - 1) as u32).into()
            }
            Op::Alu(AluOp::Div, Operand::X) => return Err(HarmlessError::DividesByX(Pc(pc))),
            _ => program.insns()[pc],
        });
    }
    if needs_tail {
        insns.extend(tail(denied));
    }
    let len_insns = insns.len();
    match Program::new(insns, program.endian()) {
        Ok(program) if program.is_installable() => Ok(program),
        _ => Err(HarmlessError::TooLong { len_insns }),
    }
}

/// Returns the value in A if that allows, otherwise the error.
fn tail(denied: u32) -> [Insn; 4] {
    let allow = Action::ALLOW.ret();
    [
        Op::Alu(AluOp::And, Operand::K(ACTION_MASK)),
        Op::branch(Test::Eq, allow, 0, 1),
        Op::RetImm(allow),
        Op::RetImm(denied),
    ]
    .map(Insn::from)
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;

    use super::*;

    fn program(ops: &[Op]) -> Program {
        Program::from_ops(ops, Endian::Little).unwrap()
    }

    #[test]
    fn a_division_by_x_and_a_tail_that_does_not_fit_are_refused() {
        let divide = program(&[Op::Alu(AluOp::Div, Operand::X), Op::RetA]);
        assert_eq!(harmless(&divide, 1), Err(HarmlessError::DividesByX(Pc(0))));
        let longest = |last| {
            let mut ops = vec![Op::LoadData(0); Program::MAX_INSNS - 1];
            ops.push(last);
            harmless(&program(&ops), 1)
        };
        assert!(longest(Op::RetImm(0)).is_ok());
        let len_insns = Program::MAX_INSNS + 4;
        assert_eq!(longest(Op::RetA), Err(HarmlessError::TooLong { len_insns }));
    }
}
