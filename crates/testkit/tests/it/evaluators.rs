//! The fast evaluators return the same as the reference interpreter, one of them records the executed instructions, and the
//! translation of a ruleset is equivalent to the ruleset.

use std::collections::BTreeSet;

use tamis_abi::{Endian, SeccompData, Word};
use tamis_bpf::packet::{self as sockets, Load, Packet};
use tamis_bpf::{AluOp, Op, Operand, Program, Test, interp};
use tamis_fuzz::{Dictionary, translate};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_testkit::agreement::assert_evaluators;
use tamis_testkit::corpus;
use tamis_testkit::generate::packet;
use tamis_testkit::generate::program::{data, program};
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_vm::threaded::Threaded;

fn inputs(program: &Program, seed: u64, count: usize) -> Vec<SeccompData> {
    let dictionary = Dictionary::from_programs([program]);
    let mut rng = Rng::new(seed);
    (0..count).map(|_| dictionary.draw(&mut rng)).collect()
}

/// Lists of comparisons, some of them with entries in the middle.
fn lists(rng: &mut Rng) -> Program {
    let mut ops = vec![Op::LoadData(0)];
    if rng.chance(1, 2) {
        ops.push(Op::Alu(AluOp::And, Operand::K(63)));
    }
    let longest = *rng.choose(&[3, 40]);
    for _ in 0..rng.range(1..=longest) {
        let far = |rng: &mut Rng| rng.range(0..=12) as u8;
        let is_eq = rng.chance(9, 10);
        ops.push(Op::branch(
            if is_eq { Test::Eq } else { Test::Gt },
            rng.range(0..=50) as u32,
            far(rng),
            if rng.chance(1, 10) { far(rng) } else { 0 },
        ));
        if rng.chance(1, 20) {
            ops.push(Op::LoadData(4 * rng.range(0..=2) as u32));
        }
    }
    ops.extend((0..14).map(|ret| Op::RetImm(0x0005_0000 + ret)));
    Program::from_ops(&ops, Endian::Little).expect("jumps end in returns")
}

#[test]
fn on_lists_of_comparisons() {
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let program = lists(&mut rng);
        let inputs = (0..300).map(|_| {
            let data = SeccompData::default();
            let value = |rng: &mut Rng| rng.range(0..=52) as u32;
            let data = data.with_word(Word::NR, value(&mut rng));
            let data = data.with_word(Word::ARCH, value(&mut rng));
            data.with_word(Word::IP_LOW, value(&mut rng))
        });
        assert_evaluators(&program, inputs.collect());
    }
}

#[test]
fn on_the_corpus() {
    check_all(corpus::all_programs());
}

#[test]
fn on_shapes_of_the_corpus() {
    check_all(shape::programs());
}

fn check_all(programs: Vec<(String, Program)>) {
    for (_, program) in programs {
        let inputs = inputs(&program, 1, 300);
        assert_evaluators(&program, inputs);
    }
}

#[test]
fn on_generated_programs() {
    let mut rng = Rng::new(0x7468_7265);
    for _ in 0..seeds::share(3000) {
        let body_insns = rng.range(0..=60) as usize;
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let program = program(&mut rng, body_insns, endian);
        let inputs = (0..20).map(|_| data(&mut rng, &program));
        assert_evaluators(&program, inputs.collect());
    }
}

/// Ports behind a header, in any order.
#[test]
fn on_lists_behind_headers() {
    let mut rng = Rng::new(0x706f_7274);
    for _ in 0..500 {
        let load = Load::Indexed(*rng.choose(&[sockets::Size::Byte, sockets::Size::Half]), 1);
        let mut ops = vec![
            sockets::Op::Extra(sockets::Extra::LoadXHeaderLen(0)),
            sockets::Op::LoadData(load),
        ];
        let count = rng.range(1..=8) as u8;
        for _ in 0..count {
            ops.push(sockets::Op::branch(
                Test::Eq,
                rng.range(0..=9) as u32,
                count - 1,
                0,
            ));
        }
        ops.extend((0..=u32::from(count)).map(sockets::Op::RetImm));
        let program = sockets::Program::from_ops(&ops).expect("jumps end in returns");
        let threaded = Threaded::packet(&program);
        for value in 0..=10 {
            let bytes = [1, 0, 0, 0, 0, value, value];
            let packet = Packet::new(&bytes);
            let ret = interp::run_packet(&program, &packet).ret;
            assert_eq!(threaded.run(&packet), ret, "{value} {program:?}");
        }
    }
}

#[test]
fn on_generated_programs_of_sockets() {
    let mut rng = Rng::new(0x7061_636b);
    for _ in 0..seeds::share(5000) {
        let body_insns = rng.range(0..=60) as usize;
        let program = packet::program(&mut rng, body_insns);
        let threaded = Threaded::packet(&program);
        for _ in 0..20 {
            let bytes = packet::bytes(&mut rng, &program);
            let packet = Packet {
                network_start: rng.range(0..=20) as u32,
                len_bytes: rng.next_u32(),
                ..packet::from_anywhere(&mut rng, &bytes)
            };
            let ret = interp::run_packet(&program, &packet).ret;
            assert_eq!(threaded.run(&packet), ret, "{packet:x?} {program:?}");
        }
    }
}

#[test]
fn the_plain_form_of_a_ruleset_means_the_same() {
    const QUICK: Limits = Limits {
        max_nodes: 200_000,
        max_steps: 2_000_000,
        max_states: 20_000,
        max_paths: 10_000,
        max_gates: 200_000,
        max_conflicts: 2_000,
    };
    let mut answers = BTreeSet::new();
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let size = *rng.choose(&[Size::SMALL, Size::ARGUMENTS]);
        // The words are in the layout of little-endian machines, whatever the architectures.
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let ruleset = ruleset(&mut rng, size, endian);
        let plain = translate(&ruleset).expect("short enough");
        for _ in 0..100 {
            let data = call(&mut rng, &ruleset);
            let run = interp::run(&plain, &data);
            assert_eq!(
                run.ret,
                ruleset.decide(&data).action.ret(),
                "{data:x?}\n{ruleset}"
            );
        }
        let program = Subject::Program(&plain);
        let answer = decide(&Subject::Ruleset(&ruleset), &program, &QUICK);
        assert!(
            !matches!(answer, Answer::Different { .. }),
            "{answer:?}\n{ruleset}"
        );
        answers.insert(matches!(answer, Answer::Equal(_)));
    }
    assert!(answers.contains(&true), "some are proved");
}
