//! Real programs under a real policy: Docker's profile, read and compiled by tamis, in the running kernel.
//!
//! Programs that the profile allows must behave as without a filter: the same output, and no process killed. Calls
//! that it denies must fail with the error that libseccomp's program for the profile returns.

use std::fs;
use std::path::PathBuf;
use std::process::Command as Plain;

use tamis_abi::{Action, ActionKind, Arch, Nr, SeccompData, syscall};
use tamis_bpf::{Program, Stack, interp};
use tamis_compiler::compile;
use tamis_diag::Sources;
use tamis_kernel::{Command, Ended, run};
use tamis_policy::oci;
use tamis_testkit::corpus;
use tamis_testkit::skip::{self, Need};

/// Docker's filter; the test ends if it can't be made or installed here.
#[track_caller]
fn docker() -> Program {
    skip::unless_x86_64();
    skip::unless_live();
    let text = corpus::text("docker/docker-default-x86_64.json");
    let mut sources = Sources::new();
    let source = sources.add("docker-default-x86_64.json", text);
    let profile = oci::parse(&sources, source, &oci::OciOptions::docker(Arch::X86_64));
    let ruleset = profile.parsed.ruleset.expect("the profile is valid");
    let compiled = compile(&ruleset, &tamis_compiler::CompileOptions::default());
    compiled.expect("it compiles").program().unwrap().clone()
}

/// Ends the test unless a program exists and works without a filter.
#[track_caller]
fn unless_works(words: &[&str]) {
    let output = Plain::new(words[0]).args(&words[1..]).output();
    let is_fine = output.is_ok_and(|output| output.status.success());
    if !is_fine {
        skip::because(
            Need::Peers,
            format_args!("`{}` doesn't work here", words.join(" ")),
        );
    }
}

/// An empty directory of this test.
fn empty_directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("real-programs-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory for the test");
    path
}

/// Runs a shell script with a directory as `$1`, under these filters; returns its exit status and the content of
/// `$1/out`.
#[track_caller]
fn output_of(name: &str, script: &str, filters: Vec<Program>) -> (Ended, String) {
    let directory = empty_directory(name);
    let script = format!("set -eu; cd \"$1\"; export LC_ALL=C HOME=\"$1\"; {script}");
    let words = [
        "-c".into(),
        script.into(),
        "sh".into(),
        directory.clone().into(),
    ];
    let command = Command {
        args: words.to_vec(),
        filters: Stack::new(filters).expect("all are for this machine"),
        ..Command::new("sh")
    };
    let report = run(&command).expect("the shell is executed");
    assert_eq!(report.killed, [], "{name}");
    assert_eq!(report.trapped, [], "{name}");
    let text = fs::read_to_string(directory.join("out")).unwrap_or_default();
    (report.ended, text)
}

/// A script behaves under Docker's filter as without it.
#[track_caller]
fn unharmed(name: &str, script: &str) {
    let filter = docker();
    let free = output_of(name, script, vec![]);
    assert_eq!(
        free.0,
        Ended::Exited(0),
        "{name} doesn't work without filter"
    );
    assert!(!free.1.is_empty(), "{name} writes nothing");
    assert_eq!(output_of(name, script, vec![filter]), free, "{name}");
}

/// A script with a command that fails under Docker's filter, with a message.
#[track_caller]
fn denied(name: &str, script: &str) {
    let filter = docker();
    let script = format!("if {script} 2> out; then exit 9; else exit 3; fi");
    let (ended, text) = output_of(name, &script, vec![filter]);
    assert_eq!(ended, Ended::Exited(3), "{name}: {text}");
    assert!(text.contains("Operation not permitted"), "{name}: {text}");
}

#[test]
fn shell() {
    unharmed("shell", "for i in 1 2 3; do echo $i | cat; done > out");
}

#[test]
fn ls() {
    unharmed("ls", "ls -l /usr > out");
}

#[test]
fn tar() {
    unless_works(&["tar", "--version"]);
    let script = "mkdir a; seq 9999 > a/b; ln -s b a/c; tar -czf x.tgz a; rm -r a; \
                  tar -xzf x.tgz; cat a/c > out";
    unharmed("tar", script);
}

#[test]
fn git() {
    unless_works(&["git", "--version"]);
    let script = "git init -q r; cd r; seq 99 > f; git add f; \
                  export GIT_AUTHOR_DATE=2000-01-01T00:00:00Z GIT_COMMITTER_DATE=2000-01-01T00:00:00Z; \
                  git -c user.name=n -c user.email=e commit -qm m; git gc -q; \
                  git log --stat > ../out";
    unharmed("git", script);
}

