//! The gates: and-gates with inverters on their edges, without duplicates.

use tamis_abi::Word;
use tamis_abi::hash::WordHashMap;

use crate::diagram::LimitReached;
use crate::stop::{Share, Stop};

/// The output of a gate, or its inverse: twice the number of the gate, plus one if inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Gate(u32);

impl Gate {
    /// Gate 0 is the constant false.
    pub(super) const FALSE: Gate = Gate(0);
    pub(super) const TRUE: Gate = Gate(1);

    pub(super) const fn not(self) -> Gate {
        Gate(self.0 ^ 1)
    }

    /// The number of the gate.
    pub(super) const fn number(self) -> usize {
        self.0 as usize >> 1
    }

    pub(super) const fn is_inverted(self) -> bool {
        self.0 & 1 == 1
    }
}

impl From<bool> for Gate {
    fn from(value: bool) -> Gate {
        if value { Gate::TRUE } else { Gate::FALSE }
    }
}

/// The driver of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Driver {
    False,
    /// A bit of the input; bit 0 is the lowest.
    Input(Word, u32),
    /// A bit that may have any value, by its number.
    Free(u32),
    /// True if both are true.
    And(Gate, Gate),
}

pub(super) struct Gates {
    drivers: Vec<Driver>,
    numbers: WordHashMap<Driver, u32>,
    max_gates: usize,
    /// The count of gates asked for, whether or not they are new.
    requests: usize,
    stop: Stop,
    share: Share,
}

/// The interval of checks for cancellation, in requests.
const REQUESTS_BETWEEN_CHECKS: usize = 1 << 12;
/// The interval of accounts of memory.
const GATES_BETWEEN_ACCOUNTS: usize = 1 << 12;

impl Gates {
    pub(super) fn new(max_gates: usize, stop: Stop) -> Gates {
        Gates {
            drivers: vec![Driver::False],
            numbers: WordHashMap::default(),
            max_gates: max_gates.min(1 << 30),
            requests: 0,
            share: stop.share(),
            stop,
        }
    }

    pub(super) fn driver(&self, number: usize) -> Driver {
        self.drivers[number]
    }

    pub(super) fn input(&mut self, word: Word, bit: u32) -> Result<Gate, LimitReached> {
        self.driven_by(Driver::Input(word, bit))
    }

    pub(super) fn free(&mut self, number: u32) -> Result<Gate, LimitReached> {
        self.driven_by(Driver::Free(number))
    }

    pub(super) fn and(&mut self, a: Gate, b: Gate) -> Result<Gate, LimitReached> {
        let (a, b) = (a.min(b), a.max(b));
        if a == Gate::FALSE || a == b.not() {
            return Ok(Gate::FALSE);
        }
        if a == Gate::TRUE || a == b {
            return Ok(b);
        }
        self.driven_by(Driver::And(a, b))
    }

    pub(super) fn or(&mut self, a: Gate, b: Gate) -> Result<Gate, LimitReached> {
        Ok(self.and(a.not(), b.not())?.not())
    }

    /// `yes` if the condition is true, else `no`.
    pub(super) fn select(
        &mut self,
        condition: Gate,
        yes: Gate,
        no: Gate,
    ) -> Result<Gate, LimitReached> {
        if yes == no {
            return Ok(yes);
        }
        let yes = self.and(condition, yes)?;
        let no = self.and(condition.not(), no)?;
        self.or(yes, no)
    }

    pub(super) fn xor(&mut self, a: Gate, b: Gate) -> Result<Gate, LimitReached> {
        // Inverters are moved to the output, so that the gates in between are shared.
        let is_inverted = a.is_inverted() != b.is_inverted();
        let (a, b) = (Gate(a.0 & !1), Gate(b.0 & !1));
        let (a, b) = (a.min(b), a.max(b));
        let differ = self.select(a, b.not(), b)?;
        Ok(if is_inverted { differ.not() } else { differ })
    }

    /// Accounts for the memory of both tables, and for that of the larger ones while they grow.
    fn account(&mut self) -> Result<(), LimitReached> {
        let rows = size_of::<Driver>() * self.drivers.capacity();
        // A control byte for each slot, and an eighth of the slots is free.
        let slots = (size_of::<(Driver, u32)>() + 1) * self.numbers.capacity() / 7 * 8;
        let is_growing = self.drivers.len() + GATES_BETWEEN_ACCOUNTS > self.numbers.capacity();
        self.share
            .set((rows + slots) * if is_growing { 3 } else { 1 })
    }

    /// The count of gates.
    pub(super) fn len(&self) -> usize {
        self.drivers.len()
    }

    fn driven_by(&mut self, driver: Driver) -> Result<Gate, LimitReached> {
        self.requests += 1;
        if self.requests.is_multiple_of(REQUESTS_BETWEEN_CHECKS) {
            self.stop.check()?;
        }
        if let Some(number) = self.numbers.get(&driver) {
            return Ok(Gate(number << 1));
        }
        if self.drivers.len() >= self.max_gates {
            return Err(LimitReached::Gates);
        }
        if self.drivers.len().is_multiple_of(GATES_BETWEEN_ACCOUNTS) {
            self.account()?;
        }
        let number = self.drivers.len() as u32;
        self.drivers.push(driver);
        self.numbers.insert(driver, number);
        Ok(Gate(number << 1))
    }
}
