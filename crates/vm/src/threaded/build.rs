//! From instructions to steps, the last one first: every jump goes forward.

use std::sync::Arc;

use tamis_bpf::packet::{Load, Size};
use tamis_bpf::{AluOp, Operand, Operation, Test};

use super::handlers::{self, Byte, Eq, Ge, Gt, Half, IndexedHalf, Keep, SetBits, Word, WordOfCall};
use super::{Handler, Link, Machine, Seccomp, Sockets, Step};

/// What differs between the machines.
pub(super) trait Build: Machine {
    /// The place of a load for which there are functions of its own.
    fn place(load: Self::Load) -> Option<u32>;

    /// The function of such a load.
    fn load_handler(load: Self::Load) -> Handler<Self>;

    /// The function of such a load, a mask, and a test with a constant.
    fn test_handler(load: Self::Load, test: Test) -> Handler<Self>;
}

impl Build for Seccomp {
    fn place(offset: u32) -> Option<u32> {
        Some(offset / 4)
    }

    fn load_handler(_: u32) -> Handler<Seccomp> {
        handlers::load::<Seccomp, WordOfCall>
    }

    fn test_handler(_: u32, test: Test) -> Handler<Seccomp> {
        tested::<Seccomp, WordOfCall>(test)
    }
}

/// The offsets that a packet's bytes can have; what lies behind isn't counted from the packet's start.
const MAX_PLACE: u32 = i32::MAX as u32;

impl Build for Sockets {
    fn place(load: Load) -> Option<u32> {
        match load {
            Load::Absolute(_, k) => (k <= MAX_PLACE).then_some(k),
            Load::Indexed(Size::Half, k) => (k <= MAX_PLACE).then_some(k),
            Load::Indexed(..) | Load::Ancillary(..) => None,
        }
    }

    fn load_handler(load: Load) -> Handler<Sockets> {
        match load {
            Load::Absolute(Size::Byte, _) => handlers::load::<Sockets, Byte>,
            Load::Absolute(Size::Half, _) => handlers::load::<Sockets, Half>,
            Load::Absolute(Size::Word, _) => handlers::load::<Sockets, Word>,
            Load::Indexed(Size::Half, _) => handlers::load::<Sockets, IndexedHalf>,
            Load::Indexed(..) | Load::Ancillary(..) => handlers::any::<Sockets>,
        }
    }

    fn test_handler(load: Load, test: Test) -> Handler<Sockets> {
        match load {
            Load::Absolute(Size::Byte, _) => tested::<Sockets, Byte>(test),
            Load::Absolute(Size::Half, _) => tested::<Sockets, Half>(test),
            Load::Indexed(..) => tested::<Sockets, IndexedHalf>(test),
            Load::Absolute(..) | Load::Ancillary(..) => tested::<Sockets, Word>(test),
        }
    }
}

/// The function of a load by `F`, a mask, and a test with a constant.
fn tested<M: Machine, F: handlers::Fetch<M>>(test: Test) -> Handler<M> {
    match test {
        Test::Eq => handlers::test::<M, F, Eq>,
        Test::Gt => handlers::test::<M, F, Gt>,
        Test::Ge => handlers::test::<M, F, Ge>,
        Test::Set => handlers::test::<M, F, SetBits>,
    }
}

/// The step of each instruction of a valid program.
pub(super) fn steps<M: Build>(ops: &[Operation<M::Load, M::Extra>]) -> Vec<Arc<Step<M>>> {
    let mut builder = Builder {
        ops,
        behind: Vec::with_capacity(ops.len()),
    };
    for pc in (0..ops.len()).rev() {
        let step = builder.step(pc);
        builder.behind.push(step);
    }
    builder.behind.reverse();
    builder.behind
}

struct Builder<'o, M: Machine> {
    ops: &'o [Operation<M::Load, M::Extra>],
    /// The steps of the later instructions, the last one first.
    behind: Vec<Arc<Step<M>>>,
}

impl<M: Build> Builder<'_, M> {
    /// The step that follows `skip` instructions behind `pc`.
    fn at(&self, pc: usize, skip: usize) -> Link<M> {
        let target = pc + 1 + skip;
        let from_end = self.ops.len().checked_sub(target + 1)?;
        self.behind.get(from_end).cloned()
    }

    fn step(&self, pc: usize) -> Arc<Step<M>> {
        let op = self.ops[pc];
        match op {
            Operation::Jump(skip) => {
                if let Some(target) = self.at(pc, skip as usize) {
                    return target;
                }
            }
            Operation::LoadData(load) => return Arc::new(self.load(pc, load)),
            _ => {}
        }
        Arc::new(self.single(pc, op))
    }

    /// An instruction alone.
    fn single(&self, pc: usize, op: Operation<M::Load, M::Extra>) -> Step<M> {
        let straight = |handler: Handler<M>, k: u32| Step {
            handler,
            no: self.at(pc, 0),
            yes: None,
            k,
            place: 0,
            mask: u32::MAX,
            op,
        };
        match op {
            Operation::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                let (handler, k) = match operand {
                    Operand::K(k) => (tested::<M, Keep>(test), k),
                    Operand::X | Operand::Variable(_) => {
                        (handlers::branch_any::<M> as Handler<M>, 0)
                    }
                };
                Step {
                    no: self.at(pc, usize::from(jf)),
                    yes: self.at(pc, usize::from(jt)),
                    ..straight(handler, k)
                }
            }
            Operation::RetImm(k) => straight(handlers::ret::<M>, k),
            Operation::RetA => straight(handlers::ret_a::<M>, 0),
            Operation::Alu(AluOp::And, Operand::K(k)) => straight(handlers::and::<M>, k),
            Operation::Alu(AluOp::Sub, Operand::X) => straight(handlers::sub_x::<M>, 0),
            Operation::Alu(AluOp::Lsh, Operand::K(k)) => straight(handlers::shift_left::<M>, k),
            Operation::Alu(AluOp::Rsh, Operand::K(k)) => straight(handlers::shift_right::<M>, k),
            Operation::Tax => straight(handlers::tax::<M>, 0),
            _ => straight(handlers::any::<M>, 0),
        }
    }

    /// A load, with the mask and the test behind it if there is one.
    fn load(&self, pc: usize, load: M::Load) -> Step<M> {
        let op = self.ops[pc];
        let Some(place) = M::place(load) else {
            return self.single(pc, op);
        };
        let (mask, mut next) = match self.ops.get(pc + 1) {
            Some(Operation::Alu(AluOp::And, Operand::K(mask))) => (*mask, pc + 2),
            _ => (u32::MAX, pc + 1),
        };
        if let Some(Operation::Jump(skip)) = self.ops.get(next) {
            next += 1 + *skip as usize;
        }
        if let Some(Operation::Branch {
            test,
            operand: Operand::K(k),
            jt,
            jf,
        }) = self.ops.get(next)
        {
            return Step {
                handler: M::test_handler(load, *test),
                no: self.at(next, usize::from(*jf)),
                yes: self.at(next, usize::from(*jt)),
                k: *k,
                place,
                mask,
                op,
            };
        }
        Step {
            handler: M::load_handler(load),
            place,
            ..self.single(pc, op)
        }
    }
}
