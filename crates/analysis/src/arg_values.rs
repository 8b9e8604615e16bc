//! Sets of values: from a diagram of one argument to tests of it.
//!
//! Three forms are tried and the shortest is used: intervals (`x <= 7`, `x in {1, 4..6}`), bits in a mask (`x &
//! 0xf0 == 0x20`, several with the same mask), and unions of both. A set that depends on only one half of the
//! argument becomes a test of this half.
//!
//! Prior art for masks: S. Minato, "Fast Generation of Prime-Irredundant Covers from Binary Decision Diagrams"
//! (1993).

use std::collections::{BTreeMap, BTreeSet};

use tamis_prover::{Function, Limited, Space, Variable, View};
use tamis_rules::{CmpOp, IntervalSet, Operand, OperandSource, Part, Predicate, Test};

use crate::cases::Wording;
use crate::condition::CostedPredicate;

/// The most intervals of a set.
const MAX_INTERVALS: usize = 512;
/// The most steps of the search for masks; a mask takes at least one.
const MAX_COVER_STEPS: usize = 4_000;

/// The most free bits of a mask whose values are listed.
const MAX_FREE_BITS: u32 = 4;

/// Values of the bits in a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cube {
    mask: u64,
    value: u64,
}

/// The values of one operand.
struct Domain {
    operand: Operand,
    /// Its bits, the highest first.
    variables: Vec<Variable>,
}

/// The values of a condition on one source; `None` if they are too many.
pub(crate) fn predicate_of(
    space: &mut Space,
    source: OperandSource,
    condition: Function,
    wording: Wording,
) -> Limited<Option<CostedPredicate>> {
    let domain = Domain::from_condition(space, source, condition);
    let intervals = domain.intervals(space, condition);
    if let (Wording::Values, Some(set)) = (wording, &intervals) {
        let cube = domain.only_cube(space, condition);
        let predicate = match cube.filter(|_| set.len() > 1) {
            Some(cube) => domain.cubes_predicate(&[cube], wording),
            None => domain.set_predicate(set.clone()),
        };
        return Ok(Some(predicate));
    }
    let intervals = intervals.map(|set| domain.set_predicate(set));
    let mut steps_left = MAX_COVER_STEPS;
    let cover = domain.cover(space, condition, condition, 0, &mut steps_left)?;
    let masks = cover.map(|(cubes, _)| domain.cubes_predicate(&cubes, wording));
    Ok(match (intervals, masks) {
        (Some(intervals), Some(masks)) if masks.cost < intervals.cost => Some(masks),
        (intervals, masks) => intervals.or(masks),
    })
}

impl Domain {
    /// The smallest part of a source that a condition tests.
    fn from_condition(space: &Space, source: OperandSource, condition: Function) -> Domain {
        let (low, high) = Operand {
            source,
            part: Part::Full,
        }
        .words();
        let bits = |word| (0..32).rev().map(move |bit| Variable::of_bit(word, bit));
        let asked = asked(space, condition);
        let asks = |word| bits(word).any(|variable| asked.contains(&variable));
        let (part, words) = match (asks(high), asks(low)) {
            (false, _) => (Part::Low, vec![low]),
            (true, false) => (Part::High, vec![high]),
            (true, true) => (Part::Full, vec![high, low]),
        };
        let variables = words.into_iter().flat_map(bits).collect();
        Domain {
            operand: Operand { source, part },
            variables,
        }
    }

    fn max(&self) -> u64 {
        self.operand.max()
    }

    fn intervals(&self, space: &Space, condition: Function) -> Option<Vec<(u64, u64)>> {
        let mut found = Vec::new();
        self.collect(space, condition, 0, 0, &mut found)
            .then_some(found)
    }

    /// Adds the values from `base` on for whose bits from `depth` on the condition holds; `false` if there are too
    /// many.
    fn collect(
        &self,
        space: &Space,
        condition: Function,
        depth: usize,
        base: u64,
        found: &mut Vec<(u64, u64)>,
    ) -> bool {
        let bits = self.variables.len() - depth;
        let last = base | u64::MAX.checked_shr(64 - bits as u32).unwrap_or(0);
        match condition {
            Function::FALSE => true,
            Function::TRUE => {
                match found.last_mut() {
                    Some((_, before)) if before.checked_add(1) == Some(base) => *before = last,
                    _ => found.push((base, last)),
                }
                found.len() <= MAX_INTERVALS
            }
            _ => {
                let (low, high) = space.cofactors(condition, self.variables[depth]);
                self.collect(space, low, depth + 1, base, found)
                    && self.collect(space, high, depth + 1, base | 1 << (bits - 1), found)
            }
        }
    }

    fn set_predicate(&self, intervals: Vec<(u64, u64)>) -> CostedPredicate {
        let operand = self.operand;
        let compare = |op, value| CostedPredicate::test(Predicate::compare(operand, op, value), 2);
        match intervals.as_slice() {
            [(first, last)] if first == last => return compare(CmpOp::Eq, *first),
            [(0, last)] => return compare(CmpOp::Le, *last),
            [(first, last)] if *last == self.max() => return compare(CmpOp::Ge, *first),
            _ => {}
        }
        let elements = intervals
            .iter()
            .map(|(first, last)| if first == last { 1 } else { 2 });
        let cost = 1 + elements.sum::<usize>();
        let set = intervals
            .into_iter()
            .map(|(first, last)| first..=last)
            .collect();
        CostedPredicate::test(Predicate::Test(Test::In { operand, set }), cost)
    }

