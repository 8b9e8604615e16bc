//! Rulesets: the meaning of a policy, independent of its language.

use std::sync::Arc;

use tamis_abi::{Action, Arch};

use crate::predicate::Predicate;
use crate::set::IntervalSet;
use crate::variable::Variable;

/// The complete meaning of a policy: a total function from calls to actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruleset {
    /// One section per architecture; no architecture twice.
    sections: Vec<Section>,
    /// The action for architectures without a section.
    pub bad_arch: Action,
    /// The run-time variables, by index.
    variables: Vec<Variable>,
}

/// The rules of one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The architecture.
    pub arch: Arch,
    /// The rules in order: the first that matches decides.
    pub rules: Vec<Rule>,
    /// The action if no rule matches.
    pub default: Action,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The numbers that it matches.
    pub syscalls: IntervalSet<u32>,
    /// The condition on the call.
    pub when: Predicate,
    /// The action.
    pub action: Action,
    /// Its place in the source.
    pub origin: Option<Origin>,
}

/// The source position of a rule, for explanations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// Two sections for one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateArch(pub Arch);

impl Ruleset {
    /// A ruleset of these sections.
    ///
    /// # Errors
    /// If two sections have the same architecture.
    pub fn new(sections: Vec<Section>, bad_arch: Action) -> Result<Ruleset, DuplicateArch> {
        for (index, section) in sections.iter().enumerate() {
            if sections[..index]
                .iter()
                .any(|earlier| earlier.arch == section.arch)
            {
                return Err(DuplicateArch(section.arch));
            }
        }
        Ok(Ruleset {
            sections,
            bad_arch,
            variables: Vec::new(),
        })
    }

    /// The same ruleset with these run-time variables, at most
    /// [`VariableIndex::COUNT`](tamis_abi::VariableIndex::COUNT).
    #[must_use]
    pub fn with_variables(self, variables: Vec<Variable>) -> Ruleset {
        Ruleset { variables, ..self }
    }

    /// The run-time variables, by index; empty for a complete filter.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The sections, in the order given.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The sections, mutable.
    pub(crate) fn sections_mut(&mut self) -> &mut [Section] {
        &mut self.sections
    }

    /// The section of an architecture. Without one for x32 its numbers have a bad architecture.
    pub fn section(&self, arch: Arch) -> Option<&Section> {
        self.sections.iter().find(|section| section.arch == arch)
    }
}

impl Section {
    /// The numbers of an architecture: all, except for x86_64 and x32, which share them.
    pub fn domain(arch: Arch) -> IntervalSet<u32> {
        let x32 = IntervalSet::from_iter([Arch::X32_BIT..=u32::MAX - 1]);
        match arch {
            Arch::X32 => x32,
            Arch::X86_64 => x32.complement(),
            _ => IntervalSet::full(),
        }
    }

    /// The numbers at which an interval of a rule begins, or that follow the end of one, ascending. Between two of
    /// them, each rule covers all numbers or none.
    ///
    /// ```
    /// use tamis_abi::{Action, Arch};
    /// use tamis_rules::{IntervalSet, Predicate, Rule, Section};
    /// let rule = |numbers: std::ops::RangeInclusive<u32>| Rule {
    ///     syscalls: IntervalSet::from_iter([numbers]),
    ///     when: Predicate::True,
    ///     action: Action::ALLOW,
    ///     origin: None,
    /// };
    /// let rules = vec![rule(3..=5), rule(4..=u32::MAX)];
    /// let section = Section { arch: Arch::X86, rules, default: Action::KILL_THREAD };
    /// assert_eq!(section.borders(), [3, 4, 6]);
    /// ```
    pub fn borders(&self) -> Vec<u32> {
        let mut borders = Vec::with_capacity(2 * self.rules.len());
        for (first, last) in self.rules.iter().flat_map(|rule| rule.syscalls.intervals()) {
            borders.push(*first);
            borders.extend(last.checked_add(1));
        }
        borders.sort_unstable();
        borders.dedup();
        borders
    }
}
