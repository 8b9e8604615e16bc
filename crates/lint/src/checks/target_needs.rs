//! Finds denied calls that a named program or library needs in its version, with the error after which it goes on.
//!
//! A call counts as denied if no call of the need is executed, with arguments as programs pass them. Calls that a supervisor, a tracer or a handler answers
//! are not reported.

use crate::code::LINT_TARGET_NEEDS;
use tamis_abi::{Action, ActionKind, Arch, consts, errno, signature};
use tamis_analysis::Passed;
use tamis_diag::Severity;
use tamis_diag::words::joined;
use tamis_prover::{Function, LimitReached, Limited};
use tamis_rules::{CmpOp, Operand, Predicate, Test};

use crate::context::{Call, Context};
use crate::finding::Finding;
use crate::registry::{Check, warning};
use crate::subject::unused;
use crate::tables::needs::{Condition, Fallback, ROWS, Row};
use crate::target::Target;

pub(crate) const CHECK: Check = warning(
    "target-needs",
    LINT_TARGET_NEEDS,
    "a call is denied that a named program or library needs (with `--target`)",
    run,
);

/// A denied need of a target on some architectures.
struct Denied {
    row: &'static Row,
    call: Call,
    arches: Vec<Arch>,
    /// Whether the target survives the answer.
    falls_back: bool,
}

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings = Vec::new();
    let mut passed = Passed::default();
    for target in context.targets {
        let mut denied: Vec<Denied> = Vec::new();
        let is_needed = |row: &&Row| {
            let has_ended = row
                .until
                .as_ref()
                .is_some_and(|last| !target.is_until(last));
            row.who == target.name && target.is_since(&row.since) && !has_ended
        };
        for row in ROWS.iter().filter(is_needed) {
            for arch in context.arches.clone() {
                if row.is_of(arch) {
                    collect(context, &mut passed, (row, arch), &mut denied)?;
                }
            }
        }
        findings.extend(denied.iter().map(|denied| finding(context, target, denied)));
    }
    Ok(findings)
}

