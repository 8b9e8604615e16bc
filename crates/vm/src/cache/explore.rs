//! The symbolic execution of a filter for each number of one architecture, until another word is loaded.
//!
//! All numbers start together. A test of the number splits them, so a list of comparisons is walked once, not once for
//! each number. Every value on the path is a constant, the number itself, or computed from it: an instruction that
//! needs the value of a computed one is executed for each number separately.

use std::collections::BTreeMap;

use tamis_bpf::live::Live;
use tamis_bpf::{AluOp, Op, Operand, Pc, Test, interp};

use super::live::live;
use super::numbers::Numbers;
use super::{Outcome, Residual};
use crate::threaded::State;

/// The most intervals of numbers that are distinguished.
const MAX_INTERVALS: usize = 4096;
/// The most work: an instruction for each interval that comes to it.
const MAX_WORK: usize = 1 << 20;

/// A value on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Constant(u32),
    /// The number.
    Number,
    /// Computed from the number.
    Computed,
}

/// Numbers at an instruction, with their common state.
#[derive(Clone, Debug)]
struct Front {
    pc: usize,
    numbers: Numbers,
    a: Value,
    x: Value,
    slots: [Value; 16],
}

/// The instructions of a filter, with the live state at each.
pub(super) struct Filter {
    /// Its index in the stack, counted from the oldest.
    index: usize,
    ops: Vec<Op>,
    live: Vec<Live>,
}

impl Filter {
    pub(super) fn new(index: usize, ops: Vec<Op>) -> Filter {
        let live = live(&ops);
        Filter { index, ops, live }
    }

    /// The outcome of every number, by the last number of each interval.
    pub(super) fn outcomes(&self, audit: u32) -> BTreeMap<u32, Outcome> {
        let mut explorer = Explorer {
            filter: self,
            audit,
            open: Vec::new(),
            work: 0,
            intervals: 1,
            found: Vec::new(),
        };
        explorer.open.push(self.start(Numbers::all()));
        while let Some(front) = explorer.open.pop() {
            explorer.follow(front);
        }
        let mut found = explorer.found;
        found.sort_unstable_by_key(|((_, last), _)| *last);
        let mut outcomes = BTreeMap::new();
        let mut previous = None;
        for ((_, last), outcome) in found {
            if let Some((end, same)) = previous.replace((last, outcome))
                && same == outcome
            {
                outcomes.remove(&end);
            }
            outcomes.insert(last, outcome);
        }
        outcomes
    }

    fn start(&self, numbers: Numbers) -> Front {
        Front {
            pc: 0,
            numbers,
            a: Value::Constant(0),
            x: Value::Constant(0),
            slots: [Value::Constant(0); 16],
        }
    }
}

struct Explorer<'f> {
    filter: &'f Filter,
    audit: u32,
    open: Vec<Front>,
    /// The work done.
    work: usize,
    /// How many intervals there are, open and found.
    intervals: usize,
    found: Vec<((u32, u32), Outcome)>,
}

/// The effect of an instruction on a front.
enum Step {
    Next,
    /// All numbers have this outcome.
    End(Outcome),
    /// The value of something computed decides.
    EachByItself,
}

