//! Resources of the security-profiles-operator against its schema, and the profile that it writes for the runtime.

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, Sources};
use tamis_policy::oci::{self, OciOptions, ParsedProfile};
use tamis_policy::spo;
use tamis_prover::{ComparisonResult, Limits, Scope, Subject, prove};
use tamis_testkit::generate::spo::{Resource, resource};
use tamis_testkit::oracle::{Class, Classes};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// Random resources; only `.ci/run full` tries all.
const RANDOM: u64 = 1000;

fn read(
    text: &str,
    parse: fn(&Sources, tamis_diag::SourceId, &OciOptions) -> ParsedProfile,
) -> ParsedProfile {
    let mut sources = Sources::new();
    let source = sources.add("profile", text);
    parse(&sources, source, &OciOptions::docker(Arch::X86_64))
}

/// The class of a resource: it is the profile, or refused as that is.
fn class(resource: &Resource) -> Class {
    let ours = read(&resource.text, spo::parse).parsed;
    let Some(profile) = &resource.profile else {
        return match ours.ruleset {
            None => Class::BothRefuse,
            Some(_) => Class::Wrong("the schema refuses it".to_owned()),
        };
    };
    match (ours.ruleset, read(profile, oci::parse).parsed.ruleset) {
        (None, None) => Class::BothRefuse,
        (Some(ours), Some(theirs)) => {
            let sides = [&ours, &theirs].map(Subject::Ruleset);
            let report = prove(&sides[0], &sides[1], &Scope::default(), &Limits::default());
            match report.result {
                Ok(ComparisonResult::Equal) => Class::Equal,
                _ => Class::Wrong(format!("{report:x?}\n{profile}")),
            }
        }
        (None, Some(_)) if resource.text.contains(": 0x") => {
            Class::Stricter("numbers that are not decimal are errors")
        }
        (ours, _) => {
            let errors = ours_errors(&resource.text);
            Class::Wrong(format!(
                "it is read: {}: {errors:?}\n{profile}",
                ours.is_some()
            ))
        }
    }
}

fn ours_errors(text: &str) -> Vec<String> {
    let diagnostics = read(text, spo::parse).parsed.diagnostics;
    let errors = diagnostics.into_iter().filter(Diagnostic::is_error);
    errors.map(|error| error.message).collect()
}

#[test]
fn random_resources_are_the_profiles_that_the_operator_writes() {
    let mut classes = Classes::default();
    for seed in seeds::selected(0..RANDOM) {
        let resource = resource(&mut Rng::new(seed));
        classes.add(class(&resource), &resource.text);
    }
    classes.check();
    classes.check_row("spo", "its schema, v0.9.1", 0);
}
