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
use crate::relation::Comparison;
use crate::space::{Function, Space};

type Outcome<T> = Result<T, LimitReached>;

/// The size of `seccomp_data`, which `ld len` loads.
const DATA_SIZE_BYTES: u32 = 64;
const SLOTS: usize = 16;

/// What the machine holds before an instruction, in terms of the input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    a: Bits,
    x: Bits,
    memory: [Bits; SLOTS],
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

/// What may still be read from some instruction on.
#[derive(Clone, Copy, Default)]
struct Live {
    a: bool,
    x: bool,
    slots: u16,
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

/// The states and steps of each instruction; the two lists of an instruction have equal lengths.
struct Exploration {
    steps: Vec<Vec<Step>>,
}

impl Exploration {
    /// The sweep down.
    fn run(space: &mut Space, program: &Program, endian: Endian) -> Outcome<Exploration> {
        let live = live_before(program);
        let mut states: Vec<Vec<State>> = vec![Vec::new(); program.len()];
        let zero = bits::constant(0);
        states[0].push(State {
            a: zero,
            x: zero,
            memory: [zero; SLOTS],
        });
        let mut steps = Vec::with_capacity(program.len());
        let mut states_left = space.limits.max_states;
        for pc in 0..program.len() {
            let mut steps_here = Vec::new();
            for state in std::mem::take(&mut states[pc]) {
                states_left = states_left.checked_sub(1).ok_or(LimitReached {
                    max_nodes: space.limits.max_states,
                })?;
                let mut enter = |target: Pc, mut state: State| {
                    state.forget(live[target.0]);
                    let known = &mut states[target.0];
                    let index = known.iter().position(|other| *other == state);
                    let index = index.unwrap_or_else(|| {
                        known.push(state);
                        known.len() - 1
                    });
                    Next::State(target, index)
                };
                steps_here.push(step(
                    space,
                    program.op(Pc(pc)),
                    Pc(pc),
                    state,
                    endian,
                    &mut enter,
                )?);
            }
            steps.push(steps_here);
        }
        Ok(Exploration { steps })
    }

