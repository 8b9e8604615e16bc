//! The meaning of a ruleset, translated from its definition.
//!
//! Every section divides its numbers into runs with the same applicable rules. For each run the function is
//! composed from the last of these rules to the first: the rule's action if its predicate holds, else the function
//! so far. No code of a compiler is used.

use std::collections::BTreeSet;

use tamis_abi::Word;
use tamis_abi::hash::{BuildWordHasher, WordHashMap};
use tamis_rules::{IntervalSet, Predicate, Ruleset, Section};

use crate::diagram::{Limited, Node};
use crate::piecewise::Piecewise;
use crate::space::{Function, Space};

impl Space {
    /// The meaning of a ruleset.
    ///
    /// # Errors
    /// If the space is full.
    pub fn ruleset(&mut self, ruleset: &Ruleset) -> Limited<Function> {
        let bad_arch = self.diagram.leaf(ruleset.bad_arch.ret())?;
        let mut by_arch = Piecewise::everywhere(Word::ARCH, bad_arch);
        for section in ruleset.sections() {
            let audit = section.arch.audit();
            // Two architectures may share an audit value, each with its own numbers.
            let others = by_arch.at(audit);
            let body = self.section(section, others)?;
            by_arch = by_arch.with_value(audit, body);
        }
        by_arch.to_node(&mut self.diagram).map(Function)
    }

    /// The function of a section for its own numbers; `others` is that of the rest.
    fn section(&mut self, section: &Section, others: Node) -> Limited<Node> {
        let mut answers = Answers {
            section,
            default: self.diagram.leaf(section.default.ret())?,
            known: WordHashMap::with_capacity_and_hasher(
                section.rules.len(),
                BuildWordHasher::default(),
            ),
        };
        let own = Section::domain(section.arch);
        let mut pieces = Vec::with_capacity(2 * section.rules.len() + 2);
        for_runs(section, &own, |start, rules| {
            self.diagram.tick()?;
            let answer = match own.contains(start) {
                true => answers.function(self, rules)?,
                false => others,
            };
            pieces.push((start, answer));
            Ok(())
        })?;
        Piecewise::of_pieces(Word::NR, pieces).to_node(&mut self.diagram)
    }
}

/// Iterates over the runs of numbers with the same applicable rules, ascending: the beginning of each, and its
/// rules in order, up to the first that always matches. Every border of `own` is one of a run.
fn for_runs(
    section: &Section,
    own: &IntervalSet<u32>,
    mut found: impl FnMut(u32, &[usize]) -> Limited<()>,
) -> Limited<()> {
    // The begin or end of a rule's interval at a number, or neither.
    let mut borders: Vec<(u32, Option<(usize, bool)>)> = vec![(0, None)];
    let mut add = |(first, last): &(u32, u32), rule: Option<usize>| {
        borders.push((*first, rule.map(|rule| (rule, true))));
        let after = last.checked_add(1);
        borders.extend(after.map(|after| (after, rule.map(|rule| (rule, false)))));
    };
    own.intervals()
        .iter()
        .for_each(|interval| add(interval, None));
    for (index, rule) in section.rules.iter().enumerate() {
        let intervals = rule.syscalls.intervals().iter();
        intervals.for_each(|interval| add(interval, Some(index)));
    }
    borders.sort_unstable();
    let mut active = BTreeSet::new();
    let mut rules = Vec::new();
    for changes in borders.chunk_by(|one, other| one.0 == other.0) {
        for (index, begins) in changes.iter().filter_map(|(_, change)| *change) {
            if begins {
                active.insert(index);
            } else {
                active.remove(&index);
            }
        }
        rules.clear();
        for index in &active {
            rules.push(*index);
            if section.rules[*index].when == Predicate::True {
                break;
            }
        }
        found(changes[0].0, &rules)?;
    }
    Ok(())
}

/// The functions of the rules of a section.
struct Answers<'a> {
    section: &'a Section,
    default: Node,
    /// The functions so far, by their rules.
    known: WordHashMap<Vec<usize>, Node>,
}

