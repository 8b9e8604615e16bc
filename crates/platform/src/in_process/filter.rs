//! The filters of a guest whose calls are caught in its own process.
//!
//! There are two: the platform's own, and the guest's with `trap` in place of `notify`. The kernel takes the stricter
//! action, so calls that the guest's filter denies stay denied. Calls from the handler's only `syscall` pass if the
//! guest's filter returns `notify`: the supervisor has decided them. A guest that jumps there makes such calls without
//! the supervisor.

use tamis_abi::{Action, ActionKind, Arch};
use tamis_bpf::{AluOp, Op, Operand, Program, Test};
use tamis_kernel::NATIVE_ENDIAN;

use crate::error::Unsupported;
use crate::offsets::{ARCH, NR, branch_by_ip, high, low};
use crate::rewrite::Rewrite;

/// The data of our own `trap`.
pub(crate) const OURS: u16 = 0x7a76;

/// The argument that lets a call block `SIGSYS`, if it isn't null.
pub(crate) const MASKS: [(i64, u32); 7] = [
    (libc::SYS_rt_sigaction, 1),
    (libc::SYS_rt_sigprocmask, 1),
    (libc::SYS_rt_sigsuspend, 0),
    (libc::SYS_ppoll, 3),
    (libc::SYS_pselect6, 5),
    (libc::SYS_epoll_pwait, 4),
    (SYS_EPOLL_PWAIT2, 4),
];
const SYS_EPOLL_PWAIT2: i64 = 441;

/// The argument that lets a call set a signal stack that is too small for the handler.
const STACK: (i64, u32) = (libc::SYS_sigaltstack, 0);

/// The filters, the oldest first, for a handler whose calls end at these addresses, in this process.
pub(crate) fn filters(
    guest: &Program,
    ips: [u64; 2],
    pid: i32,
) -> Result<[Program; 2], Unsupported> {
    Ok([own(ips)?, rewritten(guest, ips, pid)?])
}

/// Denies or traps calls that the guest must not make, or not without the handler: other processes and programs have no
/// handler, `SIGSYS` must not be blocked, and the handler needs room on the signal stack.
fn own(ips: [u64; 2]) -> Result<Program, Unsupported> {
    let denied = Action::errno(libc::ENOSYS as u16).ret();
    let allow = Action::ALLOW.ret();
    let mut ops = vec![
        Op::LoadData(ARCH),
        Op::branch(Test::Eq, Arch::X86_64.audit(), 1, 0),
        Op::RetImm(allow),
        Op::LoadData(NR),
    ];
    for nr in [
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_fork,
        libc::SYS_vfork,
        libc::SYS_clone3,
    ] {
        ops.push(Op::branch(Test::Eq, nr as u32, 0, 1));
        ops.push(Op::RetImm(denied));
    }
    ops.extend([
        Op::branch(Test::Eq, libc::SYS_clone as u32, 0, 4),
        Op::LoadData(low(0)),
        Op::branch(Test::Set, libc::CLONE_THREAD as u32, 1, 0),
        Op::RetImm(denied),
        Op::RetImm(allow),
        // The guest would outlive its supervisor.
        Op::branch(Test::Eq, libc::SYS_prctl as u32, 0, 4),
        Op::LoadData(low(0)),
        Op::branch(Test::Eq, libc::PR_SET_PDEATHSIG as u32, 0, 1),
        Op::RetImm(Action::errno(libc::EPERM as u16).ret()),
        Op::RetImm(allow),
    ]);
    for (nr, arg) in MASKS.into_iter().chain([STACK]) {
        let mut asked = match nr {
            // Reading the action of our signal is trapped, too.
            libc::SYS_rt_sigaction => vec![
                Op::LoadData(low(0)),
                Op::branch(Test::Eq, libc::SIGSYS as u32, 5, 0),
            ],
            _ => Vec::new(),
        };
        asked.extend([
            Op::LoadData(low(arg)),
            Op::branch(Test::Eq, 0, 0, 3),
            Op::LoadData(high(arg)),
            Op::branch(Test::Eq, 0, 0, 1),
            Op::RetImm(allow),
        ]);
        asked.extend(unless_at(ips));
        ops.push(Op::branch(Test::Eq, nr as u32, 0, asked.len() as u8));
        ops.extend(asked);
    }
    ops.push(Op::RetImm(allow));
    program(ops)
}

/// Allows a call from these addresses, and traps others.
fn unless_at(ips: [u64; 2]) -> Vec<Op> {
    let mut ops = branch_by_ip(&ips, 1);
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    ops.push(Op::RetImm(Action::new(ActionKind::Trap, OURS).ret()));
    ops
}

