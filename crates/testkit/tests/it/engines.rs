//! All engines give the values of the reference interpreter.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::packet::{self as sockets, Ancillary, Packet};
use tamis_bpf::{Op, Pc, Program, Stack, interp};
use tamis_engine::{Engine, Error, Evaluator, Options, PacketEvaluator, Reason};
use tamis_testkit::corpus;
use tamis_testkit::generate::packet;
use tamis_testkit::generate::program::{data, program};
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// Every engine that is there, with and without a table, hardened and not.
fn all_options() -> Vec<Options> {
    let mut all = Vec::new();
    for engine in Engine::ALL {
        if engine == Engine::Jit && tamis_jit::probe().is_err() {
            continue;
        }
        for (is_cached, harden) in [(false, None), (true, None), (true, Some(7))] {
            all.push(Options {
                engine,
                is_cached,
                harden,
                evaluations: None,
            });
        }
    }
    all
}

/// Runs calls on all engines and returns the number of evaluations.
fn agreed(stack: &Stack, calls: &[SeccompData]) -> usize {
    let mut evaluations = 0;
    for options in all_options() {
        let evaluator = Evaluator::new(stack, &options).expect("it is there");
        for call in calls {
            let ret = stack.run(call).ret;
            assert_eq!(evaluator.run(call), ret, "{options:?} {call:x?} {stack:?}");
            evaluations += 1;
        }
    }
    evaluations
}

#[test]
fn on_generated_stacks() {
    let mut rng = Rng::new(0x656e_6769);
    let mut evaluations = 0;
    for _ in 0..seeds::share(400) {
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let programs: Vec<Program> = (0..rng.range(0..=3))
            .map(|_| {
                let body_insns = rng.range(0..=40) as usize;
                program(&mut rng, body_insns, endian)
            })
            .collect();
        let calls: Vec<SeccompData> = programs
            .iter()
            .flat_map(|program| (0..12).map(|_| data(&mut rng, program)).collect::<Vec<_>>())
            .collect();
        evaluations += agreed(&Stack::new(programs).expect("one byte order"), &calls);
    }
    println!("{evaluations} evaluations");
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
    let mut rng = Rng::new(0x636f_7270);
    let mut evaluations = 0;
    for (_, program) in programs {
        if program.is_installable() {
            let calls: Vec<SeccompData> = (0..40).map(|_| data(&mut rng, &program)).collect();
            evaluations += agreed(&Stack::from(program), &calls);
        }
    }
    println!("{evaluations} evaluations");
}

#[test]
fn on_generated_packets() {
    let mut rng = Rng::new(0x7061_636b);
    let known = packet::answered();
    for _ in 0..seeds::share(1000) {
        let body_insns = rng.range(0..=40) as usize;
        let program = packet::program(&mut rng, body_insns);
        // Sometimes more than a batch looks ahead.
        let count = *rng.choose(&[10, 10, 10, 60]);
        let bytes: Vec<Vec<u8>> = (0..count)
            .map(|_| packet::bytes(&mut rng, &program))
            .collect();
        let packets: Vec<Packet<'_>> = bytes
            .iter()
            .map(|bytes| packet::from_anywhere(&mut rng, bytes))
            .collect();
        let expected: Vec<u32> = packets
            .iter()
            .map(|packet| interp::run_packet(&program, packet).ret)
            .collect();
        for options in all_options() {
            let evaluator = PacketEvaluator::new(&program, &known, &options).expect("it is there");
            let rets: Vec<u32> = packets.iter().map(|packet| evaluator.run(packet)).collect();
            assert_eq!(rets, expected, "{options:?} {program:?}");
            assert_eq!(
                evaluator.run_batch(&packets),
                expected,
                "{options:?} {program:?}"
            );
        }
    }
}

/// The longest path of a program that the kernel takes: without optimisation the threaded interpreter's calls nest.
#[test]
fn the_longest_programs_run() {
    let mut insns = vec![Op::Neg.into(), Op::Tax.into(), Op::Txa.into()];
    while insns.len() < Program::MAX_INSNS - 2 {
        insns.push(Op::branch(tamis_bpf::Test::Eq, 9, 0, 0).into());
        insns.push(Op::Neg.into());
    }
    insns.truncate(Program::MAX_INSNS - 2);
    insns.extend([Op::RetImm(5), Op::RetA].map(tamis_bpf::Insn::from));
    let program = Program::new(insns, Endian::Little).expect("legal");
    assert_eq!(
        agreed(&Stack::from(program), &[SeccompData::default()]),
        all_options().len()
    );
}

/// The error of a program that no engine runs is the same for all.
#[test]
fn a_program_that_is_too_long_is_refused_by_all() {
    let mut insns = vec![Op::Tax.into(); Program::MAX_INSNS];
    insns.push(Op::RetA.into());
    let long = Program::new(insns, Endian::Little).expect("legal but for its length");
    let stack = Stack::new(vec![
        Program::new(vec![Op::RetA.into()], Endian::Little).unwrap(),
        long,
    ]);
    let stack = stack.expect("one byte order");
    for options in all_options() {
        let error = Evaluator::new(&stack, &options).unwrap_err();
        let is_too_long = matches!(
            error,
            Error::TooLong {
                filter: 1,
                len_insns: 4097
            }
        );
        assert!(is_too_long, "{options:?}: {error}");
    }
}

#[test]
fn what_nobody_knows_of_a_packet_is_refused_by_name() {
    let load = sockets::Load::Ancillary(sockets::Size::Word, Ancillary::Random);
    let insns = vec![sockets::Op::LoadData(load).into(), sockets::Op::RetA.into()];
    let program = sockets::Program::new(insns).expect("legal");
    for options in all_options() {
        let error = PacketEvaluator::new(&program, &[Ancillary::Mark], &options).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Unanswered {
                    pc: Pc(0),
                    ancillary: Ancillary::Random
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains("#rand"), "{error}");
    }
}

#[test]
fn auto_says_what_it_picked() {
    let program = Program::new(vec![Op::RetA.into()], Endian::Little).unwrap();
    let picked = |evaluations| {
        let options = Options {
            evaluations,
            ..Options::default()
        };
        let evaluator = Evaluator::new(&Stack::from(program.clone()), &options).unwrap();
        let choice = evaluator.choice();
        let reason = matches!(choice.reason, Reason::FewEvaluations { .. });
        (choice.engine, reason, choice.to_string())
    };
    assert_eq!(
        picked(Some(10)),
        (
            Engine::Threaded,
            true,
            "threaded, as 10 evaluations don't pay for machine code".to_owned()
        )
    );
    let many = picked(None);
    let expected = match tamis_jit::probe() {
        Ok(()) => Engine::Jit,
        Err(_) => Engine::Threaded,
    };
    assert_eq!((many.0, many.1), (expected, false), "{}", many.2);
}
