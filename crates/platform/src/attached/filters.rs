//! The filters that a guest gets.
//!
//! With all mechanisms, the kernel denies the calls that the guest's filter denies. The mechanisms differ in the
//! kernel's action where the guest's filter returns `notify`.

use tamis_abi::{Action, ActionKind, Arch, ArgIndex, Nr, SeccompData, Word, host, syscall};
use tamis_bpf::{AluOp, Op, Operand, Program, Test};
use tamis_kernel::probe::{self, Support};
use tamis_kernel::{Flag, Flags, NATIVE_ENDIAN};

use super::Mechanism;
use crate::error::Unsupported;
use crate::installing::X32;
use crate::offsets::{ARCH, IP_HIGH, IP_LOW, NR};
use crate::patched::counted::allow_at_gates;
use crate::rewrite::Rewrite;
use crate::sys::stub;

/// The data of our own `trace`, which distinguishes our stops from those by a filter of the guest.
pub(super) const OURS: u16 = 0x7a75;
/// The data of our own `trace` of a call that may install a filter.
pub(super) const INSTALLS: u16 = 0x7a77;
/// The number of filters of a guest whose call sites may be patched.
pub(super) const OF_PATCHED: u32 = 4;
/// The number of filters of a guest that counts its own calls.
pub(super) const OF_COUNTED: u32 = 1;

/// The result of `trace` without a tracer.
const NO_TRACER: Action = Action::errno(libc::ENOSYS as u16);

/// The mechanism that catches the calls of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Catcher {
    /// A mechanism of the kernel.
    Kernel(Mechanism),
    /// A stub in the guest, and user notification for the calls that the stub doesn't answer.
    Stub,
    /// The guest, which counts its calls, and tracing for the calls that it doesn't count.
    Guest,
}

/// The filters, the oldest first.
pub(super) fn filters(
    catcher: Catcher,
    program: &Program,
) -> Result<Vec<(Program, Flags)>, Unsupported> {
    let traced = (no_untraced_tasks(), Flags::NONE);
    let trace = Action::new(ActionKind::Trace, OURS);
    let mechanism = match catcher {
        Catcher::Guest => return Ok(vec![(counted(trace)?, Flags::NONE)]),
        Catcher::Stub => {
            let own = (program.clone(), listener_flags());
            return Ok(vec![traced, (no_tracer_of_its_choice(), Flags::NONE), own]);
        }
        Catcher::Kernel(mechanism) => mechanism,
    };
    let notify = match mechanism {
        Mechanism::Notify => return Ok(vec![traced, (program.clone(), listener_flags())]),
        Mechanism::Trace | Mechanism::Patch | Mechanism::Watch => trace,
        // Every call has stopped before.
        Mechanism::Syscall | Mechanism::Emulate => Action::ALLOW,
    };
    let rewrite = Rewrite {
        notify,
        trace: NO_TRACER,
        executes: None,
        kills_thread: None,
    };
    Ok(match mechanism {
        // A watching tracer denies nothing.
        Mechanism::Watch => vec![(rewrite.apply(program, &[])?, Flags::NONE)],
        Mechanism::Trace => vec![
            traced,
            (no_listeners(), Flags::NONE),
            (rewrite.apply(program, &[])?, Flags::NONE),
        ],
        Mechanism::Patch => vec![
            traced,
            (no_listeners(), Flags::NONE),
            (stop_at_filters(), Flags::NONE),
            // The newest filter: its data is reported if several return `trace`.
            (rewrite.apply(program, &stop_at_hello())?, Flags::NONE),
        ],
        _ => vec![
            traced,
            (no_listeners(), Flags::NONE),
            (stop_at_vsyscalls(program, trace)?, Flags::NONE),
            (rewrite.apply(program, &allow_skipped())?, Flags::NONE),
        ],
    })
}

