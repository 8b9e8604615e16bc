//! Remainders: the rest of a program for a known architecture and number.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use tamis_abi::Word;
use tamis_abi::hash::WordHashMap;
use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::{AluOp, Op, Operand, Test};

use tamis_compiler::dag::{Dag, NodeId, Question};
use tamis_compiler::dataflow::live::{Live, may_end};
use tamis_compiler::dataflow::state::State;
use tamis_compiler::dataflow::value::{Meaning, Place, Value, Values};

/// The most blocks that are evaluated for all numbers together.
const MAX_BLOCKS: usize = 2_000_000;

/// The rest of a program.
pub(super) enum Remainder {
    /// A decision with questions of the graph.
    Decision(NodeId),
    /// The program from here on.
    From(Entrance),
}

/// A place in a program, and the word that must be in A there; X and scratch memory are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entrance {
    /// The load of that word.
    pub(super) load: Op,
    /// The block.
    pub(super) block: BlockId,
    /// Whether only the end of the block is left, without its instructions.
    pub(super) is_behind: bool,
}

/// A program that is evaluated for one interval of numbers after the other.
pub(super) struct Remainders<'a> {
    graph: &'a Cfg,
    live: Vec<Live>,
    /// The values of the states of the present interval; no remainder refers to them.
    values: Values,
    blocks_left: usize,
}

/// The calls that the program is evaluated for.
#[derive(Clone, Copy)]
struct Calls<'a> {
    audits: &'a RangeInclusive<u32>,
    numbers: &'a RangeInclusive<u32>,
}

/// The end of an evaluation.
enum Reached {
    /// The return of this value.
    Ret(u32),
    /// A test of unknown outcome at the end of this block.
    Asking(BlockId, State),
    /// An instruction that may end the program, or a return of an unknown value.
    Stuck,
}

/// A point where the evaluation stopped; answers are indices of points.
enum Point {
    Ret(u32),
    Ask {
        block: BlockId,
        asked: Asked,
        sides: [usize; 2],
    },
}

/// A branch as a question of the graph.
#[derive(Clone, Copy)]
struct Asked {
    word: Word,
    question: Question,
    /// The answer that takes the branch.
    taken_if: bool,
}

/// The points of a program that were reached, and those still to be evaluated.
#[derive(Default)]
struct Points {
    list: Vec<Point>,
    known: WordHashMap<(BlockId, Vec<Value>), usize>,
    returns: WordHashMap<u32, usize>,
    open: Vec<(usize, State)>,
}

