//! Liveness at each instruction of a filter.

use tamis_bpf::Op;
use tamis_bpf::live::Live;

/// The live state before each instruction of a valid program. Linear: jumps go forward.
pub(super) fn live(ops: &[Op]) -> Vec<Live> {
    let mut before = vec![Live::NONE; ops.len() + 1];
    for (pc, op) in ops.iter().enumerate().rev() {
        let at = |skip: usize| before[pc + 1 + skip];
        let after = match *op {
            Op::Jump(skip) => at(skip as usize),
            Op::Branch { jt, jf, .. } => at(usize::from(jt)).or(at(usize::from(jf))),
            _ => at(0),
        };
        before[pc] = match *op {
            Op::LoadData(_) => after.without(Live::A),
            op => after.before(op).unwrap_or(after),
        };
    }
    before.truncate(ops.len());
    before
}
