//! Decides checks for one policy, program or stack.
//!
//! The subject is one function of the prover's diagrams, so an answer covers every call. For each number that a check
//! concerns, the part of the function is compared with the condition of the check. Each example is evaluated again by
//! the reference evaluators.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tamis_abi::call::describe_briefly;
use tamis_abi::{Action, Arch, Word};
use tamis_analysis::{arches, find, with_word};
use tamis_bpf::{Program, cache};
use tamis_prover::{Function, LimitReached, Limited, Limits, Pair, Scope, Space, Stop, Subject};
use tamis_rules::{Input, Predicate};

use crate::ast::Relation;
use crate::checks::{Check, Checks, Claim, Part, Target};
use crate::mend::Reading;
use crate::outcome::{Example, Found, Outcome, Verdict, Violation, Way, decider};
use crate::region::{both, map, runs, values_where, without};
use crate::seek::Sought;
use crate::shared::{CheckKey, Derived, Held, Known, Shared};

/// The fate of a call: it is not executed.
pub(crate) const DENIED: u32 = 0;
/// It is executed.
pub(crate) const EXECUTED: u32 = 1;
/// A supervisor or tracer decides.
pub(crate) const DELEGATED: u32 = 2;

/// The part of a filter's function for one number.
#[derive(Clone, Copy)]
pub(crate) struct AtNumber {
    /// Its return values.
    pub(crate) answers: Function,
    /// The fate of the call: [`DENIED`], [`EXECUTED`] or [`DELEGATED`].
    pub(crate) fate: Function,
}

/// A call by name and number, or numbers with the same function, the first and the last.
type Named = (Option<&'static str>, (u32, u32));

/// The programs that the kernel runs, or the reason why there are none.
pub type Programs<'r> = &'r dyn Fn() -> Result<&'r [Program], String>;

/// The inputs of a check besides the function of the subject.
#[derive(Clone, Copy)]
pub struct Resources<'r, 'p> {
    /// The reference of a check that compares.
    pub reference: Option<&'r Subject<'r>>,
    /// The programs that the kernel runs; for a policy, the compiled program.
    pub programs: Programs<'p>,
}

impl Resources<'_, '_> {
    /// Neither a reference nor programs, for checks of calls alone.
    pub const NONE: Resources<'static, 'static> = Resources {
        reference: None,
        programs: &|| Err("not checked: there is no program".to_owned()),
    };
}

/// Decides checks for one subject.
pub struct Judge<'a> {
    subject: Subject<'a>,
    pub(crate) shared: Shared,
    function: Function,
    /// The architectures that the subject names.
    own: Vec<Arch>,
    /// Those, and the other architectures of the same machines.
    all: Vec<Arch>,
    known: HashMap<(Arch, u32), AtNumber>,
    by_arch: HashMap<Arch, Function>,
    assumed: Arch,
}

/// Calls of one number that contradict a check.
pub(crate) struct Contradicted {
    pub(crate) sought: Sought,
    /// The condition on their arguments.
    pub(crate) part: Function,
}

/// The fate of a call with this return value.
fn fate(ret: u32) -> u32 {
    use tamis_abi::ActionKind::{Notify, Trace};
    let kind = Action::from_ret(ret).kind;
    match kind {
        _ if kind.executes() => EXECUTED,
        Notify | Trace => DELEGATED,
        _ => DENIED,
    }
}

/// The architectures that a subject names.
fn named_arches(subject: &Subject<'_>, space: &Space, function: Function) -> Vec<Arch> {
    match subject {
        Subject::Ruleset(ruleset) => {
            let sections = ruleset.sections().iter();
            sections.map(|section| section.arch).collect()
        }
        _ => {
            let found = arches(space, function).into_iter();
            found.filter(|arch| *arch != Arch::X32).collect()
        }
    }
}

