//! Passes over rules: each alone on random rulesets, and possible bugs of each.

use std::collections::BTreeSet;

use tamis_abi::Endian;
use tamis_compiler::passes::registry::RULE_PASSES;
use tamis_compiler::passes::{PassCx, RulePass};
use tamis_compiler::stages;
use tamis_diag::Sources;
use tamis_prover::{Equality, Limits, Space};
use tamis_rules::{IntervalSet, Operand, Part, Ruleset, Test};
use tamis_testkit::generate::ruleset::{Size, call, entangled, ruleset};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// Whether two rulesets are equivalent; `None` if the prover reaches a limit.
fn are_equal(left: &Ruleset, right: &Ruleset) -> Option<bool> {
    let mut space = Space::new(Limits::default());
    let left = space.ruleset(left).ok()?;
    let right = space.ruleset(right).ok()?;
    Some(space.compare(left, right) == Equality::Equal)
}

/// The measure that passes reduce: rules, and tested intervals and words.
fn size(ruleset: &Ruleset) -> usize {
    let rules = ruleset.sections().iter().flat_map(|section| &section.rules);
    rules
        .map(|rule| 1 + rule.when.tests().map(asked).sum::<usize>())
        .sum()
}

fn asked(test: &Test) -> usize {
    let words = |operand: &Operand| if operand.part == Part::Full { 2 } else { 1 };
    match test {
        Test::In { operand, set } => {
            // An upper half is tested once for all of its lower halves.
            let borders = |set: &IntervalSet<u64>| {
                let halves = set.intervals().iter().map(|(first, _)| first >> 32);
                set.intervals().len() + (words(operand) - 1) * BTreeSet::from_iter(halves).len()
            };
            let possible: IntervalSet<u64> = [0..=Operand::max(*operand)].into_iter().collect();
            borders(set).min(borders(&possible.difference(set)))
        }
        Test::Compare { operand, .. } | Test::Masked { operand, .. } => words(operand),
        Test::Between { left, right, .. } => words(left).max(words(right)),
    }
}

fn run(ruleset: &Ruleset, pass: RulePass) -> Ruleset {
    stages::run_on_rules(ruleset, &[pass], &mut PassCx::new(None)).into_unproven()
}

#[test]
fn every_pass_alone_keeps_the_meaning_and_its_claims_on_random_rulesets() {
    let (mut proved, mut changed) = (0, vec![0; RULE_PASSES.len()]);
    for seed in seeds::selected(0..1500) {
        let mut rng = Rng::new(seed);
        let random = ruleset(&mut rng, Size::SMALL, Endian::Little);
        // Every other ruleset has conditions with shared parts, and is already simplified by the first pass.
        let before = if seed % 2 == 0 {
            random
        } else {
            run(&entangled(&mut rng, &random), RULE_PASSES[0])
        };
        for (place, pass) in RULE_PASSES.into_iter().enumerate() {
            let name = pass.info.name;
            let after = run(&before, pass);
            if after == before {
                continue;
            }
            changed[place] += seed % 2;
            assert!(
                size(&after) <= size(&before),
                "{name}, seed {seed}\n{before}\n{after}"
            );
            for _ in 0..20 {
                let data = call(&mut rng, &before);
                assert_eq!(
                    after.decide(&data).action,
                    before.decide(&data).action,
                    "{name}, seed {seed}, {data:x?}\n{before}\n{after}"
                );
            }
            let equal = are_equal(&before, &after);
            assert_ne!(equal, Some(false), "{name}, seed {seed}\n{before}\n{after}");
            proved += usize::from(equal.is_some());
            assert_eq!(run(&after, pass), after, "{name} again, seed {seed}");
        }
    }
    assert!(proved > seeds::least(1500), "{proved}");
    for (count, pass) in changed.iter().zip(RULE_PASSES).skip(1) {
        assert!(*count > 0, "{} {count}", pass.info.name);
    }
}

fn parse(rules: &str) -> Ruleset {
    let text = format!("ruleset bad-arch kill_process\nsection x86_64 default errno(1)\n{rules}\n");
    let mut sources = Sources::new();
    let source = sources.add("rules", text);
    tamis_rules::text::parse(&sources, source).expect("the text parses")
}

