//! Structures that `tamis trace` shows, beside strace: a program that makes the calls which have them.

use std::fs;
use std::path::Path;
use std::process::Command;

use tamis_testkit::child;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains;

use super::recording::unless_tracepoints;
use super::trace::{folder, lines, trace, unless_traceable};
use crate::TAMIS;

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
// Machines without `select` have it with a mask of signals.
#ifdef SYS_select
#define SELECT(count, set, limit) syscall(SYS_select, count, set, 0L, 0L, limit)
#else
#define SELECT(count, set, limit) syscall(SYS_pselect6, count, set, 0L, 0L, limit, 0L)
#endif
static void handler(int signal, siginfo_t *info, void *context) { (void)signal; (void)info; (void)context; }
static void files(void) {
    struct stat st;
    struct statfs fs;
    char buffer[4096];
    struct timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
#ifdef SYS_stat
    syscall(SYS_stat, "/dev/null", &st);
    syscall(SYS_lstat, "/", &st);
#else
    syscall(SYS_newfstatat, AT_FDCWD, "/dev/null", &st, 0);
#endif
    syscall(SYS_newfstatat, AT_FDCWD, "/nonexistent", &st, 0);
    syscall(SYS_fstat, 1, &st);
    syscall(SYS_statx, AT_FDCWD, "/", 0, 0x7ff, buffer);
    statfs("/proc", &fs);
    int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    while (syscall(SYS_getdents64, folder, buffer, sizeof buffer) > 0) {}
    close(folder);
    utimensat(AT_FDCWD, "/nonexistent", times, 0);
}
static void times(void) {
    struct timespec ts = {0, 1000}, left;
    struct itimerval off = {{0, 0}, {0, 0}}, old;
    struct itimerspec every = {{1, 0}, {2, 5}};
    struct timeval tv;
    syscall(SYS_nanosleep, &ts, &left);
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, 0L);
    syscall(SYS_clock_getres, CLOCK_REALTIME, &ts);
    setitimer(ITIMER_REAL, &off, &old);
    getitimer(ITIMER_VIRTUAL, &old);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(timer, 0, &every, 0);
    close(timer);
    int word = 1;
    ts = (struct timespec){0, 1};
    syscall(SYS_futex, &word, 0, 0, &ts);
    syscall(SYS_futex, &word, 3, 1, 2L, &word);
    syscall(SYS_settimeofday, 1, 1);
    (void)tv;
}
static void limits(void) {
    struct rlimit limit;
    struct rusage usage;
    struct utsname name;
    gid_t groups[8];
    uid_t r, e, s;
    syscall(SYS_getrlimit, RLIMIT_STACK, &limit);
    syscall(SYS_prlimit64, 0, RLIMIT_CORE, 0L, &limit);
    syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, 0L);
    getrusage(RUSAGE_CHILDREN, &usage);
    uname(&name);
    getresuid(&r, &e, &s);
    getgroups(8, groups);
}
static void signals(void) {
    struct sigaction action = {0}, old;
    sigset_t set, was;
    stack_t stack;
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGRTMIN);
    sigaction(SIGUSR1, &action, &old);
    action.sa_flags = (int)(SA_NODEFER | SA_RESETHAND | SA_ONSTACK | SA_NOCLDSTOP);
    sigaction(SIGUSR2, &action, 0);
    sigaction(SIGALRM, &action, 0);
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, &was);
    sigprocmask(SIG_SETMASK, &was, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &set, &was);
    sigpending(&set);
    sigaltstack(0, &stack);
    kill(getpid(), SIGUSR1);
    raise(SIGUSR2);
    struct itimerval soon = {{0, 0}, {0, 1}};
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, &was);
    setitimer(ITIMER_REAL, &soon, 0);
    sigsuspend(&was);
}
static void descriptors(void) {
    int pair[2], ends[2];
    char one[4], other[8];
    struct iovec out[2] = {{"abc", 3}, {"de\n", 3}}, in[2] = {{one, 4}, {other, 8}};
    pipe(ends);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    writev(ends[1], out, 2);
    int ready;
    ioctl(ends[0], FIONREAD, &ready);
    ioctl(ends[0], TIOCGWINSZ, one);
    struct pollfd polled[3] = {{ends[0], POLLIN, 0}, {pair[0], POLLIN | POLLRDHUP, 0}, {-1, POLLOUT, 0}};
    struct timespec second = {1, 0};
    poll(polled, 3, 1000);
    syscall(SYS_ppoll, polled, 2, 0L, 0L, 8);
    poll(polled + 1, 1, 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    FD_SET(pair[0], &set);
    struct timeval none = {0, 0};
    SELECT(pair[1] + 1, &set, &none);
    FD_ZERO(&set);
    FD_SET(pair[0], &set);
    SELECT(pair[1] + 1, &set, &none);
    readv(ends[0], in, 2);
    int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN | EPOLLET, {.u64 = 5}}, got[4];
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    epoll_wait(epoll, got, 4, 0);
    write(ends[1], "x", 1);
    epoll_wait(epoll, got, 4, 0);
    char space[CMSG_SPACE(sizeof(int))];
    memset(space, 0, sizeof space);
    struct msghdr message = {.msg_iov = out, .msg_iovlen = 2, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &ends[0], sizeof(int));
    sendmsg(pair[0], &message, 0);
    message.msg_iov = in;
    message.msg_controllen = sizeof space;
    recvmsg(pair[1], &message, 0);
    (void)second;
}
static void terminals(void) {
    // As the kernel has it; the C library's has more.
    struct { unsigned input, output, control, local; unsigned char rest[20]; } settings;
    struct winsize size = {24, 80, 0, 0};
    int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY), one = 1;
    syscall(SYS_ioctl, terminal, TCGETS, &settings);
    syscall(SYS_ioctl, -1, TCGETS, &settings);
    settings.control = 0x1009 | 3 << 16;
    syscall(SYS_ioctl, -1, TCSETS, &settings);
    memset(&settings, 0xff, sizeof settings);
    syscall(SYS_ioctl, -1, TCSETSW, &settings);
    memset(&settings, 0, sizeof settings);
    syscall(SYS_ioctl, -1, TCSETSF, &settings);
    syscall(SYS_ioctl, terminal, TIOCSWINSZ, &size);
    syscall(SYS_ioctl, terminal, TIOCGWINSZ, &size);
    syscall(SYS_ioctl, -1, TIOCSWINSZ, &size);
    syscall(SYS_ioctl, -1, FIONBIO, &one);
    syscall(SYS_ioctl, -1, FIONBIO, 1L);
    close(terminal);
}
static void sockets(void) {
    struct sockaddr_un name = {AF_UNIX, ""}, peer;
    memcpy(name.sun_path, "\0tamis-structures", 17);
    socklen_t len = offsetof(struct sockaddr_un, sun_path) + 17, had = sizeof peer;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), value = 1;
    accept(listener, (struct sockaddr *)&peer, &had);
    bind(listener, (struct sockaddr *)&name, len);
    listen(listener, 1);
    connect(client, (struct sockaddr *)&name, len);
    accept(listener, (struct sockaddr *)&peer, &had);
    had = sizeof peer;
    getpeername(client, (struct sockaddr *)&peer, &had);
    setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value);
    had = sizeof value;
    getsockopt(client, SOL_SOCKET, SO_ERROR, &value, &had);
}
static void children(void) {
    int status;
    siginfo_t info;
    if (fork() == 0) _exit(3);
    syscall(SYS_wait4, -1, &status, 0, 0L);
    if (fork() == 0) raise(SIGKILL);
    waitid(P_ALL, 0, &info, WEXITED);
    syscall(SYS_wait4, -1, &status, WNOHANG, 0L);
}
int main(void) {
    files();
    times();
    limits();
    signals();
    descriptors();
    terminals();
    sockets();
    children();
    return 0;
}
"#;