/// The filter of a guest that stops at every call except those that it counts itself. It is a single filter, because
/// counted calls run through it: the kernel caches no action that depends on an address.
fn counted(asks: Action) -> Result<Program, Unsupported> {
    let untraced = no_untraced_tasks();
    let end = untraced.len();
    let go_on = |(here, op)| match op {
        Op::RetImm(ret) if ret == Action::ALLOW.ret() => Op::Jump((end - here - 1) as u32),
        other => other,
    };
    let mut ops: Vec<Op> = untraced.ops().enumerate().map(go_on).collect();
    ops.extend(no_listeners().ops());
    let insns = ops.into_iter().map(Into::into).collect();
    let denied = Program::new(insns, NATIVE_ENDIAN).expect("two programs, one behind the other");
    let rewrite = Rewrite {
        notify: asks,
        trace: NO_TRACER,
        executes: Some(asks),
        kills_thread: None,
    };
    rewrite.apply(&denied, &allow_at_gates())
}

/// Whether only deadly signals end a call that a listener has received. Kernel 5.19.
pub(crate) fn keeps_received_calls() -> bool {
    probe::flag(Flag::WaitKillableRecv).is_present()
}

fn listener_flags() -> Flags {
    match keeps_received_calls() {
        true => Flag::NewListener | Flag::WaitKillableRecv,
        false => Flag::NewListener.into(),
    }
}

/// Whether a call is made through the vsyscall page: by an address that the kernel emulates, without a system call
/// instruction of the guest. Filters decide about it, but the task doesn't stop at its entry and exit.
pub(super) fn is_vsyscall(call: &SeccompData) -> bool {
    let mut places = VSYSCALLS.iter();
    call.arch == Arch::X86_64.audit() && places.any(|place| *place == (call.nr, call.ip))
}

/// The numbers of `gettimeofday`, `time` and `getcpu`, and their addresses in the page
/// (`arch/x86/entry/vsyscall/vsyscall_emu_64.S`).
const VSYSCALLS: [(u32, u64); 3] = [
    (96, 0xffff_ffff_ff60_0000),
    (201, 0xffff_ffff_ff60_0400),
    (309, 0xffff_ffff_ff60_0800),
];

/// The filter that stops at calls through the vsyscall page, where all other calls stop without a filter.
fn stop_at_vsyscalls(program: &Program, asks: Action) -> Result<Program, Unsupported> {
    let rewrite = Rewrite {
        notify: asks,
        trace: NO_TRACER,
        executes: None,
        kills_thread: None,
    };
    let [(first, page), (second, _), (third, _)] = VSYSCALLS;
    rewrite.apply(
        program,
        &[
            Op::LoadData(ARCH),
            Op::branch(Test::Eq, Arch::X86_64.audit(), 0, 9),
            // The kernel caches that all other numbers are allowed.
            Op::LoadData(NR),
            Op::branch(Test::Eq, first, 2, 0),
            Op::branch(Test::Eq, second, 1, 0),
            Op::branch(Test::Eq, third, 0, 5),
            Op::LoadData(IP_HIGH),
            Op::branch(Test::Eq, (page >> 32) as u32, 0, 3),
            Op::LoadData(IP_LOW),
            Op::Alu(AluOp::And, Operand::K(!0xc00)),
            Op::branch(Test::Eq, page as u32, 1, 0),
            Op::RetImm(Action::ALLOW.ret()),
            // Resets the registers to the values that the guest's filter expects.
            Op::Alu(AluOp::And, Operand::K(0)),
        ],
    )
}

/// Stops at the call that registers threads of patched guests.
fn stop_at_hello() -> [Op; 4] {
    for_number(stub::HELLO, Action::new(ActionKind::Trace, OURS))
}

/// Allows the call with the number of skipped calls, which doesn't exist.
fn allow_skipped() -> [Op; 4] {
    const SKIPPED: u32 = u32::MAX;
    for_number(SKIPPED, Action::ALLOW)
}

