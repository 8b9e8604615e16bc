//! The permitted dependencies between crates, and the permitted licences.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Problem;
use super::tree::{Tree, root};

/// The crates of the workspace, lowest first, with the crates that each may use. Development dependencies may also
/// use `testkit`. `None` means all crates.
const ALLOWED: [(&str, Option<&[&str]>); 48] = [
    ("abi", Some(&[])),
    ("chart", Some(&[])),
    // A program for sceptics: it shares no code with what it checks.
    ("check", Some(&[])),
    ("diag", Some(&[])),
    ("bpf", Some(&["abi", "diag"])),
    ("ebpf", Some(&["abi", "bpf", "diag"])),
    ("rules", Some(&["abi", "diag"])),
    ("scmp", Some(&["abi", "rules"])),
    ("policy", Some(&["abi", "diag", "rules", "scmp"])),
    // The prover uses neither the compiler nor its parts, which it judges.
    ("profile", Some(&["abi", "diag"])),
    ("prover", Some(&["abi", "bpf", "rules"])),
    (
        "certificate",
        Some(&["abi", "bpf", "check", "prover", "rules"]),
    ),
    ("analysis", Some(&["abi", "bpf", "prover", "rules"])),
    // Below the compiler, which rates programs with it.
    (
        "export",
        Some(&[
            "abi", "analysis", "diag", "policy", "prover", "rules", "scmp",
        ]),
    ),
    ("algebra", Some(&["abi", "policy", "prover", "rules"])),
    ("vm", Some(&["abi", "bpf"])),
    // Not the compiler either: its results are fuzzed, and the judge uses the calls found.
    (
        "fuzz",
        Some(&["abi", "analysis", "bpf", "prover", "rules", "vm"]),
    ),
    (
        "compiler",
        Some(&[
            "abi", "analysis", "bpf", "diag", "fuzz", "profile", "prover", "rules",
        ]),
    ),
    (
        "optimize",
        Some(&[
            "abi", "analysis", "bpf", "compiler", "fuzz", "prover", "rules",
        ]),
    ),
    ("kernel", Some(&["abi", "bpf"])),
    ("exec", Some(&["abi", "bpf", "kernel"])),
    ("platform", Some(&["abi", "bpf", "kernel", "vm"])),
    (
        "libseccomp",
        Some(&[
            "abi", "bpf", "compiler", "export", "kernel", "policy", "profile", "rules", "scmp",
        ]),
    ),
    ("libseccomp-next", Some(&["libseccomp"])),
    (
        "session",
        Some(&[
            "abi", "bpf", "compiler", "diag", "policy", "profile", "prover", "rules",
        ]),
    ),
    (
        "embed",
        Some(&[
            "abi", "bpf", "compiler", "diag", "policy", "rules", "session",
        ]),
    ),
    ("macros", Some(&["embed"])),
    (
        "lint",
        Some(&["abi", "analysis", "bpf", "diag", "prover", "rules"]),
    ),
    (
        "assertions",
        Some(&[
            "abi", "analysis", "bpf", "diag", "policy", "prover", "rules",
        ]),
    ),
    (
        "report",
        Some(&[
            "abi",
            "analysis",
            "assertions",
            "bpf",
            "chart",
            "compiler",
            "diag",
            "ebpf",
            "export",
            "fuzz",
            "lint",
            "optimize",
            "policy",
            "profile",
            "prover",
            "rules",
        ]),
    ),
    (
        "deploy",
        Some(&[
            "abi", "analysis", "bpf", "compiler", "diag", "kernel", "lint", "optimize", "policy",
            "profile", "prover", "report", "rules", "session",
        ]),
    ),
    (
        "learn",
        Some(&[
            "abi", "analysis", "diag", "export", "policy", "profile", "prover", "rules",
        ]),
    ),
    (
        "recorder",
        Some(&[
            "abi", "bpf", "diag", "ebpf", "kernel", "platform", "profile",
        ]),
    ),
    (
        "cli",
        Some(&[
            "abi",
            "bpf",
            "certificate",
            "chart",
            "compiler",
            "deploy",
            "diag",
            "export",
            "kernel",
            "lint",
            "optimize",
            "platform",
            "policy",
            "profile",
            "prover",
            "report",
            "session",
        ]),
    ),
    (
        "tamis",
        Some(&[
            "abi",
            "algebra",
            "analysis",
            "assertions",
            "bpf",
            "chart",
            "cli",
            "compiler",
            "deploy",
            "diag",
            "ebpf",
            "embed",
            "export",
            "fuzz",
            "kernel",
            "learn",
            "libseccomp",
            "libseccomp-next",
            "lint",
            "macros",
            "optimize",
            "platform",
            "policy",
            "profile",
            "prover",
            "recorder",
            "report",
            "rules",
            "scmp",
            "session",
            "vm",
        ]),
    ),
    // The laboratory, which the product may not use.
    ("pcap", Some(&["bpf"])),
    ("ebpf-vm", Some(&["abi", "bpf", "diag", "ebpf"])),
    ("jit", Some(&["abi", "bpf", "ebpf-vm"])),
    ("engine", Some(&["abi", "bpf", "ebpf-vm", "jit", "vm"])),
    (
        "packets",
        Some(&["abi", "bpf", "compiler", "fuzz", "prover"]),
    ),
    (
        "lab",
        Some(&[
            "abi", "bpf", "cli", "ebpf-vm", "engine", "fuzz", "jit", "kernel", "packets", "pcap",
            "platform", "prover", "report", "session", "vm",
        ]),
    ),
    // Examples use only the public crate.
    ("confined-server", Some(&["tamis"])),
    ("confined-server-build-script", Some(&["tamis"])),
    ("library-user", Some(&["tamis"])),
    ("testkit", None),
    ("testkit-macros", Some(&[])),
    ("bench", None),
    ("xtask", None),
];

