//! The context of all checks: the diagram of the filter, split into the calls of its architectures.
//!
//! A call is *open* if it is executed for all arguments, *refused* if for none, else *conditional*. It is
//! restricted *on purpose* if the author must have intended it: see [`Context::on_purpose`].

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tamis_abi::signature::{self, Width};
use tamis_abi::{
    Action, ActionKind, Arch, ArgIndex, KernelVersion, Nr, SeccompData, Word, errno, syscall,
};
use tamis_analysis::{find, with_word, words};
use tamis_bpf::{Pc, Stack, interp};
use tamis_prover::{Function, Limited, Limits, Space, Stop};
use tamis_rules::{Cause, Predicate, Rule, Ruleset};

use crate::finding::{Example, Place};
use crate::rules_view::{Statement, statements};
use crate::subject::{LintInput, Meaning, Runtime, Statements};
use crate::tables::Form;
use crate::target::Target;
use tamis_diag::words::list;

/// A number that no kernel uses or will use soon.
const UNKNOWN_NR: u32 = 0x3fff_fff1;
/// An audit value that no architecture has.
const UNKNOWN_AUDIT: u32 = 0x3fff_ffff;

/// The degree to which a call is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Open,
    Conditional,
    Refused,
}

/// Some or all calls with one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) arch: Arch,
    pub(crate) nr: Nr,
    pub(crate) name: &'static str,
    /// The function from the arguments to actions.
    pub(crate) function: Function,
    pub(crate) access: Access,
    /// An argument with a fixed value.
    pub(crate) fixed: Option<(ArgIndex, u64)>,
    /// The row of a table with that value.
    pub(crate) form: Option<Form>,
}

/// The most calls in a handwritten list of denials; a generated complement of an allow list has more.
const MAX_BY_HAND: usize = 48;

pub(crate) struct Context<'a> {
    pub(crate) space: Space,
    /// The function from all calls to actions.
    pub(crate) function: Function,
    meaning: Meaning<'a>,
    /// The kind of a policy's statements.
    pub(crate) kind: Statements<'a>,
    /// The architectures of the filter, in the order of the policy.
    pub(crate) arches: Vec<Arch>,
    /// The runtime that starts a container under the filter.
    pub(crate) runtime: Option<Runtime>,
    /// The kernel that runs the filter.
    pub(crate) kernel: Option<KernelVersion>,
    /// The kernel whose calls the policy has considered, if it states one.
    pub(crate) known_until: Option<KernelVersion>,
    /// What the filter is for.
    pub(crate) targets: &'a [Target],
    /// Whether the result depends on the architecture.
    pub(crate) tests_arch: bool,
    calls: BTreeMap<Arch, Vec<Call>>,
    /// The constant that replaces computed return values of a program, or those of calls with too complex conditions in
    /// a policy.
    computed: Option<u32>,
    /// The calls with such return values, which are not checked.
    unknown: BTreeSet<&'static str>,
    /// Computed on first use.
    statements: Option<Rc<[Statement<'a>]>>,
}

/// Whether a call with this return value is executed.
pub(crate) fn is_executed(ret: u32) -> bool {
    Action::from_ret(ret).kind.executes()
}

impl<'a> Context<'a> {
    pub(crate) fn new(subject: LintInput<'a>, limits: Limits, stop: Stop) -> Limited<Context<'a>> {
        let mut space = Space::stoppable(limits, stop.clone());
        let (function, computed) = match subject.meaning.function(&mut space) {
            Ok(function) => (function, None),
            Err(limit) => {
                space = Space::stoppable(limits, stop);
                let simpler = subject.meaning.without_computed_answers(&mut space)?;
                let (function, mark) = simpler.ok_or(limit)?;
                (function, Some(mark))
            }
        };
        Context::with_function(subject, space, function, computed)
    }

    /// The context of a policy; `computed` is the return value that replaces too complex conditions.
    pub(crate) fn marked(
        subject: LintInput<'a>,
        mark: u32,
        limits: Limits,
        stop: Stop,
    ) -> Limited<Context<'a>> {
        let mut space = Space::stoppable(limits, stop);
        let function = subject.meaning.function(&mut space)?;
        Context::with_function(subject, space, function, Some(mark))
    }

