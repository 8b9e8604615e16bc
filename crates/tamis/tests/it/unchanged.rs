//! A recorded program behaves as without the recorder: exit codes, signals, programs that trace others, filters and listeners of
//! its own, privileges of files, job control; also when the recorder is killed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tamis_testkit::child;
use tamis_testkit::patience;
use tamis_testkit::scratch::Scratch;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains;

use crate::TAMIS;
use crate::recording::unless_tracepoints;

/// The tests of each back end, in a module of its name.
macro_rules! of_each_backend {
    ($($test:ident)*) => {
        of_each_backend!(@ebpf "ebpf" $($test)*);
        of_each_backend!(@notify "notify" $($test)*);
        of_each_backend!(@trace "trace" $($test)*);
        of_each_backend!(@patched "patched" $($test)*);
    };
    (@$module:ident $name:literal $($test:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::unless_works($name);
                    super::$test($name);
                }
            )*
        }
    };
}

of_each_backend! {
    exit_codes_signals_and_stops_are_the_commands
    a_stopped_command_is_waited_for
    a_command_may_have_its_own_listener
    programs_keep_the_privileges_of_their_files
    the_command_ends_or_goes_on_when_its_recorder_is_killed
}

/// Ends the test if a back end doesn't work here.
fn unless_works(backend: &str) {
    let platform = match backend {
        "ebpf" => return unless_tracepoints(),
        "trace" => "ptrace-seccomp",
        other => other,
    };
    let platform = tamis_platform::by_name(platform).expect("it has this name");
    if let Err(unavailable) = platform.probe() {
        skip::because(Need::Live, unavailable);
    }
}

/// A command alone, or recorded.
fn output(backend: Option<&str>, command: &[&str]) -> Output {
    let mut words = Vec::new();
    if let Some(backend) = backend {
        words.extend([TAMIS, "record", "-q", "--backend", backend, "--"]);
    }
    words.extend(command);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    child::output(&mut command).expect("it starts")
}

/// Checks that a command ends and prints as without the recorder.
#[track_caller]
fn check(backend: &str, command: &[&str]) {
    let expected = output(None, command);
    let recorded = output(Some(backend), command);
    assert_eq!(
        recorded.status, expected.status,
        "{command:?}: {recorded:?}"
    );
    assert_eq!(
        recorded.stdout, expected.stdout,
        "{command:?}: {recorded:?}"
    );
    assert_eq!(recorded.stderr, expected.stderr, "{command:?}");
}

fn built(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = toolchains::C.folder(folder, &format!("unchanged-{name}"));
    toolchains::C.build(&folder, text)
}

fn exit_codes_signals_and_stops_are_the_commands(backend: &str) {
    check(backend, &["sh", "-c", "echo out; echo err >&2; exit 3"]);
    check(backend, &["sh", "-c", "kill -TERM $$"]);
    check(
        backend,
        &[
            "sh",
            "-c",
            "trap 'echo caught; exit 5' USR1; kill -USR1 $$; exit 6",
        ],
    );
    // A job that is stopped, seen to be stopped, continued and waited for.
    let jobs = "exec 2>/dev/null; sleep 1000 & kill -STOP $!; while ! grep -q '^State:.[Tt]' /proc/$!/status; do :; done; jobs | wc -l; \
                kill -CONT $!; kill -TERM $!; wait $!; echo $?";
    // Where tamis hasn't seen a call yet, a signal whose handler doesn't restart calls has it fail, `kill` too; the book says so.
    if backend != "notify" {
        check(backend, &["sh", "-c", jobs]);
    }
}

/// The command itself is stopped and goes on, and the recorder waits for it.
fn a_stopped_command_is_waited_for(backend: &str) {
    let mut tamis = Command::new(TAMIS);
    tamis.args([
        "record",
        "-q",
        "--backend",
        backend,
        "--",
        "sh",
        "-c",
        "echo $$; kill -STOP $$; echo on; exit 4",
    ]);
    let mut tamis = tamis.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(tamis.stdout.take().expect("a pipe"));
    let mut pid = String::new();
    lines.read_line(&mut pid).expect("a line");
    let stat = format!("/proc/{}/stat", pid.trim());
    let began = Instant::now();
    let is_stopped = || {
        let text = fs::read_to_string(&stat).unwrap_or_default();
        text.contains(") T ") || text.contains(") t ")
    };
    while !is_stopped() {
        assert!(
            began.elapsed() < patience::scaled(Duration::from_secs(60)),
            "{backend}: it isn't stopped"
        );
        thread::yield_now();
    }
    // A task that a tracer has stopped may still be about to stop, so the signal is repeated until it goes on.
    while tamis.try_wait().expect("a status").is_none() {
        assert!(
            began.elapsed() < patience::scaled(Duration::from_secs(60)),
            "{backend}: it doesn't go on"
        );
        let mut kill = Command::new("kill");
        let _ = kill
            .args(["-CONT", pid.trim()])
            .stderr(Stdio::null())
            .status();
    }
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "on\n", "{backend}");
    assert_eq!(tamis.wait().expect("it ends").code(), Some(4), "{backend}");
}

/// A task has one tracer, and where every call is caught it may not become one, which the book says.
#[test]
fn strace_traces_its_children_while_it_is_recorded() {
    unless_tracepoints();
    skip::unless_runs(Need::Peers, "strace", &["--version"]);
    let strace = ["strace", "-f", "-e", "trace=chdir", "-e", "signal=none"];
    check(
        "ebpf",
        &[&strace[..], &["sh", "-c", "cd /; exit 3"]].concat(),
    );
}

