//! `tamis inject` and `tamis sandbox`: the results of a command's calls, on every platform of the product.

use std::env::consts::ARCH;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tamis_platform::Caps;
use tamis_testkit::child;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;

fn tamis(words: &[&str]) -> Output {
    let mut command = Command::new(TAMIS);
    command.args(words).stdin(Stdio::null());
    child::output(&mut command).expect("tamis starts")
}

fn file(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("catching");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// The platforms that work here and run a shell, and programs from it.
fn platforms() -> Vec<String> {
    platforms_with(|caps| caps.has_forks && caps.has_exec && caps.runs_dynamic)
}

/// The platforms that work here and have these capabilities.
fn platforms_with(is_able: impl Fn(&Caps) -> bool) -> Vec<String> {
    let all = tamis_platform::supported().iter();
    let able = all.filter(|one| is_able(&one.caps()) && one.probe().is_ok());
    able.map(|platform| platform.name().to_owned()).collect()
}

/// A static program has other code of the C library than the one that is built with the tests.
#[test]
fn the_same_platforms_work_whatever_the_program_is_linked_with() {
    skip::unless_kernel();
    if TAMIS == env!("CARGO_BIN_EXE_tamis") {
        skip::because(Need::OtherProgram, "TAMIS_BIN names no other program");
    }
    let policy = file("allow.tamis", "default allow\nbad-arch allow\n");
    for platform in tamis_platform::supported() {
        let code = |program| {
            let mut command = Command::new(program);
            command.args(["sandbox", "--platform", platform.name(), "-p"]);
            command.arg(&policy).args(["--", "true"]);
            child::output(&mut command)
                .expect("it starts")
                .status
                .code()
        };
        assert_eq!(
            code(TAMIS),
            code(env!("CARGO_BIN_EXE_tamis")),
            "{}",
            platform.name()
        );
    }
}

/// The effect of rules on a shell script: its standard output and the counts of each rule.
fn injected(platform: &str, rules: &str, script: &str) -> (String, Vec<(u64, u64)>) {
    // Standard error is for the document.
    let script = format!("exec 2>/dev/null; {script}");
    injected_command(platform, rules, &["sh", "-c", &script])
}

/// The same for a command.
fn injected_command(platform: &str, rules: &str, command: &[&str]) -> (String, Vec<(u64, u64)>) {
    let words = ["inject", "--json", "--platform", platform, rules, "--"];
    let output = tamis(&[&words, command].concat());
    let document: Value = serde_json::from_slice(&output.stderr)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr_text(&output)));
    let rules = document["rules"].as_array().expect("a list");
    let count = |rule: &Value, name: &str| rule[name].as_u64().expect("a count");
    let counts = rules
        .iter()
        .map(|rule| (count(rule, "matched"), count(rule, "fired")));
    let stdout = String::from_utf8_lossy(&output.stdout);
    (stdout.trim().to_owned(), counts.collect())
}

#[test]
fn rules_change_the_calls_that_they_name_and_no_others() {
    skip::unless_kernel();
    for platform in platforms() {
        let (printed, counts) = injected(&platform, "getpid return 5", "echo $$");
        assert_eq!((printed.as_str(), counts[0]), ("5", (1, 1)), "{platform}");
        // The shell itself is executed unharmed, and is not counted.
        let rules = "execve errno(ENOENT) every 2";
        let script = "for i in 1 2 3 4; do /bin/true && echo $i; done";
        let (printed, counts) = injected(&platform, rules, script);
        assert_eq!(
            (printed.as_str(), counts[0]),
            ("1\n3", (4, 2)),
            "{platform}"
        );
        // So is one that the kernel executes by another program.
        let executable = file(
            "script",
            "#!/bin/sh\nexec 2>/dev/null\n/bin/true || echo $?\n",
        );
        fs::set_permissions(&executable, Permissions::from_mode(0o755)).unwrap();
        let command = [executable.to_str().unwrap()];
        let rules = "execve errno(ENOENT) first 1";
        let (printed, counts) = injected_command(&platform, rules, &command);
        assert_eq!((printed.as_str(), counts[0]), ("127", (1, 1)), "{platform}");
        // Each rule counts all calls, the first that changes one decides, and a condition narrows a rule.
        let rules = "chdir errno(EACCES) at 2; chdir errno(EACCES) at 3; chdir errno(ENOENT) at 2;
            umask(mask == 0o123) return 0";
        let script = "cd / && echo 1; cd / || echo 2; cd / || echo 3; cd / && echo 4; umask 0123";
        let (printed, counts) = injected(&platform, rules, script);
        assert_eq!(printed, "1\n2\n3\n4", "{platform}");
        assert_eq!(counts, [(4, 1), (4, 1), (4, 0), (1, 1)], "{platform}");
    }
}

