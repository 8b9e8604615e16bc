//! The evaluator: the action of a ruleset for one call. It defines the meaning of a ruleset.

use tamis_abi::{Action, Arch, SeccompData};

use crate::input::Values;
use crate::ruleset::{Rule, Ruleset, Section};

/// The action for one call, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// The action.
    pub action: Action,
    /// The reason.
    pub cause: Cause<'a>,
}

/// The reason for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause<'a> {
    /// This rule of this section was the first to match.
    Rule(&'a Section, &'a Rule),
    /// No rule of this section matched.
    Default(&'a Section),
    /// There is no section for the call's architecture.
    BadArch,
}

impl Ruleset {
    /// Evaluates a call: the action of the first matching rule of its architecture's section, else the section's
    /// default, else the action for bad architectures. Variables, if any, are 0.
    pub fn decide(&self, data: &SeccompData) -> Decision<'_> {
        self.decide_with(data, &Values::ZERO)
    }

    /// The same for these values of the variables.
    pub fn decide_with(&self, data: &SeccompData, variables: &Values) -> Decision<'_> {
        let arch = Arch::of_call(data.arch, data.nr);
        let Some(section) = arch.and_then(|arch| self.section(arch)) else {
            return Decision {
                action: self.bad_arch,
                cause: Cause::BadArch,
            };
        };
        let mut rules = section.rules.iter();
        match rules.find(|rule| rule.matches(data, variables)) {
            Some(rule) => Decision {
                action: rule.action,
                cause: Cause::Rule(section, rule),
            },
            None => Decision {
                action: section.default,
                cause: Cause::Default(section),
            },
        }
    }
}

impl Rule {
    /// Whether it matches a call of its section's architecture, with these values of the variables.
    pub fn matches(&self, data: &SeccompData, variables: &Values) -> bool {
        self.syscalls.contains(data.nr) && self.when.holds(data, variables)
    }
}
