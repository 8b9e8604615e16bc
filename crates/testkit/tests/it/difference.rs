//! How functions differ: verdicts, scopes and the calls that difference.

use tamis_abi::Arch;
use tamis_analysis::{CaseLimits, differences};
use tamis_diag::Sources;
use tamis_prover::{Function, Limits, Scope, Space, Verdict};

fn function(space: &mut Space, sections: &str) -> Function {
    let mut sources = Sources::new();
    let text = format!("ruleset bad-arch kill_process\n{sections}");
    let source = sources.add("rules", text);
    let ruleset = tamis_rules::text::parse(&sources, source).expect("the text parses");
    space.ruleset(&ruleset).expect("the space has room")
}

fn verdict_of(left: &str, right: &str, scope: &Scope) -> Option<Verdict> {
    let mut space = Space::new(Limits::default());
    let (left, right) = (function(&mut space, left), function(&mut space, right));
    let comparison = space.comparison(left, right, scope).unwrap();
    for pair in comparison.pairs() {
        let example = pair.example.expect("constants are compared only");
        assert_eq!(space.value(left, &example), pair.left);
        assert_eq!(space.value(right, &example), pair.right);
    }
    comparison.verdict()
}

const BASE: &str = "section x86_64 default errno(1)\nread: allow\n";

#[test]
fn verdicts_follow_the_kernels_order_of_actions() {
    let cases = [
        (BASE, Verdict::Equal),
        (
            "section x86_64 default errno(2)\nread: allow\n",
            Verdict::SameActions,
        ),
        (
            "section x86_64 default errno(1)\nread: log\n",
            Verdict::Looser,
        ),
        (
            "section x86_64 default errno(1)\nread: allow\nwrite if arg0 == 0x1: log\n",
            Verdict::Stricter,
        ),
        (
            "section x86_64 default errno(1)\nwrite: allow\n",
            Verdict::Incomparable,
        ),
        (
            "section x86_64 default kill_thread\nread: allow\n",
            Verdict::Looser,
        ),
    ];
    for (right, verdict) in cases {
        assert_eq!(
            verdict_of(BASE, right, &Scope::default()),
            Some(verdict),
            "{right}"
        );
    }
}

#[test]
fn scopes_leave_out_calls_and_data() {
    let other = "section x86_64 default errno(2)\nread: allow\nsection x86 default allow\n";
    let verdict = |arches: &[Arch], actions_only| {
        let arches = arches.to_vec();
        let scope = Scope {
            arches,
            actions_only,
            native_only: false,
        };
        verdict_of(BASE, other, &scope)
    };
    assert_eq!(verdict(&[], false), Some(Verdict::Stricter));
    assert_eq!(verdict(&[Arch::X86_64], false), Some(Verdict::SameActions));
    assert_eq!(verdict(&[Arch::X86_64], true), Some(Verdict::Equal));
    assert_eq!(
        verdict(&[Arch::X86_64, Arch::X86], true),
        Some(Verdict::Stricter)
    );
    let x32 = format!("{BASE}section x32 default allow\n");
    let native = Scope {
        native_only: true,
        ..Scope::default()
    };
    assert_eq!(
        verdict_of(BASE, &x32, &Scope::default()),
        Some(Verdict::Stricter)
    );
    assert_eq!(verdict_of(BASE, &x32, &native), Some(Verdict::Equal));
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
