//! The supervisor of the tests, and the filters of its guests.
//!
//! It does nothing that a signal handler may not do.

use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tamis_abi::{Action, ActionKind, Arch, SeccompData};
use tamis_bpf::{Op, Program, Test};
use tamis_kernel::{Ended, Errno, NATIVE_ENDIAN};
use tamis_platform::{Answer, Supervisor, Task, TaskId};

/// The number of `getpriority` in the 32-bit interface.
const GETPRIORITY_I386: u32 = 96;
/// The argument by which a guest requests the rollback of its patched sites.
const UNPATCH: u64 = 0x0bad_c0de;
/// The numbers of the 32-bit calls that install filters.
const SECCOMP_I386: u32 = 354;
const PRCTL_I386: u32 = 172;
/// An argument that the kernel rejects, and the supervisor's result for calls with it.
const REFUSED: u64 = 0x77;
const INSTALLED: i64 = 77;
/// The argument of `time` that the supervisor answers.
const TIME: u64 = 0x71e;
/// The longest time for which a guest has the supervisor wait.
const LONGEST_WAIT_MS: u64 = 10_000;
const X32: u32 = 0x4000_0000;
/// The number of `time`, a call of the vsyscall page.
#[cfg(target_arch = "x86_64")]
const VSYSCALL_TIME: Option<i64> = Some(libc::SYS_time);
#[cfg(not(target_arch = "x86_64"))]
const VSYSCALL_TIME: Option<i64> = None;
/// The guests' `fork` and `vfork`, which are calls of `clone` where these don't exist.
#[cfg(target_arch = "x86_64")]
const FORKS: [(i64, Option<(u32, u64)>); 2] = [(libc::SYS_fork, None), (libc::SYS_vfork, None)];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: [(i64, Option<(u32, u64)>); 2] = {
    const BORROWS: u64 = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    [
        (libc::SYS_clone, Some((0, libc::SIGUSR2 as u64))),
        (libc::SYS_clone, Some((0, BORROWS | libc::SIGUSR2 as u64))),
    ]
};

/// The supervisor that the guests in C expect, and its observations.
#[derive(Default)]
pub(crate) struct Host {
    /// The number of calls that reached the supervisor.
    pub(crate) asked: AtomicU64,
    /// The tasks that have started and ended; only used by platforms that see tasks.
    pub(crate) started: AtomicU64,
    pub(crate) ended: AtomicU64,
    /// Set when a guest requests the rollback of its patched sites.
    pub(crate) unpatch: AtomicBool,
    /// The file of the descriptor that a guest gets.
    pub(crate) descriptor: Mutex<Option<File>>,
}

impl Supervisor for Host {
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let args = call.args;
        if call.arch == Arch::X86.audit() {
            return match call.nr {
                GETPRIORITY_I386 => {
                    let sum = args[0] + 3 * args[1] + 5 * args[2];
                    Answer::Return((sum & 0x3fff_ffff) as i64)
                }
                SECCOMP_I386 if args[0] == REFUSED => Answer::Return(INSTALLED),
                PRCTL_I386 if args[1] == REFUSED => Answer::Return(INSTALLED),
                _ => Answer::Forward,
            };
        }
        match i64::from(call.nr & !X32) {
            libc::SYS_getpriority => Answer::Return(sum(&args)),
            libc::SYS_getpgid => {
                if args[0] == UNPATCH {
                    self.unpatch.store(true, Ordering::Relaxed);
                }
                Answer::Return(args[0] as i64)
            }
            libc::SYS_personality => next_number(task, args[0], args[1]),
            libc::SYS_getsid => Answer::ForwardWith(SeccompData {
                nr: libc::SYS_getpid as u32,
                args: [0; 6],
                ..*call
            }),
            libc::SYS_inotify_init1 => {
                let file = self.descriptor.lock().ok().and_then(|mut file| file.take());
                file.map_or(Answer::Errno(libc::ENFILE as u16), |file| {
                    Answer::Descriptor(file.into())
                })
            }
            // Foreign programs make the call without an argument: then the register has anything.
            libc::SYS_getgid if args[0] < LONGEST_WAIT_MS => {
                let time = Duration::from_millis(args[0]);
                Answer::Later(time, Box::new(Answer::Return(99)))
            }
            libc::SYS_sysinfo => Answer::Kill,
            libc::SYS_seccomp if args[0] == REFUSED => Answer::Return(INSTALLED),
            libc::SYS_prctl if args[1] == REFUSED => Answer::Return(INSTALLED),
            nr if Some(nr) == VSYSCALL_TIME && args[0] == TIME => Answer::Return(99),
            _ => Answer::Forward,
        }
    }

    fn result(&self, _task: &mut dyn Task, call: &SeccompData, result: i64) -> i64 {
        match i64::from(call.nr) {
            libc::SYS_getppid => 4711,
            _ => result,
        }
    }

    fn started(&self, _task: TaskId, _parent: Option<TaskId>) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self, _task: TaskId, _how: Ended) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The same supervisor, except that it denies the installation of filters.