/// The licence of the project.
const LICENCE: &str = "MIT OR Apache-2.0";
/// Licences that require nothing but attribution of users of the binary; each dependency must offer one of them.
const PERMISSIVE: [&str; 8] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
];

/// Excludes dependencies of other systems, which are not built.
const PLATFORM: &str = "--filter-platform=x86_64-unknown-linux-gnu";

/// Problems: edges that are not in the table, packages without the project's licence, dependencies with a licence
/// that is not permissive.
pub(super) fn check(tree: &Tree, packages: &[Value]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if package["source"].is_null() {
            let path = format!("package {name}");
            if licence != LICENCE {
                let message = format!("write `license.workspace = true`: it is {LICENCE}");
                problems.push(Problem::new(&path, 0, message));
            }
            let dependencies = package["dependencies"].as_array();
            let dependencies = dependencies.into_iter().flatten();
            problems.extend(
                dependencies
                    .filter(|dependency| dependency["path"].is_string())
                    .filter_map(|dependency| forbidden_edge(name, dependency)),
            );
        } else if !is_permissive(licence) {
            let message = format!("the licence `{licence}` is not on the list of permissive ones");
            problems.push(Problem::new(&format!("dependency {name}"), 0, message));
        }
    }
    for path in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if !root().join(path).exists() {
            problems.push(Problem::new(path, 0, "the text of the licence is missing"));
        }
    }
    for (path, text) in tree
        .files()
        .filter(|(path, _)| path.ends_with("Cargo.toml"))
    {
        if text.contains("[package]") && !text.contains("[lints]\nworkspace = true") {
            problems.push(Problem::new(
                path,
                0,
                "add `[lints]` with `workspace = true`",
            ));
        }
    }
    problems
}

/// All packages in cargo's metadata: those of the workspace and their dependencies.
///
/// # Errors
/// If cargo fails.
pub(super) fn packages() -> Result<Vec<Value>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", PLATFORM])
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {problem}");
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    metadata["packages"]
        .as_array()
        .cloned()
        .context("no packages")
}

/// The name of a package in the table, without the common prefix.
fn short(name: &str) -> &str {
    name.strip_prefix("tamis-").unwrap_or(name)
}

fn forbidden_edge(from: &str, dependency: &Value) -> Option<Problem> {
    let to = short(dependency["name"].as_str()?);
    let path = format!("package {from}");
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == short(from)) else {
        return Some(Problem::new(
            &path,
            0,
            "give the crate its row in the table of edges",
        ));
    };
    let features = dependency["features"].as_array();
    let misreads = |feature: &Value| feature == "misreadings";
    if features.is_some_and(|features| features.iter().any(misreads)) && short(from) != "testkit" {
        let message = "only `testkit` may let the prover misread programs";
        return Some(Problem::new(&path, 0, message));
    }
    let allowed = (*allowed)?;
    let is_development = dependency["kind"] == "dev";
    // A crate may name itself for the features of its tests.
    if allowed.contains(&to) || is_development && (to == "testkit" || to == short(from)) {
        return None;
    }
    let message = format!("`{from}` may not depend on `{to}`, only on {allowed:?}");
    Some(Problem::new(&path, 0, message))
}

/// Whether one alternative of a licence expression consists of permissive licences only.
fn is_permissive(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    // `A AND B OR C` is read as (A AND B) OR C, as SPDX does without parentheses. Without its parentheses
    // `(A OR B) AND C` is read as A or (B AND C): in the worst case A alone is accepted.
    expression.split(" OR ").any(|choice| {
        choice
            .split(" AND ")
            .all(|part| PERMISSIVE.contains(&part.trim()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn edges_run_downwards_only() {
        let to = |name: &str, kind: Value| json!({"name": name, "kind": kind});
        let is_forbidden = |from: &str, to: Value| forbidden_edge(from, &to).is_some();
        assert!(!is_forbidden("tamis-bpf", to("tamis-abi", Value::Null)));
        assert!(is_forbidden("tamis-abi", to("tamis-bpf", Value::Null)));
        assert!(is_forbidden("tamis-rules", to("tamis-bpf", Value::Null)));
        assert!(is_forbidden("tamis", to("tamis-testkit", Value::Null)));
        assert!(!is_forbidden("tamis", to("tamis-testkit", json!("dev"))));
        assert!(is_forbidden("tamis-new", to("tamis-abi", Value::Null)));
    }

    #[test]
    fn only_tests_let_the_prover_misread() {
        let prover = json!({"name": "tamis-prover", "kind": null, "features": ["misreadings"]});
        assert!(forbidden_edge("tamis", &prover).is_some());
        assert!(forbidden_edge("tamis-testkit", &prover).is_none());
    }

    #[test]
    fn the_table_has_no_cycle() {
        for (index, (name, allowed)) in ALLOWED.iter().enumerate() {
            let below: Vec<&str> = ALLOWED[..index].iter().map(|(name, _)| *name).collect();
            for used in allowed.unwrap_or(&[]) {
                assert!(below.contains(used), "{name} uses {used}");
            }
        }
    }

    #[test]
    fn one_permissive_choice_is_enough() {
        assert!(is_permissive("MIT OR GPL-3.0"));
        assert!(is_permissive("MIT/Apache-2.0"));
        assert!(is_permissive("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_permissive("GPL-3.0"));
        assert!(!is_permissive("MIT AND GPL-3.0"));
        assert!(!is_permissive(""));
    }
}
