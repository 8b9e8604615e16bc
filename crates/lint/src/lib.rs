//! Lint: what is legal in a policy or program and still probably not meant.
//!
//! A check looks at what a filter *does*: it asks the prover's diagrams, which know the answer to every
//! call, so it finds a gap however the rules or instructions are written, and finds the same in a policy
//! and in the program made from it. Checks about single rules exist for policies only. Every example
//! call in a finding has been put to the evaluator of rulesets or to the reference interpreter.
//!
//! [`run`] runs the checks of the [`registry`], one file each in `checks`; a new check is a copy of the
//! file beside it, a code in `tamis_diag::code`, a row in the registry and a folder of goldens. What
//! checks know about system calls stands in `tables`, as data.
#![forbid(unsafe_code)]

mod checks;
mod context;
pub mod finding;
pub mod registry;
mod rules_view;
mod subject;
mod tables;

pub use finding::{Example, Finding, Place};
pub use registry::Check;
pub use subject::{Meaning, Subject};
pub use tamis_prover::{LimitReached, Limits, Stop};

use context::Context;
use tamis_diag::Severity;

/// Runs checks.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_lint::{Limits, Meaning, Stop, Subject, registry};
/// use tamis_rules::{Ruleset, Section};
///
/// let section = Section { arch: Arch::X86_64, rules: vec![], default: Action::ALLOW };
/// let ruleset = Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap();
/// let subject = Subject { meaning: Meaning::Policy(&ruleset), assumed_arch: Arch::X86_64 };
/// let found = tamis_lint::run(&subject, &registry::ALL, Limits::default(), Stop::default()).unwrap();
/// assert!(found.findings.iter().any(|finding| finding.code.id == "TM0718"));
/// assert!(found.gaps.is_empty());
/// ```
///
/// # Errors
/// If the diagrams of the filter need more room or time than allowed, even without the answers that it
/// computes.
pub fn run(
    subject: &Subject,
    checks: &[Check],
    limits: Limits,
    stop: Stop,
) -> Result<Found, LimitReached> {
    let mut context = Context::new(*subject, limits, stop)?;
    let mut findings = Vec::new();
    let mut gaps: Vec<String> = context.gap().into_iter().collect();
    for check in checks {
        match (check.run)(&mut context) {
            Ok(found) => findings.extend(found),
            Err(limit) => gaps.push(format!("{} was not checked: {limit}", check.name)),
        }
    }
    // Stable: findings of one check keep its order where nothing else tells.
    findings.sort_by_key(|finding| {
        let line = finding.places.first().map(Place::order);
        (std::cmp::Reverse::<Severity>(finding.severity), line)
    });
    Ok(Found { findings, gaps })
}

/// What checks found, and what they did not look at.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was found, the worst first, then by place.
    pub findings: Vec<Finding>,
    /// What was not looked at and why, for a person; nothing of most filters.
    pub gaps: Vec<String>,
}
