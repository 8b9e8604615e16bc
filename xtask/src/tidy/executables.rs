//! Test executables: few, each with a reason.
//!
//! Every executable links all libraries below it, so a new test is a module of an existing executable, not a file
//! beside it. When each of testkit's 42 files of tests was an executable, they took 214 CPU seconds to build; as one,
//! 15.

use serde_json::Value;

use super::Problem;
use super::tree::Tree;

/// The executables of integration tests: package, name, and the reason for a separate one.
const INTEGRATION: [(&str, &str, &str); 18] = [
    ("tamis-testkit", "it", "the libraries together"),
    (
        "tamis-testkit",
        "vs_kernel",
        "forks often, which takes long in a process with much memory",
    ),
    (
        "tamis",
        "it",
        "the path of the command is known to its package only",
    ),
    (
        "tamis",
        "golden",
        "each file is a test, so it has a main of its own",
    ),
    (
        "tamis-lab",
        "it",
        "the path of the command is known to its package only",
    ),
    (
        "tamis-lab",
        "golden",
        "each file is a test, so it has a main of its own",
    ),
    (
        "tamis-exec",
        "it",
        "the path of the command is known to its package only",
    ),
    (
        "tamis-bench",
        "it",
        "the path of the command `peers` is known to its package only",
    ),
    (
        "tamis-kernel",
        "live",
        "starts itself as a victim, so it has a main of its own",
    ),
    (
        "tamis-kernel",
        "memory",
        "nothing of its package may install filters meanwhile",
    ),
    (
        "tamis-libseccomp",
        "c_calls",
        "calls the functions as C does, on any architecture without a shared library",
    ),
    (
        "tamis-platform",
        "live",
        "starts itself as a supervisor, so it has a main of its own",
    ),
    (
        "tamis-policy",
        "tamis",
        "builds without the compiler and the prover",
    ),
    (
        "tamis-scmp",
        "semantics",
        "builds with the tables and rulesets alone",
    ),
    (
        "xtask",
        "tables",
        "generating tables must work while they don't compile",
    ),
    (
        "confined-server",
        "confined",
        "the path of the example is known to its package only",
    ),
    (
        "confined-server-build-script",
        "confined",
        "the path of the example is known to its package only",
    ),
    (
        "library-user",
        "confined",
        "the path of the example is known to its package only",
    ),
];

/// Problems: executables that are not in the table, executables without unit tests, files of tests without an
/// executable.
pub(super) fn check(tree: &Tree, packages: &[Value]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages
        .iter()
        .filter(|package| package["source"].is_null())
    {
        let targets = package["targets"].as_array().into_iter().flatten();
        let tested = targets.filter(|target| target["test"] == true);
        let (integration, unit): (Vec<&Value>, Vec<&Value>) =
            tested.partition(|target| target["kind"][0] == "test");
        let name = package["name"].as_str().unwrap_or_default();
        let names = integration
            .iter()
            .filter_map(|target| target["name"].as_str());
        problems.extend(names.filter_map(|target| unlisted(name, target)));
        problems.extend(idle(tree, package, unit.len()));
    }
    problems.extend(undeclared(tree));
    problems
}

/// An integration test that is not in the table.
fn unlisted(package: &str, target: &str) -> Option<Problem> {
    let is_listed = INTEGRATION
        .iter()
        .any(|row| (row.0, row.1) == (package, target));
    let message = format!(
        "the test executable `{target}` is new: make it a module of one that exists, or give it a row with a reason in xtask/src/tidy/executables.rs"
    );
    (!is_listed).then(|| Problem::new(&format!("package {package}"), 0, message))
}

/// More executables of unit tests than needed, which is one per package with such tests.
fn idle(tree: &Tree, package: &Value, executables_count: usize) -> Option<Problem> {
    let name = package["name"].as_str().unwrap_or_default();
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let folder = manifest.trim_end_matches("Cargo.toml");
    let has_tests = tree.rust().any(|(path, file)| {
        let source = format!("/{path}");
        let is_own = source
            .rsplit_once("/src/")
            .is_some_and(|(root, _)| folder.ends_with(&format!("{root}/")));
        is_own && file.code.contains("#[test]")
    });
    let message = format!(
        "{executables_count} executables for unit tests: write `test = false` at each [lib] and [[bin]] without any, and keep them in one of them"
    );
    (executables_count > usize::from(has_tests))
        .then(|| Problem::new(&format!("package {name}"), 0, message))
}

/// Files beside a `main.rs` of tests that it does not declare, so that their tests never run.
fn undeclared(tree: &Tree) -> impl Iterator<Item = Problem> {
    tree.rust().filter_map(|(path, _)| {
        let (folder, file) = path.rsplit_once('/')?;
        let module = file
            .strip_suffix(".rs")
            .filter(|module| *module != "main")?;
        let is_test = folder
            .rsplit_once('/')
            .is_some_and(|(above, _)| above.ends_with("/tests"));
        let main = tree
            .text(&format!("{folder}/main.rs"))
            .filter(|_| is_test)?;
        let is_declared = main.lines().any(|line| line == format!("mod {module};"));
        let message = format!("write `mod {module};` in {folder}/main.rs: its tests aren't run");
        (!is_declared).then(|| Problem::new(path, 0, message))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn problems(files: &[(&str, &str)], targets: &Value) -> Vec<String> {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        let tree = Tree::new(files.collect::<BTreeMap<_, _>>());
        let package = json!({
            "name": "tamis-new", "source": null, "targets": targets, "manifest_path": "/home/crates/new/Cargo.toml",
        });
        check(&tree, &[package])
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_new_executable_wants_a_reason() {
        let test = json!([{"name": "more", "kind": ["test"], "test": true}]);
        let found = problems(&[], &test);
        assert!(
            found.len() == 1 && found[0].contains("`more` is new"),
            "{found:?}"
        );
    }

    #[test]
    fn unit_tests_are_in_one_executable_if_there_are_any() {
        let target = |kind: &str| json!({"name": "new", "kind": [kind], "test": true});
        let tested = [("crates/new/src/a/b.rs", "#[test]\nfn a() {}\n")];
        let elsewhere = [("crates/old/src/a.rs", "#[test]\nfn a() {}\n")];
        assert_eq!(problems(&tested, &json!([target("lib")])).len(), 0);
        assert_eq!(
            problems(&tested, &json!([target("lib"), target("bin")])).len(),
            1
        );
        assert_eq!(problems(&elsewhere, &json!([target("lib")])).len(), 1);
        assert_eq!(problems(&elsewhere, &json!([])).len(), 0);
    }

    #[test]
    fn a_file_that_no_executable_holds_is_told() {
        let main = ("crates/new/tests/it/main.rs", "mod a;\n");
        let file = |name: &'static str| (name, "//! A test.\n");
        let none = json!([]);
        assert_eq!(
            problems(&[main, file("crates/new/tests/it/a.rs")], &none).len(),
            0
        );
        assert_eq!(
            problems(&[main, file("crates/new/tests/it/b.rs")], &none).len(),
            1
        );
        assert_eq!(
            problems(&[main, file("crates/new/src/it/b.rs")], &none).len(),
            0
        );
    }
}
