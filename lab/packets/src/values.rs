//! Value numbering, with facts about registers and scratch memory at each point of a program.
//!
//! Two values with the same number are equal in every run that reaches both. A load from a fixed place always returns
//! the same value, so an equal number makes the load redundant. A branch adds facts about a value: a range, bits that
//! are zero, and excluded values. The state also has a lower bound of the packet's length: a load below it can't end
//! the program.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::hash::WordHashMap;
use tamis_bpf::insn::{AluOp, Operand, Test};
use tamis_bpf::interp::arithmetic;
use tamis_bpf::packet::{Ancillary, Extra, Load, Op, Size};

use super::graph::{BlockId, End, Graph};

/// The number of a value.
pub(super) type Value = u32;

/// A register or slot: an index of [`State::places`].
pub(super) type Place = usize;
pub(super) const A: Place = 0;
pub(super) const X: Place = 1;
/// The place of the first scratch slot.
pub(super) const MEMORY: Place = 2;
/// The number of places.
pub(super) const PLACES: usize = 18;

/// The most values with facts or loads in a state; and the most entries of a fact's list.
const MAX_KNOWN: usize = 64;
const MAX_LISTED: usize = 16;

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Const(u32),
    Len,
    Absolute(Size, u32),
    Indexed(Size, u32, Value),
    Ancillary(Ancillary),
    HeaderLen(u32),
    Alu(AluOp, Value, Value),
    Mod(Value, Value),
    Neg(Value),
    /// Different values meet in this place at this block's entry.
    Meet(BlockId, Place),
    /// An unknown value.
    Other(u32),
}

/// Facts about a value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fact {
    min: u32,
    max: u32,
    /// Bits that are zero.
    zero: u32,
    /// Excluded values.
    others: Vec<u32>,
    /// Masks with at least one set bit in the value.
    some: Vec<u32>,
}

impl Fact {
    fn up_to(max: u32) -> Fact {
        Fact {
            min: 0,
            max,
            zero: max
                .checked_ilog2()
                .map_or(u32::MAX, |top| !(u32::MAX >> (31 - top))),
            others: Vec::new(),
            some: Vec::new(),
        }
    }

    fn exactly(k: u32) -> Fact {
        Fact {
            min: k,
            max: k,
            zero: !k,
            ..Fact::up_to(k)
        }
    }

    /// The outcome of a test with a constant, if it is certain.
    fn outcome(&self, test: Test, k: u32) -> Option<bool> {
        if self.min == self.max {
            return Some(test.holds(self.min, k));
        }
        let (never, always) = match test {
            Test::Eq => (
                k < self.min || k > self.max || k & self.zero != 0 || self.others.contains(&k),
                false,
            ),
            Test::Gt => (self.max <= k, self.min > k),
            Test::Ge => (self.max < k, self.min >= k),
            Test::Set => (
                k & !self.zero == 0,
                self.some.iter().any(|some| some & !k == 0),
            ),
        };
        match (never, always) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        }
    }

    /// The facts after a test with a constant has this outcome.
    fn assume(mut self, test: Test, k: u32, holds: bool) -> Fact {
        match (test, holds) {
            (Test::Eq, true) => return Fact::exactly(k),
            (Test::Eq, false) => {
                if k == self.min {
                    self.min = self.min.saturating_add(1);
                } else if k == self.max {
                    self.max = self.max.saturating_sub(1);
                }
                if self.others.len() < MAX_LISTED {
                    self.others.push(k);
                }
            }
            (Test::Gt, true) => self.min = self.min.max(k.saturating_add(1)),
            (Test::Gt, false) => self.max = self.max.min(k),
            (Test::Ge, true) => self.min = self.min.max(k),
            (Test::Ge, false) => self.max = self.max.min(k.saturating_sub(1)),
            (Test::Set, true) => {
                if self.some.len() < MAX_LISTED {
                    self.some.push(k);
                }
            }
            (Test::Set, false) => self.zero |= k,
        }
        self
    }

    /// The facts that hold in both cases.
    fn or(&self, other: &Fact) -> Fact {
        let both = |own: &[u32], others: &[u32]| {
            let mut both = own.to_vec();
            both.retain(|k| others.contains(k));
            both
        };
        Fact {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            zero: self.zero & other.zero,
            others: both(&self.others, &other.others),
            some: both(&self.some, &other.some),
        }
    }
}

/// The state at a point of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) places: [Value; PLACES],
    /// The packet has at least this many bytes.
    inside_bytes: u64,
    /// Loaded values: the same load succeeds again.
    loaded: BTreeSet<Value>,
    facts: BTreeMap<Value, Fact>,
}

