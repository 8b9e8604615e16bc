//! Finds restrictions that can be bypassed by setting upper bits of an argument that the kernel ignores.
//!
//! A call counts if it is executed as it is, and denied with the upper bits clear and, for a negative number, with its
//! sign extended: the two forms of an `int` in a register.

use crate::code::LINT_EVADABLE;

use super::upper_half::{Answers, Narrow, narrow_arguments};
use crate::context::{Context, is_executed};
use crate::finding::{Example, Finding, Relevance};
use crate::registry::{Check, warning};
use tamis_analysis::find;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "evadable-restriction",
    LINT_EVADABLE,
    "setting upper bits that the kernel ignores bypasses a restriction",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings: Vec<(Narrow, Finding)> = Vec::new();
    for narrow in narrow_arguments(context)? {
        let Some([refused, allowed]) = pair(context, &narrow)? else {
            continue;
        };
        // One finding for all architectures.
        let same = findings
            .iter_mut()
            .find(|(known, _)| (known.call.name, known.index) == (narrow.call.name, narrow.index));
        if let Some((_, finding)) = same {
            finding.examples.push(allowed);
            continue;
        }
        let (call, name) = (narrow.call.name, &narrow.name);
        let refuses = context.place(&refused.call, "denies the first");
        let allows = context.place(&allowed.call, "allows the other");
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!("setting upper bits of `{name}` bypasses the restriction of `{call}`"),
            format!(
                "the kernel reads the lower {} bits of `{name}`, so it treats both as the same call",
                narrow.width.bits()
            ),
            format!(
                "compare the lower {} only: by name in the tamis language, with \
                 SCMP_CMP_MASKED_EQ and {} in an OCI profile",
                narrow.lower_part(),
                narrow.width.max()
            ),
        );
        let finding = finding
            .relevance(Relevance::Intent)
            .examples([refused, allowed])
            .places(allows.into_iter().chain(refuses));
        findings.push((narrow, finding));
    }
    Ok(findings.into_iter().map(|(_, finding)| finding).collect())
}

/// Two calls that are equal for the kernel: denied in the proper form, executed with upper bits set.
fn pair(context: &Context, narrow: &Narrow) -> Result<Option<[Example; 2]>, LimitReached> {
    let wanted = |values: &[u32]| {
        let answers = Answers::from_values(values);
        let sign_extended = answers.is_negative && is_executed(answers.ones);
        is_executed(answers.as_is) && !is_executed(answers.clear) && !sign_extended
    };
    let Some(found) = find(&context.space, &narrow.functions(), &wanted)? else {
        return Ok(None);
    };
    let evading = narrow.call.complete(found.data);
    let [refused, allowed] = [narrow.proper(evading), evading].map(|data| context.answer(&data));
    let is_gap = !is_executed(refused.action.ret()) && is_executed(allowed.action.ret());
    Ok(is_gap.then_some([refused, allowed]))
}
