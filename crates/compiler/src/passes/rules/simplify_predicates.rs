//! Simplify conditions.
//!
//! # Effect
//! Flattens lists inside lists of the same kind, removes constants, double negations and repeated parts,
//! unwraps lists of one, and turns tests that always or never hold into constants.
//!
//! # Before/After
//! ```text
//! all(true, all(arg0 == 0x1, arg0 == 0x1), not(not(arg1 == 0x2)))
//! -> all(arg0 == 0x1, arg1 == 0x2)
//! ```
//!
//! # Why it is sound
//! Each step is a law of Boolean algebra: associativity, identity, annihilation, idempotence, involution.
//!
//! # Limits
//! It does not change tests except constant ones, and neither distributes nor reorders, so it never makes a condition
//! larger, and parts keep their order.
//!
//! # Cost
//! Linear, with hashing.
//!
//! # Prior art
//! The rule optimisers of gVisor and libseccomp do some of this.

use tamis_abi::hash::{BuildWordHasher, WordHashSet};
use tamis_rules::{CmpOp, Operand, Predicate, Test};

use crate::passes::{Changed, Claim, Draft, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "simplify-predicates",
    summary: "flatten conditions and remove what has no influence on them",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(in crate::passes) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    rewrite_conditions(draft, cx, |when| (!is_simple(when)).then(|| simplify(when)))
}

/// Whether there is nothing to simplify.
fn is_simple(predicate: &Predicate) -> bool {
    let is_constant = |part: &Predicate| matches!(part, Predicate::True | Predicate::False);
    let (parts, is_all) = match predicate {
        Predicate::True | Predicate::False => return true,
        Predicate::Not(inner) => {
            let is_open = is_constant(inner) || matches!(**inner, Predicate::Not(_));
            return !is_open && is_simple(inner);
        }
        Predicate::Test(test) => return constant(test).is_none(),
        Predicate::All(parts) => (parts, true),
        Predicate::Any(parts) => (parts, false),
    };
    let is_same_kind = |part: &Predicate| match part {
        Predicate::All(_) => is_all,
        Predicate::Any(_) => !is_all,
        _ => false,
    };
    let is_open = |part| is_constant(part) || is_same_kind(part) || !is_simple(part);
    parts.len() >= 2 && !parts.iter().any(is_open) && all_differ(parts)
}

fn all_differ(parts: &[Predicate]) -> bool {
    /// The maximum number of parts that are compared pairwise; hashing is faster for more.
    const FEW: usize = 8;
    if parts.len() <= FEW {
        let rest = |index| &parts[index + 1..];
        let mut parts = parts.iter().enumerate();
        return parts.all(|(index, part)| !rest(index).contains(part));
    }
    let mut seen = WordHashSet::with_capacity_and_hasher(parts.len(), BuildWordHasher::default());
    parts.iter().all(|part| seen.insert(part))
}

fn simplify(predicate: &Predicate) -> Predicate {
    match predicate {
        Predicate::True => Predicate::True,
        Predicate::False => Predicate::False,
        Predicate::Not(inner) => match simplify(inner) {
            Predicate::True => Predicate::False,
            Predicate::False => Predicate::True,
            Predicate::Not(twice) => *twice,
            other => Predicate::Not(Box::new(other)),
        },
        Predicate::All(parts) => list(
            parts,
            Predicate::True,
            Predicate::False,
            |part| match part {
                Predicate::All(inner) => Ok(inner),
                other => Err(other),
            },
        )
        .unwrap_or_else(Predicate::All),
        Predicate::Any(parts) => list(
            parts,
            Predicate::False,
            Predicate::True,
            |part| match part {
                Predicate::Any(inner) => Ok(inner),
                other => Err(other),
            },
        )
        .unwrap_or_else(Predicate::Any),
        Predicate::Test(test) => constant(test).unwrap_or_else(|| predicate.clone()),
    }
}

/// The parts of a list, simplified; `Ok` if the list becomes a single predicate.
fn list(
    parts: &[Predicate],
    neutral: Predicate,
    absorbing: Predicate,
    open: impl Fn(Predicate) -> Result<Vec<Predicate>, Predicate>,
) -> Result<Predicate, Vec<Predicate>> {
    let mut flat: Vec<Predicate> = Vec::with_capacity(parts.len());
    for part in parts {
        match open(simplify(part)) {
            Ok(inner) => flat.extend(inner),
            Err(part) if part == neutral => {}
            Err(part) if part == absorbing => return Ok(absorbing),
            Err(part) => flat.push(part),
        }
    }
    if !all_differ(&flat) {
        let mut seen = WordHashSet::default();
        let is_new: Vec<bool> = flat.iter().map(|part| seen.insert(part)).collect();
        let mut is_new = is_new.into_iter();
        flat.retain(|_| is_new.next() == Some(true));
    }
    match flat.len() {
        0 => Ok(neutral),
        1 => Ok(flat.remove(0)),
        _ => Err(flat),
    }
}

/// The outcome of a test that is the same for every call.
fn constant(test: &Test) -> Option<Predicate> {
    let holds = match test {
        Test::Compare { operand, op, value } => {
            let (smallest, largest) = (0, Operand::max(*operand));
            let at_ends = (op.holds(smallest, *value), op.holds(largest, *value));
            match op {
                // The comparison is monotonic: equal at both ends means equal everywhere.
                CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge if at_ends.0 == at_ends.1 => {
                    at_ends.0
                }
                CmpOp::Eq if *value > largest => false,
                CmpOp::Ne if *value > largest => true,
                _ => return None,
            }
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => {
            let visible = mask & Operand::max(*operand);
            if value & !visible != 0 {
                false
            } else if visible == 0 {
                true
            } else {
                return None;
            }
        }
        Test::In { set, .. } if set.is_empty() => false,
        Test::In { set, .. } if set.is_full() => true,
        Test::In { .. } => return None,
        Test::Between { left, op, right } if left == right => op.holds(0, 0),
        Test::Between { .. } => return None,
    };
    Some(if holds {
        Predicate::True
    } else {
        Predicate::False
    })
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_rules;

    #[test]
    fn lists_flatten_and_repetitions_go() {
        check_rules(
            &INFO,
            "0 if all(true, all(arg0 == 0x1, arg0 == 0x1), not(not(arg1 == 0x2))): allow",
            "0 if all(arg0 == 0x1, arg1 == 0x2): allow",
        );
    }

    #[test]
    fn constants_absorb() {
        check_rules(
            &INFO,
            "0 if any(arg0 == 0x1, true): allow\n\
             1 if all(arg0 == 0x1, any()): allow",
            "0: allow\n\
             1 if false: allow",
        );
    }

    #[test]
    fn tests_with_one_answer_are_constants() {
        check_rules(
            &INFO,
            "0 if all(arg0 >= 0x0, arg1.low <= 0xffffffff, arg2 & 0x0 == 0x0, arg3 == arg3): allow\n\
             1 if any(arg0.low == 0x100000000, arg1 & 0x1 == 0x2, arg2 < 0x0): allow",
            "0: allow\n\
             1 if false: allow",
        );
    }

    #[test]
    fn other_tests_stay() {
        check_rules(
            &INFO,
            "0 if any(arg0 <= 0xffffffff, arg1.low == 0xffffffff, arg2 < arg3): allow",
            "0 if any(arg0 <= 0xffffffff, arg1.low == 0xffffffff, arg2 < arg3): allow",
        );
    }
}
