//! The text form of extended BPF, in the format of LLVM's tools and the kernel's disassembler.
//!
//! Every list of instructions has a text, and the text is parsed to the same list: invalid instructions are printed as
//! `.insn`. In addition, the assembler accepts labels, and ignores the number and the code in parentheses at the start
//! of lines in listings of the kernel. Comments begin with `//`, `#` or `;`.

use std::fmt::Write as _;

use tamis_abi::Endian;
use tamis_bpf::extended::Insn;
use tamis_diag::{Diagnostic, SourceId, Span, sort_by_place};

use crate::code;
use crate::coding::decode;
use crate::program::Program;

mod lex;
mod parse;
mod print;

/// The assembled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// The instructions; they may not form a program.
    pub insns: Vec<Insn>,
    /// The place of each instruction in the text. Both halves of a wide one have the same.
    pub spans: Vec<Span>,
    text: Span,
}

impl Assembly {
    /// Checks the instructions.
    ///
    /// # Errors
    /// A diagnostic at the line of the first mistake.
    pub fn into_program(self, endian: Endian) -> Result<Program, Box<Diagnostic>> {
        let Assembly { insns, spans, text } = self;
        Program::new(insns, endian).map_err(|error| {
            let span = spans.get(error.pc.0).copied().unwrap_or(text);
            let message = error.reason.to_string();
            Box::new(Diagnostic::error(code::EXTENDED_PROGRAM, message).label(span, ""))
        })
    }
}

/// Assembles a text.
///
/// ```
/// use tamis_ebpf::text::{assemble, disassemble};
/// let mut sources = tamis_diag::Sources::new();
/// let text = "r0 = *(u32 *)(r1 + 4)\nif r0 s> 5 goto +1\nw0 ^= w1\nexit\n";
/// let source = sources.add("example.s", text);
/// let assembly = assemble(text, source).unwrap();
/// assert_eq!(assembly.insns.len(), 4);
/// assert_eq!(disassemble(&assembly.insns), text);
/// ```
///
/// # Errors
/// The errors in the text, in order, up to a limit.
pub fn assemble(text: &str, source: SourceId) -> Result<Assembly, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let lines = lex::lines(text, source, &mut diagnostics);
    let (insns, spans) = parse::unit(&lines, &mut diagnostics);
    if diagnostics.is_empty() {
        let text = Span::new(source, 0, text.len());
        Ok(Assembly { insns, spans, text })
    } else {
        sort_by_place(&mut diagnostics);
        Err(diagnostics)
    }
}

/// The text of any list of instructions, a line for each.
pub fn disassemble(insns: &[Insn]) -> String {
    let mut text = String::new();
    let mut pc = 0;
    while pc < insns.len() {
        pc += match decode(&insns[pc..]) {
            Some(op) => {
                let _ = writeln!(text, "{op}");
                op.places()
            }
            None => {
                let Insn {
                    code,
                    dst,
                    src,
                    offset,
                    imm,
                } = insns[pc];
                let _ = writeln!(text, ".insn {code:#04x}, {dst}, {src}, {offset}, {imm}");
                1
            }
        };
    }
    text
}

#[cfg(test)]
mod tests;
