//! Finds sockets of families that expose much of the kernel and that most programs don't need.
//!
//! One finding for each kind of family. Calls of `socketcall`, whose arguments are in memory, are left to another
//! check, and so is `socketpair`, which only few families implement.

use crate::code::LINT_ADDRESS_FAMILIES;
use tamis_abi::{Arch, Word, consts, signature};
use tamis_analysis::words;
use tamis_diag::Severity::{self, Note, Warning};
use tamis_diag::words::list;
use tamis_prover::{LimitReached, Limited};

use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Relevance};
use crate::registry::{Check, warning};
use crate::tables::any;
use crate::tables::families::{self, Families};

pub(crate) const CHECK: Check = warning(
    "address-families",
    LINT_ADDRESS_FAMILIES,
    "sockets of families that most programs don't need are allowed",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings = Vec::new();
    for row in families::ALL {
        findings.extend(finding(context, row)?);
    }
    Ok(findings)
}

/// The calls that make a socket of one of the families, with the names of the families.
struct OpenFamilies {
    names: Vec<&'static str>,
    calls: Vec<Call>,
    arches: Vec<Arch>,
    severity: Severity,
}

fn finding(context: &mut Context, row: &Families) -> Limited<Option<Finding>> {
    let open = open(context, row)?;
    let Some(first) = open.calls.first() else {
        return Ok(None);
    };
    let example = context.example(first, true);
    let place = example.and_then(|example| context.place(&example.call, "allowed here"));
    let relevance = match context.leaves_aside(&[any("socket")])? {
        true => Relevance::Aside,
        false => Relevance::General,
    };
    let on = context.on(&open.arches);
    let names = list(open.names.iter().copied());
    let finding = Finding::new(
        (CHECK.code, open.severity),
        format!("sockets that {} are allowed{on}: {names}", row.reach),
        row.reason,
        "list the families that the program needs: `allow socket(family in {AF_UNIX, AF_INET, AF_INET6})`",
    );
    let finding = finding.relevance(relevance).examples(example).places(place);
    Ok(Some(finding))
}

fn open(context: &mut Context, row: &Families) -> Limited<OpenFamilies> {
    let mut open = OpenFamilies {
        names: Vec::new(),
        calls: Vec::new(),
        arches: Vec::new(),
        severity: Note,
    };
    for arch in context.arches.clone() {
        let socket = context.call(arch, "socket");
        let family = signature::index(arch, "socket", "family");
        let Some((socket, family)) = socket.zip(family) else {
            continue;
        };
        for name in row.families {
            let Some(value) = consts::value(arch, name) else {
                continue;
            };
            let call = context.with_argument(socket, family, value as u32)?;
            if call.access == Access::Refused {
                continue;
            }
            open.calls.push(call);
            if !open.names.contains(name) {
                open.names.push(name);
            }
            if !open.arches.contains(&arch) {
                open.arches.push(arch);
            }
            let is_chosen = words(&context.space, socket.function).contains(&Word::arg_low(family));
            if row.is_grave && is_chosen {
                open.severity = Warning;
            }
        }
    }
    Ok(open)
}
