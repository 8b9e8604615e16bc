//! Parsing returns for every text, and its diagnostics point into the text.

use tamis_abi::Arch;
use tamis_policy::embedded;
use tamis_policy::limits::{MAX_INCLUDE_DEPTH, MAX_NESTING};
use tamis_testkit::rng::Rng;

use crate::{parse, parse_files};

/// Parses a text and checks the invariants.
fn survive(text: &str) {
    let (parsed, sources) = parse(text, &[Arch::X86_64, Arch::X86]);
    let failed = parsed
        .diagnostics
        .iter()
        .any(tamis_diag::Diagnostic::is_error);
    assert_eq!(parsed.ruleset.is_none(), failed, "{text:?}");
    for label in parsed.diagnostics.iter().flat_map(|told| &told.labels) {
        let (start, end) = (label.span.start as usize, label.span.end as usize);
        let text = &sources.get(label.span.source).text;
        assert!(start <= end, "{text:?}");
        assert!(
            text.is_char_boundary(start) && text.is_char_boundary(end),
            "{text:?}"
        );
    }
}

const WORDS: [&str; 60] = [
    "allow",
    "deny",
    "kill",
    "errno",
    "(",
    ")",
    "{",
    "}",
    ",",
    "&&",
    "||",
    "!",
    "==",
    "<",
    ">=",
    "&",
    "|",
    "~",
    "-",
    "<<",
    "..",
    "in",
    "on",
    "set",
    "let",
    "=",
    "arch",
    "default",
    "unknown",
    "bad-arch",
    "include",
    "\"x\"",
    "x86_64",
    "arm",
    "read",
    "socket",
    "mmap",
    "@known",
    "@timer",
    "@x",
    "A",
    "B",
    "AF_UNIX",
    "EPERM",
    "family",
    "fd",
    "arg0",
    "arg",
    "[",
    "]",
    "nr",
    "0",
    "1",
    "0xffffffff",
    "low",
    "full",
    "ip",
    "\n",
    "true",
    "#\n",
];

#[test]
fn random_words() {
    let mut rng = Rng::new(1);
    for _ in 0..1500 {
        let count = rng.range(1..=40);
        let words: Vec<&str> = (0..count).map(|_| *rng.choose(&WORDS)).collect();
        survive(&words.join(" "));
    }
}

#[test]
fn random_characters() {
    let mut rng = Rng::new(2);
    for _ in 0..1500 {
        let count = rng.range(0..=80);
        let text: String = (0..count)
            .map(|_| match rng.range(0..=3) {
                0 => char::from_u32(rng.next_u32() % 0x11_0000).unwrap_or('\u{fffd}'),
                _ => char::from(rng.range(9..=126) as u8),
            })
            .collect();
        survive(&text);
    }
}

#[test]
fn mutated_policies() {
    let mut rng = Rng::new(3);
    for round in 0..240 {
        let mut text: Vec<char> = embedded::ALL[round % embedded::ALL.len()]
            .text
            .chars()
            .collect();
        for _ in 0..rng.range(1..=8) {
            if text.is_empty() {
                break;
            }
            let (from, to) = (rng.index(text.len()), rng.index(text.len()));
            match rng.range(0..=3) {
                0 => text[from] = char::from(rng.range(32..=126) as u8),
                1 => drop(text.remove(from)),
                2 => text.swap(from, to),
                _ => text.truncate(from),
            }
        }
        survive(&text.into_iter().collect::<String>());
    }
}

#[test]
fn nesting_beyond_the_limit_is_an_error_and_no_overflow() {
    let deep = 200_000;
    for (open, close) in [("(", ")"), ("!", ""), ("!(", ")")] {
        let text = format!(
            "allow read({}fd == 1{})",
            open.repeat(deep),
            close.repeat(deep)
        );
        assert_eq!(codes(&text), ["TM0214"]);
    }
    for operator in ["~", "-", "("] {
        assert_eq!(
            codes(&format!("let A = {}1", operator.repeat(deep))),
            ["TM0214"]
        );
    }
    let text = format!(
        "allow read({}fd == 1{})",
        "(".repeat(MAX_NESTING),
        ")".repeat(MAX_NESTING)
    );
    assert_eq!(codes(&text), [""; 0]);
}

#[test]
fn definitions_that_double_each_time_stay_small() {
    let mut text = String::from("let A0 = 1\nset @a0 = {@known}\n");
    for step in 1..2000 {
        let last = step - 1;
        text += &format!("let A{step} = A{last} | A{last}\nlet S{step} = {{A{last}, {step}}}\n");
        text += &format!("set @a{step} = {{@a{last}, @a{last}}}\n");
    }
    text += "allow read(fd == A1999, fd in S1999), @a1999\n";
    assert_eq!(codes(&text), [""; 0]);
}

#[test]
fn what_would_fill_the_memory_is_refused() {
    let sets: String = (0..10_000)
        .map(|n| format!("set @s{n} = {{@known}}\n"))
        .collect();
    assert_eq!(codes(&sets), ["TM0214"]);
    let targets = "allow read\n".repeat(100_000);
    assert!(codes(&targets).contains(&"TM0214"));
}

#[test]
fn includes_beyond_the_limit_are_refused() {
    let names: Vec<String> = (0..MAX_INCLUDE_DEPTH + 5).map(|n| n.to_string()).collect();
    let texts: Vec<String> = (1..=names.len())
        .map(|n| format!("include \"{n}\""))
        .collect();
    let files: Vec<(&str, &str)> = names
        .iter()
        .zip(&texts)
        .map(|(n, t)| (&**n, &**t))
        .collect();
    let (parsed, _) = parse_files(&files);
    let told: Vec<&str> = parsed.diagnostics.iter().map(|told| told.code.id).collect();
    assert_eq!(told, ["TM0214"]);
}

fn codes(text: &str) -> Vec<&'static str> {
    let (parsed, _) = parse(text, &[Arch::X86_64]);
    parsed.diagnostics.iter().map(|told| told.code.id).collect()
}