    /// The cube equal to a condition, if it is one.
    fn only_cube(&self, space: &Space, mut condition: Function) -> Option<Cube> {
        let mut cube = Cube { mask: 0, value: 0 };
        for (depth, variable) in self.variables.iter().enumerate() {
            let (low, high) = space.cofactors(condition, *variable);
            let bit = 1 << (self.variables.len() - 1 - depth);
            match (low, high) {
                _ if low == high => {}
                (_, Function::FALSE) => cube.mask |= bit,
                (Function::FALSE, _) => {
                    cube.mask |= bit;
                    cube.value |= bit;
                }
                _ => return None,
            }
            condition = if low == Function::FALSE { high } else { low };
        }
        Some(cube)
    }

    /// An irredundant union of cubes between `least` and `most`, with its diagram; `None` if that takes too many
    /// steps.
    fn cover(
        &self,
        space: &mut Space,
        least: Function,
        most: Function,
        depth: usize,
        steps_left: &mut usize,
    ) -> Limited<Option<(Vec<Cube>, Function)>> {
        if least == Function::FALSE {
            return Ok(Some((Vec::new(), Function::FALSE)));
        }
        if most == Function::TRUE {
            return Ok(Some((vec![Cube { mask: 0, value: 0 }], Function::TRUE)));
        }
        if *steps_left == 0 {
            return Ok(None);
        }
        *steps_left -= 1;
        let variable = self.variables[depth];
        let (least_low, least_high) = space.cofactors(least, variable);
        let (most_low, most_high) = space.cofactors(most, variable);
        if least_low == least_high && most_low == most_high {
            return self.cover(space, least, most, depth + 1, steps_left);
        }
        // The values allowed in only one half.
        let only_low = space.choose(most_high, Function::FALSE, least_low)?;
        let only_high = space.choose(most_low, Function::FALSE, least_high)?;
        let Some((low_cubes, low)) =
            self.cover(space, only_low, most_low, depth + 1, steps_left)?
        else {
            return Ok(None);
        };
        let Some((high_cubes, high)) =
            self.cover(space, only_high, most_high, depth + 1, steps_left)?
        else {
            return Ok(None);
        };
        let left_low = space.choose(low, Function::FALSE, least_low)?;
        let left_high = space.choose(high, Function::FALSE, least_high)?;
        let left = space.choose(left_low, Function::TRUE, left_high)?;
        let both = space.choose(most_low, most_high, Function::FALSE)?;
        let Some((cubes, common)) = self.cover(space, left, both, depth + 1, steps_left)? else {
            return Ok(None);
        };
        let bit = 1 << (self.variables.len() - 1 - depth);
        let with_bit = |cube: Cube, value: u64| Cube {
            mask: cube.mask | bit,
            value: cube.value | value,
        };
        let low_cubes = low_cubes.into_iter().map(|cube| with_bit(cube, 0));
        let high_cubes = high_cubes.into_iter().map(|cube| with_bit(cube, bit));
        let cubes = low_cubes.chain(high_cubes).chain(cubes).collect();
        let low = space.choose(low, Function::TRUE, common)?;
        let high = space.choose(high, Function::TRUE, common)?;
        let node = space.branch(variable, low, high)?;
        Ok(Some((cubes, node)))
    }

    /// A union of cubes: single values as a set, the others as masked tests; if `wording` selects it, cubes of few
    /// values are listed too.
    fn cubes_predicate(&self, cubes: &[Cube], wording: Wording) -> CostedPredicate {
        let mut by_mask: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for cube in cubes {
            let free = self.max() & !cube.mask;
            let is_spread =
                wording == Wording::Values && cubes.len() > 1 && free.count_ones() <= MAX_FREE_BITS;
            if is_spread {
                let all = by_mask.entry(self.max()).or_default();
                all.extend(submasks(free).map(|bits| cube.value | bits));
            } else {
                by_mask.entry(cube.mask).or_default().push(cube.value);
            }
        }
        let mut parts = Vec::new();
        for (mask, mut values) in by_mask.into_iter().rev() {
            values.sort_unstable();
            if mask == self.max() {
                let set: IntervalSet<u64> = values.into_iter().collect();
                parts.push(self.set_predicate(set.intervals().to_vec()));
                continue;
            }
            // A mask of most bits is shown as the complement of the others.
            let is_inverse = mask.count_ones() * 2 > self.max().count_ones();
            let mut cost = if is_inverse { 4 } else { 2 };
            for value in values {
                let test = Test::Masked {
                    operand: self.operand,
                    mask,
                    value,
                };
                parts.push(CostedPredicate::test(Predicate::Test(test), cost + 1));
                cost = 0;
            }
        }
        CostedPredicate::any(parts)
    }
}

/// Every value without bits outside a mask, ascending.
fn submasks(mask: u64) -> impl Iterator<Item = u64> {
    let mut next = Some(0_u64);
    std::iter::from_fn(move || {
        let current = next?;
        next = Some(current.wrapping_sub(mask) & mask).filter(|after| *after != 0);
        Some(current)
    })
}

/// The variables of a condition.
fn asked(space: &Space, condition: Function) -> BTreeSet<Variable> {
    let mut asked = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![condition];
    while let Some(node) = open.pop() {
        if let View::Branch {
            variable,
            low,
            high,
        } = space.view(node)
            && seen.insert(node)
        {
            asked.insert(variable);
            open.extend([low, high]);
        }
    }
    asked
}
