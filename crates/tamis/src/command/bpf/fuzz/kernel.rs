//! `tamis bpf fuzz --running-kernel`: the calls of a campaign, executed by the running kernel.

use tamis_abi::{SeccompData, call};
use tamis_bpf::Stack;
use tamis_kernel::differential::check::{Checked, Contradiction, check};
use tamis_report::fuzz::KernelEntry;
use tamis_session::{Loaded, NamedProgram, Side};

use crate::cli::Failure;
use crate::cli::side;

/// Runs calls in the kernel under the programs of both sides.
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

/// The programs of a side without policies.
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
        Contradiction::Checker { program, answer } => {
            format!("filter {program} is {answer}")
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
