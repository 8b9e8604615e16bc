//! States: the values of A, X and scratch memory, and the facts about values.

use tamis_bpf::{AluOp, Op, Operand, Test};

use super::fact::Fact;
use super::lists::{Draft, List};
use super::live::written_by;
use super::value::{Meaning, Memory, Place, SLOTS, Value, Values};

/// The maximum depth of the search for facts in a value's operands.
const MAX_DEPTH: usize = 4;

/// The state at one point of a program.
#[derive(Clone, Copy, Debug)]
pub struct State {
    a: Value,
    x: Value,
    memory: Memory,
    facts: List,
}

impl State {
    /// The state before the first instruction: A and X are 0, scratch memory is unknown, because programs may not
    /// read it before they write it.
    pub fn at_start(values: &mut Values) -> State {
        let zero = values.intern_constant(0);
        State {
            a: zero,
            x: zero,
            memory: values.memory_before(),
            facts: List::default(),
        }
    }

    /// The same values with other facts.
    pub(super) const fn with_facts(self, facts: List) -> State {
        State { facts, ..self }
    }

    #[cfg(test)]
    pub(super) const fn facts(&self) -> List {
        self.facts
    }

    /// Whether both have the same values and facts.
    pub(super) fn is_equal(&self, other: &State, values: &Values) -> bool {
        self.a == other.a
            && self.x == other.x
            && self.memory == other.memory
            && values.lists.are_equal(self.facts, other.facts)
    }

    /// The value in a place.
    pub fn get(&self, place: Place, values: &Values) -> Value {
        match place {
            Place::A => self.a,
            Place::X => self.x,
            Place::Memory(slot) => values.held(self.memory, slot),
        }
    }

    /// The constant that a value equals, by itself or by the facts.
    pub fn constant(&self, value: Value, values: &Values) -> Option<u32> {
        self.fact(value, values, MAX_DEPTH)?.constant()
    }

    /// The value that an instruction writes.
    pub fn result(&self, op: Op, values: &mut Values) -> Value {
        match op {
            Op::LoadData(offset) => values.word(offset),
            Op::LoadImm(k) | Op::LoadXImm(k) => values.intern_constant(k),
            Op::LoadMem(slot) | Op::LoadXMem(slot) => values.held(self.memory, slot),
            Op::LoadLen | Op::LoadXLen => values.intern_constant(64),
            Op::StoreX(_) | Op::Txa => self.x,
            Op::Alu(alu, operand) => {
                let operand = self.operand(operand, values);
                values.alu(alu, self.a, operand)
            }
            Op::Neg => {
                let zero = values.intern_constant(0);
                values.alu(AluOp::Sub, zero, self.a)
            }
            // Jumps and returns are not instructions of blocks.
            Op::Store(_) | Op::Tax | Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {
                self.a
            }
        }
    }

    /// Executes one instruction of a block; returns whether its destination already held the result.
    pub fn step(&mut self, op: Op, values: &mut Values) -> bool {
        let value = self.result(op, values);
        let place = written_by(op);
        let was_there = self.get(place, values) == value;
        if !was_there {
            self.set(place, value, values);
        }
        was_there
    }

    fn set(&mut self, place: Place, value: Value, values: &mut Values) {
        match place {
            Place::A => self.a = value,
            Place::X => self.x = value,
            Place::Memory(slot) => self.memory = values.with_held(self.memory, slot, value),
        }
    }

    /// The outcome of a test, if known.
    pub fn answer(&self, test: Test, operand: Operand, values: &mut Values) -> Option<bool> {
        let Some(k) = self.constant_operand(operand, values) else {
            let right = self.operand(operand, values);
            if self.a == right && test != Test::Set {
                return Some(test != Test::Gt);
            }
            let comparison = values.name(Meaning::Comparison(test, self.a, right));
            return Some(self.constant(comparison, values)? != 0);
        };
        let answer = match values.meaning(self.a).is_word() {
            true => match values.lists.get(self.facts, self.a) {
                Some(known) => known.answer(test, k),
                None => Fact::ANY.answer(test, k),
            },
            false => self.fact(self.a, values, MAX_DEPTH)?.answer(test, k),
        };
        if answer.is_some() || test != Test::Set {
            return answer;
        }
        let masked = masked(self.a, k, values);
        let answer = self.fact(masked, values, MAX_DEPTH)?.answer(Test::Eq, 0)?;
        Some(!answer)
    }

