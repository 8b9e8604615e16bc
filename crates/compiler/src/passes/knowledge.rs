//! Facts about the value of one argument: possible values of the whole and of the halves, and known bits.
//!
//! Four views of one value are stored, and a query combines all of them: an upper half of zero makes a lower half of
//! 5 the whole value 5, a range gives its common leading bits, a known bit reduces a small set. The answer is never
//! wrong, but may be unknown although the facts imply it.

use tamis_rules::{IntervalSet, Operand, Part, Predicate, Test};

use super::shape::{single_values, test_of, values};

/// The most intervals of a stored set.
const MAX_INTERVALS: usize = 64;

/// Facts about the value of one argument.
#[derive(Clone, PartialEq)]
pub(super) struct Knowledge {
    full: IntervalSet<u64>,
    low: IntervalSet<u64>,
    high: IntervalSet<u64>,
    bits: Bits,
}

/// Bits of the whole value.
#[derive(Clone, Copy, Default, PartialEq)]
struct Bits {
    ones: u64,
    zeros: u64,
}

impl Default for Knowledge {
    fn default() -> Knowledge {
        let half = up_to(u64::from(u32::MAX));
        Knowledge {
            full: IntervalSet::full(),
            low: half.clone(),
            high: half,
            bits: Bits::default(),
        }
    }
}

impl Knowledge {
    /// The facts if a test of the argument holds, or fails, as well.
    pub(super) fn and(mut self, test: &Test, holds: bool) -> Knowledge {
        if let Some((operand, set)) = values(test) {
            let set = if holds { set } else { set.complement() };
            let known = match operand.part {
                Part::Full => &mut self.full,
                Part::Low => &mut self.low,
                Part::High => &mut self.high,
            };
            let both = known.intersection(&set);
            if both.intervals().len() <= MAX_INTERVALS {
                *known = both;
            }
        }
        if let Test::Masked {
            operand,
            mask,
            value,
        } = test
            && value & !mask == 0
            && mask & !Operand::max(*operand) == 0
        {
            let shift = shift(operand.part);
            if holds {
                self.bits.ones |= value << shift;
                self.bits.zeros |= (mask & !value) << shift;
            } else if mask.is_power_of_two() {
                self.bits.zeros |= value << shift;
                self.bits.ones |= (mask & !value) << shift;
            }
        }
        self
    }

    /// The outcome of a test of the argument, if known.
    pub(super) fn answer(&self, test: &Test) -> Option<bool> {
        let answer_of_set = || {
            let (operand, set) = values(test)?;
            let possible = self.possible(operand.part);
            let both = possible.intersection(&set);
            if both.is_empty() {
                return Some(false);
            }
            let bits = self.bits_of(operand.part);
            let mut intervals = both.intervals().iter();
            if intervals.all(|interval| bits.contradict(shared_bits(*interval))) {
                Some(false)
            } else if possible.is_subset(&set) {
                Some(true)
            } else {
                None
            }
        };
        let answer_of_mask = || {
            let Test::Masked {
                operand,
                mask,
                value,
            } = test
            else {
                return None;
            };
            let bits = self.bits_of(operand.part);
            if value & bits.zeros != 0 || mask & !value & bits.ones != 0 || value & !mask != 0 {
                return Some(false);
            }
            if mask & !(bits.ones | bits.zeros) == 0 {
                return Some(true);
            }
            let answers: Vec<bool> = single_values(&self.possible(operand.part))?
                .iter()
                .map(|possible| possible & mask == *value)
                .collect();
            let first = *answers.first()?;
            answers
                .iter()
                .all(|answer| *answer == first)
                .then_some(first)
        };
        answer_of_set().or_else(answer_of_mask)
    }

    /// The simplest test that is equivalent to a set for all possible values, if it has fewer intervals. Not for
    /// tests with a known [answer](Self::answer).
    pub(super) fn simpler(&self, operand: Operand, set: &IntervalSet<u64>) -> Option<Predicate> {
        if set.intervals().len() <= 1 {
            // Only a set without intervals has fewer, and then the outcome is known.
            return None;
        }
        let possible = self.possible(operand.part);
        let size = |set: &IntervalSet<u64>| {
            let within = set.intersection(&up_to(operand.max()));
            let gaps = up_to(operand.max()).difference(set);
            within.intervals().len().min(gaps.intervals().len())
        };
        let candidates = [
            set.union(&up_to(operand.max()).difference(&possible)),
            set.intersection(&possible),
        ];
        let best = candidates.iter().min_by_key(|candidate| size(candidate))?;
        (size(best) < size(set)).then(|| test_of(operand, best))
    }