/// The numbers of values.
#[derive(Debug, Default)]
pub(super) struct Values {
    origins: Vec<Origin>,
    facts: Vec<Fact>,
    numbers: WordHashMap<Origin, Value>,
    others: u32,
}

impl Values {
    fn number(&mut self, origin: Origin) -> Value {
        if let Some(number) = self.numbers.get(&origin) {
            return *number;
        }
        let number = self.origins.len() as Value;
        self.facts.push(self.fact_of(origin));
        self.origins.push(origin);
        self.numbers.insert(origin, number);
        number
    }

    /// The facts that hold for all values of an origin.
    fn fact_of(&self, origin: Origin) -> Fact {
        let max = |value: Value| self.facts[value as usize].max;
        let exact = |value: Value| self.exact(value);
        match origin {
            Origin::Const(k) => Fact::exactly(k),
            Origin::Absolute(size, _) | Origin::Indexed(size, ..) => Fact::up_to(match size {
                Size::Byte => 0xff,
                Size::Half => 0xffff,
                Size::Word => u32::MAX,
            }),
            Origin::HeaderLen(_) => Fact {
                zero: !60,
                ..Fact::up_to(60)
            },
            Origin::Alu(AluOp::And, a, b) => {
                let zero = |value: Value| self.facts[value as usize].zero;
                Fact {
                    zero: zero(a) | zero(b),
                    ..Fact::up_to(max(a).min(max(b)))
                }
            }
            Origin::Alu(AluOp::Rsh, a, by) => match exact(by) {
                Some(by) if by < 32 => Fact::up_to(max(a) >> by),
                _ => Fact::up_to(max(a)),
            },
            Origin::Alu(AluOp::Lsh, a, by) => match exact(by) {
                Some(by) if by < 32 && max(a).leading_zeros() >= by => Fact::up_to(max(a) << by),
                _ => Fact::up_to(u32::MAX),
            },
            Origin::Mod(_, by) => match exact(by) {
                Some(by @ 1..) => Fact::up_to(by - 1),
                _ => Fact::up_to(u32::MAX),
            },
            _ => Fact::up_to(u32::MAX),
        }
    }

    fn exact(&self, value: Value) -> Option<u32> {
        match self.origins[value as usize] {
            Origin::Const(k) => Some(k),
            _ => None,
        }
    }

    fn other(&mut self) -> Value {
        self.others += 1;
        self.number(Origin::Other(self.others))
    }

    fn fact<'a>(&'a self, state: &'a State, value: Value) -> &'a Fact {
        let here = state.facts.get(&value);
        here.unwrap_or(&self.facts[value as usize])
    }

    /// The constant that a value equals.
    pub(super) fn constant(&self, state: &State, value: Value) -> Option<u32> {
        let fact = self.fact(state, value);
        (fact.min == fact.max).then_some(fact.min)
    }

    fn operand(&mut self, state: &State, operand: Operand) -> Value {
        match operand {
            Operand::K(k) => self.number(Origin::Const(k)),
            Operand::X => state.places[X],
            Operand::Variable(_) => self.other(),
        }
    }

    /// The state at the entry of a program.
    pub(super) fn start(&mut self) -> State {
        let zero = self.number(Origin::Const(0));
        State {
            places: [zero; PLACES],
            inside_bytes: 0,
            loaded: BTreeSet::new(),
            facts: BTreeMap::new(),
        }
    }

    /// Executes an instruction; returns whether it may end the program.
    pub(super) fn step(&mut self, state: &mut State, op: Op) -> bool {
        let State { places, .. } = *state;
        match op {
            Op::LoadData(load) => return self.load(state, load),
            Op::LoadImm(k) => state.places[A] = self.number(Origin::Const(k)),
            Op::LoadXImm(k) => state.places[X] = self.number(Origin::Const(k)),
            Op::LoadLen => state.places[A] = self.number(Origin::Len),
            Op::LoadXLen => state.places[X] = self.number(Origin::Len),
            Op::LoadMem(slot) => state.places[A] = places[MEMORY + slot as usize],
            Op::LoadXMem(slot) => state.places[X] = places[MEMORY + slot as usize],
            Op::Store(slot) => state.places[MEMORY + slot as usize] = places[A],
            Op::StoreX(slot) => state.places[MEMORY + slot as usize] = places[X],
            Op::Tax => state.places[X] = places[A],
            Op::Txa => state.places[A] = places[X],
            Op::Neg => {
                state.places[A] = match self.constant(state, places[A]) {
                    Some(k) => self.number(Origin::Const(k.wrapping_neg())),
                    None => self.number(Origin::Neg(places[A])),
                }
            }
            Op::Alu(alu, operand) => {
                let by = self.operand(state, operand);
                state.places[A] = self.alu(state, alu, by);
                return alu == AluOp::Div && self.may_be_zero(state, by);
            }
            Op::Extra(Extra::Mod(operand)) => {
                let by = self.operand(state, operand);
                state.places[A] = self.number(Origin::Mod(places[A], by));
                return self.may_be_zero(state, by);
            }
            Op::Extra(Extra::LoadXHeaderLen(k)) => {
                let value = self.number(Origin::HeaderLen(k));
                state.places[X] = value;
                return state.may_end(value, Size::Byte, k);
            }
            Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {}
        }
        false
    }