    fn with_function(
        subject: LintInput<'a>,
        space: Space,
        function: Function,
        computed: Option<u32>,
    ) -> Limited<Context<'a>> {
        let tests_arch = words(&space, function).contains(&Word::ARCH);
        let mut context = Context {
            space,
            function,
            meaning: subject.meaning,
            kind: subject.statements,
            arches: Vec::new(),
            runtime: subject.runtime,
            kernel: subject.kernel,
            known_until: subject.known_until,
            targets: subject.targets,
            tests_arch,
            calls: BTreeMap::new(),
            computed,
            unknown: BTreeSet::new(),
            statements: None,
        };
        context.arches = match subject.meaning {
            Meaning::Policy(ruleset) => {
                let sections = ruleset.sections().iter();
                sections.map(|section| section.arch).collect()
            }
            Meaning::Filters(_) if tests_arch => context.served()?,
            Meaning::Filters(_) => vec![subject.assumed_arch],
        };
        for arch in context.arches.clone() {
            let calls = context.calls_of(arch)?;
            context.calls.insert(arch, calls);
        }
        Ok(context)
    }

    /// The architectures that a program treats differently from unknown ones.
    fn served(&mut self) -> Limited<Vec<Arch>> {
        let foreign = self.of_audit(UNKNOWN_AUDIT)?;
        let mut served = Vec::new();
        for arch in Arch::all() {
            let own = self.of_audit(arch.audit())?;
            let is_served = match arch {
                // x32 is included if its numbers have separate rules.
                Arch::X32 => {
                    let calls = self.calls_of(arch)?;
                    calls.iter().any(|call| call.function != calls[0].function)
                }
                _ => own != foreign,
            };
            if own != foreign && is_served {
                served.push(arch);
            }
        }
        Ok(served)
    }

    fn of_audit(&mut self, audit: u32) -> Limited<Function> {
        with_word(&mut self.space, self.function, Word::ARCH, audit)
    }

    /// The policy; `None` for programs.
    pub(crate) fn policy(&self) -> Option<&'a Ruleset> {
        match self.meaning {
            Meaning::Policy(ruleset) => Some(ruleset),
            Meaning::Filters(_) => None,
        }
    }

    /// The programs; `None` for a policy.
    pub(crate) fn filters(&self) -> Option<&'a Stack> {
        match self.meaning {
            Meaning::Policy(_) => None,
            Meaning::Filters(stack) => Some(stack),
        }
    }

    /// The statements of the policy, in the order of the text; empty for a program.
    pub(crate) fn statements(&mut self) -> Limited<Rc<[Statement<'a>]>> {
        if let Some(known) = &self.statements {
            return Ok(Rc::clone(known));
        }
        let made: Rc<[Statement]> = match self.policy() {
            Some(policy) => statements(&mut self.space, policy)?.into(),
            None => Rc::from([]),
        };
        self.statements = Some(Rc::clone(&made));
        Ok(made)
    }

    /// All calls of an architecture, even if the filter has no rules for it.
    pub(crate) fn calls_of(&mut self, arch: Arch) -> Limited<Vec<Call>> {
        if let Some(calls) = self.calls.get(&arch) {
            return Ok(calls.clone());
        }
        let of_arch = self.of_audit(arch.audit())?;
        let mut calls = Vec::new();
        for (nr, name) in syscall::all(arch) {
            let function = with_word(&mut self.space, of_arch, Word::NR, nr.0)?;
            let answers = self.space.values(function);
            if self.computed.is_some_and(|mark| answers.contains(&mark)) {
                self.unknown.insert(name);
                continue;
            }
            let access = self.access(function);
            calls.push(Call {
                arch,
                nr,
                name,
                function,
                access,
                fixed: None,
                form: None,
            });
        }
        Ok(calls)
    }

    /// The calls that are not checked because of computed return values or too complex conditions.
    pub(crate) fn gap(&self) -> Option<String> {
        self.computed?;
        let unknown = list(self.unknown.iter().copied());
        Some(match self.meaning {
            Meaning::Filters(_) => format!(
                "return values computed from arguments were not checked: those for {unknown}"
            ),
            Meaning::Policy(_) => format!(
                "conditions that compare many bits of arguments with each other were not checked: those of {unknown}"
            ),
        })
    }

    /// All calls of the filter's architectures.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call> {
        let calls = self.arches.iter().filter_map(|arch| self.calls.get(arch));
        calls.flatten().copied()
    }

    /// The call with this name; `None` if the architecture isn't one of the filter's.
    pub(crate) fn call(&self, arch: Arch, name: &str) -> Option<Call> {
        let nr = syscall::number(arch, name)?;
        let mut calls = self.calls.get(&arch)?.iter();
        calls.find(|call| call.nr == nr).copied()
    }

    /// The calls of a form; `None` if the architecture lacks the call, its argument or the constant.
    pub(crate) fn form(&mut self, arch: Arch, form: Form) -> Limited<Option<Call>> {
        let Some(call) = self.call(arch, form.call) else {
            return Ok(None);
        };
        let Some((argument, _)) = form.with else {
            return Ok(Some(call));
        };
        let place = signature::index(arch, form.call, argument);
        let Some((index, value)) = place.zip(form.value(arch)) else {
            return Ok(None);
        };
        let call = self.with_argument(call, index, value)?;
        Ok(Some(Call {
            form: Some(form),
            ..call
        }))
    }

    /// The calls with this value of an argument and its conventional upper half.
    pub(crate) fn with_argument(
        &mut self,
        call: Call,
        index: ArgIndex,
        value: u32,
    ) -> Limited<Call> {
        let arg = signature::at(call.arch, call.name, index);
        let width = arg.map(|arg| signature::width(call.arch, call.name, arg));
        let is_int = width == Some(Width::Bits32) && call.arch.has_64_bit_registers();
        let passed = match is_int {
            true => signature::passed(call.arch, u64::from(value)),
            false => u64::from(value),
        };
        let low = Word::arg_low(index);
        let function = with_word(&mut self.space, call.function, low, value)?;
        let high = Word::arg_high(index);
        let function = with_word(&mut self.space, function, high, (passed >> 32) as u32)?;
        let access = self.access(function);
        let fixed = Some((index, passed));
        Ok(Call {
            function,
            access,
            fixed,
            ..call
        })
    }

    fn access(&self, function: Function) -> Access {
        let values = self.space.values(function);
        let executed = values.iter().filter(|ret| is_executed(**ret)).count();
        match executed {
            0 => Access::Refused,
            all if all == values.len() => Access::Open,
            _ => Access::Conditional,
        }
    }

    /// Whether all of these calls get an error or a kill; not if a supervisor or a handler answers one.
    pub(crate) fn denies(&self, call: &Call) -> bool {
        let is_denial = |ret: u32| {
            let kind = Action::from_ret(ret).kind;
            matches!(
                kind,
                ActionKind::Errno | ActionKind::KillProcess | ActionKind::KillThread
            )
        };
        self.space.values(call.function).into_iter().all(is_denial)
    }

    /// A call of an architecture with a number that no kernel has, and its function.
    pub(crate) fn unknown_call(&mut self, arch: Arch) -> Limited<(SeccompData, Function)> {
        let bit = if arch == Arch::X32 { Arch::X32_BIT } else { 0 };
        let nr = (UNKNOWN_NR & !Arch::X32_BIT) | bit;
        let function = self.of_audit(arch.audit())?;
        let function = with_word(&mut self.space, function, Word::NR, nr)?;
        let arch = arch.audit();
        let data = SeccompData {
            nr,
            arch,
            ..SeccompData::default()
        };
        Ok((data, function))
    }

    /// A call of an architecture that no kernel has.
    pub(crate) fn foreign_call(&self) -> SeccompData {
        SeccompData {
            arch: UNKNOWN_AUDIT,
            ..SeccompData::default()
        }
    }

    /// Whether a call of this architecture is or may be executed; unchecked calls count.
    pub(crate) fn executes_any(&mut self, arch: Arch) -> Limited<bool> {
        let function = self.of_audit(arch.audit())?;
        let mut values = self.space.values(function).into_iter();
        Ok(values.any(|ret| is_executed(ret) || Some(ret) == self.computed))
    }

    /// Whether unknown calls of this architecture are executed.
    pub(crate) fn allows_by_default(&mut self, arch: Arch) -> Limited<bool> {
        let (_, function) = self.unknown_call(arch)?;
        Ok(self.space.values(function).into_iter().any(is_executed))
    }

    /// Whether the filter is a deny list that doesn't mention these calls.
    pub(crate) fn leaves_aside(&mut self, forms: &[Form]) -> Limited<bool> {
        for arch in self.arches.clone() {
            if !self.allows_by_default(arch)? {
                return Ok(false);
            }
            for form in forms {
                let call = self.call(arch, form.call);
                if call.is_some_and(|call| call.access != Access::Open) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether a call is restricted on purpose: it has a condition, or a rule of the policy names it, or it is denied
    /// in another way than most calls, or all others are allowed. A denial with `ENOSYS` doesn't count: it makes the
    /// caller use another call.
    pub(crate) fn on_purpose(&mut self, call: &Call) -> Limited<bool> {
        if call.access != Access::Refused {
            return Ok(call.access == Access::Conditional);
        }
        // The condition of a rule doesn't include the value that a table fixes.
        let whole = call.form.and_then(|form| self.call(call.arch, form.call));
        if whole.is_some_and(|whole| whole.access == Access::Conditional) {
            return Ok(true);
        }
        let values = self.space.values(call.function);
        let enosys = self.enosys(call.arch);
        if values.iter().all(|ret| *ret == enosys.ret()) {
            return Ok(false);
        }
        if self.allows_by_default(call.arch)? {
            return Ok(true);
        }
        match self.meaning {
            Meaning::Policy(ruleset) => {
                let example = self.data(call, |_| true)?;
                let rule = example.and_then(|data| rule_of(ruleset, &data));
                let is_named = |rule: &&Rule| {
                    !rule.syscalls.contains(UNKNOWN_NR)
                        && !self.is_for_the_rest(call.arch, ruleset, rule)
                };
                Ok(rule.filter(is_named).is_some())
            }
            Meaning::Filters(_) => {
                let usual = self.usual_refusal(call.arch);
                Ok(values.iter().any(|ret| Some(*ret) != usual))
            }
        }
    }

    /// Whether a rule belongs to a generated complement: a list of all calls that aren't allowed, with a default for
    /// unknown calls only. The rules with its action then deny most of the denied calls, and more than a handwritten
    /// list has. A shorter list is deliberate.
    fn is_for_the_rest(&self, arch: Arch, ruleset: &Ruleset, rule: &Rule) -> bool {
        let usual = self.usual_refusal(arch);
        let is_usual =
            |rule: &Rule| rule.when == Predicate::True && Some(rule.action.ret()) == usual;
        if !is_usual(rule) {
            return false;
        }
        let mut sections = ruleset.sections().iter();
        let Some(section) = sections.find(|section| section.arch == arch) else {
            return false;
        };
        let rules: Vec<&Rule> = section.rules.iter().filter(|rule| is_usual(rule)).collect();
        let is_listed = |call: &Call| rules.iter().any(|rule| rule.syscalls.contains(call.nr.0));
        let refused = self.calls.get(&arch).into_iter().flatten();
        let refused = refused.filter(|call| call.access == Access::Refused);
        let (mut all, mut listed) = (0, 0);
        for call in refused {
            all += 1;
            listed += usize::from(is_listed(call));
        }
        2 * listed > all && listed > MAX_BY_HAND
    }

    /// The most frequent action of the denied calls of an architecture.
    fn usual_refusal(&self, arch: Arch) -> Option<u32> {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for call in self.calls.get(&arch)? {
            if call.access == Access::Refused {
                for ret in self.space.values(call.function) {
                    *counts.entry(ret).or_default() += 1;
                }
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count)?;
        Some(most.0)
    }

    /// The action equivalent to a kernel without the call.
    pub(crate) fn enosys(&self, arch: Arch) -> Action {
        Action::errno(errno::enosys(arch))
    }

    /// One of the calls with a selected return value.
    pub(crate) fn data(
        &self,
        call: &Call,
        wanted: impl Fn(u32) -> bool,
    ) -> Limited<Option<SeccompData>> {
        let found = find(&self.space, &[call.function], &|values| wanted(values[0]))?;
        Ok(found.map(|found| call.complete(found.data)))
    }

    /// One of the calls that is executed, or is not, with its action; `None` if none is found within the limits: a
    /// finding is valid without an example.
    pub(crate) fn example(&self, call: &Call, executed: bool) -> Option<Example> {
        let found = self.data(call, |ret| is_executed(ret) == executed);
        let data = found.ok().flatten()?;
        let example = self.answer(&data);
        (is_executed(example.action.ret()) == executed).then_some(example)
    }

    /// A call with its action.
    pub(crate) fn answer(&self, data: &SeccompData) -> Example {
        Example {
            call: *data,
            action: self.meaning.decide(data),
        }
    }

    /// The rule or instruction that decides a call, with its place.
    pub(crate) fn place(&self, data: &SeccompData, label: &str) -> Option<Place> {
        match self.meaning {
            Meaning::Policy(ruleset) => {
                let origin = rule_of(ruleset, data)?.origin.clone()?;
                Some(Place::Rule(origin, label.to_owned()))
            }
            Meaning::Filters(stack) => {
                let only = (stack.programs().len() == 1).then_some(0);
                // No filter decides a call that all allow.
                let filter = stack.run(data).decided_by.or(only)?;
                let mut last = Pc(0);
                interp::run_traced(&stack.programs()[filter], data, &mut |pc| last = pc);
                Some(Place::Insn { filter, pc: last })
            }
        }
    }

    /// ` on x86` if the filter has further architectures.
    pub(crate) fn on(&self, arches: &[Arch]) -> String {
        if arches.len() == self.arches.len() {
            return String::new();
        }
        let names: Vec<&str> = arches.iter().map(|arch| arch.name()).collect();
        format!(" on {}", names.join(", "))
    }
}

impl Call {
    /// The name, with the argument that a table fixes: `prctl(option == PR_SET_SECCOMP)`.
    pub(crate) fn label(&self) -> String {
        self.form
            .map_or_else(|| self.name.to_owned(), |form| form.to_string())
    }

    /// Completes an input of a function to one of these calls.
    pub(crate) fn complete(&self, found: SeccompData) -> SeccompData {
        let mut data = SeccompData {
            nr: self.nr.0,
            arch: self.arch.audit(),
            ..found
        };
        if let Some((index, value)) = self.fixed {
            data.args[index.index()] = value;
        }
        data
    }
}

fn rule_of<'a>(ruleset: &'a Ruleset, data: &SeccompData) -> Option<&'a Rule> {
    match ruleset.decide(data).cause {
        Cause::Rule(_, rule) => Some(rule),
        Cause::Default(_) | Cause::BadArch => None,
    }
}
