//! Files and functions stay short enough to be read at one sitting.

use super::Problem;
use super::tree::Tree;

/// The most lines of a Rust file that people write.
const MAX_FILE_LINES: usize = 800;
/// The most lines of a function, from `fn` to the closing brace.
const MAX_FUNCTION_LINES: usize = 70;

/// Files and functions that are too long; generated files may be.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, file) in tree.rust().filter(|(_, file)| !file.is_generated) {
        let lines_count = file.code.lines().count();
        if lines_count > MAX_FILE_LINES {
            let message = format!("{lines_count} lines; split the file at {MAX_FILE_LINES}");
            problems.push(Problem::new(path, 0, message));
        }
        for function in file.functions() {
            if function.lines_count > MAX_FUNCTION_LINES {
                let message = format!(
                    "`{}` has {} lines; split it at {MAX_FUNCTION_LINES}",
                    function.name, function.lines_count
                );
                problems.push(Problem::new(path, function.line, message));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_inclusive_and_generated_files_exempt() {
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "\n".repeat(lines - 2));
        let files = [
            ("short.rs", function(70)),
            ("long.rs", function(71)),
            ("huge.rs", "\n".repeat(801)),
            ("made.rs", format!("// @generated\n{}", function(900))),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text));
        let problems = check(&Tree::new(files.into()));
        let places: Vec<_> = problems.iter().map(|p| (p.path.as_str(), p.line)).collect();
        assert_eq!(places, [("huge.rs", 0), ("long.rs", 1)]);
    }
}
