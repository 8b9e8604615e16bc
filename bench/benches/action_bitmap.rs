//! Whether the kernel runs no filter for exactly the calls that `tamis_bpf::cache` computes.
//!
//!     cargo bench -p tamis-bench --bench action_bitmap [-- PROGRAMS [SEED]]
//!
//! The bitmap can't be read, but a call that runs no filter is fast under any filter: see
//! `tamis_kernel::measure::bitmap`. Prints one line and fails if a clear measurement contradicts.

use std::process::ExitCode;

use tamis_abi::{Action, Arch, Endian, SeccompData};
use tamis_bpf::cache::Bitmap;
use tamis_bpf::harmless::harmless;
use tamis_bpf::{AluOp, Insn, Op, Operand, Program, Stack, Test};
use tamis_kernel::measure::Call;
use tamis_kernel::measure::bitmap::skips_filters;
use tamis_testkit::rng::Rng;

/// Calls that can be made any number of times, and have other numbers on the other architecture.
const CALLS: [&str; 18] = [
    "read", "write", "close", "fstat", "lseek", "ioctl", "dup", "getpid", "fcntl", "fsync",
    "umask", "getuid", "getgid", "geteuid", "getppid", "gettid", "futex", "openat",
];

fn main() -> ExitCode {
    let numbers = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect();
    let programs = numbers.first().copied().unwrap_or(200);
    let mut rng = Rng::new(numbers.get(1).copied().unwrap_or(1));
    let calls = calls();
    let (mut cached, mut run, mut undecided, mut wrong) = (0, 0, 0, 0);
    for _ in 0..programs {
        let stack = stack(&mut rng);
        let found = match skips_filters(&[stack.programs().to_vec()], &calls) {
            Ok(found) => found,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        };
        for (call, found) in calls.iter().zip(found.into_iter().flatten()) {
            let bitmaps = Bitmap::X86_64_LINUX_6_18;
            let is_kept = bitmaps
                .iter()
                .any(|kept| kept.audit_arch == call.arch && call.nr < kept.numbers);
            let expected = is_kept && stack.is_cacheable(call.arch, call.nr);
            match found {
                None => undecided += 1,
                Some(found) if found != expected => {
                    wrong += 1;
                    println!("measured {found}, predicted {expected}: {call:x?} {stack:?}");
                }
                Some(true) => cached += 1,
                Some(false) => run += 1,
            }
        }
    }
    println!(
        "{programs} programs, {} calls each: {cached} cached, {run} not cached, {undecided} undecided, {wrong} wrong",
        calls.len()
    );
    match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The calls on both architectures of an x86-64 machine.
fn calls() -> Vec<SeccompData> {
    let found = CALLS.iter().filter_map(|name| Call::find(name).ok());
    let found: Vec<Call> = found.collect();
    let on = |arch: Arch| found.iter().filter_map(move |call| call.data(arch));
    on(Arch::X86_64).chain(on(Arch::X86)).collect()
}

/// A program alone, or with one below it that makes no number cacheable or every number.
fn stack(rng: &mut Rng) -> Stack {
    let mut programs = vec![program(rng)];
    let below = match rng.range(0..=15) {
        0 => Some(Op::LoadData(16)),
        1 => Some(Op::LoadData(0)),
        _ => None,
    };
    if let Some(load) = below {
        let insns = [load, Op::RetImm(Action::ALLOW.ret())].map(Insn::from);
        let below = Program::new(insns.to_vec(), Endian::Little)
            .expect("a load and a return are a program");
        programs.insert(0, below);
    }
    Stack::new(programs).expect("both are for this machine")
}

/// A program that decides by number and architecture, mostly by instructions that the kernel's emulator supports, and
/// kills no process.
fn program(rng: &mut Rng) -> Program {
    const BODY_INSNS: usize = 10;
    loop {
        let mut insns: Vec<Insn> = (0..BODY_INSNS)
            .map(|at| op(rng, BODY_INSNS - at).into())
            .collect();
        let ret = Insn::from(Op::RetImm(Action::ALLOW.ret()));
        insns.extend([ret, ret]);
        let made = Program::new(insns, Endian::Little).ok();
        if let Some(program) = made.and_then(|made| harmless(&made, 1).ok()) {
            return program;
        }
    }
}

fn op(rng: &mut Rng, behind: usize) -> Op {
    let skip = |rng: &mut Rng| rng.index(behind.min(4)) as u8;
    let audit = [Arch::X86_64, Arch::X86].map(Arch::audit);
    let k = match rng.range(0..=3) {
        0 => *rng.choose(&audit),
        _ => rng.range(0..=300) as u32,
    };
    match rng.range(0..=30) {
        0..=7 => Op::LoadData(0),
        8 | 9 => Op::LoadData(4),
        10 => Op::LoadData(rng.range(2..=15) as u32 * 4),
        11..=14 => Op::Alu(AluOp::And, Operand::K(rng.interesting_u64() as u32)),
        15..=25 => Op::branch(
            *rng.choose(&[Test::Eq, Test::Gt, Test::Ge, Test::Set]),
            k,
            skip(rng),
            skip(rng),
        ),
        26 => Op::Jump(u32::from(skip(rng))),
        27 => Op::RetImm(*rng.choose(&[Action::ALLOW.ret(), 0x7fff_0001, Action::errno(1).ret()])),
        28 => *rng.choose(&[
            Op::Tax,
            Op::Txa,
            Op::Neg,
            Op::LoadImm(k),
            Op::LoadLen,
            Op::Store(1),
        ]),
        29 => Op::Alu(
            *rng.choose(&[AluOp::Or, AluOp::Xor, AluOp::Add, AluOp::Rsh]),
            Operand::K(1),
        ),
        _ => Op::RetA,
    }
}
