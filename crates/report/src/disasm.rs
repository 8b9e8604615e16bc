//! A program as its instructions: `tamis bpf disasm` and `tamis bpf asm`.

use serde::Serialize;
use tamis_bpf::Insn;
use tamis_bpf::extended;
use tamis_ebpf::text;

use crate::entry::{InsnEntry, insns};

/// The instructions of a program. Its text is assembler text, of `tamis_bpf::disasm`.
#[derive(Serialize)]
pub struct DisasmReport {
    pub insns: Vec<InsnEntry>,
}

impl DisasmReport {
    /// The report of a program's instructions.
    pub fn from_insns(program: &[Insn]) -> DisasmReport {
        DisasmReport {
            insns: insns(program),
        }
    }
}

/// Extended programs: `tamis-lab ebpf disasm`.
#[derive(Serialize)]
pub struct ExtendedReport {
    pub programs: Vec<ExtendedProgram>,
}

/// The instructions of an extended program, and where it is in an object file.
#[derive(Serialize)]
pub struct ExtendedProgram {
    pub section: Option<String>,
    pub insns: Vec<ExtendedInsn>,
}

/// One instruction, as in `struct bpf_insn`.
#[derive(Serialize)]
pub struct ExtendedInsn {
    pub code: u8,
    pub dst: u8,
    pub src: u8,
    pub offset: i16,
    pub imm: i32,
    pub text: Option<String>,
}

impl ExtendedProgram {
    /// The report of a program's instructions as they are stored. The second half of a wide instruction has no text.
    pub fn from_program(section: Option<String>, program: &tamis_ebpf::Program) -> ExtendedProgram {
        let listing = text::disassemble(program.insns());
        let mut lines = listing.lines();
        let entry = |(pc, insn): (usize, &extended::Insn)| ExtendedInsn {
            code: insn.code,
            dst: insn.dst,
            src: insn.src,
            offset: insn.offset,
            imm: insn.imm,
            text: program
                .op(tamis_ebpf::Pc(pc))
                .and_then(|_| lines.next())
                .map(str::to_owned),
        };
        let insns = program.insns().iter().enumerate().map(entry).collect();
        ExtendedProgram { section, insns }
    }
}