/// An action for one number; leaves the registers unchanged.
fn for_number(nr: u32, action: Action) -> [Op; 4] {
    [
        Op::LoadData(0),
        Op::branch(Test::Eq, nr, 0, 1),
        Op::RetImm(action.ret()),
        // Unlike a load, this instruction is supported by the kernel's cache of allowed calls.
        Op::Alu(AluOp::And, Operand::K(0)),
    ]
}

/// A call that is answered by its number, in each interface of the machine that has it, and by an argument.
struct Rule {
    name: &'static str,
    /// The index of an argument, a test of its lower half, and the value to test for.
    when: Option<(usize, Test, u32)>,
    /// The answer, or instructions that end with one.
    answer: Vec<Op>,
}

/// The numbers of a call in an interface; those of x86-64 stand for x32, too, whose bit the kernel takes from any number.
fn numbers(arch: Arch, name: &str) -> Vec<u32> {
    let of = |arch| syscall::number(arch, name).map(|nr: Nr| nr.0);
    let wide = match arch {
        Arch::X86_64 => of(Arch::X32).map(|nr| nr & !X32),
        _ => None,
    };
    let mut numbers: Vec<u32> = of(arch).into_iter().chain(wide).collect();
    numbers.dedup();
    numbers
}

/// An answer that doesn't depend on the call.
fn always(action: Action) -> Vec<Op> {
    vec![Op::RetImm(action.ret())]
}

/// The offset of the lower half of an argument in the data of a filter.
const fn place_of(arg: usize) -> u32 {
    Word::arg_low(ArgIndex::ALL[arg]).offset(NATIVE_ENDIAN)
}

/// The offset of the upper half.
const fn high_place_of(arg: usize) -> u32 {
    Word::arg_high(ArgIndex::ALL[arg]).offset(NATIVE_ENDIAN)
}

/// The filter that answers these calls on this machine and allows all others. The kernel caches that other numbers are
/// allowed.
fn answer(rules: &[Rule]) -> Program {
    answer_on(host::arch().unwrap_or(Arch::X86_64), rules)
}

/// The same for a machine of this architecture, in all its interfaces.
fn answer_on(machine: Arch, rules: &[Rule]) -> Program {
    let mut ops = vec![Op::LoadData(4)];
    // The numbers of x32 come with the architecture of x86-64.
    let own = machine
        .with_compat()
        .iter()
        .filter(|arch| **arch != Arch::X32);
    for arch in own {
        let block = block(*arch, rules);
        ops.push(Op::branch(Test::Eq, arch.audit(), 0, block.len() as u8));
        ops.extend(block);
    }
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    let insns = ops.into_iter().map(Into::into).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("the program is valid")
}

/// The answers in one interface.
fn block(arch: Arch, rules: &[Rule]) -> Vec<Op> {
    let mut load = vec![Op::LoadData(0)];
    if arch == Arch::X86_64 {
        load.push(Op::Alu(AluOp::And, Operand::K(!X32)));
    }
    let mut ops = load.clone();
    for rule in rules {
        let mut decision = rule.answer.clone();
        if let Some((arg, test, value)) = rule.when {
            let place = Op::LoadData(place_of(arg));
            let rest = Op::branch(test, value, 0, decision.len() as u8);
            decision.splice(0..0, [place, rest]);
            decision.extend(&load);
        }
        let numbers = numbers(arch, rule.name);
        for (index, nr) in numbers.iter().enumerate() {
            let (left, rest) = match numbers.len() - 1 - index {
                0 => (0, decision.len()),
                left => (left, 0),
            };
            ops.push(Op::branch(Test::Eq, *nr, left as u8, rest as u8));
        }
        if !numbers.is_empty() {
            ops.extend(decision);
        }
    }
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    ops
}

/// Denies installing a filter with a listener, with the kernel's error for a second listener: `notify` has precedence
/// over `trace`, so the guest could notify itself and continue calls that are to be traced.
fn no_listeners() -> Program {
    let unknown = |flag: &Flag| matches!(probe::flag(*flag), Support::No { .. });
    let known = Flag::ALL.into_iter().filter(|flag| !unknown(flag));
    answer(&[Rule {
        name: "seccomp",
        when: Some((1, Test::Set, Flag::NewListener.bit())),
        answer: errors_of_listeners(known.fold(0, |known, flag| known | flag.bit())),
    }])
}

