//! The filter of a guest with a stub: the guest's own, after instructions that allow the stub's calls.
//!
//! The stub's own calls are identified by their instructions, which make none of the guest's calls. They wait and wake,
//! set signal masks, return from their handler, check for memory, close descriptors and catch calls of a new thread.
//! None of them opens, sends or executes anything, since a guest can jump to those instructions, too.

use tamis_abi::{Action, ActionKind, Arch, SeccompData};
use tamis_bpf::{AluOp, Op, Operand, Program, Test};

use crate::error::Unsupported;
use crate::offsets::{ARCH, NR, branch_by_ip, low};
use crate::rewrite::Rewrite;
use crate::sys::stub;

/// The filter for calls of the stub that return to these addresses.
pub(super) fn filter(guest: &Program, ips: [u64; 3]) -> Result<Program, Unsupported> {
    let own = own_calls();
    let places = branch_by_ip(&ips, own.len());
    let always = for_all();
    let leaving = leaving_calls();
    let rewrite = |executes: Option<Action>| Rewrite {
        notify: NOTIFY,
        trace: Action::errno(libc::ENOSYS as u16),
        executes,
        kills_thread: None,
    };
    // The guest's actions, with a notification before an allowed call is made.
    let told = rewrite(Some(NOTIFY)).apply(guest, &[AS_EXPECTED])?;
    let mut prefix = vec![
        Op::LoadData(ARCH),
        Op::branch(Test::Eq, Arch::X86_64.audit(), 1, 0),
        // One more instruction, behind the others, skips the notification.
        Op::Jump((always.len() + places.len() + own.len() + leaving.len() + 1) as u32),
    ];
    prefix.extend(always);
    prefix.extend(places);
    prefix.extend(own);
    prefix.extend(leaving);
    prefix.push(Op::Jump(told.len() as u32));
    prefix.extend(told.ops());
    prefix.push(AS_EXPECTED);
    rewrite(None).apply(guest, &prefix)
}

const NOTIFY: Action = Action::new(ActionKind::Notify, 0);
/// Resets the registers to the values that the guest's filter expects.
const AS_EXPECTED: Op = Op::Alu(AluOp::And, Operand::K(0));

/// The registering call goes to the supervisor from any address.
fn for_all() -> Vec<Op> {
    vec![
        Op::LoadData(NR),
        Op::branch(Test::Eq, stub::HELLO, 0, 1),
        Op::RetImm(NOTIFY.ret()),
    ]
}

/// Calls after which a task might outlive its supervisor, unless it is traced: those that create processes, execute
/// programs, or change its credentials, upon which the kernel clears its parent-death signal. The calls of other
/// interfaces are included.
const LEAVING: [i64; 15] = [
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_capset,
    libc::SYS_setns,
    libc::SYS_unshare,
];

/// Whether a call might be one of those.
pub(super) fn may_leave(call: &SeccompData) -> bool {
    let nr = i64::from(call.nr);
    let flag = |flag: i32| call.args[0] & flag as u64 != 0;
    call.arch != Arch::X86_64.audit()
        || call.nr & X32 != 0
        || LEAVING.contains(&nr)
        || nr == libc::SYS_clone && !flag(libc::CLONE_THREAD)
        || nr == libc::SYS_prctl && call.args[0] as i32 == libc::PR_SET_PDEATHSIG
}

const X32: u32 = 0x4000_0000;

/// Jumps to the second instruction behind these for such calls, and to the first for others.
fn leaving_calls() -> Vec<Op> {
    let mut ops = vec![
        Op::LoadData(NR),
        Op::branch(Test::Set, X32, LEAVING.len() as u8 + 7, 0),
    ];
    for (index, nr) in LEAVING.into_iter().enumerate() {
        let left = LEAVING.len() - 1 - index;
        ops.push(Op::branch(Test::Eq, nr as u32, left as u8 + 7, 0));
    }
    ops.extend([
        Op::branch(Test::Eq, libc::SYS_clone as u32, 0, 2),
        Op::LoadData(low(0)),
        Op::branch(Test::Set, libc::CLONE_THREAD as u32, 3, 4),
        Op::branch(Test::Eq, libc::SYS_prctl as u32, 0, 2),
        Op::LoadData(low(0)),
        Op::branch(Test::Eq, libc::PR_SET_PDEATHSIG as u32, 1, 0),
    ]);
    ops
}

