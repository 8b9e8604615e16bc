//! The symbolic states of a program from outside: what is run in each of them, and where it leads.

use tamis_bpf::{Pc, Program};

use crate::code::Code;
use crate::diagram::LimitReached;
use crate::explore::{Next, Step, explore};
use crate::space::{Function, Space};
use crate::word_test::masked_test;

/// What a program runs in one symbolic state, up to the next choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolicBlock {
    /// Where it is entered.
    pub first: Pc,
    /// The instruction at which it forks, meets another block or ends.
    pub last: Pc,
    /// What comes next.
    pub successor: Successor,
}

/// Which block comes next, by its place in the list; `None` where the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Successor {
    /// The same for every input.
    Always(Option<usize>),
    /// That depends on the input.
    Fork {
        /// The condition.
        condition: Function,
        /// Where it holds.
        yes: Option<usize>,
        /// Where it doesn't.
        no: Option<usize>,
    },
}

impl Space {
    /// What a program runs in each state that it can be in, by paths that compare words with each other in
    /// contradicting ways too. It begins with the first; every block leads to later ones only.
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