impl<'a> Judge<'a> {
    /// The judge of a subject; `assumed` is the architecture of a program that tests none.
    ///
    /// # Errors
    /// If the diagrams exceed the limits.
    pub fn new(
        subject: Subject<'a>,
        assumed: Arch,
        limits: Limits,
        stop: Stop,
    ) -> Limited<Judge<'a>> {
        let shared = Shared {
            is_for_several: false,
            ..Shared::new(limits, stop)
        };
        Judge::among(subject, assumed, shared)
    }

    /// The judge of one of several similar subjects.
    ///
    /// # Errors
    /// If the diagrams exceed the limits.
    pub fn among(subject: Subject<'a>, assumed: Arch, shared: Shared) -> Limited<Judge<'a>> {
        let mut judge = Judge::unread(subject, assumed, shared);
        judge.read()?;
        Ok(judge)
    }

    /// For the judge of the next of several similar subjects.
    pub fn into_shared(self) -> Shared {
        self.shared
    }

    /// The judge of a subject whose function is not known yet.
    fn unread(subject: Subject<'a>, assumed: Arch, shared: Shared) -> Judge<'a> {
        Judge {
            subject,
            shared,
            function: Function::FALSE,
            own: Vec::new(),
            all: Vec::new(),
            known: HashMap::new(),
            by_arch: HashMap::new(),
            assumed,
        }
    }

    /// Derives the function of the subject, and its architectures.
    fn read(&mut self) -> Limited<()> {
        self.function = self.shared.space.subject(&self.subject)?;
        self.own = named_arches(&self.subject, &self.shared.space, self.function);
        if self.own.is_empty() {
            self.own.push(self.assumed);
        }
        self.add_detours();
        Ok(())
    }

    /// Adds the other architectures of the same machines.
    fn add_detours(&mut self) {
        self.all.clone_from(&self.own);
        for arch in self.own.iter().flat_map(|arch| arch.with_compat()) {
            if !self.all.contains(arch) {
                self.all.push(*arch);
            }
        }
    }

    /// The result of a judge of another subject in the same space, so that what both subjects have in common is
    /// derived once.
    pub(crate) fn with_other<'o, R>(
        &mut self,
        subject: Subject<'o>,
        then: impl FnOnce(&mut Judge<'o>) -> Limited<R>,
    ) -> Limited<R> {
        self.with_derived(subject, None, then).0
    }

    /// The same for a reading, whose parts are derived once for all checks.
    pub(crate) fn with_reading<R>(
        &mut self,
        reading: &Rc<dyn Reading>,
        then: impl FnOnce(&mut Judge<'_>) -> Limited<R>,
    ) -> Limited<R> {
        let ruleset = reading.ruleset();
        let key = std::ptr::from_ref(ruleset).addr();
        let known = self.shared.readings.remove(&key);
        let known = known.map(|(_, derived)| derived);
        let (result, derived) = self.with_derived(Subject::Ruleset(ruleset), known, then);
        if result.is_ok() {
            let known = (reading.clone(), derived);
            self.shared.readings.insert(key, known);
        }
        result
    }

    fn with_derived<'o, R>(
        &mut self,
        subject: Subject<'o>,
        known: Option<Derived>,
        then: impl FnOnce(&mut Judge<'o>) -> Limited<R>,
    ) -> (Limited<R>, Derived) {
        let spare = self.shared.spare.pop().unwrap_or_else(|| {
            let limits = *self.shared.space.limits();
            Shared::new(limits, self.shared.stop.clone())
        });
        let shared = std::mem::replace(&mut self.shared, spare);
        let mut other = Judge::unread(subject, self.assumed, shared);
        let read = match known {
            Some(known) => {
                other.function = known.function;
                other.own = known.own;
                other.known = known.numbers;
                other.by_arch = known.by_arch;
                other.add_detours();
                Ok(())
            }
            None => other.read(),
        };
        let result = read.and_then(|()| then(&mut other));
        let spare = std::mem::replace(&mut self.shared, other.shared);
        self.shared.spare.push(spare);
        let derived = Derived {
            function: other.function,
            own: other.own,
            numbers: other.known,
            by_arch: other.by_arch,
        };
        (result, derived)
    }

    /// The function of the subject.
    pub(crate) fn function(&self) -> Function {
        self.function
    }

    /// The architectures that the subject names.
    pub(crate) fn own_arches(&self) -> &[Arch] {
        &self.own
    }

    /// The answer of a check, which stays at its address while results are shared. One that held for a subject with the
    /// same functions of all numbers that it concerns holds again, and its notices are not repeated.
    pub fn check(
        &mut self,
        checks: &Checks,
        check: &Check,
        resources: &Resources<'_, '_>,
    ) -> Outcome {
        if !self.shared.is_for_several {
            return self.decided(checks, check, resources);
        }
        let key = self.key(check);
        if let Ok(true) = self.held_before(&key) {
            return Found::default().into_outcome();
        }
        let outcome = self.decided(checks, check, resources);
        if outcome.verdict == Verdict::Holds && !check.claim.targets().is_empty() {
            // Without it, the check is decided again.
            let _ = self.remember(checks, check, key);
        }
        outcome
    }

    fn key(&self, check: &Check) -> CheckKey {
        (std::ptr::from_ref(check).addr(), self.own.clone())
    }

    /// Whether a check held for the functions of the numbers that it concerns.
    fn held_before(&mut self, key: &CheckKey) -> Limited<bool> {
        let Some(held) = self.shared.held.get(key) else {
            return Ok(false);
        };
        let functions = self.functions(&held.numbers.clone())?;
        let held = self.shared.held.get(key);
        Ok(held.is_some_and(|held| held.functions.contains(&functions)))
    }

    fn functions(&mut self, numbers: &[(Arch, u32)]) -> Limited<Vec<Function>> {
        let numbers = numbers.iter();
        numbers
            .map(|(arch, nr)| Ok(self.at(*arch, *nr)?.answers))
            .collect()
    }

    /// Remembers that a check holds.
    fn remember(&mut self, checks: &Checks, check: &Check, key: CheckKey) -> Limited<()> {
        let mut numbers = Vec::new();
        for sought in self.all_sought(checks, check, &mut |_| {})?.iter() {
            if sought.nr != sought.last {
                return Ok(());
            }
            numbers.push((sought.arch, sought.nr));
        }
        let functions = self.functions(&numbers)?;
        let held = self.shared.held.entry(key).or_insert(Held {
            numbers,
            functions: HashSet::new(),
        });
        held.functions.insert(functions);
        Ok(())
    }

    fn decided(
        &mut self,
        checks: &Checks,
        check: &Check,
        resources: &Resources<'_, '_>,
    ) -> Outcome {
        let mut found = Found::default();
        match self.decide(checks, check, resources, &mut found) {
            Ok(()) => found.into_outcome(),
            // A call that contradicts the check decides it, even if a limit leaves other calls unexamined.
            Err(_) if !found.violations.is_empty() => found.into_outcome(),
            Err(limit) => Outcome {
                verdict: Verdict::Undecided(limit),
                ..found.into_outcome()
            },
        }
    }

    fn decide(
        &mut self,
        checks: &Checks,
        check: &Check,
        resources: &Resources<'_, '_>,
        found: &mut Found,
    ) -> Limited<()> {
        match &check.claim {
            Claim::Never { .. } | Claim::Always(_) | Claim::Expect(..) => {
                found.not_made = self.without_meaning(checks, check);
                let mut notices = Vec::new();
                let contradicted =
                    self.contradicted(checks, check, &mut |notice| notices.push(notice));
                notices.into_iter().for_each(|notice| found.notice(notice));
                for Contradicted { sought, part } in contradicted? {
                    match found.is_full() {
                        true => found.further += 1,
                        false => found.add(Violation::Call(self.example(&sought, part)?)),
                    }
                }
                Ok(())
            }
            Claim::Compare(relation, _) => match resources.reference {
                Some(reference) => self.compare(*relation, check, reference, found),
                None => {
                    found.not_made = Some("not checked: there is no reference".to_owned());
                    Ok(())
                }
            },
            Claim::AtMost(most) => {
                match (resources.programs)() {
                    Ok(programs) => {
                        let length_insns = programs.iter().map(Program::len).sum();
                        if length_insns as u64 > *most {
                            found.add(Violation::Size { length_insns });
                        }
                    }
                    Err(reason) => found.not_made = Some(reason),
                }
                Ok(())
            }
            Claim::Cached(calls) => self.cached(check, calls, resources, found),
        }
    }

    /// The architectures of a check: those that it selects, or these.
    pub(crate) fn arches(&self, check: &Check, otherwise: &[Arch]) -> Vec<Arch> {
        check.arches.clone().unwrap_or_else(|| otherwise.to_vec())
    }

    /// The architectures that the subject names, and the other architectures of the same machines.
    pub(crate) fn with_detours(&self) -> &[Arch] {
        &self.all
    }

    /// The part of the function for one number.
    pub(crate) fn at(&mut self, arch: Arch, nr: u32) -> Limited<AtNumber> {
        if let Some(known) = self.known.get(&(arch, nr)) {
            return Ok(*known);
        }
        let answers = self.of_arch(arch)?;
        let answers = with_word(&mut self.shared.space, answers, Word::NR, nr)?;
        let at = AtNumber {
            answers,
            fate: map(&mut self.shared.space, answers, &fate, &mut HashMap::new())?,
        };
        self.known.insert((arch, nr), at);
        Ok(at)
    }

    /// The part of the function for an architecture.
    fn of_arch(&mut self, arch: Arch) -> Limited<Function> {
        if let Some(known) = self.by_arch.get(&arch) {
            return Ok(*known);
        }
        let answers = with_word(
            &mut self.shared.space,
            self.function,
            Word::ARCH,
            arch.audit(),
        )?;
        self.by_arch.insert(arch, answers);
        Ok(answers)
    }

    /// The calls that a check concerns.
    pub(crate) fn all_sought(
        &mut self,
        checks: &Checks,
        check: &Check,
        notice: &mut dyn FnMut(String),
    ) -> Limited<Rc<[Sought]>> {
        let key = self.key(check);
        let known = match self.shared.sought.get(&key) {
            Some(known) => known.clone(),
            None => {
                let mut notices = Vec::new();
                let mut notice = |text| notices.push(text);
                let sought = self.derived(checks, check, &mut notice)?;
                let known = Known {
                    sought: sought.into(),
                    notices,
                };
                let has_ranges = known.sought.iter().any(|own| own.nr != own.last);
                if self.shared.is_for_several && !has_ranges {
                    self.shared.sought.insert(key, known.clone());
                }
                known
            }
        };
        known.notices.into_iter().for_each(&mut *notice);
        if let Claim::Never {
            any_way: false,
            targets,
        } = &check.claim
        {
            self.note_rings(check, targets, notice)?;
        }
        Ok(known.sought)
    }

    /// The calls that a check concerns, derived anew.
    fn derived(
        &mut self,
        checks: &Checks,
        check: &Check,
        notice: &mut dyn FnMut(String),
    ) -> Limited<Vec<Sought>> {
        if let Claim::Never { any_way, .. } = &check.claim {
            return self.sought(checks, check, *any_way, notice);
        }
        let mut sought = Vec::new();
        for arch in self.arches(check, &self.own) {
            sought.extend(self.named(checks, check, arch, notice)?);
        }
        if sought.is_empty() {
            notice("no architecture of the policy has these calls".to_owned());
        }
        Ok(sought)
    }

    /// The reason why a condition of a check has no meaning on any architecture that the check concerns.
    fn without_meaning(&self, checks: &Checks, check: &Check) -> Option<String> {
        let arches = self.arches(check, &self.own);
        check.claim.targets().iter().find_map(|target| {
            let mut reason = None;
            for arch in &arches {
                for (name, _) in target.numbers(*arch) {
                    match checks.part(target, name, *arch) {
                        Part::Undefined(text) => {
                            reason.get_or_insert(format!("not checked on {arch}: {text}"));
                        }
                        Part::Where(_) | Part::InMemory => return None,
                    }
                }
            }
            reason
        })
    }

    /// The calls that contradict a check, each number once.
    pub(crate) fn contradicted(
        &mut self,
        checks: &Checks,
        check: &Check,
        notice: &mut dyn FnMut(String),
    ) -> Limited<Vec<Contradicted>> {
        let mut contradicted: Vec<Contradicted> = Vec::new();
        for sought in self.all_sought(checks, check, notice)?.iter() {
            let is_known = |known: &Contradicted| {
                (known.sought.arch, known.sought.nr) == (sought.arch, sought.nr)
            };
            let part = match &check.claim {
                Claim::Never { .. } => self.not_denied(sought, notice)?,
                Claim::Always(_) => self.not_executed(sought)?,
                Claim::Expect(_, answer) => match checks.action(answer, sought.arch) {
                    Some(action) => self.other_than(sought, action)?,
                    None => {
                        let arch = sought.arch;
                        notice(format!("not checked on {arch}, which lacks the errno"));
                        continue;
                    }
                },
                Claim::Compare(..) | Claim::AtMost(_) | Claim::Cached(_) => continue,
            };
            if part != Function::FALSE && !contradicted.iter().any(is_known) {
                let sought = sought.clone();
                contradicted.push(Contradicted { sought, part });
            }
        }
        Ok(contradicted)
    }

    /// The part of calls that is executed; notes a part that a supervisor or tracer decides.
    fn not_denied(&mut self, sought: &Sought, notice: &mut dyn FnMut(String)) -> Limited<Function> {
        let fate = self.at(sought.arch, sought.nr)?.fate;
        if fate == self.shared.space.constant(DENIED)? {
            return Ok(Function::FALSE);
        }
        let executed = values_where(&mut self.shared.space, fate, &|own| own == EXECUTED)?;
        let violation = both(&mut self.shared.space, sought.region, executed)?;
        if violation == Function::FALSE {
            let delegated = values_where(&mut self.shared.space, fate, &|own| own == DELEGATED)?;
            let left_open = both(&mut self.shared.space, sought.region, delegated)?;
            if left_open != Function::FALSE {
                let example = self.example(sought, left_open)?;
                let call = describe_briefly(&example.as_read().0);
                let action = example.action;
                notice(format!(
                    "a supervisor or tracer decides: {call} -> {action}"
                ));
            }
        }
        Ok(violation)
    }

    /// The part of calls, as programs make them, that isn't executed.
    fn not_executed(&mut self, sought: &Sought) -> Limited<Function> {
        let fate = self.at(sought.arch, sought.nr)?.fate;
        if fate == self.shared.space.constant(EXECUTED)? {
            return Ok(Function::FALSE);
        }
        let region = self.as_passed(sought)?;
        let other = values_where(&mut self.shared.space, fate, &|own| own != EXECUTED)?;
        both(&mut self.shared.space, region, other)
    }

    /// The part of calls with another action.
    fn other_than(&mut self, sought: &Sought, action: Action) -> Limited<Function> {
        let answers = self.at(sought.arch, sought.nr)?.answers;
        let region = match action.kind.executes() {
            true => self.as_passed(sought)?,
            false => sought.region,
        };
        let wanted = self.shared.space.returns(answers, action.ret())?;
        without(&mut self.shared.space, region, wanted)
    }

    /// The calls that a check names on an architecture.
    pub(crate) fn named(
        &mut self,
        checks: &Checks,
        check: &Check,
        arch: Arch,
        notice: &mut dyn FnMut(String),
    ) -> Limited<Vec<Sought>> {
        let mut named = Vec::new();
        for target in check.claim.targets() {
            for (name, (nr, last)) in self.alike(target, arch)? {
                let (region, way, text) = match checks.part(target, name, arch) {
                    Part::Where(when) => {
                        let text = checks.text(target, name, (nr, last));
                        (self.shared.space.condition(&when)?, Way::Direct, text)
                    }
                    Part::InMemory => {
                        let text = name.unwrap_or_default().to_owned();
                        (Function::TRUE, Way::InMemory, text)
                    }
                    Part::Undefined(reason) => {
                        notice(format!("not checked on {arch}: {reason}"));
                        continue;
                    }
                };
                named.push(Sought {
                    arch,
                    name,
                    nr,
                    last,
                    region,
                    way,
                    text,
                });
            }
        }
        Ok(named)
    }

    /// The calls of a target, with ranges of numbers divided into those with the same function.
    fn alike(&mut self, target: &Target, arch: Arch) -> Limited<Vec<Named>> {
        let mut alike = Vec::new();
        for (name, (first, last)) in target.numbers(arch) {
            if first == last {
                alike.push((name, (first, last)));
                continue;
            }
            let answers = self.of_arch(arch)?;
            let runs = runs(&self.shared.space, answers, (first, last))?;
            alike.extend(runs.into_iter().map(|run| (name, run)));
        }
        Ok(alike)
    }

    /// The part of the calls that programs make: without values in bits that the kernel doesn't read.
    pub(crate) fn as_passed(&mut self, one: &Sought) -> Limited<Function> {
        let passed = self.passed(one)?;
        both(&mut self.shared.space, one.region, passed)
    }

    /// The condition that the arguments of a call are as programs pass them.
    fn passed(&mut self, one: &Sought) -> Limited<Function> {
        let Shared { passed, space, .. } = &mut self.shared;
        passed.condition(space, one.arch, one.name)
    }

    fn compare(
        &mut self,
        relation: Relation,
        check: &Check,
        reference: &Subject<'_>,
        found: &mut Found,
    ) -> Limited<()> {
        if self.subject.is_identical(reference) {
            return Ok(());
        }
        let other = self.shared.space.subject(reference)?;
        let scope = Scope {
            arches: check.arches.clone().unwrap_or_default(),
            ..Scope::default()
        };
        let pairs = match self.shared.space.comparison(self.function, other, &scope) {
            Ok(comparison) => comparison.pairs().to_vec(),
            Err(LimitReached::Pairs) => {
                self.shared.space.strictness(self.function, other, &scope)?
            }
            Err(limit) => return Err(limit),
        };
        let is_contradicted = |pair: &&Pair| match relation {
            Relation::Stricter => pair.strictness().is_gt(),
            Relation::Looser => pair.strictness().is_lt(),
            Relation::Equal => true,
        };
        for pair in pairs.iter().filter(is_contradicted) {
            let input = pair.example.ok_or(LimitReached::Paths)?;
            let action = self.confirmed(&input);
            found.add(Violation::Reference {
                example: Example {
                    input,
                    action,
                    way: Way::Direct,
                    decider: decider(&self.subject, &input),
                },
                reference: Action::from_ret(pair.right),
            });
        }
        Ok(())
    }

    fn cached(
        &mut self,
        check: &Check,
        calls: &[&'static str],
        resources: &Resources<'_, '_>,
        found: &mut Found,
    ) -> Limited<()> {
        let programs = match (resources.programs)() {
            Ok(programs) => programs,
            Err(reason) => {
                found.not_made = Some(reason);
                return Ok(());
            }
        };
        for arch in self.arches(check, &self.own) {
            if arch == Arch::X32 {
                found.notice("the kernel remembers no numbers of x32".to_owned());
                continue;
            }
            for name in calls {
                let Some(nr) = tamis_abi::syscall::number(arch, name) else {
                    found.notice(format!("{arch} has no call `{name}`"));
                    continue;
                };
                let is_cached = |own: &Program| cache::is_cacheable(own, arch.audit(), nr.0);
                if programs.iter().all(is_cached) {
                    continue;
                }
                let mut input = Input::default();
                (input.data.arch, input.data.nr) = (arch.audit(), nr.0);
                found.add(Violation::NotCached(Example {
                    action: self.confirmed(&input),
                    way: Way::Direct,
                    decider: decider(&self.subject, &input),
                    input,
                }));
            }
        }
        Ok(())
    }

    /// A call of a part, if possible one with values as programs pass them.
    pub(crate) fn example(&mut self, one: &Sought, part: Function) -> Limited<Example> {
        let key = (one.arch, one.name, one.nr, part);
        let input = match self.shared.found.get(&key) {
            Some(known) => *known,
            None => {
                let mut input = self.input(one, part)?;
                (input.data.arch, input.data.nr) = (one.arch.audit(), one.nr);
                self.shared.found.insert(key, input);
                input
            }
        };
        Ok(Example {
            action: self.confirmed(&input),
            way: one.way.clone(),
            decider: decider(&self.subject, &input),
            input,
        })
    }

    /// The arguments of a call of a part, if possible as programs pass them.
    fn input(&mut self, one: &Sought, part: Function) -> Limited<Input> {
        // Most conditions hold for arguments that are 0, as programs pass them, which need no search.
        if self.shared.space.value(part, &Input::default()) == 1 {
            return Ok(Input::default());
        }
        let passed = self.passed(one)?;
        let usual = both(&mut self.shared.space, part, passed)?;
        for part in [usual, part] {
            if part != Function::FALSE
                && let Some(input) = find(&self.shared.space, &[part], &|values| values[0] == 1)?
            {
                return Ok(input);
            }
        }
        Err(LimitReached::Paths)
    }

    /// The action for a call by the reference evaluators.
    ///
    /// # Panics
    /// If they contradict the diagrams.
    fn confirmed(&self, input: &Input) -> Action {
        let evaluated = self.subject.answer(input);
        let proved = self.shared.space.value(self.function, input);
        assert_eq!(
            evaluated, proved,
            "the prover and the evaluators disagree about {input:?}"
        );
        Action::from_ret(evaluated)
    }

    /// The condition of a predicate.
    pub(crate) fn condition(&mut self, predicate: &Predicate) -> Limited<Function> {
        self.shared.space.condition(predicate)
    }
}
