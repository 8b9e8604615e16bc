//! A draft section: the rules of one architecture so far.

use tamis_abi::{Action, Arch, KernelVersion, errno, syscall};
use tamis_diag::{Diagnostic, Sources, Span};
use tamis_rules::{IntervalSet, Predicate, Rule, Section};

use crate::code;
use crate::sink::Sink;
use crate::tamis::ast::{Fallback, Name};

/// The nesting of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// At the top: for all architectures of the policy.
    Top,
    /// In an `on` block: for some architectures, with precedence over the top.
    Block,
}

/// Calls that a rule decides for all arguments.
pub(super) struct DecidedCalls {
    /// The calls.
    pub(super) numbers: IntervalSet<u32>,
    /// The action.
    pub(super) action: Action,
    /// The span of the rule.
    pub(super) span: Span,
}

/// The action of a fallback, and its span.
type Slot = Option<(Action, Span)>;

/// The rules of one architecture so far.
pub(super) struct Draft {
    pub(super) arch: Arch,
    pub(super) rules: Vec<Rule>,
    /// `default` in a block, at the top.
    default: [Slot; 2],
    /// `unknown` in a block, at the top.
    unknown: [Slot; 2],
    decided: Vec<DecidedCalls>,
    /// The union of all decided numbers.
    all_decided: IntervalSet<u32>,
    /// Calls that some rule denies or allows only under a condition.
    restricted: Vec<Name>,
}

impl Draft {
    /// No rules yet.
    pub(super) fn new(arch: Arch) -> Draft {
        Draft {
            arch,
            rules: Vec::new(),
            default: [None; 2],
            unknown: [None; 2],
            decided: Vec::new(),
            all_decided: IntervalSet::empty(),
            restricted: Vec::new(),
        }
    }

    /// The slot of `default` or `unknown`.
    pub(super) fn fallback(&mut self, fallback: Fallback, level: Level) -> &mut Slot {
        let slots = match fallback {
            Fallback::Unknown => &mut self.unknown,
            Fallback::Default | Fallback::BadArch => &mut self.default,
        };
        match level {
            Level::Block => &mut slots[0],
            Level::Top => &mut slots[1],
        }
    }

    /// Records the calls that an unconditional rule decides.
    pub(super) fn decide(&mut self, decided: DecidedCalls) {
        self.all_decided = self.all_decided.union(&decided.numbers);
        self.decided.push(decided);
    }

    /// The rule that decides `first`, if unconditional rules decide all these numbers.
    pub(super) fn decided(&self, numbers: &IntervalSet<u32>, first: u32) -> Option<&DecidedCalls> {
        let all = self.all_decided.intervals();
        let covered = |(from, to): &(u32, u32)| {
            let after = all.partition_point(|(start, _)| start <= from);
            after > 0 && *to <= all[after - 1].1
        };
        if !numbers.intervals().iter().all(covered) {
            return None;
        }
        self.decided
            .iter()
            .find(|decided| decided.numbers.contains(first))
    }

    /// Records a call that a rule restricts.
    pub(super) fn restrict(&mut self, call: &Name) {
        if syscall::multiplexed(self.arch, &call.text).is_some() {
            self.restricted.push(call.clone());
        }
    }

    /// The finished section.
    pub(super) fn finish(
        mut self,
        known_until: Option<(KernelVersion, Span)>,
        sources: &Sources,
        sink: &mut Sink,
    ) -> Section {
        let [block, top] = self.default;
        let default = block
            .or(top)
            .map_or(Action::KILL_PROCESS, |(action, _)| action);
        let [block, top] = self.unknown;
        if let Some((action, span)) = block.or(top) {
            self.rules.push(Rule {
                syscalls: self.unnamed(),
                when: Predicate::True,
                action,
                origin: Some(crate::origin(sources, span)),
            });
        }
        if let Some((version, span)) = known_until {
            // The last rule: calls that the policy names keep the action of their own rule.
            self.rules.push(Rule {
                syscalls: self.later(version).union(&self.unnamed()),
                when: Predicate::True,
                action: Action::errno(errno::enosys(self.arch)),
                origin: Some(crate::origin(sources, span)),
            });
        }
        self.check_multiplexers(default, sink);
        Section {
            arch: self.arch,
            rules: self.rules,
            default,
        }
    }

    /// The numbers without a name in the table.
    fn unnamed(&self) -> IntervalSet<u32> {
        let named: IntervalSet<u32> = syscall::all(self.arch).map(|(nr, _)| nr.0).collect();
        Section::domain(self.arch).difference(&named)
    }

    /// The calls that came after a kernel.
    fn later(&self, version: KernelVersion) -> IntervalSet<u32> {
        let is_later = |nr| syscall::since(self.arch, nr).is_some_and(|since| since > version);
        let calls = syscall::all(self.arch).filter(|(nr, _)| is_later(*nr));
        calls.map(|(nr, _)| nr.0).collect()
    }

    /// Warns if a restricted call can be made through `socketcall` or `ipc`.
    fn check_multiplexers(&self, default: Action, sink: &mut Sink) {
        let mut warned = Vec::new();
        for call in &self.restricted {
            let Some(multiplexed) = syscall::multiplexed(self.arch, &call.text) else {
                continue;
            };
            let nr = multiplexed.nr;
            let first = self.rules.iter().find(|rule| rule.syscalls.contains(nr.0));
            let is_open = match first {
                Some(rule) => rule.when == Predicate::True && rule.action.kind.executes(),
                None => default.kind.executes(),
            };
            if !is_open || warned.contains(&nr) {
                continue;
            }
            warned.push(nr);
            let (arch, number) = (self.arch, multiplexed.call);
            let by = syscall::name(arch, nr).unwrap_or("the multiplexer");
            // The upper half of ipc's selector is a version.
            let selector = if by == "ipc" { "call & 0xffff" } else { "call" };
            sink.report(
                Diagnostic::warning(
                    code::MULTIPLEXED_CALL,
                    format!("`{call}` can be called through `{by}` on {arch}"),
                )
                .label(call.span, "this restriction can be bypassed")
                .note(format!(
                    "`{by}` is allowed; its call {number} is equivalent"
                ))
                .help(format!("restrict it: `allow {by}({selector} != {number})`")),
            );
        }
    }
}
