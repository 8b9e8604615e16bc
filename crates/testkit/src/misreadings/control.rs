//! Tests, jumps and returns misread as others.

use tamis_bpf::{Op, Operand, Test};

use super::{Case, op};

/// A test with one kind of operand, misread as another.
macro_rules! test {
    ($from:ident, $operand:pat, $to:ident) => {
        |op| match op {
            Op::Branch {
                test: Test::$from,
                operand: operand @ $operand,
                jt,
                jf,
            } => Op::Branch {
                test: Test::$to,
                operand,
                jt,
                jf,
            },
            op => op,
        }
    };
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = tests();
    cases.extend(branches());
    cases.extend(jumps_and_returns());
    cases
}

fn branches() -> Vec<Case> {
    vec![
        op(
            "jset-with-sides-swapped",
            |op| match op {
                Op::Branch {
                    test: Test::Set,
                    operand,
                    jt,
                    jf,
                } => Op::Branch {
                    test: Test::Set,
                    operand,
                    jt: jf,
                    jf: jt,
                },
                op => op,
            },
            "ld [arg0.low]|jset #6, allow, deny",
        ),
        op(
            "jeq-with-x-as-0",
            |op| match op {
                Op::Branch {
                    test,
                    operand: Operand::X,
                    jt,
                    jf,
                } => Op::branch(test, 0, jt, jf),
                op => op,
            },
            "ldx #7|ld [arg0.low]|jeq %x, allow, deny",
        ),
    ]
}

fn jumps_and_returns() -> Vec<Case> {
    vec![
        op(
            "ja-to-the-next",
            |op| match op {
                Op::Jump(_) => Op::Jump(0),
                op => op,
            },
            "ld [arg0.low]|jeq #7, deny|ja allow|ret #errno(9)",
        ),
        op(
            "ja-one-short",
            |op| match op {
                Op::Jump(skip) => Op::Jump(skip.saturating_sub(1)),
                op => op,
            },
            "ld [arg0.low]|jeq #7, deny|ja allow|ret #errno(9)",
        ),
        op(
            "ret-a-as-ret-0",
            |op| match op {
                Op::RetA => Op::RetImm(0),
                op => op,
            },
            "ld [arg0.low]|jeq #7, deny|jeq #8, allow|ld #0x00050009|ret a",
        ),
        op(
            "ret-without-data",
            |op| match op {
                Op::RetImm(k) => Op::RetImm(k & 0xffff_0000),
                op => op,
            },
            "ld [arg0.low]|jeq #7, deny, allow",
        ),
        op(
            "ret-errno-as-trap",
            |op| match op {
                Op::RetImm(0x0005_0001) => Op::RetImm(0x0003_0000),
                op => op,
            },
            "ld [arg0.low]|jeq #7, deny, allow",
        ),
    ]
}

fn tests() -> Vec<Case> {
    let k = |name, map, core: &str| op(name, map, &format!("ld [arg0.low]|{core}, allow, deny"));
    let x = |name, map, core: &str| {
        let core = format!("ld [arg1.low]|tax|ld [arg0.low]|{core}, allow, deny");
        op(name, map, &core)
    };
    vec![
        k("jgt-k-as-jge", test!(Gt, Operand::K(_), Ge), "jgt #50"),
        k("jge-k-as-jgt", test!(Ge, Operand::K(_), Gt), "jge #50"),
        k("jeq-k-as-jge", test!(Eq, Operand::K(50), Ge), "jeq #50"),
        k("jset-k-as-jeq", test!(Set, Operand::K(_), Eq), "jset #6"),
        k("jset-k-as-jge", test!(Set, Operand::K(_), Ge), "jset #6"),
        x("jgt-x-as-jge", test!(Gt, Operand::X, Ge), "jgt %x"),
        x("jge-x-as-jgt", test!(Ge, Operand::X, Gt), "jge %x"),
        x("jeq-x-as-jge", test!(Eq, Operand::X, Ge), "jeq %x"),
        op(
            "jset-x-as-jeq",
            test!(Set, Operand::X, Eq),
            "ldx #6|ld [arg0.low]|jset %x, allow, deny",
        ),
    ]
}
