//! Filters restricted to some architectures, with one action for all other calls.
//!
//! A caller that needs only a part of a filter gets a ruleset that is equivalent to that part. The judge therefore
//! needs the part as a filter, made without the prover's help.

use std::collections::BTreeSet;

use tamis_abi::{Action, Arch, Word};
use tamis_bpf::{Insn, InvalidProgram, Op, Program, Test};
use tamis_rules::{Ruleset, Section};

/// The program, behind a check of architecture and number that returns the action for other calls itself.
///
/// # Errors
/// If the result exceeds the length of input programs.
pub(super) fn program(
    program: &Program,
    arches: &BTreeSet<Arch>,
    elsewhere: Action,
) -> Result<Program, InvalidProgram> {
    let endian = program.endian();
    let mut ops = Vec::new();
    let mut entries = Vec::new();
    for arch in arches {
        for (first, last) in Section::domain(*arch).intervals() {
            ops.extend([
                Op::LoadData(Word::ARCH.offset(endian)),
                Op::branch(Test::Eq, arch.audit(), 0, 4),
                Op::LoadData(Word::NR.offset(endian)),
                Op::branch(Test::Ge, *first, 0, 2),
                Op::branch(Test::Gt, *last, 1, 0),
                Op::Jump(0),
            ]);
            entries.push(ops.len() - 1);
        }
    }
    ops.push(Op::RetImm(elsewhere.ret()));
    for at in entries {
        ops[at] = Op::Jump((ops.len() - at - 1) as u32);
    }
    // The initial value of A.
    ops.push(Op::LoadImm(0));
    let insns = ops.into_iter().map(Insn::from);
    let insns = insns.chain(program.insns().iter().copied());
    Program::new(insns.collect(), endian)
}

/// The ruleset with only the sections of some architectures.
pub(super) fn ruleset(ruleset: &Ruleset, arches: &BTreeSet<Arch>, elsewhere: Action) -> Ruleset {
    let sections = arches.iter().map(|arch| match ruleset.section(*arch) {
        Some(section) => section.clone(),
        None => Section {
            arch: *arch,
            rules: Vec::new(),
            default: ruleset.bad_arch,
        },
    });
    Ruleset::new(sections.collect(), elsewhere).expect("every architecture has one section")
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Endian, SeccompData};
    use tamis_bpf::interp;

    use super::*;

    #[test]
    fn calls_of_other_architectures_get_the_answer_for_elsewhere() {
        let allow =
            Program::new(vec![Op::RetImm(Action::ALLOW.ret()).into()], Endian::Little).unwrap();
        let kill = Action::KILL_PROCESS;
        let narrow = program(&allow, &BTreeSet::from([Arch::X86_64]), kill).unwrap();
        let ret = |arch: Arch| {
            let call = SeccompData {
                arch: arch.audit(),
                ..SeccompData::default()
            };
            interp::run(&narrow, &call).ret
        };
        let found = [ret(Arch::X86_64), ret(Arch::X86)];
        assert_eq!(found, [Action::ALLOW, kill].map(Action::ret));
    }
}
