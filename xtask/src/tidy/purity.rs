//! Pure crates do no I/O, and each `unsafe` has an explanation.
//!
//! A pure crate may not name the parts of the standard library that access its environment. This is a check of names
//! in code: it catches mistakes, not deliberate evasion.

use super::Problem;
use super::rust::{RustFile, line_of, words};
use super::tree::Tree;

/// Crates whose results depend only on their arguments.
const PURE: [&str; 23] = [
    "abi",
    "algebra",
    "analysis",
    "assertions",
    "bpf",
    "certificate",
    "chart",
    "compiler",
    "diag",
    "ebpf",
    "export",
    "fuzz",
    "learn",
    "lint",
    "optimize",
    "policy",
    "profile",
    "prover",
    "report",
    "rules",
    "scmp",
    "session",
    "vm",
];
/// Files of pure crates that may access the environment, because that is their purpose.
const WINDOWS: [&str; 2] = ["crates/abi/src/host.rs", "crates/session/src/files.rs"];
/// Modules of the standard library that access the environment.
const WORLDLY: [&str; 6] = ["env", "fs", "net", "process", "thread", "time"];
/// Modules of pure crates that access the environment.
const WORLDLY_OF_OURS: [(&str, &str); 2] = [("tamis_abi", "host"), ("tamis_session", "files")];
/// Macros that write to the terminal.
const PRINTING: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];
/// The most lines between an explanation and its `unsafe`.
const MAX_LINES_ABOVE: usize = 8;

/// Problems: I/O in pure crates, pure crates that permit `unsafe`, and `unsafe` without a reason.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in PURE {
        let path = format!("crates/{name}/src/lib.rs");
        let code = tree.text(&path).unwrap_or_default();
        if !code.contains("#![forbid(unsafe_code)]") {
            problems.push(Problem::new(&path, 0, "add `#![forbid(unsafe_code)]`"));
        }
    }
    for (path, file) in tree.rust() {
        let is_pure = PURE
            .iter()
            .any(|name| path.starts_with(&format!("crates/{name}/src/")));
        let is_window = WINDOWS.contains(&path);
        if is_pure && !is_window && !path.ends_with("/tests.rs") {
            problems.extend(worldly(path, &file.product_code()));
        }
        problems.extend(unexplained_unsafe(path, file));
    }
    problems
}

fn worldly(path: &str, code: &str) -> Vec<Problem> {
    let problem = |at: usize, name: &str| {
        let message =
            format!("a pure crate does not use `{name}`: let the caller pass the result in");
        Problem::new(path, line_of(code, at), message)
    };
    let standard = WORLDLY.map(|module| ("std", module));
    let modules = standard.into_iter().chain(WORLDLY_OF_OURS);
    let imported = modules.flat_map(|(root, module)| {
        let uses = words(code, root)
            .filter(move |at| first_segments(&code[at + root.len()..]).contains(&module));
        uses.map(move |at| problem(at, &format!("{root}::{module}")))
    });
    let printed = PRINTING.into_iter().flat_map(|name| {
        let uses = words(code, name).filter(move |at| code[at + name.len()..].starts_with('!'));
        uses.map(move |at| problem(at, &format!("{name}!")))
    });
    imported.chain(printed).collect()
}

/// The names directly below a path: `fs` of `::fs::File`, `fs` and `io` of `::{fs, io::Read}`.
fn first_segments(after: &str) -> Vec<&str> {
    let Some(after) = after.strip_prefix("::") else {
        return Vec::new();
    };
    let list = match after.strip_prefix('{') {
        Some(list) => top_level(list),
        None => vec![after],
    };
    let is_name_part = |char: char| char.is_alphanumeric() || char == '_';
    list.into_iter()
        .map(|item| {
            let item = item.trim_start();
            let end = item.find(|char| !is_name_part(char)).unwrap_or(item.len());
            &item[..end]
        })
        .collect()
}

/// The items of an import list up to its closing brace.
fn top_level(list: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0, 0);
    let mut items = Vec::new();
    for (at, char) in list.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' => {
                items.push(&list[start..at]);
                break;
            }
            ',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

fn unexplained_unsafe(path: &str, file: &RustFile) -> Vec<Problem> {
    let comments: Vec<&str> = file.comments.lines().collect();
    let is_explained = |line: usize| {
        let first = line.saturating_sub(MAX_LINES_ABOVE);
        let mut above = comments[first..line].iter();
        above.any(|comment| comment.contains("SAFETY:"))
    };
    words(&file.code, "unsafe")
        .filter(|at| {
            let next = file.code[at + "unsafe".len()..].trim_start();
            ["{", "impl", "extern"]
                .iter()
                .any(|word| next.starts_with(word))
        })
        .map(|at| line_of(&file.code, at))
        .filter(|line| !is_explained(*line))
        .map(|line| Problem::new(path, line, "say why this is sound: `// SAFETY: …`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(path: &str, text: &str) -> Vec<usize> {
        let tree = Tree::new([(path.to_owned(), text.to_owned())].into());
        let found = check(&tree).into_iter();
        found.filter(|p| p.line > 0).map(|p| p.line).collect()
    }

    #[test]
    fn io_is_found_in_every_way_of_naming_it() {
        let path = "crates/bpf/src/x.rs";
        assert_eq!(problems_of(path, "use std::fs::File;\n"), [1]);
        assert_eq!(problems_of(path, "use std::{fmt, env};\n"), [1]);
        assert_eq!(
            problems_of(path, "\nlet t = std::time::Instant::now();\n"),
            [2]
        );
        assert_eq!(problems_of(path, "println!();\n"), [1]);
        assert_eq!(problems_of(path, "use tamis_abi::{Arch, host};\n"), [1]);
    }

    #[test]
    fn harmless_names_tests_and_other_crates_are_left_alone() {
        let path = "crates/bpf/src/x.rs";
        let harmless = "use std::{fmt::{self}, sync::Arc};\n// std::fs\nlet s = \"std::env\";\n";
        assert!(problems_of(path, harmless).is_empty());
        assert!(problems_of(path, "#[cfg(test)]\nmod tests {\n use std::fs;\n}\n").is_empty());
        assert!(problems_of("crates/kernel/src/x.rs", "use std::fs;\n").is_empty());
    }

    #[test]
    fn unsafe_needs_a_reason_nearby() {
        let path = "crates/kernel/src/x.rs";
        assert_eq!(problems_of(path, "fn f() {\n unsafe { g() }\n}\n"), [2]);
        let explained = "fn f() {\n // SAFETY: g is harmless.\n unsafe { g() }\n}\n";
        assert!(problems_of(path, explained).is_empty());
    }
}
