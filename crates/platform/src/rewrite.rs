//! Filters with other actions.
//!
//! A platform whose mechanism isn't user notification installs the guest's filter with another action in place of
//! `notify`. Everything else stays unchanged, including the targets of jumps: a `ret A` becomes a jump to an end that
//! checks A.

use tamis_abi::{Action, ActionKind};
use tamis_bpf::{AluOp, Op, Operand, Program, Test};
use tamis_kernel::NATIVE_ENDIAN;

use crate::error::Unsupported;

/// The actions that filters return in place of others; the data of the replaced action is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewrite {
    /// In place of `notify`.
    pub(crate) notify: Action,
    /// In place of `trace`.
    pub(crate) trace: Action,
    /// In place of the actions that execute a call, if they change.
    pub(crate) executes: Option<Action>,
    /// In place of killing the thread, if that changes.
    pub(crate) kills_thread: Option<Action>,
}

impl Rewrite {
    /// The filter with these actions, after these instructions, which must not end in the middle of a path.
    ///
    /// # Errors
    /// The result is too long, or the filter is for machines of the other byte order.
    pub(crate) fn apply(&self, program: &Program, prefix: &[Op]) -> Result<Program, Unsupported> {
        if program.endian() != NATIVE_ENDIAN {
            return Err(Unsupported::new("a filter of the other byte order"));
        }
        let mut ops = prefix.to_vec();
        let end = prefix.len() + program.len();
        let mut has_end = false;
        for op in program.ops() {
            let here = ops.len();
            ops.push(match op {
                Op::RetImm(ret) => Op::RetImm(self.rewritten(ret)),
                Op::RetA => {
                    has_end = true;
                    Op::Jump((end - here - 1) as u32)
                }
                other => other,
            });
        }
        if has_end {
            ops.extend(self.end());
        }
        let insns = ops.into_iter().map(Into::into).collect();
        match Program::new(insns, program.endian()) {
            Ok(rewritten) if rewritten.is_installable() => Ok(rewritten),
            _ => Err(Unsupported::new("a filter as long as this one")),
        }
    }

    /// The new return value for a return value.
    fn rewritten(&self, ret: u32) -> u32 {
        let action = self.instead_of(Action::from_ret(ret).kind);
        action.map_or(ret, Action::ret)
    }

    fn instead_of(&self, kind: ActionKind) -> Option<Action> {
        match kind {
            ActionKind::Notify => Some(self.notify),
            ActionKind::Trace => Some(self.trace),
            ActionKind::Allow | ActionKind::Log => self.executes,
            ActionKind::KillThread => self.kills_thread,
            _ => None,
        }
    }

    /// Returns the action for the value in A.
    fn end(&self) -> Vec<Op> {
        const ACTION: u32 = 0xffff_0000;
        let mut ops = vec![Op::Store(0), Op::Alu(AluOp::And, Operand::K(ACTION))];
        for kind in ActionKind::ALL {
            if let Some(action) = self.instead_of(kind) {
                ops.push(Op::branch(Test::Eq, kind.ret(), 0, 1));
                ops.push(Op::RetImm(action.ret()));
            }
        }
        ops.extend([Op::LoadMem(0), Op::RetA]);
        ops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::{Endian, SeccompData};
    use tamis_bpf::interp;

    const REWRITE: Rewrite = Rewrite {
        notify: Action::new(ActionKind::Trap, 7),
        trace: Action::errno(38),
        executes: None,
        kills_thread: None,
    };

    fn program(ops: &[Op]) -> Program {
        Program::new(
            ops.iter().copied().map(Into::into).collect(),
            Endian::Little,
        )
        .unwrap()
    }

    #[test]
    fn only_two_actions_change() {
        // Returns its first argument, either way.
        let by_accumulator = program(&[Op::LoadData(16), Op::Tax, Op::Txa, Op::RetA]);
        let by_accumulator = REWRITE.apply(&by_accumulator, &[]).unwrap();
        for kind in ActionKind::ALL {
            let ret = Action::new(kind, 3).ret();
            let expected = match kind {
                ActionKind::Notify => REWRITE.notify.ret(),
                ActionKind::Trace => REWRITE.trace.ret(),
                _ => ret,
            };
            let constant = program(&[
                Op::LoadImm(0),
                Op::branch(Test::Eq, 0, 0, 1),
                Op::RetImm(ret),
                Op::RetImm(0),
            ]);
            let prefix = [Op::LoadImm(5)];
            let constant = REWRITE.apply(&constant, &prefix).unwrap();
            let call = SeccompData {
                args: [u64::from(ret); 6],
                ..SeccompData::default()
            };
            assert_eq!(interp::run(&constant, &call).ret, expected);
            assert_eq!(interp::run(&by_accumulator, &call).ret, expected);
        }
    }

    #[test]
    fn a_filter_without_room_is_refused() {
        let full = program(&vec![Op::RetImm(0); 4096]);
        assert!(REWRITE.apply(&full, &[]).is_ok());
        assert!(REWRITE.apply(&full, &[Op::LoadImm(0)]).is_err());
    }
}
