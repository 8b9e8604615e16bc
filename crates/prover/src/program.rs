//! The meaning of a program: it runs on symbols.
//!
//! Jumps only go forward, so two sweeps suffice and nothing recurses: the first goes down the program
//! and finds the symbolic states (what A, X and the scratch memory hold, as functions of the input) in
//! which each instruction can be reached; the second goes up and composes what each of them returns.
//! What an instruction can't need any more is forgotten, so that states meet again after a branch.

use std::collections::BTreeMap;

use tamis_abi::{Endian, Word};
use tamis_bpf::{AluOp, Op, Operand, Pc, Program, Test};

use crate::bits::{self, Bits};
use crate::diagram::{Diagram, FALSE, LimitReached, Node, TRUE, Variable, View};
use crate::liveness::{Live, live_before};
use crate::relation::Comparison;
use crate::space::{Function, Space};

type Outcome<T> = Result<T, LimitReached>;

/// The size of `seccomp_data`, which `ld len` loads.
const DATA_SIZE_BYTES: u32 = 64;
const SLOTS: usize = 16;

/// A value that was met, by its number in [`Values`]: states are small and quick to compare.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Value(u32);

/// The value 0, which also stands for everything that isn't needed any more.
const ZERO: Value = Value(0);

/// The distinct values that were met, as functions of the input.
struct Values {
    bits: Vec<Bits>,
    numbers: BTreeMap<Bits, Value>,
}

/// What the machine holds before an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    a: Value,
    x: Value,
    memory: [Value; SLOTS],
}

/// Where a state continues: in a state of a later instruction, or nowhere because the program ends.
#[derive(Clone, Copy)]
enum Next {
    State(Pc, usize),
    End(Node),
}

/// What an instruction does in one state.
struct Step {
    /// If it holds, the program goes on with `yes`, else with `no`.
    condition: Node,
    yes: Next,
    no: Next,
}

impl Space {
    /// The meaning of a program on a machine of this byte order.
    ///
    /// # Errors
    /// If the diagrams outgrow the space, or the symbolic states of the program their limit.
    pub fn program(&mut self, program: &Program, endian: Endian) -> Outcome<Function> {
        let explored = Exploration::run(self, program, endian)?;
        explored.compose(self).map(Function)
    }
}

/// The sweep down: the states in which each instruction is reached, and what it does in them.
struct Exploration {
    values: Values,
    /// The values of the input words that were loaded.
    words: [Option<Value>; Word::COUNT],
    endian: Endian,
    live: Vec<Live>,
    /// Per instruction: the states that were found so far.
    states: Vec<Vec<State>>,
    /// Per instruction: what it does in each of its states.
    steps: Vec<Vec<Step>>,
}

impl Exploration {
    fn run(space: &mut Space, program: &Program, endian: Endian) -> Outcome<Exploration> {
        let mut exploration = Exploration {
            values: Values::new(),
            words: [None; Word::COUNT],
            endian,
            live: live_before(program),
            states: vec![Vec::new(); program.len()],
            steps: Vec::with_capacity(program.len()),
        };
        let memory = [ZERO; SLOTS];
        exploration.states[0].push(State {
            a: ZERO,
            x: ZERO,
            memory,
        });
        let mut states_left = space.limits.max_states;
        for pc in (0..program.len()).map(Pc) {
            let states = std::mem::take(&mut exploration.states[pc.0]);
            let max_nodes = space.limits.max_states;
            states_left = states_left
                .checked_sub(states.len())
                .ok_or(LimitReached { max_nodes })?;
            let op = program.op(pc);
            let steps: Outcome<Vec<Step>> = states
                .into_iter()
                .map(|state| exploration.step(space, op, pc, state))
                .collect();
            exploration.steps.push(steps?);
        }
        Ok(exploration)
    }