#[derive(Default)]
pub(crate) struct Denying(Host);

impl Supervisor for Denying {
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
        match i64::from(call.nr) {
            libc::SYS_seccomp | libc::SYS_prctl => Answer::Errno(libc::EPERM as u16),
            _ => self.0.call(task, call),
        }
    }
}

/// A filter that notifies the supervisor of all calls that install filters.
pub(crate) fn asking_about_filters() -> Program {
    let notify = Action::new(ActionKind::Notify, 0);
    let calls = [libc::SYS_getpriority, libc::SYS_seccomp, libc::SYS_prctl];
    of_rules(&calls.map(|nr| (nr, None, notify)))
}

fn sum(args: &[u64; 6]) -> i64 {
    let terms = args.iter().zip([1_u64, 3, 5, 7, 9, 11]);
    let sum = terms.fold(0_u64, |sum, (arg, factor)| {
        sum.wrapping_add(arg.wrapping_mul(factor))
    });
    (sum & 0x3fff_ffff_ffff_ffff) as i64
}

/// Reads a number at `from` and writes the next one at `to`.
fn next_number(task: &mut dyn Task, from: u64, to: u64) -> Answer {
    let space = task.space();
    let mut number = [0; 8];
    let answer = |result: Result<usize, Errno>| match result {
        Ok(len_bytes) => Answer::Return(len_bytes as i64),
        Err(errno) => Answer::Errno(errno.0 as u16),
    };
    match space.read(from, &mut number) {
        Ok(8) => {}
        partial => return answer(partial),
    }
    let next = u64::from_ne_bytes(number).wrapping_add(1);
    answer(space.write(to, &next.to_ne_bytes()))
}

/// The calls that reach the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Those that it answers itself, and `getppid`.
    Some,
    /// All.
    All,
}

/// The filter of the guests in C.
pub(crate) fn filter(asked: Asked) -> Program {
    let notify = ActionKind::Notify.ret();
    let notified = [
        libc::SYS_getpriority,
        libc::SYS_getpgid,
        libc::SYS_personality,
        libc::SYS_getppid,
        libc::SYS_getsid,
        libc::SYS_inotify_init1,
        libc::SYS_sysinfo,
        libc::SYS_getgid,
        libc::SYS_gettimeofday,
        libc::SYS_getpriority | i64::from(X32),
    ];
    let notified = notified.into_iter().chain(VSYSCALL_TIME);
    let others = [
        (libc::SYS_acct, Action::errno(libc::ENOTTY as u16).ret()),
        (libc::SYS_swapoff, Action::KILL_PROCESS.ret()),
        (
            libc::SYS_sethostname,
            Action::new(ActionKind::Trace, 5).ret(),
        ),
        (
            libc::SYS_setdomainname,
            Action::new(ActionKind::KillThread, 0).ret(),
        ),
    ];
    let rest = match asked {
        Asked::Some => Action::ALLOW.ret(),
        Asked::All => notify,
    };
    let is = |nr: i64, ret: u32| [Op::branch(Test::Eq, nr as u32, 0, 1), Op::RetImm(ret)];
    let mut ops = vec![
        Op::LoadData(4),
        Op::branch(Test::Eq, Arch::X86.audit(), 0, 4),
        Op::LoadData(0),
    ];
    ops.extend(is(i64::from(GETPRIORITY_I386), notify));
    ops.push(Op::RetImm(rest));
    ops.push(Op::LoadData(0));
    ops.extend(notified.flat_map(|nr| is(nr, notify)));
    ops.extend(others.iter().flat_map(|(nr, ret)| is(*nr, *ret)));
    ops.push(Op::RetImm(rest));
    program(ops)
}

