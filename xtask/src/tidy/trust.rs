//! SECURITY.md lists the trusted base by file, and the list agrees with the tree.
//!
//! [`PARTS`] has the files on which each claim of tamis relies. `cargo xtask tidy --bless` writes the list in
//! SECURITY.md from it. A missing or superfluous file is a problem, and so is a size that differs by more than both
//! [`TOLERANCE_LINES`] and a tenth, so that small edits need no new list.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Problem;
use super::rust::RustFile;
use super::tree::Tree;

/// The page with the list.
const PAGE: &str = "SECURITY.md";
/// The lines around the list.
const BEGIN: &str = "<!-- written by `cargo xtask tidy --bless` -->";
const END: &str = "<!-- end of what is written -->";
/// The tolerance of sizes.
const TOLERANCE_LINES: usize = 20;
/// Sizes are rounded to multiples of this.
const UNIT_LINES: usize = 10;

/// A group of files with one reason for trust.
struct Part {
    /// The purpose of the files.
    reason: &'static str,
    /// Directories, with `/` at the end, and files. A directory includes all its files.
    paths: &'static [&'static str],
    /// The form of the list.
    detail: Detail,
}

#[derive(Clone, Copy)]
enum Detail {
    /// Each file.
    Files,
    /// Each path: there are many files, and one policy needs only a few of them.
    Paths,
}

const PARTS: [Part; 7] = [
    Part {
        reason: "front ends, of which a policy needs that of its language, and what they share",
        paths: &[
            "crates/policy/src/firecracker/",
            "crates/policy/src/kafel/",
            "crates/policy/src/matrix/",
            "crates/policy/src/minijail/",
            "crates/policy/src/oci/",
            "crates/policy/src/spo.rs",
            "crates/policy/src/systemd/",
            "crates/policy/src/tamis.rs",
            "crates/policy/src/tamis/",
            "crates/policy/src/budget.rs",
            "crates/policy/src/embedded.rs",
            "crates/policy/src/front_end.rs",
            "crates/policy/src/installation.rs",
            "crates/policy/src/lib.rs",
            "crates/policy/src/limits.rs",
            "crates/policy/src/literal.rs",
            "crates/policy/src/loader.rs",
            "crates/policy/src/sink.rs",
            "crates/diag/src/document.rs",
            "crates/diag/src/json.rs",
            "crates/diag/src/json/",
            "crates/diag/src/yaml.rs",
            "crates/scmp/src/",
            "crates/libseccomp/src/",
            "crates/abi/src/",
        ],
        detail: Detail::Paths,
    },
    Part {
        reason: "what a ruleset means: its types and their evaluator",
        paths: &[
            "crates/rules/src/eval.rs",
            "crates/rules/src/input.rs",
            "crates/rules/src/predicate.rs",
            "crates/rules/src/ruleset.rs",
            "crates/rules/src/set.rs",
            "crates/rules/src/variable.rs",
        ],
        detail: Detail::Files,
    },
    Part {
        reason: "the prover: everything in it decides but the search of the SAT solver, which `sat/proof.rs` checks",
        paths: &["crates/prover/src/"],
        detail: Detail::Files,
    },
    Part {
        reason: "with a certificate, in place of prover and compiler: its checker",
        paths: &["crates/check/src/"],
        detail: Detail::Files,
    },
    Part {
        reason: "programs: their types, their bytes and the kernel's check of them",
        paths: &[
            "crates/bpf/src/forms.rs",
            "crates/bpf/src/insn.rs",
            "crates/bpf/src/program.rs",
            "crates/bpf/src/template.rs",
            "crates/bpf/src/validate.rs",
        ],
        detail: Detail::Files,
    },
    Part {
        reason: "the proof step, which alone makes a result, and the binding of variables in it",
        paths: &[
            "crates/compiler/src/binding.rs",
            "crates/compiler/src/verify.rs",
        ],
        detail: Detail::Files,
    },
    Part {
        reason: "for filters from elsewhere, in place of front ends and rulesets: the machine, and the comparison \
                 with what it does",
        paths: &[
            "crates/bpf/src/interp.rs",
            "crates/bpf/src/stack.rs",
            "crates/compiler/src/judge/",
            "crates/fuzz/src/agreement.rs",
            "crates/fuzz/src/campaign.rs",
            "crates/fuzz/src/coverage.rs",
            "crates/fuzz/src/feasible.rs",
            "crates/fuzz/src/path.rs",
            "crates/fuzz/src/side.rs",
            "crates/optimize/src/judge.rs",
            "crates/optimize/src/judge/",
            "crates/optimize/src/proved.rs",
            "crates/fuzz/src/translate.rs",
            "crates/analysis/src/reach.rs",
            "crates/vm/src/chain.rs",
            "crates/vm/src/code.rs",
            "crates/vm/src/decode.rs",
        ],
        detail: Detail::Files,
    },
];

/// The list: names with their lines of code.
type Rows = Vec<(String, usize)>;

