//! Finds calls that are allowed only with a sign extension of a negative argument that programs don't use.
//!
//! The kernel reads 32 bits of an `int`, a filter sees 64. Compiled C fills the register by the convention of its
//! architecture: `openat(AT_FDCWD)` of x86_64 has 0xffffff9c, of s390x 0xffffffffffffff9c. A filter that executes only
//! the other form denies the call to those programs. Denials of further upper bits are reported by `wide-comparison`.

use std::collections::BTreeSet;

use crate::code::LINT_SIGN_EXTENSION;
use tamis_abi::signature::{self, Width};
use tamis_abi::{Arch, SeccompData};
use tamis_analysis::find;
use tamis_diag::Severity;
use tamis_diag::words::list;
use tamis_prover::LimitReached;

use super::needs::is_executed as starts;
use super::upper_half::{Narrow, narrow_arguments};
use crate::context::{Context, is_executed};
use crate::finding::{Example, Finding};
use crate::registry::{Check, warning};
use crate::tables::start_up::STARTS;

pub(crate) const CHECK: Check = warning(
    "sign-extension",
    LINT_SIGN_EXTENSION,
    "a negative argument is allowed only with upper bits that programs don't pass",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut arguments = BTreeSet::new();
    let mut arches: Vec<Arch> = Vec::new();
    let mut shown: Option<[Example; 2]> = None;
    for narrow in narrow_arguments(context)? {
        let arch = narrow.call.arch;
        if !arch.has_64_bit_registers() || narrow.width != Width::Bits32 {
            continue;
        }
        let Some(pair) = pair(context, &narrow)? else {
            continue;
        };
        shown.get_or_insert(pair);
        arguments.insert(format!("{}({})", narrow.call.name, narrow.name));
        if !arches.contains(&arch) {
            arches.push(arch);
        }
    }
    let Some(pair) = shown else {
        return Ok(Vec::new());
    };
    let arguments = list(&arguments);
    let place = context.place(&pair[1].call, "");
    // A program that installs its own filter may need only the form of its own language.
    let mut started = arches.iter();
    let is_for_all = started.any(|arch| STARTS.iter().any(|name| starts(context, *arch, name)));
    let severity = if is_for_all {
        CHECK.severity
    } else {
        Severity::Note
    };
    let finding = Finding::new(
        (CHECK.code, severity),
        format!(
            "negative values are allowed only with other upper bits than programs pass{}: {arguments}",
            context.on(&arches)
        ),
        "the kernel reads the lower 32 bits, so both are the same call to it; compiled C of most libraries passes the first, and is denied",
        "compare the lower half only: by name in the tamis language, with SCMP_CMP_MASKED_EQ and 4294967295 in an OCI profile",
    );
    Ok(vec![finding.examples(pair).places(place)])
}

/// Two calls that are equal for the kernel: denied in the form of compiled C, executed with the other upper bits.
fn pair(context: &Context, narrow: &Narrow) -> Result<Option<[Example; 2]>, LimitReached> {
    let arch = narrow.call.arch;
    let is_extended = signature::passed(arch, u64::from(u32::MAX)) == u64::MAX;
    let wanted = |values: &[u32]| {
        let [_, clear, ones, negative] = values else {
            return false;
        };
        let (passed, other) = match is_extended {
            true => (*ones, *clear),
            false => (*clear, *ones),
        };
        *negative == 1 && is_executed(other) && !is_executed(passed)
    };
    let Some(found) = find(&context.space, &narrow.functions(), &wanted)? else {
        return Ok(None);
    };
    let data = narrow.call.complete(found.data);
    let with = |upper: u64| {
        let mut data: SeccompData = data;
        let value = &mut data.args[narrow.index.index()];
        *value = (*value & u64::from(u32::MAX)) | upper;
        context.answer(&data)
    };
    let ones = !u64::from(u32::MAX);
    let (passed, other) = match is_extended {
        true => (with(ones), with(0)),
        false => (with(0), with(ones)),
    };
    let is_denied = !is_executed(passed.action.ret()) && is_executed(other.action.ret());
    Ok(is_denied.then_some([passed, other]))
}
