//! A program as its instructions: `tamis disasm` and `tamis asm`.

use serde::Serialize;
use tamis_bpf::Program;

use crate::entry::{InsnEntry, insns};

/// The instructions of a program. Its text is assembler text, of `tamis_bpf::disasm`.
#[derive(Serialize)]
pub struct DisasmReport {
    pub insns: Vec<InsnEntry>,
}

impl DisasmReport {
    /// The report of a program.
    pub fn of(program: &Program) -> DisasmReport {
        DisasmReport {
            insns: insns(program),
        }
    }
}
