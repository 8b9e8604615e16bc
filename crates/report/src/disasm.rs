//! A program as its instructions: `tamis disasm` and `tamis asm`.

use serde::Serialize;
use tamis_bpf::Insn;

use crate::entry::{InsnEntry, insns};

/// The instructions of a program. Its text is assembler text, of `tamis_bpf::disasm`.
#[derive(Serialize)]
pub struct DisasmReport {
    pub insns: Vec<InsnEntry>,
}

impl DisasmReport {
    /// The report of a program's instructions.
    pub fn of(program: &[Insn]) -> DisasmReport {
        DisasmReport {
            insns: insns(program),
        }
    }
}