    /// The sweep up: what the program returns.
    fn compose(&self, space: &mut Space) -> Outcome<Node> {
        let mut results: Vec<Vec<Node>> = vec![Vec::new(); self.steps.len()];
        for pc in (0..self.steps.len()).rev() {
            for step in &self.steps[pc] {
                let result = |next: Next| match next {
                    Next::End(node) => node,
                    Next::State(pc, index) => results[pc.0][index],
                };
                let (yes, no) = (result(step.yes), result(step.no));
                let composed = space.diagram.ite(step.condition, yes, no)?;
                results[pc].push(composed);
            }
        }
        Ok(results[0][0])
    }

    /// Runs one instruction in one state.
    fn step(&mut self, space: &mut Space, op: Op, pc: Pc, mut state: State) -> Outcome<Step> {
        let after = |skip: u32| Pc(pc.0 + 1 + skip as usize);
        match op {
            Op::RetImm(value) => {
                let leaf = space.diagram.leaf(value)?;
                Ok(Step::always(Next::End(leaf)))
            }
            Op::RetA => {
                let a = self.values.get(state.a);
                let value = value_of(&mut space.diagram, a, &mut BTreeMap::new())?;
                Ok(Step::always(Next::End(value)))
            }
            Op::Jump(skip) => Ok(Step::always(self.enter(after(skip), state))),
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                let right = self.operand(operand);
                let right = right.unwrap_or(state.x);
                let condition = self.condition(space, test, state.a, right)?;
                let yes = |this: &mut Self| this.enter(after(u32::from(jt)), state);
                let no = |this: &mut Self| this.enter(after(u32::from(jf)), state);
                Ok(self.fork(condition, yes, no))
            }
            Op::Alu(AluOp::Div, Operand::X) => {
                // Division by zero ends the program with 0, which kills the thread.
                let by_zero = self.condition(space, Test::Eq, state.x, ZERO)?;
                self.transfer(&mut space.diagram, op, &mut state)?;
                let end = |_: &mut Self| Next::End(FALSE);
                let go_on = |this: &mut Self| this.enter(after(0), state);
                Ok(self.fork(by_zero, end, go_on))
            }
            _ => {
                self.transfer(&mut space.diagram, op, &mut state)?;
                Ok(Step::always(self.enter(after(0), state)))
            }
        }
    }

    /// A step that depends on a condition; only what is possible is entered.
    fn fork(
        &mut self,
        condition: Node,
        yes: impl FnOnce(&mut Self) -> Next,
        no: impl FnOnce(&mut Self) -> Next,
    ) -> Step {
        match condition {
            TRUE => Step::always(yes(self)),
            FALSE => Step::always(no(self)),
            condition => Step {
                condition,
                yes: yes(self),
                no: no(self),
            },
        }
    }

    /// Notes that an instruction is reached in a state, less what it can't need.
    fn enter(&mut self, target: Pc, mut state: State) -> Next {
        state.forget(self.live[target.0]);
        let known = &mut self.states[target.0];
        let index = known.iter().position(|other| *other == state);
        Next::State(
            target,
            index.unwrap_or_else(|| {
                known.push(state);
                known.len() - 1
            }),
        )
    }

    /// The effect of an instruction that neither jumps nor ends the program.
    fn transfer(&mut self, diagram: &mut Diagram, op: Op, state: &mut State) -> Outcome<()> {
        match op {
            Op::LoadData(offset) => state.a = self.word(diagram, offset)?,
            Op::LoadImm(k) => state.a = self.constant(k),
            Op::LoadMem(slot) => state.a = state.memory[slot as usize],
            Op::LoadLen => state.a = self.constant(DATA_SIZE_BYTES),
            Op::LoadXImm(k) => state.x = self.constant(k),
            Op::LoadXMem(slot) => state.x = state.memory[slot as usize],
            Op::LoadXLen => state.x = self.constant(DATA_SIZE_BYTES),
            Op::Store(slot) => state.memory[slot as usize] = state.a,
            Op::StoreX(slot) => state.memory[slot as usize] = state.x,
            Op::Alu(alu, operand) => {
                let right = self.operand(operand).unwrap_or(state.x);
                let (left, right) = (self.values.get(state.a), self.values.get(right));
                let bits = bits::alu(diagram, alu, left, right)?;
                state.a = self.values.number(bits);
            }
            Op::Neg => {
                let bits = bits::negate(diagram, self.values.get(state.a))?;
                state.a = self.values.number(bits);
            }
            Op::Tax => state.x = state.a,
            Op::Txa => state.a = state.x,
            Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {
                unreachable!("jumps and ends are handled by the caller")
            }
        }
        Ok(())
    }

    fn word(&mut self, diagram: &mut Diagram, offset: u32) -> Outcome<Value> {
        let word = Word::from_offset(offset, self.endian);
        let word = word.expect("a program loads at word offsets only");
        if let Some(value) = self.words[word.index()] {
            return Ok(value);
        }
        let value = self.values.number(bits::word(diagram, word)?);
        self.words[word.index()] = Some(value);
        Ok(value)
    }

    fn constant(&mut self, value: u32) -> Value {
        self.values.number(bits::constant(value))
    }

    /// A constant operand; `None` for X, which is in the state.
    fn operand(&mut self, operand: Operand) -> Option<Value> {
        match operand {
            Operand::K(k) => Some(self.constant(k)),
            Operand::X => None,
        }
    }

    /// The condition that a branch is taken; two input words are compared by relation.
    fn condition(&self, space: &mut Space, test: Test, left: Value, right: Value) -> Outcome<Node> {
        let comparison = match test {
            Test::Eq => Some(Comparison::Equal),
            Test::Gt => Some(Comparison::Greater),
            Test::Ge => Some(Comparison::GreaterOrEqual),
            Test::Set => None,
        };
        if let Some(comparison) = comparison
            && let Some(left) = self.as_word(left)
            && let Some(right) = self.as_word(right)
        {
            return space
                .relations
                .compare(&mut space.diagram, comparison, left, right);
        }
        let (left, right) = (self.values.get(left), self.values.get(right));
        bits::test(&mut space.diagram, test, left, right)
    }

    /// The input word that a value is, unchanged.
    fn as_word(&self, value: Value) -> Option<Word> {
        Word::all().find(|word| self.words[word.index()] == Some(value))
    }
}

