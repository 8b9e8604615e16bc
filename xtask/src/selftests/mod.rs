//! `cargo xtask selftests [PROGRAM]`: the kernel's own tests of seccomp, natively and under each way to run a command.
//!
//! They come with the kernel's source package of Debian, which is unpacked and not committed, and are built with the
//! headers of the same kernel. A test with another result than natively is a difference. Those that a filter or a
//! tracer can't avoid are listed with a reason; any other fails the task. PROGRAM is the tamis that is tried, by default
//! the one that cargo builds.

mod reasons;
mod source;
pub(crate) mod vectors;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::arch::Arch;
use crate::programs::{cargo, target_folder};
use crate::tidy::root;

/// The time limit of all tests, in seconds. A test that needs a tracer and can't have one ends after 30.
const LIMIT_S: &str = "1800";

/// A way to run a command: its name, and the words in front of the command. `ALLOW` and `NOTIFY` are policies.
struct Way {
    name: &'static str,
    words: &'static [&'static str],
}

/// All of them.
const WAYS: [Way; 6] = [
    way("exec", &["exec", "-q", "--keep-privs", "-p", "ALLOW", "--"]),
    way("record", &["record", "-q", "--backend", "ebpf", "--"]),
    way(
        "trace",
        &["trace", "-q", "--backend", "ebpf", "-o", "/dev/null", "--"],
    ),
    way(
        "notify",
        &[
            "sandbox",
            "-q",
            "--platform",
            "notify",
            "-p",
            "NOTIFY",
            "--notify",
            "allow",
            "--",
        ],
    ),
    way(
        "ptrace-seccomp",
        &[
            "sandbox",
            "-q",
            "--platform",
            "ptrace-seccomp",
            "-p",
            "NOTIFY",
            "--notify",
            "allow",
            "--",
        ],
    ),
    way(
        "patched",
        &[
            "sandbox",
            "-q",
            "--platform",
            "patched",
            "-p",
            "NOTIFY",
            "--notify",
            "allow",
            "--",
        ],
    ),
];

const fn way(name: &'static str, words: &'static [&'static str]) -> Way {
    Way { name, words }
}

/// The results of tests, by name.
type Results = BTreeMap<String, Outcome>;

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

impl Outcome {
    const fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passes",
            Outcome::Failed => "fails",
            Outcome::Skipped => "skips",
        }
    }
}

/// Runs the tests in every way.
///
/// # Errors
/// If they can't be built, or a difference has no reason.
pub(crate) fn run(args: impl Iterator<Item = String>) -> Result<()> {
    let args: Vec<String> = args.collect();
    let tamis = match &args[..] {
        [] => built()?,
        [path] if !path.starts_with('-') => fs::canonicalize(path)?,
        _ => bail!("usage: cargo xtask selftests [PROGRAM]"),
    };
    let (tests, version) = source::tests()?;
    let folder = target_folder()?.join("selftests");
    let policies = policies(&folder)?;
    let native = results(&folder, &Command::new(&tests))?;
    println!("{version}: {}", counts(&native));
    let mut unexplained = 0;
    for way in &WAYS {
        let mut command = Command::new(&tamis);
        for word in way.words {
            match *word {
                "ALLOW" => command.arg(&policies[0]),
                "NOTIFY" => command.arg(&policies[1]),
                word => command.arg(word),
            };
        }
        command.arg(&tests);
        let results = results(&folder, &command)?;
        println!("\n{}: {}", way.name, counts(&results));
        unexplained += report(way, &native, &results);
    }
    ensure!(unexplained == 0, "{unexplained} differences have no reason");
    Ok(())
}

/// Prints the differences of a way; returns how many have no reason.
fn report(way: &Way, native: &Results, results: &Results) -> usize {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (test, expected) in native {
        let found = results.get(test).copied();
        if found != Some(*expected) {
            let word = found.map_or("is missing", Outcome::word);
            let reason = reasons::reason(way.name, test).unwrap_or("NO REASON");
            by_reason
                .entry(reason)
                .or_default()
                .push(format!("{test} {word}"));
        }
    }
    for (reason, tests) in &by_reason {
        println!("  {} because {reason}:", tests.len());
        for test in tests {
            println!("    {test}");
        }
    }
    by_reason.get("NO REASON").map_or(0, Vec::len)
}

/// The program of this tree.
fn built() -> Result<PathBuf> {
    let status = cargo()
        .args(["build", "--package", "tamis", "--locked"])
        .current_dir(root())
        .status();
    ensure!(
        status.context("cargo build")?.success(),
        "tamis doesn't build"
    );
    Ok(target_folder()?.join("debug/tamis"))
}

/// A policy that allows every call, and one that notifies every call.
fn policies(folder: &Path) -> Result<[PathBuf; 2]> {
    let paths = ["allow", "notify"].map(|action| (action, folder.join(format!("{action}.tamis"))));
    // The tests make calls by every interface.
    let arches = match Arch::host()? {
        Arch::X86_64 => "x86_64, x32, x86",
        Arch::Aarch64 => "aarch64, arm",
    };
    for (action, path) in &paths {
        fs::write(path, format!("arch {arches}\ndefault {action}\n"))?;
    }
    Ok(paths.map(|(_, path)| path))
}

/// The results of the tests that a command runs.
fn results(folder: &Path, command: &Command) -> Result<Results> {
    let output = Command::new("timeout")
        .args(["-k", "5", LIMIT_S])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .context("timeout of the coreutils")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let results: Results = text.lines().filter_map(result).collect();
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !results.is_empty(),
        "{command:?}: {}: {problem}",
        output.status
    );
    Ok(results)
}

/// The result in a line of the kernel's test harness: `ok 3 global.no_new_privs_support`.
fn result(line: &str) -> Option<(String, Outcome)> {
    let (outcome, rest) = match line.strip_prefix("not ok ") {
        Some(rest) => (Outcome::Failed, rest),
        None => (Outcome::Passed, line.strip_prefix("ok ")?),
    };
    let (number, test) = rest.split_once(' ')?;
    number.parse::<u32>().ok()?;
    let (test, skipped) = test
        .split_once(" # SKIP")
        .map_or((test, false), |(test, _)| (test, true));
    let test = test.trim_start_matches("- ").trim().to_owned();
    Some((test, if skipped { Outcome::Skipped } else { outcome }))
}

fn counts(results: &Results) -> String {
    let count = |outcome| results.values().filter(|one| **one == outcome).count();
    let [passed, failed, skipped] = [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(count);
    format!("{passed} passed, {failed} failed, {skipped} skipped")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_harness_are_results() {
        let of = |line| result(line).map(|(test, outcome)| (test, outcome.word()));
        assert_eq!(of("ok 3 global.a"), Some(("global.a".to_owned(), "passes")));
        assert_eq!(
            of("not ok 4 - TSYNC.b"),
            Some(("TSYNC.b".to_owned(), "fails"))
        );
        assert_eq!(
            of("ok 5 global.c # SKIP no CAP_SYS_ADMIN"),
            Some(("global.c".to_owned(), "skips"))
        );
        assert_eq!(of("# PASSED: 95 / 95 tests passed."), None);
        assert_eq!(of("ok then"), None);
    }
}
