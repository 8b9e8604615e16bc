//! The filter of a guest in a virtual machine: the guest's own, after instructions that allow the monitor's calls.
//!
//! The monitor's calls are identified by their instructions. They run the machine, populate and forget memory, handle
//! signals, descriptors and their limit, and end a thread. None of them opens, sends or executes anything, since a
//! guest that has overwritten its monitor can make them, too. Calls of the 32-bit interface are never the monitor's.
//! Calls from an address of the kernel are the tracer's, which brings the monitor into the memory of a program: no task
//! can make them by itself.

use tamis_abi::{Action, ActionKind, Arch};
use tamis_bpf::{AluOp, Op, Operand, Program, Test};

use super::arguments;
use crate::error::Unsupported;
use crate::offsets::{ARCH, IP_HIGH, IP_LOW, NR, branch_by_ip, low, reads_ip};
use crate::patched::inject::TRACERS_IP;
use crate::rewrite::Rewrite;
use crate::sys::kvm::machine::{SHARED_ACCESS, SHARED_FLAGS};
use crate::sys::kvm::{KILL_MARK, NOFILE, REFUSED, REFUSED_OPERATIONS, WOULD_BE_MADE};

/// The filter for calls of the monitor that return to these addresses, and for calls that are tested and never made.
pub(super) fn filter(guest: &Program, ips: [u64; 4], asking: u64) -> Result<Program, Unsupported> {
    if reads_ip(guest) {
        return Err(Unsupported::new(
            "a filter that looks at where a call is made",
        ));
    }
    if arguments::are_looked_at(guest) {
        return Err(Unsupported::new(
            "a filter with conditions on arguments of rt_sigaction, sigaltstack, clone, brk or close_range that aren't the guest's",
        ));
    }
    refuse_marks(guest)?;
    let own = own_calls();
    let places = branch_by_ip(&ips, own.len());
    let not_made = Rewrite {
        notify: NOT_MADE,
        trace: NO_CALL,
        executes: Some(NOT_MADE),
        kills_thread: Some(KILLS_THREAD),
    };
    let not_made = not_made.apply(guest, &[Op::Alu(AluOp::And, Operand::K(0))])?;
    let refused = refused_calls(not_made.len());
    let to_not_made = places.len() + own.len() + refused.len();
    let asked = [
        Op::LoadData(IP_HIGH),
        Op::branch(Test::Eq, (asking >> 32) as u32, 0, 3),
        Op::LoadData(IP_LOW),
        Op::branch(Test::Eq, asking as u32, 0, 1),
        Op::Jump(to_not_made as u32),
    ];
    // The same instructions make calls of the 32-bit interface, with other numbers.
    let mut prefix = vec![
        Op::LoadData(ARCH),
        Op::branch(Test::Eq, Arch::X86_64.audit(), 1, 0),
        Op::Jump((TRACERS_INSNS + asked.len() + to_not_made + not_made.len()) as u32),
    ];
    prefix.extend([
        Op::LoadData(IP_HIGH),
        Op::branch(Test::Eq, (TRACERS_IP >> 32) as u32, 0, 3),
        Op::LoadData(IP_LOW),
        Op::branch(Test::Eq, TRACERS_IP as u32, 0, 1),
        Op::RetImm(Action::ALLOW.ret()),
    ]);
    prefix.extend(asked);
    prefix.extend(places);
    prefix.extend(own);
    prefix.extend(refused);
    prefix.extend(not_made.ops());
    // Resets A to the value that the guest's filter expects.
    prefix.push(Op::Alu(AluOp::And, Operand::K(0)));
    let rewrite = Rewrite {
        notify: Action::new(ActionKind::Notify, 0),
        trace: NO_CALL,
        executes: None,
        kills_thread: Some(KILLS_THREAD),
    };
    rewrite.apply(guest, &prefix)
}

