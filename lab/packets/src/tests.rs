//! Programs of `tcpdump -ddd`, optimised and not optimised (`-O`), and code that its compiler never emits.

use tamis_bpf::Insn;
use tamis_bpf::insn::{AluOp, Operand, Test};
use tamis_bpf::packet::{Ancillary, Extra, Load, Op, Program, Size};
use tamis_fuzz::rng::Rng;
use tamis_prover::Limits;

use super::judge::MAX_STEPS;
use super::{
    COMPARED_PACKETS, LimitReached, Outcome, Unproved, compare, optimise, passes, unproved,
};
use tamis_compiler::ProofEffort;

/// One expression a line, with its instructions in decimal.
const TCPDUMP: &str = include_str!("tests/tcpdump.txt");

fn program(ops: &[Op]) -> Program {
    Program::from_ops(ops).unwrap()
}

fn ops(program: &Program) -> Vec<Op> {
    program.ops().collect()
}

fn insn(text: &str) -> Insn {
    let mut fields = text
        .split_whitespace()
        .map(|field| field.parse::<u32>().unwrap());
    let mut field = || fields.next().unwrap();
    Insn {
        code: field() as u16,
        jt: field() as u8,
        jf: field() as u8,
        k: field(),
    }
}

fn of_tcpdump() -> impl Iterator<Item = (&'static str, Program)> {
    TCPDUMP.lines().map(|line| {
        let (expression, insns) = line.rsplit_once(": ").unwrap();
        let insns = insns.split(", ").map(insn).collect();
        (expression, Program::new(insns).unwrap())
    })
}

fn load(size: Size, at: u32) -> Op {
    Op::LoadData(Load::Absolute(size, at))
}

#[test]
fn programs_of_tcpdump_never_grow_and_those_without_its_optimiser_shrink() {
    let (mut given, mut results) = ([0, 0], [0, 0]);
    let effort = ProofEffort::default();
    for (expression, program) in of_tcpdump() {
        let better = passes(&program);
        assert!(better.len() <= program.len(), "{expression}");
        assert_eq!(unproved([&program, &better], &effort), None, "{expression}");
        let compared = compare([&program, &better], 2000, 1);
        let compared = compared.unwrap_or_else(|found| panic!("{expression}: {found:?}"));
        assert!(
            compared.steps[1] <= compared.steps[0],
            "{expression}: {compared:?}"
        );
        let kind = usize::from(expression.ends_with("(-O)"));
        given[kind] += program.len();
        results[kind] += better.len();
    }
    assert!(results[1] * 10 < given[1] * 7, "{given:?} -> {results:?}");
}

#[test]
fn packets_take_nearly_all_outcomes() {
    let (mut taken, mut all) = (0, 0);
    for (_, program) in of_tcpdump() {
        let compared = compare([&program, &program], 500, 1).unwrap();
        taken += compared.taken_outcomes;
        all += compared.outcomes;
    }
    assert!(taken * 10 > all * 9, "{taken} of {all}");
}

#[test]
fn a_changed_constant_is_found() {
    let mut programs = of_tcpdump();
    let (_, program) = programs.next().unwrap();
    for pc in 0..program.len() {
        let mut insns = program.insns().to_vec();
        if insns[pc].code != 0x15 {
            continue;
        }
        insns[pc].k += 1;
        let other = Program::new(insns).unwrap();
        assert!(
            compare([&program, &other], 1000, 1).is_err(),
            "instruction {pc}"
        );
        let unproved = unproved([&program, &other], &ProofEffort::default());
        assert!(unproved.is_some(), "instruction {pc}");
    }
}

#[test]
fn a_load_that_may_end_the_program_stays_although_nobody_reads_it() {
    let far = load(Size::Byte, 100);
    let input = program(&[far, load(Size::Byte, 0), Op::RetA]);
    let optimised = optimise(&input, &ProofEffort::default()).unwrap();
    assert_eq!(optimised.program, input);
    assert_eq!(optimised.outcome, Outcome::Unchanged);
    // A load after it can't end the program.
    let covered = program(&[far, Op::Tax, load(Size::Half, 3), Op::Txa, Op::RetA]);
    assert_eq!(ops(&passes(&covered)), [far, Op::RetA]);
}

#[test]
fn what_differs_each_time_is_loaded_each_time() {
    let random = beside(Ancillary::Random);
    let ops = [
        random,
        Op::Tax,
        random,
        Op::Branch {
            test: Test::Eq,
            operand: Operand::X,
            jt: 0,
            jf: 1,
        },
        Op::RetImm(0),
        Op::RetImm(1),
    ];
    let input = program(&ops);
    assert_eq!(passes(&input), input);
    let optimised = optimise(&input, &ProofEffort::default()).unwrap();
    assert_eq!(optimised.outcome, Outcome::Unchanged);
}