/// The error of `seccomp` with the flag for a listener, from a kernel that supports the flags `known`: errors of the
/// call itself come first. The memory behind its pointer isn't checked.
fn errors_of_listeners(known: u32) -> Vec<Op> {
    /// No program has memory below this address.
    const LOWEST: u32 = 0x1000;
    /// The upper half of an address in the kernel's half.
    const OF_KERNEL: u32 = 1 << 31;
    let error = |errno: i32| Op::RetImm(Action::errno(errno as u16).ret());
    vec![
        // The flags are in the accumulator.
        Op::branch(Test::Set, !known, 4, 0),
        Op::branch(Test::Set, Flag::Tsync.bit(), 0, 1),
        Op::branch(Test::Set, Flag::TsyncEsrch.bit(), 0, 2),
        Op::LoadData(place_of(0)),
        Op::branch(Test::Eq, libc::SECCOMP_SET_MODE_FILTER, 1, 0),
        error(libc::EINVAL),
        Op::LoadData(high_place_of(2)),
        Op::branch(Test::Set, OF_KERNEL, 3, 0),
        Op::branch(Test::Eq, 0, 0, 3),
        Op::LoadData(place_of(2)),
        Op::branch(Test::Ge, LOWEST, 1, 0),
        error(libc::EFAULT),
        error(libc::EBUSY),
    ]
}

/// Stops at calls that may install a filter.
fn stop_at_filters() -> Program {
    let told = |name, when| Rule {
        name,
        when,
        answer: always(Action::new(ActionKind::Trace, INSTALLS)),
    };
    let sets_filter = (0, Test::Eq, libc::PR_SET_SECCOMP as u32);
    answer(&[told("seccomp", None), told("prctl", Some(sets_filter))])
}

/// Denies creating tasks that aren't traced: they would not die with the supervisor, nor stop at their calls. The flags
/// of `clone3` are in memory, which can change after a check, so programs have to fall back to `clone`.
fn no_untraced_tasks() -> Program {
    no_untraced_tasks_on(host::arch().unwrap_or(Arch::X86_64))
}

fn no_untraced_tasks_on(machine: Arch) -> Program {
    const UNTRACED: u32 = 0x0080_0000;
    // On s390 the stack comes first.
    let flags = usize::from(matches!(machine, Arch::S390x | Arch::S390));
    let clone = Rule {
        name: "clone",
        when: Some((flags, Test::Set, UNTRACED)),
        answer: always(Action::errno(libc::EPERM as u16)),
    };
    let clone3 = Rule {
        name: "clone3",
        when: None,
        answer: always(Action::errno(libc::ENOSYS as u16)),
    };
    answer_on(machine, &[clone, clone3])
}

