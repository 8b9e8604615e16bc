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
            Op::LoadData(_) | Op::LoadImm(_) | Op::LoadLen => Live {
                a: false,
                ..after(0)
            },
            Op::LoadMem(slot) => {
                let live = after(0);
                Live {
                    a: false,
                    slots: live.slots | 1 << slot,
                    ..live
                }
            }
            Op::LoadXImm(_) | Op::LoadXLen => Live {
                x: false,
                ..after(0)
            },
            Op::LoadXMem(slot) => {
                let live = after(0);
                Live {
                    x: false,
                    slots: live.slots | 1 << slot,
                    ..live
                }
            }
            Op::Store(slot) => {
                let live = after(0);
                Live {
                    a: true,
                    slots: live.slots & !(1 << slot),
                    ..live
                }
            }
            Op::StoreX(slot) => {
                let live = after(0);
                Live {
                    x: true,
                    slots: live.slots & !(1 << slot),
                    ..live
                }
            }
            Op::Alu(_, operand) => {
                let live = after(0);
                Live {
                    a: true,
                    x: live.x || operand == Operand::X,
                    ..live
                }
            }
            Op::Neg => Live {
                a: true,
                ..after(0)
            },
            Op::Tax => {
                let live = after(0);
                Live {
                    a: true,
                    x: false,
                    ..live
                }
            }
            Op::Txa => {
                let live = after(0);
                Live {
                    a: false,
                    x: true,
                    ..live
                }
            }
        };
    }
    live
}
