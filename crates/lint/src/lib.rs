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
pub use tamis_prover::{LimitReached, Limits};

use context::Context;
use tamis_diag::Severity;

/// What the checks find, the worst first, then by place.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_lint::{Limits, Meaning, Subject, registry};
/// use tamis_rules::{Ruleset, Section};
///
/// let section = Section { arch: Arch::X86_64, rules: vec![], default: Action::ALLOW };
/// let ruleset = Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap();
/// let subject = Subject { meaning: Meaning::Policy(&ruleset), assumed_arch: Arch::X86_64 };
/// let findings = tamis_lint::run(&subject, &registry::ALL, Limits::default()).unwrap();
/// assert!(findings.iter().any(|finding| finding.code.id == "TM0718"));
/// ```
///
/// # Errors
/// If the diagrams of the filter need more room than allowed.
pub fn run(
    subject: &Subject,
    checks: &[Check],
    limits: Limits,
) -> Result<Vec<Finding>, LimitReached> {
    let mut context = Context::new(*subject, limits)?;
    let mut findings = Vec::new();
    for check in checks {
        findings.extend((check.run)(&mut context)?);
    }
    // Stable: findings of one check keep its order where nothing else tells.
    findings.sort_by_key(|finding| {
        let line = finding.places.first().map(Place::order);
        (std::cmp::Reverse::<Severity>(finding.severity), line)
    });
    Ok(findings)
}
