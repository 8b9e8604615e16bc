//! Passes: small rewrites, each in a file of its own, run in turn until none changes anything.
//!
//! A pass never fails, never makes a valid program invalid, and never changes the meaning of a filter. Passes do not
//! know each other; the [`registry`] lists them. Every applied change uses one unit of fuel and adds a [`Remark`];
//! with limited fuel a binary search finds the change that introduced an error. The manager limits the number of
//! rounds, so that two passes that undo each other only cost time.

pub mod registry;

mod bytecode;
mod rules;
mod support;

pub(crate) use support::draft::Draft;
pub use support::pass_run::{PassRun, Size, append};

use std::rc::Rc;

use crate::meter::{Workload, measure};
use tamis_abi::Arch;
use tamis_bpf::Program;
use tamis_bpf::cfg::{BlockId, Cfg};
use tamis_rules::{Predicate, Ruleset};

use crate::dataflow::flow::Flow;
use crate::linearise::linearise;
use crate::options::{CompileOptions, Effort};
use support::draft::Condition;

/// The most rounds of all passes of a stage.
const MAX_ROUNDS: usize = 32;

/// The most rounds with quick effort: most passes are idempotent.
const QUICK_ROUNDS: usize = 1;

/// A placeholder for a size that is not measured yet.
const NOTHING: Size = Size::Program {
    length_insns: 0,
    cost: None,
};

/// The form that a pass rewrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Rules, before layout.
    Rules,
    /// Blocks of instructions, after layout or of a foreign program.
    Bytecode,
}

/// The guarantees of a pass in addition to equivalence. Unconditional jumps are not counted: linearisation decides
/// where they are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The reachable blocks never have more instructions; for rule passes, the ruleset never has more rules.
    pub never_longer: bool,
    /// No input takes more steps; false for rule passes, which cannot guarantee it.
    pub never_slower: bool,
}

/// The properties of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PassInfo {
    /// The name: an imperative in kebab-case.
    pub name: &'static str,
    /// The effect, in one sentence without a full stop.
    pub summary: &'static str,
    /// The form that it rewrites.
    pub stage: Stage,
    /// Its guarantees.
    pub claim: Claim,
}

/// Whether a pass changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It did.
    Yes,
    /// It didn't.
    No,
}

/// A change that a pass applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    /// The name of the pass.
    pub pass: &'static str,
    /// The change, and the place.
    pub what: String,
    /// The pass's estimate of the number of instructions saved.
    pub saved_insns: usize,
    /// The run of the pass.
    pub run: PassRun,
}

/// The context of a pass: everything except the rules or the graph.
#[derive(Debug)]
pub struct PassCx {
    pass: &'static str,
    fuel: Option<u64>,
    remarks: Vec<Remark>,
    /// The present run, and the number of remarks before it.
    run: PassRun,
    earlier_remarks: usize,
    /// The calls for measuring programs, if requested, and whether the kernel has a bitmap.
    calls: Option<Rc<Workload>>,
    has_bitmap: bool,
    /// The blocks of the graph in reverse postorder; `None` after a pass changed the graph.
    order: Option<Rc<[BlockId]>>,
    /// The flow of the graph at the last request.
    flow: Option<Flow>,
    /// Whether the graph has not changed since.
    is_flow_new: bool,
    /// The most rounds of all passes of a stage.
    max_rounds: usize,
    /// The number of runs of passes over rules.
    rule_runs: usize,
    /// By pass, its last run that processed the conditions of the rules.
    looked: Vec<(&'static str, usize)>,
}

impl PassCx {
    /// A context with this much fuel; `None` for unlimited fuel.
    pub fn new(fuel: Option<u64>) -> PassCx {
        PassCx {
            pass: "",
            fuel,
            remarks: Vec::new(),
            run: PassRun {
                number: 1,
                arch: None,
                before: NOTHING,
                after: NOTHING,
            },
            earlier_remarks: 0,
            calls: None,
            has_bitmap: true,
            order: None,
            flow: None,
            is_flow_new: false,
            max_rounds: MAX_ROUNDS,
            rule_runs: 0,
            looked: Vec::new(),
        }
    }

    /// A context with these options, for a program for these architectures.
    pub fn with_options(options: &CompileOptions, archs: impl IntoIterator<Item = Arch>) -> PassCx {
        let calls = options.measure_runs.then(|| {
            let archs: Vec<Arch> = archs.into_iter().collect();
            Rc::new(options.workload(&archs))
        });
        PassCx {
            calls,
            has_bitmap: options.has_bitmap(),
            max_rounds: match options.effort {
                Effort::Full => MAX_ROUNDS,
                Effort::Quick => QUICK_ROUNDS,
            },
            ..PassCx::new(options.fuel)
        }
    }

    /// The size of the graph and, if requested, its cost.
    fn size_of(&self, graph: &Cfg) -> Size {
        let cost = self.calls.as_ref().and_then(|calls| {
            let program = linearise(graph).ok()?;
            Some(measure(&[program], calls, self.has_bitmap))
        });
        Size::of_graph(graph, cost)
    }