impl<'a> Remainders<'a> {
    pub(super) fn new(graph: &'a Cfg) -> Remainders<'a> {
        let mut live = vec![Live::default(); graph.len()];
        for id in graph.reverse_postorder().into_iter().rev() {
            Live::note(&mut live, id, graph.block(id));
        }
        Remainders {
            graph,
            live,
            values: Values::new(),
            blocks_left: MAX_BLOCKS,
        }
    }

    /// The remainder for these architectures and numbers; `None` beyond a limit. Linear in the blocks that they may
    /// reach, times the states of these blocks.
    pub(super) fn remainder(
        &mut self,
        dag: &mut Dag,
        audits: &RangeInclusive<u32>,
        numbers: &RangeInclusive<u32>,
    ) -> Option<Remainder> {
        let calls = Calls { audits, numbers };
        self.values.clear();
        let state = self.start(calls)?;
        let entry = self.graph.entry();
        let (block, state) = match self.follow(entry, state, calls)? {
            Reached::Ret(ret) => return Some(Remainder::Decision(dag.ret(ret))),
            Reached::Stuck => return Some(Remainder::From(self.beginning())),
            Reached::Asking(block, state) => (block, state),
        };
        let entrance = self.entrance(block, &state);
        Some(match self.decision(dag, block, state, calls)? {
            Some(node) => Remainder::Decision(node),
            None => Remainder::From(entrance),
        })
    }

    /// The whole program. X has not been written before it.
    fn beginning(&self) -> Entrance {
        Entrance {
            load: Op::LoadImm(0),
            block: self.graph.entry(),
            is_behind: false,
        }
    }

    /// The program behind a block's instructions, if the value that it reads there can be loaded.
    fn entrance(&self, block: BlockId, state: &State) -> Entrance {
        let live = Live::at_end(self.graph.block(block).end, &self.live);
        let load = match self.values.meaning(state.get(Place::A, &self.values)) {
            Meaning::Constant(k) => Some(Op::LoadImm(k)),
            Meaning::Data(offset) => Some(Op::LoadData(offset)),
            _ => None,
        };
        match load {
            Some(load) if live.places().all(|place| place == Place::A) => Entrance {
                load,
                block,
                is_behind: true,
            },
            _ => self.beginning(),
        }
    }

    /// The state of these calls on entry to the program; `None` if there are none.
    fn start(&mut self, calls: Calls<'_>) -> Option<State> {
        let mut state = State::at_start(&mut self.values);
        for (word, range) in [(Word::ARCH, calls.audits), (Word::NR, calls.numbers)] {
            let values = &mut self.values;
            state.step(Op::LoadData(word.offset(self.graph.endian())), values);
            let [first, last] = [*range.start(), *range.end()].map(Operand::K);
            let is_possible = state.assume(Test::Ge, first, true, values)
                && state.assume(Test::Gt, last, false, values);
            is_possible.then_some(())?;
        }
        state.step(Op::LoadImm(0), &mut self.values);
        Some(state)
    }

    /// Evaluates the program from a block on as far as the outcomes of tests are known; `None` beyond the limit.
    fn follow(
        &mut self,
        mut block: BlockId,
        mut state: State,
        calls: Calls<'_>,
    ) -> Option<Reached> {
        loop {
            self.blocks_left = self.blocks_left.checked_sub(1)?;
            for op in &self.graph.block(block).ops {
                if may_end(*op) {
                    return Some(Reached::Stuck);
                }
                state.step(self.known(*op, calls), &mut self.values);
            }
            block = match self.graph.block(block).end {
                End::Ret(ret) => return Some(Reached::Ret(ret)),
                End::RetA => {
                    let a = state.get(Place::A, &self.values);
                    return Some(match state.constant(a, &self.values) {
                        Some(ret) => Reached::Ret(ret),
                        None => Reached::Stuck,
                    });
                }
                End::Goto(next) => next,
                End::Branch { yes, no, .. } if yes == no => yes,
                End::Branch {
                    test,
                    operand,
                    yes,
                    no,
                } => match state.answer(test, operand, &mut self.values) {
                    Some(true) => yes,
                    Some(false) => no,
                    None => return Some(Reached::Asking(block, state)),
                },
            };
        }
    }

    /// The instruction, with a load of a known word replaced by a load of its constant.
    fn known(&self, op: Op, calls: Calls<'_>) -> Op {
        let Op::LoadData(offset) = op else {
            return op;
        };
        let range = match Word::from_offset(offset, self.graph.endian()) {
            Some(Word::ARCH) => calls.audits,
            Some(Word::NR) => calls.numbers,
            _ => return op,
        };
        match range.start() == range.end() {
            true => Op::LoadImm(*range.start()),
            false => op,
        }
    }

    /// All questions from a point on; the inner `None` if one of them is not a question of the graph.
    fn decision(
        &mut self,
        dag: &mut Dag,
        block: BlockId,
        state: State,
        calls: Calls<'_>,
    ) -> Option<Option<NodeId>> {
        let mut points = Points::default();
        let Some(root) = self.point(&mut points, block, state) else {
            return Some(None);
        };
        while let Some((index, state)) = points.open.pop() {
            let Point::Ask { block, .. } = points.list[index] else {
                continue;
            };
            let End::Branch { yes, no, .. } = self.graph.block(block).end else {
                continue;
            };
            let mut sides = [0; 2];
            for (side, next) in sides.iter_mut().zip([yes, no]) {
                let reached = self.follow(next, state, calls)?;
                let point = match reached {
                    Reached::Ret(ret) => Some(points.ret(ret)),
                    Reached::Asking(block, state) => self.point(&mut points, block, state),
                    Reached::Stuck => None,
                };
                let Some(point) = point else {
                    return Some(None);
                };
                *side = point;
            }
            if let Point::Ask { sides: known, .. } = &mut points.list[index] {
                *known = sides;
            }
        }
        Some(Some(points.into_decision(dag, root)))
    }

    /// The point behind a block's instructions; `None` if the test there is not a question of the graph.
    fn point(&self, points: &mut Points, block: BlockId, state: State) -> Option<usize> {
        let end = self.graph.block(block).end;
        let live = Live::at_end(end, &self.live);
        let held: Vec<Value> = live
            .places()
            .map(|place| state.get(place, &self.values))
            .collect();
        let key = (block, held);
        if let Some(known) = points.known.get(&key) {
            return Some(*known);
        }
        let asked = self.asked(end, &state)?;
        let index = points.list.len();
        points.known.insert(key, index);
        points.open.push((index, state));
        points.list.push(Point::Ask {
            block,
            asked,
            sides: [index; 2],
        });
        Some(index)
    }

    /// The question of a branch.
    fn asked(&self, end: End, state: &State) -> Option<Asked> {
        let End::Branch { test, operand, .. } = end else {
            return None;
        };
        let left = state.get(Place::A, &self.values);
        let right = match operand {
            Operand::K(k) => Ok(k),
            Operand::X => {
                let x = state.get(Place::X, &self.values);
                self.values.constant(x).ok_or(x)
            }
            Operand::Variable(_) => return None,
        };
        let (word, question, taken_if) = match (right, self.masked(left)) {
            (Ok(k), Some((word, u32::MAX))) => match test {
                Test::Eq => (word, Question::Eq(k), true),
                Test::Ge => (word, Question::Ge(k), true),
                Test::Gt => (word, Question::Ge(k.checked_add(1)?), true),
                Test::Set => (word, Question::AnySet(k), true),
            },
            (Ok(value), Some((word, mask))) => match test {
                Test::Eq => (word, Question::Masked { mask, value }, true),
                Test::Set => (word, Question::AnySet(mask & value), true),
                Test::Gt if value == 0 => (word, Question::AnySet(mask), true),
                Test::Ge | Test::Gt => return None,
            },
            (Ok(_), None) => return None,
            (Err(right), _) => {
                let (left, right) = (self.word(left)?, self.word(right)?);
                match test {
                    Test::Eq => (left, Question::EqWord(right), true),
                    Test::Ge => (left, Question::GeWord(right), true),
                    Test::Gt => (right, Question::GeWord(left), false),
                    Test::Set => return None,
                }
            }
        };
        Some(Asked {
            word,
            question,
            taken_if,
        })
    }

    /// The word and the mask that a value consists of.
    fn masked(&self, value: Value) -> Option<(Word, u32)> {
        match self.values.meaning(value) {
            Meaning::Alu(AluOp::And, word, mask) => {
                Some((self.word(word)?, self.values.constant(mask)?))
            }
            _ => Some((self.word(value)?, u32::MAX)),
        }
    }

    fn word(&self, value: Value) -> Option<Word> {
        match self.values.meaning(value) {
            Meaning::Data(offset) => Word::from_offset(offset, self.graph.endian()),
            _ => None,
        }
    }
}

impl Points {
    fn ret(&mut self, ret: u32) -> usize {
        *self.returns.entry(ret).or_insert_with(|| {
            self.list.push(Point::Ret(ret));
            self.list.len() - 1
        })
    }

    /// The decision at a point.
    fn into_decision(self, dag: &mut Dag, root: usize) -> NodeId {
        // Blocks precede their successors.
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_key(|index| match self.list[*index] {
            Point::Ret(_) => Reverse(u32::MAX),
            Point::Ask { block, .. } => Reverse(block.0),
        });
        let mut nodes = vec![None; self.list.len()];
        for index in order {
            let node = match self.list[index] {
                Point::Ret(ret) => dag.ret(ret),
                Point::Ask { asked, sides, .. } => {
                    let [yes, no] = match asked.taken_if {
                        true => sides,
                        false => [sides[1], sides[0]],
                    };
                    let side = |side: usize| nodes[side];
                    match (side(yes), side(no)) {
                        (Some(yes), Some(no)) => dag.ask(asked.word, asked.question, yes, no),
                        _ => unreachable!("sides lie in later blocks"),
                    }
                }
            };
            nodes[index] = Some(node);
        }
        nodes[root].unwrap_or_else(|| unreachable!("the root is a point"))
    }
}