    /// The facts on both sides of a test of A, given its outcome if that is known; `None` if a side is impossible or
    /// not needed.
    pub(super) fn sides(
        &self,
        test: Test,
        operand: Operand,
        answer: Option<bool>,
        [is_yes_asked, is_no_asked]: [bool; 2],
        values: &mut Values,
    ) -> [Option<List>; 2] {
        let mut side = |holds: bool, is_asked: bool| match answer {
            _ if !is_asked => None,
            Some(answer) => (answer == holds).then_some(self.facts),
            None => {
                let mut state = *self;
                let can_be = state.assume(test, operand, holds, values);
                can_be.then_some(state.facts)
            }
        };
        [side(true, is_yes_asked), side(false, is_no_asked)]
    }

    /// Adds an outcome that did not follow from the facts; false if it is impossible.
    pub fn assume(
        &mut self,
        test: Test,
        operand: Operand,
        holds: bool,
        values: &mut Values,
    ) -> bool {
        let Some(k) = self.constant_operand(operand, values) else {
            let right = self.operand(operand, values);
            let comparison = values.name(Meaning::Comparison(test, self.a, right));
            return self.learn(comparison, &Fact::exactly(u32::from(holds)), values);
        };
        let a = self.a;
        if test != Test::Set && values.meaning(a).is_word() {
            // Most tests are of this kind, and give no facts about other values.
            let known = values.lists.get(self.facts, a).unwrap_or(&Fact::ANY);
            let Some(fact) = known.after(test, k, holds) else {
                return false;
            };
            self.facts = values.lists.with(self.facts, a, fact.settled());
            return true;
        }
        if test == Test::Set && !k.is_power_of_two() {
            let masked = masked(a, k, values);
            let fact = Fact::ANY.after(Test::Eq, 0, !holds);
            if !fact.is_some_and(|fact| self.learn(masked, &fact, values)) {
                return false;
            }
        }
        let fact = Fact::ANY.after(test, k, holds);
        fact.is_some_and(|fact| self.learn(a, &fact, values))
    }

    /// Merges another state into this one, on entry to the block with this name: keeps the facts that hold in both.
    pub(super) fn meet(&mut self, other: &State, block: u32, values: &mut Values) {
        let mut draft = (self.facts != other.facts || !self.knows_words_only(values))
            .then(|| self.facts_of_both(other, values));
        let mut merged = *self;
        let is_memory_equal = self.memory == other.memory;
        let slots = if is_memory_equal { 0 } else { SLOTS };
        let places = [Place::A, Place::X].into_iter();
        for place in places.chain((0..slots).map(Place::Memory)) {
            let (here, there) = (self.get(place, values), other.get(place, values));
            if here == there {
                continue;
            }
            let name = values.name(Meaning::Entering(block, place));
            let fact = |state: &State, value| state.fact(value, values, MAX_DEPTH);
            if let (Some(one), Some(two)) = (fact(self, here), fact(other, there)) {
                let joined = one.either(&two);
                let draft = draft.get_or_insert_with(|| values.lists.draft_of(self.facts));
                values.lists.retract(*draft, name);
                if joined != Fact::ANY {
                    values.lists.push(name, joined.settled());
                }
            }
            merged.set(place, name, values);
        }
        if let Some(draft) = draft {
            merged.facts = values.lists.finish(draft, self.facts);
        }
        *self = merged;
    }

    /// Whether there are only facts about values without operands, and none of them is trivial.
    fn knows_words_only(&self, values: &Values) -> bool {
        let mut known = values.lists.iter(self.facts);
        known.all(|(value, fact)| values.meaning(value).is_word() && *fact != Fact::ANY)
    }

    /// Starts a list of the facts that hold in both states.
    fn facts_of_both(&self, other: &State, values: &mut Values) -> Draft {
        let draft = values.lists.draft();
        for place in 0..self.facts.len() {
            let (value, id) = values.lists.entry(self.facts, place);
            let is_word = values.meaning(value).is_word();
            if is_word && values.lists.id(other.facts, value) == Some(id) {
                values.lists.push_known(value, id);
                continue;
            }
            let there = other.fact(value, values, MAX_DEPTH).unwrap_or(Fact::ANY);
            let joined = values.lists.fact(id).either(&there);
            if joined != Fact::ANY {
                values.lists.push(value, joined.settled());
            }
        }
        draft
    }

    /// The constant that is the right operand of a test, without adding a value for it.
    fn constant_operand(&self, operand: Operand, values: &Values) -> Option<u32> {
        match operand {
            Operand::K(k) => Some(k),
            Operand::X => values.constant(self.x),
            Operand::Variable(_) => None,
        }
    }

