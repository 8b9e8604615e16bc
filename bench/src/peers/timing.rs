//! Timing of filters in the running kernel: the selection of calls, and their cost over no filter.
//!
//! If there are calls whose arguments decide, only these are timed: numbers that are always allowed are answered by
//! the kernel's bitmap and cost the same under every filter.

use tamis_abi::{Action, Arch, Endian, SeccompData, syscall};
use tamis_bpf::harmless::harmless;
use tamis_bpf::{Op, Program, Stack};
use tamis_kernel::measure::{Clock, Rounds, TimedCalls, Timing, measure_workload};

use super::cases::Case;
use super::judge::Policy;

/// The error for calls on which a filter has a more severe action: `ENOSYS`.
const DENIED_ERRNO: u16 = 38;
/// With this many calls, the requested rounds are enough.
const ENOUGH_CALLS: usize = 24;
/// The most requests of `ioctl` that are timed.
const MAX_REQUESTS: usize = 8;
/// A descriptor that is not open: far above any limit.
pub const NO_FD: u64 = 0x7fff_ffff;
/// An unmapped address.
pub const NOWHERE: u64 = 8;

/// Calls that return at once without an effect: they have a bad descriptor or address, request no change, or are
/// otherwise invalid.
const CALLS: [(&str, [u64; 6]); 17] = [
    ("getppid", [0; 6]),
    ("close", [NO_FD, 0, 0, 0, 0, 0]),
    ("fcntl", [NO_FD, 1, 0, 0, 0, 0]),
    ("fcntl", [NO_FD, 1033, 0, 0, 0, 0]),
    // FUTEX_WAKE, and the same with FUTEX_PRIVATE_FLAG.
    ("futex", [0, 0x01, 1, 0, 0, 0]),
    ("futex", [0, 0x81, 1, 0, 0, 0]),
    ("sendmmsg", [NO_FD, 0, 0, 0x40, 0, 0]),
    ("epoll_pwait", [NO_FD, 0, 0, 0, 0, 0]),
    ("recvmsg", [NO_FD, 0, 0, 0, 0, 0]),
    ("accept4", [NO_FD, 0, 0, 0x80000, 0, 0]),
    ("timerfd_settime", [NO_FD, 0, 0, 0, 0, 0]),
    // No domain has this number.
    ("socket", [1000, 0, 0, 0, 0, 0]),
    // Reads the personality.
    ("personality", [0xffff_ffff, 0, 0, 0, 0, 0]),
    // No bytes, readable.
    ("mprotect", [0, 0, 1, 0, 0, 0]),
    ("openat", [NO_FD, NOWHERE, 0, 0, 0, 0]),
    ("pread64", [NO_FD, 0, 0, 0, 0, 0]),
    ("getdents64", [NO_FD, 0, 0, 0, 0, 0]),
];

/// The measurement of one subject.
#[derive(Clone, Debug)]
pub struct Times {
    /// The time of the installation.
    pub install_ns: f64,
    /// Per call.
    pub calls: Vec<Timing>,
}

/// The measurements of all subjects.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Per subject, in their order.
    pub subjects: Vec<Times>,
    /// The clock.
    pub clock: Clock,
}

impl Times {
    /// The mean time of the fastest batches.
    pub fn mean_ns(&self) -> f64 {
        let sum: f64 = self.calls.iter().map(|call| call.min_ns).sum();
        sum / self.calls.len() as f64
    }

    /// The mean additional time of the fastest batches over another subject.
    pub fn over_ns(&self, other: &Times) -> f64 {
        self.mean_ns() - other.mean_ns()
    }
}

/// The timed calls of a case: those that the policy allows by their arguments, or else those that it always allows.
/// `filters` are equivalent to the policy.
pub fn timed_calls(case: &Case, filters: &Stack) -> Vec<SeccompData> {
    let fixed = CALLS.iter().filter_map(|(name, args)| call(name, *args));
    let mut calls: Vec<SeccompData> = fixed.chain(requests(case)).collect();
    calls.retain(|data| {
        let answer = match &case.policy {
            Policy::Ruleset(ruleset) => ruleset.decide(data).action,
            Policy::Stack(stack) => Action::from_ret(stack.run(data).ret),
        };
        answer == Action::ALLOW
    });
    let is_cached = |data: &SeccompData| filters.is_cacheable(data.arch, data.nr);
    let (cached, by_arguments): (Vec<SeccompData>, Vec<SeccompData>) =
        calls.into_iter().partition(is_cached);
    if by_arguments.is_empty() {
        cached
    } else {
        by_arguments
    }
}

/// A call of x86_64 with these arguments.
pub fn call(name: &str, args: [u64; 6]) -> Option<SeccompData> {
    Some(SeccompData {
        nr: syscall::number(Arch::X86_64, name)?.0,
        arch: Arch::X86_64.audit(),
        ip: 0,
        args,
    })
}

/// Some requests of `ioctl` that rules allow, on a descriptor that is not open.
fn requests(case: &Case) -> Vec<SeccompData> {
    let ioctl = syscall::number(Arch::X86_64, "ioctl").map(|nr| nr.0);
    let samples = case.allowed.samples().iter().map(|sample| sample.data);
    let of_ioctl: Vec<SeccompData> = samples.filter(|data| Some(data.nr) == ioctl).collect();
    let step = of_ioctl.len().div_ceil(MAX_REQUESTS).max(1);
    let chosen = of_ioctl.iter().step_by(step);
    chosen
        .filter_map(|data| call("ioctl", [NO_FD, data.args[1], 0, 0, 0, 0]))
        .collect()
}

/// No filter, and the empty one.
///
/// # Panics
/// Never: a return is a valid program.
pub fn baselines() -> [Stack; 2] {
    let allow = Program::new(vec![Op::RetImm(Action::ALLOW.ret()).into()], Endian::Little);
    [
        Stack::default(),
        allow.expect("a return is a program").into(),
    ]
}

/// Times the calls under each of the stacks, in turns. With few calls there are more rounds than requested, because a
/// mean over few calls is noisier.
///
/// # Errors
/// The reason why timing is not possible here.
pub fn time(stacks: &[Stack], calls: &[SeccompData], rounds: u32) -> Result<Timed, String> {
    let mut harmless_stacks: Vec<Vec<Program>> = Vec::new();
    for stack in stacks {
        let programs = stack.programs().iter();
        let stack: Result<_, _> = programs
            .map(|program| harmless(program, DENIED_ERRNO))
            .collect();
        harmless_stacks.push(stack.map_err(|error| error.to_string())?);
    }
    let rounds = rounds * ENOUGH_CALLS.div_ceil(calls.len().max(1)) as u32;
    let (workload, rounds) = (TimedCalls::of_calls(calls), Rounds::exactly(rounds));
    let measured = measure_workload(&harmless_stacks, &workload, rounds, &mut |_| {});
    let measured = measured.map_err(|error| error.to_string())?;
    let times = measured.subjects.into_iter().map(|measured| Times {
        install_ns: measured.install_ns,
        calls: measured.calls,
    });
    Ok(Timed {
        subjects: times.collect(),
        clock: measured.clock,
    })
}
