//! Documents: every module has a comment, and links have targets.

use std::path::Path;

use super::Problem;
use super::tree::{Tree, root};

/// The table of contents of the book.
const SUMMARY: &str = "docs/book/SUMMARY.md";

/// Modules without a comment, dead links, pages that the book does not list.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, file) in tree.rust() {
        let first_comment = file
            .comments
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty());
        let is_introduced = first_comment.is_some_and(|line| line.starts_with("//!"));
        if !is_introduced && !file.is_generated {
            problems.push(Problem::new(
                path,
                1,
                "begin with a `//!` comment: what is it for?",
            ));
        }
    }
    let summary = tree.text(SUMMARY).unwrap_or_default();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        let exists = |target: &str| {
            let folder = Path::new(path).parent().unwrap_or(Path::new(""));
            root().join(folder).join(target).exists()
        };
        for (line, target) in links(text) {
            if !exists(target) {
                let message = format!("the link leads nowhere: {target}");
                problems.push(Problem::new(path, line, message));
            }
        }
        let page = path.strip_prefix("docs/book/");
        let is_listed = page.is_none_or(|page| summary.contains(&format!("({page})")));
        if !is_listed && path != SUMMARY {
            problems.push(Problem::new(path, 0, format!("list the page in {SUMMARY}")));
        }
    }
    problems
}

/// The lines and targets of the relative links of a Markdown text, without their anchors.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        is_fenced ^= line.trim_start().starts_with("```");
        let parts = line.split("](").skip(1).filter(|_| !is_fenced);
        for part in parts {
            let target = part.split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((index + 1, path));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_links_outside_of_code_are_followed() {
        let text = "[a](b.md#c) [d](https://e.org) [f](#g)\n```\n[h](i.md)\n```\n![j](k.svg)\n";
        assert_eq!(links(text), [(1, "b.md"), (5, "k.svg")]);
    }

    #[test]
    fn a_module_begins_with_what_it_is_for() {
        let files = [
            ("a.rs", "//! A.\nfn a() {}\n"),
            ("b.rs", "// Licence.\n//! B.\n"),
            ("c.rs", "fn c() {}\n"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let problems = check(&Tree::new(files.into()));
        let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(paths, ["b.rs", "c.rs"]);
    }
}
