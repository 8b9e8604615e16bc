//! Push negations towards the tests.
//!
//! # What
//! A negated comparison or value set becomes the opposite one, a negated mask of one bit the mask with the
//! other bit, and a negated list the list of the other kind with negated parts (De Morgan) if that takes no
//! more negations than there are now.
//!
//! # Before/After
//! ```text
//! not(all(arg0 == 0x1, not(arg1 & 0x6 == 0x2)))  ->  any(arg0 != 0x1, arg1 & 0x6 == 0x2)
//! ```
//!
//! # Why it is sound
//! De Morgan's laws; every test has an answer, so its opposite is another test's answer.
//!
//! # What it never does
//! It doesn't negate a mask of several bits, or a set whose complement has more intervals, other than by
//! `not`; it doesn't change the order of parts.
//!
//! # Cost
//! Linear in the size of a condition times its depth.
//!
//! # Prior art
//! Negation normal form.

use tamis_rules::{CmpOp, Predicate, Section, Test};

use super::shape::{Kind, test_of, values};
use super::{Changed, Claim, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "push-negations",
    summary: "replace negations by opposite tests",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(section: &mut Section, cx: &mut PassCx) -> Changed {
    rewrite_conditions(section, cx, |when| push(when).0.predicate)
}

/// A predicate without needless negations.
struct Pushed {
    predicate: Predicate,
    negations: usize,
}

/// A predicate and its negation, made together: either may be needed further out, and making each when
/// it is needed would take time exponential in the depth.
fn push(predicate: &Predicate) -> (Pushed, Pushed) {
    let plain = |predicate| Pushed {
        predicate,
        negations: 0,
    };
    match predicate {
        Predicate::True => (plain(Predicate::True), plain(Predicate::False)),
        Predicate::False => (plain(Predicate::False), plain(Predicate::True)),
        Predicate::Not(inner) => {
            let (holds, fails) = push(inner);
            (fails, holds)
        }
        Predicate::Test(test) => {
            let holds = plain(predicate.clone());
            let fails = opposite(test).map_or_else(|| holds.negated(), plain);
            (holds, fails)
        }
        Predicate::All(parts) => push_list(Kind::All, parts),
        Predicate::Any(parts) => push_list(Kind::Any, parts),
    }
}

fn push_list(kind: Kind, parts: &[Predicate]) -> (Pushed, Pushed) {
    let (holds, fails): (Vec<Pushed>, Vec<Pushed>) = parts.iter().map(push).unzip();
    let holds = Pushed::list(kind, holds);
    let fails = Pushed::list(kind.dual(), fails);
    if fails.negations <= 1 + holds.negations {
        (holds, fails)
    } else {
        let fails = holds.negated();
        (holds, fails)
    }
}

impl Pushed {
    fn list(kind: Kind, parts: Vec<Pushed>) -> Pushed {
        Pushed {
            negations: parts.iter().map(|part| part.negations).sum(),
            predicate: kind.join(parts.into_iter().map(|part| part.predicate).collect()),
        }
    }

    fn negated(&self) -> Pushed {
        Pushed {
            predicate: Predicate::Not(Box::new(self.predicate.clone())),
            negations: 1 + self.negations,
        }
    }
}

/// The test that holds where another doesn't, if there is one that is no larger.
fn opposite(test: &Test) -> Option<Predicate> {
    match test {
        Test::Compare { operand, op, value } => {
            Some(Predicate::compare(*operand, opposite_op(*op), *value))
        }
        Test::Between { left, op, right } => Some(Predicate::Test(Test::Between {
            left: *left,
            op: opposite_op(*op),
            right: *right,
        })),
        Test::Masked {
            operand,
            mask,
            value,
        } if mask.is_power_of_two() && value & !mask == 0 => Some(Predicate::Test(Test::Masked {
            operand: *operand,
            mask: *mask,
            value: mask ^ value,
        })),
        Test::In { set, .. } => {
            let (operand, gaps) = (values(test)?.0, set.complement());
            (gaps.intervals().len() <= set.intervals().len()).then(|| test_of(operand, &gaps))
        }
        Test::Masked { .. } => None,
    }
}

const fn opposite_op(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Eq => CmpOp::Ne,
        CmpOp::Ne => CmpOp::Eq,
        CmpOp::Lt => CmpOp::Ge,
        CmpOp::Le => CmpOp::Gt,
        CmpOp::Gt => CmpOp::Le,
        CmpOp::Ge => CmpOp::Lt,
    }
}

#[cfg(test)]
mod tests {
    use super::super::RulePass;
    use super::super::testing::check_rules;

    const PASS: RulePass = RulePass {
        info: super::INFO,
        run: super::run,
    };

    #[test]
    fn tests_have_opposites() {
        check_rules(
            PASS,
            "0 if not(arg0 < 0x5): allow\n\
             1 if not(arg0 & 0x4 == 0x0): allow\n\
             2 if not(arg0 in {0x0, 0x4..0xffffffffffffffff}): allow\n\
             3 if not(arg0 == arg1): allow",
            "0 if arg0 >= 0x5: allow\n\
             1 if arg0 & 0x4 == 0x4: allow\n\
             2 if arg0 in {0x1..0x3}: allow\n\
             3 if arg0 != arg1: allow",
        );
    }

    #[test]
    fn lists_turn_around_where_that_takes_no_more_negations() {
        check_rules(
            PASS,
            "0 if not(all(arg0 == 0x1, not(arg1 & 0x6 == 0x2))): allow\n\
             1 if not(all(arg0 & 0x6 == 0x2, arg1 & 0x6 == 0x2)): allow",
            "0 if any(arg0 != 0x1, arg1 & 0x6 == 0x2): allow\n\
             1 if not(all(arg0 & 0x6 == 0x2, arg1 & 0x6 == 0x2)): allow",
        );
    }
}
