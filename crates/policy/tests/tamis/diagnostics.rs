//! Diagnostics: code, place, message and help.

use std::collections::BTreeSet;

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, Sources};
use tamis_policy::code;

use crate::{parse, parse_files};

/// A policy with one mistake and its diagnostic: the code, the text at the first label, the message, the help.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const SYNTAX: &[Case] = &[
    (
        "allow read\nalow write",
        "TM0202",
        "alow",
        "`alow` is not a statement",
        "did you mean `allow`?",
    ),
    (
        "allow read write",
        "TM0202",
        "write",
        "`write` is not a statement",
        "write an action before it, `allow write`, or a comma",
    ),
    (
        "allow openat flags & O_CREAT == 0",
        "TM0202",
        "flags",
        "`flags` is not a statement",
        "write a condition in parentheses: `openat(flags == 1)`",
    ),
    (
        "allow read if fd == 1",
        "TM0202",
        "if",
        "`if` is not a statement",
        "write a condition in parentheses: `read(fd == 1)`",
    ),
    (
        "allow read,\ndeny write",
        "TM0202",
        "deny",
        "expected a system call, a `@set` or `nr`, found `deny`",
        "",
    ),
    (
        "default allowed",
        "TM0202",
        "allowed",
        "`allowed` is not an action",
        "did you mean `allow`?",
    ),
    (
        "errno read",
        "TM0202",
        "errno",
        "`errno` without a value",
        "write the errno in parentheses, such as `errno(ENOSYS)`, or `deny` for EPERM",
    ),
    (
        "allow read(fd = 1)",
        "TM0202",
        "=",
        "`=` in a condition",
        "compare with `==`",
    ),
    (
        "allow read(1 == fd)",
        "TM0202",
        "1",
        "`1` where an argument is expected",
        "write the argument on the left: `fd == 1`",
    ),
    (
        "allow open(flags & O_CLOEXEC)",
        "TM0202",
        "flags & O_CLOEXEC",
        "a masked argument is a number, not a condition",
        "compare it: `flags & O_CLOEXEC != 0`",
    ),
    (
        "allow open(flags & O_CLOEXEC | O_APPEND == 0)",
        "TM0202",
        "|",
        "`|` in a mask without parentheses",
        "write `argument & (A | B) == …`",
    ),
    (
        "allow open(flags & 3 < 2)",
        "TM0202",
        "flags & 3 < 2",
        "an ordered comparison with a mask",
        "masked arguments are compared with `==`, `!=` and `in`",
    ),
    (
        "allow dup2(oldfd & 1 == newfd)",
        "TM0202",
        "oldfd & 1 == newfd",
        "a mask in a comparison of two arguments",
        "compare whole arguments, or their halves with `low(…)` and `high(…)`",
    ),
    (
        "allow @basic-io(fd == 1)",
        "TM0202",
        "fd == 1",
        "a condition on a set of calls",
        "name the calls of `@basic-io` that the condition applies to",
    ),
    (
        "allow read(arg[6] == 1)",
        "TM0202",
        "6",
        "there is no argument 6",
        "calls have six arguments, `arg[0]` to `arg[5]`",
    ),
    (
        "let stream = 1",
        "TM0202",
        "stream",
        "`stream` is not the name of a constant",
        "write `let STREAM = …`, or `let stream: u32` if its value is only known at run time",
    ),
    (
        "on x86_64 { let A = 1 }",
        "TM0202",
        "let A = 1",
        "this statement is not allowed in a block",
        "write it before the block",
    ),
    (
        "on x86_64 { on x86_64 { } }",
        "TM0202",
        "on",
        "`on` inside an `on` block",
        "write the blocks one after the other",
    ),
    (
        "include \"a\nallow read",
        "TM0202",
        "\"a",
        "text without an end",
        "close it with `\"` on the same line",
    ),
    (
        "allow read ; allow write",
        "TM0202",
        ";",
        "unexpected character `;`",
        "",
    ),
    (
        "allow read(fd == 1",
        "TM0202",
        "",
        "expected `)`, found the end of the file",
        "",
    ),
    (
        "allow read(fd == 010)",
        "TM0203",
        "010",
        "`010` is not a number",
        "numbers are decimal, or begin with 0x, 0o or 0b; `_` may separate digits",
    ),
    (
        "allow read(fd == 0x1_0000_0000_0000_0000)",
        "TM0203",
        "0x1_0000_0000_0000_0000",
        "`0x1_0000_0000_0000_0000` is not a number",
        "numbers are decimal, or begin with 0x, 0o or 0b; `_` may separate digits",
    ),
];

