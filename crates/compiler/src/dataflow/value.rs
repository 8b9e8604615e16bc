//! Values: names for the contents of registers; equal names imply equal contents for every input.
//!
//! A value is a constant, a word of `seccomp_data` or of a variable, an operation on values, or, if nothing better is
//! known, the content of a place on entry to a block. Equal descriptions get the same name, and a few laws of
//! arithmetic make more of them equal.

use tamis_abi::Word;
use tamis_abi::hash::WordHashMap;
use tamis_bpf::interp::arithmetic;
use tamis_bpf::{AluOp, Test};

use crate::hash::{Places, hash_of_words};

use super::lists::Lists;

/// The name of a value; its index in [`Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(u32);

/// The description of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// This constant.
    Constant(u32),
    /// The word of `seccomp_data` at this byte offset.
    Data(u32),
    /// A word of a run-time variable.
    Variable(Word),
    /// The result of an operation.
    Alu(AluOp, Value, Value),
    /// 1 if the comparison holds, else 0.
    Comparison(Test, Value, Value),
    /// The content of a place on entry to the block with this name.
    Entering(u32, Place),
    /// The content of a word of scratch memory before the program.
    Left(u32),
}

impl Meaning {
    /// Whether the value is a 32-bit word without operands.
    pub const fn is_word(self) -> bool {
        matches!(
            self,
            Meaning::Data(_) | Meaning::Variable(_) | Meaning::Entering(..) | Meaning::Left(_)
        )
    }
}

/// A place for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The accumulator.
    A,
    /// The index register.
    X,
    /// A word of scratch memory.
    Memory(u32),
}

/// The number of words of scratch memory.
pub(super) const SLOTS: u32 = 16;

/// The name of a content of scratch memory, equal only for equal contents; its index in [`Values`]. Few programs
/// store anything, so states share contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory(u32);

/// The content of scratch memory, by word.
type Held = [Value; SLOTS as usize];

/// All values named so far, and the lists of facts of states.
#[derive(Debug, Default)]
pub struct Values {
    /// The contents of scratch memory, by name, without duplicates.
    memories: Vec<Held>,
    /// Indices of these, by content.
    known_memories: Places,
    meanings: Vec<Meaning>,
    known: WordHashMap<Meaning, Value>,
    /// The values of the words of `seccomp_data`, which have the most lookups.
    data: [Option<Value>; Word::COUNT],
    pub(crate) lists: Lists,
}

impl Values {
    /// A store without values.
    pub fn new() -> Values {
        Values::default()
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.memories.clear();
        self.known_memories.clear();
        self.meanings.clear();
        self.known.clear();
        self.data = [None; Word::COUNT];
        self.lists.clear();
    }

    /// The number of values, memories and list entries.
    pub(crate) fn len(&self) -> usize {
        self.meanings.len() + self.memories.len() + self.lists.len()
    }

    /// Scratch memory before the program.
    pub(super) fn memory_before(&mut self) -> Memory {
        let mut slots = 0..SLOTS;
        let left = [(); SLOTS as usize].map(|()| {
            let slot = slots.next().unwrap_or(0);
            self.name(Meaning::Left(slot))
        });
        self.memory(left)
    }

    /// The value of a word of scratch memory.
    pub(super) fn held(&self, memory: Memory, slot: u32) -> Value {
        self.memories[memory.0 as usize][slot as usize]
    }

    /// The memory with another value in one word.
    pub(super) fn with_held(&mut self, memory: Memory, slot: u32, value: Value) -> Memory {
        let mut held = self.memories[memory.0 as usize];
        held[slot as usize] = value;
        self.memory(held)
    }

    /// The name of a memory with this content.
    fn memory(&mut self, held: Held) -> Memory {
        let memories = &mut self.memories;
        let words = held.chunks_exact(2);
        let words = words.map(|pair| u64::from(pair[0].0) << 32 | u64::from(pair[1].0));
        let eq = |place: usize| memories[place] == held;
        let known = self
            .known_memories
            .find_or_insert(hash_of_words(words), memories.len(), eq);
        let place = known.unwrap_or_else(|| {
            memories.push(held);
            memories.len() - 1
        });
        Memory(place as u32)
    }

    /// The description of a value.
    pub fn meaning(&self, value: Value) -> Meaning {
        self.meanings[value.0 as usize]
    }

    /// The constant that a value describes; `None` for other values.
    pub fn constant(&self, value: Value) -> Option<u32> {
        match self.meaning(value) {
            Meaning::Constant(k) => Some(k),
            _ => None,
        }
    }

    /// The value with this description.
    pub fn name(&mut self, meaning: Meaning) -> Value {
        *self.known.entry(meaning).or_insert_with(|| {
            self.meanings.push(meaning);
            Value(self.meanings.len() as u32 - 1)
        })
    }

