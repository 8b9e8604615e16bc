//! What is known at each point of a program: the dataflow that bytecode passes share.
//!
//! A program never jumps back, so each block runs at most once per input, and every value that a
//! register holds has an identity of its own: a [`Value`](value::Value). [`Flow`] finds for each block
//! what A, X and scratch memory hold when it is entered, and which [`Fact`](fact::Fact)s the tests
//! passed so far have established about those values; where paths meet, what they don't agree on is
//! forgotten. [`Live`](live::Live) looks the other way: which places are still read.
//!
//! The flow of a graph stays true for a block as long as nothing before that block is changed, which is
//! why passes that change edges go from the end of the program to its beginning.

pub(crate) mod fact;
pub(crate) mod live;
pub(crate) mod state;
pub(crate) mod value;

use tamis_bpf::cfg::{BlockId, Cfg, End};

use self::state::State;
use self::value::Values;

/// What is known on entry to each block of a graph.
#[derive(Debug)]
pub(crate) struct Flow {
    /// The values that states name.
    pub(crate) values: Values,
    entries: Vec<Option<State>>,
    /// For each block, what is known on both sides of the branch with which it ends.
    sides: Vec<[Option<State>; 2]>,
}

impl Flow {
    /// The flow of a graph. Linear time for programs that use a bounded number of scratch words: there
    /// are sixteen.
    pub(crate) fn of(graph: &Cfg) -> Flow {
        let mut flow = Flow {
            values: Values::new(),
            entries: vec![None; graph.len()],
            sides: vec![[None, None]; graph.len()],
        };
        let entry = State::at_start(graph, &mut flow.values);
        flow.entries[graph.entry().index()] = Some(entry);
        for id in graph.reverse_postorder() {
            let Some(state) = flow.at_end(graph, id) else {
                continue;
            };
            match graph.block(id).end {
                End::Ret(_) | End::RetA => {}
                End::Goto(next) => flow.arrive(next, state),
                End::Branch {
                    test,
                    operand,
                    yes,
                    no,
                } => {
                    let sides = state.sides(test, operand, &mut flow.values);
                    for (next, side) in [yes, no].into_iter().zip(&sides) {
                        if let Some(state) = side {
                            flow.arrive(next, state.clone());
                        }
                    }
                    flow.sides[id.index()] = sides;
                }
            }
        }
        flow
    }

    /// What is known on entry to a block; `None` if no input leads there.
    pub(crate) fn entry(&self, id: BlockId) -> Option<&State> {
        self.entries[id.index()].as_ref()
    }

    /// What is known after the last instruction of a block, before its end.
    pub(crate) fn at_end(&mut self, graph: &Cfg, id: BlockId) -> Option<State> {
        let mut state = self.entries[id.index()].clone()?;
        for op in &graph.block(id).ops {
            state.step(*op, &mut self.values);
        }
        Some(state)
    }

    /// What is known on one side of the branch with which a block ends; `None` if no input goes that way.
    pub(crate) fn along(&self, id: BlockId, holds: bool) -> Option<&State> {
        let [yes, no] = &self.sides[id.index()];
        if holds { yes.as_ref() } else { no.as_ref() }
    }

    fn arrive(&mut self, next: BlockId, state: State) {
        let values = &mut self.values;
        match &mut self.entries[next.index()] {
            Some(known) => known.meet(&state, next, values),
            unknown => *unknown = Some(state),
        }
    }
}