/// A filter that returns an error for calls of the 32-bit interface, except for `exit_group`.
pub(crate) fn without_i386() -> Program {
    const EXIT_GROUP_I386: u32 = 252;
    let denied = Action::errno(libc::EXDEV as u16).ret();
    let mut ops = vec![
        Op::LoadData(4),
        Op::branch(Test::Eq, Arch::X86.audit(), 0, 3),
        Op::LoadData(0),
        Op::branch(Test::Eq, EXIT_GROUP_I386, 1, 0),
        Op::RetImm(denied),
        Op::LoadData(0),
    ];
    for (nr, action) in [
        (libc::SYS_getpriority, Action::new(ActionKind::Notify, 0)),
        (libc::SYS_acct, Action::errno(libc::ENOTTY as u16)),
    ] {
        ops.push(Op::branch(Test::Eq, nr as u32, 0, 1));
        ops.push(Op::RetImm(action.ret()));
    }
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    program(ops)
}

/// A call, optionally with the value of one of its arguments, and the filter's action.
type Rule = (i64, Option<(u32, u64)>, Action);

/// Filters that differ in actions and in conditions on arguments.
pub(crate) fn filters_to_compare() -> Vec<Program> {
    let of = |kind| Action::new(kind, 0);
    let notify = of(ActionKind::Notify);
    let errors = [
        libc::SYS_getpriority,
        libc::SYS_lseek,
        libc::SYS_umask,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_sigaltstack,
        libc::SYS_close,
        libc::SYS_futex,
    ];
    let errors = errors.map(|nr| (nr, None, Action::errno(nr as u16 + 1)));
    let asked = [
        (libc::SYS_getpriority, None, notify),
        (libc::SYS_getpgid, Some((0, 7)), notify),
        (libc::SYS_acct, None, Action::errno(libc::ENOTTY as u16)),
        (libc::SYS_sethostname, None, of(ActionKind::Trace)),
        (libc::SYS_dup, None, of(ActionKind::Log)),
        (libc::SYS_swapoff, None, of(ActionKind::KillProcess)),
    ];
    let conditions = [
        (libc::SYS_lseek, Some((0, u64::MAX)), Action::errno(100)),
        (libc::SYS_lseek, Some((1, 1)), Action::errno(101)),
        (libc::SYS_getpgid, Some((0, 1 << 32 | 7)), notify),
        (libc::SYS_mprotect, Some((0, 1)), Action::errno(102)),
        (libc::SYS_rt_sigaction, Some((0, 65)), Action::errno(103)),
        (100_000, Some((5, 6)), Action::errno(104)),
        (libc::SYS_setdomainname, None, of(ActionKind::KillThread)),
    ];
    let traps = [
        (libc::SYS_umask, Some((0, 0o22)), of(ActionKind::Trap)),
        (libc::SYS_getpriority, None, notify),
    ];
    // Calls that platforms make for their own work.
    let own = [
        libc::SYS_close,
        libc::SYS_futex,
        libc::SYS_munmap,
        libc::SYS_madvise,
        libc::SYS_sched_yield,
        libc::SYS_close_range,
    ];
    let mut own = own
        .map(|nr| (nr, None, Action::errno(nr as u16 + 1)))
        .to_vec();
    own.push((libc::SYS_getpriority, None, notify));
    let masks = [
        (libc::SYS_rt_sigaction, None, notify),
        (libc::SYS_rt_sigprocmask, None, notify),
        (libc::SYS_lseek, Some((1, 5)), notify),
    ];
    let lists: [&[Rule]; 6] = [&errors, &asked, &conditions, &traps, &own, &masks];
    lists.map(of_rules).into()
}

