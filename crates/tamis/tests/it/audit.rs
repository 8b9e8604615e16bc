//! `tamis audit` on processes that `tamis exec` has put under filters.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tamis_testkit::skip::{self, Need};

use crate::TAMIS;

fn policy(name: &str, statements: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("audit-{name}.tamis"));
    fs::write(
        &path,
        format!("default allow\nbad-arch allow\n{statements}\n"),
    )
    .unwrap();
    path
}

/// A shell under filters that waits for its input to end.
fn waiting(policies: &[&Path]) -> (Child, String) {
    let mut command = Command::new(TAMIS);
    command.arg("exec");
    for policy in policies {
        command.arg("-p").arg(policy);
    }
    let mut child = command
        .args(["--", "sh", "-c", "echo ready; read end"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let pid = child.id().to_string();
    (child, pid)
}

fn audit(args: &[&str]) -> Output {
    let mut command = Command::new(TAMIS);
    command.arg("audit").args(args).output().unwrap()
}

#[test]
fn a_stack_is_compared_as_one_with_what_was_written() {
    skip::unless_live();
    let first = policy("first", "errno(EPERM) reboot");
    let second = policy("second", "errno(EPERM) swapon(specialfile == 5)");
    let both = policy(
        "both",
        "errno(EPERM) reboot\nerrno(EPERM) swapon(specialfile == 5)",
    );
    let (mut child, pid) = waiting(&[&first, &second]);
    let against = |policy: &Path| {
        let output = audit(&["--pid", &pid, "--against", policy.to_str().unwrap()]);
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let plain = audit(&["--pid", &pid]);
    if plain.status.code() == Some(4) {
        skip::because(Need::Live, String::from_utf8_lossy(&plain.stderr));
    } else {
        let told = String::from_utf8(plain.stdout).unwrap();
        assert!(told.contains("errno(1) 1, by arguments 1\n"), "{told}");
        let (code, told) = against(&both);
        assert!(code == Some(0) && told.contains(" equal "), "{told}");
        let (code, told) = against(&first);
        assert!(code == Some(1) && told.contains(" stricter "), "{told}");
        assert!(
            told.contains("errno(1) is enforced, allow was written"),
            "{told}"
        );
        let other = policy("other", "errno(EPERM) reboot, swapoff");
        assert_eq!(against(&other).0, Some(1));
        for kind in [&[][..], &["--advisories"]] {
            let twice = ["--json", "--pid", &pid, "--pid", &pid];
            let twice = audit(&[&twice, kind].concat());
            let twice = String::from_utf8(twice.stdout).unwrap();
            let entry = format!("\"pid\": {pid},");
            assert_eq!(twice.matches(&entry).count(), 1, "{twice}");
        }
        let all = audit(&["--all", "--json"]);
        let all = String::from_utf8(all.stdout).unwrap();
        assert!(all.contains(&format!("\"pid\": {pid},")), "{all}");
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_process_without_filters_is_not_what_was_written() {
    skip::unless_live();
    let policy = policy("none", "errno(EPERM) reboot");
    let own = std::process::id().to_string();
    let output = audit(&["--pid", &own, "--against", policy.to_str().unwrap()]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.code() == Some(1) && told.contains("LOOSER"),
        "{told}"
    );
    assert_eq!(audit(&["--pid", "2147483647"]).status.code(), Some(2));
    assert_eq!(audit(&[]).status.code(), Some(2));
}

/// A child with two threads, each under a filter that denies `reboot`: the second's has another errno, or it is the same
/// one and this process traces the thread.
const THREADS: &str = r#"
import ctypes, os, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def install(errno):
    insns = [(0x20, 0, 0, 4), (0x15, 0, 3, 0xc000003e), (0x20, 0, 0, 0), (0x15, 0, 1, 169), (6, 0, 0, 0x50000 | errno), (6, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *insn) for insn in insns))
    program = struct.pack("HxxxxxxQ", len(insns), ctypes.addressof(code))
    libc.prctl(38, 1, 0, 0, 0)
    assert libc.syscall(317, 1, 0, ctypes.c_char_p(program)) == 0
is_traced = sys.argv[1] == "traced"
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    def second():
        is_traced or install(2)
        os.write(writer, b"%d" % threading.get_native_id())
        sys.stdin.readline()
    install(1)
    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
    os._exit(0)
tid = int(os.read(reader, 20))
SEIZE = 0x4206
assert not is_traced or libc.ptrace(SEIZE, tid, 0, 0) == 0
print(child, flush=True)
sys.stdin.readline()
os.kill(child, 9)
"#;

/// The entry of `audit` for the child.
fn audit_threads(how: &str) -> Output {
    let mut python = Command::new("python3");
    python.args(["-c", THREADS, how]);
    python.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = match python.spawn() {
        Ok(process) => process,
        Err(error) => skip::because(Need::Peers, error),
    };
    let mut child = String::new();
    let stdout = process.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut child).unwrap();
    let (pid, policy) = (child.trim(), policy(how, "errno(EPERM) reboot"));
    let output = audit(&["--pid", pid, "--against", policy.to_str().unwrap()]);
    drop(process.stdin.take());
    process.wait().unwrap();
    output
}

#[test]
fn each_thread_is_compared_and_one_that_is_traced_is_no_success() {
    skip::unless_live();
    skip::unless_x86_64();
    for (how, code, words) in [
        ("differs", 1, "errno(2) is enforced"),
        ("traced", 4, "traces it"),
    ] {
        let output = audit_threads(how);
        let told = String::from_utf8(output.stdout).unwrap();
        if told.is_empty() {
            skip::because(Need::Live, String::from_utf8_lossy(&output.stderr));
        }
        assert!(
            output.status.code() == Some(code) && told.contains(words),
            "{told}"
        );
    }
}

/// The advisories of a process under this policy, by Linux 6.18; skips if the kernel doesn't show filters.
fn advisories(name: &str, policy: &str) -> (Option<i32>, Vec<String>) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("advisories-{name}.tamis"));
    fs::write(&path, policy).unwrap();
    let (mut child, pid) = waiting(&[&path]);
    let output = audit(&["--advisories", "--json", "--kernel", "6.18", "--pid", &pid]);
    drop(child.stdin.take());
    child.wait().unwrap();
    if output.status.code() == Some(4) {
        skip::because(Need::Live, String::from_utf8_lossy(&output.stderr));
    }
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids = document["owners"][0]["processes"][0]["advisories"].as_array();
    let ids = ids.unwrap().iter();
    let ids = ids.map(|id| id.as_str().unwrap().to_owned());
    (output.status.code(), ids.collect())
}

/// Each weakness is found in a filter that has it, and not in one that just doesn't.
#[test]
fn advisories_name_what_enforced_filters_lack() {
    skip::unless_live();
    let known = "default allow\nknown-until linux 6.18\ndeny io_uring_setup";
    for (name, policy, expected) in [
        (
            "strict",
            format!("{known}, socket(family == AF_ALG)"),
            vec![],
        ),
        ("open", known.to_owned(), vec!["af-alg"]),
        (
            "wide",
            format!("{known}, socket(full(family) == AF_ALG)"),
            vec!["af-alg", "upper-bits"],
        ),
        (
            "foreign",
            format!("bad-arch allow\n{known}, socket"),
            match std::env::consts::ARCH {
                "x86_64" => vec!["af-alg", "x32-calls", "compat-calls"],
                "aarch64" => vec!["af-alg", "compat-calls"],
                _ => vec![],
            },
        ),
        (
            "ring",
            "default allow\nknown-until linux 6.18\ndeny socket".to_owned(),
            vec!["af-alg", "io-uring"],
        ),
        (
            "later",
            "default allow\ndeny mseal, io_uring_setup, socket".to_owned(),
            vec!["outdated-deny-list"],
        ),
        (
            "unknown",
            "default allow\nunknown errno(ENOSYS)\ndeny mseal, io_uring_setup, socket".to_owned(),
            vec!["outdated-deny-list"],
        ),
    ] {
        let (code, ids) = advisories(name, &policy);
        assert_eq!(ids, expected, "{name}");
        assert_eq!(code, Some(i32::from(!expected.is_empty())), "{name}");
    }
}
