//! The executable `tamis-exec`, as a user calls it.

#[macro_use]
extern crate tamis_testkit;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use tamis_bpf::{Insn, Op, Program, Test};
use tamis_kernel::NATIVE_ENDIAN;
use tamis_testkit::skip::Need;
use tamis_testkit::{compiled, harness, skip};

fn main() -> ExitCode {
    harness::main()
}

const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
const NOTIFY: u32 = 0x7fc0_0000;

/// A filter with this result for one call, which allows all others.
fn filter(name: &str, nr: i64, ret: u32) -> PathBuf {
    let ops = [
        Op::LoadData(0),
        Op::branch(Test::Eq, u32::try_from(nr).unwrap(), 0, 1),
        Op::RetImm(ret),
        Op::RetImm(ALLOW),
    ];
    let program = Program::new(ops.map(Insn::from).to_vec(), NATIVE_ENDIAN).unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, program.to_bytes()).unwrap();
    path
}

fn tamis_exec(filters: &[&Path], words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis-exec"));
    for filter in filters {
        command.arg("-p").arg(filter);
    }
    command.args(words).stdin(Stdio::null());
    command
}

fn output(filters: &[&Path], words: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = tamis_exec(filters, words).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn the_command_is_the_same_process_under_the_filters() {
    skip::unless_live();
    let filter = filter("exec-uname.bpf", libc::SYS_uname, EPERM);
    let script =
        "echo $$; grep -E '^(Seccomp_filters|NoNewPrivs):' /proc/$$/status; uname; echo $0";
    let mut command = tamis_exec(&[&filter, &filter], &["--argv0", "own", "sh", "-c", script]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let expected = format!("{pid}\nNoNewPrivs:\t1\nSeccomp_filters:\t2\nown\n");
    assert_eq!(told, expected);
}

#[test]
fn an_agent_runs_under_the_filter_of_its_policy() {
    const SCRIPT: &str = "\
import errno, socket
def answer(*numbers):
    try:
        return socket.socket(*numbers).close() or 0
    except OSError as error:
        return errno.errorcode[error.errno]
print(answer(38, 5, 0), answer(1, 1, 0), answer(2, 1, 0))";
    skip::unless_live();
    skip::unless_runs(Need::Workloads, "python3", &["--version"]);
    let program = compiled::embedded("agent", &[("network", "unix")]);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exec-agent.bpf");
    fs::write(&path, program.to_bytes()).unwrap();
    let (code, answers, error) = output(&[&path], &["--", "python3", "-c", SCRIPT]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert_eq!(answers, "EAFNOSUPPORT 0 EAFNOSUPPORT\n");
}

#[test]
fn privileges_are_kept_where_the_kernel_lets_them() {
    skip::unless_live();
    skip::unless_root();
    let filter = filter("exec-keep.bpf", libc::SYS_uname, EPERM);
    let words = [
        "--keep-privs",
        "--",
        "grep",
        "^NoNewPrivs",
        "/proc/self/status",
    ];
    assert_eq!(output(&[&filter], &words).1, "NoNewPrivs:\t0\n");
    // Without `CAP_SYS_ADMIN` the kernel requires `no_new_privs`.
    let mut command = tamis_exec(&[&filter], &words);
    let without = command.uid(65534).gid(65534).output().unwrap();
    assert_eq!(without.stdout, b"NoNewPrivs:\t1\n");
}

/// Rust's runtime changes `SIGPIPE` and closed descriptors; the mask of signals is set here.
#[test]
fn signals_and_descriptors_are_those_of_the_start() {
    skip::unless_live();
    let filter = filter("exec-signals.bpf", libc::SYS_uname, EPERM);
    let filter = filter.to_str().unwrap();
    let status = "grep -E '^Sig(Ign|Blk):' /proc/self/status; ls /proc/self/fd";
    for before in [
        "",
        "trap '' PIPE;",
        "trap '' TERM;",
        "exec 0<&-;",
        "exec 0<&- 2<&- 7</dev/null;",
    ] {
        let shell = |exec: &str| {
            let script = format!("{before} exec {exec} sh -c \"$1\"");
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh", status]);
            command.output().unwrap().stdout
        };
        let own = format!("{} -p {filter} --", env!("CARGO_BIN_EXE_tamis-exec"));
        let (bare, under) = (shell("env"), shell(&own));
        assert_eq!(
            String::from_utf8(under),
            String::from_utf8(bare),
            "{before}"
        );
    }
}

#[test]
fn what_can_not_be_executed_has_the_codes_of_env() {
    skip::unless_live();
    let filter = filter("exec-codes.bpf", libc::SYS_uname, EPERM);
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exec-script");
    fs::write(&script, "echo script $1\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let code = |words: &[&str]| output(&[&filter], words).0;
    let path = script.to_str().unwrap();
    assert_eq!(code(&["no-such-program"]), Some(127));
    assert_eq!(code(&["/no/such/program"]), Some(127));
    assert_eq!(code(&["/"]), Some(126));
    assert_eq!(code(&[path]), Some(126));
    // A file without `#!` is executed by a shell, as `env` does.
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let (status, told, _) = output(&[&filter], &[path, "told"]);
    assert_eq!((status, told.as_str()), (Some(0), "script told\n"));
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
}

/// Filters that block the start are reported before the installation, because they may deny writing the message.
#[test]
fn filters_in_the_way_are_refused_with_a_reason() {
    skip::unless_live();
    let execve = filter("exec-execve.bpf", libc::SYS_execve, EPERM);
    let seccomp = filter("exec-seccomp.bpf", libc::SYS_seccomp, 0);
    let notify = filter("exec-notify.bpf", libc::SYS_uname, NOTIFY);
    let refused = |filters: &[&Path], reason: &str| {
        let (code, told, error) = output(filters, &["echo", "it runs"]);
        assert_eq!((code, told.as_str()), (Some(2), ""), "{reason}: {error}");
        assert!(
            error.contains(reason) && error.contains("\nhelp: "),
            "{error}"
        );
    };
    refused(
        &[&execve],
        "the filter answers execve, which executes the command, with errno(1)",
    );
    refused(&[&seccomp, &notify], "the action notify");
    refused(
        &[&seccomp, &execve],
        "seccomp, which installs the next filter, with kill_thread",
    );
    assert_eq!(output(&[&seccomp], &["true"]).0, Some(0));
}

#[test]
fn only_raw_filters_that_the_kernel_takes_are_read() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exec-text.tamis");
    for text in ["default allow\n", "", "eight  b", &"x".repeat(40_000)] {
        fs::write(&path, text).unwrap();
        let (code, _, error) = output(&[&path], &["true"]);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.starts_with("tamis-exec: "), "{error}");
    }
    assert_eq!(output(&[], &["true"]).0, Some(2));
    assert_eq!(output(&[], &[]).0, Some(2));
    assert_eq!(output(&[Path::new("/no/such")], &["true"]).0, Some(2));
}
