//! Where a program's instructions go and how far it is from the best: text and document.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::{Arch, Endian, Nr, syscall};
use tamis_bpf::Program;
use tamis_compiler::report::bound::{ArchBound, Kind, bounds};
use tamis_compiler::report::ownership::{Decision, Ownership, ownership};
use tamis_compiler::report::{PassTotal, totals};
use tamis_compiler::{Options, Remark};

/// How many groups of calls and how many calls of each are shown to a person.
const MAX_GROUPS: usize = 10;
const MAX_CALLS: usize = 4;

/// What is reported of a program.
#[derive(Serialize)]
pub(crate) struct Report {
    dispatch_insns: usize,
    return_insns: usize,
    other_insns: usize,
    decisions: Vec<DecisionEntry>,
    bounds: Vec<BoundEntry>,
    passes: Vec<PassEntry>,
}

/// Instructions that decide about the arguments of some calls.
#[derive(Serialize)]
struct DecisionEntry {
    calls: Vec<String>,
    length_insns: usize,
}

/// The steps of one architecture's calls and the fewest possible.
#[derive(Serialize)]
struct BoundEntry {
    arch: &'static str,
    runs: usize,
    mean_steps: f64,
    bound_steps: f64,
    bound: &'static str,
}

/// What a pass did.
#[derive(Serialize)]
struct PassEntry {
    pass: &'static str,
    changes: usize,
    saved_insns: usize,
}

impl Report {
    /// The report of a program, with the remarks of the passes that made it.
    pub(crate) fn of(
        program: &Program,
        endian: Endian,
        archs: &[Arch],
        remarks: &[Remark],
        options: &Options,
    ) -> Report {
        let Ownership {
            dispatch_insns,
            return_insns,
            other_insns,
            decisions,
        } = ownership(program, archs);
        // What the prover can't say in time is left out: the program is right all the same.
        let bounds = bounds(program, endian, archs, options).unwrap_or_default();
        Report {
            dispatch_insns,
            return_insns,
            other_insns,
            decisions: decisions.iter().map(decision_entry).collect(),
            bounds: bounds.iter().map(bound_entry).collect(),
            passes: totals(remarks).iter().map(pass_entry).collect(),
        }
    }

    /// The report for a person, indented.
    pub(crate) fn text(&self) -> String {
        let Report {
            dispatch_insns,
            return_insns,
            other_insns,
            ..
        } = self;
        let mut text = format!(
            "  {dispatch_insns} instructions find the call, {return_insns} return, {other_insns} are \
             for unknown numbers\n"
        );
        for decision in self.decisions.iter().take(MAX_GROUPS) {
            let _ = writeln!(
                text,
                "  {:>4} decide about {}",
                decision.length_insns,
                decision.names()
            );
        }
        let rest = self.decisions.iter().skip(MAX_GROUPS);
        let rest: usize = rest.map(|decision| decision.length_insns).sum();
        if rest > 0 {
            let _ = writeln!(text, "  {rest:>4} decide about others");
        }
        for bound in &self.bounds {
            let how = match bound.bound {
                "best_tree" => "the best tree over its runs",
                _ => "the entropy of its answers",
            };
            let _ = writeln!(
                text,
                "  {:<12} {:.1} steps on average, no program takes fewer than {:.1} by {how} \
                 ({} runs)",
                bound.arch, bound.mean_steps, bound.bound_steps, bound.runs
            );
        }
        for pass in &self.passes {
            let PassEntry {
                pass,
                changes,
                saved_insns,
            } = pass;
            let _ = writeln!(
                text,
                "  {pass}: {changes} changes, {saved_insns} instructions saved"
            );
        }
        text
    }
}

impl DecisionEntry {
    /// The calls for a person.
    fn names(&self) -> String {
        let shown = self.calls.len().min(MAX_CALLS);
        let names = self.calls[..shown].join(", ");
        match self.calls.len() - shown {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

fn decision_entry(decision: &Decision) -> DecisionEntry {
    let name = |(arch, nr): &(Arch, Nr)| match syscall::name(*arch, *nr) {
        Some(name) => format!("{arch}:{name}"),
        None => format!("{arch}:{}", nr.0),
    };
    DecisionEntry {
        calls: decision.calls.iter().map(name).collect(),
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
            Kind::Entropy => "entropy",
            Kind::BestTree => "best_tree",
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
