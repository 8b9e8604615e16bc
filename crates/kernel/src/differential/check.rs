//! All tests of programs and calls in the kernel.

use std::collections::BTreeMap;

use tamis_abi::SeccompData;
use tamis_bpf::{Insn, Program, Stack, interp};

use super::calls::{self, Mismatch};
use super::packets::Packets;
use super::{AskError, CheckerAnswer, checker_answers};

/// A difference between the kernel and tamis. Programs are counted from the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// The kernel rejects a program, or accepts one that is too long.
    Checker {
        /// The program.
        program: usize,
        /// The kernel's answer.
        answer: CheckerAnswer,
    },
    /// As a socket filter, a program returns another value.
    Returned {
        /// The program.
        program: usize,
        /// The input words.
        call: SeccompData,
        /// The interpreter's return value.
        expected: u32,
    },
    /// A call has another outcome.
    Answered {
        /// The program, alone on a task; `None` for the whole stack.
        program: Option<usize>,
        /// The call and its outcomes.
        mismatch: Mismatch,
    },
}

/// The tests and their results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The count of calls.
    pub calls: usize,
    /// The count of packets.
    pub packets: usize,
    /// The tests that could not be run, with the reason.
    pub not_asked: Vec<AskError>,
    /// The differences.
    pub contradictions: Vec<Contradiction>,
}

/// Tests in the kernel whether it accepts the programs of a stack, the outcomes of each and of all together for the
/// calls that can be made here, and the return values of each as a socket filter for all calls.
///
/// A call takes microseconds, a kill a millisecond. Tests that can't be run are recorded: programs for machines of
/// the other byte order are tested only as socket filters, and so are stacks as a whole in which an older filter
/// denies `seccomp`.
pub fn check(stack: &Stack, calls: &[SeccompData]) -> Checked {
    let mut checked = Checked::default();
    let programs = stack.programs();
    let is_native = stack.endian() == Some(crate::NATIVE_ENDIAN);
    checked.checker_answers(programs);
    let installable = programs.iter().enumerate();
    let installable = installable.filter(|(_, program)| program.is_installable());
    for (index, program) in installable {
        if let Err(error) = checked.packets(index, program, calls) {
            checked.not_asked.push(error);
        }
        if is_native {
            checked.answers(Some(index), &program.clone().into(), calls);
        }
    }
    if is_native && programs.len() > 1 && stack.is_installable() {
        checked.answers(None, stack, calls);
    }
    checked
}

impl Checked {
    fn checker_answers(&mut self, programs: &[Program]) {
        let lists: Vec<Vec<Insn>> = programs.iter().map(|one| one.insns().to_vec()).collect();
        let answers = match checker_answers(&lists) {
            Ok(answers) => answers,
            Err(error) => return self.not_asked.push(error),
        };
        for (program, answer) in answers.into_iter().enumerate() {
            let is_taken = answer == CheckerAnswer::Accepted;
            if is_taken != programs[program].is_installable() {
                let contradiction = Contradiction::Checker { program, answer };
                self.contradictions.push(contradiction);
            }
        }
    }

    fn packets(
        &mut self,
        index: usize,
        program: &Program,
        calls: &[SeccompData],
    ) -> Result<(), AskError> {
        let packets = Packets::new()?;
        let mut by_ret: BTreeMap<u32, Vec<(&SeccompData, [u32; 16])>> = BTreeMap::new();
        for call in calls {
            let image = call.image(program.endian());
            let ret = interp::run(program, call).ret;
            by_ret.entry(ret).or_default().push((call, image));
        }
        for (expected, group) in by_ret {
            let images = group.iter().map(|(_, image)| image);
            let answers = packets.returns(program, expected, images)?;
            self.packets += answers.len();
            let wrong = group
                .iter()
                .zip(answers)
                .filter(|(_, is_returned)| !is_returned);
            let contradictions = wrong.map(|((call, _), _)| Contradiction::Returned {
                program: index,
                call: **call,
                expected,
            });
            self.contradictions.extend(contradictions);
        }
        Ok(())
    }

    fn answers(&mut self, program: Option<usize>, stack: &Stack, calls: &[SeccompData]) {
        match calls::compare(stack, calls) {
            Ok((made, mismatches)) => {
                self.calls += made;
                let answered = |mismatch| Contradiction::Answered { program, mismatch };
                self.contradictions
                    .extend(mismatches.into_iter().map(answered));
            }
            Err(error) => self.not_asked.push(error),
        }
    }
}
