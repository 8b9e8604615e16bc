//! Finds instructions of a program that no call executes, and branches with a constant outcome.
//!
//! The message has their positions, counted from 0. Policies have checks of rules instead. A program with too many
//! paths gets no finding.

use crate::code::LINT_DEAD_CODE;
use tamis_analysis::dead_code;
use tamis_bpf::Pc;
use tamis_diag::words::list;
use tamis_prover::{LimitReached, Limits, Space};

use crate::context::Context;
use crate::finding::Finding;
use crate::registry::{Check, note};

pub(crate) const CHECK: Check = note(
    "dead-code",
    LINT_DEAD_CODE,
    "no call executes an instruction, or a branch always takes the same path",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let Some(stack) = context.filters() else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    for (filter, program) in stack.programs().iter().enumerate() {
        let Ok(dead) = dead_code(&mut Space::new(Limits::default()), program) else {
            continue;
        };
        let of_which = match stack.programs().len() {
            1 => String::new(),
            _ => format!(" of filter {}", filter + 1),
        };
        let mut report = |what: &str, which: &[Pc], why: &str, help: &str| {
            let message = format!("{what}{of_which}: {}", numbers(which));
            findings.push(Finding::new(
                (CHECK.code, CHECK.severity),
                message,
                why,
                help,
            ));
        };
        if !dead.unexecuted.is_empty() {
            report(
                "instructions that no call executes",
                &dead.unexecuted,
                "no call reaches them, so they have no effect",
                "correct the jumps if they should be reachable, or delete them",
            );
        }
        for outcome in [true, false] {
            let same = dead.one_way.iter().filter(|(_, always)| *always == outcome);
            let branches: Vec<Pc> = same.map(|(pc, _)| *pc).collect();
            if !branches.is_empty() {
                let what = if outcome {
                    "tests that always hold"
                } else {
                    "tests that never hold"
                };
                report(
                    what,
                    &branches,
                    "earlier tests imply their results",
                    "correct the constant or the order of the tests, or delete them",
                );
            }
        }
    }
    Ok(findings)
}

fn numbers(instructions: &[Pc]) -> String {
    let numbers: Vec<String> = instructions.iter().map(|pc| pc.0.to_string()).collect();
    list(numbers.iter().map(String::as_str))
}
