//! How functions differ: results, scopes and the calls that difference.

use tamis_abi::Arch;
use tamis_analysis::{CaseLimits, differences};
use tamis_diag::Sources;
use tamis_prover::{ComparisonResult, Function, Limits, Scope, Space};

fn function(space: &mut Space, sections: &str) -> Function {
    let mut sources = Sources::new();
    let text = format!("ruleset bad-arch kill_process\n{sections}");
    let source = sources.add("rules", text);
    let ruleset = tamis_rules::text::parse(&sources, source).expect("the text parses");
    space.ruleset(&ruleset).expect("the space has room")
}

fn result_of(left: &str, right: &str, scope: &Scope) -> Option<ComparisonResult> {
    let mut space = Space::new(Limits::default());
    let (left, right) = (function(&mut space, left), function(&mut space, right));
    let comparison = space.comparison(left, right, scope).unwrap();
    for pair in comparison.pairs() {
        let example = pair.example.expect("constants are compared only");
        assert_eq!(space.value(left, &example), pair.left);
        assert_eq!(space.value(right, &example), pair.right);
    }
    comparison.result()
}

const BASE: &str = "section x86_64 default errno(1)\nread: allow\n";

#[test]
fn results_follow_the_kernels_order_of_actions() {
    let cases = [
        (BASE, ComparisonResult::Equal),
        (
            "section x86_64 default errno(2)\nread: allow\n",
            ComparisonResult::SameActions,
        ),
        (
            "section x86_64 default errno(1)\nread: log\n",
            ComparisonResult::Looser,
        ),
        (
            "section x86_64 default errno(1)\nread: allow\nwrite if arg0 == 0x1: log\n",
            ComparisonResult::Stricter,
        ),
        (
            "section x86_64 default errno(1)\nwrite: allow\n",
            ComparisonResult::Incomparable,
        ),
        (
            "section x86_64 default kill_thread\nread: allow\n",
            ComparisonResult::Looser,
        ),
    ];
    for (right, result) in cases {
        assert_eq!(
            result_of(BASE, right, &Scope::default()),
            Some(result),
            "{right}"
        );
    }
}

#[test]
fn scopes_leave_out_calls_and_data() {
    let other = "section x86_64 default errno(2)\nread: allow\nsection x86 default allow\n";
    let result = |arches: &[Arch], actions_only| {
        let arches = arches.to_vec();
        let scope = Scope {
            arches,
            actions_only,
            native_only: false,
        };
        result_of(BASE, other, &scope)
    };
    assert_eq!(result(&[], false), Some(ComparisonResult::Stricter));
    assert_eq!(
        result(&[Arch::X86_64], false),
        Some(ComparisonResult::SameActions)
    );
    assert_eq!(result(&[Arch::X86_64], true), Some(ComparisonResult::Equal));
    assert_eq!(
        result(&[Arch::X86_64, Arch::X86], true),
        Some(ComparisonResult::Stricter)
    );
    let x32 = format!("{BASE}section x32 default allow\n");
    let native = Scope {
        native_only: true,
        ..Scope::default()
    };
    assert_eq!(
        result_of(BASE, &x32, &Scope::default()),
        Some(ComparisonResult::Stricter)
    );
    assert_eq!(
        result_of(BASE, &x32, &native),
        Some(ComparisonResult::Equal)
    );
}

#[test]
fn changes_say_which_calls_differ_and_how() {
    let mut space = Space::new(Limits::default());
    let left = function(&mut space, BASE);
    let right = function(
        &mut space,
        "section x86_64 default errno(1)\nread, 3 if arg0.low == 0x7: allow\n",
    );
    let differences = differences(&mut space, left, right, &CaseLimits::default()).unwrap();
    assert!(differences.is_complete);
    let shown: Vec<String> = differences
        .list
        .iter()
        .map(|difference| {
            let when = difference.when.as_ref().expect("one test");
            let example = difference.example.expect("one argument");
            assert_eq!(space.value(left, &example), difference.left_ret);
            assert_eq!(space.value(right, &example), difference.right_ret);
            format!("{:?} {when}", difference.numbers.intervals())
        })
        .collect();
    assert_eq!(
        shown,
        ["[(0, 0)] arg0.low != 0x7", "[(3, 3)] arg0.low == 0x7"]
    );
}
