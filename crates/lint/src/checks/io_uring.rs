//! Finds filters that deny calls on files or sockets and allow io_uring, which has the same operations.
//!
//! Unlike for other twins, calls missing from an allow list count, too: a program that needs io_uring needs files.

use crate::code::LINT_IO_URING;
use tamis_abi::Arch;
use tamis_diag::words::list;

use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Relevance};
use crate::registry::{Check, warning};
use crate::tables::ring;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "io-uring",
    LINT_IO_URING,
    "io_uring provides operations that the filter denies",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut gaps: Vec<(Call, Vec<Call>, Vec<Arch>)> = Vec::new();
    for arch in context.arches.clone() {
        let setup = context.call(arch, "io_uring_setup");
        let Some(setup) = setup.filter(|setup| setup.access != Access::Refused) else {
            continue;
        };
        let calls = ring::CALLS.iter();
        let restricted: Vec<Call> = calls
            .filter_map(|name| context.call(arch, name))
            .filter(|call| call.access != Access::Open)
            .collect();
        let names = |calls: &[Call]| calls.iter().map(|call| call.name).collect::<Vec<_>>();
        let same = gaps
            .iter_mut()
            .find(|(_, known, _)| names(known) == names(&restricted));
        match same {
            Some((_, _, arches)) => arches.push(arch),
            None if restricted.is_empty() => {}
            None => gaps.push((setup, restricted, vec![arch])),
        }
    }
    let finding = |(setup, restricted, arches): (Call, Vec<Call>, Vec<Arch>)| {
        let examples = [
            context.example(&restricted[0], false),
            context.example(&setup, true),
        ];
        let place = examples[1].and_then(|example| context.place(&example.call, ""));
        let names = list(restricted.iter().map(|call| call.name));
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!(
                "io_uring bypasses restrictions{}: {names}",
                context.on(&arches)
            ),
            "requests in a ring are not system calls: no filter sees them",
            "deny `io_uring_setup`: programs fall back to system calls",
        );
        finding
            .relevance(Relevance::Intent)
            .examples(examples.into_iter().flatten())
            .places(place)
    };
    Ok(gaps.into_iter().map(finding).collect())
}
