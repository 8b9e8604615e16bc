//! Running commands: their ends and the reports.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};

use libtest_mimic::Trial;
use tamis_abi::{Action, ActionKind, Arch, ArgIndex, SeccompData, Word};
use tamis_bpf::{Op, Stack, Test};
use tamis_kernel::run::{Note, Scope};
use tamis_kernel::{Command, Ended, Errno, Killed, NATIVE_ENDIAN, RunError, RunResult, run};

use tamis_testkit::skip::{self, Need};

use crate::raw;
use crate::support::{
    ARGS, CALL, answering, answering_all, constant, native_call, output_of, own_path, program,
    stack, trial, victim,
};
use crate::victim::MARK;

const KILL: u32 = Action::KILL_PROCESS.ret();

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("run::exit_codes_are_passed_on", exit_codes),
        trial("run::signals_are_passed_on", signals),
        trial("run::no_such_program", no_such_program),
        trial("run::filter_denies_execve", filter_denies_execve),
        trial("run::filter_denies_even_exiting", filter_denies_exiting),
        trial("run::filter_kills_in_execve", filter_kills_in_execve),
        trial("run::second_filter_is_denied", second_filter_is_denied),
        trial("run::kill_is_explained", kill_is_explained),
        trial("run::kill_of_i386_call", kill_of_other_arch),
        trial("run::kill_without_explaining", kill_without_explaining),
        trial("run::kill_in_grandchild", kill_in_grandchild),
        trial("run::kill_of_one_thread", kill_of_one_thread),
        trial("run::kill_among_threads", kill_among_threads),
        trial("run::kill_by_own_filter", kill_by_own_filter),
        trial("run::trap_uncaught", trap_uncaught),
        trial("run::trap_caught", trap_caught),
        trial("run::sigsys_from_elsewhere", sigsys_from_elsewhere),
        trial("run::trace_has_no_tracer", trace_has_no_tracer),
        trial("run::tracing_not_permitted", tracing_not_permitted),
        trial("run::signals_are_forwarded", signals_are_forwarded),
        trial("run::storm_of_signals", storm_of_signals),
        trial("run::dies_with_parent_if_asked", dies_with_parent),
        trial("run::stopped_command_goes_on", stopped_command_goes_on),
        trial("run::daemon_is_released", daemon_is_released),
        trial("run::leaves_nothing_behind", leaves_nothing_behind),
    ]
}

fn command(program: &str, args: &[&str]) -> Command {
    Command {
        args: args.iter().map(Into::into).collect(),
        ..Command::new(program)
    }
}

/// A victim as the command, under a filter that answers its call.
fn victim_under(ret: u32, role: &[&str]) -> Command {
    Command {
        args: [MARK].iter().chain(role).map(Into::into).collect(),
        filters: answering(CALL, ret).into(),
        ..Command::new(own_path())
    }
}

#[track_caller]
fn report(command: &Command) -> RunResult {
    run(command).expect("the command is executed")
}

/// How a process ends that a filter or an uncaught trap kills; whether it leaves a core is up to
/// the limits of this machine.
#[track_caller]
fn assert_sigsys(ended: Ended) {
    let is_sigsys = matches!(ended, Ended::Signalled { signal, .. } if signal == libc::SIGSYS);
    assert!(is_sigsys, "{ended:?}");
}

/// The test's call with these arguments, at the address that was reported.
fn expected_call(killed: &Killed) -> SeccompData {
    let ip = killed.call.expect("the call is known").ip;
    assert_ne!(ip, 0);
    SeccompData {
        ip,
        ..native_call(CALL, ARGS)
    }
}

fn exit_codes() {
    for explain in [true, false] {
        for code in [0, 1, 2, 42, 126, 127, 128, 255] {
            let mut command = command("sh", &["-c", &format!("exit {code}")]);
            command.explain = explain;
            assert_eq!(report(&command).ended, Ended::Exited(code));
        }
    }
}

fn signals() {
    for explain in [true, false] {
        for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGPIPE] {
            let mut command = command("sh", &["-c", &format!("kill -{signal} $$")]);
            command.explain = explain;
            let ended = report(&command).ended;
            let is_by = ended.is_by(signal);
            assert!(is_by, "{signal}: {ended:?}");
        }
    }
}

