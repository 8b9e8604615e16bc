//! From statements to a ruleset, in one walk in the order of the text.
//!
//! Every rule is lowered once per architecture, as numbers, constants and widths differ. The unconditional calls of
//! a rule become one rule of the ruleset, each call with a condition becomes a separate one; they share an action,
//! so their relative order doesn't matter.

mod header;
mod section;

use std::ops::RangeInclusive;

use tamis_abi::{Action, Arch, KernelVersion, signature, syscall};
use tamis_diag::{Diagnostic, Severity, Sources, Span};
use tamis_rules::{
    IntervalSet, OperandSource, Origin, Part, Predicate, Rule, Ruleset, Section, Test,
};

use super::TamisOptions;
use super::ast::{Answer, Fallback, Name, Statement, StatementKind, Target, TargetKind, Value};
use super::condition::Context;
use super::foreign::ForeignRules;
use super::names::{Checked, Names, unknown_call};
use super::value::Scope;
use crate::code;
use crate::limits::{MAX_RULES, MAX_TARGETS};
use crate::sink::Sink;
use header::Selection;
use section::{DecidedCalls, Draft, Level};
use signature::Width;

/// The ruleset of a policy; `None` if an error was reported.
pub(super) fn ruleset(
    statements: &[Statement],
    foreign: &ForeignRules,
    options: &TamisOptions,
    sources: &Sources,
    sink: &mut Sink,
) -> Option<Ruleset> {
    // If statements were omitted, their errors have been reported.
    if statements.is_empty() && !sink.has_failed() {
        sink.report(empty_policy());
        return None;
    }
    let selection = header::selection(statements, options, sink)?;
    let mut lowering = Lowering {
        sources,
        foreign,
        names: Names::new(&selection.arches),
        sections: selection.arches.iter().copied().map(Draft::new).collect(),
        selection,
        bad_arch: None,
        known_until: None,
        targets: 0,
        rules: 0,
        sink,
    };
    let everywhere: Vec<usize> = (0..lowering.sections.len()).collect();
    for statement in statements {
        lowering.statement(statement, &everywhere, Level::Top);
        if lowering.sink.is_finished() {
            return None;
        }
    }
    check_says_something(statements, lowering.sink);
    lowering.finish()
}

/// The architectures of a policy; the mistakes in its choice are reported by [`ruleset`].
pub(super) fn arches(statements: &[Statement], options: &TamisOptions) -> Vec<Arch> {
    let selection = header::selection(statements, options, &mut Sink::new(false));
    selection.map_or_else(Vec::new, |selection| selection.arches)
}

/// The error for a policy without statements.
fn empty_policy() -> Diagnostic {
    Diagnostic::error(code::EMPTY_POLICY, "the policy is empty")
        .note("did the program that generates it fail?")
        .help("`default kill-process` kills on every call")
}

/// Reports a policy that has only definitions.
fn check_says_something(statements: &[Statement], sink: &mut Sink) {
    let says_something = statements.iter().any(|statement| match &statement.kind {
        StatementKind::Rule(..) | StatementKind::On(..) | StatementKind::Include(_) => true,
        StatementKind::Fallback(fallback, _) => *fallback == Fallback::Default,
        _ => false,
    });
    if let (false, Some(first)) = (says_something || sink.has_failed(), statements.first()) {
        sink.report(
            Diagnostic::warning(
                code::NO_RULES,
                "the policy has neither a rule nor a `default`",
            )
            .label(first.span, "")
            .note("every call kills the process")
            .help("write `default kill-process` if this is intended"),
        );
    }
}

struct Lowering<'a> {
    sources: &'a Sources,
    foreign: &'a ForeignRules,
    selection: Selection,
    names: Names,
    /// One draft per selected architecture. A scope is a list of indices into it.
    sections: Vec<Draft>,
    bad_arch: Option<(Action, Span)>,
    known_until: Option<(KernelVersion, Span)>,
    /// The count of targets.
    targets: usize,
    /// The count of rules.
    rules: usize,
    sink: &'a mut Sink,
}

