//! Finds deny lists that are older than the kernel: it has calls that came after the newest one that the list treats in a
//! way of its own, and the list allows them by its default.
//!
//! Filters that deny only some arguments of calls, such as address families, are no such lists. The kernel is an input;
//! without it nothing is reported.

use std::collections::BTreeSet;

use crate::code::LINT_OUTDATED_LIST;
use tamis_abi::{Arch, KernelVersion, syscall};
use tamis_diag::words::list;
use tamis_prover::{Function, LimitReached, Limited};

use super::needs::main_arches;
use crate::context::{Access, Call, Context};
use crate::finding::Finding;
use crate::registry::{Check, warning};
use crate::tables::{Form, dangerous, twins};

pub(crate) const CHECK: Check = warning(
    "outdated-list",
    LINT_OUTDATED_LIST,
    "a deny list is older than calls of the kernel (with `--target linux-VERSION`)",
    run,
);

/// Calls that no kernel of today executes.
const UNIMPLEMENTED: [&str; 5] = ["afs_syscall", "getpmsg", "nfsservctl", "putpmsg", "vserver"];

/// The calls that a deny list doesn't consider.
struct Later {
    /// The kernel that brought the newest call of the list.
    newest: KernelVersion,
    calls: Vec<Call>,
}

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let Some(kernel) = context.kernel else {
        return Ok(Vec::new());
    };
    let mut findings: Vec<(Later, Finding)> = Vec::new();
    for arch in main_arches(context) {
        let Some(later) = later(context, arch, kernel)? else {
            continue;
        };
        let names = |later: &Later| later.calls.iter().map(|call| call.name).collect::<Vec<_>>();
        // One finding for all architectures.
        if findings
            .iter()
            .any(|(known, _)| names(known) == names(&later))
        {
            continue;
        }
        let example = context.example(&later.calls[0], true);
        let place = example.and_then(|example| context.place(&example.call, "allowed here"));
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!(
                "the deny list is older than Linux {kernel}: by default it allows {} that came after Linux {}: {}",
                counted(later.calls.len()),
                later.newest,
                list(names(&later))
            ),
            "later calls may do what the list denies: nobody has reviewed them for it",
            format!(
                "review them, and state the kernel of the review, so that later calls get ENOSYS: `known-until linux {kernel}`; or \
                 list what is allowed"
            ),
        );
        findings.push((later, finding.examples(example).places(place)));
    }
    Ok(findings.into_iter().map(|(_, finding)| finding).collect())
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    }
}

/// The later calls that a deny list allows by default, those that are related to denied ones first; `None` if
/// there are none, or the filter is no deny list.
fn later(context: &mut Context, arch: Arch, kernel: KernelVersion) -> Limited<Option<Later>> {
    let calls = context.calls_of(arch)?;
    if !calls.iter().any(|call| call.access == Access::Refused) {
        return Ok(None);
    }
    let Some(default) = open_default(context, arch, &calls)? else {
        return Ok(None);
    };
    let Some(newest) = newest_treated(&calls, default).max(context.known_until) else {
        return Ok(None);
    };
    let is_later = |call: &Call| {
        let since = syscall::since(arch, call.nr);
        let is_new = since.is_some_and(|since| since > newest && since <= kernel);
        is_new && call.function == default
    };
    let mut later: Vec<Call> = calls.into_iter().filter(is_later).collect();
    let related = related(context, arch);
    later.sort_by_key(|call| !related.contains(call.name));
    Ok((!later.is_empty()).then_some(Later {
        newest,
        calls: later,
    }))
}

/// The function of the named calls that a filter doesn't consider, if it is a deny list, which executes them.
///
/// A list may deny unknown numbers nevertheless. A policy has its default then; a program has none, so calls without an
/// implementation decide, which no list of allowed calls has.
fn open_default(context: &mut Context, arch: Arch, calls: &[Call]) -> Limited<Option<Function>> {
    if context.allows_by_default(arch)? {
        let (_, unknown) = context.unknown_call(arch)?;
        return Ok(Some(unknown));
    }
    if let Some(policy) = context.policy() {
        let mut sections = policy.sections().iter();
        let default = sections.find(|section| section.arch == arch);
        let default = default.map(|section| section.default);
        let Some(default) = default.filter(|default| default.kind.executes()) else {
            return Ok(None);
        };
        return context.space.constant(default.ret()).map(Some);
    }
    let mut unimplemented = calls
        .iter()
        .filter(|call| UNIMPLEMENTED.contains(&call.name));
    let Some(first) = unimplemented.next() else {
        return Ok(None);
    };
    let is_default =
        first.access == Access::Open && unimplemented.all(|call| call.function == first.function);
    Ok(is_default.then_some(first.function))
}

/// The kernel of the newest call that a filter treats otherwise than by default.
fn newest_treated(calls: &[Call], default: Function) -> Option<KernelVersion> {
    let treated = calls.iter().filter(|call| call.function != default);
    treated
        .filter_map(|call| syscall::since(call.arch, call.nr))
        .max()
}

/// The calls that do what a denied call does, or have the same power.
fn related(context: &Context, arch: Arch) -> BTreeSet<&'static str> {
    let twins = twins::ALL.iter().map(|row| [row.calls, row.ways]);
    let dangerous = dangerous::ALL.iter().map(|row| [row.calls, &[]]);
    let is_denied = |form: &Form| {
        let call = context.call(arch, form.call);
        call.is_some_and(|call| call.access != Access::Open)
    };
    let rows = twins.chain(dangerous);
    let rows = rows.filter(|[calls, _]| calls.iter().any(is_denied));
    rows.flatten().flatten().map(|form| form.call).collect()
}
