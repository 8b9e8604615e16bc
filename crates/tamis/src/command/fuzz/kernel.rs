//! `tamis fuzz --running-kernel`: the calls of a campaign, put to the running kernel.

use std::fmt::Write;

use serde::Serialize;
use tamis_abi::{SeccompData, call};
use tamis_bpf::Stack;
use tamis_kernel::differential::check::{Checked, Contradiction, check};
use tamis_session::{Loaded, NamedProgram, Side};

use crate::cli::Failure;
use crate::cli::side;

/// How many contradictions of a side are listed for a person.
const MAX_CONTRADICTIONS: usize = 10;

/// What the kernel said about the programs of one side.
#[derive(Serialize)]
pub(super) struct KernelEntry {
    side: &'static str,
    /// How many real calls were made, each put to a filter or to all of a stack.
    calls: usize,
    /// How many packets were put to the filter of a socket.
    packets: usize,
    /// What could not be asked.
    not_asked: Vec<String>,
    /// Where kernel and interpreter differ.
    pub(super) contradictions: Vec<String>,
}

/// Puts calls to the kernel under the programs of both sides.
pub(super) fn entries(
    sides: [&Side; 2],
    calls: &[SeccompData],
) -> Result<Vec<KernelEntry>, Failure> {
    let names = ["left", "right"];
    let asked = names.into_iter().zip(sides).filter_map(|(name, side)| {
        let stack = stack(side)?;
        Some(stack.map(|stack| entry(name, &check(&stack, calls))))
    });
    let entries: Vec<KernelEntry> = asked.collect::<Result<_, _>>()?;
    let first_reason = entries.iter().flat_map(|entry| &entry.not_asked).next();
    match first_reason {
        Some(reason) if entries.iter().all(|entry| entry.calls + entry.packets == 0) => {
            Err(Failure::environment(reason.clone()))
        }
        _ => Ok(entries),
    }
}

/// The programs of a side that has no policies.
fn stack(side: &Side) -> Option<Result<Stack, Failure>> {
    let programs = side.filters().iter().map(|loaded| match loaded {
        Loaded::Program(raw) => Some(raw.clone()),
        Loaded::Policy(_) => None,
    });
    programs
        .collect::<Option<Vec<NamedProgram>>>()
        .map(side::stack)
}

fn entry(side: &'static str, checked: &Checked) -> KernelEntry {
    KernelEntry {
        side,
        calls: checked.calls,
        packets: checked.packets,
        not_asked: checked.not_asked.iter().map(ToString::to_string).collect(),
        contradictions: checked.contradictions.iter().map(contradiction).collect(),
    }
}

fn contradiction(contradiction: &Contradiction) -> String {
    match contradiction {
        Contradiction::Verdict { program, verdict } => {
            format!("filter {program} is {verdict}")
        }
        Contradiction::Returned {
            program,
            call,
            expected,
        } => format!(
            "filter {program} doesn't return {expected:#x} for {}",
            call::describe_briefly(call)
        ),
        Contradiction::Answered { program, mismatch } => {
            let who = match program {
                Some(program) => format!("filter {program}"),
                None => "the stack".to_owned(),
            };
            format!(
                "{who} answers {} with {:?} instead of {:?}",
                call::describe_briefly(&mismatch.call),
                mismatch.answered,
                mismatch.expected
            )
        }
    }
}

/// A line on each side, and what is wrong.
pub(super) fn text(entries: &[KernelEntry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let KernelEntry {
            side,
            calls,
            packets,
            ..
        } = entry;
        let verdict = match entry.contradictions.len() {
            0 => "says the same".to_owned(),
            count => format!("says otherwise {count} times"),
        };
        let _ = writeln!(
            text,
            "  {side}: the kernel {verdict} on {calls} calls and {packets} packets"
        );
        for line in entry.contradictions.iter().take(MAX_CONTRADICTIONS) {
            let _ = writeln!(text, "    {line}");
        }
        for reason in &entry.not_asked {
            let _ = writeln!(text, "    not all could be asked: {reason}");
        }
    }
    text
}
