//! Loading programs independently of each other.
//!
//! Verifiers of different kernels have different knowledge of a tracepoint's arguments. If a program can't be loaded
//! that no other depends on, only its own column is missing; otherwise nothing is recorded.

use std::fmt;

use tamis_ebpf::Insn;
use tamis_kernel::bpf::{self, Attached};

use super::Unavailable;
use super::btf::BtfError;

/// The tracepoints of programs that no other depends on, and the columns that they record.
const COLUMNS: [(&str, &str); 2] = [
    ("signal_generate", "calls for which filters send signals"),
    ("signal_deliver", "signals"),
];

/// A column that isn't recorded, because its program can't be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingColumn {
    /// The column, as a noun phrase in the plural.
    pub column: &'static str,
    /// The reason why the program can't be loaded.
    pub reason: Unavailable,
}

impl fmt::Display for MissingColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} are not recorded: {}", self.column, self.reason)
    }
}

/// A program: its tracepoint, the number of the tracepoint's type if the kernel has it, and the source text.
pub(super) struct Program {
    pub(super) tracepoint: &'static str,
    pub(super) id: Option<u32>,
    pub(super) text: String,
}

/// The programs of these tracepoints.
pub(super) fn programs<const N: usize>(
    tracepoints: [&'static str; N],
    ids: [Option<u32>; N],
    texts: [String; N],
) -> impl Iterator<Item = Program> {
    let all = tracepoints.into_iter().zip(ids).zip(texts);
    all.map(|((tracepoint, id), text)| Program {
        tracepoint,
        id,
        text,
    })
}

/// Attaches programs to their tracepoints, in order; also returns the missing columns.
///
/// # Errors
/// If a program can't be loaded that others depend on.
pub(super) fn attach(
    programs: impl Iterator<Item = Program>,
    assemble: impl Fn(&str) -> Result<Vec<Insn>, String>,
) -> Result<(Vec<Attached>, Vec<MissingColumn>), Unavailable> {
    let (mut attached, mut missing) = (Vec::new(), Vec::new());
    for program in programs {
        let column = COLUMNS
            .iter()
            .find(|(tracepoint, _)| *tracepoint == program.tracepoint);
        match (attach_one(&program, &assemble), column) {
            (Ok(one), _) => attached.push(one),
            (Err(reason), Some((_, column))) if !reason.is_denied() => {
                missing.push(MissingColumn { column, reason });
            }
            (Err(reason), _) => return Err(reason),
        }
    }
    Ok((attached, missing))
}

fn attach_one(
    program: &Program,
    assemble: impl Fn(&str) -> Result<Vec<Insn>, String>,
) -> Result<Attached, Unavailable> {
    let tracepoint = program.tracepoint;
    let insns = assemble(&program.text);
    let insns = insns.map_err(|error| Unavailable::Bug(format!("{tracepoint}: {error}")))?;
    let no_type = || BtfError::NoType(format!("btf_trace_{tracepoint}"));
    let id = program.id.ok_or_else(|| Unavailable::Types(no_type()))?;
    bpf::attach_tracepoint(id, &insns).map_err(|error| Unavailable::Program { tracepoint, error })
}
