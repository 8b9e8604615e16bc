//! The sweep down a program: the states in which each instruction is reached.
//!
//! A state has the contents of A, X and scratch memory, as functions of the input. At a branch, each side is
//! entered in a state without dead values, so that states merge again after the branch; the instructions between
//! two branches are run as one step.

use std::iter;

use tamis_abi::Word;
use tamis_abi::hash::WordHashMap;
use tamis_bpf::validate::{self, DATA_SIZE_BYTES};
use tamis_bpf::{AluOp, Op, Operand, Pc, Test};

use crate::bits;
use crate::code::Code;
use crate::diagram::{FALSE, LimitReached, Limited, Node, TRUE};
use crate::liveness::{Live, live_before};
use crate::misreading::{self, Reading, Rule};
use crate::relation::Comparison;
use crate::space::Space;
use crate::value::{self, Shape, Value, Values, ZERO};

const SLOTS: usize = validate::SLOTS as usize;

/// For up to this many states linear search is fastest.
const FEW: usize = 8;

/// The number of a state, over all instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateId(pub(crate) usize);

/// The successor of a step.
#[derive(Clone, Copy)]
pub(crate) enum Next {
    State(StateId),
    /// The program ends with the value of this function.
    End(Node),
}

/// A step from one state to the next.
pub(crate) enum Step {
    Goto(Next),
    /// Continues with `yes` if a comparison of some bits of a word with a constant holds.
    Compare {
        word: Word,
        mask: u32,
        test: Test,
        k: u32,
        yes: Next,
        no: Next,
    },
    /// Continues with `yes` if a condition holds.
    Fork {
        condition: Node,
        yes: Next,
        no: Next,
    },
}

/// The contents of the machine before an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    a: Value,
    x: Value,
    memory: [Value; SLOTS],
}

/// The right-hand side of a test.
enum Right {
    Constant(u32),
    Value(Value),
}

/// The states in which an instruction is entered: a list, oldest first.
#[derive(Clone, Copy)]
struct Entries {
    first: StateId,
    last: StateId,
    count: usize,
}

/// The step of a program in one state.
pub(crate) struct Visit {
    pub(crate) state: StateId,
    /// The first instruction.
    pub(crate) first: Pc,
    /// The instruction at which it forks, meets another state or ends.
    pub(crate) last: Pc,
    pub(crate) step: Step,
}

/// All states of a program with their steps.
pub(crate) struct Exploration {
    /// The step of each state; it leads to states of later visits only.
    pub(crate) visits: Vec<Visit>,
    /// The count of steps to each state.
    pub(crate) uses: Vec<u32>,
}

struct Explorer<'a> {
    space: &'a mut Space,
    code: Code<'a>,
    live: Vec<Live>,
    values: Values,
    states: Vec<State>,
    uses: Vec<u32>,
    /// For each instruction: the states in which it is entered, if any.
    entered: Vec<Option<Entries>>,
    /// For each state: the next one in which the same instruction is entered.
    next: Vec<Option<StateId>>,
    /// The states of instructions with many states.
    crowded: WordHashMap<(Pc, State), StateId>,
}

/// Finds the states of a program.
pub(crate) fn explore(space: &mut Space, code: Code<'_>) -> Limited<Exploration> {
    let mut explorer = Explorer {
        space,
        code,
        live: live_before(code.shape()),
        values: Values::new(),
        states: Vec::new(),
        uses: Vec::new(),
        entered: vec![None; code.shape().len()],
        next: Vec::new(),
        crowded: WordHashMap::default(),
    };
    let memory = [ZERO; SLOTS];
    let (a, x) = (ZERO, ZERO);
    explorer.enter(Pc(0), State { a, x, memory })?;
    let mut visits = Vec::with_capacity(code.shape().len());
    for pc in 0..code.shape().len() {
        let mut entry = explorer.entered[pc].map(|entries| entries.first);
        while let Some(state) = entry {
            let first = Pc(pc);
            let (last, step) = explorer.run(first, explorer.states[state.0])?;
            visits.push(Visit {
                state,
                first,
                last,
                step,
            });
            entry = explorer.next[state.0];
        }
    }
    let uses = explorer.uses;
    Ok(Exploration { visits, uses })
}

