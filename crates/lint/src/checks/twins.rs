//! Finds calls that are restricted on purpose while another call with the same effect is open.
//!
//! Not reported are calls missing from an allow list, which may simply not be needed; denials with `ENOSYS`; and
//! twins that are restricted in another way.

use crate::code::LINT_TWIN;
use tamis_abi::{Arch, Word, signature, syscall};
use tamis_diag::words::list;

use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Place, Relevance};
use crate::registry::{Check, warning};
use crate::tables::any;
use crate::tables::twins::{self, EquivalentCalls};
use tamis_analysis::words;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "twins",
    LINT_TWIN,
    "a call is restricted, but an equivalent call is allowed",
    run,
);

/// A restricted call and an open one.
struct Gap {
    purposes: Vec<&'static str>,
    restricted: Vec<Call>,
    open: Vec<Call>,
    arches: Vec<Arch>,
}

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut gaps: Vec<Gap> = Vec::new();
    for arch in context.arches.clone() {
        for row in twins::ALL {
            collect(context, arch, row, &mut gaps)?;
        }
        for (_, name) in syscall::all(arch) {
            if let Some([base, variant]) = variant(arch, name) {
                let row = EquivalentCalls {
                    purpose: "do the same",
                    calls: &[any(base), any(variant)],
                    ways: &[],
                    common: &[],
                };
                collect(context, arch, &row, &mut gaps)?;
            }
        }
    }
    let merged = merged(gaps);
    Ok(merged.iter().map(|gap| finding(context, gap)).collect())
}

/// One gap for all rows with the same restricted calls.
fn merged(gaps: Vec<Gap>) -> Vec<Gap> {
    let mut merged: Vec<Gap> = Vec::new();
    for gap in gaps {
        let same = merged.iter_mut().find(|known| {
            names(&known.restricted) == names(&gap.restricted) && known.arches == gap.arches
        });
        let Some(known) = same else {
            merged.push(gap);
            continue;
        };
        let had = names(&known.open);
        let new = gap.open.into_iter();
        known
            .open
            .extend(new.filter(|call| !had.contains(&call.name)));
        known.purposes.extend(gap.purposes);
    }
    merged
}

fn names(calls: &[Call]) -> Vec<&'static str> {
    calls.iter().map(|call| call.name).collect()
}

/// A call and its variant with wider identifiers, offsets or times.
fn variant(arch: Arch, name: &'static str) -> Option<[&'static str; 2]> {
    let base = ["_time64", "64", "32"]
        .into_iter()
        .find_map(|suffix| name.strip_suffix(suffix))?;
    syscall::number(arch, base)?;
    Some([base, name])
}

/// Whether the conditions of a call, if any, test the arguments that it shares with its twins.
fn tests_common(context: &Context, call: &Call, row: &EquivalentCalls) -> bool {
    if call.access != Access::Conditional || row.common.is_empty() {
        return true;
    }
    let words = words(&context.space, call.function);
    let mut common = row.common.iter();
    common.any(|argument| {
        let index = signature::index(call.arch, call.name, argument);
        index.is_some_and(|index| {
            words.contains(&Word::arg_low(index)) || words.contains(&Word::arg_high(index))
        })
    })
}

fn collect(
    context: &mut Context,
    arch: Arch,
    row: &EquivalentCalls,
    gaps: &mut Vec<Gap>,
) -> Result<(), LimitReached> {
    let (mut restricted, mut open) = (Vec::new(), Vec::new());
    for form in row.calls {
        let Some(call) = context.form(arch, *form)? else {
            continue;
        };
        if call.access == Access::Open {
            open.push(call);
        } else if context.on_purpose(&call)? && tests_common(context, &call, row) {
            restricted.push(call);
        }
    }
    for form in row.ways {
        let call = context.form(arch, *form)?;
        open.extend(call.filter(|call| call.access == Access::Open));
    }
    if restricted.is_empty() || open.is_empty() {
        return Ok(());
    }
    let same = gaps.iter_mut().find(|gap| {
        names(&gap.open) == names(&open) && names(&gap.restricted) == names(&restricted)
    });
    match same {
        Some(gap) if gap.arches.contains(&arch) => {}
        Some(gap) => gap.arches.push(arch),
        None => gaps.push(Gap {
            purposes: vec![row.purpose],
            restricted,
            open,
            arches: vec![arch],
        }),
    }
    Ok(())
}

fn finding(context: &Context, gap: &Gap) -> Finding {
    let restricted = list(names(&gap.restricted));
    let open: Vec<String> = gap.open.iter().map(Call::label).collect();
    let open = list(open.iter().map(String::as_str));
    let are = |calls: &[Call]| if calls.len() == 1 { "is" } else { "are" };
    let message = format!(
        "{restricted} {} restricted, but {open} {} not{}",
        are(&gap.restricted),
        are(&gap.open),
        context.on(&gap.arches),
    );
    let examples = [
        context.example(&gap.restricted[0], false),
        context.example(&gap.open[0], true),
    ];
    let places = examples.iter().zip(["restricts one", "allows the other"]);
    let places: Vec<Place> = places
        .filter_map(|(example, label)| context.place(&(*example)?.call, label))
        .collect();
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        message,
        match gap.purposes.as_slice() {
            [purpose] => format!("all of them can {purpose}"),
            purposes => format!("they are ways to {}", purposes.join(", and to ")),
        },
        format!("restrict {open} in the same way, or deny unneeded calls"),
    );
    finding
        .relevance(Relevance::Intent)
        .examples(examples.into_iter().flatten())
        .places(places)
}
