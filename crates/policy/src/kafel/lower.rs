//! From a policy to the sections of a ruleset.
//!
//! The first matching rule decides, in kafel as in a section, so each rule becomes one rule.

use tamis_abi::signature::{self, Arg, Width};
use tamis_abi::syscall::{self, Nr};
use tamis_abi::{Action, Arch, ArgIndex};
use tamis_diag::{Diagnostic, Sources, Span, code, suggest};
use tamis_rules::{IntervalSet, Predicate, Rule, Section};

use super::ast::{self, Call, Comparison, Condition, Entry, Name, Program};
use super::compare::{self, Value};
use crate::limits::MAX_RULES;
use crate::sink::Sink;

/// The most single-bit tests in the conditions of a policy.
const MAX_BIT_TESTS: usize = 1 << 18;

/// The count of single-bit tests from which a warning is given: two combined arguments of 32 bits need 64 and more.
const MANY_BIT_TESTS: usize = 64;

/// Calls that kafel names after their functions in the kernel.
const KERNEL_NAMES: [(&str, &str); 6] = [
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newstat", "stat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("umount", "umount2"),
];

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
    /// The name in the tables; `None` for a number.
    name: Option<&'static str>,
    /// The rule's own names of the arguments.
    own_names: Option<&'a [Name]>,
}

/// An argument's index, and the width of its comparison unless the other side is wider.
#[derive(Clone, Copy)]
struct Place {
    index: ArgIndex,
    width: Width,
}

impl Lowering<'_> {
    /// The section of an architecture; unusable if the sink has an error.
    pub(super) fn section(&mut self, arch: Arch) -> Section {
        let mut rules = Vec::new();
        let mut used = vec![false; self.program.policies.len()];
        self.entries(arch, &self.program.main, &mut used, &mut rules);
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
        if !self.is_for(rule, arch) {
            return None;
        }
        let (nr, name) = match &rule.call {
            Call::Number(nr) => (*nr, None),
            Call::Named(name) => {
                let (nr, name) = self.number(name, arch)?;
                (nr.0, Some(name))
            }
        };
        let callee = Callee {
            arch,
            name,
            own_names: rule.arguments.as_deref(),
        };
        let when = match &rule.condition {
            None => Predicate::True,
            Some(condition) => self.condition(condition, &callee)?,
        };
        Some(Rule {
            syscalls: IntervalSet::single(nr),
            when,
            action,
            origin: Some(crate::origin(self.sources, rule.span)),
        })
    }

    /// Whether the rule's guard includes an architecture.
    fn is_for(&mut self, rule: &ast::Rule, arch: Arch) -> bool {
        let Some(names) = &rule.guard else {
            return true;
        };
        let mut is_for = false;
        for name in names {
            match Arch::from_name(&name.text) {
                Some(known) => is_for |= known == arch,
                None => {
                    let message = format!("unknown architecture `{}`", name.text);
                    let diagnostic =
                        Diagnostic::error(code::KAFEL_ARCH, message).label(name.span, "");
                    let near = suggest::nearest(&name.text, Arch::all().map(Arch::name));
                    self.sink.report(match near {
                        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                        None => diagnostic.help("`tamis tables arches` lists them"),
                    });
                }
            }
        }
        is_for
    }

    /// The number and the name in the tables of a call.
    fn number(&mut self, name: &Name, arch: Arch) -> Option<(Nr, &'static str)> {
        let text = name.text.as_str();
        let of_kernel = KERNEL_NAMES.iter().find(|(kernel, _)| *kernel == text);
        let found = syscall::number(arch, text)
            .or_else(|| of_kernel.and_then(|(_, known)| syscall::number(arch, known)));
        if let Some(nr) = found {
            return syscall::name(arch, nr).map(|name| (nr, name));
        }
        let diagnostic = if syscall::is_known(text) || of_kernel.is_some() {
            Diagnostic::error(code::KAFEL_SYSCALL, format!("{arch} has no call `{text}`"))
                .label(name.span, "")
                .help(format!(
                    "write `{text} ON …` with the architectures that have it"
                ))
        } else {
            let diagnostic =
                Diagnostic::error(code::KAFEL_SYSCALL, format!("unknown system call `{text}`"))
                    .label(name.span, "");
            let kernel_names = KERNEL_NAMES.iter().map(|(kernel, _)| *kernel);
            match suggest::nearest(text, syscall::names().chain(kernel_names)) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help("`SYSCALL[N]` is the call with the number N"),
            }
        };
        self.sink.report(diagnostic);
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

    /// Lowers a comparison. It has 64 bits for all of its arguments if one of them, or one of its numbers, has 64.
    fn comparison(&mut self, comparison: &Comparison, callee: &Callee) -> Option<Predicate> {
        let mut narrow = None;
        let mut is_wide = false;
        let left = self.value(&comparison.left, callee, &mut is_wide, &mut narrow);
        let right = self.value(&comparison.right, callee, &mut is_wide, &mut narrow);
        let (left, right) = (left?, right?);
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

    /// Resolves the arguments of a value. Also returns whether a part of it has 64 bits, and the span of an
    /// argument that has fewer.
    fn value(
        &mut self,
        bits: &ast::Bits,
        callee: &Callee,
        is_wide: &mut bool,
        narrow: &mut Option<Span>,
    ) -> Option<Value> {
        let mut all = |this: &mut Self, parts: &[ast::Bits]| {
            let parts: Vec<Option<Value>> = parts
                .iter()
                .map(|part| this.value(part, callee, is_wide, narrow))
                .collect();
            parts.into_iter().collect::<Option<Vec<Value>>>()
        };
        Some(match bits {
            ast::Bits::Number(number) => {
                *is_wide |= u32::try_from(*number).is_err();
                Value::Number(*number)
            }
            ast::Bits::Argument(name) => {
                let place = self.place(name, callee)?;
                match place.width {
                    Width::Bits64 => *is_wide = true,
                    _ => *narrow = narrow.or(Some(name.span)),
                }
                Value::Argument(place.index)
            }
            ast::Bits::And(parts) => Value::And(all(self, parts)?),
            ast::Bits::Or(parts) => Value::Or(all(self, parts)?),
        })
    }

    /// Resolves the name of an argument.
    fn place(&mut self, name: &Name, callee: &Callee) -> Option<Place> {
        let found = match (callee.own_names, callee.name) {
            (Some(names), _) => names
                .iter()
                .position(|own| own.text == name.text)
                .map(|index| (index, Width::Bits64)),
            (None, Some(call)) => {
                let args = signature::args(call).unwrap_or_default();
                let arg = args.iter().find(|arg| arg.name == name.text);
                match arg.map(|arg| (arg, signature::index(callee.arch, call, arg.name))) {
                    Some((_, None)) => {
                        self.sink.report(no_place(name, call, callee.arch));
                        return None;
                    }
                    Some((arg, Some(index))) => {
                        Some((index.index(), arg.declared_width(callee.arch)))
                    }
                    None => None,
                }
            }
            (None, None) => None,
        };
        let place = found.and_then(|(index, width)| {
            let index = ArgIndex::new(u8::try_from(index).ok()?)?;
            Some(Place { index, width })
        });
        if place.is_none() {
            self.sink.report(unknown_argument(name, callee));
        }
        place
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
    let known: Vec<&str> = match (callee.own_names, callee.name) {
        (Some(names), _) => names.iter().map(|name| name.text.as_str()).collect(),
        (None, Some(call)) => {
            let args: &[Arg] = signature::args(call).unwrap_or_default();
            args.iter().map(|arg| arg.name).collect()
        }
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
