//! The output of a command, if it is a program or a ruleset.

use tamis_abi::{Action, Arch, Endian, SeccompData};
use tamis_bpf::cache::Bitmap;
use tamis_bpf::program::insns_from_bytes;
use tamis_bpf::{Op, Pc, Program, asm, ebpf_len, interp};
use tamis_diag::Sources;
use tamis_prover::{Equality, Function, Limits, Space};
use tamis_rules::Ruleset;

/// A function from calls to actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Artifact {
    /// A ruleset, written in its text form.
    Ruleset(Ruleset),
    /// A program, written in assembler or as raw little-endian instructions.
    Program(Program),
}

impl Artifact {
    /// The artifact in a command's output; `None` if it is neither a ruleset nor a program.
    pub(super) fn from_output(stdout: &[u8]) -> Option<Artifact> {
        let text = str::from_utf8(stdout).ok();
        match text.filter(|text| !text.contains('\0')) {
            Some(text) => {
                let mut sources = Sources::new();
                let source = sources.add("<stdout>", text);
                if let Ok(ruleset) = tamis_rules::text::parse(&sources, source) {
                    return Some(Artifact::Ruleset(ruleset));
                }
                let assembly = asm::assemble(text, source, Endian::Little).ok()?;
                assembly.into_program().ok().map(Artifact::Program)
            }
            None => {
                let insns = insns_from_bytes(stdout, Endian::Little)?;
                Program::new(insns, Endian::Little)
                    .ok()
                    .map(Artifact::Program)
            }
        }
    }

    /// The name of its kind.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Artifact::Ruleset(_) => "ruleset",
            Artifact::Program(_) => "program",
        }
    }

    /// The action for a call.
    pub(super) fn decide(&self, data: &SeccompData) -> Action {
        match self {
            Artifact::Ruleset(ruleset) => ruleset.decide(data).action,
            Artifact::Program(program) => {
                let arch = Arch::of_call(data.arch, data.nr);
                let endian = arch.map_or(Endian::Little, Arch::endian);
                // The output does not name its byte order, so that of the call is used.
                let program = Program::new(program.insns().to_vec(), endian);
                let program = program.expect("byte orders are alike to the checker");
                Action::from_ret(interp::run(&program, data).ret)
            }
        }
    }

    /// A call for which two subjects return different actions, as a sentence; `None` if there is none, by proof.
    /// Programs count as little-endian.
    ///
    /// # Errors
    /// If the prover reaches a limit.
    pub(super) fn difference(&self, other: &Artifact) -> Result<Option<String>, String> {
        let mut space = Space::new(Limits::default());
        let left = self.function(&mut space)?;
        let right = other.function(&mut space)?;
        match space.compare(left, right) {
            Equality::Equal => Ok(None),
            Equality::Different(input) => {
                let data = input.data;
                let (left, right) = (self.decide(&data), other.decide(&data));
                Ok(Some(format!("{left} and {right} for {data:x?}")))
            }
            Equality::Unknown => Err("the prover could not decide".to_owned()),
        }
    }

    fn function(&self, space: &mut Space) -> Result<Function, String> {
        let function = match self {
            Artifact::Ruleset(ruleset) => space.ruleset(ruleset),
            Artifact::Program(program) => space.program(program),
        };
        function.map_err(|limit| format!("the prover gave up: {limit:?}"))
    }

    /// The measures of a program, one per line; `None` for a ruleset.
    pub(super) fn stats(&self) -> Option<String> {
        let Artifact::Program(program) = self else {
            return None;
        };
        let cached: usize = Bitmap::X86_64_LINUX_6_18
            .into_iter()
            .map(|bitmap| bitmap.cached(std::slice::from_ref(program)).count())
            .sum();
        Some(format!(
            "length_insns {}\nkernel_length_insns {}\nmax_steps {}\ncached_numbers {cached}\n",
            program.len(),
            ebpf_len::kernel_len_insns(program),
            max_steps(program),
        ))
    }
}

/// The longest path through a program, feasible or not.
fn max_steps(program: &Program) -> usize {
    let mut longest_from = vec![0; program.len() + 1];
    for pc in (0..program.len()).rev() {
        let after = |skip: u32| longest_from[pc + 1 + skip as usize];
        longest_from[pc] = 1 + match program.op(Pc(pc)) {
            Op::RetImm(_) | Op::RetA => 0,
            Op::Jump(skip) => after(skip),
            Op::Branch { jt, jf, .. } => after(jt.into()).max(after(jf.into())),
            _ => after(0),
        };
    }
    longest_from[0]
}

#[cfg(test)]
mod tests {
    use tamis_bpf::{Insn, Test};

    use super::*;

    fn program() -> Program {
        let branch = Op::branch(Test::Eq, 0, 0, 1);
        let allow = Action::ALLOW.ret();
        let ops = [
            Op::LoadData(0),
            branch,
            Op::RetImm(allow),
            Op::LoadData(4),
            Op::RetA,
        ];
        Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap()
    }

    #[test]
    fn programs_are_recognised_raw_and_in_assembler() {
        let raw = program().to_bytes();
        let text = b"ld [0]\njeq #0, yes, no\nyes: ret #0x7fff0000\nno: ld [4]\nret a\n";
        for output in [raw.as_slice(), text] {
            let subject = Artifact::from_output(output).unwrap();
            assert_eq!(subject.name(), "program");
            assert_eq!(subject.decide(&SeccompData::default()), Action::ALLOW);
        }
    }

    #[test]
    fn the_longest_path_decides() {
        assert_eq!(max_steps(&program()), 4);
    }

    #[test]
    fn other_output_is_no_subject() {
        assert!(Artifact::from_output(b"").is_none());
        assert!(Artifact::from_output(b"hello\n").is_none());
        assert!(Artifact::from_output(b"1234567\0").is_none());
    }
}
