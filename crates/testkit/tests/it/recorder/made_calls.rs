//! A program whose calls are known: each kind that recorders get wrong.

use std::path::{Path, PathBuf};

use tamis_abi::{Action, Arch, Nr};
use tamis_bpf::{Insn, Op, Program, Test};
use tamis_kernel::{Ended, NATIVE_ENDIAN};
use tamis_recorder::ebpf::{Options, Recorder, Start};
use tamis_testkit::skip;
use tamis_testkit::toolchains;

use super::support::{call, recorded, recorder};

const EPERM: u16 = 1;
const SIGSYS: i32 = 31;

const PROGRAM: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static long i386(long nr) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(nr) : "memory", "r8", "r9", "r10", "r11");
    return result;
}
static void *thread(void *unused) {
    for (int i = 0; i < 100; i++) syscall(SYS_getpgid, 0L);
    return unused;
}
int main(void) {
    for (int i = 0; i < 7; i++) i386(20); /* getpid, which is writev on x86-64 */
    for (int i = 0; i < 5; i++) syscall(SYS_getsid, 0L);
    for (int i = 0; i < 3; i++) syscall(SYS_getsid, 1L << 22);
    for (int i = 0; i < 2; i++) syscall(600L);
    syscall(-7L);
    syscall(0x40000000L + 514, 0L, 0x5401L, 0L); /* ioctl of x32, which may not be made here */
    close(socket(AF_UNIX, SOCK_STREAM, 0));
    for (int i = 0; i < 4; i++) close(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    syscall(SYS_socket, 0x700000001L, 1L, 0L); /* the kernel ignores the upper half, filters don't */
    for (int i = 0; i < 6; i++) syscall(SYS_fcntl, 0L, (long)F_GETFD);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, thread, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            syscall(SYS_getpgid, 0L);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
    return 0;
}
"#;

pub(super) fn program(test: &str) -> PathBuf {
    let folder = toolchains::C.folder(Path::new(env!("CARGO_TARGET_TMPDIR")), test);
    toolchains::C.build(&folder, PROGRAM)
}

/// A program that answers a number of x86-64 with an action, and allows the rest.
fn answering(nr: u32, action: Action) -> Program {
    let ops = [
        Op::LoadData(0),
        Op::branch(Test::Eq, nr, 0, 1),
        Op::RetImm(action.ret()),
        Op::RetImm(Action::ALLOW.ret()),
    ];
    let insns: Vec<Insn> = ops.into_iter().map(Into::into).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("a valid program")
}

#[test]
fn every_call_is_counted_where_it_belongs() {
    let options = Options {
        values: true,
        times: true,
        ..Default::default()
    };
    let recorder = recorder(options);
    let program = program("every-call");
    let (recording, ended) = recorded(&recorder, &program, &[]);
    assert_eq!(ended, Ended::Exited(0));
    assert!(recording.lost.is_nothing(), "{:?}", recording.lost);
    let native = |name| call(&recording, Arch::X86_64, name);
    assert_eq!(call(&recording, Arch::X86, "getpid").count, 7);
    assert_eq!(native("execve").count, 1);
    let getsid = native("getsid");
    assert_eq!((getsid.count, getsid.errors.values().sum::<u64>()), (8, 3));
    assert_eq!(native("getpgid").count, 304, "of threads and children too");
    assert_eq!(native("exit_group").count, 5);
    let families = &native("socket").values[&0];
    assert_eq!(
        families
            .iter()
            .map(|(value, count)| (*value, *count))
            .collect::<Vec<_>>(),
        [(1, 1), (2, 4), (0x7_0000_0001, 1)]
    );
    let commands = &native("fcntl").values[&1];
    assert_eq!(commands[&1], 6);
    let times = getsid.times.as_ref().expect("times");
    assert_eq!(times.buckets.iter().sum::<u64>(), 8);
    assert!(times.min_ns <= times.max_ns && times.max_ns <= times.total_ns);
    let strange = |arch, nr| recording.profile.call(arch, Nr(nr)).map(|call| call.count);
    assert_eq!(
        strange(Arch::X86_64, 600),
        Some(2),
        "a number beyond all calls"
    );
    // It has the bit of x32.
    assert_eq!(
        strange(Arch::X32, -7i32 as u32),
        Some(1),
        "a negative number"
    );
    let ioctl = call(&recording, Arch::X32, "ioctl");
    assert_eq!((ioctl.count, ioctl.values[&1][&0x5401]), (1, 1));
    assert!(recording.unknown.is_empty(), "{:?}", recording.unknown);
    assert_eq!(recorder.live(), 0);
}

#[test]
fn denied_calls_are_counted_and_told_from_others() {
    skip::unless_live();
    let recorder = recorder(Options::default());
    let program = program("denied");
    /// `getsid`.
    const GETSID: u32 = 124;
    let filter = answering(GETSID, Action::errno(EPERM));
    let (recording, _) = recorded(&recorder, &program, &[&filter]);
    let getsid = call(&recording, Arch::X86_64, "getsid");
    assert_eq!((getsid.count, getsid.denied), (8, 8));
    assert_eq!(getsid.errors[&EPERM], 8);
    assert_eq!(call(&recording, Arch::X86_64, "getpgid").denied, 0);
}

#[test]
fn calls_for_which_a_filter_kills_are_counted_apart() {
    skip::unless_live();
    let recorder = recorder(Options::default());
    let program = program("killed");
    const GETSID: u32 = 124;
    let filter = answering(GETSID, Action::KILL_PROCESS);
    let (recording, ended) = recorded(&recorder, &program, &[&filter]);
    assert!(ended.is_by(SIGSYS), "{ended:?}");
    let calls: Vec<(u32, u64)> = recording
        .signalled
        .iter()
        .map(|(call, count)| (call.nr, *count))
        .collect();
    assert_eq!(calls, [(GETSID, 1)]);
    assert!(recording.profile.calls().all(|(_, nr, _)| nr.0 != GETSID));
}

#[test]
fn tasks_that_nobody_chose_are_not_recorded_and_recording_can_end_before_they_do() {
    let recorder = recorder(Options::default());
    let program = program("unrecorded");
    let own = std::process::id() as i32;
    assert!(!recorder.record(-1, Start::Now));
    assert!(!recorder.record(i32::MAX, Start::Now));
    // One that has ended and that nobody has waited for.
    let mut ended = std::process::Command::new("true").spawn().expect("it runs");
    let number = ended.id() as i32;
    let stat = || std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    while !stat().contains(") Z ") {
        std::thread::yield_now();
    }
    assert!(!recorder.record(number, Start::Now));
    assert_eq!(recorder.live(), 0);
    ended.wait().expect("it has ended");
    let status = std::process::Command::new(&program)
        .status()
        .expect("it runs");
    assert!(status.success());
    assert!(recorder.recording().expect("counts").profile.is_empty());
    // This thread is recorded, and lives on when the recorder is gone.
    assert!(recorder.record(own, Start::Now));
    drop::<Recorder>(recorder);
    assert!(std::process::Command::new(program).status().is_ok());
}

#[test]
fn the_calls_of_a_runtime_are_not_those_of_its_program() {
    let options = Options {
        confined: true,
        ..Options::default()
    };
    skip::unless_live();
    let recorder = recorder(options);
    let program = program("confined");
    let (recording, _) = recorded(&recorder, &program, &[]);
    assert!(recording.profile.is_empty(), "nothing is under a filter");
    assert_eq!(recorder.live(), 0);
    // The child installs its filter and executes the program.
    let filter = answering(124, Action::errno(EPERM));
    let (recording, _) = recorded(&recorder, &program, &[&filter]);
    assert_eq!(call(&recording, Arch::X86_64, "execve").count, 1);
    assert_eq!(call(&recording, Arch::X86_64, "getsid").denied, 8);
    let seccomp = tamis_abi::syscall::number(Arch::X86_64, "seccomp").expect("a call");
    assert_eq!(recording.profile.call(Arch::X86_64, seccomp), None);
}
