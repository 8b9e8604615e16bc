//! Facts that hold before each instruction, for comments and advice only.
//!
//! One pass over the list suffices, because jumps go forward. No facts are derived from a failed test, and values from
//! X or scratch memory are unknown.

use std::collections::BTreeSet;

use tamis_abi::{Endian, Word};

use crate::insn::{Op, Operand, Test};
use crate::program::Program;

/// The facts on every path to an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The input word in A.
    pub(crate) a: Option<Word>,
    /// The `AUDIT_ARCH_*` value of the call, if it was tested.
    pub(crate) audit_arch: Option<u32>,
}

impl Facts {
    /// The facts common to both paths.
    fn meet(self, other: Facts) -> Facts {
        Facts {
            a: self.a.filter(|a| other.a == Some(*a)),
            audit_arch: self
                .audit_arch
                .filter(|arch| other.audit_arch == Some(*arch)),
        }
    }
}

/// The constants that a program compares with the architecture of calls, for equality. Linear.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::facts::compared_archs;
/// use tamis_bpf::{Op, Program, Test};
/// let ops = [Op::LoadData(4), Op::branch(Test::Eq, 7, 0, 1), Op::RetImm(0), Op::RetImm(1)];
/// let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
/// assert_eq!(compared_archs(&program).into_iter().collect::<Vec<_>>(), [7]);
/// ```
pub fn compared_archs(program: &Program) -> BTreeSet<u32> {
    let ops: Vec<Option<Op>> = program.ops().map(Some).collect();
    let known = facts(&ops, program.endian());
    let compared = program.ops().zip(known).filter_map(|(op, known)| match op {
        Op::Branch {
            test: Test::Eq,
            operand: Operand::K(audit),
            ..
        } if known.a == Some(Word::ARCH) => Some(audit),
        _ => None,
    });
    compared.collect()
}

/// The facts before each instruction; none in unreachable code and after an instruction that is `None`. Linear.
pub(crate) fn facts(ops: &[Option<Op>], endian: Endian) -> Vec<Facts> {
    let mut before: Vec<Option<Facts>> = vec![None; ops.len()];
    if let Some(first) = before.first_mut() {
        *first = Some(Facts::default());
    }
    for (pc, op) in ops.iter().enumerate() {
        let Some(known) = before[pc] else {
            continue;
        };
        let mut flow = |skip: u32, facts: Facts| {
            if let Some(target) = before.get_mut(pc + 1 + skip as usize) {
                *target = Some(target.map_or(facts, |there| there.meet(facts)));
            }
        };
        match *op {
            Some(Op::RetImm(_) | Op::RetA) => {}
            Some(Op::Jump(skip)) => flow(skip, known),
            Some(Op::Branch {
                test,
                operand,
                jt,
                jf,
            }) => {
                flow(u32::from(jt), where_it_holds(known, test, operand));
                flow(u32::from(jf), known);
            }
            Some(op) => flow(0, behind(known, op, endian)),
            None => flow(0, Facts::default()),
        }
    }
    before.into_iter().map(Option::unwrap_or_default).collect()
}

fn where_it_holds(known: Facts, test: Test, operand: Operand) -> Facts {
    match (known.a, test, operand) {
        (Some(Word::ARCH), Test::Eq, Operand::K(audit)) => Facts {
            audit_arch: Some(audit),
            ..known
        },
        _ => known,
    }
}

/// The facts after an instruction with a single successor.
fn behind(known: Facts, op: Op, endian: Endian) -> Facts {
    let a = match op {
        Op::LoadData(offset) => Word::from_offset(offset, endian),
        Op::LoadImm(_) | Op::LoadMem(_) | Op::LoadLen | Op::Alu(..) | Op::Neg | Op::Txa => None,
        _ => known.a,
    };
    Facts { a, ..known }
}