/// Allows the stub's own calls; the guest's filter decides about all others.
fn own_calls() -> Vec<Op> {
    const POPULATE_READ: u32 = 22;
    const POPULATE_WRITE: u32 = 23;
    const DISPATCH: u32 = 59;
    let allow = Op::RetImm(Action::ALLOW.ret());
    // A call, and an argument with its permitted values.
    type Condition<'a> = Option<(u32, &'a [u32])>;
    const FORGET: u32 = libc::MADV_DONTNEED as u32;
    let calls: [(i64, Condition<'_>); 11] = [
        (libc::SYS_sched_yield, None),
        (libc::SYS_munmap, None),
        (libc::SYS_rt_sigaction, Some((0, &[libc::SIGSYS as u32]))),
        (libc::SYS_rt_sigprocmask, None),
        (libc::SYS_rt_sigreturn, None),
        (libc::SYS_close, None),
        (libc::SYS_futex, Some((1, &[0, 1]))),
        (
            libc::SYS_madvise,
            Some((2, &[POPULATE_READ, POPULATE_WRITE, FORGET])),
        ),
        (libc::SYS_fcntl, Some((1, &[libc::F_GETFD as u32]))),
        (libc::SYS_close_range, None),
        (libc::SYS_prctl, Some((0, &[DISPATCH]))),
    ];
    let mut ops = Vec::new();
    for (nr, condition) in calls {
        let mut block = Vec::new();
        if let Some((arg, values)) = condition {
            block.push(Op::LoadData(low(arg)));
            for value in values {
                block.extend([Op::branch(Test::Eq, *value, 0, 1), allow]);
            }
        } else {
            block.push(allow);
        }
        ops.push(Op::LoadData(NR));
        ops.push(Op::branch(Test::Eq, nr as u32, 0, block.len() as u8));
        ops.extend(block);
    }
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_bpf::interp;
    use tamis_kernel::NATIVE_ENDIAN;

    const IPS: [u64; 3] = [0x5555_0000_1234, 0x7fff_0000_2234, 0x7fff_0000_2334];
    const ELSEWHERE: u64 = 0x5555_0000_1235;

    /// The action of the stub's filter for a call, for a guest's filter that always returns `guest`.
    fn answer(guest: Action, arch: Arch, nr: i64, ip: u64, args: [u64; 6]) -> Action {
        let guest = Program::new(vec![Op::RetImm(guest.ret()).into()], NATIVE_ENDIAN);
        let filter = filter(&guest.expect("a program"), IPS).expect("it fits");
        let call = SeccompData {
            nr: nr as u32,
            arch: arch.audit(),
            ip,
            args,
        };
        Action::from_ret(interp::run(&filter, &call).ret)
    }

    #[test]
    fn the_stub_may_do_what_it_needs_and_no_more() {
        let denied = Action::errno(1);
        let kind = |nr: i64, ip: u64, args: [u64; 6]| answer(denied, Arch::X86_64, nr, ip, args);
        let needed = [
            (libc::SYS_rt_sigprocmask, [0; 6]),
            (libc::SYS_rt_sigreturn, [0; 6]),
            (libc::SYS_futex, [0, 1, 0, 0, 0, 0]),
            (libc::SYS_madvise, [0, 0, 22, 0, 0, 0]),
            (libc::SYS_prctl, [59, 0, 0, 0, 0, 0]),
        ];
        let others = [
            (libc::SYS_futex, [0, 3, 0, 0, 0, 0]),
            (libc::SYS_madvise, [0, 0, 9, 0, 0, 0]),
            (libc::SYS_prctl, [38, 0, 0, 0, 0, 0]),
            (libc::SYS_rt_sigaction, [11, 0, 0, 0, 0, 0]),
            (libc::SYS_execve, [0; 6]),
            (libc::SYS_openat, [0; 6]),
        ];
        for ip in IPS {
            for (nr, args) in needed {
                assert_eq!(kind(nr, ip, args), Action::ALLOW, "{nr}");
                assert_eq!(kind(nr, ELSEWHERE, args), denied, "{nr}");
                let answer = answer(denied, Arch::X86, nr, ip, args);
                assert_eq!(answer, denied, "{nr}");
            }
            for (nr, args) in others {
                assert_eq!(kind(nr, ip, args), denied, "{nr}");
            }
        }
    }

    #[test]
    fn the_supervisor_is_told_of_all_calls_by_which_a_task_may_leave_it() {
        let args = [[0; 6], [1, 0, 0, 0, 0, 0], [1 << 16, 0, 0, 0, 0, 0]];
        let numbers = (0..512).chain([X32.into(), (X32 | 59).into()]);
        for (nr, args) in numbers.flat_map(|nr| args.map(|args| (nr, args))) {
            for arch in [Arch::X86_64, Arch::X86] {
                let call = SeccompData {
                    nr: nr as u32,
                    arch: arch.audit(),
                    ip: ELSEWHERE,
                    args,
                };
                let answer = |guest: Action| answer(guest, arch, nr, ELSEWHERE, args);
                let expected = match may_leave(&call) {
                    true => NOTIFY,
                    false => Action::ALLOW,
                };
                assert_eq!(answer(Action::ALLOW), expected, "{call:?}");
                for guest in [NOTIFY, Action::errno(5), Action::KILL_PROCESS] {
                    assert_eq!(answer(guest), guest, "{call:?}");
                }
            }
        }
        assert!(LEAVING.contains(&libc::SYS_execve));
    }
}