const NAMES: &[Case] = &[
    (
        "allow raed",
        "TM0201",
        "raed",
        "unknown system call `raed`",
        "did you mean `read`?",
    ),
    (
        "set @a = {raed}",
        "TM0201",
        "raed",
        "unknown system call `raed`",
        "did you mean `read`?",
    ),
    (
        "arch x86-64",
        "TM0204",
        "x86-64",
        "unknown architecture `x86-64`",
        "did you mean `x86_64`?",
    ),
    (
        "allow socket(family == AF_INTE)",
        "TM0205",
        "AF_INTE",
        "unknown constant `AF_INTE`",
        "did you mean `AF_INET`?",
    ),
    (
        "let A = AF_INTE",
        "TM0205",
        "AF_INTE",
        "unknown constant `AF_INTE`",
        "did you mean `AF_INET`?",
    ),
    (
        "allow socket(famly == 1)",
        "TM0206",
        "famly",
        "`socket` has no argument `famly`",
        "did you mean `family`?",
    ),
    (
        "allow prctl(arg2 == 1)",
        "TM0206",
        "arg2",
        "`arg2` of `prctl` is ambiguous: two arguments match",
        "write `arg[1]` or `arg[2]`",
    ),
    (
        "on x86_64 { allow nr 3(fd == 1) }",
        "TM0206",
        "fd",
        "`fd`: arguments of a call given by number have no names",
        "write `arg0` to `arg5`",
    ),
    (
        "arch x86\nallow mmap(prot == 1)",
        "TM0206",
        "prot",
        "`prot` of `mmap` is not passed in a register of its own on x86",
        "move the condition to an `on` block without x86, or write `arg[N]`",
    ),
    (
        "allow @basicio",
        "TM0207",
        "@basicio",
        "unknown set of system calls `@basicio`",
        "did you mean `@basic-io`?",
    ),
    (
        "allow @mine\nset @mine = {read}",
        "TM0207",
        "@mine",
        "unknown set of system calls `@mine`",
        "",
    ),
    (
        "let A = 1\nlet A = 1",
        "TM0208",
        "A",
        "`A` is defined twice",
        "",
    ),
    (
        "set @timer = {read}",
        "TM0208",
        "@timer",
        "`@timer` is defined twice",
        "choose another name",
    ),
    (
        "default allow\ndefault allow",
        "TM0208",
        "default allow",
        "`default` is stated twice",
        "",
    ),
    (
        "arch x86\narch arm",
        "TM0208",
        "arch arm",
        "`arch` is stated twice",
        "",
    ),
    (
        "arch x86, i386",
        "TM0208",
        "i386",
        "`x86` is stated twice",
        "",
    ),
    (
        "let EPERM = 5\nallow read",
        "TM0223",
        "EPERM",
        "`EPERM` is a constant of the kernel",
        "choose another name",
    ),
    (
        "# nothing\n",
        "TM0224",
        "",
        "the policy is empty",
        "`default kill-process` kills on every call",
    ),
    (
        "bad-arch errno(1)\nset @a = {read}",
        "TM0225",
        "bad-arch errno(1)",
        "the policy has neither a rule nor a `default`",
        "write `default kill-process` if this is intended",
    ),
    (
        "param network: no | yes = no\ndefault allow\nwhen netwrk == no { allow read }",
        "TM0228",
        "netwrk",
        "the policy has no parameter `netwrk`",
        "did you mean `network`?",
    ),
    (
        "param network: no | yes = no\ndefault allow\nwhen network == maybe { allow read }",
        "TM0229",
        "maybe",
        "`maybe` is not a value of the parameter `network`",
        "",
    ),
    (
        "arch x86\nallow close(full(fd) == 1)",
        "TM0226",
        "close(full(fd) == 1)",
        "the kernel ignores the upper half on x86, but this condition compares it",
        "remove `full(…)` and `high(…)`",
    ),
    (
        "arch x86\nallow setreuid(ruid == euid)",
        "TM0211",
        "ruid == euid",
        "comparison of a 16-bit argument with another argument",
        "compare it with constants, or compare the whole lower half with `low(…)`",
    ),
    (
        "allow fchmod(mode == 0x109ed)",
        "TM0209",
        "0x109ed",
        "`0x109ed` does not fit 16 bits",
        "compare 32 bits with `low(mode)`",
    ),
];