#[test]
fn a_rule_may_kill_and_mistakes_are_told() {
    skip::unless_kernel();
    let output = tamis(&["inject", "uname kill", "--", "uname"]);
    assert_eq!(output.status.signal(), Some(9), "{}", stderr_text(&output));
    let missing = tamis(&["inject", "uname kill", "--", "no-such-command-anywhere"]);
    assert_eq!(missing.status.code(), Some(127));
    for (rules, said) in [
        ("opnat errno(EIO)", "did you mean `openat`?"),
        ("openat errno(EMISSPELT)", "is no error"),
        ("openat errno(EIO) often 3", "is none of `first`"),
        ("no-such-file", "cannot read the rules"),
    ] {
        let output = tamis(&["inject", rules, "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{rules}");
        let stderr = stderr_text(&output);
        assert!(stderr.contains(said), "{rules}: {stderr}");
    }
}

#[test]
fn a_sandbox_enforces_its_policy_and_answers_the_rest() {
    skip::unless_kernel();
    let text = "default allow\nbad-arch allow\nnotify uname\nkill-process chdir\n";
    let policy = file("sandbox.tamis", text);
    let policy = policy.to_str().unwrap();
    for platform in platforms_with(|caps| caps.runs_dynamic) {
        let sandbox = |options: &[&str], command: &[&str]| {
            let mut words = vec!["sandbox", "--platform", &platform, "-p", policy];
            words.extend(options);
            words.push("--");
            words.extend(command);
            tamis(&words)
        };
        let denied = sandbox(&[], &["uname"]);
        assert_eq!(denied.status.code(), Some(1), "{platform}");
        let options = ["--notify", "allow", "--stats"];
        let allowed = sandbox(&options, &["uname"]);
        assert_eq!(allowed.stdout, b"Linux\n", "{platform}");
        let stats = stderr_text(&allowed);
        assert!(
            stats.contains(&format!("1  {ARCH} uname")),
            "{platform}: {stats}"
        );
        let killed = sandbox(&[], &["sh", "-c", "cd /"]);
        assert_eq!(killed.status.signal(), Some(31), "{platform}");
        let told = stderr_text(&killed);
        // `tamis run` answers no calls with the action notify.
        let is_told = told.contains("died of SIGSYS") && !told.contains("tamis run");
        assert!(is_told, "{platform}: {told}");
        let plain = file("kills.tamis", "default allow\nkill-process chdir\n");
        let words = [
            "sandbox",
            "--platform",
            &platform,
            "-p",
            plain.to_str().unwrap(),
        ];
        let killed = tamis(&[&words, &["--", "sh", "-c", "cd /"][..]].concat());
        let told = stderr_text(&killed);
        assert!(told.contains("`tamis run -p "), "{platform}: {told}");
        let exit = sandbox(&[], &["sh", "-c", "echo $0; exit 7"]);
        assert_eq!(exit.status.code(), Some(7), "{platform}");
        assert_eq!(exit.stdout, b"sh\n", "{platform}");
    }
}
