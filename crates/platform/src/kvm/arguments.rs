//! Arguments that the monitor replaces in the guest's calls: a filter that reads them can't be applied.
//!
//! The monitor keeps the guest's signal handlers and stacks, and makes such calls for the guest with arguments of its
//! own. The filter's paths for one of these calls are followed, with the number and architecture fixed and all other
//! words open.

use std::collections::BTreeSet;

use tamis_abi::Arch;
use tamis_bpf::{Op, Operand, Pc, Program};

use crate::offsets::{ARCH, NR, high, low};

/// The calls and their replaced arguments.
const REPLACED: [(i64, &[u32]); 5] = [
    (libc::SYS_rt_sigaction, &[1, 2, 4, 5]),
    (libc::SYS_sigaltstack, &[1, 2, 3, 4, 5]),
    (libc::SYS_clone, &[1]),
    (libc::SYS_brk, &[0, 1, 2, 3, 4, 5]),
    (libc::SYS_close_range, &[0, 1]),
];

/// Whether a filter reads an argument that is replaced.
pub(super) fn are_looked_at(filter: &Program) -> bool {
    REPLACED.into_iter().any(|(nr, args)| {
        let read = read_by(filter, nr as u32);
        let halves = |arg: &u32| [low(*arg), high(*arg)];
        args.iter().flat_map(halves).any(|at| read.contains(&at))
    })
}

/// The offsets in `struct seccomp_data` that a filter may read for a native call. Each instruction is visited once for
/// each possible value of A: the number, the architecture and constants.
fn read_by(filter: &Program, nr: u32) -> BTreeSet<u32> {
    let mut read = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![(0, None)];
    while let Some((pc, a)) = open.pop() {
        if !seen.insert((pc, a)) {
            continue;
        }
        let next = pc + 1;
        match filter.op(Pc(pc)) {
            Op::LoadData(at) => {
                read.insert(at);
                let known = match at {
                    NR => Some(nr),
                    ARCH => Some(Arch::X86_64.audit()),
                    _ => None,
                };
                open.push((next, known));
            }
            Op::LoadImm(value) => open.push((next, Some(value))),
            Op::LoadMem(_) | Op::LoadLen | Op::Alu(..) | Op::Neg | Op::Txa => {
                open.push((next, None));
            }
            Op::LoadXImm(_)
            | Op::LoadXMem(_)
            | Op::LoadXLen
            | Op::Store(_)
            | Op::StoreX(_)
            | Op::Tax => {
                open.push((next, a));
            }
            Op::Jump(skip) => open.push((next + skip as usize, a)),
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                let holds = match (a, operand) {
                    (Some(a), Operand::K(k)) => Some(test.holds(a, k)),
                    _ => None,
                };
                if holds != Some(false) {
                    open.push((next + usize::from(jt), a));
                }
                if holds != Some(true) {
                    open.push((next + usize::from(jf), a));
                }
            }
            Op::RetImm(_) | Op::RetA => {}
            Op::Extra(never) => match never {},
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::Action;
    use tamis_bpf::Test;
    use tamis_kernel::NATIVE_ENDIAN;

    /// A filter that reads half of an argument of one call.
    fn looking_at(nr: i64, at: u32) -> Program {
        let ops = [
            Op::LoadData(ARCH),
            Op::branch(Test::Eq, Arch::X86_64.audit(), 0, 4),
            Op::LoadData(NR),
            Op::branch(Test::Eq, nr as u32, 0, 2),
            Op::LoadData(at),
            Op::branch(Test::Eq, 0, 1, 0),
            Op::RetImm(Action::ALLOW.ret()),
            Op::RetImm(Action::errno(1).ret()),
        ];
        let insns = ops.into_iter().map(Into::into).collect();
        Program::new(insns, NATIVE_ENDIAN).expect("a program")
    }

    #[test]
    fn only_arguments_that_are_replaced_count() {
        for (nr, args) in REPLACED {
            for arg in 0..6 {
                let is_replaced = args.contains(&arg);
                for at in [low(arg), high(arg)] {
                    assert_eq!(are_looked_at(&looking_at(nr, at)), is_replaced, "{nr} {at}");
                }
            }
        }
        assert!(!are_looked_at(&looking_at(libc::SYS_openat, low(1))));
    }
}
