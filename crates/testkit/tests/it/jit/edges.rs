//! Packets that end just before, at and after the last byte that a load tests: every length from 0 on, with
//! inaccessible pages before and after the bytes. Places are computed from an X near 2^31 and 2^32 too, and X changes
//! between loads, so that tests on behalf of the old X don't apply to the new one.

use tamis_bpf::packet::{Extra, Load, Op, Packet, Program, Size};
use tamis_bpf::{AluOp, Operand, Test, interp};
use tamis_jit::{Options, Socket};
use tamis_testkit::guarded::Guarded;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_vm::threaded::Threaded;

use super::agreement::unless_jit;

/// The first offsets of the link layer's area and of the network layer's.
const LINK: u32 = 0xffe0_0000;
const NETWORK: u32 = 0xfff0_0000;

/// Runs programs on the first bytes of a packet and counts the evaluations.
struct Judge {
    guarded: Guarded,
    evaluations: u32,
    /// Those with another value than 0.
    others: u32,
}

fn program(ops: &[Op]) -> Program {
    Program::from_ops(ops).unwrap_or_else(|problem| panic!("{problem}: {ops:?}"))
}

impl Judge {
    fn new() -> Judge {
        Judge {
            guarded: Guarded::page(),
            evaluations: 0,
            others: 0,
        }
    }

    /// Runs a program on the first bytes of a packet, for every count of them, and compares the engines with the
    /// reference.
    fn agree_at_every_length(&mut self, program: &Program, whole: &Packet<'_>) {
        let compile = |harden| Socket::compile(program, &Options { harden }).expect("short enough");
        let (plain, hardened) = (compile(None), compile(Some(5)));
        let threaded = Threaded::packet(program);
        for len in 0..=whole.bytes.len() {
            for is_at_end in [true, false] {
                let packet = Packet {
                    bytes: self.guarded.at(is_at_end, &whole.bytes[..len]),
                    ..*whole
                };
                let expected = interp::run_packet(program, &packet).ret;
                let found = [
                    plain.run(&packet),
                    hardened.run(&packet),
                    threaded.run(&packet),
                ];
                assert_eq!(
                    found, [expected; 3],
                    "plain, hardened, threaded; at the end: {is_at_end}; {packet:x?}\n{program:x?}"
                );
                self.evaluations += 1;
                self.others += u32::from(expected != 0);
            }
        }
    }

    /// Prints the counts; at least one in so many evaluations must have another value than 0.
    fn finish(self, one_in: u32) {
        let Judge {
            evaluations,
            others,
            ..
        } = self;
        println!("{evaluations} evaluations, {others} with another value than 0");
        assert!(others > evaluations / one_in);
    }
}

/// Of how many of the first lengths a program returns something else than 0; the engines agree on each.
fn accepted(ops: &[Op]) -> Vec<usize> {
    let bytes: Vec<u8> = (1..=80).collect();
    let program = program(ops);
    let packet = Packet::new(&bytes);
    Judge::new().agree_at_every_length(&program, &packet);
    let is_accepted = |len: &usize| {
        let packet = Packet {
            bytes: &bytes[..*len],
            ..packet
        };
        interp::run_packet(&program, &packet).ret != 0
    };
    (0..=bytes.len()).filter(is_accepted).collect()
}

/// The lengths from a first one on.
fn from(first: usize) -> Vec<usize> {
    (first..=80).collect()
}

/// No length.
fn never() -> Vec<usize> {
    Vec::new()
}

const fn byte(k: u32) -> Op {
    Op::LoadData(Load::Absolute(Size::Byte, k))
}

const fn half(k: u32) -> Op {
    Op::LoadData(Load::Absolute(Size::Half, k))
}

const fn word(k: u32) -> Op {
    Op::LoadData(Load::Absolute(Size::Word, k))
}

const fn at_x(size: Size, k: u32) -> Op {
    Op::LoadData(Load::Indexed(size, k))
}

const fn header_len(k: u32) -> Op {
    Op::Extra(Extra::LoadXHeaderLen(k))
}

const fn equals(k: u32, jt: u8, jf: u8) -> Op {
    Op::Branch {
        test: Test::Eq,
        operand: Operand::K(k),
        jt,
        jf,
    }
}