/// Lines without the parts that differ between runs, which are the numbers of processes and durations. Of children only their
/// ends: they and their parent go on in any order.
fn comparable(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a trace");
    let lines = text
        .lines()
        // The calls of the C library before `main`.
        .skip_while(|line| !(line.contains("stat(") && line.contains("\"/dev/null\"")))
        .map(|line| {
            line.trim_start_matches(|c: char| c.is_ascii_digit())
                .trim_start()
        });
    let mut lines: Vec<String> = lines.map(without_numbers).collect();
    let start = lines.iter().position(|line| line.starts_with("clone("));
    let mut ends: Vec<String> = lines
        .split_off(start.expect("children"))
        .iter()
        .filter_map(|line| {
            line.find("[{WIF")
                .or(line.find("{si_signo"))
                .map(|at| line[at..].to_owned())
        })
        .collect();
    ends.sort_unstable();
    // strace shows the mask that is restored, which is on the stack.
    lines.retain(|line| !line.starts_with("rt_sigreturn("));
    lines.extend(ends);
    lines
}

fn without_numbers(line: &str) -> String {
    let has_pid = [
        "clone(", "wait4(", "waitid(", "kill(", "tgkill(", "getpid(", "gettid(", "---", "<...",
    ];
    // Numbers that terminals share with sound cards, whose names come first.
    for name in ["START", "STOP", "CONTINUE"] {
        if let Some((before, rest)) = line.split_once(&format!("SNDCTL_TMR_{name} or ")) {
            return format!("{before}{rest}");
        }
    }
    // Newer releases of strace show the data of `epoll_ctl` as one number.
    if let Some((before, rest)) = line.split_once("data={u32=")
        && let Some((data, rest)) = rest
            .split_once("u64=")
            .and_then(|(_, rest)| rest.split_once('}'))
        && let Ok(data) = data.parse::<u64>()
    {
        return format!("{before}data={data:#x}{rest}");
    }
    if !has_pid.iter().any(|start| line.starts_with(start)) {
        return line.to_owned();
    }
    let mut text = String::new();
    let words = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    for word in words {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_long = digits.len() > 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        text += &if is_long {
            word.replacen(digits, "N", 1)
        } else {
            word.to_owned()
        };
    }
    // Processor time.
    for time in ["si_utime=", "si_stime="] {
        if let Some((before, rest)) = text.split_once(time) {
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            text = format!("{before}{time}T{}", &rest[end..]);
        }
    }
    text
}

