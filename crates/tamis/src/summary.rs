//! What a program costs, per architecture: the figures of `--stats`.

use serde::Serialize;
use tamis_abi::{Action, ActionKind, Arch, SeccompData, syscall};
use tamis_bpf::{cache, interp};
use tamis_compiler::Compiled;
use tamis_rules::{Ruleset, Section};

/// What the known calls of one architecture cost, each with all arguments 0.
#[derive(Debug, Serialize)]
pub(crate) struct ArchSummary {
    /// The architecture.
    pub(crate) arch: &'static str,
    /// How many calls it has.
    pub(crate) calls: usize,
    /// How many of them are allowed or logged.
    pub(crate) allowed: usize,
    /// How many the kernel decides without running the program (5.11; x32 calls never are).
    pub(crate) cacheable: usize,
    /// Executed instructions on average.
    pub(crate) mean_steps: f64,
    /// Executed instructions at most.
    pub(crate) max_steps: u32,
}

/// One summary for each section of the ruleset that has a table of calls.
pub(crate) fn summaries(ruleset: &Ruleset, compiled: &Compiled) -> Vec<ArchSummary> {
    ruleset.sections().iter().map(|section| summary(section, compiled)).collect()
}

fn summary(section: &Section, compiled: &Compiled) -> ArchSummary {
    let (program, arch) = (compiled.program(), section.arch);
    let mut summary = ArchSummary {
        arch: arch.name(),
        calls: 0,
        allowed: 0,
        cacheable: 0,
        mean_steps: 0.0,
        max_steps: 0,
    };
    let mut steps = 0;
    for (nr, _) in syscall::all(arch) {
        let data = SeccompData { nr: nr.0, arch: arch.audit(), ..SeccompData::default() };
        let run = interp::run(program, &data.image(compiled.endian()));
        let kind = Action::from_ret(run.ret).kind;
        let has_bitmap = arch != Arch::X32;
        summary.calls += 1;
        summary.allowed += usize::from(matches!(kind, ActionKind::Allow | ActionKind::Log));
        summary.cacheable +=
            usize::from(has_bitmap && cache::is_cacheable(program, arch.audit(), nr.0));
        summary.max_steps = summary.max_steps.max(run.steps);
        steps += run.steps;
    }
    summary.mean_steps = f64::from(steps) / summary.calls.max(1) as f64;
    summary
}
