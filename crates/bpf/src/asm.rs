//! The assembler: programs as text.
//!
//! The mnemonics are those of the kernel's own `bpf_asm`; input that it accepts and seccomp allows is accepted here
//! with the same meaning, one instruction per line. In addition there are names for the constants of filters. Every
//! encoding has a text: [`disasm`](crate::disasm) prints any program so that assembling it gives the same
//! instructions, bit for bit.
//!
//! ```text
//! program  = { line } ;
//! line     = { LABEL ":" } [ insn ] NEWLINE ;
//! insn     = ( "ld" | "ldh" | "ldb" ) ( "[" data "]" | "[" [ "%" ] "x" "+" NUMBER "]" | "#" VALUE )
//!          | ( "ldx" | "ldxb" ) "4" "*" "(" "[" NUMBER "]" "&" "0xf" ")"
//!          | "ld" ( const | slot | len )
//!          | "ldx" ( const | slot | len )
//!          | ( "ldi" | "ldxi" ) ( const | NUMBER )
//!          | ( "st" | "stx" ) slot
//!          | ( "add" | "sub" | "mul" | "div" | "mod" | "and" | "or" | "xor" | "lsh" | "rsh" ) operand
//!          | "neg" | "tax" | "txa"
//!          | ( "ja" | "jmp" ) LABEL
//!          | ( "jeq" | "jgt" | "jge" | "jset" | "jne" | "jneq" | "jlt" | "jle" )
//!                operand "," LABEL [ "," LABEL ]
//!          | "ret" ( const | [ "%" ] "a" )
//!          | ".insn" NUMBER "," NUMBER "," NUMBER "," NUMBER ;
//! operand  = const | [ "%" ] "x" ;
//! slot     = "M" "[" NUMBER "]" ;
//! len      = [ "#" ] "len" ;
//! data     = NUMBER | FIELD ;
//! const    = "#" ( NUMBER | ACTION [ "(" NUMBER ")" ]
//!                | "arch" "(" ARCH ")" | "nr" "(" ARCH "," SYSCALL ")" ) ;
//! ```
//!
//! - The second label of a branch is where it goes if the test fails; without it, execution falls
//!   through. `jne`, `jlt` and `jle` are `jeq`, `jge` and `jgt` with the sides exchanged.
//! - Numbers are decimal, also negative down to -2^31, or hexadecimal, octal or binary behind `0x`,
//!   `0` and `0b`.
//! - Fields are `nr`, `arch`, `ip.low`, `ip.high`, `arg0.low` to `arg5.high`: where the halves of a
//!   64-bit field stand depends on the byte order for which the program is assembled. Actions are
//!   those of [`ActionKind`](tamis_abi::ActionKind), such as `errno(1)`. The number of a system call
//!   depends on the architecture, so it is always named with it; a bare system call name is an error.
//! - Seccomp has only `ld [data]` of the loads in the first two lines, and no `mod`. Sockets have all of them, but no
//!   names of fields, actions and calls; a `VALUE` is a name of [`Ancillary`](crate::packet::Ancillary).
//! - Comments run from `;` to the end of the line or between `/*` and `*/`, not `**/`, behind which
//!   `bpf_asm` goes on; a line that begins with `#` is one too. Mnemonics and registers may be in
//!   capitals; labels, as all other names, are case-sensitive.
//! - `.insn` gives the code, both jump displacements and the constant as they are. It serves
//!   instructions that have no other spelling: fields that the kernel ignores but that are not zero.
//!   Its displacements are numbers, never labels.

mod lex;
mod link;
pub(crate) mod parse;
mod symbols;

pub(crate) use lex::number;

use tamis_abi::Endian;
use tamis_diag::limits::MAX_DIAGNOSTICS;
use tamis_diag::{Diagnostic, SourceId, Span, sort_by_place};

use crate::code;
use crate::insn::Insn;
use crate::packet;
use crate::program::Program;
use crate::validate::{InvalidProgram, problems};

/// Whether a text begins with an instruction or a comment of the assembler, perhaps behind labels.
pub(crate) fn recognises(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with(['#', ';']));
    let is_label = |word: &&str| {
        word.strip_suffix(':')
            .is_some_and(|name| !name.contains(':'))
    };
    let mut words = lines.flat_map(str::split_whitespace).skip_while(is_label);
    let word = words.next();
    word.is_some_and(|word| word.starts_with("/*") || parse::is_mnemonic(word))
}

/// The result of the assembler; the kernel may still reject it, see [`into_program`](Self::into_program).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// The instructions.
    pub insns: Vec<Insn>,
    /// The span of each instruction; as many as there are instructions.
    pub spans: Vec<Span>,
    /// Warnings about labels without jumps.
    pub warnings: Vec<Diagnostic>,
    /// The byte order of their machines.
    endian: Endian,
    /// The whole text.
    text_span: Span,
}

