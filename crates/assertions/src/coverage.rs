//! Coverage: the rules of a policy that no check constrains.
//!
//! A rule is constrained if a check would fail after a mutation of it. Two mutations are made for each call of a rule:
//! *relaxed*, a denial allows and an allowing rule loses its condition; *tightened*, an allowing rule denies. A mutation
//! changes a part of the calls of one number, and a check fails after it exactly if the part overlaps with the calls
//! whose action the check fixes, so no mutated policy has to be judged.

use std::collections::{BTreeMap, HashMap};

use tamis_abi::{Action, Arch, Nr, Word, syscall};
use tamis_analysis::with_word;
use tamis_prover::{Function, Limited, Subject};
use tamis_rules::{Origin, Rule, Ruleset, Section};

use crate::ast::Relation;
use crate::checks::{Check, Checks, Claim};
use crate::judge::{EXECUTED, Judge};
use crate::region::{both, either, values_where, without};
use crate::seek::Sought;

/// A check with the function of its reference.
#[derive(Clone, Copy)]
pub struct Constraint<'c> {
    /// The checks among which it is.
    pub checks: &'c Checks,
    /// The check.
    pub check: &'c Check,
    /// The reference of a check that compares, by [`Judge::reference`].
    pub reference: Option<Function>,
}

/// A rule with calls that no check constrains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncovered {
    /// The place of the rule; `None` for the default of an architecture, and for rules without places.
    pub origin: Option<Origin>,
    /// The rule in words, if it has no place.
    pub title: String,
    /// The calls that no check constrains, with the architecture if only some are concerned.
    pub calls: Vec<String>,
    /// The number of calls that the rule decides, of all architectures.
    pub of: usize,
}

/// The parts of the calls of one number that checks fix.
#[derive(Clone, Copy)]
struct Fixed {
    /// Calls that must not get looser: of `never allow`, and those that a reference of `stricter than` doesn't allow.
    denied: Function,
    /// Calls that must not get stricter: of `always allow`, and those for which a reference of `looser than` doesn't
    /// kill the process.
    executed: Function,
    /// Calls that must keep their action: of `expect`, and with `equal to` all.
    exact: Function,
    /// Whether the kernel must remember the number.
    is_cached: bool,
}

impl Fixed {
    const NOTHING: Fixed = Fixed {
        denied: Function::FALSE,
        executed: Function::FALSE,
        exact: Function::FALSE,
        is_cached: false,
    };
}

/// The parts by architecture and number.
type FixedByNumber = HashMap<(Arch, u32), Fixed>;

/// The title of numbers without names.
const OTHER_NUMBERS: &str = "numbers without a name";

/// A rule, by its place or else by its position.
type RuleKey = (Option<(String, u32, u32)>, String);

/// The calls of a rule, with the architectures on which they are constrained and those on which they aren't.
#[derive(Default)]
struct Calls {
    origin: Option<Origin>,
    by_name: BTreeMap<&'static str, [Vec<Arch>; 2]>,
    of: usize,
}

