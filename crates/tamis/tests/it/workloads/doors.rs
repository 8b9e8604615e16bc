//! Other tools install the filters of the policies: each probe gets the same answers.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tamis_abi::{Arch, host, syscall};
use tamis_testkit::scratch::Scratch;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::systemd::{SHARED, Unit};
use tamis_testkit::toolchains::stderr_text;

use super::{PYTHON, unless_installed};
use crate::TAMIS;
use crate::containers;

const PROBE: &str = include_str!("probe.py");
const SETTINGS: [&str; 4] = ["agent", "--set", "network=unix", "-q"];
/// The answers that `agent` gives with local sockets.
const ANSWERS: &str = "io_uring ENOSYS\nalg EAFNOSUPPORT\ntrace EPERM\nunix 0\nunknown ENOSYS\n";

/// The calls of the probe.
fn lines() -> String {
    let arch = host::arch().expect("a known architecture");
    let number = |call| {
        syscall::number(arch, call)
            .expect("a call of every machine")
            .0
    };
    let beyond = syscall::last(arch).expect("a table").0 + 1;
    format!(
        "io_uring syscall {} 0 0\nalg syscall {} {} 5 0\ntrace syscall {} 999 1\nunix syscall {} 1 1 0\n\
         unknown syscall {beyond}\n",
        number("io_uring_setup"),
        number("socket"),
        1_u64 << 32 | 38,
        number("ptrace"),
        number("socket"),
    )
}

fn compiled(folder: &Path) -> PathBuf {
    let path = folder.join("agent.bpf");
    let mut tamis = Command::new(TAMIS);
    tamis.arg("compile").args(SETTINGS).arg("-o").arg(&path);
    let output = tamis.output().expect("it starts");
    assert!(output.status.success(), "{}", stderr_text(&output));
    path
}

/// The answers to the probe, which the command starts.
fn answers(command: &mut Command) -> String {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    // A command that fails doesn't read.
    let _ = input.write_all(lines().as_bytes());
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    format!("{printed}{}", stderr_text(&output))
}

/// Ends the test where namespaces can't be made, as in one of users without a mapping.
fn unless_bwrap_works() {
    let words = ["--dev-bind", "/", "/", "--unshare-net", "true"];
    skip::unless_runs(Need::Live, "bwrap", &words);
}

#[test]
fn bubblewrap_installs_it_from_a_descriptor() {
    unless_installed(&[PYTHON, "bwrap"]);
    unless_bwrap_works();
    let folder = Scratch::new("bwrap").expect("a folder");
    let filter = compiled(folder.path());
    let mut command = Command::new("sh");
    let script = "exec bwrap --dev-bind / / --unshare-net --seccomp 9 -- \"$@\" 9<\"$0\"";
    command.args(["-c", script]).arg(filter);
    command.args([PYTHON, "-c", PROBE]);
    assert_eq!(answers(&mut command), ANSWERS);
}

#[test]
fn tamis_exec_installs_it_in_the_namespaces_of_unshare() {
    /// A user without privileges gets them in a namespace of users.
    const NAMESPACES: [&str; 4] = ["--user", "--map-root-user", "--net", "--mount"];
    unless_installed(&[PYTHON, "unshare"]);
    skip::unless_runs(
        Need::Root,
        "unshare",
        &[&NAMESPACES[..], &["true"]].concat(),
    );
    let mut command = Command::new("unshare");
    command.args(NAMESPACES);
    command.args([TAMIS, "exec", "-p"]);
    command.args(SETTINGS).args(["--", PYTHON, "-c", PROBE]);
    assert_eq!(answers(&mut command), ANSWERS);
}

#[test]
fn bubblewrap_and_unshare_work_inside_where_the_policy_nests() {
    unless_installed(&[PYTHON, "bwrap"]);
    unless_bwrap_works();
    let inside = |nested: &str, words: &[&str]| {
        let mut tamis = Command::new(TAMIS);
        tamis
            .args(["exec", "-q", "-p", "agent", "--set", nested, "--"])
            .args(words);
        tamis.output().expect("it starts").status.success()
    };
    let bwrap = ["bwrap", "--dev-bind", "/", "/", "--unshare-all", "true"];
    let unshare = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
    ];
    let unshare = [&unshare[..], &["mount -t tmpfs none /mnt"]].concat();
    for words in [&bwrap[..], &unshare] {
        assert!(inside("network=full,nested=yes", words), "{words:?}");
        assert!(!inside("network=full,nested=no", words), "{words:?}");
    }
}

