//! The roles of a victim. A role is a list of words; its result goes to standard output or into the exit code.

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;

use tamis_abi::Action;
use tamis_bpf::Program;
use tamis_kernel::{
    Ended, Flag, Flags, Install, InstallError, Installed, RunError, RunResult, install,
};

use crate::raw;
use crate::support::{ARGS, CALL, answering, answering_all, constant, own_path};

/// The first argument of a victim.
pub(crate) const MARK: &str = "victim";

/// Plays a role.
pub(crate) fn play(role: &[String]) -> ExitCode {
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["call"] => return ExitCode::from(code_of(raw::call(CALL, ARGS))),
        ["call-twice"] => {
            let _ = raw::call(CALL, ARGS);
            return ExitCode::from(code_of(raw::call(CALL, ARGS)));
        }
        ["call-i386"] => return ExitCode::from(u8::from(raw::call_i386(ARGS))),
        ["call-with-fd"] => return call_with_fd(),
        ["call-caught"] => return call_caught(),
        ["call-in-grandchild", code] => return call_in_grandchild(code),
        ["call-in-thread", code] => return call_in_thread(code),
        ["call-among-threads"] => call_among_threads(),
        ["verdict", rets @ ..] => println!("{}", verdict(rets)),
        ["verdict-in-thread", rets @ ..] => verdict_in_thread(rets),
        ["trace-message", data] => trace_message(data),
        ["install", case] => println!("{}", install_case(case)),
        ["notify", case] => println!("{}", crate::notifying::in_victim(case)),
        ["probe-under", ret] => probe_under(ret),
        ["wait-under", stack] => wait_under(stack),
        ["dump-unprivileged", pid] => {
            raw::drop_privileges();
            print_dump(pid);
        }
        ["dump-under-filter", pid] => {
            let allow = constant(Action::ALLOW.ret());
            install(&allow, &Install::default()).expect("it can be installed");
            print_dump(pid);
        }
        ["run", case, words @ ..] => {
            raw::take_signals_of_terminals();
            return run(case, words);
        }
        ["first-of-a-namespace"] => println!("{}", crate::tracing::in_new_namespace()),
        ["run-often"] => run_often(),
        ["measure-often"] => measure_often(),
        ["ignored", case] => crate::ignored::in_victim(case),
        ["fault", case] => crate::faults::in_victim(case),
        ["panicking-supervisor"] => crate::faults::panicking_supervisor(),
        ["call-after-input"] => {
            let mut rest = String::new();
            io::Read::read_to_string(&mut io::stdin(), &mut rest).expect("it can be read");
            println!("{:?}", raw::call(CALL, ARGS));
        }
        ["call-interrupted"] => return call_interrupted(),
        ["load", case] => crate::load::in_victim(case),
        ["limit", case] => println!("{}", crate::limits::in_victim(case)),
        other => panic!("no role {other:?}"),
    }
    ExitCode::SUCCESS
}

/// Installs a stack and stays until standard input ends.
fn wait_under(stack: &str) {
    for program in crate::dumping::stack(stack) {
        install(&program, &Install::default()).expect("it can be installed");
    }
    println!("ready");
    let mut rest = String::new();
    io::Read::read_to_string(&mut io::stdin(), &mut rest).expect("it can be read");
    println!("done");
}

/// Prints why the filters of a process can't be dumped, or that they can.
fn print_dump(pid: &str) {
    match tamis_kernel::dump(pid.parse().expect("a process number")) {
        Ok(filters) => println!("{} filters", filters.len()),
        Err(error) => println!("{error:?}"),
    }
}

/// 100 for success, else the error number.
fn code_of(result: Result<i64, i32>) -> u8 {
    result.map_or_else(|errno| errno as u8, |_| 100)
}

/// Takes the answer to its call for a descriptor and writes to it.
fn call_with_fd() -> ExitCode {
    match raw::call(CALL, ARGS) {
        Ok(fd) => raw::write(fd as i32, b"from the victim"),
        Err(errno) => return ExitCode::from(errno as u8),
    }
    ExitCode::SUCCESS
}

fn call_caught() -> ExitCode {
    raw::catch_traps();
    let _ = raw::call(CALL, ARGS);
    ExitCode::from(if raw::trapped().is_some() { 0 } else { 1 })
}

/// Makes its call again whenever a signal interrupts it.
fn call_interrupted() -> ExitCode {
    raw::handle(libc::SIGUSR1);
    loop {
        let result = raw::call(CALL, ARGS);
        if result != Err(libc::EINTR) {
            return ExitCode::from(code_of(result));
        }
    }
}

fn call_in_grandchild(code: &str) -> ExitCode {
    let status = Command::new(own_path())
        .args([MARK, "call"])
        .status()
        .expect("the grandchild starts");
    assert!(!status.success());
    ExitCode::from(code.parse::<u8>().expect("a code"))
}

fn call_in_thread(code: &str) -> ExitCode {
    let tid = in_thread(|| {
        let _ = raw::call(CALL, ARGS);
    });
    wait_until_gone(tid);
    ExitCode::from(code.parse::<u8>().expect("a code"))
}

