//! Drop parts of a condition that the other parts imply.
//!
//! # What
//! In `all`, a part matters only if the others hold; in `any`, only if they do not. A part whose outcome is known
//! under this assumption is removed, at any depth, and a value set loses the borders that make no difference under
//! it. This includes absorption, contradictions, tautologies and implied comparisons, also between the halves of an
//! argument and between masks and comparisons.
//!
//! # Before/After
//! ```text
//! any(arg0 == 0x1, all(arg0 == 0x1, arg1 == 0x2))  ->  arg0 == 0x1
//! all(arg0 & 0x3 == 0x0, arg0 & 0x1 == 0x1)        ->  false
//! all(arg0 < 0x10, arg0.high == 0x0)               ->  arg0 < 0x10
//! ```
//!
//! # Why it is sound
//! `all(a, b)` is equivalent to `all(a, b')` if `b` and `b'` agree where `a` holds; dually for `any`. Parts are
//! replaced one after the other, given the present form of the others.
//!
//! # What it never does
//! It adds no parts and makes no inference of several steps. More than 32 tests of values of one argument in one list
//! are not compared with each other.
//!
//! # Cost
//! Near-linear, with the bounds of `facts.rs` as a factor.
//!
//! # Prior art
//! Coudert and Madre's *restrict*; gVisor and libseccomp only remove repeated parts.

use super::facts::{self, Facts};
use super::{Changed, Claim, Draft, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "drop-implied-parts",
    summary: "remove parts of conditions that other parts decide",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    rewrite_conditions(draft, cx, |when| {
        if facts::is_about_one_each(when) {
            return None;
        }
        Facts::default().simplify(when)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_rules;
    use super::INFO;

    #[test]
    fn absorption() {
        check_rules(
            &INFO,
            "0 if any(arg0 == 0x1, all(arg0 == 0x1, arg1 == 0x2)): allow\n\
             1 if all(arg0 == 0x1, any(arg0 == 0x1, arg1 == 0x2)): allow\n\
             2 if any(arg0 == arg1, all(arg0 != 0x3, arg0 == arg1)): allow\n\
             3 if any(arg0 == 0x1, all(arg0 != 0x1, arg1 == 0x2)): allow",
            "0 if arg0 == 0x1: allow\n\
             1 if arg0 == 0x1: allow\n\
             2 if arg0 == arg1: allow\n\
             3 if any(arg0 == 0x1, arg1 == 0x2): allow",
        );
    }

    #[test]
    fn contradictions_and_tautologies() {
        check_rules(
            &INFO,
            "0 if all(arg0 == 0x5, arg0 == 0x6): allow\n\
             1 if any(arg0 < 0x5, arg0 >= 0x5): allow\n\
             2 if all(arg0 & 0x1 == 0x1, arg0 & 0x3 == 0x0): allow\n\
             3 if all(arg0 == 0x100000001, arg0.low != 0x1): allow\n\
             4 if all(arg0 in {0x1..0x4}, arg0 & 0x7 == 0x7): allow",
            "0 if false: allow\n\
             1: allow\n\
             2 if false: allow\n\
             3 if false: allow\n\
             4 if false: allow",
        );
    }

    #[test]
    fn implied_tests_go_also_between_halves_and_masks() {
        check_rules(
            &INFO,
            "0 if all(arg0 < 0x10, arg0.high == 0x0): allow\n\
             1 if all(arg0.low == 0x3, arg0 & 0x1 == 0x1): allow\n\
             2 if all(arg0.high == 0x0, arg0.low == 0x7, arg0 < 0x10): allow\n\
             3 if all(arg0 >= 0x100000000, arg0.high != 0x0): allow",
            "0 if arg0 < 0x10: allow\n\
             1 if arg0.low == 0x3: allow\n\
             2 if all(arg0.high == 0x0, arg0.low == 0x7): allow\n\
             3 if arg0.high != 0x0: allow",
        );
    }

    #[test]
    fn a_part_is_not_dropped_because_of_itself() {
        let text = "0 if all(all(arg0 == 0x1, arg1 == 0x1), not(arg0 == arg1), arg2 == arg3): allow\n\
                    1 if any(not(all(arg0 == 0x1, arg1 == 0x2)), any(arg2 == 0x1, arg3 == 0x1)): allow\n\
                    2 if all(any(arg0 == 0x1, arg1 == 0x1), any(arg0 == 0x1, arg1 == 0x2)): allow";
        check_rules(&INFO, text, text);
    }

    #[test]
    fn borders_that_make_no_difference_go() {
        check_rules(
            &INFO,
            "0 if any(arg0 == 0x5, all(arg0 in {0x1..0x4, 0x6..0x9}, arg1 == 0x1)): allow",
            "0 if any(arg0 == 0x5, all(arg0 in {0x1..0x9}, arg1 == 0x1)): allow",
        );
    }
}
