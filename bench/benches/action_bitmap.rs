//! Whether the kernel runs no filter for just those calls of which `tamis_bpf::cache` says so.
//!
//!     cargo bench -p tamis-bench --bench action_bitmap [-- PROGRAMS [SEED]]
//!
//! The bitmap can't be read, but a call for which no filter runs is fast under any filter: see
//! `tamis_kernel::differential::cache`. Prints one line and fails if a clear measurement contradicts.

use std::process::ExitCode;

use tamis_abi::{Action, Arch};
use tamis_bpf::cache::{Bitmap, is_cacheable};
use tamis_bpf::harmless::harmless;
use tamis_bpf::{AluOp, Insn, Op, Operand, Program, Test};
use tamis_kernel::differential::cache;
use tamis_testkit::rng::Rng;

fn main() -> ExitCode {
    let numbers = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect();
    let programs = numbers.first().copied().unwrap_or(200);
    let mut rng = Rng::new(numbers.get(1).copied().unwrap_or(1));
    let calls = cache::calls();
    let (mut cached, mut run, mut undecided, mut wrong) = (0, 0, 0, 0);
    for _ in 0..programs {
        let program = program(&mut rng);
        let found = match cache::uncalled(&[&program], &calls) {
            Ok(found) => found,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        };
        for (call, found) in calls.iter().zip(found) {
            let bitmaps = Bitmap::X86_64_LINUX_6_18;
            let is_kept = bitmaps
                .iter()
                .any(|kept| kept.audit_arch == call.arch && call.nr < kept.numbers);
            let expected = is_kept && is_cacheable(&program, call.arch, call.nr);
            match found {
                None => undecided += 1,
                Some(found) if found != expected => {
                    wrong += 1;
                    println!("measured {found}, predicted {expected}: {call:x?} {program:?}");
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

/// A program that decides by number and architecture, mostly with what the kernel's emulator knows, and
/// kills nobody.
fn program(rng: &mut Rng) -> Program {
    const BODY_INSNS: usize = 10;
    loop {
        let mut insns: Vec<Insn> = (0..BODY_INSNS)
            .map(|at| op(rng, BODY_INSNS - at).into())
            .collect();
        let ret = Insn::from(Op::RetImm(Action::ALLOW.ret()));
        insns.extend([ret, ret]);
        let made = Program::new(insns).ok();
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
        15..=25 => Op::Branch {
            test: *rng.choose(&[Test::Eq, Test::Gt, Test::Ge, Test::Set]),
            operand: Operand::K(k),
            jt: skip(rng),
            jf: skip(rng),
        },
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
