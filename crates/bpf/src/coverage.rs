//! Coverage: the instructions and the sides of branches reached by a set of inputs.

use std::collections::BTreeSet;

use tamis_abi::SeccompData;

use crate::insn::{Insn, Op};
use crate::interp::{self, Execution};
use crate::program::{Pc, Program};

/// The places in one program that the inputs so far have reached.
#[derive(Clone, Debug)]
pub struct Coverage<'a> {
    program: &'a Program,
    is_executed: Vec<bool>,
    /// Pairs of instructions executed one after the other.
    edges: BTreeSet<(Pc, Pc)>,
}

impl<'a> Coverage<'a> {
    /// Nothing reached yet.
    pub fn new(program: &'a Program) -> Coverage<'a> {
        Coverage {
            program,
            is_executed: vec![false; program.len()],
            edges: BTreeSet::new(),
        }
    }

    /// Runs the program on a call and records the reached places.
    pub fn add(&mut self, call: &SeccompData) -> Execution {
        let mut previous = None;
        interp::run_traced(self.program, call, &mut |pc| {
            self.is_executed[pc.0] = true;
            if let Some(from) = previous.replace(pc) {
                self.edges.insert((from, pc));
            }
        })
    }

    /// The instructions that no input has reached, ascending.
    pub fn unexecuted(&self) -> impl Iterator<Item = Pc> {
        let all = self.is_executed.iter().enumerate();
        all.filter(|(_, executed)| !**executed)
            .map(|(pc, _)| Pc(pc))
    }

    /// The branches and the outcomes that no input has shown, ascending; those of a branch that was
    /// never reached are among them. A branch with equal targets has none ([`Op::is_fork`]).
    pub fn unseen_outcomes(&self) -> impl Iterator<Item = (Pc, bool)> {
        let insns = self.program.insns().iter().enumerate();
        insns.flat_map(move |(pc, insn)| {
            let unseen = outcomes(*insn).into_iter().flatten();
            unseen
                .filter(move |(_, skip)| {
                    let edge = (Pc(pc), Pc(pc + 1 + usize::from(*skip)));
                    !self.edges.contains(&edge)
                })
                .map(move |(outcome, _)| (Pc(pc), outcome))
        })
    }
}

/// The outcomes of a fork with their displacements.
fn outcomes(insn: Insn) -> Option<[(bool, u8); 2]> {
    match insn.op() {
        Some(Op::Branch { jt, jf, .. }) if jt != jf => Some([(true, jt), (false, jf)]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;

    use super::*;
    use crate::insn::Test;

    #[test]
    fn reached_instructions_and_outcomes_disappear_from_the_lists() {
        let branch = Op::branch(Test::Eq, 5, 1, 0);
        let ops = [Op::LoadData(0), branch, Op::RetImm(0), Op::RetImm(1)];
        let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
        let call = |nr| SeccompData {
            nr,
            ..SeccompData::default()
        };
        let mut coverage = Coverage::new(&program);
        assert_eq!(coverage.unseen_outcomes().count(), 2);

        assert_eq!(coverage.add(&call(5)).ret, 1);
        assert_eq!(coverage.unexecuted().collect::<Vec<_>>(), [Pc(2)]);
        assert_eq!(
            coverage.unseen_outcomes().collect::<Vec<_>>(),
            [(Pc(1), false)]
        );

        assert_eq!(coverage.add(&call(6)).ret, 0);
        assert_eq!(coverage.unexecuted().count(), 0);
        assert_eq!(coverage.unseen_outcomes().count(), 0);
    }

    #[test]
    fn a_branch_with_equal_targets_has_no_outcomes() {
        let ops = [
            Op::LoadData(0),
            Op::branch(Test::Eq, 5, 0, 0),
            Op::RetImm(0),
        ];
        let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
        assert_eq!(Coverage::new(&program).unseen_outcomes().count(), 0);
    }
}