    /// The reachable blocks of the graph, each before its successors.
    pub(crate) fn order(&mut self, graph: &Cfg) -> Rc<[BlockId]> {
        let order = self
            .order
            .get_or_insert_with(|| graph.reverse_postorder().into());
        Rc::clone(order)
    }

    /// The flow of the graph, updated if the graph has changed since it was last [kept](Self::keep_flow).
    pub(crate) fn flow(&mut self, graph: &Cfg) -> Flow {
        let is_new = std::mem::take(&mut self.is_flow_new);
        let mut flow = self.flow.take().unwrap_or_default();
        if !is_new {
            flow.update(graph, &self.order(graph));
        }
        flow
    }

    /// Stores the flow for later passes. It belongs to the graph as requested: a pass that changed the graph reports
    /// that at its end.
    pub(crate) fn keep_flow(&mut self, flow: Flow) {
        self.flow = Some(flow);
        self.is_flow_new = true;
    }

    /// Applies new ids of blocks; removed blocks have none.
    pub(crate) fn renumber(&mut self, new_ids: &[Option<BlockId>]) {
        if let Some(flow) = &mut self.flow {
            flow.renumber(new_ids);
        }
    }

    /// Drops everything about the previous graph.
    fn begin_graph(&mut self) {
        self.graph_changed();
        if let Some(flow) = &mut self.flow {
            flow.clear();
        }
    }

    fn graph_changed(&mut self) {
        self.order = None;
        self.is_flow_new = false;
    }

    /// Requests permission for a change, and records it. Without fuel it returns false, and the pass must not apply
    /// the change.
    pub fn apply(&mut self, saved_insns: usize, what: impl FnOnce() -> String) -> bool {
        match &mut self.fuel {
            Some(0) => return false,
            Some(fuel) => *fuel -= 1,
            None => {}
        }
        self.remarks.push(Remark {
            pass: self.pass,
            what: what(),
            saved_insns,
            run: self.run,
        });
        true
    }

    /// Starts a run of a pass, for the remarks that follow.
    fn begin_run(&mut self, pass: &'static str, arch: Option<Arch>) {
        self.pass = pass;
        self.run.arch = arch;
        self.run.before = self.run.after;
        self.earlier_remarks = self.remarks.len();
    }

    /// Ends the run with this size of the result.
    fn end_run(&mut self, after: Size) {
        self.run.after = after;
        let own = &mut self.remarks[self.earlier_remarks..];
        if !own.is_empty() {
            self.run.number += 1;
        }
        for remark in own {
            remark.run.after = after;
        }
    }

    /// A condition made by the pass in this run.
    fn condition(&self, predicate: Predicate) -> Condition {
        Condition::new(predicate, self.rule_runs)
    }

    /// The pass's last run that processed the conditions, or 0; sets it to the present run.
    fn look(&mut self) -> usize {
        let (pass, now) = (self.pass, self.rule_runs);
        match self.looked.iter_mut().find(|(name, _)| *name == pass) {
            Some((_, latest)) => std::mem::replace(latest, now),
            None => {
                self.looked.push((pass, now));
                0
            }
        }
    }

