//! Plain comments and names by `docs/style.md`.
//!
//! Three rules for each package: at most 5 % of its comment lines contain a word that replaces the name of a thing or
//! treats a program as a person, such as *what* and *tells*; no type has a pronoun or a verb as its name; no function
//! is called `of`, which doesn't describe its result. Code spans and fences in comments don't count.

use std::collections::BTreeMap;

use super::Problem;
use super::rust::{RustFile, line_of, words};
use super::tree::Tree;
use super::words::prose;

/// The greatest share of comment lines with such words, in percent.
const MAX_PERCENT: usize = 5;
/// The most places in a message.
const MAX_PLACES: usize = 3;

/// The words, in lower case.
const WORDS: [&str; 21] = [
    "anybody", "ask", "asked", "asking", "asks", "knew", "knows", "nobody", "said", "say",
    "saying", "says", "somebody", "tell", "telling", "tells", "told", "what", "who", "whoever",
    "whom",
];
/// Prepositions that begin a relative clause before *which*.
const PREPOSITIONS: [&str; 16] = [
    "after", "at", "before", "behind", "beside", "by", "for", "from", "in", "into", "of", "on",
    "through", "to", "under", "with",
];
/// Pronouns and verbs that no type has as its name.
const TYPE_NAMES: [&str; 24] = [
    "Ask", "Asks", "Does", "Gives", "Goes", "Has", "How", "Is", "Knows", "Looks", "Makes", "Said",
    "Says", "Takes", "Tells", "Told", "Wants", "What", "Where", "Which", "Who", "Whose", "Why",
    "Whom",
];

/// Violations of the rules.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut packages: BTreeMap<&str, Vec<(&str, &RustFile)>> = BTreeMap::new();
    for (path, file) in tree.rust().filter(|(_, file)| !file.is_generated) {
        packages
            .entry(package(path))
            .or_default()
            .push((path, file));
    }
    let mut problems = Vec::new();
    for (name, files) in &packages {
        problems.extend(in_comments(name, files));
        problems.extend(in_names(files));
    }
    problems
}

/// The folder of a file's package: `crates/abi`, `xtask`; empty for a file outside of packages.
fn package(path: &str) -> &str {
    let parts = match path.starts_with("crates/") || path.starts_with("lab/") {
        true => 2,
        false => 1,
    };
    let end = path.match_indices('/').nth(parts - 1);
    end.map_or("", |(at, _)| &path[..at])
}

/// The problem of a package with too many comment lines that contain one of the words.
fn in_comments(package: &str, files: &[(&str, &RustFile)]) -> Option<Problem> {
    let (mut lines_count, mut places) = (0, Vec::new());
    for (path, file) in files {
        lines_count += file
            .comments
            .lines()
            .filter(|line| !line.trim().is_empty())
            .count();
        let prose = prose(&file.comments);
        let found = prose
            .lines()
            .enumerate()
            .filter(|(_, line)| is_unclear(line));
        places.extend(found.map(|(index, _)| format!("{path}:{}", index + 1)));
    }
    (places.len() * 100 > lines_count * MAX_PERCENT).then(|| {
        let message = format!(
            "{} of {lines_count} comment lines contain *who*, *told*, *what*, *of which* and the like, more than \
             {MAX_PERCENT} %; name the thing (docs/style.md), such as in {}",
            places.len(),
            places[..places.len().min(MAX_PLACES)].join(", ")
        );
        Problem::new(package, 0, message)
    })
}

fn is_unclear(line: &str) -> bool {
    let line = line.to_lowercase();
    let has = |word: &str| words(&line, word).next().is_some();
    let is_clause = |at: usize| {
        let before = line[..at]
            .trim_end()
            .rsplit(|c: char| !c.is_alphabetic())
            .next();
        before.is_some_and(|word| PREPOSITIONS.contains(&word))
    };
    WORDS.iter().any(|word| has(word)) || words(&line, "which").any(is_clause)
}

/// The problems with names of types and functions.
fn in_names(files: &[(&str, &RustFile)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, file) in files {
        for keyword in ["struct", "enum", "trait", "type", "fn"] {
            for at in words(&file.code, keyword) {
                let rest = file.code[at + keyword.len()..].trim_start();
                let is_part = |c: char| c.is_alphanumeric() || c == '_';
                let name = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
                let advice = match keyword {
                    "fn" if name == "of" => "name its result: `from_rule`, `parse`",
                    "fn" => continue,
                    _ if TYPE_NAMES.contains(&name) => "use the field's term, a noun",
                    _ => continue,
                };
                let message = format!("`{keyword} {name}`: {advice}");
                problems.push(Problem::new(path, line_of(&file.code, at), message));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize)> {
        let files = [("crates/a/src/lib.rs".to_owned(), text.to_owned())];
        let problems = check(&Tree::new(files.into()));
        let places = problems
            .into_iter()
            .map(|problem| (problem.path, problem.line));
        places.collect()
    }

    #[test]
    fn one_comment_line_in_twenty_may_have_such_a_word() {
        let plain = "/// The number of calls.\n".repeat(19);
        let package = ("crates/a".to_owned(), 0);
        for line in [
            "What it tells.",
            "The list of which it is.",
            "Somebody's: see `a`.",
        ] {
            let text = format!("{plain}/// {line}\n");
            assert_eq!(found(&text), []);
            assert_eq!(
                found(&format!("{text}/// {line}\n")),
                std::slice::from_ref(&package)
            );
        }
        let text = "/// The call, which is `what`.\n/// ```\n/// // who\n/// ```\nfn tell() {} \n";
        assert_eq!(found(text), []);
    }

    #[test]
    fn types_are_nouns_and_functions_are_named_by_their_results() {
        let text = "enum Who {}\nstruct Whole;\nimpl Whole {\n    const fn of() {}\n    fn of_one() {}\n}\n";
        let path = || "crates/a/src/lib.rs".to_owned();
        assert_eq!(found(text), [(path(), 1), (path(), 4)]);
    }
}