/// The function whose value has these bits.
fn value_of(
    diagram: &mut Diagram,
    value: &Bits,
    known: &mut BTreeMap<Bits, Node>,
) -> Outcome<Node> {
    if let Some(constant) = bits::as_constant(value) {
        return diagram.leaf(constant);
    }
    if let Some(node) = known.get(value) {
        return Ok(*node);
    }
    let top = |node: &Node| match diagram.view(*node) {
        View::Leaf(_) => None,
        View::Branch { variable, .. } => Some(variable),
    };
    let variable: Variable = value
        .iter()
        .filter_map(top)
        .min()
        .expect("a value that isn't constant has a variable");
    let low = value.map(|node| diagram.cofactors(node, variable).0);
    let high = value.map(|node| diagram.cofactors(node, variable).1);
    let low = value_of(diagram, &low, known)?;
    let high = value_of(diagram, &high, known)?;
    let node = diagram.branch(variable, low, high)?;
    known.insert(*value, node);
    Ok(node)
}

impl Values {
    fn new() -> Values {
        let mut values = Values {
            bits: Vec::new(),
            numbers: BTreeMap::new(),
        };
        // Makes it number 0, which is `ZERO`.
        values.number(bits::constant(0));
        values
    }

    fn number(&mut self, bits: Bits) -> Value {
        *self.numbers.entry(bits).or_insert_with(|| {
            self.bits.push(bits);
            Value(self.bits.len() as u32 - 1)
        })
    }

    fn get(&self, value: Value) -> &Bits {
        &self.bits[value.0 as usize]
    }
}

impl Step {
    fn always(next: Next) -> Step {
        Step {
            condition: TRUE,
            yes: next,
            no: next,
        }
    }
}

impl State {
    /// Gives everything that isn't live one value.
    fn forget(&mut self, live: Live) {
        if !live.a {
            self.a = ZERO;
        }
        if !live.x {
            self.x = ZERO;
        }
        for (slot, value) in self.memory.iter_mut().enumerate() {
            if live.slots >> slot & 1 == 0 {
                *value = ZERO;
            }
        }
    }
}