impl Explorer<'_> {
    /// Runs the program from an instruction to the next branch or to its end, and returns the last instruction and
    /// the step.
    fn run(&mut self, mut pc: Pc, mut state: State) -> Limited<(Pc, Step)> {
        loop {
            self.space.diagram.tick()?;
            let op = misreading::op(Reading::Diagrams, self.code.op(pc));
            let after = |skip: u32| Pc(pc.0 + 1 + skip as usize);
            match op {
                Op::RetImm(value) => {
                    let leaf = self.space.diagram.leaf(value)?;
                    return Ok((pc, Step::Goto(Next::End(leaf))));
                }
                Op::RetA => {
                    let shape = self.values.shape(state.a);
                    let value = value::returning(&mut self.space.diagram, shape)?;
                    return Ok((pc, Step::Goto(Next::End(value))));
                }
                Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                } => {
                    let targets = [after(u32::from(jt)), after(u32::from(jf))];
                    let right = match operand {
                        Operand::K(k) => Right::Constant(k),
                        Operand::X => Right::Value(state.x),
                        Operand::Variable(word) => Right::Value(self.values.word(word)),
                    };
                    return Ok((pc, self.branch(test, state, &right, targets)?));
                }
                Op::Alu(AluOp::Div, Operand::X) => {
                    if let Some(step) = self.divide(&mut state, after(0))? {
                        return Ok((pc, step));
                    }
                    pc = after(0);
                }
                Op::Jump(skip) => pc = after(skip),
                _ => {
                    self.transfer(op, &mut state)?;
                    pc = after(0);
                }
            }
        }
    }

    /// The effect of an instruction that neither jumps nor ends the program.
    fn transfer(&mut self, op: Op, state: &mut State) -> Limited<()> {
        let diagram = &mut self.space.diagram;
        match op {
            Op::LoadData(offset) => {
                let word = Word::from_offset(offset, self.code.endian());
                let word = word.expect("a program loads at word offsets only");
                state.a = self.values.word(word);
            }
            Op::LoadImm(k) => state.a = self.values.constant(k),
            Op::LoadMem(slot) => state.a = state.memory[slot as usize],
            Op::LoadLen => state.a = self.values.constant(DATA_SIZE_BYTES),
            Op::LoadXImm(k) => state.x = self.values.constant(k),
            Op::LoadXMem(slot) => state.x = state.memory[slot as usize],
            Op::LoadXLen => state.x = self.values.constant(DATA_SIZE_BYTES),
            Op::Store(slot) => state.memory[slot as usize] = state.a,
            Op::StoreX(slot) => state.memory[slot as usize] = state.x,
            Op::Alu(alu, operand) => {
                let right = match operand {
                    Operand::K(k) => Shape::Constant(k),
                    Operand::X => self.values.shape(state.x).clone(),
                    Operand::Variable(word) => {
                        let value = self.values.word(word);
                        self.values.shape(value).clone()
                    }
                };
                state.a = self.values.alu(diagram, alu, state.a, &right)?;
            }
            Op::Neg => state.a = self.values.negate(diagram, state.a)?,
            Op::Tax => state.x = state.a,
            Op::Txa => state.a = state.x,
            Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {
                unreachable!("jumps and ends are handled by the caller")
            }
        }
        Ok(())
    }

    /// Divides by X. If X is zero the machine ends the program with 0, which kills the thread; if this depends on
    /// the input the step forks.
    fn divide(&mut self, state: &mut State, after: Pc) -> Limited<Option<Step>> {
        let by_zero = Right::Constant(0);
        let by_zero = self.condition(Test::Eq, state.x, &by_zero)?;
        if by_zero == TRUE && !misreading::has(Reading::Diagrams, Rule::DivisionByZero) {
            return Ok(Some(Step::Goto(Next::End(FALSE))));
        }
        self.transfer(Op::Alu(AluOp::Div, Operand::X), state)?;
        if by_zero == FALSE || misreading::has(Reading::Diagrams, Rule::DivisionByZero) {
            return Ok(None);
        }
        Ok(Some(Step::Fork {
            condition: by_zero,
            yes: Next::End(FALSE),
            no: self.enter(after, *state)?,
        }))
    }

    fn branch(
        &mut self,
        test: Test,
        state: State,
        right: &Right,
        [yes, no]: [Pc; 2],
    ) -> Limited<Step> {
        if let Shape::Masked { word, mask } = *self.values.shape(state.a)
            && !misreading::has(Reading::Diagrams, Rule::Signedness)
            && let Some(k) = self.as_constant(right)
        {
            return Ok(Step::Compare {
                word,
                mask,
                test,
                k,
                yes: self.enter(yes, state)?,
                no: self.enter(no, state)?,
            });
        }
        match self.condition(test, state.a, right)? {
            TRUE => Ok(Step::Goto(self.enter(yes, state)?)),
            FALSE => Ok(Step::Goto(self.enter(no, state)?)),
            condition => Ok(Step::Fork {
                condition,
                yes: self.enter(yes, state)?,
                no: self.enter(no, state)?,
            }),
        }
    }

    /// The condition that a test holds; two input words are compared by relation.
    fn condition(&mut self, test: Test, left: Value, right: &Right) -> Limited<Node> {
        let comparison = match test {
            Test::Eq => Some(Comparison::Equal),
            Test::Gt => Some(Comparison::Greater),
            Test::Ge => Some(Comparison::GreaterOrEqual),
            Test::Set => None,
        };
        let diagram = &mut self.space.diagram;
        let left = self.values.shape(left);
        let constant;
        let right = match right {
            Right::Value(value) => self.values.shape(*value),
            Right::Constant(k) => {
                constant = Shape::Constant(*k);
                &constant
            }
        };
        let is_signed = misreading::has(Reading::Diagrams, Rule::Signedness);
        if let (Some(comparison), Some(left), Some(right)) =
            (comparison, as_word(left), as_word(right))
            && !is_signed
        {
            let relations = &mut self.space.relations;
            return relations.compare(diagram, comparison, left, right);
        }
        let (mut left, mut right) = (
            value::bits_of(diagram, left)?,
            value::bits_of(diagram, right)?,
        );
        if is_signed && matches!(test, Test::Gt | Test::Ge) {
            for bits in [&mut left, &mut right] {
                bits[31] = diagram.not(bits[31])?;
            }
        }
        bits::test(diagram, test, &left, &right)
    }

    fn as_constant(&self, right: &Right) -> Option<u32> {
        match right {
            Right::Constant(k) => Some(*k),
            Right::Value(value) => match self.values.shape(*value) {
                Shape::Constant(k) => Some(*k),
                Shape::Masked { .. } | Shape::Computed(_) => None,
            },
        }
    }

    /// Records that an instruction is reached in a state, without dead values.
    fn enter(&mut self, target: Pc, mut state: State) -> Limited<Next> {
        state.keep_live(self.live[target.0]);
        let entries = self.entered[target.0];
        let count = entries.map_or(0, |entries| entries.count);
        let first = entries.map(|entries| entries.first);
        let mut few = iter::successors(first, |id| self.next[id.0]).take(FEW);
        let found = few.find(|id| self.states[id.0] == state).or_else(|| {
            let is_crowded = count > FEW;
            is_crowded.then(|| self.crowded.get(&(target, state)).copied())?
        });
        if let Some(id) = found {
            self.uses[id.0] += 1;
            return Ok(Next::State(id));
        }
        let id = StateId(self.states.len());
        if id.0 >= self.space.limits.max_states {
            return Err(LimitReached::States);
        }
        if count >= FEW {
            self.crowded.insert((target, state), id);
        }
        if let Some(entries) = entries {
            self.next[entries.last.0] = Some(id);
        }
        self.entered[target.0] = Some(Entries {
            first: first.unwrap_or(id),
            last: id,
            count: count + 1,
        });
        self.next.push(None);
        self.states.push(state);
        self.uses.push(1);
        Ok(Next::State(id))
    }
}

/// The input word of a value, if it is unchanged.
fn as_word(shape: &Shape) -> Option<Word> {
    match shape {
        Shape::Masked {
            word,
            mask: u32::MAX,
        } => Some(*word),
        Shape::Masked { .. } | Shape::Constant(_) | Shape::Computed(_) => None,
    }
}

impl State {
    /// Replaces all values that aren't live by one.
    fn keep_live(&mut self, live: Live) {
        if !live.a {
            self.a = ZERO;
        }
        if !live.x {
            self.x = ZERO;
        }
        if live.slots == 0 {
            self.memory = [ZERO; SLOTS];
            return;
        }
        for (slot, value) in self.memory.iter_mut().enumerate() {
            if live.slots >> slot & 1 == 0 {
                *value = ZERO;
            }
        }
    }
}