fn exec_error(command: &Command) -> (i32, Option<(usize, Action)>) {
    match run(command) {
        Err(RunError::Exec { errno, denied_by }) => (errno.0, denied_by),
        other => panic!("{other:?}"),
    }
}

/// The error is the one that other ways of starting a program get.
fn no_such_program() {
    for program in [
        "no-such-program-anywhere",
        "/no/such/program",
        "/",
        "/proc/self/status",
    ] {
        let elsewhere = std::process::Command::new(program).spawn();
        let expected = elsewhere.expect_err("it can't be executed").raw_os_error();
        let mut command = command(program, &[]);
        command.filters = answering(CALL, KILL).into();
        let (errno, denied_by) = exec_error(&command);
        assert_eq!((Some(errno), denied_by), (expected, None), "{program}");
    }
    assert_eq!(run(&command("a\0b", &[])), Err(RunError::ZeroByte));
}

/// A filter's error that resembles a missing program or success is distinguished from it.
fn filter_denies_execve() {
    for errno in [0, libc::EPERM, libc::ENOENT, libc::ENOSYS, 4095] {
        let action = Action::errno(errno as u16);
        for explain in [true, false] {
            let mut command = command("true", &[]);
            let denies = answering(libc::SYS_execve, action.ret());
            command.filters = stack(vec![constant(Action::ALLOW.ret()), denies]);
            command.explain = explain;
            assert_eq!(exec_error(&command), (errno, Some((1, action))));
        }
    }
}

fn filter_denies_exiting() {
    let deny = Action::errno(1).ret();
    for program in [
        constant(deny),
        answering_all(&[
            (libc::SYS_execve, deny),
            (libc::SYS_exit_group, deny),
            (libc::SYS_exit, deny),
        ]),
    ] {
        let mut command = command("true", &[]);
        command.filters = program.into();
        assert_eq!(exec_error(&command), (1, Some((0, Action::errno(1)))));
    }
}

fn filter_kills_in_execve() {
    let mut command = command("true", &[]);
    command.filters = constant(KILL).into();
    let report = report(&command);
    assert_sigsys(report.ended);
    let call = report.killed[0].call.expect("the call is known");
    assert_eq!(i64::from(call.nr), libc::SYS_execve);
    assert_eq!(report.killed[0].decided_by, Some((0, Action::KILL_PROCESS)));
}

fn second_filter_is_denied() {
    let eperm = Action::errno(libc::EPERM as u16).ret();
    let mut command = command("true", &[]);
    command.filters = stack(vec![answering(libc::SYS_seccomp, eperm), constant(KILL)]);
    match run(&command) {
        Err(RunError::Install { filter: 1, error }) => {
            let refused = tamis_kernel::InstallError::Refused(Errno(libc::EPERM));
            assert_eq!(error, refused);
        }
        other => panic!("{other:?}"),
    }
}

fn kill_is_explained() {
    for action in [Action::KILL_PROCESS, Action::KILL_THREAD] {
        let mut command = victim_under(action.ret(), &["call"]);
        command
            .filters
            .push(constant(Action::ALLOW.ret()))
            .expect("it is for this machine");
        let report = report(&command);
        assert_sigsys(report.ended);
        let [killed] = report.killed[..] else {
            panic!("{report:?}");
        };
        assert_eq!(killed.call, Some(expected_call(&killed)));
        assert_eq!(killed.decided_by, Some((0, action)));
        assert_eq!(
            (killed.scope, killed.signal),
            (Scope::Process, libc::SIGSYS)
        );
        assert_eq!(killed.thread, killed.process);
        assert_eq!((report.trapped, report.notes), (vec![], vec![]));
    }
}

fn kill_without_explaining() {
    let mut command = victim_under(KILL, &["call"]);
    command.explain = false;
    let report = report(&command);
    assert_sigsys(report.ended);
    assert_eq!((report.killed, report.notes), (vec![], vec![]));
}

fn kill_in_grandchild() {
    let report = report(&victim_under(KILL, &["call-in-grandchild", "7"]));
    assert_eq!(report.ended, Ended::Exited(7));
    let [killed] = report.killed[..] else {
        panic!("{report:?}");
    };
    assert_eq!(killed.call, Some(expected_call(&killed)));
    assert_eq!(killed.thread, killed.process);
}

