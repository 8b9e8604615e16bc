//! Finds calls that are denied with x86_64's number and allowed with x32's.
//!
//! Arguments are compared too: a call counts if the same arguments are denied on x86_64 and allowed on x32. The
//! upper halves of 32-bit arguments are assumed to be clear; other checks cover them.

use crate::code::LINT_X32_GAP;
use tamis_abi::{Arch, ArgIndex, Word, syscall};
use tamis_diag::words::list;

use super::upper_half::narrow_argument;
use crate::context::{Access, Call, Context, is_executed};
use crate::finding::{Example, Finding, Relevance};
use crate::registry::{Check, warning};
use tamis_analysis::{find, with_word};
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "x32-gap",
    LINT_X32_GAP,
    "calls denied on x86_64 are allowed as x32",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    if !context.arches.contains(&Arch::X86_64) {
        return Ok(Vec::new());
    }
    let as_x32 = context.calls_of(Arch::X32)?;
    let mut names = Vec::new();
    let mut examples: Option<[Example; 2]> = None;
    for own in context.calls_of(Arch::X86_64)? {
        let nr = syscall::number(Arch::X32, own.name);
        let other = as_x32.iter().find(|call| Some(call.nr) == nr);
        let Some(other) = other.filter(|_| own.access != Access::Open) else {
            continue;
        };
        if let Some(pair) = pair(context, &own, other)? {
            names.push(own.name);
            examples = examples.or(Some(pair));
        }
    }
    let Some(examples) = examples else {
        return Ok(Vec::new());
    };
    let place = context.place(&examples[1].call, "");
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!("x32 allows calls that x86_64 denies: {}", list(names)),
        "an x32 call has the number of x86_64 plus 0x40000000, so comparisons with it fail",
        "deny numbers from 0x40000000 on, or give x32 the rules of x86_64",
    );
    Ok(vec![
        finding
            .relevance(Relevance::Intent)
            .examples(examples)
            .places(place),
    ])
}

/// The same call on both: denied on x86_64, executed as x32.
fn pair(
    context: &mut Context,
    own: &Call,
    other: &Call,
) -> Result<Option<[Example; 2]>, LimitReached> {
    let wanted = |values: &[u32]| !is_executed(values[0]) && is_executed(values[1]);
    let mut functions = [own.function, other.function];
    for index in ArgIndex::ALL {
        if narrow_argument(own, index).is_some() {
            let high = Word::arg_high(index);
            for function in &mut functions {
                *function = with_word(&mut context.space, *function, high, 0)?;
            }
        }
    }
    let Some(found) = find(&context.space, &functions, &wanted)? else {
        return Ok(None);
    };
    let [refused, allowed] = [own, other].map(|call| context.answer(&call.complete(found.data)));
    let is_gap = wanted(&[refused.action.ret(), allowed.action.ret()]);
    Ok(is_gap.then_some([refused, allowed]))
}