/// The guest's filter. Regardless of it, the handler may copy memory within its own process, and restore the signal
/// mask.
fn rewritten(guest: &Program, ips: [u64; 2], pid: i32) -> Result<Program, Unsupported> {
    let marker = Action::new(ActionKind::Trap, OURS);
    let trace = Action::errno(libc::ENOSYS as u16);
    let own = [
        Op::LoadData(ARCH),
        Op::branch(Test::Eq, Arch::X86_64.audit(), 0, 5),
        Op::LoadData(NR),
        Op::branch(Test::Eq, libc::SYS_rt_sigprocmask as u32, 2, 0),
        Op::LoadData(low(0)),
        Op::branch(Test::Eq, pid as u32, 0, 1),
        Op::RetImm(Action::ALLOW.ret()),
    ];
    let places = branch_by_ip(&ips, own.len());
    // Other numbers don't depend on the address, so that the kernel can cache its actions.
    let mut prefix = vec![
        Op::LoadData(NR),
        Op::branch(Test::Eq, libc::SYS_rt_sigprocmask as u32, 2, 0),
        Op::branch(Test::Eq, libc::SYS_process_vm_readv as u32, 1, 0),
        Op::branch(
            Test::Eq,
            libc::SYS_process_vm_writev as u32,
            0,
            (places.len() + own.len()) as u8,
        ),
    ];
    prefix.extend(places);
    prefix.extend(own);
    prefix.push(Op::Alu(AluOp::And, Operand::K(0)));
    let rewrite = Rewrite {
        notify: marker,
        trace,
        executes: None,
        kills_thread: None,
    };
    let marked = rewrite.apply(guest, &prefix)?;
    let end = marked.len();
    let ops = marked.ops().enumerate().map(|(here, op)| match op {
        Op::RetImm(ret) if ret == marker.ret() => Op::Jump((end - here - 1) as u32),
        other => other,
    });
    program(ops.chain(unless_at(ips)).collect())
}

fn program(ops: Vec<Op>) -> Result<Program, Unsupported> {
    let insns = ops.into_iter().map(Into::into).collect();
    match Program::new(insns, NATIVE_ENDIAN) {
        Ok(program) if program.is_installable() => Ok(program),
        _ => Err(Unsupported::new("a filter as long as this one")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::SeccompData;
    use tamis_bpf::{Stack, interp};

    #[test]
    fn the_handler_may_do_what_it_was_asked_for_and_no_more() {
        const IP: u64 = 0x5555_0000_1234;
        const IP_OF_OURS: u64 = 0x5555_0000_1240;
        let notify = ActionKind::Notify.ret();
        let ops = vec![
            Op::LoadData(NR),
            Op::branch(Test::Eq, libc::SYS_getppid as u32, 2, 0),
            Op::branch(Test::Eq, libc::SYS_getpid as u32, 0, 2),
            Op::RetImm(Action::errno(1).ret()),
            Op::RetImm(notify),
            Op::RetImm(Action::ALLOW.ret()),
        ];
        let guest = program(ops).unwrap();
        let stack = Stack::new(filters(&guest, [IP, IP_OF_OURS], 42).unwrap().to_vec()).unwrap();
        let kind = |nr: i64, ip: u64, args: [u64; 6]| {
            let call = SeccompData {
                nr: nr as u32,
                arch: Arch::X86_64.audit(),
                ip,
                args,
            };
            Action::from_ret(stack.run(&call).ret).kind
        };
        let none = [0; 6];
        assert_eq!(kind(libc::SYS_getppid, 7, none), ActionKind::Trap);
        assert_eq!(kind(libc::SYS_getppid, IP, none), ActionKind::Allow);
        for ip in [7, IP] {
            assert_eq!(kind(libc::SYS_getpid, ip, none), ActionKind::Errno);
            assert_eq!(kind(libc::SYS_execve, ip, none), ActionKind::Errno);
            assert_eq!(kind(libc::SYS_read, ip, none), ActionKind::Allow);
        }
        for (nr, arg) in MASKS {
            assert_eq!(kind(nr, 7, none), ActionKind::Allow);
            let mut args = none;
            args[arg as usize] = 1 << 32;
            assert_eq!(kind(nr, 7, args), ActionKind::Trap);
            assert_eq!(kind(nr, IP, args), ActionKind::Allow);
        }
        let cacheable = interp::run(
            &rewritten(&guest, [IP, IP_OF_OURS], 42).unwrap(),
            &SeccompData::default(),
        );
        assert_eq!(cacheable.ret, Action::ALLOW.ret());
        assert!(stack.is_cacheable(Arch::X86_64.audit(), libc::SYS_read as u32));
    }
}