    fn operand(&self, operand: Operand, values: &mut Values) -> Value {
        match operand {
            Operand::K(k) => values.intern_constant(k),
            Operand::X => self.x,
            Operand::Variable(word) => values.name(Meaning::Variable(word)),
        }
    }

    /// The fact about a value: the stored one, refined by its operands. `None` if these contradict each other, so
    /// that no input reaches this point.
    fn fact(&self, value: Value, values: &Values, depth: usize) -> Option<Fact> {
        let known = values.lists.get(self.facts, value);
        let learnt = known.copied().unwrap_or(Fact::ANY);
        let Some(depth) = depth.checked_sub(1) else {
            return Some(learnt);
        };
        let follows = match values.meaning(value) {
            Meaning::Constant(k) => Fact::exactly(k),
            Meaning::Alu(op, left, right) => match values.constant(right) {
                Some(k) => result_fact(op, &self.fact(left, values, depth)?, k)?,
                None => Fact::ANY,
            },
            Meaning::Comparison(..) => Fact::between(0, 1)?,
            Meaning::Data(_) | Meaning::Variable(_) | Meaning::Entering(..) | Meaning::Left(_) => {
                return Some(learnt);
            }
        };
        learnt.both(&follows)
    }

    /// Adds a fact about a value and its operands; false on a contradiction.
    fn learn(&mut self, value: Value, fact: &Fact, values: &mut Values) -> bool {
        let (mut value, mut fact) = (value, *fact);
        for _ in 0..MAX_DEPTH {
            let known = self.fact(value, values, MAX_DEPTH);
            let Some(sharper) = known.and_then(|known| known.both(&fact)) else {
                return false;
            };
            self.facts = values.lists.with(self.facts, value, sharper.settled());
            let Meaning::Alu(op, left, right) = values.meaning(value) else {
                return true;
            };
            let Some(k) = values.constant(right) else {
                return true;
            };
            match operand_fact(op, &sharper, k) {
                Some(next) => (value, fact) = (left, next),
                None => return true,
            }
        }
        true
    }
}

fn masked(value: Value, mask: u32, values: &mut Values) -> Value {
    let mask = values.intern_constant(mask);
    values.alu(AluOp::And, value, mask)
}

/// The fact about `left op k`, given that about `left`.
fn result_fact(op: AluOp, left: &Fact, k: u32) -> Option<Fact> {
    match op {
        AluOp::And => {
            let bits = Fact::bits(left.clear | !k, left.set & k)?;
            bits.both(&Fact::between(0, left.high)?)
        }
        AluOp::Or => Fact::bits(left.clear & !k, left.set | k),
        AluOp::Xor => {
            let known = left.clear | left.set;
            let flipped = left.set ^ k;
            Fact::bits(known & !flipped, known & flipped)
        }
        AluOp::Rsh => Fact::between(left.low >> k, left.high >> k)?.both(&Fact::bits(
            left.clear >> k | !(u32::MAX >> k),
            left.set >> k,
        )?),
        AluOp::Lsh => Fact::bits(left.clear << k | !(u32::MAX << k), left.set << k),
        AluOp::Add => match (left.low.checked_add(k), left.high.checked_add(k)) {
            (Some(low), Some(high)) => Fact::between(low, high),
            _ => Some(Fact::ANY),
        },
        AluOp::Sub => match (left.low.checked_sub(k), left.high.checked_sub(k)) {
            (Some(low), Some(high)) => Fact::between(low, high),
            _ => Some(Fact::ANY),
        },
        AluOp::Div => match (left.low.checked_div(k), left.high.checked_div(k)) {
            (Some(low), Some(high)) => Fact::between(low, high),
            _ => Some(Fact::ANY),
        },
        AluOp::Mul => Some(Fact::ANY),
    }
}

/// The fact about `left` that follows from that about `left op k`.
fn operand_fact(op: AluOp, result: &Fact, k: u32) -> Option<Fact> {
    match op {
        AluOp::And => {
            let bits = Fact::bits(result.clear & k, result.set)?;
            bits.both(&Fact::between(result.low, u32::MAX)?)
        }
        AluOp::Rsh => {
            let rest = !(u32::MAX << k);
            Fact::between(result.low << k, (result.high << k) | rest)
        }
        AluOp::Xor => {
            let known = result.clear | result.set;
            let flipped = result.set ^ k;
            Fact::bits(known & !flipped, known & flipped)
        }
        AluOp::Add => result
            .constant()
            .map(|sum| Fact::exactly(sum.wrapping_sub(k))),
        AluOp::Sub => result
            .constant()
            .map(|rest| Fact::exactly(rest.wrapping_add(k))),
        _ => None,
    }
}
