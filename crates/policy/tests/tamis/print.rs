//! The canonical text of a policy parses back to the same policy.

use tamis_abi::Arch;
use tamis_diag::Sources;
use tamis_policy::embedded;
use tamis_policy::tamis::{parse_syntax, print};
use tamis_rules::Ruleset;

use crate::ruleset;

/// Prints the syntax of a text without mistakes.
#[track_caller]
fn printed(text: &str) -> String {
    let mut sources = Sources::new();
    let source = sources.add("a.tamis", text);
    let (policy, diagnostics) = parse_syntax(&sources, source);
    assert_eq!(diagnostics, [], "{text}");
    print::policy(&policy)
}

/// The meaning alone: printing moves rules to other lines.
fn without_origins(ruleset: &Ruleset) -> String {
    let mut sections = ruleset.sections().to_vec();
    for rule in sections.iter_mut().flat_map(|section| &mut section.rules) {
        rule.origin = None;
    }
    format!("{sections:?} {:?}", ruleset.bad_arch)
}

const SAMPLE: &str = "\
arch x86_64, x86
default errno(EPERM)
bad-arch kill-thread
unknown errno(ENOSYS)
let A = -1
let B = {1, 2..0x1f, A}
let C = ((1 << 4) | 2) & ~(3 | 4)
set @mine = {read, @timer}
allow read, write(fd == 1 && (count > 5 || !(count in B))), @mine
deny open(flags & (O_CLOEXEC | 1) == 1 && low(flags) != A)
trap fcntl(cmd == 1 || (cmd == 2 && arg < 3))
trace(7) dup2(oldfd == newfd), close(!false)
on x86_64 {
    kill nr 500..510(arg[0] == 1 && high(ip) == 0), nr 520
}
";

#[test]
fn canonical_text_is_left_as_it_is() {
    assert_eq!(printed(SAMPLE), SAMPLE);
}

#[test]
fn printing_keeps_the_meaning() {
    let arches = [Arch::X86_64, Arch::X86, Arch::Aarch64];
    let texts = embedded::ALL.map(|policy| policy.text);
    for text in texts.into_iter().chain([SAMPLE]) {
        let again = printed(text);
        assert_eq!(
            without_origins(&ruleset(text, &arches)),
            without_origins(&ruleset(&again, &arches)),
            "{again}"
        );
        assert_eq!(printed(&again), again);
    }
}

#[test]
fn parentheses_are_printed_where_the_tree_needs_them() {
    for (text, expected) in [
        ("allow read(!(fd == 1))", "allow read(!(fd == 1))\n"),
        (
            "allow read((fd == 1), (fd == 2))",
            "allow read(fd == 1 && fd == 2)\n",
        ),
        (
            "allow read((fd == 1, fd == 2) || true)",
            "allow read((fd == 1 && fd == 2) || true)\n",
        ),
        (
            "allow read(fd == (1 | 2) & 3)",
            "allow read(fd == (1 | 2) & 3)\n",
        ),
        (
            "allow read(fd == 1 | 2 & 3)",
            "allow read(fd == 1 | (2 & 3))\n",
        ),
        ("include \"x y\"", "include \"x y\"\n"),
    ] {
        assert_eq!(printed(text), expected);
    }
}