/// Possible bugs of each pass: the name of the bug, rules, and the result of the wrong pass.
const MISTAKES: [(&str, &str, &str); 20] = [
    (
        "wrong-odd-one-out-factored",
        "0 if any(all(arg0 == 1, arg1 == 2), all(arg0 == 1, arg1 == 3), all(arg2 == 1, arg1 == 4)): allow",
        "0 if all(arg0 == 1, any(arg1 == 2, arg1 == 3, arg1 == 4)): allow",
    ),
    (
        "common-part-lost",
        "0 if any(all(arg0 == 1, arg1 == 2), all(arg0 == 1, arg1 == 3)): allow",
        "0 if any(arg1 == 2, arg1 == 3): allow",
    ),
    (
        "empty-rest-forgotten",
        "0 if any(all(arg0 == 1, arg1 == 2), arg0 == 1): allow",
        "0 if all(arg0 == 1, arg1 == 2): allow",
    ),
    (
        "absorbed-the-wrong-way",
        "0 if all(arg0 == 1, any(arg0 == 1, arg1 == 2)): allow",
        "0 if any(arg0 == 1, arg1 == 2): allow",
    ),
    (
        "two-parts-dropped-because-of-each-other",
        "0 if all(arg0 == 1, arg0 in {1}): allow",
        "0: allow",
    ),
    (
        "low-half-taken-for-the-whole",
        "0 if all(arg0.low == 1, arg0 == 1): allow",
        "0 if arg0.low == 1: allow",
    ),
    (
        "multi-bit-mask-negated-bit-by-bit",
        "0 if all(not(arg0 & 3 == 0), arg0 & 1 == 0): allow",
        "0 if false: allow",
    ),
    (
        "mask-with-a-value-too-many",
        "0 if arg0 in {0, 1, 0x80}: allow",
        "0 if arg0 & 0xffffffffffffff7e == 0: allow",
    ),
    (
        "mask-of-the-lower-half-only",
        "0 if arg0 in {0, 1, 0x80, 0x81}: allow",
        "0 if arg0 & 0xffffff7e == 0: allow",
    ),
    (
        "rest-of-a-mask-lost",
        "0 if arg0 in {0, 1, 5, 0x80, 0x81}: allow",
        "0 if arg0 & 0xffffffffffffff7e == 0: allow",
    ),
    (
        "masks-two-bits-apart-united",
        "0 if any(arg0 & 5 == 0, arg0 & 5 == 5): allow",
        "0: allow",
    ),
    (
        "alternative-masks-merged-as-requirements",
        "0 if any(arg0 & 1 == 1, arg0 & 2 == 2): allow",
        "0 if arg0 & 3 == 3: allow",
    ),
    (
        "alternative-halves-joined",
        "0 if any(arg0.high == 0, arg0.low == 1): allow",
        "0 if arg0 == 1: allow",
    ),
    (
        "halves-swapped",
        "0 if all(arg0.high == 1, arg0.low == 2): allow",
        "0 if arg0 == 0x200000001: allow",
    ),
    (
        "list-negated-without-its-kind",
        "0 if not(all(arg0 == 1, arg1 == 2)): allow",
        "0 if all(arg0 != 1, arg1 != 2): allow",
    ),
    (
        "border-kept-in-an-opposite",
        "0 if not(arg0 < 5): allow",
        "0 if arg0 > 5: allow",
    ),
    (
        "rule-about-some-numbers-assumed",
        "9 if arg0 == 1: errno(2)\n9..10 if arg0 == 1: allow",
        "9 if arg0 == 1: errno(2)\n9..10 if false: allow",
    ),
    (
        "moved-past-another-action",
        "9 if arg0 == 1: allow\n9 if arg1 == 1: errno(2)\n9 if arg0 == 2: allow",
        "9 if any(arg0 == 1, arg0 == 2): allow\n9 if arg1 == 1: errno(2)",
    ),
    (
        "conditions-of-merged-rules-required-together",
        "9 if arg0 == 1: allow\n9 if arg1 == 1: allow",
        "9 if all(arg0 == 1, arg1 == 1): allow",
    ),
    (
        "default-rule-before-an-exception-dropped",
        "9 if arg0 == 1: errno(1)\n9: allow",
        "9: allow",
    ),
];

#[test]
fn the_prover_rejects_the_mistakes_that_passes_could_make() {
    for (name, before, wrong) in MISTAKES {
        let (before, wrong) = (parse(before), parse(wrong));
        assert_eq!(are_equal(&before, &wrong), Some(false), "{name}");
        let right =
            stages::run_on_rules(&before, &RULE_PASSES, &mut PassCx::new(None)).into_unproven();
        assert_eq!(are_equal(&before, &right), Some(true), "{name}");
    }
}