/// Denies `PTRACE_TRACEME`, with the kernel's error for a task that is traced already. The first process of a guest
/// with a stub isn't traced, and its parent is a thread of the supervisor that doesn't expect the tracing. A task that
/// has a tracer can't be seized when it creates a process.
fn no_tracer_of_its_choice() -> Program {
    // `PTRACE_TRACEME`, in whose type C libraries differ.
    const TRACEME: u32 = 0;
    answer(&[Rule {
        // x32 has a number of its own.
        name: "ptrace",
        when: Some((0, Test::Eq, TRACEME)),
        answer: always(Action::errno(libc::EPERM as u16)),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installing::may_install;
    use tamis_bpf::{Stack, interp};

    #[test]
    fn only_filters_with_a_listener_are_denied() {
        let program = no_listeners();
        let verdict = |arch: Arch, nr: u32, flags: u64| {
            let call = SeccompData {
                nr,
                arch: arch.audit(),
                args: [1, flags, 0x1000, 0, 0, 0],
                ..SeccompData::default()
            };
            Action::from_ret(interp::run(&program, &call).ret)
        };
        let denied = Action::errno(libc::EBUSY as u16);
        for (arch, nr) in [
            (Arch::X86_64, 317),
            (Arch::X86_64, 317 | 0x4000_0000),
            (Arch::X86, 354),
        ] {
            assert_eq!(verdict(arch, nr, 8), denied);
            assert_eq!(verdict(arch, nr, 8 | 16 | 1), denied);
            assert_eq!(verdict(arch, nr, 1), Action::ALLOW);
            assert_eq!(verdict(arch, nr + 1, 8), Action::ALLOW);
        }
        assert_eq!(verdict(Arch::X86, 317, 8), Action::ALLOW);
        assert_eq!(verdict(Arch::Aarch64, 317, 8), Action::ALLOW);
    }

    #[test]
    fn what_is_wrong_with_a_call_comes_before_the_listener() {
        const ESRCH: u64 = 16;
        let error = |args: [u64; 3], known: u32| {
            let mut ops = vec![Op::LoadData(place_of(1))];
            ops.extend(errors_of_listeners(known));
            let insns = ops.into_iter().map(Into::into).collect();
            let program = Program::new(insns, NATIVE_ENDIAN).expect("the program is valid");
            let call = SeccompData {
                args: [args[0], args[1], args[2], 0, 0, 0],
                ..SeccompData::default()
            };
            let action = Action::from_ret(interp::run(&program, &call).ret);
            assert_eq!(action.kind, ActionKind::Errno);
            i32::from(action.data)
        };
        let all = 0x3f;
        for (args, known, expected) in [
            ([1, 8, 0x7fff_0000_0000], all, libc::EBUSY),
            ([1, 8, 0x1000], all, libc::EBUSY),
            ([1 << 32 | 1, 1 << 32 | 8, 0x1000], all, libc::EBUSY),
            ([1, 8, 0], all, libc::EFAULT),
            ([1, 8, 1], all, libc::EFAULT),
            ([1, 8, u64::MAX], all, libc::EFAULT),
            ([0, 8, 0], all, libc::EINVAL),
            ([2, 8, 0x1000], all, libc::EINVAL),
            ([77, 8, 0x1000], all, libc::EINVAL),
            ([1, 0xffff_ffff, 0x1000], all, libc::EINVAL),
            ([1, 8 | 0x40, 0], all, libc::EINVAL),
            ([1, 8 | 0x20, 0x1000], 0x1f, libc::EINVAL),
            ([1, 8 | 1, 0x1000], all, libc::EINVAL),
            ([1, 8 | 1 | ESRCH, 0x1000], all, libc::EBUSY),
        ] {
            assert_eq!(error(args, known), expected, "{args:x?}");
        }
    }

    #[test]
    fn no_task_is_made_that_is_not_traced() {
        let program = no_untraced_tasks();
        let verdict = |arch: Arch, nr: u32, flags: u64| {
            let call = SeccompData {
                nr,
                arch: arch.audit(),
                args: [flags, 0, 0, 0, 0, 0],
                ..SeccompData::default()
            };
            Action::from_ret(interp::run(&program, &call).ret)
        };
        let (eperm, enosys) = (libc::EPERM as u16, libc::ENOSYS as u16);
        for (arch, clone, bit) in [
            (Arch::X86_64, 56, 0),
            (Arch::X86_64, 56, 0x4000_0000),
            (Arch::X86, 120, 0),
        ] {
            assert_eq!(
                verdict(arch, clone | bit, 0x0080_0011),
                Action::errno(eperm)
            );
            assert_eq!(verdict(arch, clone | bit, 0x0100_0011), Action::ALLOW);
            assert_eq!(verdict(arch, 435 | bit, 0), Action::errno(enosys));
            for other in [0, clone - 1, clone + 1, 434, 436] {
                assert_eq!(verdict(arch, other | bit, 0x0080_0000), Action::ALLOW);
            }
        }
        assert_eq!(verdict(Arch::Aarch64, 56, 0x0080_0000), Action::ALLOW);
    }

    /// Whatever the machine, its kernel creates no untraced task by any of its interfaces.
    #[test]
    fn no_machine_makes_an_untraced_task() {
        for machine in [Arch::Aarch64, Arch::Riscv64, Arch::Loongarch64, Arch::S390x] {
            let program = no_untraced_tasks_on(machine);
            for arch in machine.with_compat() {
                let verdict = |name: &str, args: [u64; 6]| {
                    let nr = syscall::number(*arch, name).expect("the call exists").0;
                    let call = SeccompData {
                        nr,
                        arch: arch.audit(),
                        args,
                        ..SeccompData::default()
                    };
                    Action::from_ret(interp::run(&program, &call).ret)
                };
                let denied = Action::errno(libc::EPERM as u16);
                let mut args = [0; 6];
                let flags = usize::from(matches!(machine, Arch::S390x));
                args[flags] = 0x0080_0011;
                assert_eq!(verdict("clone", args), denied, "{arch:?}");
                args[flags] = 0x0100_0011;
                assert_eq!(verdict("clone", args), Action::ALLOW, "{arch:?}");
                let missing = Action::errno(libc::ENOSYS as u16);
                assert_eq!(verdict("clone3", [0; 6]), missing, "{arch:?}");
                assert_eq!(verdict("read", args), Action::ALLOW, "{arch:?}");
            }
        }
    }

    #[test]
    fn no_task_chooses_its_tracer() {
        let program = no_tracer_of_its_choice();
        let denied = Action::errno(libc::EPERM as u16);
        for arch in [Arch::X86_64, Arch::X86, Arch::Aarch64] {
            for nr in (0..600).chain((0..600).map(|nr| nr | 0x4000_0000)) {
                for request in [0, 16, 0x4206, 1 << 32, 1 << 32 | 16] {
                    let call = SeccompData {
                        nr,
                        arch: arch.audit(),
                        args: [request, 0, 0, 0, 0, 0],
                        ..SeccompData::default()
                    };
                    let is_ptrace = match arch {
                        Arch::X86_64 => [101, 521].contains(&(nr & 0xffff)),
                        Arch::X86 => nr == 26,
                        _ => false,
                    };
                    let expected = match is_ptrace && request as u32 == 0 {
                        true => denied,
                        false => Action::ALLOW,
                    };
                    let answer = Action::from_ret(interp::run(&program, &call).ret);
                    assert_eq!(answer, expected, "{call:?}");
                }
            }
        }
    }

    #[test]
    fn a_skipped_call_is_allowed_whatever_the_filter_says() {
        let deny = Op::RetImm(Action::KILL_PROCESS.ret());
        let deny = Program::new(vec![deny.into()], NATIVE_ENDIAN).unwrap();
        let all = filters(Catcher::Kernel(Mechanism::Syscall), &deny).unwrap();
        let [_, _, _, (filter, _)] = &all[..] else {
            panic!("four filters");
        };
        let verdict = |nr| {
            let call = SeccompData {
                nr,
                ..SeccompData::default()
            };
            Action::from_ret(interp::run(filter, &call).ret)
        };
        assert_eq!(verdict(u32::MAX), Action::ALLOW);
        assert_eq!(verdict(0), Action::KILL_PROCESS);
    }

    #[test]
    fn counted_guests_are_asked_about_what_they_do_not_call_at_gates() {
        let asks = Action::new(ActionKind::Trace, OURS);
        let program = counted(asks).unwrap();
        let denied = [no_untraced_tasks(), no_listeners()];
        for arch in [Arch::X86_64, Arch::X86] {
            for nr in (0..512).chain([0x4000_0038, u32::MAX]) {
                for flags in [0, u64::from(Flag::NewListener.bit()), 0x0080_0000] {
                    let call = SeccompData {
                        nr,
                        arch: arch.audit(),
                        ip: 0x7f00_1234_5678,
                        args: [flags, flags, 0, 0, 0, 0],
                    };
                    let answers = denied.each_ref().map(|one| interp::run(one, &call).ret);
                    let error = answers.into_iter().find(|ret| *ret != Action::ALLOW.ret());
                    let answer = interp::run(&program, &call).ret;
                    assert_eq!(answer, error.unwrap_or(asks.ret()), "{call:?}");
                    for (ip, expected) in [
                        (0x7e90_0000_0002, Action::ALLOW.ret()),
                        (0x7e90_0000_ffff, Action::ALLOW.ret()),
                        (0x7e90_0001_0000, answer),
                        (0x7e8f_ffff_ffff, answer),
                        (0x0002, answer),
                    ] {
                        let call = SeccompData { ip, ..call };
                        assert_eq!(interp::run(&program, &call).ret, expected, "{call:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn calls_through_the_vsyscall_page_and_no_others_stop_by_a_filter() {
        let notify = Op::RetImm(ActionKind::Notify.ret());
        let all = Program::new(vec![notify.into()], NATIVE_ENDIAN).unwrap();
        for mechanism in [Mechanism::Syscall, Mechanism::Emulate] {
            let filters = filters(Catcher::Kernel(mechanism), &all).unwrap();
            let filters = filters.into_iter().map(|(filter, _)| filter).collect();
            let stack = Stack::new(filters).unwrap();
            let places = VSYSCALLS.map(|(_, ip)| ip);
            let ips = places.into_iter().flat_map(|ip| {
                [
                    ip,
                    ip + 9,
                    ip - 1,
                    ip & u64::from(u32::MAX),
                    ip - 0x1000,
                    ip + 0x1000,
                ]
            });
            for (ip, nr) in ips.flat_map(|ip| (0..400).map(move |nr| (ip, nr))) {
                for arch in [Arch::X86_64, Arch::X86] {
                    let call = SeccompData {
                        nr,
                        arch: arch.audit(),
                        ip,
                        ..SeccompData::default()
                    };
                    let stops = stack.run(&call).ret == Action::new(ActionKind::Trace, OURS).ret();
                    // The kernel makes no call with the number of one from the place of another.
                    let is_of_page = arch == Arch::X86_64
                        && places.contains(&ip)
                        && VSYSCALLS.iter().any(|(known, _)| *known == nr);
                    assert_eq!(stops, is_of_page, "{call:?}");
                    assert!(stops || !is_vsyscall(&call));
                }
            }
            assert!(stack.is_cacheable(Arch::X86_64.audit(), 0));
        }
    }

    #[test]
    fn calls_that_install_filters_are_told() {
        let call_of = |arch: Arch, nr: u32, first: u64| SeccompData {
            nr,
            arch: arch.audit(),
            args: [first, 0, 0, 0, 0, 0],
            ..SeccompData::default()
        };
        let call = |nr, first| call_of(Arch::X86_64, nr, first);
        for nr in [0, 157, 317, 172, 354]
            .into_iter()
            .flat_map(|nr| [nr, nr | X32])
        {
            for (first, arch) in [1, 22, 38].into_iter().flat_map(|first| {
                [Arch::X86_64, Arch::X86, Arch::Aarch64].map(|arch| (first, arch))
            }) {
                let call = call_of(arch, nr, first);
                let told = Action::new(ActionKind::Trace, INSTALLS).ret();
                let is_told = interp::run(&stop_at_filters(), &call).ret == told;
                assert_eq!(is_told, may_install(&call), "{call:?}");
            }
        }
        assert!(may_install(&call(317, 1)) && may_install(&call(157, 22)));
        assert!(!may_install(&call(157, 38)));
        assert!(may_install(&call_of(Arch::X86, 354, 1)));
        assert!(!may_install(&call_of(Arch::X86, 317, 1)) && !may_install(&call(354, 1)));
    }
}