impl Judge<'_> {
    /// The function of a reference.
    ///
    /// # Errors
    /// If the diagrams exceed the limits.
    pub fn reference(&mut self, reference: &Subject<'_>) -> Limited<Function> {
        self.shared.space.subject(reference)
    }

    /// The rules with calls that no check constrains, in the order of their places.
    ///
    /// # Errors
    /// If a limit was reached.
    pub fn coverage(
        &mut self,
        ruleset: &Ruleset,
        constraints: &[Constraint<'_>],
    ) -> Limited<Vec<Uncovered>> {
        let fixed = self.fixed(ruleset, constraints)?;
        let mut rules: BTreeMap<RuleKey, Calls> = BTreeMap::new();
        for section in ruleset.sections() {
            for (nr, name) in numbers(section) {
                let mut own = fixed
                    .get(&(section.arch, nr))
                    .copied()
                    .unwrap_or(Fixed::NOTHING);
                self.add_references(constraints, section.arch, nr, &mut own)?;
                self.rules_of(section, nr, name, own, &mut rules)?;
            }
        }
        let uncovered = rules.into_iter().filter_map(|((_, title), calls)| {
            let names = calls.uncovered();
            (!names.is_empty()).then_some(Uncovered {
                origin: calls.origin,
                title,
                calls: names,
                of: calls.of,
            })
        });
        Ok(uncovered.collect())
    }

    /// The parts that checks of calls fix.
    fn fixed(
        &mut self,
        ruleset: &Ruleset,
        constraints: &[Constraint<'_>],
    ) -> Limited<FixedByNumber> {
        let mut fixed = FixedByNumber::new();
        for Constraint { checks, check, .. } in constraints {
            if let Claim::Cached(names) = &check.claim {
                for arch in self.arches(check, self.own_arches()) {
                    let numbers = names.iter().filter_map(|name| syscall::number(arch, name));
                    for nr in numbers {
                        let own = fixed.entry((arch, nr.0)).or_insert(Fixed::NOTHING);
                        own.is_cached = true;
                    }
                }
            }
            for sought in self.all_sought(checks, check, &mut |_| {})?.iter() {
                let region = match &check.claim {
                    Claim::Always(_) => self.as_passed(sought)?,
                    _ => sought.region,
                };
                for nr in numbers_of(ruleset, sought) {
                    let own = fixed.entry((sought.arch, nr)).or_insert(Fixed::NOTHING);
                    let part = match &check.claim {
                        Claim::Never { .. } => &mut own.denied,
                        Claim::Always(_) => &mut own.executed,
                        _ => &mut own.exact,
                    };
                    *part = either(&mut self.shared.space, *part, region)?;
                }
            }
        }
        Ok(fixed)
    }

    /// Adds the parts of a number that comparisons fix.
    fn add_references(
        &mut self,
        constraints: &[Constraint<'_>],
        arch: Arch,
        nr: u32,
        fixed: &mut Fixed,
    ) -> Limited<()> {
        for constraint in constraints {
            let (Claim::Compare(relation, _), Some(reference)) =
                (&constraint.check.claim, constraint.reference)
            else {
                continue;
            };
            let selected = constraint.check.arches.as_ref();
            if selected.is_some_and(|arches| !arches.contains(&arch)) {
                continue;
            }
            let of_arch = with_word(&mut self.shared.space, reference, Word::ARCH, arch.audit())?;
            let answers = with_word(&mut self.shared.space, of_arch, Word::NR, nr)?;
            let space = &mut self.shared.space;
            match relation {
                Relation::Stricter => {
                    let stricter = values_where(space, answers, &|ret| ret != Action::ALLOW.ret())?;
                    fixed.denied = either(space, fixed.denied, stricter)?;
                }
                Relation::Looser => {
                    let kill = Action::KILL_PROCESS.ret();
                    let looser = values_where(space, answers, &|ret| ret != kill)?;
                    fixed.executed = either(space, fixed.executed, looser)?;
                }
                Relation::Equal => fixed.exact = Function::TRUE,
            }
        }
        Ok(())
    }

    /// Adds a call to each rule that decides a part of it, and to the default.
    fn rules_of(
        &mut self,
        section: &Section,
        nr: u32,
        name: &'static str,
        fixed: Fixed,
        rules: &mut BTreeMap<RuleKey, Calls>,
    ) -> Limited<()> {
        let mut undecided = Function::TRUE;
        let matching = section.rules.iter().enumerate();
        for (index, rule) in matching.filter(|(_, rule)| rule.syscalls.contains(nr)) {
            let matches = self.shared.space.condition(&rule.when)?;
            let decides = both(&mut self.shared.space, matches, undecided)?;
            let others = without(&mut self.shared.space, undecided, matches)?;
            let mutations = match rule.action.kind.executes() {
                true => [self.not_yet_executed(section.arch, nr, others)?, decides],
                false => [decides, Function::FALSE],
            };
            undecided = others;
            if mutations == [Function::FALSE; 2] {
                continue;
            }
            let is_covered = self.is_caught(mutations, fixed)?;
            let key = key(rule, section.arch, index);
            let calls = rules.entry(key).or_default();
            calls.origin.clone_from(&rule.origin);
            calls.add(name, section.arch, is_covered);
        }
        if undecided != Function::FALSE {
            let mutations = match section.default.kind.executes() {
                true => [Function::FALSE, undecided],
                false => [undecided, Function::FALSE],
            };
            let is_covered = self.is_caught(mutations, fixed)?;
            let title = format!("the default of {}", section.arch);
            let calls = rules.entry((None, title)).or_default();
            calls.add(name, section.arch, is_covered);
        }
        Ok(())
    }

    /// The part of calls that is not executed.
    fn not_yet_executed(&mut self, arch: Arch, nr: u32, part: Function) -> Limited<Function> {
        let fate = self.at(arch, nr)?.fate;
        let other = values_where(&mut self.shared.space, fate, &|own| own != EXECUTED)?;
        both(&mut self.shared.space, part, other)
    }

    /// Whether a check fails after a rule is relaxed for the first part, or tightened for the second.
    fn is_caught(&mut self, [relaxed, tightened]: [Function; 2], fixed: Fixed) -> Limited<bool> {
        if fixed.is_cached && tightened != Function::FALSE {
            return Ok(true);
        }
        let overlaps = [
            (relaxed, fixed.denied),
            (tightened, fixed.executed),
            (relaxed, fixed.exact),
            (tightened, fixed.exact),
        ];
        for (changed, fixed) in overlaps {
            if both(&mut self.shared.space, changed, fixed)? != Function::FALSE {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Calls {
    fn add(&mut self, name: &'static str, arch: Arch, is_covered: bool) {
        self.of += 1;
        let [covered, uncovered] = self.by_name.entry(name).or_default();
        match is_covered {
            true => covered.push(arch),
            false => uncovered.push(arch),
        }
    }

    /// The calls that no check constrains, with their architectures if a check constrains them on others.
    fn uncovered(&self) -> Vec<String> {
        let text = |(name, [covered, uncovered]): (&&str, &[Vec<Arch>; 2])| {
            let arches: Vec<&str> = uncovered.iter().map(|arch| arch.name()).collect();
            match (covered.is_empty(), uncovered.is_empty()) {
                (_, true) => None,
                (true, false) => Some((*name).to_owned()),
                (false, false) => Some(format!("{name} ({})", arches.join(", "))),
            }
        };
        self.by_name.iter().filter_map(text).collect()
    }
}

fn key(rule: &Rule, arch: Arch, index: usize) -> RuleKey {
    match &rule.origin {
        Some(origin) => {
            let place = (origin.file.to_string(), origin.line, origin.column);
            (Some(place), String::new())
        }
        None => (None, format!("rule {} of {arch}", index + 1)),
    }
}

/// The numbers of a ruleset that a check concerns.
fn numbers_of(ruleset: &Ruleset, sought: &Sought) -> Vec<u32> {
    if sought.nr == sought.last {
        return vec![sought.nr];
    }
    let numbers = ruleset.section(sought.arch).map(numbers);
    let numbers = numbers.into_iter().flatten().map(|(nr, _)| nr);
    let is_concerned = |nr: &u32| (sought.nr..=sought.last).contains(nr);
    numbers.filter(is_concerned).collect()
}

/// The numbers of an architecture that have names, and one of the others as an example if a rule concerns any.
fn numbers(section: &Section) -> Vec<(u32, &'static str)> {
    let arch = section.arch;
    let mut numbers: Vec<(u32, &'static str)> =
        syscall::all(arch).map(|(nr, name)| (nr.0, name)).collect();
    let has_name = |nr: u32| syscall::name(arch, Nr(nr)).is_some();
    let borders = section.borders();
    let other = borders.into_iter().find(|nr| {
        let is_concerned = section.rules.iter().any(|rule| rule.syscalls.contains(*nr));
        is_concerned && !has_name(*nr) && arch.owns_number(*nr)
    });
    numbers.extend(other.map(|nr| (nr, OTHER_NUMBERS)));
    numbers
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tamis_diag::Sources;
    use tamis_policy::loader::NoIncludes;
    use tamis_policy::tamis;
    use tamis_prover::{Limits, Stop};
    use tamis_rules::{IntervalSet, Predicate};

    use super::*;
    use crate::{Resources, Shared, Verdict, load};

    const POLICY: &str = "arch x86_64, x86\ndefault deny\nallow read, write, close\n\
        allow socket(family == AF_UNIX)\nerrno(ENOSYS) clone3, openat2\n\
        deny ioctl(cmd == TIOCSTI)\nallow ioctl(cmd < 0x5500), fcntl(cmd == F_GETFL || cmd == F_SETFL)\n\
        deny write(fd == 7)\n";
    const CHECKS: &str = "always allow read, write(fd == 1)\nnever allow socket(family == AF_INET)\n\
        expect clone3 -> errno(ENOSYS)\nnever allow ioctl(cmd == TIOCSTI)\nalways allow ioctl(cmd == TCGETS)\n\
        on x86\nalways allow fcntl(cmd == F_GETFL)\n";

    fn subject() -> Ruleset {
        let mut sources = Sources::new();
        let root = sources.add("a.tamis", POLICY);
        let options = tamis::TamisOptions::new(vec![Arch::X86_64]);
        tamis::parse(&mut sources, root, &mut NoIncludes, &options)
            .ruleset
            .expect("no errors")
    }

    fn checks() -> Checks {
        let mut sources = Sources::new();
        let root = sources.add("a.checks", CHECKS);
        let loaded = load(&mut sources, root, &mut NoIncludes, &[]);
        loaded.checks.expect("no errors")
    }

    fn all_hold(ruleset: &Ruleset, checks: &Checks) -> bool {
        let subject = Subject::Ruleset(ruleset);
        let mut judge =
            Judge::new(subject, Arch::X86_64, Limits::default(), Stop::default()).unwrap();
        checks
            .all
            .iter()
            .all(|check| judge.check(checks, check, &Resources::NONE).verdict == Verdict::Holds)
    }

    /// The ruleset with a rule inserted before another one.
    fn with(ruleset: &Ruleset, arch: Arch, index: usize, rule: &Rule) -> Ruleset {
        let mut sections = ruleset.sections().to_vec();
        for section in sections.iter_mut().filter(|section| section.arch == arch) {
            section.rules.insert(index, rule.clone());
        }
        Ruleset::new(sections, ruleset.bad_arch).unwrap()
    }

    #[test]
    fn judges_that_share_decide_as_judges_alone() {
        let (whole, checks) = (subject(), checks());
        let mut subjects = vec![whole.clone()];
        for section in whole.sections() {
            for action in [Action::ALLOW, Action::errno(1), Action::errno(38)] {
                for nr in [0, 1, 16, 41, 54, 221, 359, 435] {
                    let rule = Rule {
                        syscalls: IntervalSet::single(nr),
                        when: Predicate::True,
                        action,
                        origin: None,
                    };
                    subjects.push(with(&whole, section.arch, 0, &rule));
                }
            }
        }
        let mut shared = Shared::new(Limits::default(), Stop::default());
        let mut fails = 0;
        for ruleset in &subjects {
            let subject = Subject::Ruleset(ruleset);
            let mut judge = Judge::among(subject, Arch::X86_64, shared).unwrap();
            let limits = Limits::default();
            let mut alone = Judge::new(subject, Arch::X86_64, limits, Stop::default()).unwrap();
            for check in &checks.all {
                let own = judge.check(&checks, check, &Resources::NONE).verdict;
                assert_eq!(own, alone.check(&checks, check, &Resources::NONE).verdict);
                fails += usize::from(own == Verdict::Fails);
            }
            shared = judge.into_shared();
        }
        assert!(fails > 0, "no subject contradicts a check");
    }

    /// The lines and calls of rules for which no mutated policy makes a check fail, by judging each of them.
    fn by_mutation(ruleset: &Ruleset, checks: &Checks) -> BTreeSet<(u32, &'static str, Arch)> {
        let mut uncovered = BTreeSet::new();
        for section in ruleset.sections() {
            for (index, rule) in section.rules.iter().enumerate() {
                for (nr, name) in numbers(section) {
                    if !rule.syscalls.contains(nr) {
                        continue;
                    }
                    let own = |when: &Predicate, action| Rule {
                        syscalls: std::iter::once(nr).collect(),
                        when: when.clone(),
                        action,
                        origin: None,
                    };
                    let mutants = match rule.action.kind.executes() {
                        true => vec![
                            own(&Predicate::True, rule.action),
                            own(&rule.when, Action::errno(1)),
                        ],
                        false => vec![own(&rule.when, Action::ALLOW)],
                    };
                    let mutants: Vec<Ruleset> = mutants
                        .into_iter()
                        .map(|mutant| with(ruleset, section.arch, index, &mutant))
                        .collect();
                    let mut space = tamis_prover::Space::new(Limits::default());
                    let before = space.ruleset(ruleset).unwrap();
                    let mut changes = |own: &&Ruleset| space.ruleset(own).unwrap() != before;
                    let mutants: Vec<&Ruleset> =
                        mutants.iter().filter(|own| changes(own)).collect();
                    if !mutants.is_empty() && mutants.iter().all(|own| all_hold(own, checks)) {
                        let line = rule.origin.as_ref().unwrap().line;
                        uncovered.insert((line, name, section.arch));
                    }
                }
            }
        }
        uncovered
    }

    #[test]
    fn a_rule_is_uncovered_exactly_if_no_check_fails_for_a_mutated_policy() {
        let (ruleset, checks) = (subject(), checks());
        assert!(all_hold(&ruleset, &checks));
        let subject = Subject::Ruleset(&ruleset);
        let mut judge =
            Judge::new(subject, Arch::X86_64, Limits::default(), Stop::default()).unwrap();
        let constraints: Vec<Constraint<'_>> = checks
            .all
            .iter()
            .map(|check| Constraint {
                checks: &checks,
                check,
                reference: None,
            })
            .collect();
        let found = judge.coverage(&ruleset, &constraints).unwrap();
        let mut uncovered = BTreeSet::new();
        for rule in found.iter().filter(|rule| rule.origin.is_some()) {
            let line = rule.origin.as_ref().unwrap().line;
            for call in &rule.calls {
                let (name, arches) = match call.split_once(" (") {
                    Some((name, arches)) => (name, vec![arches.trim_end_matches(')')]),
                    None => (call.as_str(), vec!["x86_64", "x86"]),
                };
                for arch in arches {
                    uncovered.insert((line, name.to_owned(), Arch::from_name(arch).unwrap()));
                }
            }
        }
        let expected = by_mutation(&ruleset, &checks);
        let expected: BTreeSet<(u32, String, Arch)> = expected
            .into_iter()
            .map(|(line, name, arch)| (line, name.to_owned(), arch))
            .collect();
        assert_eq!(uncovered, expected);
        assert!(!uncovered.is_empty());
    }
}