    /// The word of `seccomp_data` at this byte offset.
    pub fn word(&mut self, offset: u32) -> Value {
        let place = offset as usize / 4;
        match self.data.get(place) {
            Some(Some(known)) if offset.is_multiple_of(4) => *known,
            _ => {
                let named = self.name(Meaning::Data(offset));
                if let Some(place) = self.data.get_mut(place)
                    && offset.is_multiple_of(4)
                {
                    *place = Some(named);
                }
                named
            }
        }
    }

    /// The value of a constant.
    pub fn intern_constant(&mut self, k: u32) -> Value {
        self.name(Meaning::Constant(k))
    }

    /// The result of an operation. A division by zero ends the program, so any statement about its result is true.
    pub fn alu(&mut self, op: AluOp, left: Value, right: Value) -> Value {
        let is_commutative = matches!(
            op,
            AluOp::Add | AluOp::Mul | AluOp::And | AluOp::Or | AluOp::Xor
        );
        let (left, right) = match self.constant(left) {
            Some(_) if is_commutative => (right, left),
            None if is_commutative && self.constant(right).is_none() => {
                (left.min(right), left.max(right))
            }
            _ => (left, right),
        };
        match (self.constant(left), self.constant(right)) {
            (Some(a), Some(k)) => self.intern_constant(arithmetic(op, a, k).unwrap_or(0)),
            (_, Some(k)) => self.alu_constant(op, left, k),
            _ if left == right => match op {
                AluOp::And | AluOp::Or => left,
                AluOp::Sub | AluOp::Xor => self.intern_constant(0),
                _ => self.name(Meaning::Alu(op, left, right)),
            },
            _ => self.name(Meaning::Alu(op, left, right)),
        }
    }

    fn alu_constant(&mut self, op: AluOp, left: Value, k: u32) -> Value {
        let k = match op {
            AluOp::Lsh | AluOp::Rsh => k & 31,
            _ => k,
        };
        match (op, k) {
            (AluOp::Add | AluOp::Sub | AluOp::Or | AluOp::Xor | AluOp::Lsh | AluOp::Rsh, 0)
            | (AluOp::Mul | AluOp::Div, 1)
            | (AluOp::And, u32::MAX) => return left,
            (AluOp::And | AluOp::Mul, 0) => return self.intern_constant(0),
            (AluOp::Or, u32::MAX) => return self.intern_constant(u32::MAX),
            _ => {}
        }
        if op == AluOp::And
            && let Meaning::Alu(AluOp::And, inner, mask) = self.meaning(left)
            && let Some(mask) = self.constant(mask)
        {
            return self.alu_constant(AluOp::And, inner, mask & k);
        }
        let k = self.intern_constant(k);
        self.name(Meaning::Alu(op, left, k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storing_the_same_again_and_again_does_not_add_memories() {
        let mut values = Values::new();
        let before = values.memory_before();
        let [one, two] = [1, 2].map(|k| values.intern_constant(k));
        let mut memory = before;
        let mut lens = Vec::new();
        for _ in 0..100 {
            for (slot, value) in [(3, one), (15, two), (3, two), (15, one)] {
                memory = values.with_held(memory, slot, value);
            }
            lens.push(values.len());
        }
        // The first round also adds the initial content of memory.
        assert!(lens[1..].iter().all(|len| *len == lens[1]), "{lens:?}");
        assert_eq!(values.memory_before(), before);
        assert_eq!(values.len(), lens[1]);
    }

    #[test]
    fn memories_are_equal_if_and_only_if_they_hold_the_same() {
        let mut values = Values::new();
        let before = values.memory_before();
        let [one, two] = [1, 2].map(|k| values.intern_constant(k));
        let mut stored = |stores: &[(u32, Value)]| {
            let stores = stores.iter();
            stores.fold(before, |memory, (slot, value)| {
                values.with_held(memory, *slot, *value)
            })
        };
        let both = stored(&[(0, one), (1, two)]);
        assert_eq!(both, stored(&[(1, two), (0, one)]));
        assert_eq!(both, stored(&[(0, two), (1, two), (0, one)]));
        assert_ne!(both, stored(&[(0, two), (1, one)]));
        assert_ne!(both, stored(&[(0, one)]));
        let left = values.held(before, 0);
        let with_one = values.with_held(before, 0, one);
        assert_eq!(values.with_held(with_one, 0, left), before);
        assert_eq!(values.held(both, 1), two);
        values.clear();
        let before = values.memory_before();
        let left = values.held(before, 9);
        assert_eq!(values.meaning(left), Meaning::Left(9));
    }
}