/// Differences between the list and the tree.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Some((_, listed, _)) = tree.text(PAGE).and_then(split) else {
        let message = format!("put the trusted base between `{BEGIN}` and `{END}`");
        return vec![Problem::new(PAGE, 0, message)];
    };
    let mut listed = sizes(listed);
    let stale = |message: String| {
        let message = format!("{message}; run `cargo xtask tidy --bless` and read what changes");
        Problem::new(PAGE, 0, message)
    };
    for part in &PARTS {
        for path in part
            .paths
            .iter()
            .filter(|path| files(tree, path).is_empty())
        {
            let message = format!("`{path}` of the trusted base doesn't exist: change `PARTS`");
            problems.push(Problem::new("xtask/src/tidy/trust.rs", 0, message));
        }
        for (name, lines) in rows(tree, part) {
            match listed.remove(&name) {
                None => problems.push(stale(format!("`{name}` is trusted and not listed"))),
                Some(said) if said.abs_diff(lines) > TOLERANCE_LINES.max(lines / 10) => {
                    problems.push(stale(format!("`{name}` has {lines} lines, not {said}")));
                }
                Some(_) => {}
            }
        }
    }
    problems.extend(
        listed
            .keys()
            .map(|name| stale(format!("`{name}` is listed and not trusted"))),
    );
    problems
}

/// The page with a list of the tree; `None` if it has no place for one.
pub(super) fn blessed(tree: &Tree) -> Option<(&'static str, String)> {
    let (before, _, after) = tree.text(PAGE).and_then(split)?;
    Some((PAGE, format!("{before}{BEGIN}\n{}{END}{after}", list(tree))))
}

/// The parts before the list, in it and behind it.
fn split(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (listed, after) = rest.split_once(END)?;
    Some((before, listed, after))
}

fn list(tree: &Tree) -> String {
    let mut text = String::new();
    for part in &PARTS {
        let rows = rows(tree, part);
        let total: usize = rows.iter().map(|(_, lines)| lines).sum();
        let total = rounded(total);
        writeln!(text, "\n{}, {total} lines:\n", capitalised(part.reason)).expect("a string");
        text += "| file | lines |\n|---|--:|\n";
        for (name, lines) in rows {
            writeln!(text, "| `{name}` | {} |", rounded(lines)).expect("a string");
        }
    }
    text + "\n"
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

fn rounded(lines: usize) -> usize {
    lines.div_ceil(UNIT_LINES) * UNIT_LINES
}

/// The names and sizes of a list.
fn sizes(list: &str) -> BTreeMap<String, usize> {
    let row = |line: &str| {
        let (name, lines) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name.to_owned(), lines.strip_suffix(" |")?.parse().ok()?))
    };
    list.lines().filter_map(row).collect()
}

fn rows(tree: &Tree, part: &Part) -> Rows {
    let size = |files: &[(&str, usize)]| files.iter().map(|(_, lines)| lines).sum();
    let paths = part.paths.iter().map(|path| (*path, files(tree, path)));
    match part.detail {
        Detail::Paths => {
            let rows = paths.map(|(path, files)| (path.to_owned(), size(&files)));
            rows.collect()
        }
        Detail::Files => {
            let files = paths.flat_map(|(_, files)| files);
            files
                .map(|(file, lines)| (file.to_owned(), lines))
                .collect()
        }
    }
}

/// The Rust files at a path, except generated ones and tests, with their lines of code.
fn files<'a>(tree: &'a Tree, path: &str) -> Vec<(&'a str, usize)> {
    let is_at = |file: &str| file == path || path.ends_with('/') && file.starts_with(path);
    let is_test = |file: &str| file.ends_with("/tests.rs") || file.contains("/tests/");
    tree.rust()
        .filter(|(name, file)| is_at(name) && !is_test(name) && !file.is_generated)
        .map(|(name, file)| (name, code_lines(file)))
        .collect()
}

/// The number of lines with code, without comments, blank lines and tests.
pub(super) fn code_lines(file: &RustFile) -> usize {
    let code = file.product_code();
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/prover/src/gates/words.rs";

    /// A tree with one file of `lines` lines for every trusted path, and a page changed by `change`.
    fn tree(lines: usize, change: impl Fn(String) -> String) -> Tree {
        let mut files = BTreeMap::from([(FILE.to_owned(), "a();\n".repeat(lines))]);
        for path in PARTS.iter().flat_map(|part| part.paths) {
            let file = match path.ends_with('/') {
                true => format!("{path}mod.rs"),
                false => (*path).to_owned(),
            };
            files.insert(file, "//! About it.\n\na();\n".to_owned());
        }
        files.insert(
            PAGE.to_owned(),
            format!("What is trusted.\n{BEGIN}\n{END}\nMore.\n"),
        );
        let (_, page) = blessed(&Tree::new(files.clone())).expect("it has a place");
        files.insert(PAGE.to_owned(), change(page));
        Tree::new(files)
    }

    #[test]
    fn a_blessed_list_stays_while_files_change_little() {
        assert_eq!(check(&tree(300, |page| page)), []);
        let said = format!("| `{FILE}` | 300 |");
        for (other, problems) in [(270, 0), (269, 1), (330, 0), (331, 1)] {
            let other = format!("| `{FILE}` | {other} |");
            let found = check(&tree(300, |page| page.replace(&said, &other)));
            assert_eq!(found.len(), problems, "{other}");
        }
    }

    #[test]
    fn every_file_is_listed_and_no_other() {
        let said = format!("| `{FILE}` | 300 |\n");
        let missing = check(&tree(300, |page| page.replace(&said, "")));
        assert!(missing[0].message.contains("is trusted and not listed"));
        let other = said.replace("words", "gone") + &said;
        let additional = check(&tree(300, |page| page.replace(&said, &other)));
        assert!(additional[0].message.contains("is listed and not trusted"));
    }
}
