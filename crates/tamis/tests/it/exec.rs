//! `tamis exec`: policies of any language, and the equivalence with `tamis-exec`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tamis_testkit::skip;
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;

fn policy(name: &str, statements: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exec-{name}.tamis"));
    fs::write(
        &path,
        format!("default allow\nbad-arch allow\n{statements}\n"),
    )
    .unwrap();
    path
}

fn exec(policies: &[&Path], words: &[&str]) -> Output {
    let mut command = Command::new(TAMIS);
    command.arg("exec");
    for policy in policies {
        command.arg("-p").arg(policy);
    }
    command.args(words).output().expect("it starts")
}

#[test]
fn the_command_takes_the_place_of_tamis_under_all_policies() {
    skip::unless_live();
    let (first, second) = (
        policy("first", "errno(EIO) uname"),
        policy("second", "errno(EPERM) uname"),
    );
    let script = "grep Seccomp_filters: /proc/$$/status; uname 2>&1; echo $0";
    let output = exec(&[&first, &second], &["--argv0", "own", "sh", "-c", script]);
    let told = String::from_utf8(output.stdout).unwrap();
    // Of two errors that of the newest filter counts.
    assert!(told.starts_with("Seccomp_filters:\t2\n"), "{told}");
    assert!(told.contains("Operation not permitted"), "{told}");
    assert!(told.ends_with("\nown\n"), "{told}");
}

#[test]
fn what_is_refused_says_so_before_anything_changes() {
    skip::unless_live();
    let allow = policy("allow", "errno(EPERM) uname");
    let execve = policy("execve", "errno(EPERM) execve");
    let notify = policy("notify", "notify uname");
    for (policy, words, code, reason) in [
        (&execve, &["true"][..], 2, "the filter answers execve"),
        (&notify, &["true"], 2, "the action notify"),
        (&allow, &["no-such-program"], 127, "ENOENT"),
        (&allow, &["/"], 126, "EACCES"),
        (&allow, &["--", "/dev/null"], 126, "EACCES"),
        (&allow, &["sh", "-c", "exit 9"], 9, ""),
    ] {
        let output = exec(&[policy], words);
        let printed = stderr_text(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {printed}");
        assert!(printed.contains(reason), "{words:?}: {printed}");
    }
}

/// Whether the line is parsed alone or with all others, it means the same.
#[test]
fn options_before_the_subcommand_and_mistakes_are_understood() {
    let allow = policy("options", "errno(EPERM) uname");
    let text = |args: &[&str]| {
        let output = Command::new(TAMIS).args(args).output().unwrap();
        (output.status.code(), stderr_text(&output))
    };
    let allow = allow.to_str().unwrap();
    let json = ["exec", "--json", "-p", allow, "/no/such"];
    let first = ["--json", "exec", "-p", allow, "/no/such"];
    assert_eq!(text(&json), text(&first));
    assert_eq!(text(&json).0, Some(127));
    assert_eq!(text(&["exec"]).0, Some(2));
    let (code, printed) = text(&["exec", "--no-such-option"]);
    assert!(
        code == Some(2) && printed.contains("Usage: tamis exec"),
        "{printed}"
    );
}
