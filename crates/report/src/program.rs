//! Report of a program: the use of its instructions and the distance from a lower bound. It is a member of the
//! documents of `tamis compile` and `tamis optimize`.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::{Arch, Nr, syscall};
use tamis_bpf::Program;
use tamis_compiler::meter::{Cost, measure};
use tamis_compiler::report::bound::{ArchBound, BoundKind, bounds};
use tamis_compiler::report::calls::{CallCost, calls};
use tamis_compiler::report::ownership::{Decision, Ownership, ownership};
use tamis_compiler::report::{PassRunTotal, PassTotal, runs, totals};
use tamis_compiler::{CompileOptions, Remark, Size};

use crate::entry::{counted, first_calls};

/// The most groups of calls, and the most calls of each, that the text lists.
const MAX_GROUPS: usize = 10;
const MAX_CALLS: usize = 4;

/// The costs of the known calls of one architecture, with all arguments 0.
#[derive(Serialize)]
pub struct ArchEntry {
    pub arch: &'static str,
    pub calls: usize,
    pub cacheable: usize,
    pub mean_steps: f64,
    pub max_steps: u32,
}

impl ArchEntry {
    /// The figures of an architecture.
    pub fn from_cost((arch, cost): &(Arch, Cost)) -> ArchEntry {
        let all = cost.all();
        ArchEntry {
            arch: arch.name(),
            calls: cost.numbers,
            cacheable: cost.cached_numbers,
            mean_steps: all.mean_steps(),
            max_steps: all.max_steps,
        }
    }
}

/// The report of a program.
#[derive(Serialize)]
pub struct ProgramReport {
    pub dispatch_insns: usize,
    pub return_insns: usize,
    pub other_insns: usize,
    pub decisions: Vec<DecisionEntry>,
    pub together: TogetherEntry,
    pub calls: Vec<CallEntry>,
    pub bounds: Vec<BoundEntry>,
    pub passes: Vec<PassEntry>,
    pub runs: Vec<RunEntry>,
}

/// The costs of the calls of the profile, or of ordinary programs.
#[derive(Serialize)]
pub struct TogetherEntry {
    pub has_profile: bool,
    pub mean_steps: f64,
    pub uncached_mean_steps: f64,
    pub max_steps: u32,
    pub kernel_mean_steps: f64,
    pub cached_share: f64,
}

/// The cost of a call.
#[derive(Serialize)]
pub struct CallEntry {
    pub call: String,
    pub share: f64,
    pub is_cached: bool,
    pub mean_steps: f64,
    pub max_steps: u32,
    pub kernel_mean_steps: f64,
    pub part_insns: f64,
}

/// A run of a pass.
#[derive(Serialize)]
pub struct RunEntry {
    pub run: usize,
    pub pass: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<&'static str>,
    pub changes: usize,
    pub before: SizeEntry,
    pub after: SizeEntry,
}

/// The size of the rules or the program that a pass worked on.
#[derive(Serialize)]
#[serde(untagged)]
pub enum SizeEntry {
    Rules {
        rules: usize,
        tests: usize,
    },
    Program {
        length_insns: usize,
        #[serde(flatten)]
        cost: Option<CostEntry>,
    },
}

/// The cost of a program for all calls of the workload.
#[derive(Serialize)]
pub struct CostEntry {
    pub kernel_length_insns: usize,
    pub mean_steps: f64,
    pub uncached_mean_steps: f64,
    pub max_steps: u32,
    pub kernel_mean_steps: f64,
    pub cached_numbers: usize,
    pub numbers: usize,
}

/// Instructions that test the arguments of some calls.
#[derive(Serialize)]
pub struct DecisionEntry {
    pub calls: Vec<String>,
    pub length_insns: usize,
}

/// The steps of one architecture's calls, and their lower bound.
#[derive(Serialize)]
pub struct BoundEntry {
    pub arch: &'static str,
    pub runs: usize,
    pub mean_steps: f64,
    pub bound_steps: f64,
    pub bound: &'static str,
}