/// Rejects filters that may return the monitor's own marks. The kernel gives the largest error for all data above it.
fn refuse_marks(guest: &Program) -> Result<(), Unsupported> {
    for op in guest.ops() {
        let what = match op {
            Op::RetA => "a filter that returns a value that it has computed",
            Op::RetImm(ret) => match Action::from_ret(ret) {
                KILLS_THREAD => "a filter with the action trap(0x7a78)",
                Action {
                    kind: ActionKind::Errno,
                    data: WOULD_BE_MADE..,
                } => "a filter with the action errno(4095)",
                _ => continue,
            },
            _ => continue,
        };
        return Err(Unsupported::new(what));
    }
    Ok(())
}

/// The action for calls that kill the thread by the guest's filter: the monitor ends the thread. KVM has a thread of
/// its own in the process, which would keep the process alive after its last thread, and a thread that the kernel ends
/// keeps its place.
const KILLS_THREAD: Action = Action::new(ActionKind::Trap, KILL_MARK);

/// The number of instructions about the tracer's calls.
const TRACERS_INSNS: usize = 5;

/// The action for tested calls that the guest's filter allows: the monitor recognises it.
const NOT_MADE: Action = Action::errno(WOULD_BE_MADE);

/// The kernel's answer to `trace` without a tracer.
const NO_CALL: Action = Action::errno(libc::ENOSYS as u16);

/// Denies calls that the monitor doesn't make. If it made them they would reach the instructions for tested calls; all
/// other calls skip those, whatever their length.
fn refused_calls(not_made_insns: usize) -> Vec<Op> {
    let mut ops = vec![Op::LoadData(NR)];
    let operations = 2 + REFUSED_OPERATIONS.len();
    for (index, nr) in REFUSED.into_iter().enumerate() {
        let left = REFUSED.len() - 1 - index + operations + 1;
        ops.push(Op::branch(Test::Eq, nr as u32, left as u8, 0));
    }
    ops.push(Op::branch(
        Test::Eq,
        libc::SYS_prctl as u32,
        0,
        operations as u8 - 1,
    ));
    ops.push(Op::LoadData(low(0)));
    for (index, operation) in REFUSED_OPERATIONS.into_iter().enumerate() {
        let left = REFUSED_OPERATIONS.len() - 1 - index + 1;
        ops.push(Op::branch(Test::Eq, operation, left as u8, 0));
    }
    ops.push(Op::Jump(not_made_insns as u32));
    ops
}

