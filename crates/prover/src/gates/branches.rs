//! The possible outcomes of a program's branches, as translated to gates.
//!
//! The sweep down a program computes for each branch the conditions that it is reached and its test fails or holds.
//! They are all in one circuit, so one search decides whether any of a set of outcomes is possible.

use std::collections::BTreeMap;

use tamis_abi::SeccompData;
use tamis_bpf::{Pc, Program};

use super::graph::{Gate, Gates};
use super::{program, solve};
use crate::code::Code;
use crate::diagram::LimitReached;
use crate::space::Limits;
use crate::stop::Stop;

/// The outcomes of all branches of a program, as gates.
pub struct Branches {
    gates: Gates,
    /// The conditions that a branch is reached and its test fails or holds.
    conditions: BTreeMap<(Pc, bool), Gate>,
    max_conflicts: u64,
    stop: Stop,
}

impl Branches {
    /// The branches of a program.
    ///
    /// # Errors
    /// If there are too many gates, or the caller stops.
    pub fn from_program(
        program: &Program,
        limits: &Limits,
        stop: &Stop,
    ) -> Result<Branches, LimitReached> {
        let mut gates = Gates::new(limits.max_gates, stop.clone());
        let mut conditions = BTreeMap::new();
        let mut note = |pc, [fails, holds]: [Gate; 2]| {
            conditions.insert((pc, false), fails);
            conditions.insert((pc, true), holds);
        };
        program::returned(&mut gates, Code::Program(program), &mut note)?;
        Ok(Branches {
            gates,
            conditions,
            max_conflicts: limits.max_conflicts,
            stop: stop.clone(),
        })
    }

    /// An input for which at least one of these branches has the given outcome; `None` if there is none. The input
    /// is not confirmed by running the program.
    ///
    /// # Errors
    /// If the solver reaches its limit, or the caller stops.
    pub fn input_for_any(
        &mut self,
        outcomes: impl IntoIterator<Item = (Pc, bool)>,
    ) -> Result<Option<SeccompData>, LimitReached> {
        let mut any = Gate::FALSE;
        for outcome in outcomes {
            // Outcomes not found in the sweep are unreachable.
            let condition = self.conditions.get(&outcome).copied();
            any = self.gates.or(any, condition.unwrap_or(Gate::FALSE))?;
        }
        let input = solve::input_for(&self.gates, any, self.max_conflicts, &self.stop)?;
        Ok(input.map(|input| input.data))
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;
    use tamis_bpf::{Op, Test};

    use super::*;

    #[test]
    fn an_outcome_behind_a_contradiction_has_no_input() {
        let ops = [
            Op::LoadData(16),
            Op::branch(Test::Ge, 10, 0, 1),
            Op::branch(Test::Gt, 8, 0, 0),
            Op::RetImm(7),
        ];
        let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
        let (limits, stop) = (Limits::default(), Stop::default());
        let mut branches = Branches::from_program(&program, &limits, &stop).unwrap();
        assert_eq!(branches.input_for_any([(Pc(2), false)]), Ok(None));
        let outcomes = [(Pc(2), false), (Pc(2), true)];
        let input = branches.input_for_any(outcomes).unwrap().unwrap();
        assert!(input.args[0] as u32 >= 10, "{input:x?}");
    }
}