fn beside(one: Ancillary) -> Op {
    Op::LoadData(Load::Ancillary(Size::Word, one))
}

/// A packet without a device ends the program with A.
#[test]
fn what_a_load_of_the_device_may_return_stays() {
    for one in [Ancillary::InterfaceIndex, Ancillary::HardwareType] {
        let device = beside(one);
        let input = program(&[Op::LoadImm(5), device, Op::RetImm(7)]);
        assert_eq!(passes(&input), input);
        let other = program(&[Op::LoadImm(6), device, Op::RetImm(7)]);
        let difference = compare([&input, &other], 0, 1).unwrap_err();
        assert_eq!(difference.rets, [5, 6]);
        // A device exists after the first load.
        let again = program(&[Op::LoadImm(5), device, device, Op::RetA]);
        assert_eq!(ops(&passes(&again)), [Op::LoadImm(5), device, Op::RetA]);
    }
}

#[test]
fn what_no_load_beside_the_packet_reads_is_removed() {
    let mark = beside(Ancillary::Mark);
    let input = program(&[load(Size::Byte, 0), Op::Tax, Op::LoadImm(5), mark, Op::RetA]);
    assert_eq!(ops(&passes(&input)), [load(Size::Byte, 0), mark, Op::RetA]);
    let nested = beside(Ancillary::NetlinkNested);
    let input = program(&[
        load(Size::Byte, 0),
        Op::Tax,
        Op::LoadImm(5),
        nested,
        Op::RetA,
    ]);
    assert_eq!(passes(&input), input);
}

#[test]
fn the_outcome_says_whether_the_result_is_proved() {
    // The first load is not needed.
    let input = program(&[load(Size::Byte, 0), load(Size::Byte, 0), Op::RetA]);
    let proved = optimise(&input, &ProofEffort::default()).unwrap();
    assert_eq!(ops(&proved.program), [load(Size::Byte, 0), Op::RetA]);
    assert!(
        matches!(proved.outcome, Outcome::Proved(comparison) if comparison.packets >= COMPARED_PACKETS)
    );
    let no_effort = ProofEffort {
        limits: Limits {
            max_gates: 1,
            ..Limits::default()
        },
        ..ProofEffort::default()
    };
    let unproved = optimise(&input, &no_effort).unwrap();
    assert_eq!(unproved.program, input);
    let reason = Unproved::Limit(LimitReached::Gates);
    assert_eq!(unproved.outcome, Outcome::Unproved(reason));
    let constant = program(&[Op::RetImm(1)]);
    let unchanged = optimise(&constant, &ProofEffort::default()).unwrap();
    assert_eq!(unchanged.outcome, Outcome::Unchanged);
}

#[test]
fn constants_in_registers_and_slots_become_operands() {
    let input = program(&[
        Op::LoadImm(14),
        Op::Store(3),
        Op::LoadXMem(3),
        Op::LoadData(Load::Indexed(Size::Byte, 9)),
        Op::Store(4),
        Op::LoadImm(15),
        Op::Store(5),
        Op::LoadXMem(5),
        Op::LoadMem(4),
        Op::Alu(AluOp::And, Operand::X),
        Op::RetA,
    ]);
    let expected = [
        load(Size::Byte, 23),
        Op::Alu(AluOp::And, Operand::K(15)),
        Op::RetA,
    ];
    assert_eq!(ops(&passes(&input)), expected);
}

#[test]
fn a_division_by_x_that_may_be_zero_stays() {
    let input = program(&[
        Op::Extra(Extra::LoadXHeaderLen(0)),
        Op::LoadImm(7),
        Op::Alu(AluOp::Div, Operand::X),
        Op::RetImm(1),
    ]);
    assert_eq!(passes(&input), input);
}

/// A jump over more than 255 instructions.
#[test]
fn distances_beyond_eight_bits_get_a_jump() {
    let mut ops = vec![
        load(Size::Byte, 0),
        Op::branch(Test::Eq, 1, 0, 1),
        Op::Jump(300),
    ];
    for at in 0..150 {
        ops.extend([Op::LoadData(Load::Indexed(Size::Word, at)), Op::Tax]);
    }
    ops.extend([Op::RetA, Op::Alu(AluOp::Add, Operand::K(5)), Op::RetA]);
    let input = program(&ops);
    let better = passes(&input);
    assert!(better.len() <= input.len());
    compare([&input, &better], 2000, 1).unwrap();
}

