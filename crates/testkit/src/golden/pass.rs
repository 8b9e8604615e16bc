//! Execution of one pass of the compiler on the input of a golden, and tests of its guarantees.
//!
//! In addition to the golden's expectations, a pass must give an equivalent result (by proof), must change nothing
//! when it runs again on its result, and must keep the guarantees in the registry. Its input and output must survive
//! being printed and parsed.

use tamis_bpf::disasm::{Style, disassemble};
use tamis_bpf::{Op, Pc, Program, interp};
use tamis_compiler::passes::registry::Selection;
use tamis_compiler::passes::{Claim, PassCx, PassInfo};
use tamis_compiler::stages;
use tamis_rules::Ruleset;

use super::eval::Row;
use super::subject::Artifact;

/// The result of a pass.
pub(super) struct PassResult {
    info: PassInfo,
    /// The input.
    pub(super) before: Artifact,
    /// The output.
    pub(super) after: Artifact,
    /// The output as text.
    pub(super) text: String,
}

/// Runs the pass of this name until it changes nothing: on blocks if the input is a program in assembler, on rules if
/// it is a ruleset.
///
/// # Errors
/// If there is no such pass, or the input has the wrong kind, as a sentence.
pub(super) fn run(name: &str, input: &str) -> Result<PassResult, String> {
    let info = tamis_compiler::passes::registry::all()
        .find(|info| info.name == name)
        .ok_or_else(|| format!("there is no pass `{name}`"))?;
    let before = Artifact::from_output(input.as_bytes())
        .ok_or("the input is neither assembler nor a ruleset")?;
    let after = apply(info, &before);
    let text = print(&after);
    Ok(PassResult {
        info,
        before,
        after,
        text,
    })
}

impl PassResult {
    /// The guarantees that are violated, each as a sentence.
    ///
    /// # Errors
    /// If the prover reaches a limit.
    pub(super) fn broken_promises(&self, rows: &[Row]) -> Result<Vec<String>, String> {
        let mut broken = Vec::new();
        if let Some(difference) = self.before.difference(&self.after)? {
            broken.push(format!("the pass changed the meaning: {difference}"));
        }
        if apply(self.info, &self.after) != self.after {
            broken.push("the pass changes its own result when it runs again".to_owned());
        }
        for subject in [&self.before, &self.after] {
            let text = print(subject);
            if Artifact::from_output(text.as_bytes()).as_ref() != Some(subject) {
                broken.push(format!(
                    "this text does not parse back to the same:\n{text}"
                ));
            }
        }
        broken.extend(self.broken_claims(rows));
        Ok(broken)
    }

    fn broken_claims(&self, rows: &[Row]) -> Vec<String> {
        let Claim {
            never_longer,
            never_slower,
        } = self.info.claim;
        let (before, after) = (length(&self.before), length(&self.after));
        let mut broken = Vec::new();
        if never_longer && after > before {
            broken.push(format!(
                "the pass claims never to lengthen: {before} to {after}"
            ));
        }
        if let (Artifact::Program(before), Artifact::Program(after)) = (&self.before, &self.after) {
            for row in rows.iter().filter(|_| never_slower) {
                let (before, after) = (steps(before, row), steps(after, row));
                if after > before {
                    let text = &row.text;
                    broken.push(format!(
                        "the pass claims never to slow down: {before} to {after} steps for {text}"
                    ));
                }
            }
        }
        broken
    }
}

fn apply(info: PassInfo, subject: &Artifact) -> Artifact {
    let selection = Selection::named([info.name]).expect("the registry has the pass");
    let mut cx = PassCx::new(None);
    match subject {
        Artifact::Ruleset(ruleset) => Artifact::Ruleset(
            stages::run_on_rules(ruleset, selection.rule_passes(), &mut cx).into_unproven(),
        ),
        Artifact::Program(program) => Artifact::Program(
            stages::optimise(program, selection.bytecode_passes(), &mut cx).into_unproven(),
        ),
    }
}

fn print(subject: &Artifact) -> String {
    match subject {
        Artifact::Ruleset(ruleset) => ruleset.to_string(),
        Artifact::Program(program) => disassemble(program, Style::Plain),
    }
}

/// The number of instructions except unconditional jumps, or of rules.
fn length(subject: &Artifact) -> usize {
    match subject {
        Artifact::Ruleset(ruleset) => rules_count(ruleset),
        Artifact::Program(program) => (0..program.len())
            .filter(|pc| counts(program, Pc(*pc)))
            .count(),
    }
}

fn rules_count(ruleset: &Ruleset) -> usize {
    let sections = ruleset.sections().iter();
    sections.map(|section| section.rules.len()).sum()
}

/// Passes do not determine where unconditional jumps are needed.
fn counts(program: &Program, pc: Pc) -> bool {
    !matches!(program.op(pc), Op::Jump(_))
}

fn steps(program: &Program, row: &Row) -> usize {
    let mut steps = 0;
    interp::run_traced(program, &row.data, &mut |pc| {
        steps += usize::from(counts(program, pc));
    });
    steps
}
