//! From the lines of a policy to the sections of a ruleset.
//!
//! The filters of a call are those of all its lines, in order. The first that applies decides; the default comes
//! last. The rules of a section have the same semantics, so each filter becomes a rule.

use std::collections::BTreeMap;

use tamis_abi::signature::Width;
use tamis_abi::syscall::{self, Name as SyscallName};
use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::{Diagnostic, SourceId, Sources, Span, suggest};
use tamis_rules::{IntervalSet, Operand, Predicate, Rule, Section, Test};

use super::ast::{self, ActionWord, Atom, Call, Calls, Filter, Operator, StatementKind};
use super::include::Expanded;
use super::table::Table;
use super::value::value;
use super::{DefaultAction, Dialect, Settings};
use crate::code;
use crate::limits::{MAX_RULES, MAX_SET_ELEMENTS};
use crate::near::nearest_call;
use crate::sink::Sink;

/// Lowers a policy, architecture by architecture.
pub(super) struct Lowering<'a> {
    pub(super) sources: &'a Sources,
    pub(super) root: SourceId,
    pub(super) policy: &'a Expanded,
    pub(super) dialect: Dialect,
    pub(super) settings: &'a Settings,
    /// The table that replaces the kernel's numbers of names.
    pub(super) table: Option<&'a Table>,
    pub(super) sink: &'a mut Sink,
}

/// The rules of one architecture so far.
struct Rules {
    arch: Arch,
    rules: Vec<Rule>,
    /// The numbers that an earlier line decides completely, with its place.
    decided: BTreeMap<u32, Span>,
    /// The count of numbers in the rules.
    targets: usize,
}

