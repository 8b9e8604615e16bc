//! Forbidden words, spelling, and trailing blanks.

use super::Problem;
use super::rust::{line_of, words};
use super::tree::Tree;

/// Reminders, which must refer to a record of the work.
const REMINDERS: [&str; 3] = ["TODO", "FIXME", "XXX"];
/// American spellings with the British ones, checked in prose only.
const SPELLINGS: [(&str, &str); 9] = [
    ("behavior", "behaviour"),
    ("color", "colour"),
    ("favor", "favour"),
    ("neighbor", "neighbour"),
    ("normalize", "normalise"),
    ("optimization", "optimisation"),
    ("optimizer", "optimiser"),
    ("recognize", "recognise"),
    ("serialize", "serialise"),
];

/// Problems: reminders, disabled tests, unfinished code, American spelling and trailing blanks.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files() {
        // The output of a command may end in blanks.
        if !path.ends_with(".golden") {
            problems.extend(trailing_blanks(path, text));
        }
        if path.ends_with(".md") {
            problems.extend(reminders(path, text));
            problems.extend(spelling(path, &prose(text)));
        }
    }
    for (path, file) in tree.rust() {
        problems.extend(reminders(path, &file.comments));
        problems.extend(spelling(path, &prose(&file.comments)));
        for (unfinished, advice) in [
            ("#[ignore", "assert what the code does today instead"),
            ("todo!", "finish it or leave it out"),
            ("unimplemented!", "finish it or leave it out"),
        ] {
            problems.extend(file.code.match_indices(unfinished).map(|(at, found)| {
                let message = format!("`{found}` does not stay: {advice}");
                Problem::new(path, line_of(&file.code, at), message)
            }));
        }
    }
    problems
}

fn trailing_blanks(path: &str, text: &str) -> Vec<Problem> {
    let is_blank_ended = |line: &str| line.ends_with([' ', '\t', '\r']);
    let lines = text.split('\n').enumerate();
    lines
        .filter(|(_, line)| is_blank_ended(line))
        .map(|(index, _)| Problem::new(path, index + 1, "remove the blanks at the end"))
        .collect()
}

fn reminders(path: &str, text: &str) -> Vec<Problem> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.contains("://"))
        .filter_map(|(index, line)| {
            let found = REMINDERS
                .iter()
                .find(|word| words(line, word).next().is_some())?;
            let message = format!("`{found}` needs the address of an issue on its line");
            Some(Problem::new(path, index + 1, message))
        })
        .collect()
}

/// A text without code spans and code fences.
pub(super) fn prose(text: &str) -> String {
    let mut is_fenced = false;
    let mut prose = String::with_capacity(text.len());
    for line in text.lines() {
        let is_fence = line.trim_start_matches(['/', '!', ' ']).starts_with("```");
        is_fenced ^= is_fence;
        if !is_fenced && !is_fence {
            prose.extend(line.split('`').step_by(2));
        }
        prose.push('\n');
    }
    prose
}

/// Words in capitals are names and not checked.
fn spelling(path: &str, prose: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (american, british) in SPELLINGS {
        // Without the first letter, which may be upper case.
        for (at, _) in prose.match_indices(&american[1..]) {
            let is_word = prose[..at].to_ascii_lowercase().ends_with(&american[..1]);
            if is_word {
                let message = format!("spell it `{british}`");
                problems.push(Problem::new(path, line_of(prose, at), message));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_with_problems(path: &str, text: &str) -> Vec<usize> {
        let tree = Tree::new([(path.to_owned(), text.to_owned())].into());
        check(&tree)
            .into_iter()
            .map(|problem| problem.line)
            .collect()
    }

    #[test]
    fn reminders_need_an_address() {
        let todo = REMINDERS[0];
        let text = format!("// {todo}: later\n// {todo} https://example.org/1\n");
        assert_eq!(lines_with_problems("a.rs", &text), [1]);
    }

    #[test]
    fn code_and_quoted_words_may_be_spelt_as_they_are() {
        let text = "/// Sets the `color` of NO_COLOR.\nfn color() {}\n/// The color.\n";
        assert_eq!(lines_with_problems("a.rs", text), [3]);
        let text = "Behavior.\n```\ncolor\n```\nfine\n";
        assert_eq!(lines_with_problems("a.md", text), [1]);
    }

    #[test]
    fn blanks_at_the_end_are_found_except_in_goldens() {
        assert_eq!(lines_with_problems("a.toml", "a\nb \nc\t\n"), [2, 3]);
        assert!(lines_with_problems("a.golden", "a \n").is_empty());
    }

    #[test]
    fn tests_are_not_switched_off() {
        let text = format!("#[test]\n#[{}]\nfn a() {{}}\n", "ignore = \"slow\"");
        assert_eq!(lines_with_problems("a.rs", &text), [2]);
    }
}