/// Several threads block; when all are there, one more makes the call.
fn call_among_threads() {
    for _ in 0..4 {
        in_thread(|| {
            loop {
                raw::pause();
            }
        });
    }
    in_thread(|| {
        let _ = raw::call(CALL, ARGS);
    });
    raw::pause();
}

/// Starts a thread and returns its number.
fn in_thread(body: impl FnOnce() + Send + 'static) -> i32 {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        sender.send(raw::thread()).expect("the starter waits");
        body();
    });
    receiver.recv().expect("the thread starts")
}

fn wait_until_gone(tid: i32) {
    while fs::exists(format!("/proc/self/task/{tid}")).expect("/proc can be read") {
        thread::yield_now();
    }
}

pub(crate) fn parse(ret: &str) -> u32 {
    u32::from_str_radix(ret, 16).expect("a hexadecimal return value")
}

fn install_all(rets: &[&str]) {
    for ret in rets {
        install(&answering(CALL, parse(ret)), &Install::default()).expect("it can be installed");
    }
}

/// The result of the call under filters with these actions, the oldest first.
fn verdict(rets: &[&str]) -> String {
    raw::catch_traps();
    install_all(rets);
    let result = raw::call(CALL, [0; 6]);
    if let Some((data, nr, arch)) = raw::trapped() {
        return format!("trap {data} {nr} {arch:#x}");
    }
    match result {
        Ok(0) => "value 0".to_owned(),
        // The nice value plus 20, which getpriority answers, is at least 1.
        Ok(_) => "executed".to_owned(),
        Err(errno) => format!("errno {errno}"),
    }
}

fn verdict_in_thread(rets: &[&str]) {
    install_all(rets);
    let tid = in_thread(|| {
        let _ = raw::call(CALL, [0; 6]);
        println!("alive");
    });
    wait_until_gone(tid);
    println!("main is alive");
}

fn trace_message(data: &str) {
    let data = data.parse().expect("data of an action");
    let ret = Action::new(tamis_abi::ActionKind::Trace, data).ret();
    let message = raw::trace_message(|| {
        install(&answering(CALL, ret), &Install::default()).expect("it can be installed");
        let _ = raw::call(CALL, [0; 6]);
    });
    println!("{message:?}");
}

fn with(flags: Flags) -> Install {
    Install {
        flags,
        no_new_privs: true,
    }
}

fn install_case(case: &str) -> String {
    let allow = constant(Action::ALLOW.ret());
    let listener = with(Flag::NewListener.into());
    let result = match case {
        "unprivileged" => {
            raw::drop_privileges();
            let without = Install {
                no_new_privs: false,
                ..Install::default()
            };
            install(&allow, &without)
        }
        "too-long" => install(&long(Program::MAX_INSNS + 1), &Install::default()),
        "longest" => install(&long(Program::MAX_INSNS), &Install::default()),
        "until-full" => return until_full(),
        "listener-twice" => {
            let first = install(&allow, &listener);
            let second = install(&allow, &listener);
            drop(first);
            second
        }
        "listener" => return listener_closes_on_exec(&allow, &listener),
        "tsync-without-esrch" => install(&allow, &with(Flag::Tsync | Flag::NewListener)),
        "wait-killable-alone" => install(&allow, &with(Flag::WaitKillableRecv.into())),
        "tsync-differs" => tsync_differs(Flag::Tsync.into()),
        "tsync-esrch-differs" => tsync_differs(Flag::Tsync | Flag::TsyncEsrch),
        "tsync" => return tsync(Flag::Tsync.into()),
        "tsync-listener" => return tsync(Flag::Tsync | Flag::TsyncEsrch | Flag::NewListener),
        "outer-eperm" => under_outer(libc::EPERM, &allow),
        "outer-enosys" => under_outer(libc::ENOSYS, &allow),
        "outer-zero" => under_outer(0, &allow),
        other => panic!("no case {other}"),
    };
    result_words(&result)
}