/// Programs of random instructions that share places, slots and constants.
fn random_program(rng: &mut Rng) -> Program {
    let len = rng.range(4..=40) as usize;
    let mut ops: Vec<Op> = (0..4).map(Op::Store).collect();
    for index in 0..len {
        let left = (len - index) as u64;
        let size = *rng.choose(&Size::ALL);
        let k = rng.range(0..=6) as u32;
        let operand = *rng.choose(&[Operand::X, Operand::K(k), Operand::K(0xff)]);
        let test = *rng.choose(&Test::ALL);
        ops.push(match rng.range(0..=15) {
            0..=2 => load(size, k),
            3 => Op::LoadData(Load::Indexed(size, k)),
            4 => Op::Extra(Extra::LoadXHeaderLen(k)),
            5 => Op::LoadImm(k),
            6 => Op::LoadXMem(k % 4),
            7 => Op::LoadMem(k % 4),
            8 => Op::Store(k % 4),
            9 => Op::StoreX(k % 4),
            10 => *rng.choose(&[Op::Tax, Op::Txa, Op::Neg, Op::LoadLen, Op::LoadXImm(k)]),
            11 => {
                let alu = [
                    AluOp::Add,
                    AluOp::And,
                    AluOp::Or,
                    AluOp::Sub,
                    AluOp::Xor,
                    AluOp::Mul,
                ];
                Op::Alu(*rng.choose(&alu), operand)
            }
            12 => *rng.choose(&[
                Op::Alu(AluOp::Div, Operand::X),
                Op::Extra(Extra::Mod(Operand::X)),
                Op::Alu(AluOp::Lsh, Operand::K(k)),
                Op::Alu(AluOp::Rsh, Operand::K(k)),
                Op::RetA,
                Op::RetImm(k),
            ]),
            _ => Op::Branch {
                test,
                operand,
                jt: rng.range(0..=(left - 1).min(6)) as u8,
                jf: rng.range(0..=(left - 1).min(6)) as u8,
            },
        });
    }
    ops.push(Op::RetA);
    program(&ops)
}

/// Enough for nearly all proofs, but multiplications soon reach the limit.
fn little_effort() -> ProofEffort {
    ProofEffort {
        limits: Limits {
            max_conflicts: 200,
            ..Limits::default()
        },
        ..ProofEffort::default()
    }
}

#[test]
fn random_programs_keep_their_meaning() {
    let mut rng = Rng::new(17);
    let (mut shorter, mut packets, mut proved) = (0, 0, 0);
    for round in 0..400 {
        let input = random_program(&mut rng);
        let better = passes(&input);
        let compared = compare([&input, &better], 300, round);
        let compared = compared.unwrap_or_else(|found| {
            panic!("{round}: {found:?}\n{:?}\n{:?}", ops(&input), ops(&better))
        });
        packets += compared.packets;
        shorter += usize::from(better.len() < input.len());
        proved += usize::from(unproved([&input, &better], &little_effort()).is_none());
    }
    assert!(packets >= 100_000 && shorter > 100, "{packets} {shorter}");
    println!("{proved} proved");
    assert!(proved > 360, "{proved}");
}

/// A changed instruction with a counterexample is never proved equivalent.
#[test]
fn what_differs_is_never_proved() {
    let mut rng = Rng::new(18);
    let (mut different, mut equal) = (0, 0);
    for round in 0..400 {
        let input = random_program(&mut rng);
        let mut insns = input.insns().to_vec();
        for _ in 0..4 {
            let (at, from) = (rng.index(insns.len()), rng.index(insns.len()));
            match rng.range(0..=2) {
                0 => insns[at].k ^= 1 << rng.range(0..=3),
                1 => insns[at].jt ^= 1,
                _ => insns[at] = insns[from],
            }
        }
        let Ok(other) = Program::new(insns) else {
            continue;
        };
        let is_proved = unproved([&input, &other], &little_effort()).is_none();
        match compare([&input, &other], 300, round) {
            Err(difference) => {
                assert!(!is_proved, "{round}: {difference:?}\n{:?}", ops(&input));
                different += 1;
            }
            Ok(_) => equal += usize::from(is_proved),
        }
    }
    println!("{different} differ, {equal} are proved equal");
    assert!(different > 60 && equal > 100, "{different} {equal}");
}

/// Each packet takes all branches of such a program the same way, and each other outcome needs a packet of its own: the
/// work would grow with the square of the length.
#[test]
fn the_work_of_a_comparison_is_bounded_and_takes_all_branches() {
    const BRANCHES: u32 = 4094;
    let branches = (0..BRANCHES).map(|k| Op::branch(Test::Eq, k, 0, 0));
    let ops: Vec<Op> = [load(Size::Half, 12)]
        .into_iter()
        .chain(branches)
        .chain([Op::RetImm(0)])
        .collect();
    let input = program(&ops);
    let compared = compare([&input, &input], COMPARED_PACKETS, 1).unwrap();
    let steps: u64 = compared.steps.iter().sum();
    assert!(
        steps < MAX_STEPS + 2 * input.len() as u64,
        "{steps} instructions"
    );
    assert_eq!(compared.taken_outcomes, compared.outcomes);
    assert_eq!(compared.outcomes, 4 * BRANCHES as usize);
}