fn collect(
    context: &mut Context,
    passed: &mut Passed,
    (row, arch): (&'static Row, Arch),
    denied: &mut Vec<Denied>,
) -> Limited<()> {
    let Some(call) = context.call(arch, row.call) else {
        return Ok(());
    };
    let Some(needed) = needed(context, passed, &call, row.when)? else {
        return Ok(());
    };
    let answers = answers(context, &call, needed)?;
    let is_denial = |action: &Action| {
        let kind = action.kind;
        matches!(
            kind,
            ActionKind::Errno | ActionKind::KillProcess | ActionKind::KillThread
        )
    };
    if answers.is_empty() || !answers.iter().all(is_denial) {
        return Ok(());
    }
    // An example must be one of the needed calls.
    let other = context.space.constant(Action::ALLOW.ret())?;
    let function = context.space.choose(needed, call.function, other)?;
    let falls_back = answers
        .iter()
        .all(|answer| is_survived(row.fallback, *answer, arch));
    let is_same = |known: &&mut Denied| {
        let (own, other) = (
            row.when.map(|when| when.text),
            known.row.when.map(|when| when.text),
        );
        known.row.call == row.call
            && own == other
            && known.falls_back == falls_back
            && known.row.why == row.why
    };
    match denied.iter_mut().find(is_same) {
        Some(known) => known.arches.push(arch),
        None => denied.push(Denied {
            row,
            call: Call { function, ..call },
            arches: vec![arch],
            falls_back,
        }),
    }
    Ok(())
}

/// The calls that a target makes: their arguments are as programs pass them, and a condition may select some; `None` if it
/// has no meaning on the architecture.
fn needed(
    context: &mut Context,
    passed: &mut Passed,
    call: &Call,
    when: Option<Condition>,
) -> Limited<Option<Function>> {
    let space = &mut context.space;
    let passed = passed.condition(space, call.arch, Some(call.name))?;
    let Some(when) = when else {
        return Ok(Some(passed));
    };
    let index = signature::index(call.arch, call.name, when.argument);
    let Some((index, (mask, value))) = index.zip(when.numbers(call.arch)) else {
        return Ok(None);
    };
    let equal = Predicate::Test(Test::Masked {
        operand: Operand::arg_low(index),
        mask: u64::from(mask),
        value: u64::from(value),
    });
    let selected = match when.op {
        CmpOp::Ne => Predicate::Not(Box::new(equal)),
        _ => equal,
    };
    let selected = space.condition(&selected)?;
    Ok(Some(space.choose(passed, selected, Function::FALSE)?))
}

/// The actions of some calls.
fn answers(context: &mut Context, call: &Call, some: Function) -> Limited<Vec<Action>> {
    let all = context.space.values(call.function);
    let mark = unused(|ret| all.contains(&ret));
    let other = context.space.constant(mark)?;
    let function = context.space.choose(some, call.function, other)?;
    let mut values = context.space.values(function);
    values.remove(&mark);
    Ok(values.into_iter().map(Action::from_ret).collect())
}

/// Whether a program goes on after an action.
fn is_survived(fallback: Fallback, answer: Action, arch: Arch) -> bool {
    let has_number = |name: &str| match name {
        "ENOSYS" => answer == Action::errno(errno::enosys(arch)),
        name => {
            let value = consts::value(arch, name).and_then(|value| u16::try_from(value).ok());
            value.is_some_and(|value| answer == Action::errno(value))
        }
    };
    answer.kind == ActionKind::Errno
        && match fallback {
            Fallback::AnyError => true,
            Fallback::Errors(names) => names.split(", ").any(has_number),
            Fallback::No => false,
        }
}

/// Whether only programs that use a rare function need a call: it is that function, or the target has other uses of the call
/// without which it goes on.
fn is_optional(row: &Row) -> bool {
    let is_other_use = |other: &&Row| {
        (other.who, other.call) == (row.who, row.call) && other.fallback != Fallback::No
    };
    row.fallback == Fallback::No
        && (row.why.starts_with(row.call) || ROWS.iter().any(|other| is_other_use(&other)))
}

fn finding(context: &Context, target: &Target, denied: &Denied) -> Finding {
    let Denied {
        row,
        call,
        arches,
        falls_back,
    } = denied;
    let call_text = match row.when {
        None => row.call.to_owned(),
        Some(when) => format!("{}({})", row.call, when.text),
    };
    let on = context.on(arches);
    let example = context.example(call, false);
    let action = example.map_or_else(String::new, |example| format!(" with {}", example.action));
    let names = match row.fallback {
        Fallback::Errors(names) => names.split(", ").collect(),
        Fallback::AnyError | Fallback::No => vec!["ENOSYS"],
    };
    let names = joined(&names, "or");
    let falls = match row.fallback {
        Fallback::AnyError => "it goes on after any error, not after a kill".to_owned(),
        Fallback::Errors(_) => format!("it falls back after {names} only"),
        Fallback::No => "nothing replaces the call".to_owned(),
    };
    let remark = row
        .remark
        .map_or_else(String::new, |remark| format!(" ({remark})"));
    let help = match row.fallback {
        Fallback::No => format!("allow `{call_text}`"),
        _ if *falls_back => format!("allow `{call_text}` if the fallback is slower or does less"),
        _ => format!("allow `{call_text}`, or answer {names}"),
    };
    let is_optional = is_optional(row);
    let severity = match *falls_back || is_optional {
        true => Severity::Note,
        false => CHECK.severity,
    };
    let since = match row.since.is_zero() {
        true => String::new(),
        false => format!(" since {}", row.since),
    };
    let finding = Finding::new(
        (CHECK.code, severity),
        format!(
            "`{call_text}` is denied{action}{on}, and {} needs it{since}",
            target.name
        ),
        format!("{}: {falls}{remark}; source: {}", row.why, row.source),
        help,
    );
    let place = example.and_then(|example| context.place(&example.call, ""));
    finding.examples(example).places(place)
}
