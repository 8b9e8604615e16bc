//! Passes: small rewrites, each in a file of its own, run in turn until none changes anything.
//!
//! A pass never fails, never makes a valid program invalid, and never changes what a filter answers.
//! Passes don't know each other; the [`registry`] lists them. Every applied change takes one unit of
//! fuel and leaves a [`Remark`]; limiting the fuel finds the change at which something went wrong by
//! halving. The manager bounds the number of rounds, so that a pair of passes that undo each other
//! costs time and no more.

pub mod registry;

mod draft;
mod pass_run;

mod assume_earlier_rules;
mod drop_default_rules;
mod drop_implied_parts;
mod drop_implied_tests;
mod drop_redundant_loads;
mod drop_unreachable;
mod drop_unreachable_rules;
mod drop_unused_results;
mod factor_alternatives;
mod fold_constants;
mod join_blocks;
mod mask_value_sets;
mod merge_blocks;
mod merge_equal_targets;
mod merge_mask_tests;
mod merge_rules;
mod merge_tails;
mod merge_value_tests;
mod simplify_predicates;
mod skip_known_loads;
mod thread_jumps;

mod answers;
mod chains;
mod facts;
mod knowledge;
mod numbers;
mod same_blocks;
mod shape;

#[cfg(test)]
mod testing;

pub(crate) use draft::Draft;
pub(crate) use pass_run::append;
pub use pass_run::{PassRun, Size};

use std::rc::Rc;

use tamis_abi::Arch;
use tamis_bpf::Program;
use tamis_bpf::cfg::{BlockId, Cfg};
use tamis_meter::{Workload, measure};
use tamis_rules::{Predicate, Ruleset};

use crate::dataflow::flow::Flow;
use crate::linearise::linearise;
use crate::options::{CompileOptions, Effort};
use draft::Condition;

/// The most rounds of all passes of a stage.
const MAX_ROUNDS: usize = 32;

/// The most with little effort: most passes leave nothing behind that they would change themselves.
const QUICK_ROUNDS: usize = 1;

/// What has not been measured yet.
const NOTHING: Size = Size::Program {
    length_insns: 0,
    cost: None,
};

/// What a pass works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Rules, before layout.
    Rules,
    /// Blocks of instructions, after layout or of a foreign program.
    Bytecode,
}

/// What a pass promises besides keeping the meaning. Unconditional jumps are not counted: where they
/// are needed is decided when blocks are put in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The reachable blocks never hold more instructions; for rule passes, the ruleset never has more
    /// rules.
    pub never_longer: bool,
    /// No input takes more steps afterwards; nothing that a rule pass could promise.
    pub never_slower: bool,
}

/// What is known about a pass without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PassInfo {
    /// The name: an imperative in kebab-case.
    pub name: &'static str,
    /// What it does, in one sentence without a full stop.
    pub summary: &'static str,
    /// What it works on.
    pub stage: Stage,
    /// What it promises.
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
    /// What was done to what.
    pub what: String,
    /// By how many instructions the program got shorter, as far as the pass can tell.
    pub saved_insns: usize,
    /// In which run of the pass.
    pub run: PassRun,
}

/// What a pass is given besides the thing to rewrite.
#[derive(Debug)]
pub struct PassCx {
    pass: &'static str,
    fuel: Option<u64>,
    remarks: Vec<Remark>,
    /// The run that is going on, and how many remarks there were before it.
    run: PassRun,
    earlier_remarks: usize,
    /// The calls by which programs are measured, if they are, and whether the kernel has a bitmap.
    calls: Option<Rc<Workload>>,
    has_bitmap: bool,
    /// The blocks of the graph in reverse postorder; none once a pass changed it.
    order: Option<Rc<[BlockId]>>,
    /// The flow of the graph as it was when it was last asked for.
    flow: Option<Flow>,
    /// Whether that is the graph as it is.
    is_flow_new: bool,
    /// How often all passes of a stage run at most.
    max_rounds: usize,
    /// How many runs of passes over rules there were.
    rule_runs: usize,
    /// In which of them each pass looked at the conditions of the rules last.
    looked: Vec<(&'static str, usize)>,
}

impl PassCx {
    /// A context with this much fuel; `None` is without limit.
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