impl Lowering<'_> {
    /// The section of an architecture; unusable if the sink has an error.
    pub(super) fn section(&mut self, arch: Arch) -> Section {
        let default = self.default(arch);
        let mut rules = Rules {
            arch,
            rules: Vec::new(),
            decided: BTreeMap::new(),
            targets: 0,
        };
        for statement in &self.policy.statements {
            let StatementKind::Filters { calls, filters } = &statement.kind else {
                continue;
            };
            let decides = filters.list.iter().any(|filter| filter.condition.is_none());
            let numbers = self.numbers(calls, decides, arch);
            match self.dialect {
                Dialect::Python => {
                    for filter in &filters.list {
                        self.filter(&mut rules, filter, &numbers);
                        if self.sink.is_finished() {
                            break;
                        }
                    }
                }
                Dialect::C => {
                    if let Some(filter) = filters.list.first() {
                        self.library_line(&mut rules, filter, &numbers);
                    }
                }
            }
            if self.sink.is_finished() {
                break;
            }
        }
        if rules.rules.is_empty() && !self.sink.has_failed() {
            let message = format!("the policy has no rules for {arch}");
            let start = Span::new(self.root, 0, 0);
            let diagnostic = Diagnostic::warning(code::MINIJAIL_EMPTY, message)
                .label(start, "every call gets the default")
                .help("check the file and the architecture");
            self.sink.report(diagnostic);
        }
        Section {
            arch,
            rules: rules.rules,
            default,
        }
    }

    /// The action for `kill`.
    pub(super) fn kill(&self) -> Action {
        match self.settings.kill_process {
            true => Action::KILL_PROCESS,
            false => Action::KILL_THREAD,
        }
    }

    /// The action if no line applies.
    fn default(&mut self, arch: Arch) -> Action {
        let mut default = match self.policy.denylist {
            Some(_) => Action::ALLOW,
            None => self.kill(),
        };
        for statement in &self.policy.statements {
            let StatementKind::Default(action) = &statement.kind else {
                continue;
            };
            if let Some(denylist) = self.policy.denylist {
                let diagnostic =
                    Diagnostic::error(code::MINIJAIL_DENYLIST, "a deny list with `@default`")
                        .label(statement.span, "")
                        .label(denylist, "a deny list allows calls that it does not name")
                        .help("delete one of the two");
                self.sink.report(diagnostic);
            }
            let denies = [
                ActionKind::KillProcess,
                ActionKind::KillThread,
                ActionKind::Trap,
                ActionKind::Notify,
            ];
            match self.action(action, arch) {
                Some(action) if denies.contains(&action.kind) => default = action,
                Some(_) => self.sink.report(
                    Diagnostic::error(code::MINIJAIL_ACTION, "not an action for `@default`")
                        .label(action.span, "")
                        .help("a default is `kill`, `kill-process`, `kill-thread`, `trap` or `user-notify`; `--default-action` takes any"),
                ),
                None => {}
            }
        }
        if let Some(denylist) = self.policy.denylist
            && self.settings.default_action.is_some()
        {
            let diagnostic =
                Diagnostic::error(code::MINIJAIL_DENYLIST, "a deny list with a default action")
                    .label(denylist, "a deny list allows calls that it does not name")
                    .help("omit `--default-action`");
            self.sink.report(diagnostic);
        }
        match &self.settings.default_action {
            None => default,
            Some(DefaultAction::Kill) => self.kill(),
            Some(DefaultAction::Plain(action)) => *action,
            Some(DefaultAction::Errno(name)) => match tamis_abi::consts::value(arch, name) {
                Some(errno) if errno <= u64::from(u16::MAX) => Action::errno(errno as u16),
                _ => {
                    let message = format!("`{name}` is not an errno of {arch}");
                    let diagnostic = Diagnostic::error(code::MINIJAIL_CONSTANT, message);
                    self.sink
                        .report(diagnostic.note("from the option `--default-action`"));
                    default
                }
            },
        }
    }

    /// Lowers a filter with the compile tool's meaning.
    fn filter(&mut self, rules: &mut Rules, filter: &Filter, numbers: &[(u32, Span)]) {
        for (nr, _) in numbers {
            if let Some(earlier) = rules.decided.get(nr) {
                return self.decided_twice(rules.arch, *nr, filter.span, *earlier);
            }
            if filter.condition.is_none() {
                rules.decided.insert(*nr, filter.span);
            }
        }
        let action = match &filter.action {
            None => Some(Action::ALLOW),
            Some(action) => {
                self.check_action(action);
                self.action(action, rules.arch)
            }
        };
        let when = self.when(filter, rules.arch);
        if let (Some(action), Some(when)) = (action, when) {
            self.push(rules, numbers, when, action, filter.span);
        }
    }

    /// Lowers a line with the library's meaning: calls that meet the condition are allowed, all others get the
    /// action.
    fn library_line(&mut self, rules: &mut Rules, filter: &Filter, numbers: &[(u32, Span)]) {
        for (nr, span) in numbers {
            if let Some(earlier) = rules.decided.insert(*nr, *span) {
                return self.decided_twice(rules.arch, *nr, *span, earlier);
            }
        }
        if filter.condition.is_some()
            && let Some(when) = self.when(filter, rules.arch)
        {
            self.push(rules, numbers, when, Action::ALLOW, filter.span);
        }
        let rest = match &filter.action {
            None => Some(self.kill()),
            Some(action) => self.action(action, rules.arch),
        };
        if let Some(rest) = rest {
            self.push(rules, numbers, Predicate::True, rest, filter.span);
        }
    }

    fn push(
        &mut self,
        rules: &mut Rules,
        numbers: &[(u32, Span)],
        when: Predicate,
        action: Action,
        span: Span,
    ) {
        if numbers.is_empty() {
            return;
        }
        rules.targets += numbers.len();
        if rules.rules.len() == MAX_RULES || rules.targets > MAX_SET_ELEMENTS {
            let message = format!("more than {MAX_RULES} rules, or too many calls in them");
            let diagnostic = Diagnostic::error(code::MINIJAIL_LIMIT, message);
            return self.sink.stop(diagnostic.label(span, "at this filter"));
        }
        let numbers = numbers.iter().map(|(nr, _)| *nr..=*nr);
        rules.rules.push(Rule {
            syscalls: IntervalSet::from_iter(numbers),
            when,
            action,
            origin: Some(crate::origin(self.sources, span)),
        });
    }

    fn decided_twice(&mut self, arch: Arch, nr: u32, span: Span, earlier: Span) {
        let name = syscall::name(arch, syscall::Nr(nr)).unwrap_or("the call");
        let diagnostic =
            Diagnostic::error(code::MINIJAIL_TWICE, format!("`{name}` is already decided"))
                .label(span, "this line has no effect")
                .label(earlier, "decided here")
                .help("delete it, or put the one without conditions last");
        self.sink.report(diagnostic);
    }

    /// Checks that a deny list has only errno actions.
    fn check_action(&mut self, action: &ast::Action) {
        let is_return = matches!(action.kind, ActionWord::Return(_));
        if let Some(denylist) = self.policy.denylist
            && !is_return
        {
            let diagnostic =
                Diagnostic::error(code::MINIJAIL_ACTION, "not an action for a deny list")
                    .label(action.span, "")
                    .label(denylist, "the policy is a deny list")
                    .help("write `return` and an errno");
            self.sink.report(diagnostic);
        }
    }

    fn action(&mut self, action: &ast::Action, arch: Arch) -> Option<Action> {
        Some(match &action.kind {
            ActionWord::Allow => Action::ALLOW,
            ActionWord::Kill => self.kill(),
            ActionWord::KillProcess => Action::KILL_PROCESS,
            ActionWord::KillThread => Action::KILL_THREAD,
            ActionWord::Trap => Action::new(ActionKind::Trap, 0),
            ActionWord::Trace => Action::new(ActionKind::Trace, 0),
            ActionWord::Log => Action::new(ActionKind::Log, 0),
            ActionWord::UserNotify => Action::new(ActionKind::Notify, 0),
            ActionWord::Return(Some(errno)) => {
                let number = self.checked(value(arch, self.table, errno))?;
                let Ok(number) = u16::try_from(number) else {
                    let diagnostic =
                        Diagnostic::error(code::MINIJAIL_NUMBER, "an errno has 16 bits")
                            .label(errno.span, "this is larger, or negative");
                    self.sink.report(diagnostic);
                    return None;
                };
                Action::errno(number)
            }
            ActionWord::Return(None) if self.dialect == Dialect::C => self.kill(),
            ActionWord::Return(None) => {
                let diagnostic =
                    Diagnostic::error(code::MINIJAIL_ACTION, "`return` without an errno")
                        .label(action.span, "")
                        .help("write `return EPERM`, or `kill`");
                self.sink.report(diagnostic);
                return None;
            }
        })
    }

    /// The condition of a filter; true if it has none.
    fn when(&mut self, filter: &Filter, arch: Arch) -> Option<Predicate> {
        let Some(alternatives) = &filter.condition else {
            return Some(Predicate::True);
        };
        let mut any = Vec::with_capacity(alternatives.len());
        for atoms in alternatives {
            let mut all = Vec::with_capacity(atoms.len());
            for atom in atoms {
                all.push(self.atom(atom, arch)?);
            }
            any.push(joined(all, Predicate::All));
        }
        Some(joined(any, Predicate::Any))
    }

    fn atom(&mut self, atom: &Atom, arch: Arch) -> Option<Predicate> {
        let width = Width::of_registers(arch);
        let operand = if width == Width::Bits64 {
            Operand::arg(atom.arg)
        } else {
            Operand::arg_low(atom.arg)
        };
        let value = self.checked(value(arch, self.table, &atom.value))?;
        let none_of = |mask| {
            Predicate::Test(Test::Masked {
                operand,
                mask,
                value: 0,
            })
        };
        Some(match atom.op {
            Operator::Compare(op) => Predicate::compare(operand, op, value),
            Operator::AnyBit => Predicate::Not(Box::new(none_of(value))),
            Operator::NoOtherBit => none_of(!value & width.max()),
        })
    }

    fn checked<T>(&mut self, result: Result<T, Box<Diagnostic>>) -> Option<T> {
        result
            .map_err(|diagnostic| self.sink.report(*diagnostic))
            .ok()
    }

    /// The numbers of a line's calls on an architecture, each with its place. The compile tool applies the filters of
    /// a line once for each mention of a call, so a call may be repeated, by groups too, only if no filter of the line
    /// decides alone.
    fn numbers(&mut self, calls: &Calls, decides: bool, arch: Arch) -> Vec<(u32, Span)> {
        let mut numbers: BTreeMap<u32, (Span, bool)> = BTreeMap::new();
        for call in &calls.list {
            if !self.is_for(call, arch) {
                continue;
            }
            let span = call.name.span;
            let is_group = call.name.text.contains('@');
            let found = match (self.table, is_group) {
                (Some(table), true) => group(call, table),
                (Some(table), false) => number_of(call, table).map(|nr| vec![nr]),
                (None, true) => Err(no_groups(call)),
                (None, false) => number(call, arch).map(|nr| vec![nr]),
            };
            for nr in self.checked(found).unwrap_or_default() {
                let earlier = numbers.insert(nr, (span, is_group));
                if let Some((first, is_group_too)) = earlier
                    && (decides || !is_group && !is_group_too)
                {
                    let name = syscall::name(arch, syscall::Nr(nr)).unwrap_or(&call.name.text);
                    self.sink.report(repeated(name, span, first, decides));
                }
            }
        }
        let numbers = numbers.into_iter();
        numbers.map(|(nr, (span, _))| (nr, span)).collect()
    }

    /// Whether a call's qualifier includes an architecture.
    fn is_for(&mut self, call: &Call, arch: Arch) -> bool {
        let Some((_, names)) = call.qualifier.as_deref() else {
            return true;
        };
        let mut is_for = false;
        for name in names {
            let of_table = self.table.map(|table| table.arch_name == name.text);
            match super::arch::named(&name.text) {
                _ if of_table == Some(true) => is_for = true,
                Some(_) if of_table.is_some() => {}
                Some(named) => is_for |= named.contains(&arch),
                None => self.sink.report(unknown_arch(name)),
            }
        }
        is_for
    }
}

