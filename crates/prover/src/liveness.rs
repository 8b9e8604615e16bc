//! Liveness of registers and scratch slots.

use tamis_bpf::{Op, Operand, Pc, Program};

use crate::misreading::{self, Reading};

/// A set of registers and scratch slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// Register A.
    pub(crate) a: bool,
    /// Register X.
    pub(crate) x: bool,
    /// A bit for each scratch slot.
    pub(crate) slots: u16,
}

const NOTHING: Live = Live {
    a: false,
    x: false,
    slots: 0,
};
const A: Live = Live { a: true, ..NOTHING };
const X: Live = Live { x: true, ..NOTHING };

impl Live {
    const fn slot(slot: u32) -> Live {
        Live {
            slots: 1 << slot,
            ..NOTHING
        }
    }

    const fn and(self, other: Live) -> Live {
        Live {
            a: self.a || other.a,
            x: self.x || other.x,
            slots: self.slots | other.slots,
        }
    }

    const fn without(self, other: Live) -> Live {
        Live {
            a: self.a && !other.a,
            x: self.x && !other.x,
            slots: self.slots & !other.slots,
        }
    }
}

/// The live registers and slots before each instruction, in one sweep up.
pub(crate) fn live_before(program: &Program) -> Vec<Live> {
    let mut live = vec![NOTHING; program.len()];
    for pc in (0..program.len()).rev() {
        let op = misreading::op(Reading::Diagrams, program.op(Pc(pc)));
        let after = |skip: u32| live[pc + 1 + skip as usize];
        let needed_after = match op {
            Op::RetImm(_) | Op::RetA => NOTHING,
            Op::Jump(skip) => after(skip),
            Op::Branch { jt, jf, .. } => after(u32::from(jt)).and(after(u32::from(jf))),
            _ => after(0),
        };
        live[pc] = needed_after.without(written(op)).and(read(op));
    }
    live
}

/// The registers and slots that an instruction reads.
fn read(op: Op) -> Live {
    match op {
        Op::LoadMem(slot) | Op::LoadXMem(slot) => Live::slot(slot),
        Op::Branch { operand, .. } | Op::Alu(_, operand) => match operand {
            Operand::K(_) | Operand::Variable(_) => A,
            Operand::X => A.and(X),
        },
        Op::RetA | Op::Store(_) | Op::Neg | Op::Tax => A,
        Op::StoreX(_) | Op::Txa => X,
        Op::LoadData(_) | Op::LoadImm(_) | Op::LoadLen | Op::LoadXImm(_) | Op::LoadXLen => NOTHING,
        Op::Jump(_) | Op::RetImm(_) => NOTHING,
    }
}

/// The registers and slots that an instruction overwrites.
fn written(op: Op) -> Live {
    match op {
        Op::LoadData(_) | Op::LoadImm(_) | Op::LoadMem(_) | Op::LoadLen => A,
        Op::Alu(..) | Op::Neg | Op::Txa => A,
        Op::LoadXImm(_) | Op::LoadXMem(_) | Op::LoadXLen | Op::Tax => X,
        Op::Store(slot) | Op::StoreX(slot) => Live::slot(slot),
        Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => NOTHING,
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;
    use tamis_bpf::{AluOp, Insn, Test};

    use super::*;

    #[test]
    fn a_value_lives_from_its_definition_to_its_last_use_on_any_path() {
        let branch = Op::Branch {
            test: Test::Eq,
            operand: Operand::X,
            jt: 1,
            jf: 0,
        };
        let ops = [
            Op::LoadData(0),
            Op::Tax,
            Op::Store(3),
            branch,
            Op::LoadMem(3),
            Op::Alu(AluOp::Add, Operand::K(1)),
            Op::RetA,
        ];
        let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
        let slot = Live::slot(3);
        let all = A.and(X).and(slot);
        assert_eq!(
            live_before(&program),
            [NOTHING, A, A.and(X), all, slot, A, A]
        );
    }
}