    /// The sweep up: what each state returns.
    fn compose(&self, space: &mut Space) -> Outcome<Node> {
        let mut results: Vec<Vec<Node>> = self.steps.iter().map(|_| Vec::new()).collect();
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
}

/// Runs one instruction in one state; `enter` tells where a state of a later instruction is kept.
fn step(
    space: &mut Space,
    op: Op,
    pc: Pc,
    mut state: State,
    endian: Endian,
    enter: &mut impl FnMut(Pc, State) -> Next,
) -> Outcome<Step> {
    let after = |skip: u32| Pc(pc.0 + 1 + skip as usize);
    match op {
        Op::RetImm(value) => {
            let leaf = space.diagram.leaf(value)?;
            return Ok(Step::always(Next::End(leaf)));
        }
        Op::RetA => {
            let value = value_of(&mut space.diagram, &state.a, &mut BTreeMap::new())?;
            return Ok(Step::always(Next::End(value)));
        }
        Op::Jump(skip) => return Ok(Step::always(enter(after(skip), state))),
        Op::Branch {
            test,
            operand,
            jt,
            jf,
        } => {
            let condition = condition(space, test, &state, operand)?;
            let yes = after(u32::from(jt));
            let no = after(u32::from(jf));
            return Ok(match condition {
                TRUE => Step::always(enter(yes, state)),
                FALSE => Step::always(enter(no, state)),
                condition => {
                    let yes = enter(yes, state.clone());
                    Step {
                        condition,
                        yes,
                        no: enter(no, state),
                    }
                }
            });
        }
        Op::Alu(AluOp::Div, Operand::X) => {
            // Division by zero ends the program with 0, which kills the thread.
            let zero = bits::constant(0);
            let by_zero = bits::test(&mut space.diagram, Test::Eq, &state.x, &zero)?;
            state.a = bits::alu(&mut space.diagram, AluOp::Div, &state.a, &state.x)?;
            return Ok(match by_zero {
                TRUE => Step::always(Next::End(FALSE)),
                FALSE => Step::always(enter(after(0), state)),
                condition => Step {
                    condition,
                    yes: Next::End(FALSE),
                    no: enter(after(0), state),
                },
            });
        }
        _ => transfer(&mut space.diagram, op, &mut state, endian)?,
    }
    Ok(Step::always(enter(after(0), state)))
}

/// The effect of an instruction that neither jumps nor ends the program.
fn transfer(diagram: &mut Diagram, op: Op, state: &mut State, endian: Endian) -> Outcome<()> {
    match op {
        Op::LoadData(offset) => {
            state.a = match Word::from_offset(offset, endian) {
                Some(word) => bits::word(diagram, word)?,
                None => unreachable!("a program loads at word offsets only"),
            }
        }
        Op::LoadImm(k) => state.a = bits::constant(k),
        Op::LoadMem(slot) => state.a = state.memory[slot as usize],
        Op::LoadLen => state.a = bits::constant(DATA_SIZE_BYTES),
        Op::LoadXImm(k) => state.x = bits::constant(k),
        Op::LoadXMem(slot) => state.x = state.memory[slot as usize],
        Op::LoadXLen => state.x = bits::constant(DATA_SIZE_BYTES),
        Op::Store(slot) => state.memory[slot as usize] = state.a,
        Op::StoreX(slot) => state.memory[slot as usize] = state.x,
        Op::Alu(alu, operand) => {
            let operand = operand_bits(state, operand);
            state.a = bits::alu(diagram, alu, &state.a, &operand)?;
        }
        Op::Neg => state.a = bits::negate(diagram, &state.a)?,
        Op::Tax => state.x = state.a,
        Op::Txa => state.a = state.x,
        Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {
            unreachable!("jumps and ends are handled by the caller")
        }
    }
    Ok(())
}

/// The condition that a branch is taken; two input words are compared by relation.
fn condition(space: &mut Space, test: Test, state: &State, operand: Operand) -> Outcome<Node> {
    let right = operand_bits(state, operand);
    let comparison = match test {
        Test::Eq => Some(Comparison::Equal),
        Test::Gt => Some(Comparison::Greater),
        Test::Ge => Some(Comparison::GreaterOrEqual),
        Test::Set => None,
    };
    let diagram = &mut space.diagram;
    if let Some(comparison) = comparison
        && let Some(left) = bits::as_word(diagram, &state.a)
        && let Some(right) = bits::as_word(diagram, &right)
    {
        return space.relations.compare(diagram, comparison, left, right);
    }
    bits::test(&mut space.diagram, test, &state.a, &right)
}

fn operand_bits(state: &State, operand: Operand) -> Bits {
    match operand {
        Operand::K(k) => bits::constant(k),
        Operand::X => state.x,
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
        let zero = bits::constant(0);
        if !live.a {
            self.a = zero;
        }
        if !live.x {
            self.x = zero;
        }
        for (slot, value) in self.memory.iter_mut().enumerate() {
            if live.slots >> slot & 1 == 0 {
                *value = zero;
            }
        }
    }
}

/// What may be read from each instruction on, in one sweep up.
fn live_before(program: &Program) -> Vec<Live> {
    let mut live = vec![Live::default(); program.len()];
    for pc in (0..program.len()).rev() {
        let after = |skip: u32| live[pc + 1 + skip as usize];
        live[pc] = match program.op(Pc(pc)) {
            Op::RetImm(_) => Live::default(),
            Op::RetA => Live {
                a: true,
                ..Live::default()
            },
            Op::Jump(skip) => after(skip),
            Op::Branch {
                operand, jt, jf, ..
            } => {
                let (yes, no) = (after(u32::from(jt)), after(u32::from(jf)));
                Live {
                    a: true,
                    x: operand == Operand::X || yes.x || no.x,
                    slots: yes.slots | no.slots,
                }
            }
            Op::LoadData(_) | Op::LoadImm(_) | Op::LoadLen => Live {
                a: false,
                ..after(0)
            },
            Op::LoadMem(slot) => {
                let live = after(0);
                Live {
                    a: false,
                    slots: live.slots | 1 << slot,
                    ..live
                }
            }
            Op::LoadXImm(_) | Op::LoadXLen => Live {
                x: false,
                ..after(0)
            },
            Op::LoadXMem(slot) => {
                let live = after(0);
                Live {
                    x: false,
                    slots: live.slots | 1 << slot,
                    ..live
                }
            }
            Op::Store(slot) => {
                let live = after(0);
                Live {
                    a: true,
                    slots: live.slots & !(1 << slot),
                    ..live
                }
            }
            Op::StoreX(slot) => {
                let live = after(0);
                Live {
                    x: true,
                    slots: live.slots & !(1 << slot),
                    ..live
                }
            }
            Op::Alu(_, operand) => {
                let live = after(0);
                Live {
                    a: true,
                    x: live.x || operand == Operand::X,
                    ..live
                }
            }
            Op::Neg => Live {
                a: true,
                ..after(0)
            },
            Op::Tax => {
                let live = after(0);
                Live {
                    a: true,
                    x: false,
                    ..live
                }
            }
            Op::Txa => {
                let live = after(0);
                Live {
                    a: false,
                    x: true,
                    ..live
                }
            }
        };
    }
    live
}