const VALUES: &[Case] = &[
    (
        "allow socket(family == 0x1_0000_0000)",
        "TM0209",
        "0x1_0000_0000",
        "`0x1_0000_0000` does not fit 32 bits",
        "compare all 64 bits with `full(family)`",
    ),
    (
        "allow socket(family == -2147483649)",
        "TM0209",
        "-2147483649",
        "this negative number does not fit 32 bits",
        "compare all 64 bits with `full(family)`",
    ),
    (
        "let BIG = 1 << 32\nallow socket(family == BIG)",
        "TM0209",
        "1 << 32",
        "this shifted value does not fit 32 bits",
        "compare all 64 bits with `full(family)`",
    ),
    (
        "errno(4096) read",
        "TM0209",
        "4096",
        "4096 is too large for `errno`",
        "",
    ),
    (
        "allow read(fd < 0)",
        "TM0210",
        "fd < 0",
        "this is always false",
        "",
    ),
    (
        "allow read(fd >= 0)",
        "TM0210",
        "fd >= 0",
        "this is always true",
        "",
    ),
    (
        "allow read(fd > -1)",
        "TM0210",
        "fd > -1",
        "ordered comparison with a negative number",
        "write the unsigned value, 0xffffffff, if this is intended",
    ),
    (
        "allow read(fd & 0xf == 0x10)",
        "TM0210",
        "fd & 0xf == 0x10",
        "a masked argument never equals this value",
        "",
    ),
    (
        "allow read(fd in {5..3})",
        "TM0210",
        "5..3",
        "a range that ends before it begins",
        "",
    ),
    (
        "allow read(fd in {})",
        "TM0210",
        "{}",
        "the set is empty",
        "",
    ),
    (
        "allow read(fd == count)",
        "TM0211",
        "fd == count",
        "comparison of 32 bits with 64",
        "select the bits with `low(…)`, `high(…)` or `full(…)`",
    ),
    (
        "let A = {1}\nallow read(fd == A)",
        "TM0219",
        "A",
        "`A` is a set of values",
        "test membership: `argument in A`",
    ),
    (
        "let A = 1\nallow read(fd in A)",
        "TM0219",
        "A",
        "`A` is not a set of values",
        "write `in {A}` or define it: `let A = {…}`",
    ),
    (
        "arch x86_64, x86\nallow nr 3",
        "TM0215",
        "nr 3",
        "a number means different calls on different architectures",
        "move the rule to a block: `on x86_64 { … }`",
    ),
    (
        "known-until linux 6",
        "TM0230",
        "6",
        "`6` is a series of releases",
        "write the release whose calls the policy has considered: `known-until linux 6.18`",
    ),
    (
        "allow nr 0x40000000",
        "TM0220",
        "nr 0x40000000",
        "range contains no x86_64 system-call numbers",
        "",
    ),
];

const LINTS: &[Case] = &[
    (
        "allow waitpid",
        "TM0216",
        "waitpid",
        "there is no `waitpid` on x86_64",
        "",
    ),
    (
        "deny read\nallow @basic-io, read(fd == 1)",
        "TM0217",
        "read(fd == 1)",
        "this rule never matches",
        "",
    ),
    (
        "arch x86\nallow socket(family == AF_UNIX), socketcall",
        "TM0218",
        "socket",
        "`socket` can be called through `socketcall` on x86",
        "restrict it: `allow socketcall(call != 1)`",
    ),
    (
        "unknown allow\nallow read",
        "TM0221",
        "allow",
        "calls of later kernels are allowed",
        "`unknown errno(ENOSYS)` makes programs fall back to older calls",
    ),
    (
        "arch x86_64\non arm { allow read }",
        "TM0222",
        "arm",
        "the policy is not for arm",
        "",
    ),
];

fn cases() -> impl Iterator<Item = &'static Case> {
    [SYNTAX, NAMES, VALUES, LINTS].into_iter().flatten()
}