fn result_words(result: &Result<Installed, InstallError>) -> String {
    match result {
        Ok(_) => "installed".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

/// A program of this length.
fn long(len_insns: usize) -> Program {
    let allow = tamis_bpf::Op::RetImm(Action::ALLOW.ret());
    crate::support::program(vec![allow; len_insns])
}

/// Installs one program after the other until there is no room.
fn until_full() -> String {
    let program = crate::installing::half_full();
    let mut count = 0;
    loop {
        match install(&program, &Install::default()) {
            Ok(_) => count += 1,
            Err(error) => return format!("{count} {error:?}"),
        }
    }
}

fn listener_closes_on_exec(program: &Program, how: &Install) -> String {
    let installed = install(program, how).expect("it can be installed");
    let listener = installed.listener.expect("a listener");
    format!(
        "closes on exec: {}",
        raw::closes_on_exec(listener.as_raw_fd())
    )
}

/// Another thread gets a filter of its own, so that it can't get this one's.
fn tsync_differs(flags: Flags) -> Result<Installed, InstallError> {
    let (sender, receiver) = mpsc::channel();
    let other = in_thread(move || {
        let allow = constant(Action::ALLOW.ret());
        install(&allow, &Install::default()).expect("it can be installed");
        sender.send(()).expect("main waits");
        raw::pause();
    });
    receiver.recv().expect("the other thread has its filter");
    let result = install(&constant(Action::ALLOW.ret()), &with(flags));
    if let Err(InstallError::ThreadDiffers { thread: Some(tid) }) = result {
        assert_eq!(tid, other);
    }
    result
}

/// A thread that is there before gets the filter too.
fn tsync(flags: Flags) -> String {
    let (go, gone) = mpsc::channel();
    let (sender, receiver) = mpsc::channel();
    in_thread(move || {
        gone.recv().expect("main says go");
        sender.send(raw::call(CALL, [0; 6])).expect("main waits");
    });
    let installed = install(&answering(CALL, Action::errno(77).ret()), &with(flags));
    let has_listener = installed.expect("it can be installed").listener.is_some();
    go.send(()).expect("the thread waits");
    let other = receiver.recv().expect("the thread answers");
    format!("{:?} {:?} {has_listener}", raw::call(CALL, [0; 6]), other)
}

/// Denies `seccomp` to itself, then tries to install.
fn under_outer(errno: i32, program: &Program) -> Result<Installed, InstallError> {
    let outer = answering(libc::SYS_seccomp, Action::errno(errno as u16).ret());
    install(&outer, &Install::default()).expect("it can be installed");
    install(program, &Install::default())
}

fn probe_under(ret: &str) {
    let outer = answering_all(&[
        (libc::SYS_seccomp, parse(ret)),
        (libc::SYS_ptrace, parse(ret)),
    ]);
    install(&outer, &Install::default()).expect("it can be installed");
    let probe = tamis_kernel::probe();
    println!(
        "{:?} {:?} {:?} {:?} {:?}",
        probe.filter_mode, probe.ptrace.call, probe.mode, probe.filters, probe.no_new_privs
    );
}

/// Runs a command the way the command line does: forwards signals, and ends as the command did.
fn run(case: &str, words: &[&str]) -> ExitCode {
    if case == "without-ptrace" {
        let outer = answering(libc::SYS_ptrace, Action::errno(libc::EPERM as u16).ret());
        install(&outer, &Install::default()).expect("it can be installed");
    }
    let (program, args) = words.split_first().expect("a command");
    let command = tamis_kernel::Command {
        args: args.iter().map(Into::into).collect(),
        filters: answering(CALL, Action::KILL_PROCESS.ret()).into(),
        explain: case != "unexplained",
        forward_signals: true,
        die_with_parent: case == "bound",
        ..tamis_kernel::Command::new(program)
    };
    let result: Result<RunResult, RunError> = tamis_kernel::run(&command);
    let report = result.expect("the command runs");
    println!("{:?} {:?}", report.killed.len(), report.notes);
    match report.ended {
        Ended::Exited(code) => ExitCode::from(code),
        Ended::Signalled { signal, .. } => ExitCode::from(128 + signal as u8),
    }
}

/// Runs many commands, well and badly ending ones, and compares descriptors and children.
fn run_often() {
    let once = || {
        let mut command = tamis_kernel::Command::new("true");
        command.forward_signals = true;
        tamis_kernel::run(&command).expect("it runs");
        command.filters = answering(libc::SYS_execve, Action::errno(5).ret()).into();
        tamis_kernel::run(&command).expect_err("execve is denied");
        command.filters = answering(libc::SYS_execve, Action::KILL_PROCESS.ret()).into();
        command.explain = false;
        tamis_kernel::run(&command).expect("it is killed");
        command.filters = answering(CALL, 0x7fc0_0000).into();
        tamis_kernel::supervise(&command, |_, _| tamis_kernel::listener::Reply::Continue)
            .expect("it runs");
    };
    // The first run allocates permanently: the pipe of the signal handler.
    once();
    let before = open_files();
    for _ in 0..25 {
        once();
    }
    assert_eq!(open_files(), before);
    let tid = raw::thread();
    let children = fs::read_to_string(format!("/proc/self/task/{tid}/children"));
    println!("children: {:?}", children.expect("/proc can be read"));
    io::stdout().flush().expect("standard output is open");
    // A process without children gets an error for waiting; `Command` would find zombies otherwise.
    let status = Command::new("true").stdin(Stdio::null()).status();
    assert!(status.expect("true starts").success());
}

/// Measures several times, with children that end well and badly, and compares descriptors and children.
fn measure_often() {
    let before = open_files();
    for _ in 0..5 {
        crate::measuring::check(&[vec![], vec![constant(Action::errno(1).ret())]]);
        let kill = constant(Action::KILL_PROCESS.ret());
        assert!(tamis_kernel::measure(&[vec![kill]], &[], 1).is_ok());
    }
    assert_eq!(open_files(), before);
    let tid = raw::thread();
    let children = fs::read_to_string(format!("/proc/self/task/{tid}/children"));
    print!("{}", children.expect("/proc can be read"));
}

pub(crate) fn open_files() -> usize {
    fs::read_dir("/proc/self/fd")
        .expect("/proc can be read")
        .count()
}