    /// The possible values of a part.
    fn possible(&self, part: Part) -> IntervalSet<u64> {
        let set = match part {
            Part::Full if is_whole_half(&self.low) && is_whole_half(&self.high) => {
                self.full.clone()
            }
            Part::Full => self.full.intersection(&self.full_by_halves()),
            Part::Low if self.full.is_full() => self.low.clone(),
            Part::Low => self.low.intersection(&self.low_by_full()),
            Part::High if self.full.is_full() => self.high.clone(),
            Part::High => self.high.intersection(&self.high_by_full()),
        };
        if self.bits == Bits::default() {
            return set;
        }
        let shift = shift(part);
        let largest = largest(part);
        let (ones, zeros) = (self.bits.ones >> shift & largest, self.bits.zeros >> shift);
        let between: IntervalSet<u64> = [ones..=largest & !zeros].into_iter().collect();
        let set = set.intersection(&between);
        match single_values(&set) {
            Some(values) => values
                .into_iter()
                .filter(|value| value & ones == ones && value & zeros == 0)
                .collect(),
            None => set,
        }
    }

    fn full_by_halves(&self) -> IntervalSet<u64> {
        let place = |high: u64, low: u64| high << 32 | low;
        match self.high.intervals() {
            [(high, last)] if high == last => {
                let lows = self.low.intervals().iter();
                lows.map(|(first, last)| place(*high, *first)..=place(*high, *last))
                    .collect()
            }
            several => several
                .iter()
                .map(|(first, last)| place(*first, 0)..=place(*last, u64::from(u32::MAX)))
                .collect(),
        }
    }

    fn low_by_full(&self) -> IntervalSet<u64> {
        match self.high_by_full().intersection(&self.high).intervals() {
            [(high, last)] if high == last => {
                let base = high << 32;
                let within: IntervalSet<u64> =
                    [base..=base | u64::from(u32::MAX)].into_iter().collect();
                let fulls = self.full.intersection(&within);
                let intervals = fulls.intervals().iter();
                intervals
                    .map(|(first, last)| first - base..=last - base)
                    .collect()
            }
            _ => up_to(u64::from(u32::MAX)),
        }
    }

    fn high_by_full(&self) -> IntervalSet<u64> {
        let intervals = self.full.intervals().iter();
        intervals
            .map(|(first, last)| first >> 32..=last >> 32)
            .collect()
    }

    /// The known bits of a part, including those that all possible values share.
    fn bits_of(&self, part: Part) -> Bits {
        let mut bits = self.bits;
        for part in [Part::Full, Part::Low, Part::High] {
            if let [(first, _), .., (_, last)] | [(first, last)] = self.possible(part).intervals() {
                let shared = shared_bits((*first, *last));
                bits.ones |= shared.ones << shift(part);
                bits.zeros |= (shared.zeros & largest(part)) << shift(part);
            }
        }
        Bits {
            ones: bits.ones >> shift(part) & largest(part),
            // The bits above a half are zero.
            zeros: bits.zeros >> shift(part) | !largest(part),
        }
    }
}

impl Bits {
    /// Whether no value has both sets of bits.
    const fn contradict(self, other: Bits) -> bool {
        self.ones & other.zeros != 0 || self.zeros & other.ones != 0
    }
}

/// The leading bits that all values of an interval have.
fn shared_bits((first, last): (u64, u64)) -> Bits {
    let differing = u64::BITS - (first ^ last).leading_zeros();
    let shared = u64::MAX.checked_shl(differing).unwrap_or(0);
    Bits {
        ones: first & shared,
        zeros: !first & shared,
    }
}

/// Whether there are no facts about a half.
fn is_whole_half(set: &IntervalSet<u64>) -> bool {
    set.intervals() == [(0, u64::from(u32::MAX))]
}

fn up_to(last: u64) -> IntervalSet<u64> {
    [0..=last].into_iter().collect()
}

const fn shift(part: Part) -> u32 {
    match part {
        Part::Full | Part::Low => 0,
        Part::High => 32,
    }
}

const fn largest(part: Part) -> u64 {
    match part {
        Part::Full => u64::MAX,
        Part::Low | Part::High => u32::MAX as u64,
    }
}