    fn load(&mut self, state: &mut State, load: Load) -> bool {
        let [a, x, ..] = state.places;
        let (value, may_end) = match load {
            Load::Absolute(size, k) => {
                let value = self.number(Origin::Absolute(size, k));
                (value, state.may_end(value, size, k))
            }
            Load::Indexed(size, k) => match self.constant(state, x).map(|x| x.checked_add(k)) {
                Some(Some(k @ ..0x8000_0000)) => {
                    let value = self.number(Origin::Absolute(size, k));
                    (value, state.may_end(value, size, k))
                }
                _ => {
                    let value = self.number(Origin::Indexed(size, k, x));
                    (value, state.is_first_load(value))
                }
            },
            Load::Ancillary(_, Ancillary::XorX) => {
                (self.number(Origin::Alu(AluOp::Xor, a, x)), false)
            }
            // These depend on more than the packet.
            Load::Ancillary(
                _,
                Ancillary::Random
                | Ancillary::Cpu
                | Ancillary::NetlinkAttribute
                | Ancillary::NetlinkNested,
            ) => (self.other(), true),
            Load::Ancillary(_, ancillary) => {
                let value = self.number(Origin::Ancillary(ancillary));
                (value, state.is_first_load(value))
            }
        };
        state.places[A] = value;
        may_end
    }

    fn alu(&mut self, state: &State, alu: AluOp, by: Value) -> Value {
        let a = state.places[A];
        let k = self.constant(state, by);
        if let (Some(a), Some(k)) = (self.constant(state, a), k)
            && let Some(result) = arithmetic(alu, a, k)
        {
            return self.number(Origin::Const(result));
        }
        let is_same = match (alu, k) {
            (
                AluOp::Add | AluOp::Sub | AluOp::Or | AluOp::Xor | AluOp::Lsh | AluOp::Rsh,
                Some(0),
            )
            | (AluOp::Mul | AluOp::Div, Some(1)) => true,
            // The mask keeps all bits that may be set.
            (AluOp::And, Some(k)) => !k & !self.fact(state, a).zero == 0,
            _ => false,
        };
        match k {
            _ if is_same => a,
            Some(k) => {
                let k = self.number(Origin::Const(k));
                self.number(Origin::Alu(alu, a, k))
            }
            None => self.number(Origin::Alu(alu, a, by)),
        }
    }

    fn may_be_zero(&self, state: &State, value: Value) -> bool {
        self.fact(state, value).outcome(Test::Eq, 0) != Some(false)
    }

    /// The outcome of a test of A, if it is certain.
    pub(super) fn outcome(&mut self, state: &State, test: Test, operand: Operand) -> Option<bool> {
        let by = self.operand(state, operand);
        if by == state.places[A] && test != Test::Set {
            return Some(test != Test::Gt);
        }
        let k = self.constant(state, by)?;
        self.fact(state, state.places[A]).outcome(test, k)
    }

    /// The states after a block's end, for each possible target.
    pub(super) fn ways(&mut self, state: &State, end: End) -> Vec<(BlockId, State)> {
        match end {
            End::Goto(to) => vec![(to, state.clone())],
            End::Branch {
                test,
                operand,
                holds,
                fails,
            } => {
                let outcome = self.outcome(state, test, operand);
                let by = self.operand(state, operand);
                let k = self.constant(state, by);
                let sides = [(true, holds), (false, fails)];
                let possible = sides.into_iter().filter(|(side, _)| outcome != Some(!side));
                let way = |(side, to)| {
                    let mut state = state.clone();
                    if let Some(k) = k {
                        let value = state.places[A];
                        let fact = self.fact(&state, value).clone().assume(test, k, side);
                        state.facts.insert(value, fact);
                        if state.facts.len() > MAX_KNOWN {
                            state.facts.pop_first();
                        }
                    }
                    (to, state)
                };
                possible.map(way).collect()
            }
            End::RetImm(_) | End::RetA => Vec::new(),
        }
    }