fn kill_of_one_thread() {
    let report = report(&victim_under(
        Action::KILL_THREAD.ret(),
        &["call-in-thread", "3"],
    ));
    assert_eq!(report.ended, Ended::Exited(3));
    let [killed] = report.killed[..] else {
        panic!("{report:?}");
    };
    assert_eq!(killed.call, Some(expected_call(&killed)));
    assert_eq!(killed.scope, Scope::Thread);
    assert_ne!(killed.thread, killed.process);
}

/// The thread that made the call is distinguished from those that die with it.
fn kill_among_threads() {
    for _ in 0..20 {
        let report = report(&victim_under(KILL, &["call-among-threads"]));
        assert_sigsys(report.ended);
        let [killed] = report.killed[..] else {
            panic!("{report:?}");
        };
        assert_eq!(killed.call, Some(expected_call(&killed)));
        assert_eq!(killed.scope, Scope::Process);
        assert_ne!(killed.thread, killed.process);
        assert_eq!(report.notes, []);
    }
}

/// A filter that the command installed itself is not known, but its kill is seen.
fn kill_by_own_filter() {
    let mut command = victim_under(0x7fff_0000, &["verdict", &format!("{KILL:x}")]);
    command.filters = Stack::default();
    let report = report(&command);
    assert_sigsys(report.ended);
    assert_eq!(report.killed.len(), 1);
    assert_eq!(report.killed[0].decided_by, None);
    let call = report.killed[0].call.expect("the call is known");
    assert_eq!(i64::from(call.nr), CALL);
}

fn trap_uncaught() {
    let report = report(&victim_under(
        Action::new(ActionKind::Trap, 9).ret(),
        &["call"],
    ));
    assert_sigsys(report.ended);
    let [trapped] = report.trapped[..] else {
        panic!("{report:?}");
    };
    assert_eq!((trapped.data, trapped.is_caught), (9, false));
    assert_eq!(
        (i64::from(trapped.call.nr), trapped.call.args),
        (CALL, ARGS)
    );
    assert_eq!((report.killed, report.notes), (vec![], vec![]));
}

fn trap_caught() {
    let ret = Action::new(ActionKind::Trap, 0xffff).ret();
    let report = report(&victim_under(ret, &["call-caught"]));
    assert_eq!(report.ended, Ended::Exited(0));
    let [trapped] = report.trapped[..] else {
        panic!("{report:?}");
    };
    assert_eq!((trapped.data, trapped.is_caught), (0xffff, true));
}

fn sigsys_from_elsewhere() {
    let mut command = command("sh", &["-c", &format!("kill -{} $$", libc::SIGSYS)]);
    command.filters = answering(CALL, KILL).into();
    let report = report(&command);
    assert_sigsys(report.ended);
    assert_eq!((report.killed, report.trapped), (vec![], vec![]));
    assert_eq!(report.notes, []);
}

/// Explaining doesn't make the command traced in the eyes of a filter.
fn trace_has_no_tracer() {
    let ret = Action::new(ActionKind::Trace, 5).ret();
    let report = report(&victim_under(ret, &["call"]));
    assert_eq!(report.ended, Ended::Exited(libc::ENOSYS as u8));
}

fn tracing_not_permitted() {
    let path = own_path();
    let path = path.to_str().expect("a path in UTF-8");
    let output = crate::support::play(&["run", "without-ptrace", path, MARK, "call"]);
    assert_eq!(output.status.code(), Some(128 + libc::SIGSYS));
    let note = Note::NotTraced(Errno(libc::EPERM));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.trim(), format!("0 {:?}", [note]));
}

/// A victim that runs a command and has printed the first line of its output. Inherited ignored signals are reset, so
/// that they can be forwarded.
fn runner(words: &[&str]) -> (Child, BufReader<ChildStdout>, String) {
    let mut role = vec!["run"];
    role.extend(words);
    let mut child = victim(&role).spawn().expect("the victim starts");
    let stdout = child.stdout.take().expect("its output is captured");
    let mut lines = BufReader::new(stdout);
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    (child, lines, line.trim().to_owned())
}

fn signals_are_forwarded() {
    let signals = [
        "HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "WINCH",
    ];
    let real_time = libc::SIGRTMIN() + 3;
    let numbers = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGWINCH,
        real_time,
    ];
    let script = format!(
        "sleep 1000 & trap 'kill $!; exit 9' {} {real_time}; echo ready; wait",
        signals.join(" ")
    );
    for case in ["explained", "unexplained"] {
        for signal in numbers {
            let (mut child, _lines, line) = runner(&[case, "sh", "-c", &script]);
            assert_eq!(line, "ready");
            raw::kill(child.id() as i32, signal);
            let status = child.wait().expect("the victim ends");
            assert_eq!(status.code(), Some(9), "{case} {signal}");
        }
    }
}

