//! Reachability of the instructions and branch outcomes of a program.
//!
//! A sweep down the program's states computes the condition under which each is reached. An instruction without a
//! reachable state is never executed. Contradictory comparisons of two words count as possible, so all reported
//! code is really dead.

use std::collections::BTreeSet;

use tamis_bpf::{Op, Pc, Program};
use tamis_prover::{Function, LimitReached, Space, Successor, SymbolicBlock};

/// The dead code of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadCode {
    /// Instructions that are never executed, ascending.
    pub unexecuted: Vec<Pc>,
    /// Branches with two targets that are executed and always have the same outcome, ascending: whether the test
    /// always holds.
    pub one_way: Vec<(Pc, bool)>,
}

/// The dead code of a program.
///
/// # Errors
/// If the space is full.
pub fn dead_code(space: &mut Space, program: &Program) -> Result<DeadCode, LimitReached> {
    let blocks = space.symbolic_blocks(program)?;
    let mut sweep = Sweep::new(program, &blocks);
    for (place, block) in blocks.iter().enumerate() {
        if sweep.reached[place] != Function::FALSE {
            sweep.see(space, place, block)?;
        }
    }
    Ok(sweep.dead_code())
}

struct Sweep<'a> {
    program: &'a Program,
    blocks: &'a [SymbolicBlock],
    /// The condition under which each block is reached, so far.
    reached: Vec<Function>,
    executed: BTreeSet<Pc>,
    /// Branches with the outcomes found so far.
    outcomes: BTreeSet<(Pc, bool)>,
}

impl<'a> Sweep<'a> {
    fn new(program: &'a Program, blocks: &'a [SymbolicBlock]) -> Sweep<'a> {
        let mut reached = vec![Function::FALSE; blocks.len()];
        if let Some(first) = reached.first_mut() {
            *first = Function::TRUE;
        }
        Sweep {
            program,
            blocks,
            reached,
            executed: BTreeSet::new(),
            outcomes: BTreeSet::new(),
        }
    }

    /// Continues from a reached block.
    fn see(
        &mut self,
        space: &mut Space,
        place: usize,
        block: &SymbolicBlock,
    ) -> Result<(), LimitReached> {
        let mut pc = block.first;
        self.executed.insert(pc);
        while pc != block.last {
            pc = match self.program.op(pc) {
                Op::Jump(skip) => Pc(pc.0 + 1 + skip as usize),
                _ => Pc(pc.0 + 1),
            };
            self.executed.insert(pc);
        }
        let reached = self.reached[place];
        let (condition, yes, no) = match block.successor {
            Successor::Always(None) => return Ok(()),
            Successor::Always(Some(next)) => {
                self.outcome(pc, next);
                return self.arrive(space, next, reached);
            }
            Successor::Fork { condition, yes, no } => (condition, yes, no),
        };
        let holds = space.choose(condition, reached, Function::FALSE)?;
        let fails = space.choose(condition, Function::FALSE, reached)?;
        for (when, next, outcome) in [(holds, yes, true), (fails, no, false)] {
            if when == Function::FALSE {
                continue;
            }
            if self.program.op(pc).is_fork() {
                self.outcomes.insert((pc, outcome));
            }
            if let Some(next) = next {
                self.arrive(space, next, when)?;
            }
        }
        Ok(())
    }

    /// Records the outcome of a branch whose test needs no input.
    fn outcome(&mut self, pc: Pc, next: usize) {
        if let Op::Branch { jt, jf, .. } = self.program.op(pc)
            && jt != jf
        {
            let holds = self.blocks[next].first.0 == pc.0 + 1 + usize::from(jt);
            self.outcomes.insert((pc, holds));
        }
    }

    fn arrive(&mut self, space: &mut Space, at: usize, when: Function) -> Result<(), LimitReached> {
        let reached = self.reached[at];
        self.reached[at] = space.choose(when, Function::TRUE, reached)?;
        Ok(())
    }

    fn dead_code(self) -> DeadCode {
        let all = (0..self.program.len()).map(Pc);
        let unexecuted = all.filter(|pc| !self.executed.contains(pc)).collect();
        let is_one_way = |(pc, outcome): &(Pc, bool)| !self.outcomes.contains(&(*pc, !outcome));
        DeadCode {
            unexecuted,
            one_way: self.outcomes.iter().copied().filter(is_one_way).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;
    use tamis_bpf::Test;
    use tamis_prover::Limits;

    use super::*;

    fn dead_code_of(ops: &[Op]) -> DeadCode {
        let program = Program::from_ops(ops, Endian::Little).unwrap();
        let mut space = Space::new(Limits::default());
        dead_code(&mut space, &program).unwrap()
    }
    #[test]
    fn a_value_that_was_tested_before_is_not_found_again() {
        let found = dead_code_of(&[
            Op::LoadData(0),
            Op::branch(Test::Ge, 10, 3, 0),
            Op::branch(Test::Eq, 9, 2, 0),
            Op::branch(Test::Eq, 11, 0, 2),
            Op::RetImm(1),
            Op::RetImm(2),
            Op::RetImm(3),
        ]);
        assert_eq!(found.unexecuted, [Pc(4)]);
        assert_eq!(found.one_way, [(Pc(3), false)]);
    }

    #[test]
    fn what_a_constant_decides_and_what_is_jumped_over() {
        let found = dead_code_of(&[
            Op::LoadImm(5),
            Op::branch(Test::Eq, 5, 1, 0),
            Op::RetImm(1),
            Op::Jump(1),
            Op::RetImm(2),
            Op::RetImm(3),
        ]);
        assert_eq!(found.unexecuted, [Pc(2), Pc(4)]);
        assert_eq!(found.one_way, [(Pc(1), true)]);
    }

    #[test]
    fn nothing_is_dead_where_every_way_is_taken() {
        let found = dead_code_of(&[
            Op::LoadData(0),
            Op::branch(Test::Gt, 5, 0, 1),
            Op::RetImm(1),
            Op::RetImm(2),
        ]);
        assert_eq!(found, DeadCode::default());
    }
}