    /// A context as the options say, for a program that serves these architectures.
    pub(crate) fn of(options: &CompileOptions, archs: impl IntoIterator<Item = Arch>) -> PassCx {
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

    /// How large the graph is and, if that was asked for, what it costs.
    fn size_of(&self, graph: &Cfg) -> Size {
        let cost = self.calls.as_ref().and_then(|calls| {
            let program = linearise(graph).ok()?;
            Some(measure(&[program], calls, self.has_bitmap))
        });
        Size::of_graph(graph, cost)
    }

    /// The reachable blocks of the graph, each before all that follow it.
    pub(crate) fn order(&mut self, graph: &Cfg) -> Rc<[BlockId]> {
        let order = self
            .order
            .get_or_insert_with(|| graph.reverse_postorder().into());
        Rc::clone(order)
    }

    /// The flow of the graph, brought up to date if the graph has changed since it was last
    /// [kept](Self::keep_flow).
    pub(crate) fn flow(&mut self, graph: &Cfg) -> Flow {
        let is_new = std::mem::take(&mut self.is_flow_new);
        let mut flow = self.flow.take().unwrap_or_default();
        if !is_new {
            flow.update(graph, &self.order(graph));
        }
        flow
    }

    /// Leaves the flow to the passes that come next. It is that of the graph for which it was asked: a pass that
    /// changed the graph says so at its end.
    pub(crate) fn keep_flow(&mut self, flow: Flow) {
        self.flow = Some(flow);
        self.is_flow_new = true;
    }

    /// Takes note of the new ids of blocks, of which some are gone.
    pub(crate) fn renumber(&mut self, new_ids: &[Option<BlockId>]) {
        if let Some(flow) = &mut self.flow {
            flow.renumber(new_ids);
        }
    }

    /// Takes note that the graph is another one.
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

    /// Asks whether a change may be applied, and records it if so. Without fuel the answer is no, and
    /// the pass must leave things as they are.
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

    /// Remarks from now on are about a run of this pass.
    fn begin_run(&mut self, pass: &'static str, arch: Option<Arch>) {
        self.pass = pass;
        self.run.arch = arch;
        self.run.before = self.run.after;
        self.earlier_remarks = self.remarks.len();
    }

    /// The run has made the thing this large.
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

    /// A condition that the pass makes now.
    fn condition(&self, predicate: Predicate) -> Condition {
        Condition::new(predicate, self.rule_runs)
    }

    /// In which run the pass looked at the conditions last; 0 if it never did. Now it does.
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

    /// What was applied, in order.
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
    /// What is known about it.
    pub info: PassInfo,
    pub(crate) run: fn(&mut Draft, &mut PassCx) -> Changed,
}

/// A pass over blocks.
#[derive(Clone, Copy, Debug)]
pub struct BytecodePass {
    /// What is known about it.
    pub info: PassInfo,
    pub(crate) run: fn(&mut Cfg, &mut PassCx) -> Changed,
}

/// Puts an equivalent condition in place of each of the rules', as far as the fuel goes; `None` is the same again, as
/// is an equal one. What the pass has left as it is before is not looked at again.
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
/// If a pass made the ruleset invalid, which is a mistake of the pass.
pub(crate) fn run_on_rules(ruleset: &Ruleset, passes: &[RulePass], cx: &mut PassCx) -> Ruleset {
    run_on_rules_watched(ruleset, passes, cx, &mut |_, _| ())
}

/// The same, where `watch` may ask what there is after every pass that changed something.
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
    let mut drafts: Vec<Draft> = ruleset.sections().iter().map(Draft::of).collect();
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
/// In debug builds, if a pass made the program invalid.
pub(crate) fn run_on_graph(graph: &mut Cfg, passes: &[BytecodePass], cx: &mut PassCx) {
    run_on_graph_watched(graph, passes, cx, &mut |_, _| ());
}

/// The same, showing what there is after every pass that changed something.
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

/// A program with the same answers, as short as the passes make it. It is never longer than the one
/// given: where putting it together again costs more than was gained, or where the kernel's check of
/// scratch memory would not follow the new order, the given program comes back.
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

/// Whether other passes may find something new after a pass; blocks that no path reaches are nothing to
/// them.
fn news(pass: &BytecodePass, changed: Changed) -> Changed {
    if pass.info.name == drop_unreachable::INFO.name {
        Changed::No
    } else {
        changed
    }
}

/// Runs passes in turn until each of them has found nothing to change in what there is at the end.
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
