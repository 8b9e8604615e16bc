//! Published crates are complete and depend only on published crates, and documents name no unpublished versions.

use serde_json::Value;

use super::Problem;
use super::tree::Tree;

/// Problems: published crates without metadata, with unpublished dependencies or with files of other crates; versions
/// of our crates in documents, which should give the path instead.
pub(super) fn check(tree: &Tree, packages: &[Value]) -> Vec<Problem> {
    let ours = packages
        .iter()
        .filter(|package| package["source"].is_null());
    let published: Vec<&Value> = ours
        .filter(|package| package["publish"].is_null())
        .collect();
    let names: Vec<&str> = published
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let mut problems = Vec::new();
    for package in &published {
        problems.extend(incomplete(package));
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        problems
            .extend(dependencies.filter_map(|dependency| unavailable(package, dependency, &names)));
    }
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        for (line, named) in included(text) {
            if leaves(path, named) {
                let message =
                    format!("a packaged crate doesn't have {named}: move it into the crate");
                problems.push(Problem::new(path, line, message));
            }
        }
    }
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (index, line) in text.lines().enumerate() {
            if names_version(line) {
                problems.push(Problem::new(
                    path,
                    index + 1,
                    "no registry has this version: name the path",
                ));
            }
        }
    }
    problems
}

/// The metadata that a registry requires and a package lacks.
fn incomplete(package: &Value) -> Option<Problem> {
    let is_empty = |key: &&str| match &package[*key] {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    let wanted = ["description", "readme", "keywords", "categories"];
    let missing: Vec<&str> = wanted.into_iter().filter(is_empty).collect();
    let path = format!("package {}", package["name"].as_str()?);
    let message = format!(
        "it is published: add {} from the workspace",
        missing.join(", ")
    );
    (!missing.is_empty()).then(|| Problem::new(&path, 0, message))
}

/// A dependency on an unpublished crate of ours.
fn unavailable(package: &Value, dependency: &Value, published: &[&str]) -> Option<Problem> {
    dependency["path"].as_str()?;
    let name = dependency["name"].as_str()?;
    let is_any = dependency["req"] == "*";
    // Cargo removes dependencies of tests without a version from a package.
    if is_any && dependency["kind"] == "dev" || !is_any && published.contains(&name) {
        return None;
    }
    let path = format!("package {}", package["name"].as_str()?);
    let message = format!("`{name}` needs a version in the workspace, and to be published");
    Some(Problem::new(&path, 0, message))
}

/// The files that a source includes, with their lines.
fn included(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate();
    let found = lines.filter_map(|(index, line)| {
        let (before, rest) = line.split_once("!(\"")?;
        let is_include = ["include", "include_str", "include_bytes"]
            .iter()
            .any(|name| before.ends_with(name));
        is_include.then_some((index + 1, rest.split('"').next()?))
    });
    found.collect()
}

/// Whether a path that a source of a published crate names, relative to that source, is outside of the crate.
fn leaves(source: &str, named: &str) -> bool {
    let below = source
        .strip_prefix("crates/")
        .and_then(|rest| rest.split_once("/src/"));
    let Some((_, file)) = below.filter(|(name, _)| *name != "testkit") else {
        return false;
    };
    // From the folder of the source up to the crate's: one for `src`, and those in it.
    let depth = 1 + file.matches('/').count();
    named.split('/').filter(|part| *part == "..").count() > depth
}

/// Whether a line of a document is a dependency on one of our crates by version alone.
fn names_version(line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else {
        return false;
    };
    let name = name.trim();
    let is_ours = name == "tamis"
        || name
            .strip_prefix("tamis-")
            .is_some_and(|rest| !rest.contains(' '));
    let value = value.trim();
    is_ours && (value.starts_with('"') || value.contains("version")) && !value.contains("path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_includes_its_own_files_alone() {
        let source = "const A: &str = include_str!(\"../data/a.txt\");\nconst B: &[u8] = include_bytes!(\"../../b\");\n";
        assert_eq!(included(source), [(1, "../data/a.txt"), (2, "../../b")]);
        assert!(!leaves("crates/abi/src/a.rs", "../data/a.txt"));
        assert!(leaves("crates/abi/src/a.rs", "../../b"));
        assert!(!leaves("crates/abi/src/in/a.rs", "../../b"));
        assert!(!leaves("crates/testkit/src/a.rs", "../../b"));
    }

    #[test]
    fn documents_name_paths() {
        assert!(names_version("tamis = \"0.1\""));
        assert!(names_version(
            "tamis-abi = { version = \"0.1\", features = [] }"
        ));
        assert!(!names_version(
            "tamis = { path = \"../tamis/crates/tamis\" }"
        ));
        assert!(!names_version("tamis explain = \"words\""));
    }

    #[test]
    fn what_is_published_uses_only_what_is() {
        let package = serde_json::json!({"name": "tamis-bpf"});
        let on = |name: &str, req: &str, kind: Value| {
            let dependency =
                serde_json::json!({"name": name, "req": req, "kind": kind, "path": "/x"});
            unavailable(&package, &dependency, &["tamis-abi"]).is_some()
        };
        assert!(!on("tamis-abi", "^0.1.0", Value::Null));
        assert!(on("tamis-abi", "*", Value::Null));
        assert!(on("tamis-testkit", "^0.1.0", Value::from("dev")));
        assert!(!on("tamis-testkit", "*", Value::from("dev")));
    }
}
