//! Programs: instruction lists that the kernel's checker accepts.

use tamis_abi::Endian;

use crate::insn::{Insn, Op};
use crate::validate::{InvalidProgram, problems};

/// The index of an instruction in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pc(pub usize);

/// A non-empty list of instructions that passes every check of the kernel, except that it may exceed the length of
/// a filter: see [`is_installable`](Program::is_installable).
///
/// It is for machines of one byte order, which determines the half of an argument that a load reads and the raw
/// form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    insns: Vec<Insn>,
    endian: Endian,
}

impl Program {
    /// The most instructions that the kernel accepts in one filter, `BPF_MAXINSNS`.
    pub const MAX_INSNS: usize = 4096;

    /// The most instructions of a program.
    ///
    /// Far above what any compiler of filters emits, and low enough that every analysis of a program
    /// can count instructions in 32 bits.
    pub const MAX_INPUT_INSNS: usize = 1 << 20;

    /// Checks a list and converts it to a program for machines of this byte order.
    ///
    /// Lists longer than [`MAX_INSNS`](Self::MAX_INSNS) are accepted if they have no other errors: they are input
    /// for the optimiser and can be evaluated, though not installed. The bound is
    /// [`MAX_INPUT_INSNS`](Self::MAX_INPUT_INSNS).
    ///
    /// # Errors
    /// The first reason for which the kernel would reject it.
    pub fn new(insns: Vec<Insn>, endian: Endian) -> Result<Program, InvalidProgram> {
        match problems(&insns).into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(Program { insns, endian }),
        }
    }

    /// The same for decoded instructions.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_ops(ops: &[Op], endian: Endian) -> Result<Program, InvalidProgram> {
        Program::new(ops.iter().map(|op| Insn::from(*op)).collect(), endian)
    }

    /// The byte order of its machines.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// The count of instructions; at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a program is never empty")]
    pub fn len(&self) -> usize {
        self.insns.len()
    }

    /// The decoded instruction at `pc`.
    ///
    /// # Panics
    /// If `pc` is outside the program.
    #[inline]
    pub fn op(&self, pc: Pc) -> Op {
        decoded(&self.insns[pc.0])
    }

    /// The decoded instructions in order.
    pub fn ops(&self) -> impl Iterator<Item = Op> {
        self.insns.iter().map(decoded)
    }

    /// The same with other constants in some tests. Any constant is valid there, so the result is a program.
    pub(crate) fn with_tests_of(&self, constants: impl Iterator<Item = (Pc, u32)>) -> Program {
        let mut insns = self.insns.clone();
        for (pc, k) in constants {
            insns[pc.0].k = k;
        }
        Program { insns, ..*self }
    }

    /// Whether the kernel accepts it: at most [`MAX_INSNS`](Self::MAX_INSNS) instructions.
    pub fn is_installable(&self) -> bool {
        self.len() <= Program::MAX_INSNS
    }

    /// The raw form for the kernel, bubblewrap, minijail and crun: `struct sock_filter[]` in its byte order,
    /// without a header.
    pub fn to_bytes(&self) -> Vec<u8> {
        insns_to_bytes(&self.insns, self.endian)
    }
}

/// An instruction of a program.
#[inline]
fn decoded(insn: &Insn) -> Op {
    insn.op().expect("a program holds legal instructions only")
}

/// The raw form of instructions: `struct sock_filter[]` in this byte order, without a header.
pub fn insns_to_bytes(insns: &[Insn], endian: Endian) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(insns.len() * Insn::SIZE_BYTES);
    for insn in insns {
        let (code, k) = match endian {
            Endian::Little => (insn.code.to_le_bytes(), insn.k.to_le_bytes()),
            Endian::Big => (insn.code.to_be_bytes(), insn.k.to_be_bytes()),
        };
        bytes.extend(code);
        bytes.extend([insn.jt, insn.jf]);
        bytes.extend(k);
    }
    bytes
}

/// Splits raw bytes into instructions without checking them; `None` if the length is not a multiple
/// of eight.
pub fn insns_from_bytes(bytes: &[u8], endian: Endian) -> Option<Vec<Insn>> {
    let chunks = bytes.chunks_exact(Insn::SIZE_BYTES);
    if !chunks.remainder().is_empty() {
        return None;
    }
    let decode = |raw: &[u8]| {
        let code = [raw[0], raw[1]];
        let k = [raw[4], raw[5], raw[6], raw[7]];
        let (code, k) = match endian {
            Endian::Little => (u16::from_le_bytes(code), u32::from_le_bytes(k)),
            Endian::Big => (u16::from_be_bytes(code), u32::from_be_bytes(k)),
        };
        Insn {
            code,
            jt: raw[2],
            jf: raw[3],
            k,
        }
    };
    Some(chunks.map(decode).collect())
}
