//! Merge tests of masks.
//!
//! # Effect
//! Requirements about bits of one operand become one mask; two alternatives with one mask that differ in one bit
//! become a mask without this bit.
//!
//! # Before/After
//! ```text
//! all(arg0 & 0x1 == 0x1, arg0 & 0x6 == 0x2)  ->  arg0 & 0x7 == 0x3
//! any(arg0 & 0x5 == 0x0, arg0 & 0x5 == 0x4)  ->  arg0 & 0x1 == 0x0
//! ```
//!
//! # Why it is sound
//! A mask fixes bits: two requirements fix the bits of both, and two alternatives for both values of a bit do not fix
//! it.
//!
//! # Limits
//! It does not search for the fewest masks that cover the alternatives: pairs are merged in the order of the parts.
//!
//! # Cost
//! Linear with hashing, times the number of bits of a mask.
//!
//! # Prior art
//! The first step of Quine and McCluskey's method.

use tamis_abi::hash::WordHashMap;
use tamis_rules::{Operand, Predicate, Test};

use crate::passes::support::shape::{ListKind, rewrite_lists};
use crate::passes::{Changed, Claim, Draft, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "merge-masks",
    summary: "make one mask of several tests of bits of one operand",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(in crate::passes) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    rewrite_conditions(draft, cx, |when| rewrite_lists(when, &merge))
}

/// `operand & mask == value`, with no bit of the value outside the mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Masked {
    operand: Operand,
    mask: u64,
    value: u64,
}

impl Masked {
    fn from_predicate(predicate: &Predicate) -> Option<Masked> {
        match predicate {
            Predicate::Test(Test::Masked {
                operand,
                mask,
                value,
            }) if value & !mask == 0 => Some(Masked {
                operand: *operand,
                mask: *mask,
                value: *value,
            }),
            _ => None,
        }
    }

    fn into_predicate(self) -> Predicate {
        Predicate::Test(Test::Masked {
            operand: self.operand,
            mask: self.mask,
            value: self.value,
        })
    }
}

fn merge(kind: ListKind, parts: &[Predicate]) -> Option<Predicate> {
    if parts
        .iter()
        .filter_map(Masked::from_predicate)
        .take(2)
        .count()
        < 2
    {
        return None;
    }
    let merged = match kind {
        ListKind::All => merge_requirements(parts),
        ListKind::Any => merge_alternatives(parts),
    };
    (merged.len() < parts.len()).then(|| kind.join(merged))
}

fn merge_requirements(parts: &[Predicate]) -> Vec<Predicate> {
    let mut places: WordHashMap<Operand, usize> = WordHashMap::default();
    let mut merged: Vec<Predicate> = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(masked) = Masked::from_predicate(part) else {
            merged.push(part.clone());
            continue;
        };
        let place = *places.entry(masked.operand).or_insert(merged.len());
        match merged.get(place).map(Masked::from_predicate) {
            None => merged.push(part.clone()),
            Some(Some(first)) if (first.value ^ masked.value) & first.mask & masked.mask == 0 => {
                let both = Masked {
                    operand: masked.operand,
                    mask: first.mask | masked.mask,
                    value: first.value | masked.value,
                };
                merged[place] = both.into_predicate();
            }
            // A bit would have to be both 0 and 1.
            Some(_) => return vec![Predicate::False],
        }
    }
    merged
}

fn merge_alternatives(parts: &[Predicate]) -> Vec<Predicate> {
    let mut places: WordHashMap<Masked, usize> = WordHashMap::default();
    let mut merged: Vec<Option<Predicate>> = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(mut masked) = Masked::from_predicate(part) else {
            merged.push(Some(part.clone()));
            continue;
        };
        let mut here = merged.len();
        while let Some((place, partner)) = partner(masked, &places) {
            places.remove(&partner);
            if let Some(gone) = merged.get_mut(here.max(place)) {
                *gone = None;
            }
            let bit = masked.value ^ partner.value;
            masked.mask &= !bit;
            masked.value &= !bit;
            here = here.min(place);
        }
        match merged.get_mut(here) {
            Some(place) => *place = Some(masked.into_predicate()),
            None => merged.push(Some(part.clone())),
        }
        places.insert(masked, here);
    }
    merged.into_iter().flatten().collect()
}

/// An existing alternative that differs in one bit.
fn partner(masked: Masked, places: &WordHashMap<Masked, usize>) -> Option<(usize, Masked)> {
    let bits = (0..u64::BITS).map(|bit| 1 << bit);
    bits.filter(|bit| masked.mask & bit != 0).find_map(|bit| {
        let partner = Masked {
            value: masked.value ^ bit,
            ..masked
        };
        places.get(&partner).map(|place| (*place, partner))
    })
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_rules;

    #[test]
    fn requirements_fix_the_bits_of_all() {
        check_rules(
            &INFO,
            "0 if all(arg0 & 0x1 == 0x1, arg1 == 0x2, arg0 & 0x6 == 0x2): allow\n\
             1 if all(arg0 & 0x3 == 0x1, arg0 & 0x6 == 0x2): allow",
            "0 if all(arg0 & 0x7 == 0x3, arg1 == 0x2): allow\n\
             1 if false: allow",
        );
    }

    #[test]
    fn alternatives_that_differ_in_one_bit_unite_again_and_again() {
        check_rules(
            &INFO,
            "0 if any(arg0 & 0x15 == 0x0, arg1 == 0x2, arg0 & 0x15 == 0x11, arg0 & 0x15 == 0x1, \
             arg0 & 0x15 == 0x10): allow\n\
             1 if any(arg0 & 0x5 == 0x0, arg0 & 0x5 == 0x5): allow",
            "0 if any(arg0 & 0x4 == 0x0, arg1 == 0x2): allow\n\
             1 if any(arg0 & 0x5 == 0x0, arg0 & 0x5 == 0x5): allow",
        );
    }
}