const PYTHON: &str = r#"
import multiprocessing, socket, ssl, subprocess, threading
a, b = socket.socketpair()
thread = threading.Thread(target=lambda: b.sendall(b"hello"))
thread.start()
thread.join()
print(a.recv(5), ssl.create_default_context().verify_mode)
print(subprocess.run(["echo", "child"], capture_output=True).stdout)
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b"over tcp")
print(client.recv(99))
"#;

#[test]
fn python() {
    unless_works(&["python3", "-c", "import socket, ssl, threading"]);
    unharmed("python", &format!("python3 -c '{PYTHON}' > out"));
}

#[test]
fn compiler_and_its_output() {
    unless_works(&["cc", "--version"]);
    let script = "echo 'int main(void) { return 42; }' > a.c; cc a.c -o a; \
                  if ./a; then false; else echo $? > out; fi";
    unharmed("cc", script);
}

#[test]
fn unshare_of_a_user_namespace() {
    unless_works(&["unshare", "--version"]);
    denied("unshare-U", "unshare -U true");
    denied("unshare-r", "unshare -r true");
}

#[test]
fn mount() {
    // Without privileges the program refuses before it makes the call.
    skip::unless_root();
    unless_works(&["mount", "--version"]);
    // util-linux prints "permission denied" for EPERM; the errno shows the kernel's error.
    let filter = docker();
    let script = "mkdir m; if mount -t tmpfs none m 2> out; then exit 9; else exit 3; fi";
    let (ended, text) = output_of("mount", script, vec![filter]);
    assert_eq!(ended, Ended::Exited(3), "{text}");
    assert!(text.contains("permission denied"), "{text}");
}

/// The calls and arguments whose errors are checked in a process under the filter.
const DENIED: [(&str, [u64; 2]); 9] = [
    ("keyctl", [0, 0]),
    ("add_key", [0, 0]),
    ("unshare", [0x1000_0000, 0]),
    ("clone", [0x1000_0000, 0]),
    ("clone3", [0, 0]),
    ("mount", [0, 0]),
    ("bpf", [0, 0]),
    ("perf_event_open", [0, 0]),
    ("personality", [0x0040_0000, 0]),
];

/// A program that makes calls by number gets the errors of libseccomp's program.
#[test]
fn denied_calls_have_the_errno_of_the_profile() {
    unless_works(&["python3", "-c", "import ctypes"]);
    let filter = docker();
    let theirs = corpus::program("docker/docker-libseccomp-opt2.bpf");
    let mut script = String::from(
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n\
         def call(*args): return c.syscall(*map(ctypes.c_ulong, args)) == -1 and ctypes.get_errno()\n",
    );
    let mut expected = String::new();
    for (name, args) in DENIED {
        let Nr(nr) = syscall::number(Arch::X86_64, name).expect("a known call");
        script += &format!("print(\"{name}\", call({nr}, {}, {}))\n", args[0], args[1]);
        let errno = errno_of(&theirs, nr, args);
        expected += &format!("{name} {errno}\n");
    }
    let script = format!("python3 -c '{script}' > out");
    let (ended, text) = output_of("denied", &script, vec![filter]);
    assert_eq!((ended, text), (Ended::Exited(0), expected));
}

/// The error that a program returns for a call.
#[track_caller]
fn errno_of(program: &Program, nr: u32, [first, second]: [u64; 2]) -> u16 {
    let call = SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        ip: 0,
        args: [first, second, 0, 0, 0, 0],
    };
    let run = interp::run(program, &call);
    let action = Action::from_ret(run.ret);
    assert_eq!(action.kind, ActionKind::Errno, "call {nr}");
    action.data
}

/// Bubblewrap takes the raw program from a descriptor.
#[test]
fn bubblewrap_takes_the_raw_program() {
    unless_works(&["bwrap", "--bind", "/", "/", "true"]);
    let filter = docker();
    let directory = empty_directory("bwrap-filter");
    let path = directory.join("docker.bpf");
    fs::write(&path, filter.to_bytes()).expect("a file is written");
    let bwrap = format!("bwrap --dev-bind / / --seccomp 9 9< {}", path.display());
    let script = format!(
        "{bwrap} grep Seccomp: /proc/self/status > out; \
         if {bwrap} unshare -U true 2>> out; then exit 9; fi"
    );
    let (ended, text) = output_of("bwrap", &script, vec![]);
    assert_eq!(ended, Ended::Exited(0), "{text}");
    assert!(text.starts_with("Seccomp:\t2\n"), "{text}");
    assert!(text.contains("Operation not permitted"), "{text}");
}