impl Answers<'_> {
    /// The function of these applicable rules, in this order.
    fn function(&mut self, space: &mut Space, rules: &[usize]) -> Limited<Node> {
        if let Some(answer) = self.known.get(rules) {
            return Ok(*answer);
        }
        let mut answer = self.default;
        let rule = |index: &usize| &self.section.rules[*index];
        let same_action = |one: &usize, other: &usize| rule(one).action == rule(other).action;
        // The order of consecutive rules with the same action doesn't matter.
        for group in rules.chunk_by(same_action).rev() {
            let action = space.diagram.leaf(rule(&group[0]).action.ret())?;
            let predicates: Vec<&Predicate> = group.iter().map(|index| &rule(index).when).collect();
            answer = space.choose_by_any(&predicates, action, answer)?;
        }
        self.known.insert(rules.to_vec(), answer);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Arch, ArgIndex, SeccompData};
    use tamis_rules::{CmpOp, Operand, Rule};

    use super::*;
    use crate::Limits;

    const ERRNO: Action = Action::errno(38);
    const NRS: [u32; 9] = [0, 1, 2, 3, 9, 10, Arch::X32_BIT | 1, u32::MAX - 1, u32::MAX];

    fn rule(numbers: IntervalSet<u32>, when: Predicate, action: Action) -> Rule {
        Rule {
            syscalls: numbers,
            when,
            action,
            origin: None,
        }
    }

    fn ruleset() -> Ruleset {
        let first_argument = Operand::arg(ArgIndex::ALL[0]);
        let seven = Predicate::compare(first_argument, CmpOp::Eq, 7);
        let rules = vec![
            rule([2..=9].into_iter().collect(), seven.clone(), Action::ALLOW),
            rule(
                [1..=2].into_iter().collect(),
                Predicate::True,
                Action::KILL_THREAD,
            ),
            rule(IntervalSet::full(), seven, ERRNO),
            rule(
                [u32::MAX..=u32::MAX].into_iter().collect(),
                Predicate::True,
                Action::ALLOW,
            ),
        ];
        let section = |arch, rules| Section {
            arch,
            rules,
            default: Action::errno(1),
        };
        let sections = vec![
            section(Arch::X86_64, rules.clone()),
            section(Arch::X32, rules[1..].to_vec()),
            section(Arch::X86, rules[2..].to_vec()),
        ];
        Ruleset::new(sections, Action::KILL_PROCESS).unwrap()
    }

    #[test]
    fn the_first_matching_rule_of_the_numbers_owner_decides() {
        let ruleset = ruleset();
        let mut space = Space::new(Limits::default());
        let function = space.ruleset(&ruleset).unwrap();
        let audits = [
            Arch::X86_64.audit(),
            Arch::X86.audit(),
            Arch::Aarch64.audit(),
        ];
        for arch in audits {
            for nr in NRS {
                for arg in [0, 7, 1 << 32 | 7] {
                    let args = [arg, 0, 0, 0, 0, 0];
                    let data = SeccompData {
                        nr,
                        arch,
                        ip: 0,
                        args,
                    };
                    let expected = ruleset.decide(&data).action.ret();
                    assert_eq!(space.value(function, &data.into()), expected, "{data:x?}");
                }
            }
        }
    }

    fn runs(section: &Section) -> Vec<(u32, Vec<usize>)> {
        let mut runs = Vec::new();
        let all = for_runs(section, &IntervalSet::full(), |start, rules| {
            runs.push((start, rules.to_vec()));
            Ok(())
        });
        assert_eq!(all, Ok(()));
        runs
    }

    #[test]
    fn runs_name_the_rules_up_to_the_first_that_always_matches() {
        let ruleset = ruleset();
        let section = ruleset.section(Arch::X86).unwrap();
        let found = runs(section);
        assert_eq!(found, [(0, vec![0]), (u32::MAX, vec![0, 1])]);
        let section = ruleset.section(Arch::X86_64).unwrap();
        let found = runs(section);
        let rules: Vec<&[usize]> = found.iter().map(|(_, rules)| &rules[..]).collect();
        assert_eq!(rules, [&[2][..], &[1], &[0, 1], &[0, 2], &[2], &[2, 3]]);
    }
}