/// A filter for calls that install filters, selected by arguments that the kernel rejects.
pub(crate) fn about_filters() -> Program {
    let notify = Action::new(ActionKind::Notify, 0);
    let mut rules = vec![(libc::SYS_getpriority, None, notify)];
    for seccomp in [libc::SYS_seccomp, SECCOMP_I386.into()] {
        rules.push((seccomp, Some((0, REFUSED)), notify));
    }
    for prctl in [libc::SYS_prctl, PRCTL_I386.into()] {
        rules.push((prctl, Some((1, REFUSED)), notify));
    }
    rules.extend(VSYSCALL_TIME.map(|time| (time, None, notify)));
    of_rules(&rules)
}

/// A filter that kills the process when a signal handler returns.
pub(crate) fn without_sigreturn() -> Program {
    let kill = Action::new(ActionKind::KillProcess, 0);
    of_rules(&[(libc::SYS_rt_sigreturn, None, kill)])
}

/// A filter that returns EINTR for `fork`, which the kernel never does.
pub(crate) fn interrupted() -> Program {
    let [fork, _] = FORKS;
    of_rules(&[
        (
            libc::SYS_getpriority,
            None,
            Action::new(ActionKind::Notify, 0),
        ),
        (fork.0, fork.1, Action::errno(libc::EINTR as u16)),
    ])
}

/// A filter for calls that create and end tasks.
pub(crate) fn about_tasks() -> Program {
    let of = |kind| Action::new(kind, 0);
    let [fork, vfork] = FORKS;
    let not_a_thread = (libc::CLONE_VM | libc::SIGCHLD) as u64;
    let borrows_and_signals = (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGUSR1) as u64;
    of_rules(&[
        (libc::SYS_getpriority, None, of(ActionKind::Notify)),
        (
            libc::SYS_clone,
            Some((0, not_a_thread)),
            of(ActionKind::KillProcess),
        ),
        (
            libc::SYS_clone,
            Some((0, borrows_and_signals)),
            Action::errno(libc::ENOTTY as u16),
        ),
        (fork.0, fork.1, of(ActionKind::KillThread)),
        (vfork.0, vfork.1, of(ActionKind::Trap)),
        (libc::SYS_exit, Some((0, 31)), of(ActionKind::KillProcess)),
        (libc::SYS_exit, Some((0, 32)), of(ActionKind::Trap)),
        (libc::SYS_acct, None, of(ActionKind::Trap)),
    ])
}

fn of_rules(rules: &[Rule]) -> Program {
    let mut ops = Vec::new();
    for (nr, condition, action) in rules {
        let mut tests = vec![(0, *nr as u32)];
        if let Some((arg, value)) = condition {
            tests.push((16 + 8 * arg, *value as u32));
            tests.push((20 + 8 * arg, (*value >> 32) as u32));
        }
        for (index, (at, value)) in tests.iter().enumerate() {
            let rest = 2 * (tests.len() - 1 - index) + 1;
            ops.push(Op::LoadData(*at));
            ops.push(Op::branch(Test::Eq, *value, 0, rest as u8));
        }
        ops.push(Op::RetImm(action.ret()));
    }
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    program(ops)
}

fn program(ops: Vec<Op>) -> Program {
    let insns = ops.into_iter().map(Into::into).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("the program is valid")
}