    /// The state where two ways join at a block's entry.
    fn meet(&mut self, block: BlockId, known: &State, other: &State) -> State {
        let mut places = known.places;
        for (place, value) in places.iter_mut().enumerate() {
            if *value != other.places[place] {
                *value = self.number(Origin::Meet(block, place));
            }
        }
        let both = known.facts.iter().filter_map(|(value, fact)| {
            let other = other.facts.get(value)?;
            Some((*value, fact.or(other)))
        });
        State {
            places,
            inside_bytes: known.inside_bytes.min(other.inside_bytes),
            loaded: known.loaded.intersection(&other.loaded).copied().collect(),
            facts: both.collect(),
        }
    }

    /// The state at the entry of each reachable block.
    pub(super) fn entries(&mut self, graph: &Graph) -> Vec<Option<State>> {
        let mut entries: Vec<Option<State>> = vec![None; graph.blocks.len()];
        entries[0] = Some(self.start());
        for (id, block) in graph.blocks.iter().enumerate() {
            let Some(mut state) = entries[id].clone() else {
                continue;
            };
            for op in &block.ops {
                self.step(&mut state, *op);
            }
            for (to, state) in self.ways(&state, block.end) {
                let met = match &entries[to] {
                    Some(known) => self.meet(to, known, &state),
                    None => state,
                };
                entries[to] = Some(met);
            }
        }
        entries
    }
}

impl State {
    /// Notes a load from a place; returns whether it may have ended the program.
    fn may_end(&mut self, value: Value, size: Size, k: u32) -> bool {
        let is_first = self.is_first_load(value);
        // Offsets from 2^31 on address other areas than the packet's bytes from its start.
        if k >= 0x8000_0000 {
            return is_first;
        }
        let end = u64::from(k) + u64::from(size.bytes());
        let is_outside = end > self.inside_bytes;
        self.inside_bytes = self.inside_bytes.max(end);
        is_outside
    }

    fn is_first_load(&mut self, value: Value) -> bool {
        let is_first = self.loaded.insert(value);
        if self.loaded.len() > MAX_KNOWN {
            self.loaded.pop_first();
        }
        is_first
    }
}

/// The places that an instruction reads, as bits, and the one that it writes.
pub(super) fn effect(op: Op) -> (u32, Option<Place>) {
    let slot = |slot: u32| MEMORY + slot as usize;
    let bit = |place: Place| 1_u32 << place;
    let with = |operand| match operand {
        Operand::X => bit(A) | bit(X),
        _ => bit(A),
    };
    match op {
        Op::LoadData(Load::Absolute(..)) | Op::LoadImm(_) | Op::LoadLen => (0, Some(A)),
        Op::LoadData(Load::Indexed(..)) | Op::Txa => (bit(X), Some(A)),
        Op::LoadData(Load::Ancillary(_, one)) => (beside(one), Some(A)),
        Op::LoadMem(from) => (bit(slot(from)), Some(A)),
        Op::LoadXMem(from) => (bit(slot(from)), Some(X)),
        Op::LoadXImm(_) | Op::LoadXLen | Op::Extra(Extra::LoadXHeaderLen(_)) => (0, Some(X)),
        Op::Store(to) => (bit(A), Some(slot(to))),
        Op::StoreX(to) => (bit(X), Some(slot(to))),
        Op::Tax => (bit(A), Some(X)),
        Op::Neg => (bit(A), Some(A)),
        Op::Alu(_, operand) | Op::Extra(Extra::Mod(operand)) => (with(operand), Some(A)),
        Op::Branch { operand, .. } => (with(operand), None),
        Op::RetA => (bit(A), None),
        Op::Jump(_) | Op::RetImm(_) => (0, None),
    }
}

/// The places that an ancillary load reads, as bits.
const fn beside(one: Ancillary) -> u32 {
    match one {
        Ancillary::XorX | Ancillary::NetlinkAttribute | Ancillary::NetlinkNested => 1 << A | 1 << X,
        // A packet without a device returns A.
        Ancillary::InterfaceIndex | Ancillary::HardwareType => 1 << A,
        Ancillary::Protocol
        | Ancillary::PacketType
        | Ancillary::Mark
        | Ancillary::Queue
        | Ancillary::FlowHash
        | Ancillary::Cpu
        | Ancillary::VlanTag
        | Ancillary::HasVlanTag
        | Ancillary::PayloadOffset
        | Ancillary::Random
        | Ancillary::VlanProtocol => 0,
    }
}