#[test]
fn podman_takes_it_as_a_profile() {
    unless_installed(&[PYTHON, "podman"]);
    let folder = Scratch::new("podman-agent").expect("a folder");
    containers::bundle(folder.path(), &["true"], true, "");
    let mut convert = Command::new(TAMIS);
    let profile = folder.path().join("agent.json");
    convert
        .arg("convert")
        .args(SETTINGS)
        .args(["--to", "oci", "-o"])
        .arg(&profile);
    assert!(convert.output().expect("it starts").status.success());
    let script = "printf %s \"$1\" | /usr/bin/python3 -c \"$0\"";
    let calls = lines();
    let words = ["/bin/sh", "-c", script, PROBE, &calls];
    for runtime in ["crun", "runc"] {
        let profile = Some("agent.json");
        let mut command = containers::podman(runtime, folder.path(), profile, &words);
        let told = answers(&mut command);
        if !told.contains("io_uring") {
            skip::because(Need::Runtimes, format!("{runtime}: {told}"));
        }
        // A profile has one error for the sockets that its default denies.
        assert_eq!(told, ANSWERS.replace("EAFNOSUPPORT", "ENOSYS"), "{runtime}");
    }
}

#[test]
fn systemd_starts_a_service_under_it() {
    let script = format!("/usr/bin/python3 {SHARED}/probe.py <{SHARED}/lines >{SHARED}/answers");
    let line = format!("{SHARED}/tamis exec -p {SHARED}/agent.bpf -- /bin/sh -c \"{script}\"");
    answers_in_systemd(&line);
}

/// The transient service writes to a pipe, which the service that starts it reads to its end.
#[test]
fn systemd_run_starts_a_command_under_it() {
    let inner = format!("exec /usr/bin/python3 {SHARED}/probe.py <{SHARED}/lines >{SHARED}/pipe");
    let command = format!("{SHARED}/tamis exec -p {SHARED}/agent.bpf -- /bin/sh -c '{inner}'");
    let script = format!(
        "mkfifo {SHARED}/pipe; systemd-run -q {command}; cat {SHARED}/pipe >{SHARED}/answers"
    );
    answers_in_systemd(&format!("/bin/sh -c \"{script}\""));
}

/// A service of the machine's systemd with this command, which writes the answers to a file.
fn answers_in_systemd(line: &str) {
    const LIMIT: Duration = Duration::from_secs(120);
    let systemd = crate::harden::systemd();
    let folder = Scratch::new("service").expect("a folder");
    let place = folder.path();
    compiled(place);
    tamis_testkit::child::copy_program(TAMIS, place.join("tamis"));
    fs::write(place.join("probe.py"), PROBE).expect("a file");
    fs::write(place.join("lines"), lines()).expect("a file");
    let unit = Unit {
        text: format!("ExecStart=\nExecStart={line}\nType=oneshot\n"),
        drop_ins: Vec::new(),
    };
    let loaded = systemd
        .start_with(&[unit], Some(place), LIMIT)
        .expect("it boots");
    let messages: Vec<String> = loaded
        .into_iter()
        .flatten()
        .flat_map(|own| own.messages)
        .collect();
    let told = fs::read_to_string(place.join("answers"));
    assert_eq!(told.ok().as_deref(), Some(ANSWERS), "{messages:?}");
}

#[test]
fn both_machines_get_a_file_of_four_hundred_bytes() {
    let folder = Scratch::new("sizes").expect("a folder");
    for policy in super::POLICIES {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let path = folder.path().join("filter.bpf");
            let mut tamis = Command::new(TAMIS);
            tamis.args(["compile", policy, "-q", "--arch", arch.name()]);
            tamis
                .args(["--set", "network=full,nested=yes", "-o"])
                .arg(&path);
            assert!(tamis.status().expect("it starts").success());
            let bytes = fs::metadata(&path).expect("it was written").len();
            assert!(bytes <= 400, "{policy} on {arch}: {bytes} bytes");
        }
    }
}
