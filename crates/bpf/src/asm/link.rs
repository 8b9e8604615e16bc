//! Labels to displacements.

use std::collections::BTreeMap;

use tamis_diag::{Diagnostic, Span, suggest};

use super::parse::{Label, Target, Template, Unit};
use crate::code;
use crate::insn::{Insn, Op};

/// The instructions of a unit with every jump resolved.
///
/// Errors are added to `diagnostics`; an instruction with an error gets displacement 0.
pub(super) fn link(unit: &Unit<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Insn> {
    let mut linker = Linker {
        labels: BTreeMap::new(),
        diagnostics,
    };
    for label in &unit.labels {
        linker.define(label, unit.insns.len());
    }
    let insns = unit.insns.iter().enumerate();
    let linked = insns
        .map(|(pc, line)| linker.insn(line.template, pc))
        .collect();
    linker.warn_unused();
    linked
}

struct Definition {
    pc: usize,
    span: Span,
    is_used: bool,
}

struct Linker<'a, 'd> {
    labels: BTreeMap<&'a str, Definition>,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl<'a> Linker<'a, '_> {
    fn define(&mut self, label: &Label<'a>, len_insns: usize) {
        if label.pc == len_insns {
            let message = format!("no instruction follows label `{}`", label.name);
            self.diagnostics.push(
                Diagnostic::error(code::ASSEMBLER_SYNTAX, message)
                    .label(label.span, "labels nothing"),
            );
        }
        if let Some(first) = self.labels.get(label.name) {
            let message = format!("label `{}` is defined twice", label.name);
            self.diagnostics.push(
                Diagnostic::error(code::DUPLICATE_LABEL, message)
                    .label(label.span, "again here")
                    .label(first.span, "first here"),
            );
            return;
        }
        let definition = Definition {
            pc: label.pc,
            span: label.span,
            is_used: false,
        };
        self.labels.insert(label.name, definition);
    }

    fn insn(&mut self, template: Template<'a>, pc: usize) -> Insn {
        match template {
            Template::Insn(insn) => insn,
            Template::Jump(target) => Op::Jump(self.skip(target, pc)).into(),
            Template::Branch {
                test,
                operand,
                if_true,
                if_false,
            } => {
                let jt = if_true.map_or(0, |target| self.short_skip(target, pc));
                let jf = if_false.map_or(0, |target| self.short_skip(target, pc));
                Insn::from(Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                })
            }
        }
    }

    /// The count of instructions between the jump at `pc` and its target.
    fn skip(&mut self, target: Target<'a>, pc: usize) -> u32 {
        let Some(definition) = self.labels.get_mut(target.label) else {
            self.undefined(target);
            return 0;
        };
        definition.is_used = true;
        if definition.pc <= pc {
            let message = format!("jump back to label `{}`", target.label);
            self.diagnostics.push(
                Diagnostic::error(code::BACKWARD_JUMP, message)
                    .label(
                        target.span,
                        format!("{} instructions back", pc - definition.pc),
                    )
                    .label(definition.span, "the label")
                    .note("a filter has no loops: jumps go forwards only"),
            );
            return 0;
        }
        (definition.pc - pc - 1) as u32
    }

    /// The same for a branch, whose displacements have eight bits.
    fn short_skip(&mut self, target: Target<'a>, pc: usize) -> u8 {
        let skip = self.skip(target, pc);
        u8::try_from(skip).unwrap_or_else(|_| {
            let message = format!("branch to `{}` skips {skip} instructions", target.label);
            let definition = self.labels[target.label].span;
            self.diagnostics.push(
                Diagnostic::error(code::BRANCH_TOO_FAR, message)
                    .label(target.span, "too far")
                    .label(definition, "the label")
                    .note("a branch skips at most 255 instructions; `ja` has no such limit")
                    .help(format!("branch to a nearer `ja {}`", target.label)),
            );
            0
        })
    }

    fn undefined(&mut self, target: Target<'a>) {
        let message = format!("undefined label `{}`", target.label);
        let diagnostic = Diagnostic::error(code::UNDEFINED_LABEL, message).label(target.span, "");
        let help = match suggest::nearest(target.label, self.labels.keys().copied()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!(
                "write `{}:` before the instruction to jump to",
                target.label
            ),
        };
        self.diagnostics.push(diagnostic.help(help));
    }

    fn warn_unused(&mut self) {
        let unused = self
            .labels
            .iter()
            .filter(|(_, definition)| !definition.is_used);
        self.diagnostics.extend(unused.map(|(name, definition)| {
            let message = format!("nothing jumps to label `{name}`");
            Diagnostic::warning(code::UNUSED_LABEL, message).label(definition.span, "unused")
        }));
    }
}
