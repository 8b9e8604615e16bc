//! Finds restricted calls that can be made through `socketcall` or `ipc`.
//!
//! Only calls that are restricted on purpose count, and only if the multiplexer is allowed with the
//! selector of the call.

use crate::code::{LINT_MULTIPLEXER, MULTIPLEXED_CALL};
use tamis_abi::{Arch, ArgIndex, syscall};
use tamis_diag::words::list;

use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Relevance};
use crate::registry::{Check, warning};
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = Check {
    front_end_codes: &[MULTIPLEXED_CALL],
    ..warning(
        "multiplexer",
        LINT_MULTIPLEXER,
        "socketcall or ipc bypass a restriction",
        run,
    )
};

const MULTIPLEXERS: [&str; 2] = ["socketcall", "ipc"];

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings = Vec::new();
    for arch in context.arches.clone() {
        for name in MULTIPLEXERS {
            if let Some(multiplexer) = context.call(arch, name) {
                findings.extend(gap(context, arch, &multiplexer)?);
            }
        }
    }
    Ok(findings)
}

fn gap(
    context: &mut Context,
    arch: Arch,
    multiplexer: &Call,
) -> Result<Option<Finding>, LimitReached> {
    let selector = ArgIndex::ALL[0];
    let mut gaps = Vec::new();
    for direct in context.calls_of(arch)? {
        let Some(by) = syscall::multiplexed(arch, direct.name) else {
            continue;
        };
        if by.nr != multiplexer.nr || !context.on_purpose(&direct)? {
            continue;
        }
        let selected = context.with_argument(*multiplexer, selector, by.call)?;
        if selected.access != Access::Refused {
            gaps.push((direct, selected));
        }
    }
    let Some((direct, selected)) = gaps.first() else {
        return Ok(None);
    };
    let examples = [
        context.example(direct, false),
        context.example(selected, true),
    ];
    let places = examples.iter().flatten().zip(["restricts it", "allows it"]);
    let places: Vec<_> = places
        .filter_map(|(example, label)| context.place(&example.call, label))
        .collect();
    let names = list(gaps.iter().map(|(call, _)| call.name));
    let by = multiplexer.name;
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!("`{by}` of {arch} bypasses the restriction of {names}"),
        format!(
            "`{by}` is equivalent, with its arguments in memory, where no filter can read them"
        ),
        format!("deny `{by}`, or allow it for other calls only"),
    );
    Ok(Some(
        finding
            .relevance(Relevance::Intent)
            .examples(examples.into_iter().flatten())
            .places(places),
    ))
}
