//! The meaning of a stack: several filters on one task.
//!
//! The kernel runs the filters from the newest to the oldest and keeps a return value if its action,
//! as a signed number, is smaller than that of the value kept so far; it starts with ALLOW
//! (`seccomp_run_filters` in `kernel/seccomp.c`).

use tamis_abi::Action;

use crate::diagram::{LimitReached, Tag};
use crate::misreading::{self, Reading, Rule};
use crate::space::{Function, Space};

impl Space {
    /// The function of a stack of filters, given from the oldest to the newest.
    ///
    /// # Errors
    /// If the space is full.
    pub fn stack(&mut self, oldest_first: &[Function]) -> Result<Function, LimitReached> {
        let mut kept = self.diagram.leaf(Action::ALLOW.ret())?;
        for older in oldest_first.iter().rev() {
            kept = self
                .diagram
                .choose_pointwise(Tag::Precedence, is_kept, kept, older.0)?;
        }
        Ok(Function(kept))
    }
}

/// Whether a value is kept over that of an older filter.
fn is_kept(kept: u32, older: u32) -> bool {
    const ACTION: u32 = 0xffff_0000;
    let misreads = |rule| misreading::has(Reading::Diagrams, rule);
    if misreads(Rule::StackOrder) {
        return older & ACTION >= kept & ACTION;
    }
    if misreads(Rule::StackData) {
        return older.cast_signed() >= kept.cast_signed();
    }
    let is_replaced_by_equal =
        misreads(Rule::StackTies) || misreads(Rule::StackAllow) && kept == Action::ALLOW.ret();
    if is_replaced_by_equal && Action::precedence(older) == Action::precedence(kept) {
        return false;
    }
    Action::precedence(older) >= Action::precedence(kept)
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Endian, SeccompData, Word};
    use tamis_bpf::{Insn, Op, Program, Stack};

    use super::*;
    use crate::Limits;

    /// Filters that return one value for number 0 and another for the rest.
    fn filters() -> Vec<Program> {
        const RETS: [u32; 6] = [
            0x7fff_0000,
            0x0005_0001,
            0x0005_0002,
            0x8000_0000,
            0,
            0x1234_5678,
        ];
        let jump_if_zero = Op::Branch {
            test: tamis_bpf::Test::Eq,
            operand: tamis_bpf::Operand::K(0),
            jt: 0,
            jf: 1,
        };
        let filter = |zero, rest| {
            let ops = [
                Op::LoadData(0),
                jump_if_zero,
                Op::RetImm(zero),
                Op::RetImm(rest),
            ];
            Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap()
        };
        let pairs = RETS.iter().flat_map(|zero| RETS.map(|rest| (*zero, rest)));
        pairs.map(|(zero, rest)| filter(zero, rest)).collect()
    }

    #[test]
    fn precedence_and_data_are_those_of_the_stack() {
        let filters = filters();
        let mut space = Space::new(Limits::default());
        let functions: Vec<Function> = filters
            .iter()
            .map(|filter| space.program(filter).unwrap())
            .collect();
        for (older, older_function) in filters.iter().zip(&functions) {
            for (newer, newer_function) in filters.iter().zip(&functions) {
                let stack = Stack::new(vec![older.clone(), newer.clone()]).unwrap();
                let function = space.stack(&[*older_function, *newer_function]).unwrap();
                for nr in [0, 1] {
                    let data = SeccompData::default().with_word(Word::NR, nr);
                    let expected = stack.run(&data).ret;
                    assert_eq!(space.value(function, &data.into()), expected);
                }
            }
        }
        assert_eq!(space.stack(&[]), space.constant(Action::ALLOW.ret()));
    }
}
