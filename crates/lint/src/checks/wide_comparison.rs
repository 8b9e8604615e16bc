//! Finds calls that are refused because of upper bits that the kernel ignores.
//!
//! Nothing gets past the filter that way, so it is a note. 32-bit calls are left alone: only someone who
//! is up to something makes them with upper bits set.

use std::collections::BTreeSet;

use tamis_diag::code::LINT_WIDE_COMPARISON;

use super::upper_half::{Answers, Narrow, narrow_arguments};
use crate::context::{Context, is_executed};
use crate::finding::{Example, Finding, list};
use crate::registry::{Check, note};
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = note(
    "wide-comparison",
    LINT_WIDE_COMPARISON,
    "upper bits that the kernel ignores decide about a refusal",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut arguments = BTreeSet::new();
    let mut examples: Option<[Example; 2]> = None;
    for narrow in narrow_arguments(context)? {
        if !narrow.call.arch.has_64_bit_registers() {
            continue;
        }
        if let Some(pair) = pair(context, &narrow) {
            arguments.insert(format!("{}({})", narrow.call.name, narrow.name));
            examples = examples.or(Some(pair));
        }
    }
    let Some(examples) = examples else {
        return Ok(Vec::new());
    };
    let place = context.place(&examples[1].call, "");
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!(
            "arguments of 32 bits are compared on 64: {}",
            list(arguments.iter().map(String::as_str))
        ),
        "a program that leaves something in the upper half of the register is refused by accident",
        "compare the lower half only",
    );
    Ok(vec![finding.examples(examples).places(place)])
}

/// The same call for the kernel: executed with the upper half clear, refused with bits set there.
fn pair(context: &Context, narrow: &Narrow) -> Option<[Example; 2]> {
    let wanted = |values: &[u32]| {
        let answers = Answers::of(values);
        is_executed(answers.clear) && !is_executed(answers.as_is)
    };
    let found = context.space.find(&narrow.functions(), &wanted)?;
    let refused = narrow.call.complete(found);
    let mut proper = refused;
    proper.args[narrow.index.index()] &= 0xffff_ffff;
    let [allowed, refused] = [proper, refused].map(|data| context.answer(&data));
    let is_accident = is_executed(allowed.action.ret()) && !is_executed(refused.action.ret());
    is_accident.then_some([allowed, refused])
}
