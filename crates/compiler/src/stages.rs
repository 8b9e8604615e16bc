//! The single stages of the compiler, for tests and measurements.
//!
//! The result of a stage has not been compared with its input, so it may not be equivalent. It is therefore returned
//! as [`Unproven`], which no function of this crate accepts as a result. Results are [`Compiled`](crate::Compiled)
//! and `Optimised` of the crate `optimize`, which only a proof can make.
//!
//! ```compile_fail
//! use tamis_abi::Endian;
//! use tamis_bpf::cfg::Cfg;
//! use tamis_compiler::dag::Dag;
//! let mut dag = Dag::new();
//! let root = dag.ret(0);
//! let graph: Cfg = tamis_compiler::stages::emit(&dag, root, Endian::Little);
//! ```

use tamis_abi::Endian;
use tamis_bpf::cfg::Cfg;
use tamis_bpf::{InvalidProgram, Program, Template};
use tamis_rules::Ruleset;

use crate::compile;
use crate::dag::{Dag, NodeId};
pub use crate::emit::Continuations;
use crate::error::CompileError;
pub use crate::layout::{Decided, Layout, Piece, RuleListDecision, arch_dispatch, number_line};
use crate::options::{CompileOptions, Instructions};
use crate::passes::{self, BytecodePass, PassCx, Remark, RulePass};
use crate::weights::Weights;
use crate::{emit as emission, layout, linearise as line};

/// The result of a stage, not compared with the stage's input.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_compiler::{dag::Dag, stages};
/// let mut dag = Dag::new();
/// let root = dag.ret(0);
/// let graph = stages::emit(&dag, root, Endian::Little).into_unproven();
/// let program = stages::linearise(&graph).expect("it is valid");
/// assert_eq!(program.into_unproven().len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Unproven<T>(T);

impl<T> Unproven<T> {
    /// The result without its wrapper. A caller that installs it relies on every pass, on layout and on emission.
    pub fn into_unproven(self) -> T {
        self.0
    }
}

/// The program of a ruleset by all stages but the proof, and the changes of the passes.
///
/// # Errors
/// If the kernel would reject the program, which is a bug of tamis.
pub fn build(
    ruleset: &Ruleset,
    options: &CompileOptions,
    endian: Endian,
) -> Result<(Unproven<Template>, Vec<Remark>), CompileError> {
    let built = compile::build(ruleset, options, endian, &mut |_, _| ())?;
    Ok((Unproven(built.template), built.remarks))
}

/// The decisions of a ruleset, made by the module `layout`.
pub fn lay_out(ruleset: &Ruleset, weights: &Weights<'_>) -> Unproven<Layout> {
    Unproven(layout::lay_out(ruleset, weights))
}

/// The blocks of the decision below `root`, for machines of this byte order. Log-linear in the graph.
///
/// # Panics
/// If a `Continue` node is below `root`.
pub fn emit(dag: &Dag, root: NodeId, endian: Endian) -> Unproven<Cfg> {
    Unproven(emission::emit(dag, root, endian, Instructions::All))
}

/// The blocks of the decision below `root`, and those whose end the caller must set: one for each `Continue` node.
pub fn emit_open(
    dag: &Dag,
    root: NodeId,
    endian: Endian,
    instructions: Instructions,
) -> Unproven<(Cfg, Continuations)> {
    Unproven(emission::emit_open(dag, root, endian, instructions))
}

/// The instructions of a graph, in order.
///
/// # Errors
/// The first reason why the program is invalid; it may be too long.
pub fn linearise(graph: &Cfg) -> Result<Unproven<Program>, InvalidProgram> {
    line::linearise(graph).map(Unproven)
}

/// Runs passes over a ruleset until none changes anything.
///
/// # Panics
/// If a pass makes the ruleset invalid, which is a bug of the pass.
pub fn run_on_rules(ruleset: &Ruleset, passes: &[RulePass], cx: &mut PassCx) -> Unproven<Ruleset> {
    Unproven(passes::run_on_rules(ruleset, passes, cx))
}

/// Runs passes over a graph until none changes anything.
///
/// # Panics
/// In debug builds, if a pass makes the program invalid.
pub fn run_on_graph(mut graph: Cfg, passes: &[BytecodePass], cx: &mut PassCx) -> Unproven<Cfg> {
    passes::run_on_graph(&mut graph, passes, cx);
    Unproven(graph)
}

/// A program optimised by the passes, never longer than the given one.
pub fn optimise(program: &Program, passes: &[BytecodePass], cx: &mut PassCx) -> Unproven<Program> {
    Unproven(passes::optimise(program, passes, cx))
}
