//! Which registers and scratch slots an instruction may still need.

use tamis_bpf::{Op, Operand, Pc, Program};

/// What may still be read from some instruction on.
#[derive(Clone, Copy, Default)]
pub(crate) struct Live {
    /// Register A.
    pub(crate) a: bool,
    /// Register X.
    pub(crate) x: bool,
    /// A bit for each scratch slot.
    pub(crate) slots: u16,
}

/// What may be read from each instruction on, in one sweep up.
pub(crate) fn live_before(program: &Program) -> Vec<Live> {
    let mut live = vec![Live::default(); program.len()];
    for pc in (0..program.len()).rev() {
        let after = |skip: u32| live[pc + 1 + skip as usize];
        live[pc] = match program.op(Pc(pc)) {
            Op::RetImm(_) => Live::default(),
            Op::RetA => Live {
                a: true,
                ..Live::default()
            },
            Op::Jump(skip) => after(skip),
            Op::Branch {
                operand, jt, jf, ..
            } => {
                let (yes, no) = (after(u32::from(jt)), after(u32::from(jf)));
                Live {
                    a: true,
                    x: operand == Operand::X || yes.x || no.x,
                    slots: yes.slots | no.slots,
                }
            }
            op => live_before_straight(op, after(0)),
        };
    }
    live
}

/// What may be read from an instruction on that only goes on to the next, given what may be read from
/// there on.
fn live_before_straight(op: Op, mut live: Live) -> Live {
    match op {
        Op::LoadData(_) | Op::LoadImm(_) | Op::LoadLen => live.a = false,
        Op::LoadXImm(_) | Op::LoadXLen => live.x = false,
        Op::LoadMem(slot) => {
            live.a = false;
            live.slots |= 1 << slot;
        }
        Op::LoadXMem(slot) => {
            live.x = false;
            live.slots |= 1 << slot;
        }
        Op::Store(slot) => {
            live.a = true;
            live.slots &= !(1 << slot);
        }
        Op::StoreX(slot) => {
            live.x = true;
            live.slots &= !(1 << slot);
        }
        Op::Alu(_, operand) => {
            live.a = true;
            live.x |= operand == Operand::X;
        }
        Op::Neg => live.a = true,
        Op::Tax => {
            live.a = true;
            live.x = false;
        }
        Op::Txa => {
            live.a = false;
            live.x = true;
        }
        Op::RetImm(_) | Op::RetA | Op::Jump(_) | Op::Branch { .. } => {
            unreachable!("these end or jump")
        }
    }
    live
}