impl Explorer<'_> {
    /// Runs a front to its end; split parts are queued.
    fn follow(&mut self, mut front: Front) {
        loop {
            self.work += front.numbers.0.len();
            if self.work > MAX_WORK {
                return self.end(&front.numbers, self.whole());
            }
            let step = match self.filter.ops[front.pc] {
                Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                } => {
                    let next = |skip: u8, pc: usize| pc + 1 + usize::from(skip);
                    match (front.a, value(operand, front.x)) {
                        (Value::Constant(a), Value::Constant(k)) => {
                            front.pc = next(if test.holds(a, k) { jt } else { jf }, front.pc);
                            continue;
                        }
                        (Value::Number, Value::Constant(k)) => {
                            match self.take(&mut front.numbers, test, k) {
                                Some(taken) if taken.is_empty() => front.pc = next(jf, front.pc),
                                Some(taken) => {
                                    let yes = Front {
                                        pc: next(jt, front.pc),
                                        numbers: taken,
                                        ..front.clone()
                                    };
                                    front.pc = next(jf, front.pc);
                                    if front.numbers.is_empty() {
                                        front = yes;
                                    } else {
                                        self.open.push(yes);
                                    }
                                }
                                None => return self.end(&front.numbers, self.whole()),
                            }
                            continue;
                        }
                        _ => Step::EachByItself,
                    }
                }
                op => self.step(op, &mut front),
            };
            match step {
                Step::Next => {}
                Step::End(outcome) => return self.end(&front.numbers, outcome),
                Step::EachByItself => return self.each_by_itself(&front),
            }
        }
    }

    /// Takes the numbers for which a test holds; `None` if there would be too many intervals.
    fn take(&mut self, numbers: &mut Numbers, test: Test, k: u32) -> Option<Numbers> {
        let before = numbers.0.len();
        let room = MAX_INTERVALS.checked_sub(self.intervals)?;
        let taken = numbers.take(test, k, before + room)?;
        self.intervals += taken.0.len() + numbers.0.len() - before;
        Some(taken)
    }

    /// Runs an instruction that isn't a branch.
    fn step(&self, op: Op, front: &mut Front) -> Step {
        let Front { a, x, slots, .. } = front;
        match op {
            Op::LoadData(0) => *a = Value::Number,
            Op::LoadData(4) => *a = Value::Constant(self.audit),
            Op::LoadData(_) => return self.resume(front),
            Op::LoadImm(k) => *a = Value::Constant(k),
            Op::LoadMem(slot) => *a = slots[slot as usize & 15],
            Op::LoadLen => *a = Value::Constant(64),
            Op::LoadXImm(k) => *x = Value::Constant(k),
            Op::LoadXMem(slot) => *x = slots[slot as usize & 15],
            Op::LoadXLen => *x = Value::Constant(64),
            Op::Store(slot) => slots[slot as usize & 15] = *a,
            Op::StoreX(slot) => slots[slot as usize & 15] = *x,
            Op::Neg => {
                *a = match *a {
                    Value::Constant(a) => Value::Constant(a.wrapping_neg()),
                    _ => Value::Computed,
                };
            }
            Op::Alu(alu, operand) => match (*a, value(operand, *x)) {
                (Value::Constant(left), Value::Constant(right)) => {
                    match interp::arithmetic(alu, left, right) {
                        Some(result) => *a = Value::Constant(result),
                        None => return Step::End(Outcome::Answer(0)),
                    }
                }
                (_, Value::Constant(0)) if alu == AluOp::Div => {
                    return Step::End(Outcome::Answer(0));
                }
                (_, right) if alu == AluOp::Div && !matches!(right, Value::Constant(_)) => {
                    return Step::EachByItself;
                }
                _ => *a = Value::Computed,
            },
            Op::Jump(skip) => front.pc += skip as usize,
            Op::RetImm(k) => return Step::End(Outcome::Answer(k)),
            Op::RetA => {
                return match *a {
                    Value::Constant(a) => Step::End(Outcome::Answer(a)),
                    _ => Step::EachByItself,
                };
            }
            Op::Tax => *x = *a,
            Op::Txa => *a = *x,
            Op::Branch { .. } => return Step::EachByItself,
        }
        front.pc += 1;
        Step::Next
    }

    /// Continues at run time with a load, before which A is dead, and with the known state.
    fn resume(&self, front: &Front) -> Step {
        let live = self.filter.live[front.pc];
        let mut state = State::default();
        let constant = |is_live: bool, value: Value| match value {
            _ if !is_live => Some(0),
            Value::Constant(constant) => Some(constant),
            Value::Number | Value::Computed => None,
        };
        match constant(live.meets(Live::X), front.x) {
            Some(x) => state.x = x,
            None => return Step::EachByItself,
        }
        for (slot, value) in front.slots.iter().enumerate() {
            match constant(live.meets(Live::slot(slot as u32)), *value) {
                Some(known) => state.memory[slot] = known,
                None => return Step::EachByItself,
            }
        }
        Step::End(Outcome::Resume(Residual {
            filter: self.filter.index,
            pc: Pc(front.pc),
            state,
        }))
    }

    /// Runs each number alone from the start, or leaves all of them to the whole filter if they are too many.
    fn each_by_itself(&mut self, front: &Front) {
        let room = MAX_INTERVALS.saturating_sub(self.intervals);
        let Some(singles) = front.numbers.singles(room) else {
            return self.end(&front.numbers, self.whole());
        };
        self.intervals += singles.len();
        for nr in singles {
            let outcome = self.single(nr);
            self.found.push(((nr, nr), outcome));
        }
    }

    /// The outcome of one number.
    fn single(&mut self, nr: u32) -> Outcome {
        let mut front = self.filter.start(Numbers::default());
        loop {
            self.work += 1;
            if self.work > MAX_WORK {
                return self.whole();
            }
            let op = self.filter.ops[front.pc];
            let step = match op {
                Op::LoadData(0) => {
                    front.a = Value::Constant(nr);
                    front.pc += 1;
                    Step::Next
                }
                Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                } => match (front.a, value(operand, front.x)) {
                    (Value::Constant(a), Value::Constant(k)) => {
                        front.pc += 1 + usize::from(if test.holds(a, k) { jt } else { jf });
                        Step::Next
                    }
                    _ => Step::EachByItself,
                },
                op => self.step(op, &mut front),
            };
            match step {
                Step::Next => {}
                Step::End(outcome) => return outcome,
                // All values are constants here.
                Step::EachByItself => return self.whole(),
            }
        }
    }

    /// The whole filter, from its first instruction.
    fn whole(&self) -> Outcome {
        Outcome::Resume(Residual {
            filter: self.filter.index,
            pc: Pc(0),
            state: State::default(),
        })
    }

    fn end(&mut self, numbers: &Numbers, outcome: Outcome) {
        let all = numbers.0.iter().map(|interval| (*interval, outcome));
        self.found.extend(all);
    }
}

fn value(operand: Operand, x: Value) -> Value {
    match operand {
        Operand::K(k) => Value::Constant(k),
        Operand::X => x,
        // Programs have none.
        Operand::Variable(_) => Value::Computed,
    }
}
