//! Socket programs with repeated loads, like those of `tcpdump`: removed code has no effect, values that stay in the
//! order of the packet's bytes are compared in that order, and packets that end between two loads end the program
//! correctly.

use tamis_bpf::packet::{Ancillary, Extra, Load, Metadata, Op, Packet, Program, Size};
use tamis_bpf::{AluOp, Operand, Test, interp};
use tamis_jit::{Options, Socket};
use tamis_testkit::guarded::Guarded;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

use super::agreement::unless_jit;

/// The places of packets that programs look at, the same in the link layer's area, and places that are nowhere.
const PLACES: [u32; 6] = [2, 3, 4, 0xffe0_0003, 0xfff0_0001, 0x8000_0000];

/// The ancillary values of packets from a device.
const WITH_DEVICE: Metadata = Metadata::NONE.with(Ancillary::InterfaceIndex, 0x0800);

/// An instruction that has often been run before, in front of so many others.
fn op(rng: &mut Rng, behind: usize) -> Op {
    let size = *rng.choose(&Size::ALL);
    let places = if rng.chance(1, 8) { 6 } else { 3 };
    let place = *rng.choose(&PLACES[..places]);
    let slot = rng.range(0..=1) as u32;
    let constant = *rng.choose(&[0, 8, 0x0800, 0x0008, 0x10800, 0x0800_0000, 0x1234_5678]);
    match rng.range(0..=29) {
        0..=3 => Op::LoadData(Load::Absolute(size, place)),
        4 | 24 | 25 => Op::LoadData(Load::Indexed(size, place)),
        5 | 6 => Op::Extra(Extra::LoadXHeaderLen(place)),
        7 | 8 => Op::Alu(AluOp::And, Operand::K(*rng.choose(&[15, 0xff, 0xf0]))),
        9 | 10 => Op::Alu(AluOp::Lsh, Operand::K(*rng.choose(&[2, 1, 31]))),
        11 => Op::Tax,
        12 => Op::Txa,
        13 => Op::Store(slot),
        14 => Op::StoreX(slot),
        15 => Op::LoadMem(slot),
        16 => Op::LoadXMem(slot),
        17 => Op::Alu(AluOp::Sub, Operand::X),
        18 => Op::RetA,
        22 => Op::RetImm(0),
        23 => Op::RetImm(*rng.choose(&[0, 0, 7])),
        26 => Op::LoadXImm(*rng.choose(&[0, 0, 1, 4, 8, 0xffff_fffe, 0x7fff_ffff])),
        27 => Op::LoadXLen,
        28 => {
            let one = *rng.choose(&[Ancillary::XorX, Ancillary::InterfaceIndex]);
            Op::LoadData(Load::Ancillary(size, one))
        }
        29 => Op::Extra(Extra::Mod(Operand::K(*rng.choose(&[3, 4, 0x1000])))),
        _ => {
            let test = *rng.choose(&[Test::Eq, Test::Eq, Test::Set, Test::Ge]);
            let operand = match rng.chance(1, 6) {
                true => Operand::X,
                false => Operand::K(constant),
            };
            let mut skip = || rng.range(0..=(behind.min(6) as u64 - 1)) as u8;
            Op::Branch {
                test,
                operand,
                jt: skip(),
                jf: skip(),
            }
        }
    }
}

fn program(rng: &mut Rng) -> Program {
    // Slots are written before they are read.
    let mut ops = vec![Op::Store(0), Op::StoreX(1)];
    let len = rng.range(4..=30) as usize;
    while ops.len() < len {
        ops.push(op(rng, len - ops.len()));
    }
    ops.push(*rng.choose(&[Op::RetA, Op::RetA, Op::RetImm(0), Op::RetImm(9)]));
    Program::from_ops(&ops).expect("jumps end inside, slots are written")
}

#[test]
fn programs_that_repeat_themselves_return_the_same() {
    unless_jit();
    let mut guarded = Guarded::page();
    let (mut evaluations, mut others) = (0, 0);
    for seed in seeds::selected(0..16_000) {
        let mut rng = Rng::new(seed);
        let program = program(&mut rng);
        let options = Options {
            harden: rng.chance(1, 8).then_some(seed),
        };
        let compiled = Socket::compile(&program, &options).expect("short enough");
        for _ in 0..24 {
            let len = *rng.choose(&[0, 3, 4, 5, 6, 7, 8, 9, 10, 12, 64]);
            let bytes: Vec<u8> = (0..len)
                .map(|_| *rng.choose(&[0, 8, 0, 8, 0x45, 0xff, 1]))
                .collect();
            let packet = Packet {
                network_start: rng.range(0..=4) as u32,
                len_bytes: *rng.choose(&[len, 8, 0xffff_fffe]),
                metadata: rng.choose(&[Metadata::NONE, WITH_DEVICE]),
                ..Packet::new(guarded.at_end(&bytes))
            };
            let ret = interp::run_packet(&program, &packet).ret;
            let found = compiled.run(&packet);
            assert_eq!(found, ret, "seed {seed}: {bytes:x?} {program:?}");
            evaluations += 1;
            others += u32::from(ret != 0);
        }
    }
    println!("{evaluations} evaluations, {others} with another value than 0");
    assert!(others > evaluations / 10);
}