/// The error for a call that a line names twice; the compile tool rejects it if a filter `decides` alone.
fn repeated(name: &str, span: Span, first: Span, decides: bool) -> Diagnostic {
    let message = format!("`{name}` is named twice");
    let diagnostic = match decides {
        true => Diagnostic::error(code::MINIJAIL_TWICE, message).note(
            "minijail's tool refuses this line: the call already has an unconditional action",
        ),
        false => Diagnostic::warning(code::MINIJAIL_TWICE, message),
    };
    diagnostic
        .label(span, "once is enough")
        .label(first, "named here")
}

/// The error for an unknown architecture in a qualifier.
fn unknown_arch(name: &ast::Name) -> Diagnostic {
    let ours = Arch::from_name(&name.text).and_then(super::arch::name);
    let near = ours.or_else(|| suggest::nearest(&name.text, super::arch::names()));
    let message = format!("unknown architecture `{}`", name.text);
    let diagnostic = Diagnostic::error(code::MINIJAIL_ARCH, message)
        .label(name.span, "minijail has no such architecture");
    match near {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => {
            let names: Vec<&str> = super::arch::names().collect();
            diagnostic.help(format!("there are {}", names.join(", ")))
        }
    }
}

/// The error for a group if no table defines it.
fn no_groups(call: &Call) -> Box<Diagnostic> {
    let message = format!("unknown group of calls `{}`", call.name.text);
    Box::new(
        Diagnostic::error(code::MINIJAIL_GROUP, message)
            .label(call.name.span, "")
            .note("groups are defined in a table of minijail's tool, not in the policy")
            .help("give the table, `--arch-json constants.json`, or list the calls in braces"),
    )
}

