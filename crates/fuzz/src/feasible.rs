//! Reachability of a place in a program, decided by the prover, with an input.
//!
//! The program is truncated behind the place, and changed so that it returns 1 there and 0 everywhere else. If it is
//! then equivalent to `ret 0`, the place is unreachable; otherwise the prover's witness reaches it. So both methods
//! of the prover can be used, and the prover needs no notion of coverage.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::{Insn, Op, Pc, Program};
use tamis_prover::{
    Answer, Equality, LimitReached, Limits, Stop, Subject, decide, equality_by_diagrams,
};

use crate::coverage::Place;

/// The prover's result for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feasible {
    /// This input reaches it.
    By(SeccompData),
    /// No input reaches it.
    Never,
    /// The prover reached a limit.
    Unknown(LimitReached),
}

/// Whether an input reaches a place.
pub(crate) fn feasible(program: &Program, place: Place, limits: &Limits) -> Feasible {
    let programs = [marked(program, place), never(program.endian())];
    let [marked, never] = programs.each_ref().map(Subject::Program);
    match decide(&marked, &never, limits) {
        Answer::Equal(_) => Feasible::Never,
        Answer::Different { input, .. } => Feasible::By(input.data),
        Answer::Unknown(limit) => Feasible::Unknown(limit),
    }
}

/// Whether an input reaches a place, by diagrams alone; the input is not confirmed.
pub(crate) fn feasible_by_diagrams(
    program: &Program,
    place: Place,
    limits: &Limits,
    stop: &Stop,
) -> Feasible {
    let programs = [marked(program, place), never(program.endian())];
    let [marked, never] = programs.each_ref().map(Subject::Program);
    match equality_by_diagrams(&marked, &never, limits, stop) {
        Ok(Equality::Equal) => Feasible::Never,
        Ok(Equality::Different(input)) => Feasible::By(input.data),
        Ok(Equality::Unknown) => Feasible::Unknown(LimitReached::Paths),
        Err(limit) => Feasible::Unknown(limit),
    }
}

fn never(endian: Endian) -> Program {
    Program::new(vec![Op::RetImm(0).into()], endian).expect("a return is a program")
}

/// The program up to a place, returning 1 there and 0 elsewhere.
fn marked(program: &Program, place: Place) -> Program {
    let pc = place.pc();
    let mut insns: Vec<Insn> = Vec::with_capacity(pc.0 + 3);
    for at in 0..pc.0 {
        // A jump past the place goes to the first instruction behind it.
        let short = |skip: usize| skip.min(pc.0 - at);
        insns.push(Insn::from(match program.op(Pc(at)) {
            Op::RetImm(_) | Op::RetA => Op::RetImm(0),
            other => other.with_skips(short),
        }));
    }
    let rest = match (place, program.op(pc)) {
        (Place::Outcome(_, outcome), Op::Branch { test, operand, .. }) => vec![
            Op::Branch {
                test,
                operand,
                jt: u8::from(outcome),
                jf: u8::from(!outcome),
            },
            Op::RetImm(0),
            Op::RetImm(1),
        ],
        _ => vec![Op::RetImm(1), Op::RetImm(0)],
    };
    insns.extend(rest.into_iter().map(Insn::from));
    Program::new(insns, program.endian()).expect("shorter jumps to returns keep a program valid")
}

#[cfg(test)]
mod tests {
    use tamis_bpf::Test;

    use super::*;

    #[test]
    fn places_behind_a_contradiction_are_never_reached() {
        let ops = [
            Op::LoadData(16),
            Op::branch(Test::Ge, 10, 0, 2),
            Op::branch(Test::Gt, 8, 2, 0),
            Op::RetImm(7),
            Op::RetA,
            Op::RetImm(8),
        ];
        let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
        let ask = |place| feasible(&program, place, &Limits::default());
        assert_eq!(ask(Place::Insn(Pc(3))), Feasible::Never);
        assert_eq!(ask(Place::Outcome(Pc(2), false)), Feasible::Never);
        for place in [
            Place::Insn(Pc(4)),
            Place::Insn(Pc(5)),
            Place::Outcome(Pc(2), true),
        ] {
            let Feasible::By(data) = ask(place) else {
                panic!("{place:?}");
            };
            let is_large = data.args[0] as u32 >= 10;
            assert_eq!(is_large, place != Place::Insn(Pc(4)), "{data:x?}");
        }
    }
}
