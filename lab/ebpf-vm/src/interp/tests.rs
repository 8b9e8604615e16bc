//! The effects of instructions, and their faults.

use tamis_abi::Endian;

use super::*;
use crate::insn::Cond;
use crate::memory::{Argument, Context};

const R2: Reg = Reg::ALL[2];

fn frame(offset: i16) -> Address {
    Address {
        base: Reg::FRAME,
        offset,
    }
}

fn mov(dst: Reg, imm: i32) -> Op {
    Op::Alu(Width::W64, AluOp::Mov, dst, Source::Imm(imm))
}

fn helpers() -> Helpers<'static> {
    let mut helpers = Helpers::none();
    let sum = |[a, b, ..]: [u64; 5], _: &mut Memory<'_>| Ok(a.wrapping_add(b));
    helpers.register(1, vec![Argument::Scalar; 2], Box::new(sum));
    helpers
}

fn result(ops: &[Op]) -> Result<u64, (usize, FaultReason)> {
    let program = Program::from_ops(ops, Endian::Little).unwrap();
    let mut memory = Memory::new(Context::ReadOnly(&[1, 2, 3, 4]), &[7, 8], Endian::Little);
    match run(&program, &mut memory, &mut helpers(), 100) {
        Ok(run) => Ok(run.ret),
        Err(Fault { pc, reason }) => Err((pc.0, reason)),
    }
}

#[test]
fn the_stack_keeps_what_is_stored() {
    let ops = [
        mov(Reg::R1, -2),
        Op::Store(Size::D, frame(-8), Reg::R1),
        Op::StoreImm(Size::B, frame(-7), 5),
        Op::LoadSigned(Size::H, Reg::R0, frame(-8)),
        Op::Exit,
    ];
    assert_eq!(result(&ops), Ok(0x05fe));
}

#[test]
fn atomics_return_the_old_value() {
    let with = |atomic, src, r0| {
        let ops = [
            Op::StoreImm(Size::D, frame(-8), 6),
            mov(Reg::R0, r0),
            mov(R2, src),
            Op::Atomic(Width::W32, atomic, frame(-8), R2),
            Op::Alu(Width::W64, AluOp::Lsh, Reg::R0, Source::Imm(16)),
            Op::Alu(Width::W64, AluOp::Or, Reg::R0, Source::Reg(R2)),
            Op::Alu(Width::W64, AluOp::Lsh, Reg::R0, Source::Imm(16)),
            Op::Load(Size::D, R2, frame(-8)),
            Op::Alu(Width::W64, AluOp::Or, Reg::R0, Source::Reg(R2)),
            Op::Exit,
        ];
        result(&ops).unwrap()
    };
    let all = |r0: u64, r2: u64, memory: u64| (r0 << 16 | r2) << 16 | memory;
    assert_eq!(with(Atomic::Add { fetch: false }, 3, 1), all(1, 3, 9));
    assert_eq!(with(Atomic::Xor { fetch: true }, 3, 1), all(1, 6, 5));
    assert_eq!(with(Atomic::Exchange, 3, 1), all(1, 6, 3));
    assert_eq!(with(Atomic::CompareExchange, 3, 1), all(6, 3, 6));
    assert_eq!(with(Atomic::CompareExchange, 3, 6), all(6, 3, 3));
}

#[test]
fn calls_keep_registers_six_to_nine_and_lose_the_arguments() {
    let r6 = Reg::R6;
    let call = |last| {
        [
            mov(r6, 5),
            mov(Reg::R1, 2),
            Op::CallLocal(2),
            Op::Alu(Width::W64, AluOp::Add, Reg::R0, Source::Reg(last)),
            Op::Exit,
            mov(r6, 100),
            Op::Alu(Width::W64, AluOp::Mov, Reg::R0, Source::Reg(Reg::R1)),
            Op::Exit,
        ]
    };
    assert_eq!(result(&call(r6)), Ok(7));
    let unset = FaultReason::UnsetRegister(Reg::R1);
    assert_eq!(result(&call(Reg::R1)), Err((3, unset)));
    let recursion = [Op::CallLocal(-1), Op::Exit];
    assert_eq!(result(&recursion), Err((0, FaultReason::TooManyFrames)));
}

#[test]
fn helpers_get_their_arguments() {
    let ops = [mov(Reg::R1, 2), mov(R2, 3), Op::CallHelper(1), Op::Exit];
    assert_eq!(result(&ops), Ok(5));
    let unset = FaultReason::UnsetRegister(R2);
    assert_eq!(result(&[Op::CallHelper(1), Op::Exit]), Err((0, unset)));
    let unknown = FaultReason::UnknownHelper(2);
    assert_eq!(result(&[Op::CallHelper(2), Op::Exit]), Err((0, unknown)));
}

#[test]
fn loads_from_the_packet_are_in_network_order_and_end_outside_it() {
    let load = |size, place| {
        let keep = Op::Alu(Width::W64, AluOp::Mov, Reg::R6, Source::Reg(Reg::R1));
        let load = Op::LoadPacket(size, place);
        result(&[
            keep,
            mov(R2, 2),
            load,
            Op::Alu(Width::W64, AluOp::Add, Reg::R0, Source::Imm(1)),
            Op::Exit,
        ])
    };
    assert_eq!(load(Size::H, Place::Absolute(0)), Ok(0x0709));
    assert_eq!(load(Size::B, Place::Indirect(R2, -1)), Ok(9));
    assert_eq!(load(Size::W, Place::Absolute(0)), Ok(0));
    assert_eq!(load(Size::B, Place::Indirect(R2, 0)), Ok(0));
    assert_eq!(load(Size::B, Place::Absolute(-1)), Ok(0));
    let without = [Op::LoadPacket(Size::B, Place::Absolute(0)), Op::Exit];
    assert_eq!(
        result(&without),
        Err((0, FaultReason::UnsetRegister(Reg::R6)))
    );
}

#[test]
fn what_never_ends_is_ended() {
    let ops = [
        Op::Branch(Width::W64, Cond::Eq, Reg::R1, Source::Reg(Reg::R1), -1),
        Op::Exit,
    ];
    assert_eq!(result(&ops), Err((0, FaultReason::OutOfSteps)));
}
