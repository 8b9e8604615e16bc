//! The checker of certificates is small and stands alone: no dependency, not even for tests, and few lines.

use serde_json::Value;

use super::Problem;
use super::tree::Tree;
use super::trust::code_lines;

/// The package and the folder of its sources.
const PACKAGE: &str = "tamis-check";
const FOLDER: &str = "crates/check/src/";
/// The most lines of code, without comments and blank lines.
const MAX_LINES: usize = 600;

/// Problems: dependencies of the checker, and too many lines of its code.
pub(super) fn check(tree: &Tree, packages: &[Value]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let own = packages.iter().find(|package| package["name"] == PACKAGE);
    let dependencies = own.and_then(|package| package["dependencies"].as_array());
    for dependency in dependencies.into_iter().flatten() {
        let message = format!(
            "remove {}: the checker uses no other package",
            dependency["name"]
        );
        problems.push(Problem::new(&format!("package {PACKAGE}"), 0, message));
    }
    let files = tree.rust().filter(|(path, _)| path.starts_with(FOLDER));
    let lines: usize = files.map(|(_, file)| code_lines(file)).sum();
    if lines > MAX_LINES {
        let message = format!("{lines} lines of code; shorten them to {MAX_LINES}");
        problems.push(Problem::new(FOLDER, 0, message));
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_checker_has_few_lines_and_no_dependencies() {
        let tree = |lines: usize| {
            let half = "//! About.\n\nfn f() {}\n".to_owned() + &"f();\n".repeat(lines / 2 - 1);
            let files =
                ["lib.rs", "table.rs"].map(|name| (format!("{FOLDER}{name}"), half.clone()));
            Tree::new(files.into())
        };
        let alone = [json!({"name": PACKAGE, "dependencies": []})];
        assert_eq!(check(&tree(600), &alone), []);
        assert_eq!(check(&tree(602), &alone).len(), 1);
        let with_tests = json!({"name": "tamis-testkit", "kind": "dev"});
        let helped = [json!({"name": PACKAGE, "dependencies": [with_tests]})];
        assert_eq!(check(&tree(600), &helped).len(), 1);
    }
}
