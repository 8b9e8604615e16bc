//! Filters of sockets: the checker and the interpreter agree with the running kernel.

use tamis_bpf::packet::{self, Ancillary, LINK_OFFSET, Load, Op, Program, Size, problems};
use tamis_bpf::{Insn, interp};
use tamis_kernel::Errno;
use tamis_kernel::differential::CheckerAnswer;
use tamis_kernel::differential::packets::Packets;
use tamis_prover::{Limits, Stop, agree_on_packets};
use tamis_testkit::generate::packet::{bytes, local, program};
use tamis_testkit::generate::program::{altered, noise};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

/// A pair of sockets, unless there can be none here.
fn sockets() -> Packets {
    Packets::new().unwrap_or_else(|error| skip::because(Need::Live, error))
}

/// Compares the results for a list and returns whether it is accepted.
fn agreed(sockets: &Packets, insns: &[Insn]) -> bool {
    let problems = problems(insns);
    let expected = match problems.is_empty() {
        true => CheckerAnswer::Accepted,
        false => CheckerAnswer::Refused(Errno(22)),
    };
    assert_eq!(expected, sockets.takes(insns), "{problems:?} in {insns:?}");
    problems.is_empty()
}

#[test]
fn the_checker_on_generated_lists() {
    let sockets = sockets();
    let mut rng = Rng::new(0x736f_636b);
    let (mut lists, mut accepted) = (0, 0);
    for _ in 0..seeds::share(34_000) {
        let body_insns = rng.range(0..=24) as usize;
        let valid = program(&mut rng, body_insns).insns().to_vec();
        let changed = altered(&mut rng, &valid);
        for insns in [valid, changed, noise(&mut rng, body_insns / 4 + 1)] {
            lists += 1;
            accepted += usize::from(agreed(&sockets, &insns));
        }
    }
    println!("{lists} lists, {accepted} accepted");
    assert!((lists / 3..lists - lists / 4).contains(&accepted));
}

#[test]
fn the_checker_on_every_code_with_every_kind_of_constant() {
    let sockets = sockets();
    let ret = Insn::from(Op::RetImm(0));
    let store = Insn::from(Op::Store(0));
    let places = Ancillary::ALL.map(Ancillary::offset);
    let others = [
        0,
        1,
        15,
        16,
        31,
        32,
        64,
        0xffff_eff0,
        0xffff_f001,
        0xffff_f040,
        u32::MAX,
    ];
    for code in (0..0x200).chain([0x1000, 0x8006, 0xff06, u16::MAX]) {
        for k in places.into_iter().chain(others) {
            let (jt, jf) = (0, 0);
            let insn = Insn { code, jt, jf, k };
            agreed(&sockets, &[store, insn, ret]);
        }
    }
}

#[test]
fn the_checker_on_the_longest_lists() {
    let sockets = sockets();
    for len_insns in [0, 1, 4095, 4096, 4097] {
        let mut insns = vec![Insn::from(Op::Tax); len_insns];
        if let Some(last) = insns.last_mut() {
            *last = Op::RetA.into();
        }
        assert_eq!(agreed(&sockets, &insns), (1..=4096).contains(&len_insns));
    }
}

#[test]
fn the_interpreter_on_generated_programs_and_packets() {
    let sockets = sockets();
    let mut rng = Rng::new(0x7061_636b);
    let (mut zeros, mut others) = (0, 0);
    for _ in 0..seeds::share(5000) {
        let body_insns = rng.range(0..=24) as usize;
        let program = program(&mut rng, body_insns);
        let packets: Vec<Vec<u8>> = (0..4).map(|_| bytes(&mut rng, &program)).collect();
        for packet in &packets {
            let ret = interp::run_packet(&program, &local(packet)).ret;
            let returns = |ret| {
                let asked = sockets.returns_on(&program, ret, [packet.as_slice()]);
                asked.expect("it can be asked")
            };
            let insns = program.insns();
            assert_eq!(
                returns(ret),
                [true],
                "{ret:#x} for {packet:x?} from {insns:?}"
            );
            // The method can detect a difference.
            let other = ret ^ 1 << rng.range(0..=31);
            if other != 0 {
                assert_eq!(
                    returns(other),
                    [false],
                    "{other:#x} for {packet:x?} from {insns:?}"
                );
            }
            match ret {
                0 => zeros += 1,
                _ => others += 1,
            }
        }
    }
    println!("{zeros} evaluations with 0, {others} with other values");
    assert!(others > seeds::least(5000));
}

/// The headers of the link layer are not those of the model here: a socket of AF_UNIX has none. Programs that are equal
/// only in the model are not proved equal.
#[test]
fn what_the_kernel_distinguishes_is_not_proved_equal() {
    let sockets = sockets();
    let packet: &[u8] = &[9; 8];
    let [kept, dropped] = [0, LINK_OFFSET].map(|at| {
        let load = Op::LoadData(Load::Absolute(Size::Byte, at));
        Program::from_ops(&[load, Op::RetA]).unwrap()
    });
    let run = |program| interp::run_packet(program, &local(packet)).ret;
    assert_eq!(run(&kept), run(&dropped));
    let is_dropped = |program| sockets.returns_on(program, 0, [packet]).unwrap();
    assert_eq!(is_dropped(&kept), [false]);
    assert_eq!(is_dropped(&dropped), [true]);
    let agree = agree_on_packets(&kept, &dropped, &Limits::default(), &Stop::default());
    assert_eq!(agree, Ok(false));
}

/// A packet of AF_UNIX has no device. The comparison with A is placed before the load, whose early end returns its
/// result.
#[test]
fn a_load_from_no_device_returns_a() {
    let sockets = sockets();
    let packet: &[u8] = &[0x98, 0x76, 0x54, 0x32];
    let loaded = Op::LoadData(Load::Absolute(Size::Word, 0));
    for one in [Ancillary::InterfaceIndex, Ancillary::HardwareType] {
        let device = Op::LoadData(Load::Ancillary(Size::Word, one));
        for (before, ret) in [
            (vec![], 0),
            (vec![Op::LoadImm(5)], 5),
            (vec![loaded], 0x9876_5432),
            (vec![loaded, Op::Tax, Op::LoadImm(0)], 0),
            (vec![Op::LoadImm(u32::MAX), Op::Store(0)], u32::MAX),
        ] {
            let program = [before, vec![device, Op::RetImm(7)]].concat();
            let program = Program::from_ops(&program).unwrap();
            assert_eq!(interp::run_packet(&program, &local(packet)).ret, ret);
            let returns = |ret| sockets.returns_on(&program, ret, [packet]).unwrap();
            assert_eq!(returns(ret), [true], "{program:?}");
            assert_eq!(returns(ret ^ 1), [false], "{program:?}");
            assert_eq!(returns(7), [false], "{program:?}");
        }
    }
}

/// A packet program is none of seccomp, even where its instructions are.
#[test]
fn what_seccomp_takes_sockets_take() {
    let mut rng = Rng::new(0x626f_7468);
    for _ in 0..seeds::share(1000) {
        let insns = noise(&mut rng, 6);
        if let Err(error) = packet::Program::new(insns.clone()) {
            let seccomp = tamis_bpf::validate::problems(&insns);
            // Offsets beyond the 16 words are the packet's business.
            assert!(!seccomp.is_empty(), "{error} in {insns:?}");
        }
    }
}
