//! All questions that the kernel can be asked about some programs and calls, at once.

use std::collections::BTreeMap;

use tamis_abi::SeccompData;
use tamis_bpf::{Insn, Program, Stack, interp};

use super::calls::{self, Mismatch};
use super::packets::Packets;
use super::{AskError, Verdict, verdicts};

/// Something that the kernel says otherwise than tamis. Programs are counted from the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// The kernel doesn't take a program, or takes one that is too long.
    Verdict {
        /// The program.
        program: usize,
        /// What the kernel says.
        verdict: Verdict,
    },
    /// As the filter of a socket, a program returns something else.
    Returned {
        /// The program.
        program: usize,
        /// The words that it was run on.
        call: SeccompData,
        /// What the interpreter returns.
        expected: u32,
    },
    /// A call is answered differently.
    Answered {
        /// The program, alone on a task; `None` for all of them.
        program: Option<usize>,
        /// Call and answers.
        mismatch: Mismatch,
    },
}

/// What was asked, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many calls were made.
    pub calls: usize,
    /// How many packets were sent.
    pub packets: usize,
    /// What could not be asked, and why.
    pub not_asked: Vec<AskError>,
    /// Where the kernel says otherwise.
    pub contradictions: Vec<Contradiction>,
}

/// Asks the kernel whether it takes the programs of a stack, what each and all together answer to those of
/// the calls that can be made here, and what each returns for all of them as the filter of a socket.
///
/// Calls cost microseconds, or a millisecond where a program kills. A question that can't be asked is
/// noted: programs for machines of the other byte order are put to sockets alone, and so are stacks in
/// which an older filter denies `seccomp`, as far as the whole stack goes.
pub fn check(stack: &Stack, calls: &[SeccompData]) -> Checked {
    let mut checked = Checked::default();
    let programs = stack.programs();
    let is_native = stack.endian() == Some(crate::NATIVE_ENDIAN);
    checked.verdicts(programs);
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
    fn verdicts(&mut self, programs: &[Program]) {
        let lists: Vec<Vec<Insn>> = programs.iter().map(|one| one.insns().to_vec()).collect();
        let answers = match verdicts(&lists) {
            Ok(answers) => answers,
            Err(error) => return self.not_asked.push(error),
        };
        for (program, verdict) in answers.into_iter().enumerate() {
            let is_taken = verdict == Verdict::Accepted;
            if is_taken != programs[program].is_installable() {
                let contradiction = Contradiction::Verdict { program, verdict };
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
