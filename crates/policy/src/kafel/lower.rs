//! From a policy to the sections of a ruleset.
//!
//! The first matching rule decides, in kafel as in a section, so each rule becomes one rule.

use tamis_abi::signature::Width;
use tamis_abi::{Action, Arch, ArgIndex, syscall};
use tamis_diag::{Diagnostic, Sources, Span, suggest};
use tamis_rules::{IntervalSet, Predicate, Rule, Section};

use super::ast::{self, Call, Comparison, Condition, Entry, Name, Program};
use super::calls::{self, Argument};
use super::compare::{self, Value};
use super::fold;
use super::levels::{self, MAX_KEPT};
use crate::code;
use crate::limits::MAX_RULES;
use crate::sink::Sink;

/// The most single-bit tests in the conditions of a policy.
const MAX_BIT_TESTS: usize = 1 << 18;

/// The number of single-bit tests that causes a warning: two combined arguments of 32 bits need 64 and more.
const MANY_BIT_TESTS: usize = 64;

/// Lowers a policy, architecture by architecture.
pub(super) struct Lowering<'a> {
    pub(super) sources: &'a Sources,
    pub(super) program: &'a Program,
    pub(super) sink: &'a mut Sink,
    /// The single-bit tests so far.
    pub(super) bit_tests: usize,
}

/// A rule's call on an architecture.
struct Callee<'a> {
    arch: Arch,
    nr: u32,
    /// Its name and arguments; `None` for a number.
    known: Option<(&'a str, Vec<Argument>)>,
    /// The rule's own names of the arguments.
    own_names: Option<&'a [Name]>,
}

/// An argument's index, and the width of its comparison unless the other side is wider.
#[derive(Clone, Copy)]
struct Place {
    index: ArgIndex,
    width: Width,
}

/// The width of each argument of a comparison, and where it first appears.
type Arguments = [Option<(Width, Span)>; 6];

