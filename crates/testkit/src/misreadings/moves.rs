//! Loads, stores and moves misread as others.

use tamis_abi::Endian;
use tamis_bpf::{AluOp, Op, Operand};
use tamis_prover::misreading::Misreading;

use super::{CHAIN, Case, ENDS, assembled, op};

/// Does nothing.
const NOTHING: Op = Op::Alu(AluOp::Or, Operand::K(0));

/// The offset of the arguments.
const ARGS: u32 = 16;

/// One instruction misread as another.
macro_rules! taken {
    ($from:pat => $to:expr) => {
        |op| match op {
            $from => $to,
            op => op,
        }
    };
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = registers();
    cases.extend(words());
    cases.extend(memory());
    cases
}

fn words() -> Vec<Case> {
    let load = |name, map, word: &str| op(name, map, &format!("ld [{word}]|jeq #77, allow, deny"));
    let swapped: fn(Op) -> Op = taken!(Op::LoadData(at @ ARGS..) => Op::LoadData(at ^ 4));
    let big = format!(
        "ld [arch]|jeq #arch(s390x), native|ret #kill_process|native: {CHAIN}ld [arg0.low]|jeq #77, allow, deny{ENDS}"
    );
    vec![
        load("halves-of-arguments-swapped", swapped, "arg0.low"),
        load(
            "high-half-as-low",
            taken!(Op::LoadData(20) => Op::LoadData(16)),
            "arg0.high",
        ),
        Case {
            name: "big-endian-halves-swapped",
            misreading: Misreading::Op(swapped),
            filters: assembled(&big, Endian::Big).into(),
        },
        load(
            "next-argument",
            taken!(Op::LoadData(16) => Op::LoadData(24)),
            "arg0.low",
        ),
        load(
            "number-as-architecture",
            taken!(Op::LoadData(0) => Op::LoadData(4)),
            "nr",
        ),
        load(
            "pointer-as-argument",
            taken!(Op::LoadData(8) => Op::LoadData(16)),
            "ip.low",
        ),
    ]
}

fn registers() -> Vec<Case> {
    const IS_X: &str = "tax|ld [arg0.low]|jeq %x, allow, deny";
    let is_x = |name, map, core: &str| op(name, map, &format!("{core}|{IS_X}"));
    const LDX: &str = "|ld [arg0.low]|jeq %x, allow, deny";
    let ldx = |name, map, core: &str| op(name, map, &format!("{core}{LDX}"));
    vec![
        is_x(
            "ld-imm-as-0",
            taken!(Op::LoadImm(_) => Op::LoadImm(0)),
            "ld #7",
        ),
        is_x(
            "ld-len-as-0",
            taken!(Op::LoadLen => Op::LoadImm(0)),
            "ld len",
        ),
        is_x(
            "ld-len-as-60",
            taken!(Op::LoadLen => Op::LoadImm(60)),
            "ld len",
        ),
        ldx(
            "ldx-imm-as-0",
            taken!(Op::LoadXImm(_) => Op::LoadXImm(0)),
            "ldx #7",
        ),
        ldx(
            "ldx-len-as-0",
            taken!(Op::LoadXLen => Op::LoadXImm(0)),
            "ldx len",
        ),
        op(
            "tax-ignored",
            taken!(Op::Tax => NOTHING),
            "ldx #7|ld [arg1.low]|and #1|tax|ld [arg0.low]|jeq %x, allow, deny",
        ),
        op(
            "txa-ignored",
            taken!(Op::Txa => NOTHING),
            "ld [arg0.low]|tax|ld #9|txa|jeq #7, allow, deny",
        ),
        op(
            "txa-as-tax",
            taken!(Op::Txa => Op::Tax),
            "ld [arg0.low]|tax|ld [arg1.low]|txa|jeq #7, allow, deny",
        ),
    ]
}

fn memory() -> Vec<Case> {
    const LD: &str = "ld [arg1.low]|st M[1]|ld [arg0.low]|st M[0]|ld M[0]|jeq #7, allow, deny";
    const LDX: &str = "ld #1|st M[1]|ld #7|st M[0]|ldx M[0]|ld [arg0.low]|jeq %x, allow, deny";
    const STX: &str = "ldx #7|stx M[0]|ldx M[0]|ld [arg0.low]|jeq %x, allow, deny";
    vec![
        op(
            "ld-mem-of-another-slot",
            taken!(Op::LoadMem(at) => Op::LoadMem(at ^ 1)),
            LD,
        ),
        op("ld-mem-as-0", taken!(Op::LoadMem(_) => Op::LoadImm(0)), LD),
        op(
            "ldx-mem-of-another-slot",
            taken!(Op::LoadXMem(at) => Op::LoadXMem(at ^ 1)),
            LDX,
        ),
        op(
            "ldx-mem-as-ld-mem",
            taken!(Op::LoadXMem(at) => Op::LoadMem(at)),
            LDX,
        ),
        op("st-ignored", taken!(Op::Store(_) => NOTHING), LD),
        op(
            "st-to-another-slot",
            taken!(Op::Store(at) => Op::Store(at ^ 3)),
            LD,
        ),
        op("stx-ignored", taken!(Op::StoreX(_) => NOTHING), STX),
        op("stx-as-st", taken!(Op::StoreX(at) => Op::Store(at)), STX),
        op("st-as-stx", taken!(Op::Store(at) => Op::StoreX(at)), LD),
    ]
}