/// More signals than fit into the handler's pipe, sent while the runner was stopped.
fn storm_of_signals() {
    const SIGNALS: u32 = 80_000;
    let real_time = libc::SIGRTMIN() + 3;
    let script =
        format!("sleep 1000 & trap '' {real_time}; trap 'kill $!; exit 9' TERM; echo ready; wait");
    let (mut child, _lines, line) = runner(&["explained", "sh", "-c", &script]);
    assert_eq!(line, "ready");
    let pid = child.id() as i32;
    raw::kill(pid, libc::SIGSTOP);
    while state(pid) != Some('T') {
        std::thread::yield_now();
    }
    for _ in 0..SIGNALS {
        raw::kill(pid, real_time);
    }
    raw::kill(pid, libc::SIGTERM);
    raw::kill(pid, libc::SIGCONT);
    assert_eq!(child.wait().expect("the victim ends").code(), Some(9));
}

/// The end of the output means that all its writers are gone.
fn dies_with_parent() {
    let (mut child, mut lines, line) =
        runner(&["bound", "sh", "-c", "echo ready; exec sleep 1000"]);
    assert_eq!(line, "ready");
    raw::kill(child.id() as i32, libc::SIGKILL);
    child.wait().expect("the victim ends");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("the output ends");
    assert_eq!(rest, "");
}

fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.chars().next()
}

/// A stopped command stays stopped, traced or not, until it is continued.
fn stopped_command_goes_on() {
    for case in ["explained", "unexplained"] {
        let script = "echo $$; kill -STOP $$; exit 5";
        let (mut child, _lines, line) = runner(&[case, "sh", "-c", script]);
        let pid: i32 = line.parse().expect("a process number");
        while !matches!(state(pid), Some('T' | 't')) {
            std::thread::yield_now();
        }
        assert_eq!(child.try_wait().expect("it can be waited for"), None);
        raw::kill(pid, libc::SIGCONT);
        let status = child.wait().expect("the victim ends");
        assert_eq!(status.code(), Some(5), "{case}");
    }
}

/// Descendants of the command continue after the run, without a tracer.
fn daemon_is_released() {
    let script = "sleep 1000 >&- & echo $!";
    let (mut child, mut lines, line) = runner(&["explained", "sh", "-c", script]);
    let status = child.wait().expect("the victim ends");
    assert!(status.success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("text");
    let daemon: i32 = line.parse().expect("a process number");
    let status = fs::read_to_string(format!("/proc/{daemon}/status")).expect("it lives");
    assert!(status.contains("TracerPid:\t0\n"), "{status}");
    assert!(matches!(state(daemon), Some('S' | 'R' | 'D')));
    raw::kill(daemon, libc::SIGKILL);
}

fn leaves_nothing_behind() {
    assert_eq!(output_of(&["run-often"]), "children: \"\"");
}

/// A call by `int 0x80` is attributed to i386, with its number there. From 64-bit code the filter
/// sees whole registers, although the kernel takes their low halves: the report shows the same.
fn kill_of_other_arch() {
    let audit = Arch::X86.audit();
    let nr = raw::I386_GETPRIORITY;
    let equals = |k, jf| Op::branch(Test::Eq, k, 0, jf);
    let mut command = victim_under(KILL, &["call-i386"]);
    command.filters = Stack::from(program(vec![
        Op::LoadData(4),
        equals(audit, 5),
        Op::LoadData(0),
        equals(nr, 3),
        Op::LoadData(Word::arg_high(ArgIndex::ALL[0]).offset(NATIVE_ENDIAN)),
        equals((ARGS[0] >> 32) as u32, 1),
        Op::RetImm(KILL),
        Op::RetImm(Action::ALLOW.ret()),
    ]));
    let report = report(&command);
    let Some(killed) = report.killed.first() else {
        skip::because(Need::X86_64, "this machine makes no i386 calls");
    };
    let call = killed.call.expect("the call is known");
    assert_eq!((call.arch, call.nr), (audit, nr));
    assert_eq!(call.args[..3], ARGS[..3]);
}