#[test]
fn what_is_asked_for_ahead_ends_no_packet_that_is_long_enough() {
    unless_jit();
    let yes = Op::RetImm(7);
    // The farthest load decides if all are made.
    assert_eq!(accepted(&[byte(3), half(20), word(8), yes]), from(22));
    // The bytes count from 1: byte 12 is 13. The other path returns 0, or tests more, or less.
    let either = |no: &[Op]| accepted(&[&[byte(12), equals(13, 0, 2), half(20), yes], no].concat());
    assert_eq!(either(&[Op::RetImm(0)]), from(22));
    assert_eq!(either(&[word(40), yes]), from(22));
    assert_eq!(either(&[byte(2), yes]), from(22));
    // A way that the packet takes returns another value without a load, or A.
    let short = |last: Op| accepted(&[byte(12), equals(13, 1, 0), word(40), last]);
    assert_eq!(short(yes), from(13));
    assert_eq!(short(Op::RetA), from(13));
    // Both areas of the same bytes.
    let both_areas = [byte(LINK + 12), byte(23), half(LINK + 20), yes];
    assert_eq!(accepted(&both_areas), from(24));
    // The network layer begins at 14.
    assert_eq!(accepted(&[byte(3), byte(NETWORK + 9), yes]), from(24));
    // Impossible loads.
    assert_eq!(accepted(&[byte(3), byte(0x8000_0000), yes]), never());
    assert_eq!(accepted(&[byte(3), word(0x7fff_fffd), yes]), never());
}

#[test]
fn the_header_length_may_be_the_last_byte() {
    unless_jit();
    // X is 4 * (k + 1 & 15).
    for k in [0, 1, 14, 63] {
        let end = k as usize + 1;
        let x = 4 * (end & 15);
        assert_eq!(accepted(&[header_len(k), Op::RetImm(7)]), from(end));
        let behind = |size: Size| end.max(x + size.bytes() as usize);
        for size in Size::ALL {
            let load = [header_len(k), at_x(size, 0), Op::RetImm(7)];
            assert_eq!(accepted(&load), from(behind(size)), "{k}");
        }
        assert_eq!(
            accepted(&[header_len(LINK + k), byte(k), Op::RetImm(7)]),
            from(end)
        );
    }
}

/// Each load of another X between two loads at X: the second may lie before or behind the first.
#[test]
fn what_was_asked_for_from_x_ends_with_x() {
    unless_jit();
    let set_slot = |x: u32| [Op::LoadXImm(x), Op::StoreX(3)];
    let after = |old: u32, new: Op, first: u32, second: u32, x: u32| {
        let mut ops = set_slot(x).to_vec();
        ops.extend([
            Op::LoadXImm(old),
            at_x(Size::Byte, first),
            new,
            at_x(Size::Byte, second),
            Op::RetImm(7),
        ]);
        accepted(&ops)
    };
    for (old, x) in [(8, 0), (0, 8), (8, 24), (24, 8)] {
        // The byte at `x / 4 + 15` is one more, which has x / 4 in its lower four bits.
        let ways = [Op::LoadXImm(x), Op::LoadXMem(3), header_len(x / 4 + 15)];
        for new in ways {
            for (first, second) in [(0, 4), (4, 0), (0, 0), (2, 2)] {
                let end = (old + first + 1).max(x + second + 1);
                let end = match new {
                    Op::Extra(_) => end.max(x / 4 + 16),
                    _ => end,
                };
                let found = after(old, new, first, second, x);
                assert_eq!(found, from(end as usize), "{old} {new:?} {first} {second}");
            }
        }
        // The byte at X is one more than X.
        let found = after(old, Op::Tax, 0, 4, x);
        assert_eq!(found, from(old as usize + 6), "{old}");
    }
    // The whole length is that of the packet, possibly more than captured.
    let from_end = |k: u32| accepted(&[Op::LoadXLen, at_x(Size::Byte, k), Op::RetImm(7)]);
    assert_eq!(from_end(0_u32.wrapping_sub(80)), from(1));
    assert_eq!(from_end(0_u32.wrapping_sub(1)), [80]);
    assert_eq!(from_end(0), never());
}