    /// The applied changes, in order.
    pub fn into_remarks(self) -> Vec<Remark> {
        self.remarks
    }
}

impl Changed {
    /// Yes if the condition holds.
    pub const fn when(changed: bool) -> Changed {
        if changed { Changed::Yes } else { Changed::No }
    }
}

/// A pass over rules.
#[derive(Clone, Copy, Debug)]
pub struct RulePass {
    /// Its properties.
    pub info: PassInfo,
    pub(crate) run: fn(&mut Draft, &mut PassCx) -> Changed,
}

/// A pass over blocks.
#[derive(Clone, Copy, Debug)]
pub struct BytecodePass {
    /// Its properties.
    pub info: PassInfo,
    pub(crate) run: fn(&mut Cfg, &mut PassCx) -> Changed,
}

/// Replaces the conditions of all rules by equivalent ones, as far as the fuel lasts; if `rewrite` returns `None` or
/// an equal condition, nothing changes. Conditions that the pass has already processed are skipped.
fn rewrite_conditions(
    draft: &mut Draft,
    cx: &mut PassCx,
    rewrite: impl Fn(&Predicate) -> Option<Predicate>,
) -> Changed {
    let mut changed = false;
    let latest = cx.look();
    for (number, rule) in (1..).zip(&mut draft.rules) {
        if rule.when.is_true() || !rule.when.is_made_since(latest) {
            continue;
        }
        let rewritten = rewrite(rule.when.predicate());
        let Some(rewritten) = rewritten.filter(|new| new != rule.when.predicate()) else {
            continue;
        };
        if cx.apply(0, || format!("the condition of rule {number}")) {
            rule.when = cx.condition(rewritten);
            changed = true;
        }
    }
    Changed::when(changed)
}

/// Runs passes over a ruleset until none changes anything.
///
/// # Panics
/// If a pass makes the ruleset invalid, which is a bug of the pass.
pub(crate) fn run_on_rules(ruleset: &Ruleset, passes: &[RulePass], cx: &mut PassCx) -> Ruleset {
    run_on_rules_watched(ruleset, passes, cx, &mut |_, _| ())
}

/// The same, with a call of `watch` after every pass that changed something, which can request the present ruleset.
pub(crate) fn run_on_rules_watched(
    ruleset: &Ruleset,
    passes: &[RulePass],
    cx: &mut PassCx,
    watch: &mut impl FnMut(&'static str, &dyn Fn() -> Ruleset),
) -> Ruleset {
    let made = |sections| {
        let made = Ruleset::new(sections, ruleset.bad_arch);
        made.expect(
            "a pass never makes a valid ruleset invalid: it keeps the architecture of a section",
        )
    };
    let mut drafts: Vec<Draft> = ruleset.sections().iter().map(Draft::from_section).collect();
    for index in 0..drafts.len() {
        cx.looked.clear();
        cx.run.after = Size::of_draft(&drafts[index]);
        run_until_stable(passes, cx.max_rounds, |pass| {
            cx.begin_run(pass.info.name, Some(drafts[index].arch));
            cx.rule_runs += 1;
            let changed = (pass.run)(&mut drafts[index], cx);
            if changed == Changed::Yes {
                cx.end_run(Size::of_draft(&drafts[index]));
                watch(pass.info.name, &|| {
                    made(drafts.iter().map(Draft::to_section).collect())
                });
            }
            changed
        });
    }
    made(drafts.into_iter().map(Draft::into_section).collect())
}

/// Runs passes over a graph until none changes anything.
///
/// # Panics
/// In debug builds, if a pass makes the program invalid.
pub(crate) fn run_on_graph(graph: &mut Cfg, passes: &[BytecodePass], cx: &mut PassCx) {
    run_on_graph_watched(graph, passes, cx, &mut |_, _| ());
}

/// The same, with a call of `watch` after every pass that changed something.
pub(crate) fn run_on_graph_watched(
    graph: &mut Cfg,
    passes: &[BytecodePass],
    cx: &mut PassCx,
    watch: &mut impl FnMut(&'static str, &Cfg),
) {
    cx.begin_graph();
    cx.run.after = cx.size_of(graph);
    run_until_stable(passes, cx.max_rounds, |pass| {
        let changed = run_on_blocks(pass, graph, cx);
        debug_assert!(
            changed == Changed::No || is_valid(graph),
            "{} made the program invalid",
            pass.info.name
        );
        if changed == Changed::Yes {
            watch(pass.info.name, graph);
        }
        news(pass, changed)
    });
}

/// An equivalent program, as short as the passes make it and never longer than the given one: if linearisation adds
/// more than the passes saved, or the kernel's check of scratch memory would reject the new order, the result is the
/// given program.
pub(crate) fn optimise(program: &Program, passes: &[BytecodePass], cx: &mut PassCx) -> Program {
    let mut graph = Cfg::from_program(program);
    let mut trial = PassCx::new(cx.fuel);
    trial.calls.clone_from(&cx.calls);
    trial.has_bitmap = cx.has_bitmap;
    trial.run.after = trial.size_of(&graph);
    run_until_stable(passes, MAX_ROUNDS, |pass| {
        news(pass, run_on_blocks(pass, &mut graph, &mut trial))
    });
    match linearise(&graph) {
        Ok(optimised) if optimised.len() <= program.len() => {
            cx.fuel = trial.fuel;
            append(&mut cx.remarks, trial.remarks);
            optimised
        }
        _ => program.clone(),
    }
}

fn run_on_blocks(pass: &BytecodePass, graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    cx.begin_run(pass.info.name, None);
    let changed = (pass.run)(graph, cx);
    if changed == Changed::Yes {
        cx.graph_changed();
        cx.end_run(cx.size_of(graph));
    }
    changed
}

/// Whether other passes may find new changes after a pass; removing unreachable blocks gives them none.
fn news(pass: &BytecodePass, changed: Changed) -> Changed {
    if pass.info.name == bytecode::drop_unreachable::INFO.name {
        Changed::No
    } else {
        changed
    }
}

/// Runs passes in turn until none of them finds a change in the final state.
fn run_until_stable<P>(passes: &[P], max_rounds: usize, mut run: impl FnMut(&P) -> Changed) {
    let mut idle = 0;
    for _ in 0..max_rounds {
        for pass in passes {
            idle = match run(pass) {
                Changed::Yes => 0,
                Changed::No => idle + 1,
            };
            if idle == passes.len() {
                return;
            }
        }
    }
}

fn is_valid(graph: &Cfg) -> bool {
    linearise(graph).is_ok()
}
