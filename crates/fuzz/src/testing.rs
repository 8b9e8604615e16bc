//! What the tests of several modules build programs from.

use tamis_bpf::{Op, Operand, Test};

/// A branch on a comparison with a constant.
pub(crate) fn branch(test: Test, k: u32, jt: u8, jf: u8) -> Op {
    Op::Branch {
        test,
        operand: Operand::K(k),
        jt,
        jf,
    }
}
