//! The symbolic states of a program: the instructions run in each, and its successors.

use tamis_bpf::{Pc, Program};

use crate::code::Code;
use crate::diagram::LimitReached;
use crate::explore::{Next, Step, explore};
use crate::space::{Function, Space};
use crate::word_test::masked_test;

/// The instructions that a program runs in one symbolic state, up to the next branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolicBlock {
    /// The first instruction.
    pub first: Pc,
    /// The instruction at which it forks, meets another block or ends.
    pub last: Pc,
    /// The successor.
    pub successor: Successor,
}

/// The next block, by its index in the list; `None` if the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Successor {
    /// The same for every input.
    Always(Option<usize>),
    /// It depends on the input.
    Fork {
        /// The condition.
        condition: Function,
        /// The successor if it holds.
        yes: Option<usize>,
        /// The successor if it doesn't hold.
        no: Option<usize>,
    },
}

impl Space {
    /// The blocks of all states of a program, including those on paths with contradictory comparisons of two words.
    /// The first block is the entry; successors of a block come later in the list.
    ///
    /// # Errors
    /// If the space is full.
    pub fn symbolic_blocks(
        &mut self,
        program: &Program,
    ) -> Result<Vec<SymbolicBlock>, LimitReached> {
        let exploration = explore(self, Code::Program(program))?;
        let mut places = vec![0; exploration.visits.len()];
        for (place, visit) in exploration.visits.iter().enumerate() {
            places[visit.state.0] = place;
        }
        let place = |next: Next| match next {
            Next::State(state) => Some(places[state.0]),
            Next::End(_) => None,
        };
        let mut blocks = Vec::with_capacity(exploration.visits.len());
        for visit in &exploration.visits {
            let fork = |condition, yes, no| Successor::Fork {
                condition: Function(condition),
                yes: place(yes),
                no: place(no),
            };
            let successor = match visit.step {
                Step::Goto(next) => Successor::Always(place(next)),
                Step::Compare {
                    word,
                    mask,
                    test,
                    k,
                    yes,
                    no,
                } => {
                    let condition = masked_test(&mut self.diagram, word, mask, test, k)?;
                    fork(condition, yes, no)
                }
                Step::Fork { condition, yes, no } => fork(condition, yes, no),
            };
            blocks.push(SymbolicBlock {
                first: visit.first,
                last: visit.last,
                successor,
            });
        }
        Ok(blocks)
    }
}
