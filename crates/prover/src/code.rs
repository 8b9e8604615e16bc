//! The instructions of a program, or of a template with symbolic variables.

use tamis_abi::Endian;
use tamis_bpf::{Op, Pc, Program, Template};

/// A program or a template.
#[derive(Clone, Copy)]
pub(crate) enum Code<'a> {
    Program(&'a Program),
    Template(&'a Template),
}

impl<'a> Code<'a> {
    /// The instruction at `pc`; of a template with its variables.
    pub(crate) fn op(self, pc: Pc) -> Op {
        match self {
            Code::Program(program) => program.op(pc),
            Code::Template(template) => template.op(pc),
        }
    }

    /// The byte order of its machines.
    pub(crate) fn endian(self) -> Endian {
        self.shape().endian()
    }

    /// The program; for a template with 0 for its variables, for all uses that don't depend on constants.
    pub(crate) fn shape(self) -> &'a Program {
        match self {
            Code::Program(program) => program,
            Code::Template(template) => template.unbound(),
        }
    }
}