impl Lowering<'_> {
    fn statement(&mut self, statement: &Statement, scope: &[usize], level: Level) {
        let is_top = level == Level::Top;
        match &statement.kind {
            // Evaluated by the header.
            StatementKind::Arch(_) if is_top => {}
            // Files in this language are expanded; those inside a block remain, where they are rejected.
            StatementKind::Include(path) if is_top => self.include(path, scope),
            StatementKind::Let(name, constant) if is_top => {
                self.names.define_constant(name, constant, self.sink);
            }
            StatementKind::Variable(declaration) if is_top => {
                self.names.declare_variable(declaration, self.sink);
            }
            StatementKind::Set(name, members) if is_top => {
                self.names.define_set(name, members, self.sink);
            }
            StatementKind::On(arches, body) if is_top => {
                let scope = self.selection.scope(arches, self.sink);
                for statement in body {
                    self.statement(statement, &scope, Level::Block);
                }
            }
            StatementKind::Fallback(Fallback::BadArch, answer) if is_top => self.bad_arch(answer),
            StatementKind::KnownUntil(version) if is_top => {
                self.known_until(*version, statement.span);
            }
            StatementKind::Fallback(Fallback::BadArch, _)
            | StatementKind::Arch(_)
            | StatementKind::KnownUntil(_)
            | StatementKind::Include(_)
            | StatementKind::Let(..)
            | StatementKind::Variable(_)
            | StatementKind::Set(..)
            | StatementKind::Parameter(_)
            | StatementKind::When(..)
            | StatementKind::On(..) => self.sink.report(
                Diagnostic::error(
                    code::TAMIS_SYNTAX,
                    "this statement is not allowed in a block",
                )
                .label(statement.span, "")
                .note("an `on` block contains rules, `default` and `unknown`")
                .help("write it before the block"),
            ),
            StatementKind::Fallback(fallback, answer) => {
                self.fallback(*fallback, answer, statement.span, scope, level);
            }
            StatementKind::Rule(answer, targets) => {
                self.rule(answer, targets, statement.span, scope);
            }
        }
    }

    /// The rules of a file in another language.
    fn include(&mut self, path: &Name, scope: &[usize]) {
        for &index in scope {
            let rules = self.foreign.at(path.span, self.sections[index].arch);
            self.rules += rules.len();
            if self.rules > MAX_RULES {
                self.sink.stop(too_many("rules", MAX_RULES, path.span));
                return;
            }
            self.sections[index].rules.extend_from_slice(rules);
        }
    }

    fn bad_arch(&mut self, answer: &Answer) {
        // `bad-arch` has no architecture; errno names are those of the policy's first architecture.
        let Some(action) = self.action(answer, self.sections[0].arch) else {
            return;
        };
        if let Some((_, earlier)) = self.bad_arch {
            self.sink
                .report(stated_twice("bad-arch", answer.span, earlier));
            return;
        }
        self.bad_arch = Some((action, answer.span));
    }

    fn known_until(&mut self, version: KernelVersion, span: Span) {
        if let Some((_, earlier)) = self.known_until {
            self.sink.report(stated_twice("known-until", span, earlier));
            return;
        }
        self.known_until = Some((version, span));
        if version > syscall::NEWEST_KERNEL {
            let newest = syscall::NEWEST_KERNEL;
            self.sink.report(
                Diagnostic::warning(
                    code::KNOWN_UNTIL,
                    format!("Linux {version} is newer than {newest}, the newest known"),
                )
                .label(span, "")
                .note(format!(
                    "calls that came after {newest} have no name here and get ENOSYS like unknown numbers"
                ))
                .help(format!("write `known-until linux {newest}`, or update tamis")),
            );
        }
    }

    fn fallback(
        &mut self,
        fallback: Fallback,
        answer: &Answer,
        span: Span,
        scope: &[usize],
        level: Level,
    ) {
        for &index in scope {
            let Some(action) = self.action(answer, self.sections[index].arch) else {
                continue;
            };
            if fallback == Fallback::Unknown && action.kind.executes() {
                self.sink.report(
                    Diagnostic::warning(code::ALLOWS_UNKNOWN, "calls of later kernels are allowed")
                        .label(answer.span, "")
                        .help("`unknown errno(ENOSYS)` makes programs fall back to older calls"),
                );
            }
            let slot = self.sections[index].fallback(fallback, level);
            match *slot {
                Some((_, earlier)) => {
                    self.sink
                        .report(stated_twice(fallback.word(), span, earlier));
                }
                None => *slot = Some((action, span)),
            }
        }
    }

    fn rule(&mut self, answer: &Answer, targets: &[Target], span: Span, scope: &[usize]) {
        let actions: Vec<Option<Action>> = scope
            .iter()
            .map(|&index| self.action(answer, self.sections[index].arch))
            .collect();
        let mut unconditional: Vec<Vec<RangeInclusive<u32>>> = vec![Vec::new(); scope.len()];
        for target in targets {
            self.targets += 1;
            if self.targets > MAX_TARGETS {
                self.sink
                    .stop(too_many("calls in rules", MAX_TARGETS, target.span));
            }
            if self.sink.is_finished() {
                return;
            }
            let Some(numbers) = self.numbers(target, scope) else {
                continue;
            };
            self.check_reachable(target, &numbers, scope, &actions);
            for (at, numbers) in numbers.iter().enumerate() {
                let (index, Some(action)) = (scope[at], actions[at]) else {
                    continue;
                };
                if numbers.is_empty() {
                    continue;
                }
                if let TargetKind::Call(name) = &target.kind
                    && (target.when.is_some() || !action.kind.executes())
                {
                    self.sections[index].restrict(name);
                }
                match self.when(target, self.sections[index].arch) {
                    Some(Predicate::True) => unconditional[at].extend(
                        numbers
                            .intervals()
                            .iter()
                            .map(|(first, last)| *first..=*last),
                    ),
                    Some(when) => self.push(index, numbers.clone(), when, action, target.span),
                    None => {}
                }
            }
        }
        for (at, ranges) in unconditional.into_iter().enumerate() {
            let numbers: IntervalSet<u32> = ranges.into_iter().collect();
            if let (false, Some(action)) = (numbers.is_empty(), actions[at]) {
                self.sections[scope[at]].decide(DecidedCalls {
                    numbers: numbers.clone(),
                    action,
                    span,
                });
                self.push(scope[at], numbers, Predicate::True, action, span);
            }
        }
    }

    fn push(
        &mut self,
        index: usize,
        syscalls: IntervalSet<u32>,
        when: Predicate,
        action: Action,
        span: Span,
    ) {
        self.rules += 1;
        if self.rules > MAX_RULES {
            self.sink.stop(too_many("rules", MAX_RULES, span));
        }
        let origin = Some(self.origin(span));
        self.sections[index].rules.push(Rule {
            syscalls,
            when,
            action,
            origin,
        });
    }

    /// The condition of a target on one architecture; `None` after an error.
    fn when(&mut self, target: &Target, arch: Arch) -> Option<Predicate> {
        let Some(condition) = &target.when else {
            return Some(Predicate::True);
        };
        let call = match &target.kind {
            TargetKind::Call(name) => Some(name.text.as_str()),
            TargetKind::Set(_) | TargetKind::Numbers(..) => None,
        };
        let context = Context {
            scope: Scope {
                names: &self.names,
                arch,
            },
            call,
            args: call.and_then(signature::args),
        };
        let predicate = context.predicate(condition);
        let predicate = self.checked(predicate)?;
        if !arch.has_64_bit_registers() && looks_above_32_bits(&predicate) {
            self.sink.report(upper_half(arch, target.span));
        }
        Some(predicate)
    }

    /// The numbers of a target on each architecture of the scope; `None` after an error.
    fn numbers(&mut self, target: &Target, scope: &[usize]) -> Option<Vec<IntervalSet<u32>>> {
        let arches: Vec<Arch> = scope
            .iter()
            .map(|&index| self.sections[index].arch)
            .collect();
        match &target.kind {
            TargetKind::Call(name) => self.numbers_of_call(name, &arches),
            TargetKind::Set(name) => {
                let calls = self.names.set(name, self.sink)?;
                let numbers_on = |arch: &Arch| {
                    calls
                        .iter()
                        .filter_map(|call| syscall::number(*arch, call))
                        .map(|nr| nr.0)
                        .collect()
                };
                Some(arches.iter().map(numbers_on).collect())
            }
            TargetKind::Numbers(first, last) => {
                let set = self.plain_numbers(first, last.as_ref(), target.span, &arches)?;
                Some(vec![set])
            }
        }
    }

    fn numbers_of_call(&mut self, name: &Name, arches: &[Arch]) -> Option<Vec<IntervalSet<u32>>> {
        if !syscall::is_known(&name.text) {
            self.sink.report(unknown_call(name));
            return None;
        }
        let numbers: Vec<IntervalSet<u32>> = arches
            .iter()
            .map(|arch| {
                syscall::number(*arch, &name.text)
                    .map(|nr| nr.0)
                    .into_iter()
                    .collect()
            })
            .collect();
        if !arches.is_empty() && numbers.iter().all(IntervalSet::is_empty) {
            let here: Vec<&str> = arches.iter().map(|arch| arch.name()).collect();
            let there: Vec<&str> = Arch::all()
                .filter(|arch| syscall::number(*arch, &name.text).is_some())
                .map(Arch::name)
                .collect();
            self.sink.report(
                Diagnostic::warning(
                    code::CALL_NOT_ON_ARCH,
                    format!("there is no `{name}` on {}", here.join(", ")),
                )
                .label(name.span, "this rule has no effect")
                .note(format!("it exists on {}", there.join(", "))),
            );
        }
        Some(numbers)
    }

    fn plain_numbers(
        &mut self,
        first: &Value,
        last: Option<&Value>,
        span: Span,
        arches: &[Arch],
    ) -> Option<IntervalSet<u32>> {
        let &[arch] = arches else {
            if !arches.is_empty() {
                let example = arches[0];
                self.sink.report(
                    Diagnostic::error(
                        code::NUMBER_NEEDS_ARCH,
                        "a number means different calls on different architectures",
                    )
                    .label(span, "")
                    .help(format!("move the rule to a block: `on {example} {{ … }}`")),
                );
            }
            return None;
        };
        let scope = Scope {
            names: &self.names,
            arch,
        };
        let bounds = scope
            .value(first, Width::Bits32)
            .and_then(|first| match last {
                Some(last) => Ok((first, scope.value(last, Width::Bits32)?)),
                None => Ok((first, first)),
            });
        let (first, last) = self.checked(bounds)?;
        let range = IntervalSet::from_iter([first.bits as u32..=last.bits as u32]);
        let own = range.intersection(&Section::domain(arch));
        if own.is_empty() {
            self.sink.report(
                Diagnostic::error(
                    code::NUMBER_NOT_OF_ARCH,
                    format!("range contains no {arch} system-call numbers"),
                )
                .label(span, "")
                .note(
                    "numbers from 0x40000000 belong to x32, the others to x86_64; write the smaller bound \
                     first",
                ),
            );
            return None;
        }
        Some(own)
    }

    /// Reports a target that earlier rules decide completely on all of its architectures.
    fn check_reachable(
        &mut self,
        target: &Target,
        numbers: &[IntervalSet<u32>],
        scope: &[usize],
        actions: &[Option<Action>],
    ) {
        let mut earlier = None;
        for ((numbers, &index), action) in numbers.iter().zip(scope).zip(actions) {
            let Some((first, _)) = numbers.intervals().first() else {
                continue;
            };
            let Some(decided) = self.sections[index].decided(numbers, *first) else {
                return;
            };
            earlier = earlier.or(Some((decided.span, Some(decided.action) == *action)));
        }
        let Some((earlier, is_same)) = earlier else {
            return;
        };
        let severity = match is_same && target.when.is_none() {
            true => Severity::Note,
            false => Severity::Warning,
        };
        self.sink.report(
            Diagnostic::new(severity, code::NEVER_MATCHES, "this rule never matches")
                .label(target.span, "no call reaches this rule")
                .label(earlier, "this earlier rule decides"),
        );
    }

    /// The action of an answer on one architecture; `None` after an error.
    fn action(&mut self, answer: &Answer, arch: Arch) -> Option<Action> {
        let scope = Scope {
            names: &self.names,
            arch,
        };
        let action = scope.action(answer);
        self.checked(action)
    }

    fn origin(&self, span: Span) -> Origin {
        crate::origin(self.sources, span)
    }

    fn checked<T>(&mut self, result: Checked<T>) -> Option<T> {
        result
            .map_err(|diagnostic| self.sink.report(*diagnostic))
            .ok()
    }

    fn finish(self) -> Option<Ruleset> {
        let sections: Vec<Section> = self
            .sections
            .into_iter()
            .map(|draft| draft.finish(self.known_until, self.sources, self.sink))
            .collect();
        let bad_arch = self
            .bad_arch
            .map_or(Action::KILL_PROCESS, |(action, _)| action);
        let ruleset = Ruleset::new(sections, bad_arch).ok()?;
        Some(ruleset.with_variables(self.names.into_variables()))
    }
}

/// Whether a predicate tests the upper half of an argument.
fn looks_above_32_bits(predicate: &Predicate) -> bool {
    let mut operands = predicate.tests().flat_map(Test::operands);
    operands
        .any(|operand| matches!(operand.source, OperandSource::Arg(_)) && operand.part != Part::Low)
}

fn upper_half(arch: Arch, span: Span) -> Diagnostic {
    Diagnostic::warning(
        code::UPPER_HALF_IGNORED,
        format!("the kernel ignores the upper half on {arch}, but this condition compares it"),
    )
    .label(span, "")
    .note("a 64-bit process that makes a 32-bit call controls the upper half")
    .help("remove `full(…)` and `high(…)`")
}

fn stated_twice(what: &str, again: Span, earlier: Span) -> Diagnostic {
    Diagnostic::error(code::STATED_TWICE, format!("`{what}` is stated twice"))
        .label(again, "stated again")
        .label(earlier, "first stated here")
}

fn too_many(what: &str, limit: usize, span: Span) -> Diagnostic {
    Diagnostic::error(code::TAMIS_LIMIT, format!("more than {limit} {what}"))
        .label(span, "parsing stops here")
}
