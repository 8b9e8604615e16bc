//! Ownership: the calls that need each instruction of a program.
//!
//! For every call in the tables, the program is traversed with a known architecture and number and unknown arguments.
//! Instructions reached before a load of an argument belong to the dispatch by number; instructions reached behind
//! one decide about arguments, and belong to all calls that reach them. Returns are counted separately, because most
//! calls share them.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Arch, Nr, syscall};
use tamis_bpf::{AluOp, Op, Operand, Pc, Program};

/// The use of a program's instructions; the parts add up to its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Instructions of the dispatch by architecture and number.
    pub dispatch_insns: usize,
    /// Returns.
    pub return_insns: usize,
    /// Instructions that no known call reaches: for other numbers, or unreachable.
    pub other_insns: usize,
    /// Instructions that decide about arguments, in groups, the largest first.
    pub decisions: Vec<Decision>,
}

/// Instructions that exactly these calls may execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The calls that share the instructions, by architecture and number.
    pub calls: Vec<(Arch, Nr)>,
    /// The number of instructions.
    pub length_insns: usize,
}

/// The byte offsets of number and architecture.
const NR_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;

/// The abstract state on a path through a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    pc: usize,
    a: Option<u32>,
    has_argument: bool,
}

/// Assigns the instructions of a program to their uses. Linear in the length times the number of calls.
pub fn ownership(program: &Program, archs: &[Arch]) -> Ownership {
    let mut is_dispatch = vec![false; program.len()];
    let mut users: Vec<Vec<(Arch, Nr)>> = vec![Vec::new(); program.len()];
    for arch in archs {
        for (nr, _) in syscall::all(*arch) {
            for state in reached(program, arch.audit(), nr.0) {
                let last = users[state.pc].last();
                if !state.has_argument {
                    is_dispatch[state.pc] = true;
                } else if last != Some(&(*arch, nr)) {
                    users[state.pc].push((*arch, nr));
                }
            }
        }
    }
    let mut ownership = Ownership {
        dispatch_insns: 0,
        return_insns: 0,
        other_insns: 0,
        decisions: Vec::new(),
    };
    let mut decisions: BTreeMap<Vec<(Arch, Nr)>, usize> = BTreeMap::new();
    for (pc, users) in users.into_iter().enumerate() {
        match program.op(Pc(pc)) {
            _ if users.is_empty() && !is_dispatch[pc] => ownership.other_insns += 1,
            Op::RetImm(_) | Op::RetA => ownership.return_insns += 1,
            _ if is_dispatch[pc] => ownership.dispatch_insns += 1,
            _ => *decisions.entry(users).or_default() += 1,
        }
    }
    ownership.decisions = decisions
        .into_iter()
        .map(|(calls, length_insns)| Decision {
            calls,
            length_insns,
        })
        .collect();
    ownership
        .decisions
        .sort_by_key(|decision| std::cmp::Reverse(decision.length_insns));
    ownership
}

/// The part of a program of each of these calls: the instructions that it may execute, each divided equally among all
/// calls that may execute it. Linear in the length times the number of calls.
pub fn parts(program: &Program, calls: &[(Arch, Nr)]) -> Vec<f64> {
    let mut users = vec![0_u32; program.len()];
    let places = calls.iter().map(|(arch, nr)| {
        let states = reached(program, arch.audit(), nr.0);
        let places: BTreeSet<usize> = states.into_iter().map(|state| state.pc).collect();
        for pc in &places {
            users[*pc] += 1;
        }
        places
    });
    let places: Vec<BTreeSet<usize>> = places.collect();
    let part = |places: BTreeSet<usize>| places.iter().map(|pc| 1.0 / f64::from(users[*pc])).sum();
    places.into_iter().map(part).collect()
}

/// The states that a call may reach.
fn reached(program: &Program, audit: u32, nr: u32) -> BTreeSet<State> {
    let mut seen = BTreeSet::new();
    let mut open = vec![State {
        pc: 0,
        a: Some(0),
        has_argument: false,
    }];
    while let Some(state) = open.pop() {
        let (op, state) = load(program, audit, nr, state);
        if !seen.insert(state) {
            continue;
        }
        let to = |skip: usize| State {
            pc: state.pc + 1 + skip,
            ..state
        };
        match op {
            Op::RetImm(_) | Op::RetA => {}
            Op::Jump(skip) => open.push(to(skip as usize)),
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            } => match (state.a, operand) {
                (Some(a), Operand::K(k)) => {
                    let skip = if test.holds(a, k) { jt } else { jf };
                    open.push(to(usize::from(skip)));
                }
                _ => open.extend([to(usize::from(jt)), to(usize::from(jf))]),
            },
            _ => open.push(to(0)),
        }
    }
    seen
}

/// The instruction of a state, and the state after it has loaded A.
fn load(program: &Program, audit: u32, nr: u32, state: State) -> (Op, State) {
    let op = program.op(Pc(state.pc));
    let is_input = |offset| offset != NR_OFFSET && offset != ARCH_OFFSET;
    let a = match op {
        Op::LoadData(NR_OFFSET) => Some(nr),
        Op::LoadData(ARCH_OFFSET) => Some(audit),
        Op::LoadImm(k) => Some(k),
        Op::Alu(AluOp::And, Operand::K(mask)) => state.a.map(|a| a & mask),
        Op::LoadData(_) | Op::LoadMem(_) | Op::LoadLen | Op::Alu(..) | Op::Neg | Op::Txa => None,
        _ => state.a,
    };
    let has_argument = state.has_argument || matches!(op, Op::LoadData(offset) if is_input(offset));
    (
        op,
        State {
            a,
            has_argument,
            ..state
        },
    )
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Endian};
    use tamis_bpf::{Insn, Test};

    use super::*;

    #[test]
    fn the_parts_add_up_and_name_the_calls() {
        let equals = |k, jt, jf| Op::branch(Test::Eq, k, jt, jf);
        let ops = [
            Op::LoadData(NR_OFFSET),
            equals(16, 1, 0),
            equals(72, 0, 3),
            Op::LoadData(24),
            equals(7, 1, 0),
            Op::RetImm(0),
            Op::RetImm(Action::ALLOW.ret()),
            Op::RetImm(1),
        ];
        let insns = ops.map(Insn::from).to_vec();
        let program = Program::new(insns, Endian::Little).unwrap();
        let ownership = ownership(&program, &[Arch::X86_64]);
        assert_eq!(ownership.dispatch_insns, 3);
        assert_eq!(ownership.return_insns, 2);
        assert_eq!(ownership.other_insns, 1);
        let [decision] = ownership.decisions.as_slice() else {
            panic!("one decision: {ownership:?}");
        };
        assert_eq!(decision.length_insns, 2);
        let calls = [16, 72].map(|nr| (Arch::X86_64, Nr(nr)));
        assert_eq!(decision.calls, calls);
    }
}