impl Lowering<'_> {
    /// The section of an architecture; unusable if the sink has an error.
    pub(super) fn section(&mut self, arch: Arch) -> Section {
        let mut rules = Vec::new();
        let mut used = vec![false; self.program.policies.len()];
        self.entries(arch, &self.program.main, &mut used, &mut rules);
        self.check_unused(arch, &used);
        let default = self.program.default.map(|(action, _)| action);
        Section {
            arch,
            rules,
            default: default.unwrap_or(Action::KILL_THREAD),
        }
    }

    /// Appends the rules of the entries. A policy that was already used adds nothing.
    fn entries(&mut self, arch: Arch, entries: &[Entry], used: &mut [bool], rules: &mut Vec<Rule>) {
        // The remaining entries, as a stack: policies use only earlier ones, but the chain can be long.
        let mut stack = vec![entries.iter()];
        while let Some(top) = stack.last_mut() {
            match top.next() {
                None => drop(stack.pop()),
                Some(Entry::Use(policy)) => {
                    if !std::mem::replace(&mut used[*policy], true) {
                        stack.push(self.program.policies[*policy].entries.iter());
                    }
                }
                Some(Entry::Block {
                    action,
                    rules: block,
                }) => {
                    for rule in block {
                        if self.sink.is_finished() {
                            return;
                        }
                        rules.extend(self.rule(arch, rule, *action));
                    }
                }
            }
            if rules.len() > MAX_RULES {
                let message = format!("more than {MAX_RULES} rules");
                return self
                    .sink
                    .stop(Diagnostic::error(code::KAFEL_LIMIT, message));
            }
        }
    }

    fn rule(&mut self, arch: Arch, rule: &ast::Rule, action: Action) -> Option<Rule> {
        if !is_for(rule, arch) {
            return None;
        }
        let callee = self.callee(rule, arch)?;
        let when = match &rule.condition {
            None => Predicate::True,
            Some(condition) => self.condition(condition, &callee)?,
        };
        Some(Rule {
            syscalls: IntervalSet::single(callee.nr),
            when,
            action,
            origin: Some(crate::origin(self.sources, rule.span)),
        })
    }

    /// Reports unknown calls and arguments of the policies that are not used: kafel rejects these too.
    fn check_unused(&mut self, arch: Arch, used: &[bool]) {
        let program = self.program;
        let unused = program.policies.iter().zip(used);
        let entries = unused
            .filter(|(_, is_used)| !**is_used)
            .flat_map(|(policy, _)| &policy.entries);
        for entry in entries {
            let Entry::Block { rules, .. } = entry else {
                continue;
            };
            for rule in rules.iter().filter(|rule| is_for(rule, arch)) {
                if self.sink.is_finished() {
                    return;
                }
                if let Some(callee) = self.callee(rule, arch)
                    && let Some(condition) = &rule.condition
                {
                    self.check_arguments(condition, &callee);
                }
            }
        }
    }

    fn check_arguments(&mut self, condition: &Condition, callee: &Callee) {
        match condition {
            Condition::Any(parts) | Condition::All(parts) => {
                for part in parts {
                    self.check_arguments(part, callee);
                }
            }
            Condition::Not(inner) => self.check_arguments(inner, callee),
            Condition::Compare(comparison) => {
                let mut seen = Arguments::default();
                self.value(&comparison.left, callee, &mut seen);
                self.value(&comparison.right, callee, &mut seen);
            }
        }
    }

    /// Resolves the call of a rule with the names for its condition.
    fn callee<'r>(&mut self, rule: &'r ast::Rule, arch: Arch) -> Option<Callee<'r>> {
        let (nr, known) = match &rule.call {
            Call::Number(nr) => (*nr, None),
            Call::Named(name) => {
                let call = self.call(name, arch)?;
                (call.nr, Some((name.text.as_str(), call.args)))
            }
        };
        Some(Callee {
            arch,
            nr,
            known,
            own_names: rule.arguments.as_deref(),
        })
    }

    /// Resolves the name of a call.
    fn call(&mut self, name: &Name, arch: Arch) -> Option<calls::Call> {
        let text = name.text.as_str();
        let found = calls::find(arch, text);
        if found.is_some() {
            return found;
        }
        let by_number = "`SYSCALL[N]` is the call with the number N";
        let named = calls::name_of(text).filter(|named| calls::find(arch, named).is_some());
        let (message, help) = if let Some(named) = named {
            let help = format!("write the name of the kernel's function, `{named}`");
            (format!("kafel has no call `{text}` for {arch}"), help)
        } else if calls::is_known(text) {
            let help = format!("write `{text} ON …` with the architectures that have it");
            (format!("{arch} has no call `{text}`"), help)
        } else if syscall::is_known(text) {
            (format!("kafel has no call `{text}`"), by_number.to_owned())
        } else {
            let near = suggest::nearest(text, calls::names());
            let help = near.map(|near| format!("did you mean `{near}`?"));
            let help = help.unwrap_or_else(|| by_number.to_owned());
            (format!("unknown system call `{text}`"), help)
        };
        let diagnostic = Diagnostic::error(code::KAFEL_SYSCALL, message);
        self.sink.report(diagnostic.label(name.span, "").help(help));
        None
    }

    fn condition(&mut self, condition: &Condition, callee: &Callee) -> Option<Predicate> {
        let all = |this: &mut Self, parts: &[Condition]| {
            // No early return, to report the errors of every part.
            let parts: Vec<Option<Predicate>> = parts
                .iter()
                .map(|part| this.condition(part, callee))
                .collect();
            parts.into_iter().collect::<Option<Vec<Predicate>>>()
        };
        Some(match condition {
            Condition::Any(parts) => Predicate::Any(all(self, parts)?),
            Condition::All(parts) => Predicate::All(all(self, parts)?),
            Condition::Not(inner) => Predicate::Not(Box::new(self.condition(inner, callee)?)),
            Condition::Compare(comparison) => self.comparison(comparison, callee)?,
        })
    }

    /// Lowers a comparison. It has 64 bits for all of its arguments if one of them, or one of its numbers, has 64
    /// after folding.
    fn comparison(&mut self, comparison: &Comparison, callee: &Callee) -> Option<Predicate> {
        let mut seen = Arguments::default();
        let left = self.value(&comparison.left, callee, &mut seen);
        let right = self.value(&comparison.right, callee, &mut seen);
        let (left, right) = (left?, right?);
        let mut is_wide = false;
        let mut narrow = None;
        for side in [&left, &right] {
            fold::for_each_leaf(side, &mut |leaf| match leaf {
                Value::Number(number) => is_wide |= u32::try_from(*number).is_err(),
                Value::Argument(index) => match seen[index.index()] {
                    Some((Width::Bits64, _)) => is_wide = true,
                    Some((_, span)) => narrow = narrow.or(Some(span)),
                    None => {}
                },
                Value::And(_) | Value::Or(_) => {}
            });
        }
        if is_wide && let Some(argument) = narrow {
            self.sink.report(
                Diagnostic::warning(code::KAFEL_WIDTH, "64-bit comparison of a 32-bit argument")
                    .label(
                        argument,
                        "the kernel ignores the upper half of this argument",
                    )
                    .label(comparison.span, "this operand has 64 bits")
                    .note("the caller controls the upper half, and so the result of the comparison")
                    .help("write a 32-bit number: 0xffffffff, not -1"),
            );
        }
        if levels::kept(&left, &right) > MAX_KEPT {
            let message = format!("this comparison keeps more than {MAX_KEPT} values");
            let diagnostic = Diagnostic::error(code::KAFEL_LIMIT, message)
                .label(comparison.span, "so many are combined here")
                .note("a filter has 16 words of memory");
            self.sink.report(diagnostic);
            return None;
        }
        let compared = compare::compare(&left, comparison.op, &right, is_wide);
        self.bit_tests += compared.bit_tests;
        if self.bit_tests > MAX_BIT_TESTS {
            let message = format!("conditions need more than {MAX_BIT_TESTS} tests of single bits");
            let diagnostic = Diagnostic::error(code::KAFEL_LIMIT, message);
            self.sink
                .stop(diagnostic.label(comparison.span, "with this one"));
            return None;
        }
        if compared.bit_tests >= MANY_BIT_TESTS {
            let bits = compared.bit_tests;
            let message = format!("this comparison needs {bits} tests of single bits");
            self.sink.advise(
                Diagnostic::warning(code::KAFEL_LONG, message)
                    .label(comparison.span, "several arguments are combined here")
                    .help("compare the arguments separately, or mask out more of their bits"),
            );
        }
        Some(compared.predicate)
    }

    /// Resolves the arguments of a value and folds it. Also records each argument.
    fn value(&mut self, bits: &ast::Bits, callee: &Callee, seen: &mut Arguments) -> Option<Value> {
        let (parts, join) = match bits {
            ast::Bits::Number(number) => return Some(Value::Number(*number)),
            ast::Bits::Argument(name) => {
                let place = self.place(name, callee)?;
                seen[place.index.index()].get_or_insert((place.width, name.span));
                return Some(Value::Argument(place.index));
            }
            ast::Bits::And(parts) => (parts, fold::and as fn(Value, Value) -> Value),
            ast::Bits::Or(parts) => (parts, fold::or as fn(Value, Value) -> Value),
        };
        // No early return, to report the errors of every part.
        let parts: Vec<Option<Value>> = parts
            .iter()
            .map(|part| self.value(part, callee, seen))
            .collect();
        let parts = parts.into_iter().collect::<Option<Vec<Value>>>()?;
        parts.into_iter().reduce(join)
    }

    /// Resolves the name of an argument.
    fn place(&mut self, name: &Name, callee: &Callee) -> Option<Place> {
        let place = match (callee.own_names, &callee.known) {
            (Some(names), _) => {
                let found = names.iter().position(|own| own.text == name.text);
                found.map(|index| Place {
                    index: ArgIndex::ALL[index],
                    width: Width::Bits64,
                })
            }
            (None, Some((call, args))) => match args.iter().find(|arg| arg.name == name.text) {
                Some(Argument { index: None, .. }) => {
                    self.sink.report(no_place(name, call, callee.arch));
                    return None;
                }
                Some(Argument {
                    index: Some(index),
                    width,
                    ..
                }) => Some(Place {
                    index: *index,
                    width: *width,
                }),
                None => None,
            },
            (None, None) => None,
        };
        if place.is_none() {
            self.sink.report(unknown_argument(name, callee));
        }
        place
    }
}

