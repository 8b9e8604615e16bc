//! The meaning of a filter with several architectures.
//!
//! Each architecture becomes a section with the default action. x86-64 and x32 have one value in a filter's input and
//! are told apart by the number; a filter with only one of them gives the numbers of the other the action for other
//! architectures. Number -1, which a tracer writes to skip a call, belongs to whichever of the two there is.

use tamis_abi::{Action, Arch, Nr};
use tamis_rules::{IntervalSet, Origin, Predicate, Rule, Ruleset, Section};

use crate::db::{ArchRules, Db};
use crate::number::SKIP;
use crate::rules::TooComplex;
use crate::tree::CallTree;

impl<T: Copy + Ord> Db<T> {
    /// The ruleset that is equivalent to the filter, with an action for other architectures.
    ///
    /// # Errors
    /// If the tree of a call has too many paths.
    ///
    /// # Panics
    /// Never: a filter has an architecture once.
    pub fn ruleset(&self, bad_arch: Action) -> Result<Ruleset, TooComplex> {
        self.ruleset_with_origins(bad_arch, &|_| None)
    }

    /// The same with the place of each rule, by its tag.
    ///
    /// # Errors
    /// As [`ruleset`](Self::ruleset).
    ///
    /// # Panics
    /// Never: a filter has an architecture once.
    pub fn ruleset_with_origins(
        &self,
        bad_arch: Action,
        origin: &dyn Fn(T) -> Option<Origin>,
    ) -> Result<Ruleset, TooComplex> {
        let default = self.default_action();
        let mut sections = Vec::new();
        for filter in self.filters() {
            let arch = filter.arch();
            let mut rules = Rules::default();
            for (nr, tree) in filter.calls().filter(|(nr, _)| arch.owns_number(nr.0)) {
                rules.add(nr, tree, origin)?;
            }
            if let Some(sibling) = self.sibling(arch) {
                let own = |nr: &Nr| filter.calls().any(|(known, _)| known == *nr);
                let strays = sibling
                    .calls()
                    .filter(|(nr, _)| arch.owns_number(nr.0) && !own(nr));
                for (nr, tree) in strays {
                    rules.add(nr, tree, origin)?;
                }
            }
            sections.push(rules.section(arch, default));
            if arch == Arch::X32 && self.sibling(arch).is_none() {
                sections.push(skipped_calls(filter, default, bad_arch, origin)?);
            }
        }
        Ok(Ruleset::new(sections, bad_arch).expect("an architecture is added once"))
    }

    /// The rules of the architecture with the same value in a filter's input.
    fn sibling(&self, arch: Arch) -> Option<&ArchRules<T>> {
        match arch {
            Arch::X86_64 => self.filter(Arch::X32),
            Arch::X32 => self.filter(Arch::X86_64),
            _ => None,
        }
    }
}

/// The section of x86-64 in a filter for x32 alone: number -1 alone isn't foreign.
fn skipped_calls<T: Copy + Ord>(
    x32: &ArchRules<T>,
    default: Action,
    bad_arch: Action,
    origin: &dyn Fn(T) -> Option<Origin>,
) -> Result<Section, TooComplex> {
    let skip = SKIP as u32;
    let mut rules = Rules::default();
    if let Some((nr, tree)) = x32.calls().find(|(nr, _)| nr.0 == skip) {
        rules.add(nr, tree, origin)?;
    }
    let mut section = rules.section(Arch::X86_64, bad_arch);
    section.rules.push(Rule {
        syscalls: IntervalSet::single(skip),
        when: Predicate::True,
        action: default,
        origin: None,
    });
    Ok(section)
}

/// Rules being collected. Numbers are disjoint, so those without conditions can be joined.
#[derive(Default)]
struct Rules {
    conditional: Vec<Rule>,
    unconditional: Vec<(Action, Option<Origin>, Vec<u32>)>,
}

impl Rules {
    fn add<T: Copy + Ord>(
        &mut self,
        nr: Nr,
        tree: &CallTree<T>,
        origin: &dyn Fn(T) -> Option<Origin>,
    ) -> Result<(), TooComplex> {
        if let (Some(action), Some(tag)) = (tree.unconditional(), tree.unconditional_tag()) {
            let origin = origin(tag);
            let mut joined = self.unconditional.iter_mut();
            match joined.find(|(known, place, _)| *known == action && *place == origin) {
                Some((_, _, numbers)) => numbers.push(nr.0),
                None => self.unconditional.push((action, origin, vec![nr.0])),
            }
            return Ok(());
        }
        self.conditional
            .extend(tree.rules()?.into_iter().map(|rule| Rule {
                syscalls: IntervalSet::single(nr.0),
                when: rule.when,
                action: rule.action,
                origin: origin(rule.tag),
            }));
        Ok(())
    }

    fn section(self, arch: Arch, default: Action) -> Section {
        let joined = self
            .unconditional
            .into_iter()
            .map(|(action, origin, numbers)| Rule {
                syscalls: numbers.into_iter().map(|number| number..=number).collect(),
                when: Predicate::True,
                action,
                origin,
            });
        Section {
            arch,
            rules: joined.chain(self.conditional).collect(),
            default,
        }
    }
}
