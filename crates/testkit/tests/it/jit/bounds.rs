//! A load tests for all bytes that every way on loads or returns 0 without, and for no others.

use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};
use tamis_bpf::packet::{Extra, Load, Op, Program, Size};
use tamis_bpf::{Operand, Test};
use tamis_jit::{Options, Socket};

use super::agreement::unless_jit;

fn load(k: u32) -> Op {
    Op::LoadData(Load::Absolute(Size::Byte, k))
}

fn load_at_x(k: u32) -> Op {
    Op::LoadData(Load::Indexed(Size::Half, k))
}

fn unless_equal(skip: u8) -> Op {
    Op::Branch {
        test: Test::Eq,
        operand: Operand::K(6),
        jt: 0,
        jf: skip,
    }
}

/// How many bytes the code tests for, counted from the start of the packet and from X, in its order.
fn bounds(ops: &[Op]) -> (Vec<u32>, Vec<u32>) {
    let program = Program::from_ops(ops).expect("jumps end inside");
    let compiled = Socket::compile(&program, &Options::default()).expect("short enough");
    let (mut from_start, mut from_x) = (Vec::new(), Vec::new());
    for insn in Decoder::new(64, compiled.code(), DecoderOptions::NONE) {
        if insn.mnemonic() == Mnemonic::Cmp && insn.op0_register() == Register::ESI {
            from_start.push(insn.immediate32());
        }
        if insn.mnemonic() == Mnemonic::Lea && insn.memory_base() == Register::RCX {
            from_x.push(insn.memory_displacement32());
        }
    }
    (from_start, from_x)
}

#[test]
fn loads_ask_for_what_all_ways_need() {
    unless_jit();
    let two_loads = |ret| {
        let ops = [
            load(12),
            unless_equal(2),
            load(23),
            Op::RetA,
            Op::RetImm(ret),
        ];
        bounds(&ops).0
    };
    assert_eq!(two_loads(0), [24], "a way that returns 0 needs nothing");
    assert_eq!(two_loads(1), [13, 24], "a way with another value does");
    let either = [
        load(12),
        unless_equal(2),
        load(23),
        Op::RetA,
        load(53),
        Op::RetA,
    ];
    assert_eq!(bounds(&either).0, [24, 54], "the lesser of two needs");
    let always_zero = [load(12), load(23), Op::RetImm(0)];
    assert_eq!(bounds(&always_zero).0, [13, 24]);
}

#[test]
fn what_is_counted_from_x_is_asked_for_while_x_stays() {
    unless_jit();
    let at_x = |between: Op| {
        let header_len = Op::Extra(Extra::LoadXHeaderLen(14));
        bounds(&[
            header_len,
            load_at_x(14),
            between,
            load_at_x(26),
            Op::RetA,
            Op::RetImm(0),
        ])
    };
    assert_eq!(at_x(unless_equal(2)), (vec![15], vec![28]));
    assert_eq!(at_x(Op::Tax), (vec![15], vec![16, 28]));
}