/// Whether the rule's guard includes an architecture.
fn is_for(rule: &ast::Rule, arch: Arch) -> bool {
    match &rule.guard {
        None => true,
        Some(guard) => guard.contains(&arch),
    }
}

fn no_place(name: &Name, call: &str, arch: Arch) -> Diagnostic {
    let message = format!(
        "a filter for {arch} cannot read `{}` of `{call}`",
        name.text
    );
    Diagnostic::error(code::KAFEL_ARGUMENT, message)
        .label(name.span, "")
        .note("it is passed in memory, or in two halves")
        .help("name the arguments by register: `call(a, b, c)`")
}

fn unknown_argument(name: &Name, callee: &Callee) -> Diagnostic {
    let message = format!("unknown argument `{}`", name.text);
    let diagnostic = Diagnostic::error(code::KAFEL_ARGUMENT, message).label(name.span, "");
    let known: Vec<&str> = match (callee.own_names, &callee.known) {
        (Some(names), _) => names.iter().map(|name| name.text.as_str()).collect(),
        (None, Some((_, args))) => args.iter().map(|arg| arg.name).collect(),
        (None, None) => Vec::new(),
    };
    let is_constant = tamis_abi::consts::is_known(&name.text);
    match suggest::nearest(&name.text, known.iter().copied()) {
        _ if is_constant => diagnostic.help(format!(
            "kafel has no built-in constants: write `#define {} …`",
            name.text
        )),
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => {
            diagnostic.help("name the arguments after the call: `call(a, b, c)`")
        }
        None => diagnostic.help(format!("there are {}", known.join(", "))),
    }
}
