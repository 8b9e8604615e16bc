//! The subject of the checks: a policy, or the filters of one task.

use std::collections::BTreeSet;
use tamis_abi::{Action, Arch, KernelVersion, SeccompData};
use tamis_bpf::{Insn, Op, Program, Stack};

use tamis_analysis::without_complex_calls;
use tamis_prover::{Function, LimitReached, Limits, Space, Stop};
use tamis_rules::{Origin, Ruleset};

use crate::target::Target;

/// The policy or filters of a subject.
#[derive(Clone, Copy, Debug)]
pub enum Meaning<'a> {
    /// A policy.
    Policy(&'a Ruleset),
    /// Programs installed on one task; usually one.
    Filters(&'a Stack),
}

/// The kind of a policy's statements, and so the loss from deleting one that never decides.
#[derive(Clone, Copy, Debug, Default)]
pub enum Statements<'a> {
    /// Rules; the first match decides. No other effects.
    #[default]
    Rules,
    /// The rules for one of several machines: a statement may decide for another architecture, other capabilities or
    /// another kernel.
    Selected,
    /// The settings of a unit: separate filters; the strictest action applies.
    Settings {
        /// The places of settings with effects besides filtering, such as `PrivateDevices=`.
        kept: &'a [Origin],
    },
}

impl Statements<'_> {
    /// Whether a statement without decided calls is legitimate.
    pub(crate) fn keeps(self, origin: Option<&Origin>) -> bool {
        let Statements::Settings { kept } = self else {
            return false;
        };
        origin.is_some_and(|origin| kept.contains(origin))
    }

    /// The advice to delete a statement that never decides, with the condition for deleting it safely.
    pub(crate) fn deletion(self) -> &'static str {
        match self {
            Statements::Rules => "delete it",
            Statements::Selected => {
                "delete it if no other architecture, capability or kernel needs it"
            }
            Statements::Settings { .. } => "delete it if the other setting is to stay",
        }
    }

    /// Whether the order of statements matters.
    pub(crate) fn has_order(self) -> bool {
        !matches!(self, Statements::Settings { .. })
    }
}

/// The subject of the checks.
#[derive(Clone, Copy, Debug)]
pub struct LintInput<'a> {
    /// The policy or filters.
    pub meaning: Meaning<'a>,
    /// The kind of the policy's statements.
    pub statements: Statements<'a>,
    /// The kernel whose calls the policy has considered, if it states one.
    pub known_until: Option<KernelVersion>,
    /// The architecture of a program that never tests the architecture.
    pub assumed_arch: Arch,
    /// The runtime that starts a container under the filter; `None` if it isn't known.
    pub runtime: Option<Runtime>,
    /// The kernel that runs the filter; `None` if it isn't known.
    pub kernel: Option<KernelVersion>,
    /// What the filter is for.
    pub targets: &'a [Target],
}

/// A runtime of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// runc, also that of Docker, containerd and Kubernetes.
    Runc,
    /// crun, that of Podman on many systems.
    Crun,
}

impl Runtime {
    /// All runtimes.
    pub const ALL: [Runtime; 2] = [Runtime::Runc, Runtime::Crun];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Runtime::Runc => "runc",
            Runtime::Crun => "crun",
        }
    }
}

/// A return value other than the used ones. The kernel kills a process for it, so it doesn't execute the call.
pub(crate) fn unused(is_used: impl Fn(u32) -> bool) -> u32 {
    let mut values = (Action::KILL_PROCESS.ret()..).skip(1);
    let unused = values.find(|ret| !is_used(*ret));
    unused.expect("a filter has fewer return values than there are")
}

impl Meaning<'_> {
    /// The action for a call, by the evaluator of rulesets or by the reference interpreter.
    pub fn decide(&self, data: &SeccompData) -> Action {
        match self {
            Meaning::Policy(ruleset) => ruleset.decide(data).action,
            Meaning::Filters(stack) => Action::from_ret(stack.run(data).ret),
        }
    }

    /// The same subject with one constant in place of all computed return values, and that constant; `None` if no
    /// program returns a computed value.
    pub(crate) fn without_computed_answers(
        &self,
        space: &mut Space,
    ) -> Result<Option<(Function, u32)>, LimitReached> {
        let Meaning::Filters(stack) = self else {
            return Ok(None);
        };
        let programs = stack.programs();
        let ops = || programs.iter().flat_map(Program::ops);
        if !ops().any(|op| op == Op::RetA) {
            return Ok(None);
        }
        let mark = unused(|ret| ops().any(|op| op == Op::RetImm(ret)));
        let marked = programs.iter().map(|program| {
            let ops = program.ops().map(|op| match op {
                Op::RetA => Op::RetImm(mark),
                op => op,
            });
            Program::new(ops.map(Insn::from).collect(), program.endian())
        });
        let marked = marked.collect::<Result<Vec<Program>, _>>();
        let Some(Ok(marked)) = marked.ok().map(Stack::new) else {
            return Ok(None);
        };
        let function = Meaning::Filters(&marked).function(space)?;
        Ok(Some((function, mark)))
    }

    /// A policy in which calls with conditions that are too complex for diagrams have one constant as return value, and
    /// that constant; `None` if it isn't a policy, or no call alone is too complex.
    pub(crate) fn without_complex_calls(
        &self,
        limits: Limits,
        stop: &Stop,
    ) -> Result<Option<(Ruleset, u32)>, LimitReached> {
        let Meaning::Policy(ruleset) = self else {
            return Ok(None);
        };
        let sections = ruleset.sections().iter();
        let rules = sections.clone().flat_map(|section| &section.rules);
        let defaults = sections.map(|section| section.default);
        let actions = rules.map(|rule| rule.action).chain(defaults);
        let used: BTreeSet<u32> = actions.chain([ruleset.bad_arch]).map(Action::ret).collect();
        let mark = unused(|ret| used.contains(&ret));
        let mark_action = |_: &[Action]| Action::from_ret(mark);
        let simpler = without_complex_calls(ruleset, limits, stop, mark_action)?;
        let is_simpler = !simpler.replaced.is_empty();
        Ok(is_simpler.then_some((simpler.ruleset, mark)))
    }

    /// The function from all calls to actions.
    pub(crate) fn function(&self, space: &mut Space) -> Result<Function, LimitReached> {
        match self {
            Meaning::Policy(ruleset) => space.ruleset(ruleset),
            Meaning::Filters(stack) => {
                let mut functions = Vec::new();
                for program in stack.programs() {
                    functions.push(space.program(program)?);
                }
                match functions.as_slice() {
                    [only] => Ok(*only),
                    all => space.stack(all),
                }
            }
        }
    }
}