/// Allows the monitor's own calls; all others kill it.
fn own_calls() -> Vec<Op> {
    const KVM: u32 = 0xae00;
    const POPULATE: [u32; 2] = [22, 23];
    const DESCRIPTORS: [u32; 3] = [
        libc::F_DUPFD as u32,
        libc::F_DUPFD_CLOEXEC as u32,
        libc::F_GETFD as u32,
    ];
    const OWN_PROCESS: u32 = 0;
    let allow = Op::RetImm(Action::ALLOW.ret());
    let kill = Op::RetImm(Action::KILL_PROCESS.ret());
    let is_one_of = |arg: u32, values: &[u32]| {
        let mut ops = vec![Op::LoadData(low(arg))];
        for (index, value) in values.iter().enumerate() {
            let left = values.len() - index;
            ops.push(Op::branch(Test::Eq, *value, left as u8, 0));
        }
        ops.extend([kill, allow]);
        ops
    };
    let is = |arg: u32, value: u32| {
        [
            Op::LoadData(low(arg)),
            Op::branch(Test::Eq, value, 1, 0),
            kill,
        ]
    };
    let request = vec![
        Op::LoadData(low(1)),
        Op::Alu(AluOp::And, Operand::K(0xff00)),
        Op::branch(Test::Eq, KVM, 1, 0),
        kill,
        allow,
    ];
    let mut shared = is(2, SHARED_ACCESS as u32).to_vec();
    shared.extend(is(3, SHARED_FLAGS as u32));
    shared.push(allow);
    let mut files = is(0, libc::CLONE_FILES as u32).to_vec();
    files.push(allow);
    let mut limit = is(0, OWN_PROCESS).to_vec();
    limit.extend(is(1, NOFILE as u32));
    limit.push(allow);
    let mut copies = is(2, libc::O_CLOEXEC as u32).to_vec();
    copies.push(allow);
    let calls = [
        (libc::SYS_ioctl, request),
        (libc::SYS_madvise, is_one_of(2, &POPULATE)),
        (libc::SYS_munmap, vec![allow]),
        (libc::SYS_rt_sigprocmask, vec![allow]),
        (libc::SYS_rt_sigaction, vec![allow]),
        (libc::SYS_rt_sigreturn, vec![allow]),
        (libc::SYS_close, vec![allow]),
        (libc::SYS_exit, vec![allow]),
        (libc::SYS_fcntl, is_one_of(1, &DESCRIPTORS)),
        (libc::SYS_mmap, shared),
        (libc::SYS_unshare, files),
        (libc::SYS_dup3, copies),
        (libc::SYS_prlimit64, limit),
    ];
    let mut ops = vec![Op::LoadData(NR)];
    for (nr, block) in calls {
        ops.push(Op::branch(Test::Eq, nr as u32, 0, block.len() as u8));
        ops.extend(block);
    }
    ops.push(kill);
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::SeccompData;
    use tamis_bpf::interp;
    use tamis_kernel::NATIVE_ENDIAN;

    /// The address of tested calls.
    const ASKING: u64 = 0x7fff_0000_3234;

    fn guest(action: Action) -> Program {
        let insns = vec![Op::RetImm(action.ret()).into()];
        Program::new(insns, NATIVE_ENDIAN).expect("a program")
    }

    #[test]
    fn the_monitor_may_do_what_it_needs_and_no_more() {
        const IPS: [u64; 4] = [
            0x5555_0000_1234,
            0x5555_0000_2234,
            0x7fff_0000_1234,
            0x7fff_0000_2234,
        ];
        let filter = filter(&guest(Action::errno(1)), IPS, ASKING).unwrap();
        let answer = |arch: Arch, nr: i64, ip: u64, args: [u64; 6]| {
            let call = SeccompData {
                nr: nr as u32,
                arch: arch.audit(),
                ip,
                args,
            };
            Action::from_ret(interp::run(&filter, &call).ret).kind
        };
        let kind = |nr: i64, ip: u64, args: [u64; 6]| answer(Arch::X86_64, nr, ip, args);
        let mapped = [0, 0, SHARED_ACCESS, SHARED_FLAGS, 0, 0];
        let needed = [
            (libc::SYS_ioctl, [3, 0xae80, 0, 0, 0, 0]),
            (libc::SYS_madvise, [0, 0, 23, 0, 0, 0]),
            (libc::SYS_fcntl, [3, 0, 766, 0, 0, 0]),
            (libc::SYS_fcntl, [3, 1, 0, 0, 0, 0]),
            (libc::SYS_dup3, [3, 767, libc::O_CLOEXEC as u64, 0, 0, 0]),
            (libc::SYS_prlimit64, [0, NOFILE, 0, 0, 0, 0]),
            (libc::SYS_munmap, [0; 6]),
            (libc::SYS_mmap, mapped),
            (libc::SYS_rt_sigreturn, [0; 6]),
            (libc::SYS_exit, [0; 6]),
        ];
        let others = [
            (libc::SYS_ioctl, [3, 0x5401, 0, 0, 0, 0]),
            (libc::SYS_madvise, [0, 0, 4, 0, 0, 0]),
            (libc::SYS_mmap, [0, 0, 7, SHARED_FLAGS, 0, 0]),
            (libc::SYS_fcntl, [3, 2, 0, 0, 0, 0]),
            (libc::SYS_dup3, [3, 0, 0, 0, 0, 0]),
            (libc::SYS_prlimit64, [0, 9, 0, 0, 0, 0]),
            (libc::SYS_prlimit64, [1, NOFILE, 0, 0, 0, 0]),
            (libc::SYS_execve, [0; 6]),
            (libc::SYS_openat, [0; 6]),
        ];
        for ip in IPS {
            for (nr, args) in needed {
                assert_eq!(kind(nr, ip, args), ActionKind::Allow);
                assert_eq!(kind(nr, ip + 1, args), ActionKind::Errno);
            }
            for nr in 0..512 {
                assert_eq!(answer(Arch::X86, nr, ip, mapped), ActionKind::Errno);
            }
            for (nr, args) in others {
                assert_eq!(kind(nr, ip, args), ActionKind::KillProcess);
                assert_eq!(kind(nr, ip + 1, args), ActionKind::Errno);
            }
        }
    }

    #[test]
    fn only_the_tracer_has_its_address() {
        let denied = Action::errno(1);
        let filter = filter(&guest(denied), [1, 2, 3, 4], ASKING).expect("it fits");
        let answer = |arch: Arch, ip: u64| {
            let call = SeccompData {
                nr: libc::SYS_mmap as u32,
                arch: arch.audit(),
                ip,
                args: [0; 6],
            };
            Action::from_ret(interp::run(&filter, &call).ret)
        };
        const USER_END: u64 = 0x00ff_ffff_ffff_ffff;
        const { assert!(TRACERS_IP > USER_END) };
        assert_eq!(answer(Arch::X86_64, TRACERS_IP), Action::ALLOW);
        assert_eq!(answer(Arch::X86, TRACERS_IP), denied);
        for ip in [TRACERS_IP & USER_END, TRACERS_IP + 1, TRACERS_IP ^ 1 << 32] {
            assert_eq!(answer(Arch::X86_64, ip), denied);
        }
    }

    #[test]
    fn calls_that_are_not_made_are_answered_as_strictly() {
        let answer = |action: Action, nr: i64, operation: u64, ip: u64| {
            let filter = filter(&guest(action), [1, 2, 3, 4], ASKING).expect("it fits");
            let call = SeccompData {
                nr: nr as u32,
                arch: Arch::X86_64.audit(),
                ip,
                args: [operation, 0, 0, 0, 0, 0],
            };
            Action::from_ret(interp::run(&filter, &call).ret)
        };
        let is_refused = |nr: i64, operation: u64, ip: u64| {
            for kind in ActionKind::ALL {
                let action = Action::new(kind, 0);
                let expected = match kind {
                    ActionKind::Allow | ActionKind::Log | ActionKind::Notify => NOT_MADE,
                    ActionKind::Trace => NO_CALL,
                    ActionKind::KillThread => KILLS_THREAD,
                    _ => action,
                };
                assert_eq!(answer(action, nr, operation, ip), expected, "{nr} {kind:?}");
            }
        };
        for nr in REFUSED {
            is_refused(nr, 0, 0x1000);
        }
        for operation in [22, 59, 1 << 32 | 22] {
            is_refused(libc::SYS_prctl, operation, 0x1000);
        }
        for nr in 0..512 {
            is_refused(nr, 0, ASKING);
        }
        for (nr, operation) in [(libc::SYS_prctl, 38), (libc::SYS_openat, 22)] {
            assert_eq!(answer(Action::ALLOW, nr, operation, 0x1000), Action::ALLOW);
        }
    }

    #[test]
    fn a_filter_that_says_what_the_monitor_is_told_is_refused() {
        let is_refused = |guest: &Program| filter(guest, [1, 2, 3, 4], ASKING).is_err();
        let errors = [4095, 4096, u16::MAX].map(Action::errno);
        for action in errors.into_iter().chain([KILLS_THREAD]) {
            assert!(is_refused(&guest(action)), "{action:?}");
        }
        let others = [
            Action::new(ActionKind::Trap, KILL_MARK + 1),
            Action::new(ActionKind::Trap, WOULD_BE_MADE),
            Action::errno(WOULD_BE_MADE - 1),
            Action::errno(0),
        ];
        for action in others {
            assert!(!is_refused(&guest(action)), "{action:?}");
        }
        let computed = [Op::LoadData(low(0)), Op::RetA].map(Into::into);
        let computed = Program::new(computed.into(), NATIVE_ENDIAN).expect("a program");
        assert!(is_refused(&computed));
    }
}
