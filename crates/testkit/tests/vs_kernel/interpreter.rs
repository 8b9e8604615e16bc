//! The reference interpreter returns the same as the running kernel.

use std::collections::BTreeSet;

use tamis_abi::{Action, ActionKind, Arch, Endian, SeccompData, Word};
use tamis_bpf::{AluOp, Insn, Op, Operand, Pc, Program, Test, interp};
use tamis_kernel::differential::calls::{Effect, answers, can_make, has_i386};
use tamis_kernel::differential::packets::Packets;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::program::{data, program, with_unused_fields};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

use crate::native;

/// Opcodes whose execution the kernel confirmed, branches once for each outcome.
type Confirmed = BTreeSet<(u16, Option<bool>)>;

/// Compares the results for all calls. The instructions executed on the path to a return that does not kill are added
/// to `confirmed`.
fn agree(program: &Program, calls: &[SeccompData], confirmed: &mut Confirmed) {
    let answers = answers(&[program.insns()], calls).expect("the kernel can be asked");
    assert_eq!(answers.len(), calls.len());
    for answer in answers {
        let mut trace = Vec::new();
        let run = interp::run_traced(program, &answer.call, &mut |pc| trace.push(pc));
        assert_eq!(
            Effect::of_ret(run.ret),
            answer.outcome,
            "{:#x} for {:x?} from {:?}",
            run.ret,
            answer.call,
            program.insns()
        );
        if !matches!(answer.outcome, Effect::ProcessKilled | Effect::ThreadKilled) {
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

/// Inputs that cover a program's branches, from calls that this machine can make.
fn inputs(rng: &mut Rng, program: &Program, has_i386: bool, count: usize) -> Vec<SeccompData> {
    let drawn = std::iter::repeat_with(|| data(rng, program));
    // Programs and calls are drawn for x86-64.
    let drawn = drawn.map(|call| match native() {
        Arch::X86_64 => call,
        native => SeccompData {
            arch: native.audit(),
            ..call
        },
    });
    let is_here = |call: &SeccompData| has_i386 || call.arch != Arch::X86.audit();
    let made = drawn.filter(|call| can_make(call) && is_here(call));
    made.take(count).collect()
}

#[test]
fn on_generated_programs() {
    const ALL_PROGRAMS: usize = 2500;
    skip::unless_kernel();
    let programs = seeds::unless_emulated(ALL_PROGRAMS);
    const CALLS: usize = 6;
    let mut rng = Rng::new(0x7669_6d21);
    let mut confirmed = Confirmed::new();
    let has_i386 = has_i386();
    // Few programs may leave out an outcome; then more are drawn.
    for index in 0..ALL_PROGRAMS {
        if index >= programs && unseen(&confirmed).is_none() {
            break;
        }
        let body_insns = rng.range(0..=if index % 20 == 0 { 300 } else { 24 }) as usize;
        let plain = program(&mut rng, body_insns, Endian::Little);
        let noisy = with_unused_fields(&mut rng, &plain);
        let program = Program::new(noisy, Endian::Little).expect("unused fields do not matter");
        let calls = inputs(&mut rng, &program, has_i386, CALLS);
        agree(&program, &calls, &mut confirmed);
    }
    if let Some((code, outcome)) = unseen(&confirmed) {
        panic!("{code:#06x} {outcome:?} not seen");
    }
}

/// The first code and outcome of an instruction that no call has executed.
fn unseen(confirmed: &Confirmed) -> Option<(u16, Option<bool>)> {
    let is_known = |code: &u16| {
        let insn = Insn {
            code: *code,
            ..Insn::default()
        };
        insn.op().is_some()
    };
    let outcomes = (0..=u16::MAX).filter(is_known).flat_map(|code| {
        let is_branch = code & 7 == 5 && code != 5;
        let outcomes: &[Option<bool>] = match is_branch {
            true => &[Some(true), Some(false)],
            false => &[None],
        };
        outcomes.iter().map(move |outcome| (code, *outcome))
    });
    outcomes.into_iter().find(|one| !confirmed.contains(one))
}

#[test]
fn on_the_edges_of_arithmetic() {
    skip::unless_kernel();
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
            arch: native().audit(),
            ip: 0,
            args: [a, x, 0, 0, 0, 0],
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
            let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
            agree(&program, &calls, &mut Confirmed::new());
        }
    }
}

#[test]
fn every_action_with_every_kind_of_data() {
    skip::unless_kernel();
    // The program returns the call's first argument.
    let ops = [Op::LoadData(16), Op::RetA];
    let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
    let kinds = ActionKind::ALL.map(|kind| kind.ret() >> 16);
    let unknown = [1, 4, 6, 0x1234, 0x7fbf, 0x7fc1, 0x7ffe, 0x8001, 0xffff];
    let mut calls = Vec::new();
    for upper in kinds.into_iter().chain(unknown) {
        for low in [0, 1, 38, 39, 4001, 4095, 4096, 0x7fff, 0xffff] {
            calls.push(SeccompData {
                nr: 0x1_f000,
                arch: native().audit(),
                ip: 0,
                args: [u64::from(upper << 16 | low), 0, 0, 0, 0, 0],
            });
        }
    }
    agree(&program, &calls, &mut Confirmed::new());
}

/// A filter that allows all but a few numbers is tested with every number, without executing calls.
#[test]
fn every_number_of_every_table() {
    skip::unless_kernel();
    let branch = |k, jt, jf| Op::branch(Test::Ge, k, jt, jf);
    let ops = [
        Op::LoadData(0),
        branch(0x8000_0000, 3, 0),
        branch(0x4000_0000, 3, 0),
        Op::Alu(AluOp::And, Operand::K(7)),
        Op::Alu(AluOp::Or, Operand::K(Action::errno(1024).ret())),
        Op::RetA,
        Op::RetImm(Action::ALLOW.ret()),
    ];
    let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
    let bases = [
        0,
        0x4000_0000,
        0x3fff_ff00,
        0x7fff_ff00,
        0x8000_0000,
        0xffff_fe00,
    ];
    let numbers = bases.into_iter().flat_map(|base| base..=base + 511);
    let arches: &[Arch] = if has_i386() {
        &[Arch::X86_64, Arch::X86]
    } else {
        &[native()]
    };
    let mut calls = Vec::new();
    for nr in numbers {
        for arch in arches {
            let args = [u64::MAX, 0, 1, 1 << 32, 1 << 63, 0x7fff_ffff];
            calls.push(SeccompData {
                nr,
                arch: arch.audit(),
                ip: 0,
                args,
            });
        }
    }
    calls.retain(can_make);
    agree(&program, &calls, &mut Confirmed::new());
}

/// As socket filters, programs can run with any architecture and instruction pointer.
#[test]
fn as_filters_of_sockets() {
    let programs = seeds::unless_emulated(4000);
    const INPUTS: usize = 12;
    let packets = Packets::new().unwrap_or_else(|error| skip::because(Need::Live, error));
    let mut rng = Rng::new(0x736f_636b);
    let mut refuted = 0;
    for index in 0..programs {
        let body_insns = rng.range(0..=if index % 20 == 0 { 300 } else { 24 }) as usize;
        let program = program(&mut rng, body_insns, Endian::Little);
        let near = Neighbourhood::from_programs(&[&program]);
        for _ in 0..INPUTS {
            let mut call = near.draw(&mut rng);
            if rng.chance(1, 2) {
                let word = *rng.choose(&Word::all().collect::<Vec<Word>>());
                call = call.with_word(word, rng.next_u32());
            }
            let image = call.image(Endian::Little);
            let ret = interp::run(&program, &call).ret;
            let returns = |ret| {
                packets
                    .returns(&program, ret, [&image])
                    .expect("it can be asked")
            };
            assert_eq!(
                returns(ret),
                [true],
                "{ret:#x} for {call:x?} from {:?}",
                program.insns()
            );
            // The method can detect a difference.
            let other = ret ^ 1 << rng.range(0..=31);
            assert_eq!(
                returns(other),
                [false],
                "{other:#x} for {call:x?} from {:?}",
                program.insns()
            );
            refuted += 1;
        }
    }
    println!("{refuted} pairs of program and input");
}
