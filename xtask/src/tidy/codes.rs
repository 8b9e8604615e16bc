//! Every diagnostic code is used.

use super::Problem;
use super::rust::words;
use super::tree::Tree;

/// How the name of each file ends that declares codes.
const DECLARATIONS: &str = "/code.rs";

/// Codes that are never reported.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let is_declaration = |path: &str| path.ends_with(DECLARATIONS);
    for (path, text) in tree.files().filter(|(path, _)| is_declaration(path)) {
        for (index, line) in text.lines().enumerate() {
            let Some((name, _)) = line.split_once("= \"TM") else {
                continue;
            };
            let name = name.trim();
            // An example in a comment.
            if name.starts_with("//") {
                continue;
            }
            let mut users = tree.rust().filter(|(path, _)| !is_declaration(path));
            if !users.any(|(_, file)| words(&file.product_code(), name).next().is_some()) {
                let message = format!("nothing reports `{name}`: remove the code");
                problems.push(Problem::new(path, index + 1, message));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_only_a_test_or_a_comment_names_is_unused() {
        let declaration = "codes! { X;\n A = \"TM0001\", \"a\",\n B = \"TM0002\", \"b\",\n}\n";
        let user = "f(code::A);\n// B\n#[cfg(test)]\nmod tests {\n f(code::B);\n}\n";
        let files = [
            ("crates/bpf/src/code.rs", declaration),
            ("crates/bpf/src/x.rs", user),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let problems = check(&Tree::new(files.into()));
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [3]);
    }
}