#[test]
fn structures_are_those_of_strace() {
    unless_traceable();
    skip::unless_runs(
        Need::Peers,
        "strace",
        &["-o", "/dev/null", "setarch", "-R", "true"],
    );
    let at = toolchains::C.folder(Path::new(env!("CARGO_TARGET_TMPDIR")), "trace-structures");
    let program = toolchains::C.build(&at, PROGRAM);
    let traces = [("strace", "strace -f"), ("tamis", "$TAMIS trace")].map(|(name, by)| {
        // Names of one length: they are in the environment, and so move the stack.
        let folder = folder(&format!("structures-{name:_<6}"));
        let line = format!("exec setarch -R {by} -o trace $PROGRAM");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&folder).env_clear();
        shell
            .env("PATH", "/usr/bin:/bin")
            .env("TAMIS", TAMIS)
            .env("PROGRAM", &program);
        let output = child::output(&mut shell).expect("it starts");
        assert!(output.status.success(), "{output:?}");
        comparable(&folder.join("trace"))
    });
    let [theirs, ours] = traces;
    assert!(theirs.len() > 70, "{theirs:#?}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

/// The output of programs in the kernel for these calls: structures of constant length.
#[test]
fn structures_of_constant_length_are_seen_in_the_kernel() {
    unless_tracepoints();
    let at = toolchains::C.folder(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        "trace-structures-kernel",
    );
    let program = toolchains::C.build(&at, PROGRAM);
    let program = program.to_str().expect("a path");
    let output = trace(&["--backend", "ebpf"], &[program]);
    let lines = lines(&output);
    for part in [
        "stat(\"/dev/null\", {st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}) ",
        "nanosleep({tv_sec=0, tv_nsec=1000}, ",
        "statx(AT_FDCWD, \"/\", AT_STATX_SYNC_AS_STAT, STATX_BASIC_STATS, {stx_mask=",
        "clock_getres(CLOCK_REALTIME, {tv_sec=0, tv_nsec=",
        "rt_sigaction(SIGUSR1, {sa_handler=",
        "getrlimit(RLIMIT_STACK, {rlim_cur=",
        "prlimit64(0, RLIMIT_CORE, NULL, {rlim_cur=",
        "TCSETSF, {c_iflag=, c_oflag=NL0|CR0|TAB0|BS0|VT0|FF0|, c_cflag=B0|CS5|, c_lflag=, ...}) = -1",
        "TIOCSWINSZ, {ws_row=24, ws_col=80, ws_xpixel=0, ws_ypixel=0}) = 0",
        "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) ",
        "--- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=",
    ] {
        assert!(
            lines.iter().any(|line| line.contains(part)),
            "{part}: {lines:#?}"
        );
    }
}
