//! Lint: finds legal but probably unintended parts of policies and programs.
//!
//! A check examines the *function* of a filter with the prover's diagrams, which cover every call. So it finds a
//! gap in any form of rules or instructions, and finds the same in a policy and in the program compiled from it.
//! Checks of single rules exist for policies only. Every example call in a finding has been confirmed by the
//! evaluator of rulesets or by the reference interpreter.
//!
//! [`run`] runs the checks of the [`registry`], one file each in `checks`; a new check is a copy of a similar file,
//! a code in `crate::code`, a row in the registry and a folder of goldens. Facts about system calls are data
//! in `tables`.
#![forbid(unsafe_code)]

pub mod advisories;
mod checks;
pub mod code;
mod context;
pub mod finding;
pub mod registry;
mod rules_view;
mod subject;
mod tables;
mod target;

pub use finding::{Example, Finding, Place, Relevance};
pub use registry::Check;
pub use subject::{LintInput, Meaning, Runtime, Statements};
pub use tables::is_essential;
pub use tamis_prover::{LimitReached, Limits, Stop};
pub use target::{Target, UnknownTarget, Version};

use context::Context;
use tamis_diag::Severity;

/// Runs checks.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_lint::{Limits, LintInput, Meaning, Statements, Stop, registry};
/// use tamis_rules::{Ruleset, Section};
///
/// let section = Section { arch: Arch::X86_64, rules: vec![], default: Action::ALLOW };
/// let ruleset = Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap();
/// let subject = LintInput {
///     meaning: Meaning::Policy(&ruleset),
///     statements: Statements::Rules,
///     known_until: None,
///     assumed_arch: Arch::X86_64,
///     runtime: None,
///     kernel: None,
///     targets: &[],
/// };
/// let found = tamis_lint::run(&subject, &registry::ALL, Limits::default(), Stop::default()).unwrap();
/// assert!(found.findings.iter().any(|finding| finding.code.id == "TM0718"));
/// assert!(found.gaps.is_empty());
/// ```
///
/// # Errors
/// If the diagrams of the filter exceed the limits of size or time, even without the computed return values of a program
/// and without the calls of a policy that exceed a sixteenth of the limits of size by themselves.
pub fn run(
    subject: &LintInput,
    checks: &[Check],
    limits: Limits,
    stop: Stop,
) -> Result<Findings, LimitReached> {
    let found = run_each(subject, checks, limits, stop)?;
    let mut findings: Vec<Finding> = found.findings.into_iter().flatten().collect();
    // Stable: otherwise equal findings keep the order of the check.
    findings.sort_by_key(|finding| {
        let line = finding.places.first().map(Place::order);
        let severity = std::cmp::Reverse::<Severity>(finding.severity);
        (severity, finding.relevance, line)
    });
    Ok(Findings {
        findings,
        gaps: found.gaps,
    })
}

/// The findings of each check, and the parts that were not checked.
struct FoundByCheck {
    /// In the order of the checks.
    findings: Vec<Vec<Finding>>,
    gaps: Vec<String>,
}

fn run_each(
    subject: &LintInput,
    checks: &[Check],
    limits: Limits,
    stop: Stop,
) -> Result<FoundByCheck, LimitReached> {
    let simpler;
    let mut context = match Context::new(*subject, limits, stop.clone()) {
        Ok(context) => context,
        Err(limit @ (LimitReached::Stopped | LimitReached::Memory)) => return Err(limit),
        Err(limit) => {
            let found = subject.meaning.without_complex_calls(limits, &stop)?;
            let (policy, mark) = found.ok_or(limit)?;
            simpler = policy;
            let meaning = Meaning::Policy(&simpler);
            Context::marked(
                LintInput {
                    meaning,
                    ..*subject
                },
                mark,
                limits,
                stop,
            )?
        }
    };
    let mut findings = Vec::new();
    let mut gaps: Vec<String> = context.gap().into_iter().collect();
    for check in checks {
        let found = context
            .space
            .check_stop()
            .and_then(|()| (check.run)(&mut context));
        match found {
            Ok(found) => findings.push(found),
            Err(limit) => {
                findings.push(Vec::new());
                gaps.push(format!("{} was not checked: {limit}", check.name));
            }
        }
    }
    Ok(FoundByCheck { findings, gaps })
}

/// The findings, and the parts that were not checked.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The findings, the most severe first, then the most relevant, then by place.
    pub findings: Vec<Finding>,
    /// Parts that were not checked, with the reason, as text; empty for most filters.
    pub gaps: Vec<String>,
}