/// The changes of a pass.
#[derive(Serialize)]
pub struct PassEntry {
    pub pass: &'static str,
    pub changes: usize,
    pub saved_insns: usize,
}

impl ProgramReport {
    /// The report of a program, with the remarks of its passes.
    pub fn from_program(
        program: &Program,
        archs: &[Arch],
        remarks: &[Remark],
        options: &CompileOptions,
    ) -> ProgramReport {
        let Ownership {
            dispatch_insns,
            return_insns,
            other_insns,
            decisions,
        } = ownership(program, archs);
        let (workload, has_bitmap) = (options.workload(archs), options.has_bitmap());
        let together = measure(std::slice::from_ref(program), &workload, has_bitmap);
        let costs = calls(program, &workload, has_bitmap);
        // Without bounds if the prover reaches a limit; the program is correct nevertheless.
        let bounds = bounds(program, archs, &workload).unwrap_or_default();
        ProgramReport {
            dispatch_insns,
            return_insns,
            other_insns,
            decisions: decisions.iter().map(decision_entry).collect(),
            together: together_entry(&together, options),
            calls: most_expensive_first(costs).iter().map(call_entry).collect(),
            bounds: bounds.iter().map(bound_entry).collect(),
            passes: totals(remarks).iter().map(pass_entry).collect(),
            runs: runs(remarks).iter().map(run_entry).collect(),
        }
    }

    /// The report as text, indented.
    pub fn text(&self) -> String {
        let ProgramReport {
            dispatch_insns,
            return_insns,
            other_insns,
            ..
        } = self;
        let mut text = format!(
            "  {} for dispatch, {return_insns} for returns, {other_insns} for unknown numbers\n",
            counted(*dispatch_insns, "instruction")
        );
        for decision in self.decisions.iter().take(MAX_GROUPS) {
            let _ = writeln!(
                text,
                "  {:>4} decide about {}",
                decision.length_insns,
                first_calls(&decision.calls, MAX_CALLS, "")
            );
        }
        let rest = self.decisions.iter().skip(MAX_GROUPS);
        let rest: usize = rest.map(|decision| decision.length_insns).sum();
        if rest > 0 {
            let _ = writeln!(text, "  {rest:>4} decide about others");
        }
        self.write_calls(&mut text);
        for bound in &self.bounds {
            let _ = writeln!(text, "{}", bound.line());
        }
        for pass in &self.passes {
            let PassEntry {
                pass,
                changes,
                saved_insns,
            } = pass;
            let changes = counted(*changes, "change");
            let saved = counted(*saved_insns, "instruction");
            let _ = writeln!(text, "  {pass}: {changes}, {saved} saved");
        }
        text
    }

    /// The costs of the calls, the most expensive first.
    fn write_calls(&self, text: &mut String) {
        let TogetherEntry {
            has_profile,
            mean_steps,
            uncached_mean_steps,
            max_steps,
            kernel_mean_steps,
            cached_share,
        } = &self.together;
        let whose = match has_profile {
            true => "calls of the profile",
            false => "calls of ordinary programs, arguments 0",
        };
        let _ = writeln!(
            text,
            "  {whose} ({}): {mean_steps:.1} steps on average ({kernel_mean_steps:.1} in the kernel), \
             {max_steps} at most; the kernel caches {:.1} % of them, {uncached_mean_steps:.1} steps for the others",
            self.calls.len(),
            100.0 * cached_share,
        );
        let _ = writeln!(text, "     share   steps    part  most expensive calls");
        for entry in self.calls.iter().take(MAX_GROUPS) {
            let _ = writeln!(
                text,
                "  {:>6.2} % {:>7.1} {:>7.1}  {}{}",
                100.0 * entry.share,
                entry.mean_steps,
                entry.part_insns,
                entry.call,
                if entry.is_cached { ", cached" } else { "" },
            );
        }
    }
}

