//! The reference interpreter answers what the running kernel answers.

use std::collections::BTreeSet;

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bpf::{AluOp, Insn, Op, Operand, Pc, Program, interp};
use tamis_testkit::generate::program::{data, program, with_unused_fields};
use tamis_testkit::judge::{self, Outcome};
use tamis_testkit::rng::Rng;
use tamis_testkit::skip::{self, Need};

/// Codes whose execution the kernel confirmed, branches once for each outcome.
type Confirmed = BTreeSet<(u16, Option<bool>)>;

/// Compares the answers to all calls. What was executed on the way to a verdict that is not just a
/// kill goes to `confirmed`.
fn agree(program: &Program, calls: &[SeccompData], confirmed: &mut Confirmed) {
    let answers = judge::answers(&[program.insns()], calls);
    for (call, answer) in calls.iter().zip(answers) {
        let seen = SeccompData {
            ip: answer.ip,
            ..*call
        };
        let mut trace = Vec::new();
        let image = seen.image(Endian::Little);
        let run = interp::run_traced(program, &image, &mut |pc| trace.push(pc));
        assert_eq!(
            Outcome::of_ret(run.ret),
            answer.outcome,
            "{:#x} for {seen:x?} from {:?}",
            run.ret,
            program.insns()
        );
        if answer.outcome != Outcome::Killed {
            confirmed.extend(executed(program, &trace));
        }
    }
}

fn executed<'a>(
    program: &'a Program,
    trace: &'a [Pc],
) -> impl Iterator<Item = (u16, Option<bool>)> + 'a {
    trace.iter().enumerate().map(|(step, pc)| {
        let insn = program.insns()[pc.0];
        let outcome = match program.op(*pc) {
            Op::Branch { jt, jf, .. } if jt != jf => {
                Some(trace[step + 1].0 == pc.0 + 1 + usize::from(jt))
            }
            _ => None,
        };
        (insn.code, outcome)
    })
}

/// Says why and returns true if the kernel cannot be asked.
fn must_skip() -> bool {
    let reason = judge::unavailable();
    if let Some(reason) = &reason {
        skip::because(Need::Live, reason);
    }
    reason.is_some()
}

#[test]
fn on_generated_programs() {
    if must_skip() {
        return;
    }
    const PROGRAMS: usize = 2500;
    const CALLS: usize = 6;
    let mut rng = Rng::new(0x7669_6d21);
    let mut confirmed = Confirmed::new();
    for index in 0..PROGRAMS {
        let body_insns = rng.range(0..=if index % 20 == 0 { 300 } else { 24 }) as usize;
        let plain = program(&mut rng, body_insns);
        let noisy = with_unused_fields(&mut rng, &plain);
        let program = Program::new(noisy).expect("unused fields do not matter");
        let calls: Vec<SeccompData> = (0..CALLS).map(|_| data(&mut rng, &program)).collect();
        agree(&program, &calls, &mut confirmed);
    }
    println!("{} pairs of program and call", PROGRAMS * CALLS);
    for code in (0..=u16::MAX).filter(|code| {
        Insn {
            code: *code,
            ..Insn::default()
        }
        .op()
        .is_some()
    }) {
        let is_branch = code & 7 == 5 && code != 5;
        let outcomes: &[Option<bool>] = if is_branch {
            &[Some(true), Some(false)]
        } else {
            &[None]
        };
        for outcome in outcomes {
            assert!(
                confirmed.contains(&(code, *outcome)),
                "{code:#06x} {outcome:?} not seen"
            );
        }
    }
}

#[test]
fn on_the_edges_of_arithmetic() {
    if must_skip() {
        return;
    }
    const VALUES: [u32; 10] = [
        0,
        1,
        2,
        31,
        32,
        33,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        u32::MAX,
    ];
    let calls: Vec<SeccompData> = VALUES
        .iter()
        .flat_map(|a| VALUES.iter().map(move |x| (u64::from(*a), u64::from(*x))))
        .map(|(a, x)| SeccompData {
            nr: 0x1_f000,
            arch: Arch::X86_64.audit(),
            ip: 0,
            args: [a, x, 0, 0, 0, 0],
            ..SeccompData::default()
        })
        .collect();
    for op in AluOp::ALL {
        for shown_from_bit in [0, 12, 20] {
            let ops = [
                Op::LoadData(24),
                Op::Tax,
                Op::LoadData(16),
                Op::Alu(op, Operand::X),
                Op::Alu(AluOp::Rsh, Operand::K(shown_from_bit)),
                Op::Alu(AluOp::And, Operand::K(0xfff)),
                Op::Alu(AluOp::Or, Operand::K(0x0005_0000)),
                Op::RetA,
            ];
            let program = Program::new(ops.map(Insn::from).to_vec()).unwrap();
            agree(&program, &calls, &mut Confirmed::new());
        }
    }
}

#[test]
fn every_action_has_the_outcome_that_the_judge_expects() {
    if must_skip() {
        return;
    }
    let calls = [SeccompData {
        nr: 0x1_f000,
        arch: Arch::X86_64.audit(),
        ..SeccompData::default()
    }];
    for upper in [
        0, 1, 3, 5, 6, 0x1234, 0x7fc0, 0x7ff0, 0x7ffc, 0x7fff, 0x8000, 0xffff,
    ] {
        for data in [0, 1, 38, 4095, 4096, 0xffff] {
            let insn = Insn::from(Op::RetImm(upper << 16 | data));
            let program = Program::new(vec![insn]).unwrap();
            agree(&program, &calls, &mut Confirmed::new());
        }
    }
}