/// The calls of a group.
fn group(call: &Call, table: &Table) -> Result<Vec<u32>, Box<Diagnostic>> {
    let name = &call.name;
    let numbers = table.group(&name.text).ok_or_else(|| {
        let message = format!("unknown group of calls `{}`", name.text);
        let diagnostic = Diagnostic::error(code::MINIJAIL_GROUP, message)
            .label(name.span, "the table has no such group")
            .help(table.other_group(&name.text));
        Box::new(diagnostic)
    })?;
    Ok(numbers.to_vec())
}

/// The number that a table gives a call.
fn number_of(call: &Call, table: &Table) -> Result<u32, Box<Diagnostic>> {
    let name = &call.name;
    table.number(&name.text).ok_or_else(|| {
        let message = format!("the table has no call `{}`", name.text);
        let diagnostic = Diagnostic::error(code::MINIJAIL_SYSCALL, message).label(name.span, "");
        Box::new(match suggest::nearest(&name.text, table.calls()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help("the table comes from `--arch-json`"),
        })
    })
}

fn number(call: &Call, arch: Arch) -> Result<u32, Box<Diagnostic>> {
    let ast::Name { text, span } = &call.name;
    let Some(name) = SyscallName::find(text) else {
        let message = format!("unknown system call `{text}`");
        let diagnostic = Diagnostic::error(code::MINIJAIL_SYSCALL, message).label(*span, "");
        return Err(Box::new(match nearest_call(text) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help("`tamis tables syscalls` lists them"),
        }));
    };
    name.number(arch).map(|nr| nr.0).ok_or_else(|| {
        let message = format!("{arch} has no call `{text}`");
        let diagnostic = Diagnostic::error(code::MINIJAIL_SYSCALL, message)
            .label(*span, "")
            .help(format!(
                "write `{text}[arch=…]` with the architectures that have it, or delete it if {arch} is the only one"
            ));
        Box::new(diagnostic)
    })
}

fn joined(mut parts: Vec<Predicate>, join: fn(Vec<Predicate>) -> Predicate) -> Predicate {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}