impl BoundEntry {
    /// The distance of an architecture from its bound, as text.
    fn line(&self) -> String {
        let BoundEntry {
            arch,
            runs,
            mean_steps,
            bound_steps,
            bound,
        } = self;
        let runs = counted(*runs, "run");
        let how = match *bound {
            "best_tree" => "the best tree of comparisons over its runs takes",
            _ => "by the entropy of its actions no program takes fewer than",
        };
        let distance = 100.0 * (mean_steps / bound_steps - 1.0);
        let side = if distance < -0.05 { "below" } else { "above" };
        let distance = distance.abs();
        format!(
            "  {arch:<12} {mean_steps:.1} steps on average, {how} {bound_steps:.1} ({runs}): \
             {distance:.0} % {side}"
        )
    }
}

/// Calls by total cost; the most expensive for the kernel first.
fn most_expensive_first(mut calls: Vec<CallCost>) -> Vec<CallCost> {
    let cost = |call: &CallCost| {
        let runs = if call.cost.is_cached { 0.0 } else { 1.0 };
        (runs * call.cost.executed.steps, call.part_insns)
    };
    calls.sort_by(|a, b| {
        let ((a_cost, a_part), (b_cost, b_part)) = (cost(a), cost(b));
        let by_cost = b_cost.total_cmp(&a_cost);
        by_cost.then(b_part.total_cmp(&a_part))
    });
    calls
}

fn decision_entry(decision: &Decision) -> DecisionEntry {
    let calls = decision.calls.iter();
    DecisionEntry {
        calls: calls.map(|(arch, nr)| call_name(*arch, *nr)).collect(),
        length_insns: decision.length_insns,
    }
}

fn bound_entry(bound: &ArchBound) -> BoundEntry {
    BoundEntry {
        arch: bound.arch.name(),
        runs: bound.runs,
        mean_steps: bound.mean_steps,
        bound_steps: bound.bound_steps,
        bound: match bound.kind {
            BoundKind::Entropy => "entropy",
            BoundKind::BestTree => "best_tree",
        },
    }
}

fn pass_entry(total: &PassTotal) -> PassEntry {
    PassEntry {
        pass: total.pass,
        changes: total.changes,
        saved_insns: total.saved_insns,
    }
}

fn call_name(arch: Arch, nr: Nr) -> String {
    match syscall::name(arch, nr) {
        Some(name) => format!("{arch}:{name}"),
        None => format!("{arch}:{}", nr.0),
    }
}

fn together_entry(cost: &Cost, options: &CompileOptions) -> TogetherEntry {
    let all = cost.all();
    TogetherEntry {
        has_profile: options.profile.is_some(),
        mean_steps: all.mean_steps(),
        uncached_mean_steps: cost.uncached.mean_steps(),
        max_steps: all.max_steps,
        kernel_mean_steps: all.mean_kernel_steps(),
        cached_share: cost.cached_share(),
    }
}

fn call_entry(call: &CallCost) -> CallEntry {
    let cost = &call.cost;
    CallEntry {
        call: call_name(cost.arch, cost.nr),
        share: call.share,
        is_cached: cost.is_cached,
        mean_steps: cost.executed.mean_steps(),
        max_steps: cost.executed.max_steps,
        kernel_mean_steps: cost.executed.mean_kernel_steps(),
        part_insns: call.part_insns,
    }
}

fn run_entry(of: &PassRunTotal) -> RunEntry {
    let size = |size: Size| match size {
        Size::Rules { rules, tests } => SizeEntry::Rules { rules, tests },
        Size::Program { length_insns, cost } => SizeEntry::Program {
            length_insns,
            cost: cost.as_ref().map(cost_entry),
        },
    };
    RunEntry {
        run: of.run.number,
        pass: of.pass,
        arch: of.run.arch.map(Arch::name),
        changes: of.changes,
        before: size(of.run.before),
        after: size(of.run.after),
    }
}

fn cost_entry(cost: &Cost) -> CostEntry {
    let all = cost.all();
    CostEntry {
        kernel_length_insns: cost.kernel_insns,
        mean_steps: all.mean_steps(),
        uncached_mean_steps: cost.uncached.mean_steps(),
        max_steps: all.max_steps,
        kernel_mean_steps: all.mean_kernel_steps(),
        cached_numbers: cost.cached_numbers,
        numbers: cost.numbers,
    }
}