/// X + k is computed modulo 2^32, and then is a place in one of the areas or none.
#[test]
fn places_near_the_ends_of_all_areas() {
    unless_jit();
    let edges = [0, 0x8000_0000, LINK, NETWORK, 0xffff_f000];
    let mut numbers: Vec<u32> = edges
        .iter()
        .flat_map(|edge: &u32| (0..5).map(move |step| edge.wrapping_sub(2).wrapping_add(step)))
        .collect();
    numbers.extend([20, 0x10_0000, 0x7ff0_0000, 0x4000_0000]);
    let mut judge = Judge::new();
    let bytes = [9, 8, 7, 6, 5, 4, 3, 2];
    let sum = [Op::Alu(AluOp::Add, Operand::X), Op::RetA];
    // The loaded number as X, a little before which another is.
    let again = [Op::Tax, at_x(Size::Byte, 0_u32.wrapping_sub(4))];
    for network_start in [0, 3, 0xffff_ffff] {
        let packet = Packet {
            network_start,
            ..Packet::new(&bytes)
        };
        for (index, x) in numbers.iter().enumerate() {
            for (k, size) in numbers.iter().zip(Size::ALL.iter().cycle().skip(index)) {
                let load = [Op::LoadXImm(*x), at_x(*size, *k)];
                let once = program(&[load, sum].concat());
                judge.agree_at_every_length(&once, &packet);
                if index % 5 == 0 {
                    let twice = program(&[load, again, sum].concat());
                    judge.agree_at_every_length(&twice, &packet);
                }
            }
        }
    }
    judge.finish(20);
}

/// A number at an edge of areas or of the lengths of packets.
fn edge(rng: &mut Rng) -> u32 {
    let edge = *rng.choose(&[0, 0, 0, 0, 4, 8, 0x8000_0000, LINK, NETWORK]);
    match rng.chance(1, 3) {
        true => edge.wrapping_sub(rng.range(1..=8) as u32),
        false => edge + rng.range(0..=8) as u32,
    }
}

/// An instruction in front of `behind` others: mostly loads, and changes of X between them.
fn random_op(rng: &mut Rng, behind: usize) -> Op {
    let size = *rng.choose(&Size::ALL);
    let near = rng.range(0..=7) as u32;
    let slot = rng.range(0..=1) as u32;
    match rng.range(0..=27) {
        0..=3 => at_x(size, near),
        4..=6 => at_x(size, edge(rng)),
        7..=9 => Op::LoadData(Load::Absolute(size, near)),
        // From 0xfffff000 on a fixed place would be a value beside the packet.
        10 => Op::LoadData(Load::Absolute(size, edge(rng).min(0xffff_efff))),
        11 | 12 => header_len(near),
        13 | 14 => Op::LoadXImm(near),
        15 => Op::LoadXImm(edge(rng)),
        16 => Op::LoadXMem(slot),
        17 => Op::LoadXLen,
        18 | 19 => Op::Tax,
        20 => Op::StoreX(slot),
        21 => Op::Alu(AluOp::And, Operand::K(7)),
        22 => Op::RetImm(*rng.choose(&[0, 0, 7])),
        23 => Op::RetA,
        24 => Op::LoadMem(slot),
        _ => {
            let mut skip = || rng.range(0..=(behind.min(5) as u64 - 1)) as u8;
            let (jt, jf) = (skip(), skip());
            let test = *rng.choose(&Test::ALL);
            let operand = match rng.chance(1, 4) {
                true => Operand::X,
                false => Operand::K(*rng.choose(&[0, 2, 4, 0x0204])),
            };
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            }
        }
    }
}

#[test]
fn random_programs_agree_at_every_length() {
    unless_jit();
    let mut judge = Judge::new();
    for seed in seeds::selected(0..24_000) {
        let mut rng = Rng::new(seed);
        let len_insns = rng.range(5..=18) as usize;
        let mut ops = vec![Op::Store(0), Op::LoadXImm(edge(&mut rng)), Op::StoreX(1)];
        while ops.len() < len_insns {
            ops.push(random_op(&mut rng, len_insns - ops.len()));
        }
        ops.push(*rng.choose(&[Op::RetA, Op::RetImm(0), Op::RetImm(9)]));
        let bytes = [0; 12].map(|_: u8| rng.range(0..=5) as u8);
        let packet = Packet {
            network_start: *rng.choose(&[0, 2, 5, 0xffff_ffff]),
            len_bytes: *rng.choose(&[12, 12, 20, 0xffff_fffc]),
            ..Packet::new(&bytes)
        };
        judge.agree_at_every_length(&program(&ops), &packet);
    }
    judge.finish(10);
}
