//! The rules of one architecture while passes work on them.
//!
//! Passes evaluate the same conditions repeatedly. Each [`Condition`] therefore stores the run that made it, so that a
//! pass processes only conditions that are new to it, and, once computed, its hash and its number of tests. The numbers
//! of all rules are [divided](Cuts) into pieces once; passes remove and merge pieces, and never add borders.

use std::cell::OnceCell;

use tamis_abi::{Action, Arch};
use tamis_rules::{IntervalSet, Origin, Predicate, Rule, Section};

use super::numbers::Cuts;
use crate::hash::hash_of;

/// The rules of one architecture.
#[derive(Clone)]
pub(crate) struct Draft {
    /// The architecture.
    pub(in crate::passes) arch: Arch,
    /// The rules in order: the first matching one decides.
    pub(crate) rules: Vec<DraftRule>,
    /// The action if no rule matches.
    pub(in crate::passes) default: Action,
    /// The borders between the numbers of all rules.
    pub(in crate::passes) cuts: Cuts,
}

/// One rule.
#[derive(Clone)]
pub(crate) struct DraftRule {
    pub(in crate::passes) syscalls: IntervalSet<u32>,
    pub(in crate::passes) when: Condition,
    pub(in crate::passes) action: Action,
    pub(in crate::passes) origin: Option<Origin>,
}

/// A condition with computed properties.
#[derive(Clone)]
pub(in crate::passes) struct Condition {
    predicate: Predicate,
    /// The run of the pass that made it; 0 for a condition of the user.
    made_in: usize,
    hash: OnceCell<u64>,
    tests: OnceCell<usize>,
}

impl Draft {
    /// The rules of a section.
    pub(in crate::passes) fn from_section(section: &Section) -> Draft {
        let rules = section.rules.iter().map(|rule| DraftRule {
            syscalls: rule.syscalls.clone(),
            when: Condition::new(rule.when.clone(), 0),
            action: rule.action,
            origin: rule.origin.clone(),
        });
        Draft {
            arch: section.arch,
            rules: rules.collect(),
            default: section.default,
            cuts: Cuts::from_section(section),
        }
    }

    /// The section with these rules.
    pub(in crate::passes) fn into_section(self) -> Section {
        let rules = self.rules.into_iter().map(|rule| Rule {
            syscalls: rule.syscalls,
            when: rule.when.predicate,
            action: rule.action,
            origin: rule.origin,
        });
        Section {
            arch: self.arch,
            rules: rules.collect(),
            default: self.default,
        }
    }

    /// The same, without consuming the rules.
    pub(in crate::passes) fn to_section(&self) -> Section {
        self.clone().into_section()
    }
}

impl DraftRule {
    /// The description of a rule in a remark.
    pub(in crate::passes) fn describe(&self, number: usize) -> String {
        match &self.origin {
            Some(origin) => format!("rule {number} ({origin})"),
            None => format!("rule {number}"),
        }
    }
}

impl Condition {
    /// A condition made in this run.
    pub(in crate::passes) fn new(predicate: Predicate, made_in: usize) -> Condition {
        Condition {
            predicate,
            made_in,
            hash: OnceCell::new(),
            tests: OnceCell::new(),
        }
    }

    /// The predicate.
    pub(in crate::passes) fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// Whether it always holds.
    pub(in crate::passes) fn is_true(&self) -> bool {
        self.predicate == Predicate::True
    }

    /// Whether it was made in this run or later.
    pub(in crate::passes) fn is_made_since(&self, run: usize) -> bool {
        self.made_in >= run
    }

    /// A hash of the predicate.
    pub(in crate::passes) fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| hash_of(&self.predicate))
    }

    /// The number of tests of arguments in it.
    pub(in crate::passes) fn tests(&self) -> usize {
        *self.tests.get_or_init(|| self.predicate.tests().count())
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::ArgIndex;
    use tamis_rules::{CmpOp, Operand};

    use super::*;
    use crate::passes::{Changed, PassCx, rewrite_conditions};

    fn is(value: u64) -> Predicate {
        Predicate::compare(Operand::arg(ArgIndex::ALL[0]), CmpOp::Eq, value)
    }

    fn draft() -> Draft {
        let rules = [1, 2].map(|number| Rule {
            syscalls: IntervalSet::single(number),
            when: is(number.into()),
            action: Action::ALLOW,
            origin: None,
        });
        Draft::from_section(&Section {
            arch: Arch::X86_64,
            rules: rules.to_vec(),
            default: Action::KILL_PROCESS,
        })
    }

    #[test]
    fn a_pass_looks_again_at_what_is_new_to_it_and_at_nothing_else() {
        let mut draft = draft();
        let mut cx = PassCx::new(None);
        let mut run = |pass, replaced: u64, by: u64| {
            cx.begin_run(pass, None);
            cx.rule_runs += 1;
            let seen = std::cell::RefCell::new(Vec::new());
            let changed = rewrite_conditions(&mut draft, &mut cx, |when| {
                seen.borrow_mut().push(when.clone());
                (*when == is(replaced)).then(|| is(by))
            });
            (seen.into_inner(), changed)
        };
        assert_eq!(run("one", 0, 0), (vec![is(1), is(2)], Changed::No));
        assert_eq!(run("one", 0, 0), (vec![], Changed::No));
        assert_eq!(run("other", 2, 3), (vec![is(1), is(2)], Changed::Yes));
        assert_eq!(run("one", 0, 0), (vec![is(3)], Changed::No));
        // An equal condition is not a change.
        assert_eq!(run("equal", 3, 3), (vec![is(1), is(3)], Changed::No));
        // A pass processes each condition that it made itself once.
        assert_eq!(run("other", 0, 0), (vec![is(3)], Changed::No));
        assert_eq!(run("other", 0, 0), (vec![], Changed::No));
    }

    #[test]
    fn a_draft_is_the_section_that_it_was_made_of() {
        let draft = draft();
        let section = draft.to_section();
        assert_eq!(Draft::from_section(&section).into_section(), section);
        assert_eq!(draft.into_section(), section);
    }
}
