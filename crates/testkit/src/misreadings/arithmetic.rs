//! Arithmetic misread as other arithmetic, with constants and with X.

use tamis_bpf::{AluOp, Op, Operand};

use super::{Case, op};

/// An operation with one kind of operand, misread as another.
macro_rules! alu {
    ($from:ident, K, $to:ident) => {
        |op| match op {
            Op::Alu(AluOp::$from, Operand::K(k)) => Op::Alu(AluOp::$to, Operand::K(k)),
            op => op,
        }
    };
    ($from:ident, X, $to:ident) => {
        |op| match op {
            Op::Alu(AluOp::$from, Operand::X) => Op::Alu(AluOp::$to, Operand::X),
            op => op,
        }
    };
}

pub(super) fn cases() -> Vec<Case> {
    const NEG: &str = "ld [nr]|neg|jeq #0xffffffff, allow, deny";
    let k = |name, map, core: &str| op(name, map, &format!("ld [arg0.low]|{core}, allow, deny"));
    let x = |name, map, core: &str| {
        let (x, core) = core.split_once('|').unwrap_or_default();
        op(
            name,
            map,
            &format!("ldx #{x}|ld [arg0.low]|{core}, allow, deny"),
        )
    };
    vec![
        k("add-k-as-sub", alu!(Add, K, Sub), "add #5|jeq #7"),
        k("sub-k-as-add", alu!(Sub, K, Add), "sub #5|jeq #7"),
        k("mul-k-as-add", alu!(Mul, K, Add), "mul #3|jeq #6"),
        k("div-k-as-rsh", alu!(Div, K, Rsh), "div #4|jeq #2"),
        k("and-k-as-or", alu!(And, K, Or), "and #0xf|jeq #5"),
        k("or-k-as-xor", alu!(Or, K, Xor), "or #0xf0|jeq #0xf5"),
        k("xor-k-as-or", alu!(Xor, K, Or), "xor #3|jeq #7"),
        k("lsh-k-as-rsh", alu!(Lsh, K, Rsh), "lsh #4|jeq #0x50"),
        k("rsh-k-as-lsh", alu!(Rsh, K, Lsh), "rsh #4|jeq #0x50"),
        x("add-x-as-sub", alu!(Add, X, Sub), "5|add x|jeq #7"),
        x("sub-x-as-add", alu!(Sub, X, Add), "5|sub x|jeq #7"),
        x("mul-x-as-add", alu!(Mul, X, Add), "3|mul x|jeq #6"),
        x("div-x-as-rsh", alu!(Div, X, Rsh), "4|div x|jeq #2"),
        x("and-x-as-or", alu!(And, X, Or), "0xf|and x|jeq #5"),
        x("or-x-as-xor", alu!(Or, X, Xor), "0xf0|or x|jeq #0xf5"),
        x("xor-x-as-or", alu!(Xor, X, Or), "3|xor x|jeq #7"),
        x("lsh-x-as-rsh", alu!(Lsh, X, Rsh), "4|lsh x|jeq #0x50"),
        x("rsh-x-as-lsh", alu!(Rsh, X, Lsh), "4|rsh x|jeq #0x50"),
        op(
            "neg-ignored",
            |op| match op {
                Op::Neg => Op::Alu(AluOp::Or, Operand::K(0)),
                op => op,
            },
            NEG,
        ),
        op(
            "neg-as-complement",
            |op| match op {
                Op::Neg => Op::Alu(AluOp::Xor, Operand::K(u32::MAX)),
                op => op,
            },
            NEG,
        ),
        x(
            "arithmetic-with-x-as-0",
            |op| match op {
                Op::Alu(AluOp::Add, Operand::X) => Op::Alu(AluOp::Add, Operand::K(0)),
                op => op,
            },
            "5|add x|jeq #7",
        ),
    ]
}
