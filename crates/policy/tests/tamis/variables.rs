//! Run-time variables in policies.

use tamis_abi::{Action, Arch};
use tamis_rules::{Variable, VariableWidth};

use crate::{call, parse, ruleset};

const POLICY: &str = "\
let control_fd: u32
let base: u64
let fds: u32[3] in 3..1023
default errno(1)
allow write(fd == control_fd), read(fd in fds), lseek(offset >= base), close(fd < control_fd)
allow mmap(control_fd == len)
";

#[test]
fn a_comparison_with_a_variable_is_one_with_its_value() {
    let arch = Arch::X86_64;
    let policy = ruleset(POLICY, &[arch]);
    let titles: Vec<String> = policy.variables().iter().map(Variable::title).collect();
    assert_eq!(titles, ["control_fd", "base", "fds[0]", "fds[1]", "fds[2]"]);
    let allows = |values: &[u64], name, args: &[u64]| {
        let bound = policy.bind(values).unwrap();
        bound.decide(&call(arch, name, args)).action == Action::ALLOW
    };
    let values = [7, 1 << 40, 10, 20, 30];
    assert!(allows(&values, "write", &[7]));
    assert!(
        allows(&values, "write", &[0xdead_0000_0007]),
        "an fd has 32 bits"
    );
    assert!(!allows(&values, "write", &[8]));
    assert!(allows(&values, "read", &[20]) && !allows(&values, "read", &[21]));
    assert!(allows(&values, "lseek", &[0, 1 << 40]));
    assert!(!allows(&values, "lseek", &[0, (1 << 40) - 1]));
    assert!(allows(&values, "close", &[6]) && !allows(&values, "close", &[7]));
    assert!(
        allows(&values, "mmap", &[0, 7]),
        "a variable of 32 bits has none above"
    );
    assert!(!allows(&values, "mmap", &[0, 1 << 32 | 7]));
    assert!(
        policy.bind(&[7, 0, 3, 3, 2]).is_err(),
        "2 is not in its range"
    );
}

#[test]
fn a_set_has_its_width_and_range_in_every_element() {
    let policy = ruleset(POLICY, &[Arch::X86_64]);
    for element in &policy.variables()[2..] {
        assert_eq!(
            (element.width, element.range),
            (VariableWidth::U32, (3, 1023))
        );
    }
}

/// A policy with one mistake, its code, the text at the first label, and the message.
type Mistake = (&'static str, &'static str, &'static str, &'static str);

const MISTAKES: &[Mistake] = &[
    (
        "let fd: u32\nallow write(fd == fd)",
        "TM0406",
        "fd",
        "`fd` is ambiguous: a variable or an argument",
    ),
    (
        "let a: u64\nallow write(fd == a)",
        "TM0406",
        "fd == a",
        "comparison of a 32-bit argument with a wider variable",
    ),
    (
        "let a: u32\nallow fchmod(mode == a)",
        "TM0406",
        "mode == a",
        "comparison of a 16-bit argument with a wider variable",
    ),
    (
        "let a: u32\nlet b: u32\nallow write(a == b)",
        "TM0406",
        "a == b",
        "comparison of two variables",
    ),
    (
        "let a: u32[2]\nallow write(fd < a)",
        "TM0406",
        "fd < a",
        "comparison with a set of variables",
    ),
    (
        "let a: u32[2]\nallow write(a == fd)",
        "TM0406",
        "a == fd",
        "comparison with a set of variables",
    ),
    (
        "let client_fds: u32[2]\nallow write(fd in client_fd)",
        "TM0219",
        "client_fd",
        "`client_fd` is not a set of values",
    ),
    (
        "let client_fd: u32\nallow write(fd == client_fdd)",
        "TM0206",
        "client_fdd",
        "`write` has no argument `client_fdd`",
    ),
    (
        "let a: u32[2]\nallow write(fd & 1 in a)",
        "TM0406",
        "fd & 1 in a",
        "a masked argument in a set of variables",
    ),
    (
        "let a: u32\nallow write(low(a) == fd)",
        "TM0406",
        "low(a)",
        "part of a variable",
    ),
    (
        "let a: u32\nallow write(a == 3)",
        "TM0206",
        "a",
        "`write` has no argument `a`",
    ),
    (
        "let A: u32\nallow write",
        "TM0202",
        "A",
        "`A` is not the name of a variable",
    ),
    (
        "let a: u16\nallow write",
        "TM0202",
        "u16",
        "variables are `u32` or `u64`",
    ),
    (
        "let a: u32\nlet a: u32\nallow write",
        "TM0208",
        "a",
        "`a` is defined twice",
    ),
    (
        "let a: u32[33]\nallow write",
        "TM0214",
        "a",
        "too many variables, or none",
    ),
    (
        "let a: u32[0]\nallow write",
        "TM0214",
        "a",
        "too many variables, or none",
    ),
    (
        "let a: u32 in 4..3\nallow write",
        "TM0210",
        "4..3",
        "an empty range",
    ),
];

#[test]
fn what_no_instruction_can_do_is_told() {
    for (text, code, place, message) in MISTAKES {
        let (parsed, sources) = parse(text, &[Arch::X86_64]);
        let [told] = parsed.diagnostics.as_slice() else {
            panic!("{text:?}: {:#?}", parsed.diagnostics);
        };
        let label = &told.labels[0];
        let at = sources.snippet(label.span);
        assert_eq!(
            (told.code.id, at, told.message.as_str()),
            (*code, *place, *message),
            "{text:?}"
        );
    }
}