fn place<'a>(diagnostic: &Diagnostic, sources: &'a Sources) -> &'a str {
    diagnostic
        .labels
        .first()
        .map_or("", |label| sources.snippet(label.span))
}

#[test]
fn a_mistake_is_told_once_with_its_place_and_a_way_out() {
    for (text, code, at, message, help) in cases() {
        let (parsed, sources) = parse(text, &[Arch::X86_64]);
        let [told] = parsed.diagnostics.as_slice() else {
            panic!("{text:?}: {:#?}", parsed.diagnostics);
        };
        assert_eq!(told.code.id, *code, "{text:?}: {told:#?}");
        assert_eq!(told.message, *message, "{text:?}");
        assert_eq!(place(told, &sources), *at, "{text:?}");
        assert_eq!(told.help.as_deref().unwrap_or(""), *help, "{text:?}");
    }
}

#[test]
fn every_code_of_the_language_has_a_case() {
    // Tested separately: these need included files, large texts, or options of the caller.
    let elsewhere = ["TM0212", "TM0213", "TM0214", "TM0227"];
    let told: BTreeSet<&str> = cases().map(|case| case.1).chain(elsewhere).collect();
    let declared = [code::TAMIS, code::MEANING].concat();
    let declared: BTreeSet<&str> = declared
        .iter()
        .map(|code| code.id)
        .filter(|id| id.starts_with("TM02"))
        .collect();
    assert_eq!(told, declared);
}

#[test]
fn several_mistakes_are_told_in_one_run() {
    let text = "arch x86_64\nallow raed, write(fd == )\ndefualt allow\nallow opne, colse\nset @a = { read write }\n\
                on x86_64 {\n  allow read(fd = 1)\n  deny sokcet\n}\nkill @nothing\n";
    let (parsed, sources) = parse(text, &[]);
    let told: Vec<&str> = parsed
        .diagnostics
        .iter()
        .map(|d| place(d, &sources))
        .collect();
    assert_eq!(
        told,
        [
            ")", "defualt", "opne", "colse", "write", "=", "sokcet", "@nothing"
        ]
    );
    assert!(parsed.ruleset.is_none());
}

#[test]
fn trouble_with_includes_points_at_the_include() {
    type Files = &'static [(&'static str, &'static str)];
    let cases: [(Files, &str, &str); 3] = [
        (
            &[("root", "include \"none\"")],
            "TM0212",
            "cannot include `none`: no such file",
        ),
        (
            &[("root", "include \"root\"")],
            "TM0213",
            "`root` includes itself",
        ),
        (
            &[
                ("root", "include \"a\""),
                ("a", "include \"b\""),
                ("b", "include \"a\""),
            ],
            "TM0213",
            "`a` includes itself",
        ),
    ];
    for (files, code, message) in cases {
        let (parsed, sources) = parse_files(files);
        let [told] = parsed.diagnostics.as_slice() else {
            panic!("{:#?}", parsed.diagnostics);
        };
        assert_eq!((told.code.id, told.message.as_str()), (code, message));
        assert!(place(told, &sources).starts_with('"'));
    }
}

#[test]
fn the_second_place_of_a_contradiction_is_shown_too() {
    let (parsed, sources) = parse_files(&[
        ("root", "default allow\ninclude \"part\""),
        ("part", "\ndefault kill"),
    ]);
    let labels = &parsed.diagnostics[0].labels;
    let shown: Vec<(&str, &str)> = labels
        .iter()
        .map(|label| {
            (
                &**sources.name(label.span.source),
                sources.snippet(label.span),
            )
        })
        .collect();
    assert_eq!(shown, [("part", "default kill"), ("root", "default allow")]);
}

#[test]
fn one_rendering_in_full() {
    let text = "arch x86_64, aarch64\nallow socket(family == 0x1_0000_0000)\n";
    let (parsed, sources) = parse(text, &[]);
    let rendered = tamis_diag::render::render(&parsed.diagnostics, &sources, false);
    let expected = "\
error[TM0209]: `0x1_0000_0000` does not fit 32 bits
 --> a.tamis:2:24
  |
2 | allow socket(family == 0x1_0000_0000)
  |                        ^^^^^^^^^^^^^
  |
  = note: on x86_64 the kernel reads argument `family` of `socket`, a `int`, as 32 bits
  = help: compare all 64 bits with `full(family)`";
    assert_eq!(rendered, expected);
}
