//! Random plain rulesets in every language, and back: each language can express many of them, with the same meaning.

use tamis_policy::front_end;
use tamis_prover::{ComparisonResult, Scope, Subject, prove};
use tamis_testkit::generate::plain::plain;
use tamis_testkit::languages;
use tamis_testkit::rng::Rng;

const RULESETS: u64 = 300;

#[test]
fn every_language_says_what_plain_rulesets_mean() {
    for language in &languages::ALL {
        let mut said = 0;
        for seed in 0..RULESETS {
            let ruleset = plain(&mut Rng::new(seed));
            let Some(text) = (language.print)(&ruleset) else {
                continue;
            };
            let parsed = language.parse(&text);
            let parsed = parsed.unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}"));
            let scope = Scope {
                arches: vec![ruleset.sections()[0].arch],
                ..Scope::default()
            };
            let subjects = [&ruleset, &parsed].map(Subject::Ruleset);
            let limits = tamis_prover::Limits::default();
            let report = prove(&subjects[0], &subjects[1], &scope, &limits);
            assert_eq!(report.result, Ok(ComparisonResult::Equal), "{text}");
            said += 1;
        }
        println!(
            "{}: {said} of {RULESETS} said, all with the same meaning",
            language.name
        );
        let is_enough = match language.has_all_plain {
            true => said == RULESETS,
            false => said >= 10,
        };
        assert!(is_enough, "{}: {said}", language.name);
    }
}

#[test]
fn every_language_that_is_read_is_printed() {
    for front_end in front_end::ALL {
        let is_printed = languages::ALL
            .iter()
            .any(|language| language.name == front_end.name);
        assert!(is_printed, "{}", front_end.name);
    }
}
