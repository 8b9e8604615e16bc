//! Finds calls that are denied because of upper bits that the kernel ignores.
//!
//! This is no bypass, so it is a note. 32-bit calls are ignored: only an attacker makes them with upper bits set.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::LINT_WIDE_COMPARISON;
use tamis_abi::signature::Width;
use tamis_diag::words::list;

use super::upper_half::{Answers, Narrow, narrow_arguments};
use crate::context::{Context, is_executed};
use crate::finding::{Example, Finding};
use crate::registry::{Check, note};
use tamis_analysis::find;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = note(
    "wide-comparison",
    LINT_WIDE_COMPARISON,
    "a denial depends on upper bits that the kernel ignores",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut by_width: BTreeMap<Width, (BTreeSet<String>, [Example; 2])> = BTreeMap::new();
    for narrow in narrow_arguments(context)? {
        if !narrow.call.arch.has_64_bit_registers() {
            continue;
        }
        if let Some(pair) = pair(context, &narrow)? {
            let (arguments, _) = by_width
                .entry(narrow.width)
                .or_insert((BTreeSet::new(), pair));
            arguments.insert(format!("{}({})", narrow.call.name, narrow.name));
        }
    }
    // The usual width first.
    let findings = by_width
        .into_iter()
        .rev()
        .map(|(width, (arguments, examples))| {
            let (more, lower) = match width {
                Width::Bits16 => ("more", "16 bits"),
                Width::Bits32 | Width::Bits64 => ("64", "half"),
            };
            let arguments = list(arguments.iter().map(String::as_str));
            // Without a rule that denies the second call, the rule that allows only the first one contains the
            // comparison.
            let mut places = [1, 0].into_iter();
            let place = places.find_map(|index| context.place(&examples[index].call, ""));
            Finding::new(
                (CHECK.code, CHECK.severity),
                format!(
                    "arguments of {} bits are compared on {more}: {arguments}",
                    width.bits()
                ),
                "a program whose register has other upper bits is denied by accident",
                format!("compare the lower {lower} only"),
            )
            .examples(examples)
            .places(place)
        });
    Ok(findings.collect())
}

/// Two calls that are equal for the kernel: executed with the upper bits clear, denied with upper bits set.
fn pair(context: &Context, narrow: &Narrow) -> Result<Option<[Example; 2]>, LimitReached> {
    let wanted = |values: &[u32]| {
        let answers = Answers::from_values(values);
        is_executed(answers.clear) && !is_executed(answers.as_is)
    };
    let Some(found) = find(&context.space, &narrow.functions(), &wanted)? else {
        return Ok(None);
    };
    let refused = narrow.call.complete(found.data);
    let [allowed, refused] = [narrow.proper(refused), refused].map(|data| context.answer(&data));
    let is_accident = is_executed(allowed.action.ret()) && !is_executed(refused.action.ret());
    Ok(is_accident.then_some([allowed, refused]))
}
