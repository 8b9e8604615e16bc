//! SECURITY.md lists the trusted base by file, and the list is what the tree holds.
//!
//! [`PARTS`] says which files each claim of tamis relies on. The list in SECURITY.md is written from it by
//! `cargo xtask tidy --bless`. A file that is missing there or too many is a problem, and so is a size
//! that is off by more than [`TOLERANCE_LINES`] or a tenth, so that small edits need no new list.

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
/// How far a size may be off.
const TOLERANCE_LINES: usize = 20;
/// Sizes are given as multiples of this.
const UNIT_LINES: usize = 10;

/// Files that are trusted for one reason.
struct Part {
    /// What they do.
    reason: &'static str,
    /// Folders, with `/` at the end, and files. All files of a folder count.
    paths: &'static [&'static str],
    /// How its files are listed.
    detail: Detail,
}

#[derive(Clone, Copy)]
enum Detail {
    /// Each file.
    Files,
    /// Each path: there are many files, of which one policy needs a few.
    Paths,
}

const PARTS: [Part; 6] = [
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
            "crates/policy/src/yaml.rs",
            "crates/scmp/src/",
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
        reason: "the prover: everything in it decides",
        paths: &["crates/prover/src/"],
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
            "crates/compiler/src/foreign/proved.rs",
            "crates/compiler/src/judge/",
            "crates/fuzz/src/agreement.rs",
            "crates/fuzz/src/campaign.rs",
            "crates/fuzz/src/coverage.rs",
            "crates/fuzz/src/feasible.rs",
            "crates/fuzz/src/path.rs",
            "crates/fuzz/src/side.rs",
            "crates/fuzz/src/translate.rs",
            "crates/analysis/src/reach.rs",
            "crates/vm/src/",
        ],
        detail: Detail::Files,
    },
];

/// A line of the list: what it names and how many lines of code that has.
type Rows = Vec<(String, usize)>;

/// Where the list isn't what the tree holds.
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

/// The page with a list of what the tree holds; `None` if it has no place for one.
pub(super) fn blessed(tree: &Tree) -> Option<(&'static str, String)> {
    let (before, _, after) = tree.text(PAGE).and_then(split)?;
    Some((PAGE, format!("{before}{BEGIN}\n{}{END}{after}", list(tree))))
}

/// What stands before, in and behind the list.
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

/// The Rust files at a path that people write and that aren't tests, with their lines of code.
fn files<'a>(tree: &'a Tree, path: &str) -> Vec<(&'a str, usize)> {
    let is_at = |file: &str| file == path || path.ends_with('/') && file.starts_with(path);
    let is_test = |file: &str| file.ends_with("/tests.rs") || file.contains("/tests/");
    tree.rust()
        .filter(|(name, file)| is_at(name) && !is_test(name) && !file.is_generated)
        .map(|(name, file)| (name, code_lines(file)))
        .collect()
}

/// How many lines have code: comments, blank lines and tests don't.
fn code_lines(file: &RustFile) -> usize {
    let code = file.product_code();
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/prover/src/gates/words.rs";

    /// A tree in which every trusted path has a file of so many lines, and the page says what `change` makes of it.
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