impl Assembly {
    /// The instructions of a text with their spans, unless there is an error.
    pub(crate) fn new(
        insns: Vec<Insn>,
        endian: Endian,
        spans: Vec<Span>,
        text_span: Span,
        mut diagnostics: Vec<Diagnostic>,
    ) -> Result<Assembly, Vec<Diagnostic>> {
        sort_by_place(&mut diagnostics);
        if diagnostics.iter().any(Diagnostic::is_error) {
            if diagnostics.len() > MAX_DIAGNOSTICS {
                diagnostics.retain(Diagnostic::is_error);
                diagnostics.truncate(MAX_DIAGNOSTICS);
            }
            return Err(diagnostics);
        }
        Ok(Assembly {
            insns,
            spans,
            warnings: diagnostics,
            endian,
            text_span,
        })
    }

    /// Checks the instructions as the kernel does.
    ///
    /// # Errors
    /// A diagnostic for each instruction that the kernel would reject, at its line, up to a limit.
    pub fn into_program(self) -> Result<Program, Vec<Diagnostic>> {
        let diagnostics = self.diagnostics(&problems(&self.insns));
        Program::new(self.insns, self.endian).map_err(|_| diagnostics)
    }

    /// Checks the instructions as the kernel does for a filter of a socket.
    ///
    /// # Errors
    /// A diagnostic for each instruction that the kernel would reject, at its line, up to a limit.
    pub fn into_packet_program(self) -> Result<packet::Program, Vec<Diagnostic>> {
        let diagnostics = self.diagnostics(&packet::problems(&self.insns));
        packet::Program::new(self.insns).map_err(|_| diagnostics)
    }

    fn diagnostics(&self, found: &[InvalidProgram]) -> Vec<Diagnostic> {
        let diagnostic = |problem: &InvalidProgram| {
            let span = self.spans.get(problem.pc.0).copied();
            Diagnostic::error(code::INVALID_PROGRAM, problem.reason.to_string())
                .label(span.unwrap_or(self.text_span), "")
                .note(problem.reason.rule())
        };
        found.iter().take(MAX_DIAGNOSTICS).map(diagnostic).collect()
    }
}

/// The result of a step; an error in the text prevents it.
pub(crate) type Step<T> = Result<T, Box<Diagnostic>>;

/// The machine that a text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Seccomp on machines of this byte order.
    Seccomp(Endian),
    /// Filters of sockets.
    Packet,
}

/// Assembles the text of a socket's filter.
///
/// ```
/// use tamis_bpf::asm::assemble_packet;
/// let mut sources = tamis_diag::Sources::new();
/// let text = "ldh [12]\n jne #0x800, drop\n ldxb 4*([14]&0xf)\n ldh [x + 16]\n ret a\n drop: ret #0\n";
/// let source = sources.add("port.asm", text);
/// let program = assemble_packet(text, source).unwrap().into_packet_program().unwrap();
/// assert_eq!(program.len(), 6);
/// ```
///
/// # Errors
/// The errors in the text, in order, up to a limit.
pub fn assemble_packet(text: &str, source: SourceId) -> Result<Assembly, Vec<Diagnostic>> {
    assemble_dialect(text, source, Dialect::Packet, Endian::Little)
}

/// Assembles a text for machines of this byte order, which determines the offsets of the halves of 64-bit fields.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::asm::assemble;
/// let mut sources = tamis_diag::Sources::new();
/// let text = "ld [nr]\n jeq #39, denied\n ret #allow\n denied: ret #errno(1)\n";
/// let source = sources.add("example.bpf", text);
/// let program = assemble(text, source, Endian::Little).unwrap().into_program().unwrap();
/// assert_eq!(program.len(), 4);
/// ```
///
/// # Errors
/// The errors in the text, in order, up to a limit.
pub fn assemble(text: &str, source: SourceId, endian: Endian) -> Result<Assembly, Vec<Diagnostic>> {
    assemble_dialect(text, source, Dialect::Seccomp(endian), endian)
}

fn assemble_dialect(
    text: &str,
    source: SourceId,
    dialect: Dialect,
    endian: Endian,
) -> Result<Assembly, Vec<Diagnostic>> {
    let text_span = Span::new(source, 0, text.len());
    let mut diagnostics = Vec::new();
    let mut lines = lex::Lines::new(text, source);
    let unit = parse::unit(&mut lines, dialect, &mut diagnostics);
    linked(&unit, endian, text_span, diagnostics)
}

/// Resolves the labels of a unit; after an error, here or earlier, there is no result.
pub(crate) fn linked(
    unit: &parse::Unit<'_>,
    endian: Endian,
    text_span: Span,
    mut diagnostics: Vec<Diagnostic>,
) -> Result<Assembly, Vec<Diagnostic>> {
    let insns = link::link(unit, &mut diagnostics);
    let spans = unit.insns.iter().map(|line| line.span).collect();
    Assembly::new(insns, endian, spans, text_span, diagnostics)
}

#[cfg(test)]
mod tests;