#[test]
fn gdb_traces_its_children_while_it_is_recorded() {
    unless_tracepoints();
    skip::unless_runs(Need::Peers, "gdb", &["--version"]);
    // `kill` by hand, as the number of the process is printed otherwise.
    let script = [
        "-ex",
        "set startup-with-shell off",
        "-ex",
        "catch syscall exit_group",
        "-ex",
        "run",
        "-ex",
        "info signals SIGTRAP",
        "-ex",
        "continue",
    ];
    let command = [
        &["gdb", "-nx", "-q", "-batch"][..],
        &script,
        &["--args", "/bin/true"],
    ]
    .concat();
    let shown = |backend| {
        let output = output(backend, &command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text
            .lines()
            .filter(|line| line.contains("exit") || line.contains("SIGTRAP"));
        let lines: Vec<String> = lines
            .map(|line| line.replace(|c: char| c.is_ascii_digit(), ""))
            .collect();
        (output.status, lines)
    };
    assert_eq!(shown(Some("ebpf")), shown(None));
}

/// Installs a filter with a listener for `getppid`, whose calls a child makes and this process answers.
const LISTENER: &str = r#"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    if (listener < 0) {
        printf("no listener: %s\n", strerror(errno));
        return 7;
    }
    pid_t child = fork();
    if (child == 0)
        _exit(syscall(SYS_getppid) == 4711 ? 0 : 1);
    struct seccomp_notif call;
    memset(&call, 0, sizeof call);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) return 8;
    struct seccomp_notif_resp answer = {call.id, 4711, 0, 0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer)) return 9;
    int status;
    waitpid(child, &status, 0);
    printf("answered: %d\n", WEXITSTATUS(status));
    return 0;
}
"#;

fn a_command_may_have_its_own_listener(backend: &str) {
    let program = built(&format!("listener-{backend}"), LISTENER);
    let program = program.to_str().expect("a path");
    if backend == "ebpf" {
        return check(backend, &[program]);
    }
    // A task has one listener, which the book says.
    let output = output(Some(backend), &[program]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = "no listener: Device or resource busy\n";
    assert_eq!((output.status.code(), text.as_str()), (Some(7), expected));
}

/// Its own filter says `trace`, and there is no tracer.
const OWN_TRACE: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | 7),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)) return 2;
    long result = syscall(SYS_getppid);
    printf("%s\n", result == -1 && errno == ENOSYS ? "nobody traces" : "somebody traces");
    return 0;
}
"#;

#[test]
fn a_filter_of_the_command_that_wants_a_tracer_has_none() {
    // The listener of the others goes before; the book says so.
    unless_tracepoints();
    let program = built("own-trace", OWN_TRACE);
    check("ebpf", &[program.to_str().expect("a path")]);
}

/// The user that a program is run for.
const EFFECTIVE: &str = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%d\\n\", geteuid()); return 0; }\n";

fn programs_keep_the_privileges_of_their_files(backend: &str) {
    skip::unless_live();
    skip::unless_runs(Need::Peers, "setpriv", &["--version"]);
    let program = built(&format!("effective-{backend}"), EFFECTIVE);
    // Where another user may execute it.
    let scratch = Scratch::open_to_readers(&format!("effective-{backend}")).expect("a folder");
    let own = scratch.path().join("effective");
    tamis_testkit::child::copy_program(&program, &own);
    fs::set_permissions(&own, fs::Permissions::from_mode(0o4755)).expect("its mode");
    let command = [
        "setpriv",
        "--reuid",
        "65534",
        "--clear-groups",
        own.to_str().expect("a path"),
    ];
    let alone = output(None, &command);
    if alone.stdout != b"0\n" {
        skip::because(Need::Live, "files give no privileges here");
    }
    let output = output(Some(backend), &command);
    // Filters without `no_new_privs` would let a program be fooled that has more privileges; the book says it.
    let expected = if backend == "ebpf" { "0\n" } else { "65534\n" };
    let user = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(user, expected, "{output:?}");
}

/// With programs in the kernel nothing of the recorder is in the command, which goes on; filters of the others end it.
fn the_command_ends_or_goes_on_when_its_recorder_is_killed(backend: &str) {
    let mut tamis = Command::new(TAMIS);
    let script = "echo $$; read line; cd /; echo went on";
    tamis.args([
        "record",
        "-q",
        "--backend",
        backend,
        "--",
        "sh",
        "-c",
        script,
    ]);
    let mut tamis = tamis
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(tamis.stdout.take().expect("a pipe"));
    let mut pid = String::new();
    lines.read_line(&mut pid).expect("a line");
    let pid: i32 = pid.trim().parse().expect("a number");
    let stdin = tamis.stdin.take();
    tamis.kill().expect("it lives");
    tamis.wait().expect("it ends");
    // Its input ends, and so does it.
    drop(stdin);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("text");
    let expected = if backend == "ebpf" { "went on\n" } else { "" };
    assert_eq!(rest, expected, "{backend}");
    let began = Instant::now();
    while tamis_kernel::lives(pid) && began.elapsed() < patience::scaled(Duration::from_secs(20)) {
        thread::yield_now();
    }
    assert!(!tamis_kernel::lives(pid), "{backend}: it hangs");
}
